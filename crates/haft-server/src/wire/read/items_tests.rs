//! Items as clients send them, and as they are kept.

use serde_json::{Value, json};

use super::*;
use crate::error::ErrorCode;
use crate::wire::request::{InputItem, InputRecord};

fn words() -> Vocabulary<'static> {
    Vocabulary {
        is_vendor_type: &|name| name == "acme:ledger",
        ..Vocabulary::default()
    }
}

fn read(items: &Value) -> Read<Vec<InputItem>> {
    InputItem::read_list(items.clone(), "input", &words())
}

fn record(item: &Value) -> InputRecord {
    match read(&json!([item]))
        .unwrap_or_else(|error| panic!("{item}: {error:?}"))
        .pop()
    {
        Some(InputItem::Item(record)) => record,
        other => panic!("{item}: {other:?}"),
    }
}

/// The item as it is kept.
fn kept(item: &Value) -> Value {
    let record = record(item);
    let json = serde_json::to_value(&record.item).unwrap();
    assert_eq!(json["id"], *record.id);
    assert_eq!(record.stored().unwrap().json.get(), json.to_string());
    json
}

#[track_caller]
fn refused(item: &Value, code: ErrorCode, param: &str) {
    let error = read(&json!([{"role": "user", "content": "x"}, item]))
        .expect_err(&format!("{item} is accepted"));
    assert_eq!(
        (error.code, error.param.as_deref()),
        (code, Some(param)),
        "{item}: {error}"
    );
}

#[test]
fn items_in_full_are_kept_as_they_are() {
    for item in [
        json!({"type": "message", "id": "msg_1", "status": "incomplete", "role": "assistant",
            "content": [{"type": "output_text", "text": "a", "annotations": [{"type": "x"}],
                         "logprobs": [{"token": "a"}]},
                        {"type": "refusal", "refusal": "no"}],
            "phase": "commentary", "created_by": "me"}),
        json!({"type": "message", "id": "msg_1", "status": "completed", "role": "system",
            "content": [{"type": "input_text", "text": "a"},
                        {"type": "input_image", "image_url": "data:,x", "detail": "low"},
                        {"type": "input_file", "filename": "f", "file_data": "data:,x"},
                        {"type": "input_file", "file_url": "https://a/b", "detail": "high"},
                        {"type": "input_video", "video_url": "https://a/b"}]}),
        json!({"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "c",
            "name": "n", "arguments": " {\"a\" : 1}", "namespace": "ns"}),
        json!({"type": "function_call_output", "id": "fco_1", "status": "completed",
            "call_id": "c", "output": "o", "is_error": true}),
        json!({"type": "function_call_output", "id": "fco_1", "status": "completed",
            "call_id": "c", "output": [
                {"type": "input_image", "image_url": "data:,x", "detail": "auto"}]}),
        json!({"type": "reasoning", "id": "rs_1", "status": "completed",
            "summary": [{"type": "summary_text", "text": "s"}],
            "content": [{"type": "reasoning_text", "text": "t"}], "encrypted_content": "z"}),
        json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "z",
            "status": "completed", "created_by": "x"}),
        json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "n",
            "input": "text", "namespace": "ns", "status": "completed"}),
        json!({"type": "custom_tool_call_output", "id": "ctco_1", "call_id": "c",
            "output": [{"type": "input_text", "text": "x"}], "is_error": true,
            "status": "completed"}),
        json!({"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "air",
            "tools": [{"name": "a.b", "input_schema": {}}], "error": null, "status": "failed"}),
        json!({"type": "mcp_call", "id": "mcp_1", "server_label": "air", "name": "a.b",
            "arguments": "{}", "output": null, "error": {"type": "http_error"},
            "approval_request_id": null, "status": "calling", "content": [1]}),
        json!({"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "air",
            "name": "find", "arguments": "{}", "status": "completed"}),
        json!({"type": "mcp_approval_response", "id": "mcpa_1", "approval_request_id": "mcpr_1",
            "approve": false, "reason": "no", "status": "completed"}),
        json!({"type": "tool_search_call", "id": "tsc_1", "call_id": null, "execution": "server",
            "arguments": {"query": "x"}, "status": "completed"}),
        json!({"type": "tool_search_output", "id": "tso_1", "call_id": "c", "execution": "client",
            "tools": [{"type": "function", "name": "n", "defer_loading": true}],
            "status": "completed"}),
        json!({"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [],
            "status": "completed"}),
        json!({"type": "configuration_update", "id": "cfg_1", "reasoning": {"effort": "low"},
            "status": "completed"}),
        json!({"type": "web_search_call", "id": "ws_1", "status": "searching", "action": null}),
        json!({"type": "openai:web_search_call", "id": "ws_1", "status": "completed"}),
        json!({"type": "computer_call_output", "id": "cuo_1", "status": "completed"}),
        json!({"type": "haft:clock", "id": "haft_1", "status": "failed", "error": "late"}),
        json!({"type": "acme:ledger", "id": "acme_1", "status": "completed", "x": 1}),
    ] {
        assert_eq!(kept(&item), item);
    }
}

