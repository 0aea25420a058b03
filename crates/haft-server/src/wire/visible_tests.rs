use haft_core::StoredItem;
use serde_json::{Value, json};

use super::*;

const NOTHING: Include = Include {
    provider: 0,
    encrypted_reasoning: false,
    logprobs: false,
};
const ALL: Include = Include {
    provider: 0,
    encrypted_reasoning: true,
    logprobs: true,
};

fn stored(json: &Value) -> StoredItem {
    StoredItem {
        id: String::from("x_1"),
        json: to_raw_value(json).unwrap(),
    }
}

fn view(include: Include) -> View {
    View {
        include,
        ..View::default()
    }
}

fn seen(json: &Value, include: Include) -> Value {
    serde_json::from_str(visible_item(&stored(json), &view(include)).get()).unwrap()
}

#[test]
fn an_item_that_may_be_seen_as_it_is_keeps_its_bytes() {
    for json in [
        json!({"type": "function_call", "id": "fc_1", "status": "completed", "arguments": " { }"}),
        json!({"type": "message", "id": "msg_1", "status": "completed", "role": "user",
            "content": [{"type": "input_text", "text": "hi"}]}),
        json!({"type": "mcp_call", "id": "mcp_1", "status": "failed", "output": null}),
        json!({"type": "reasoning", "id": "rs_1", "status": "completed", "summary": []}),
    ] {
        let item = stored(&json);
        assert!(
            matches!(visible_item(&item, &view(NOTHING)), Cow::Borrowed(_)),
            "{json}"
        );
    }
}

#[test]
fn sealed_thoughts_are_seen_only_if_they_are_asked_for() {
    let json = json!({"type": "reasoning", "id": "rs_1", "status": "completed", "summary": [],
        "content": [], "encrypted_content": "zzz"});
    assert_eq!(
        seen(&json, NOTHING),
        json!({"type": "reasoning", "id": "rs_1", "status": "completed", "summary": []})
    );
    assert_eq!(
        seen(&json, ALL),
        json!({"type": "reasoning", "id": "rs_1", "status": "completed", "summary": [],
            "encrypted_content": "zzz"})
    );
}

#[test]
fn thoughts_that_were_given_are_seen() {
    let json = json!({"type": "reasoning", "id": "rs_1", "status": "completed", "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}], "encrypted_content": "zzz"});
    assert_eq!(seen(&json, NOTHING)["content"][0]["text"], "hm");
}

#[test]
fn a_compaction_keeps_its_sealed_content() {
    let json = json!({"type": "compaction", "id": "cmp_1", "status": "completed",
        "encrypted_content": "zzz"});
    assert_eq!(seen(&json, NOTHING), json);
}

#[test]
fn a_text_of_the_model_always_has_its_lists() {
    let json = json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": "a", "logprobs": [{"token": "a"}]},
                    {"type": "refusal", "refusal": "no"}]});
    assert_eq!(
        seen(&json, NOTHING)["content"],
        json!([{"type": "output_text", "text": "a", "logprobs": [], "annotations": []},
            {"type": "refusal", "refusal": "no"}])
    );
    assert_eq!(
        seen(&json, ALL)["content"][0]["logprobs"],
        json!([{"token": "a"}])
    );
}

#[test]
fn every_item_has_id_type_and_status() {
    for json in [
        json!({"role": "user", "content": []}),
        json!({"type": "haft:clock"}),
        json!({"type": "function_call", "id": null, "status": null}),
    ] {
        let seen = seen(&json, NOTHING);
        assert_eq!(seen["id"], "x_1", "{json}");
        assert_eq!(seen["status"], "completed", "{json}");
        assert!(seen["type"].is_string(), "{json}");
    }
}

#[test]
fn what_is_left_out_is_never_null() {
    for (json, key) in [
        (
            json!({"type": "message", "id": "m", "status": "completed", "phase": null}),
            "phase",
        ),
        (
            json!({"type": "function_call", "id": "f", "status": "completed", "namespace": null}),
            "namespace",
        ),
        (
            json!({"type": "reasoning", "id": "r", "status": "completed", "content": null}),
            "content",
        ),
        (
            json!({"type": "reasoning", "id": "r", "status": "completed",
            "encrypted_content": null}),
            "encrypted_content",
        ),
    ] {
        assert!(seen(&json, ALL).get(key).is_none(), "{json}");
    }
}

#[test]
fn the_id_that_an_item_says_is_its_id() {
    let json = json!({"type": "message", "id": "msg_9", "role": "assistant",
        "content": [{"type": "output_text", "text": ""}]});
    assert_eq!(seen(&json, NOTHING)["id"], "msg_9");
}
