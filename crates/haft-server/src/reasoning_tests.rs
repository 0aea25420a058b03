use haft_core::Owner;
use serde_json::json;

use super::*;

fn seal(keys: &SealingKeys, owner: &str) -> ReasoningSeal {
    ReasoningSeal::new(keys, &Owner::new(owner))
}

fn members(json: Value) -> Map<String, Value> {
    match json {
        Value::Object(members) => members,
        other => panic!("{other}"),
    }
}

fn sealed_item(text: &str) -> Item {
    let item = json!({"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": text});
    serde_json::from_value(item).unwrap()
}

#[test]
fn what_is_sealed_comes_back_whole() {
    let keys = SealingKeys::ephemeral().unwrap();
    let stored = members(
        json!({"type": "reasoning", "id": "rs_1", "status": "completed",
        "summary": [{"type": "summary_text", "text": "raw"}, {"type": "summary_text", "text": "short"}],
        "encrypted_content": "anthropic:sig", "wire_field": "reasoning",
        "haft_raw_summary": true, "haft_unseen": {"before": []}}),
    );
    let sealed = seal(&keys, "a").seal(&stored).unwrap();
    let mut item = sealed_item(&sealed);
    seal(&keys, "a").restore(&mut item, "input[0]").unwrap();
    let expected = json!({"type": "reasoning", "id": "rs_2",
        "summary": [{"type": "summary_text", "text": "short"}],
        "content": [{"type": "reasoning_text", "text": "raw"}],
        "encrypted_content": "anthropic:sig", "wire_field": "reasoning"});
    assert_eq!(serde_json::to_value(&item).unwrap(), expected);
}

#[test]
fn the_same_item_is_sealed_to_the_same_text() {
    let keys = SealingKeys::ephemeral().unwrap();
    let item = |text: &str| {
        members(json!({"type": "reasoning", "summary": [],
            "content": [{"type": "reasoning_text", "text": text}]}))
    };
    let first = seal(&keys, "a").seal(&item("hm"));
    assert!(first.is_some());
    assert_eq!(seal(&keys, "a").seal(&item("hm")), first);
    assert_ne!(seal(&keys, "a").seal(&item("ho")), first);
    assert_ne!(seal(&keys, "b").seal(&item("hm")), first);
}

#[test]
fn nothing_is_sealed_that_a_provider_encrypted_or_that_is_empty() {
    let keys = SealingKeys::ephemeral().unwrap();
    for stored in [
        json!({"type": "reasoning", "summary": [], "encrypted_content": "gAAAA",
            "content": [{"type": "reasoning_text", "text": "hm"}]}),
        json!({"type": "reasoning", "summary": []}),
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "short"}]}),
    ] {
        assert_eq!(seal(&keys, "a").seal(&members(stored)), None);
    }
}

#[test]
fn a_text_of_another_owner_or_another_kind_is_refused() {
    let keys = SealingKeys::ephemeral().unwrap();
    let stored = members(json!({"type": "reasoning", "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}]}));
    let sealed = seal(&keys, "a").seal(&stored).unwrap();
    let error = seal(&keys, "b").restore(&mut sealed_item(&sealed), "input[4]");
    let error = error.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidEncryptedContent);
    assert_eq!(error.param.as_deref(), Some("input[4].encrypted_content"));
    // What was sealed as something else.
    let other = keys.seal("a", br#"{"v":1,"summary":"x"}"#).unwrap();
    let refused = seal(&keys, "a").restore(&mut sealed_item(&other), "input[0]");
    assert!(refused.is_err());
}

#[test]
fn what_another_server_behind_this_one_sealed_is_carried_inside() {
    let upstream = SealingKeys::ephemeral().unwrap();
    let own = SealingKeys::ephemeral().unwrap();
    let theirs = upstream.seal("them", b"theirs").unwrap();
    let stored = members(json!({"type": "reasoning", "summary": [], "encrypted_content": theirs}));
    let sealed = seal(&own, "a").seal(&stored).unwrap();
    assert_ne!(sealed, theirs);
    let mut item = sealed_item(&sealed);
    seal(&own, "a").restore(&mut item, "input[0]").unwrap();
    let Item::Reasoning(reasoning) = &item else {
        panic!("{item:?}");
    };
    assert_eq!(
        reasoning.encrypted_content.as_deref(),
        Some(theirs.as_str())
    );
    // Stored, it belongs to the backend and is no error.
    seal(&own, "a").restore_stored(&mut item);
    // What the client sent is presented as it was sent.
    let listed = members(json!({"type": "reasoning", "summary": [], "encrypted_content": sealed}));
    assert_eq!(seal(&own, "a").seal(&listed), None);
}