#[test]
fn what_is_missing_is_filled_in() {
    for (given, prefix, expected) in [
        (
            json!({"role": "user", "content": "hi"}),
            "msg_",
            json!({"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": "hi"}]}),
        ),
        (
            json!({"type": null, "id": null, "status": null, "role": "developer", "content": "hi"}),
            "msg_",
            json!({"type": "message", "role": "developer",
                "content": [{"type": "input_text", "text": "hi"}]}),
        ),
        (
            json!({"role": "assistant", "content": "hi", "id": ""}),
            "msg_",
            json!({"type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": "hi", "annotations": []}]}),
        ),
        (
            json!({"role": "assistant", "phase": null, "content": [
                {"type": "input_text", "text": "a"}, {"type": "text", "text": "b"},
                {"type": "output_text", "text": "c", "logprobs": null, "annotations": null}]}),
            "msg_",
            json!({"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "a", "annotations": []},
                {"type": "output_text", "text": "b", "annotations": []},
                {"type": "output_text", "text": "c", "annotations": []}]}),
        ),
        (
            json!({"role": "user", "content": [
                {"type": "input_image", "image_url": "HTTPS://a/b", "detail": null}]}),
            "msg_",
            json!({"type": "message", "role": "user", "content": [
                {"type": "input_image", "image_url": "HTTPS://a/b", "detail": "auto"}]}),
        ),
        (
            json!({"type": "function_call", "call_id": "c", "name": "n", "arguments": "",
                "namespace": null}),
            "fc_",
            json!({"type": "function_call", "call_id": "c", "name": "n", "arguments": ""}),
        ),
        (
            json!({"type": "function_call_output", "call_id": "c", "output": "", "is_error": null}),
            "fco_",
            json!({"type": "function_call_output", "call_id": "c", "output": ""}),
        ),
        (
            json!({"type": "function_call_output", "call_id": "c", "output": [
                {"type": "text", "text": "a"}, {"type": "output_text", "text": "b"}]}),
            "fco_",
            json!({"type": "function_call_output", "call_id": "c", "output": [
                {"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}),
        ),
        (
            json!({"type": "reasoning", "content": null, "encrypted_content": null}),
            "rs_",
            json!({"type": "reasoning", "summary": []}),
        ),
        (
            json!({"type": "reasoning", "summary": [], "content": [
                {"type": "text", "text": "t"}]}),
            "rs_",
            json!({"type": "reasoning", "summary": [], "content": [
                {"type": "reasoning_text", "text": "t"}]}),
        ),
        (
            json!({"type": "compaction", "encrypted_content": "z"}),
            "cmp_",
            json!({"type": "compaction", "encrypted_content": "z"}),
        ),
        (
            json!({"type": "custom_tool_call", "call_id": "c", "name": "n", "input": "",
                "namespace": null}),
            "ctc_",
            json!({"type": "custom_tool_call", "call_id": "c", "name": "n", "input": ""}),
        ),
        (
            json!({"type": "custom_tool_call_output", "call_id": "c", "output": [
                {"type": "input_image", "image_url": "data:,"}]}),
            "ctco_",
            json!({"type": "custom_tool_call_output", "call_id": "c", "output": [
                {"type": "input_image", "image_url": "data:,", "detail": "auto"}]}),
        ),
        (
            json!({"type": "mcp_list_tools", "server_label": "a", "tools": []}),
            "mcpl_",
            json!({"type": "mcp_list_tools", "server_label": "a", "tools": [], "error": null}),
        ),
        (
            json!({"type": "mcp_call", "server_label": "a", "name": "n", "arguments": "{}"}),
            "mcp_",
            json!({"type": "mcp_call", "server_label": "a", "name": "n", "arguments": "{}",
                "output": null, "error": null, "approval_request_id": null}),
        ),
        (
            json!({"type": "mcp_approval_response", "approval_request_id": "m", "approve": true,
                "reason": null}),
            "mcpa_",
            json!({"type": "mcp_approval_response", "approval_request_id": "m", "approve": true}),
        ),
        (
            json!({"type": "tool_search_call", "arguments": {}}),
            "tsc_",
            json!({"type": "tool_search_call", "arguments": {}, "call_id": null,
                "execution": "server"}),
        ),
        (
            json!({"type": "tool_search_output", "tools": []}),
            "tso_",
            json!({"type": "tool_search_output", "tools": [], "call_id": null,
                "execution": "server"}),
        ),
        (
            json!({"type": "additional_tools", "tools": []}),
            "at_",
            json!({"type": "additional_tools", "role": "developer", "tools": []}),
        ),
        (
            json!({"type": "configuration_update"}),
            "cfg_",
            json!({"type": "configuration_update"}),
        ),
        (
            json!({"type": "shell_call_output"}),
            "sho_",
            json!({"type": "shell_call_output"}),
        ),
        (
            json!({"type": "haft:clock"}),
            "haft_",
            json!({"type": "haft:clock"}),
        ),
        (
            json!({"type": "acme:ledger"}),
            "acme_",
            json!({"type": "acme:ledger"}),
        ),
    ] {
        let mut kept = kept(&given);
        let members = kept.as_object_mut().unwrap();
        let id = members.shift_remove("id").unwrap();
        let rest = id.as_str().unwrap().strip_prefix(prefix);
        assert_eq!(rest.map(str::len), Some(32), "{given}: {id}");
        assert_eq!(
            members.shift_remove("status"),
            Some(json!("completed")),
            "{given}"
        );
        assert_eq!(kept, expected, "{given}");
    }
}

#[test]
fn items_are_refused_with_the_path_to_what_is_wrong() {
    use ErrorCode::{
        InvalidFunctionParameters, InvalidType, InvalidValue, MissingRequiredParameter,
        StringAboveMaxLength, UnsupportedContent, UnsupportedItemType,
    };
    let long_id = "c".repeat(65);
    let user = |part: Value| json!({"role": "user", "content": [part]});
    let answer = |part: Value| json!({"role": "assistant", "content": [part]});
    for (item, code, param) in [
        (json!("hi"), InvalidType, "input[1]"),
        (json!({}), MissingRequiredParameter, "input[1].type"),
        (
            json!({"id": "x", "content": "y"}),
            MissingRequiredParameter,
            "input[1].type",
        ),
        (json!({"type": 5}), InvalidType, "input[1].type"),
        (
            json!({"type": "telepathy"}),
            UnsupportedItemType,
            "input[1].type",
        ),
        (
            json!({"type": "other:thing"}),
            UnsupportedItemType,
            "input[1].type",
        ),
        (
            json!({"type": "haft:"}),
            UnsupportedItemType,
            "input[1].type",
        ),
        (
            json!({"type": "openai:telepathy"}),
            UnsupportedItemType,
            "input[1].type",
        ),
        (
            json!({"type": "item_reference"}),
            MissingRequiredParameter,
            "input[1].id",
        ),
        (
            json!({"role": "tool", "content": "x"}),
            InvalidValue,
            "input[1].role",
        ),
        (
            json!({"type": "message", "content": "x"}),
            MissingRequiredParameter,
            "input[1].role",
        ),
        (
            json!({"role": "user"}),
            MissingRequiredParameter,
            "input[1].content",
        ),
        (
            json!({"role": "user", "content": 5}),
            InvalidType,
            "input[1].content",
        ),
        (
            json!({"role": "user", "content": "x", "id": 5}),
            InvalidType,
            "input[1].id",
        ),
        (
            json!({"role": "user", "content": "x", "status": "done"}),
            InvalidValue,
            "input[1].status",
        ),
        (
            json!({"role": "assistant", "content": "x", "phase": "later"}),
            InvalidValue,
            "input[1].phase",
        ),
        (
            json!({"role": "user", "content": "x".repeat(10_485_761)}),
            StringAboveMaxLength,
            "input[1].content",
        ),
        (user(json!("x")), InvalidType, "input[1].content[0]"),
        (
            user(json!({})),
            MissingRequiredParameter,
            "input[1].content[0].type",
        ),
        (
            user(json!({"type": "input_audio"})),
            UnsupportedContent,
            "input[1].content[0].type",
        ),
        (
            user(json!({"type": "output_text", "text": "x"})),
            UnsupportedContent,
            "input[1].content[0].type",
        ),
        (
            answer(json!({"type": "input_image", "image_url": "data:,"})),
            UnsupportedContent,
            "input[1].content[0].type",
        ),
        (
            user(json!({"type": "input_text"})),
            MissingRequiredParameter,
            "input[1].content[0].text",
        ),
        (
            user(json!({"type": "input_text", "text": 5})),
            InvalidType,
            "input[1].content[0].text",
        ),
        (
            user(json!({"type": "input_text", "text": "x".repeat(10_485_761)})),
            StringAboveMaxLength,
            "input[1].content[0].text",
        ),
        (
            user(json!({"type": "input_image"})),
            MissingRequiredParameter,
            "input[1].content[0].image_url",
        ),
        (
            user(json!({"type": "input_image", "image_url": {"url": "x"}})),
            InvalidType,
            "input[1].content[0].image_url",
        ),
        (
            user(json!({"type": "input_image", "image_url": "file:///etc/passwd"})),
            InvalidValue,
            "input[1].content[0].image_url",
        ),
        (
            user(json!({"type": "input_image", "image_url": "x".repeat(20_971_521)})),
            StringAboveMaxLength,
            "input[1].content[0].image_url",
        ),
        (
            user(json!({"type": "input_image", "image_url": "data:,", "detail": "more"})),
            InvalidValue,
            "input[1].content[0].detail",
        ),
        (
            user(json!({"type": "input_image", "file_id": "f"})),
            UnsupportedContent,
            "input[1].content[0].file_id",
        ),
        (
            user(json!({"type": "input_file", "file_id": "f"})),
            UnsupportedContent,
            "input[1].content[0].file_id",
        ),
        (
            user(json!({"type": "input_file"})),
            MissingRequiredParameter,
            "input[1].content[0].file_data",
        ),
        (
            user(json!({"type": "input_file", "file_data": "x".repeat(33_554_433)})),
            StringAboveMaxLength,
            "input[1].content[0].file_data",
        ),
        (
            user(json!({"type": "input_video"})),
            MissingRequiredParameter,
            "input[1].content[0].video_url",
        ),
        (
            answer(json!({"type": "output_text", "text": "x", "annotations": {}})),
            InvalidType,
            "input[1].content[0].annotations",
        ),
        (
            answer(json!({"type": "output_text", "text": "x", "logprobs": "x"})),
            InvalidType,
            "input[1].content[0].logprobs",
        ),
        (
            answer(json!({"type": "refusal"})),
            MissingRequiredParameter,
            "input[1].content[0].refusal",
        ),
        (
            json!({"type": "function_call", "name": "n", "arguments": "{}"}),
            MissingRequiredParameter,
            "input[1].call_id",
        ),
        (
            json!({"type": "function_call", "call_id": "", "name": "n", "arguments": "{}"}),
            InvalidValue,
            "input[1].call_id",
        ),
        (
            json!({"type": "function_call", "call_id": long_id, "name": "n", "arguments": "{}"}),
            StringAboveMaxLength,
            "input[1].call_id",
        ),
        (
            json!({"type": "function_call", "call_id": "c", "name": "a b", "arguments": "{}"}),
            InvalidValue,
            "input[1].name",
        ),
        (
            json!({"type": "function_call", "call_id": "c", "name": long_id, "arguments": "{}"}),
            StringAboveMaxLength,
            "input[1].name",
        ),
        (
            json!({"type": "function_call", "call_id": "c", "name": "n", "arguments": {}}),
            InvalidType,
            "input[1].arguments",
        ),
        (
            json!({"type": "function_call", "call_id": "c", "name": "n", "arguments": "",
            "namespace": 1}),
            InvalidType,
            "input[1].namespace",
        ),
        (
            json!({"type": "function_call_output", "call_id": "c"}),
            MissingRequiredParameter,
            "input[1].output",
        ),
        (
            json!({"type": "function_call_output", "call_id": "c", "output": {}}),
            InvalidType,
            "input[1].output",
        ),
        (
            json!({"type": "function_call_output", "call_id": "c", "output": "x".repeat(10_485_761)}),
            StringAboveMaxLength,
            "input[1].output",
        ),
        (
            json!({"type": "function_call_output", "call_id": "c", "output": [{"type": "x"}]}),
            UnsupportedContent,
            "input[1].output[0].type",
        ),
        (
            json!({"type": "function_call_output", "call_id": "c", "output": "", "is_error": 1}),
            InvalidType,
            "input[1].is_error",
        ),
        (
            json!({"type": "reasoning", "summary": "x"}),
            InvalidType,
            "input[1].summary",
        ),
        (
            json!({"type": "reasoning", "summary": [{"type": "image"}]}),
            UnsupportedContent,
            "input[1].summary[0].type",
        ),
        (
            json!({"type": "reasoning", "content": [{"type": "reasoning_text"}]}),
            MissingRequiredParameter,
            "input[1].content[0].text",
        ),
        (
            json!({"type": "reasoning", "encrypted_content": 5}),
            InvalidType,
            "input[1].encrypted_content",
        ),
        (
            json!({"type": "compaction"}),
            MissingRequiredParameter,
            "input[1].encrypted_content",
        ),
        (
            json!({"type": "compaction", "encrypted_content": "x".repeat(10_485_761)}),
            StringAboveMaxLength,
            "input[1].encrypted_content",
        ),
        (
            json!({"type": "custom_tool_call", "call_id": "c", "name": "n"}),
            MissingRequiredParameter,
            "input[1].input",
        ),
        (
            json!({"type": "custom_tool_call_output", "call_id": long_id, "output": ""}),
            StringAboveMaxLength,
            "input[1].call_id",
        ),
        (
            json!({"type": "mcp_list_tools", "tools": []}),
            MissingRequiredParameter,
            "input[1].server_label",
        ),
        (
            json!({"type": "mcp_list_tools", "server_label": "a", "tools": {}}),
            InvalidType,
            "input[1].tools",
        ),
        (
            json!({"type": "mcp_call", "server_label": "a", "name": "n", "arguments": {}}),
            InvalidType,
            "input[1].arguments",
        ),
        (
            json!({"type": "mcp_call", "server_label": "a", "name": "n", "arguments": "",
            "status": "done"}),
            InvalidValue,
            "input[1].status",
        ),
        (
            json!({"type": "mcp_approval_request", "server_label": "a", "name": "n"}),
            MissingRequiredParameter,
            "input[1].arguments",
        ),
        (
            json!({"type": "mcp_approval_response", "approve": true}),
            MissingRequiredParameter,
            "input[1].approval_request_id",
        ),
        (
            json!({"type": "mcp_approval_response", "approval_request_id": "m", "approve": "yes"}),
            InvalidType,
            "input[1].approve",
        ),
        (
            json!({"type": "tool_search_call", "arguments": "{}"}),
            InvalidType,
            "input[1].arguments",
        ),
        (
            json!({"type": "tool_search_call", "arguments": {}, "execution": "nobody"}),
            InvalidValue,
            "input[1].execution",
        ),
        (
            json!({"type": "tool_search_output"}),
            MissingRequiredParameter,
            "input[1].tools",
        ),
        (
            json!({"type": "tool_search_output", "tools": [{"type": "function", "name": "n",
            "parameters": 5}]}),
            InvalidFunctionParameters,
            "input[1].tools[0].parameters",
        ),
        (
            json!({"type": "additional_tools", "role": "user", "tools": []}),
            InvalidValue,
            "input[1].role",
        ),
        (
            json!({"type": "configuration_update", "text": "x"}),
            InvalidType,
            "input[1].text",
        ),
        (
            json!({"type": "haft:clock", "status": "late"}),
            InvalidValue,
            "input[1].status",
        ),
        (
            json!({"type": "web_search_call", "status": 5}),
            InvalidType,
            "input[1].status",
        ),
    ] {
        refused(&item, code, param);
    }
}

#[test]
fn a_stored_item_can_be_named_by_its_id() {
    for item in [
        json!({"id": "msg_1"}),
        json!({"id": "msg_1", "type": null}),
        json!({"id": "msg_1", "type": "item_reference"}),
    ] {
        let expected = InputItem::Reference {
            id: String::from("msg_1"),
            param: String::from("input[0]"),
        };
        assert_eq!(read(&json!([item])).unwrap(), [expected]);
    }
}

#[test]
fn compaction_can_be_asked_for_at_the_end_only() {
    let message = json!({"role": "user", "content": "x"});
    let trigger = json!({"type": "compaction_trigger"});
    let items = read(&json!([message, trigger])).unwrap();
    assert_eq!(items[1], InputItem::CompactionTrigger);
    let error = read(&json!([trigger, message])).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidValue);
    assert_eq!(error.param.as_deref(), Some("input[0]"));
}

#[test]
fn an_item_that_comes_twice_gets_an_id_of_its_own() {
    let item = json!({"type": "message", "id": "msg_1", "role": "user", "content": "x"});
    let items = read(&json!([item, item])).unwrap();
    let [InputItem::Item(first), InputItem::Item(second)] = &items[..] else {
        panic!("two items");
    };
    assert_eq!(first.id, "msg_1");
    assert_ne!(second.id, "msg_1");
    assert!(second.id.starts_with("msg_"));
    assert_eq!(
        serde_json::to_value(&second.item).unwrap()["id"],
        *second.id
    );
}

#[test]
fn each_item_knows_where_it_stood() {
    let items = read(&json!([
        {"role": "user", "content": "x"},
        {"type": "reasoning", "summary": []},
    ]))
    .unwrap();
    let InputItem::Item(record) = &items[1] else {
        panic!("an item");
    };
    assert_eq!(record.param, "input[1]");
}

#[test]
fn loaded_tools_come_with_their_secrets_and_are_kept_without() {
    let record = record(&json!({"type": "additional_tools", "tools": [
        {"type": "function", "name": "a", "defer_loading": true},
        {"type": "mcp", "server_label": "air", "authorization": "hush", "headers": {"X": "hush"},
         "server_url": "https://user:hush@air.example:8443/mcp?key=hush"},
    ]}));
    let json = serde_json::to_string(&record.item).unwrap();
    assert!(!json.contains("hush"), "{json}");
    assert!(json.contains("https://air.example:8443/mcp\""), "{json}");
    assert!(!format!("{record:?}").contains("hush"));
    let [function, server] = &record.tools[..] else {
        panic!("two tools");
    };
    assert_eq!(function.param, "input[0].tools[0]");
    assert_eq!(function.deferred_at(), None);
    let crate::wire::request::RequestToolKind::Mcp(config) = &server.kind else {
        panic!("an MCP server");
    };
    assert_eq!(config["authorization"], "hush");
}
