//! Items as clients send them, and as they are kept.

use serde_json::{Value, json};

use super::refusals::{check_refused, rows};
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
#[allow(clippy::too_many_lines, reason = "a table")]
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
            json!({"type": "shell_call_output", "haft_wire_id": ""}),
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
    for (item, code, param) in rows(include_str!("refusals/items.txt")) {
        let input = json!([{"role": "user", "content": "x"}, item]);
        check_refused(read(&input), &item, code, param);
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
    let crate::wire::request::RequestToolKind::Mcp(entry) = &server.kind else {
        panic!("an MCP server");
    };
    let bearer = entry.address.as_ref().unwrap().bearer.as_ref();
    assert_eq!(bearer.unwrap().expose(), "hush");
}
