//! Bodies about conversations.

use serde_json::{Value, json};

use super::refusals::check_refused;
use super::*;
use crate::wire::request::InputItem;

#[test]
fn a_conversation_can_begin_empty() {
    let empty = ConversationBody::read(json!({}), &Vocabulary::default()).unwrap();
    assert_eq!(empty.items, []);
    assert_eq!(empty.metadata, None);
}

#[test]
fn a_conversation_can_begin_with_items() {
    let message = json!({"role": "user", "content": "hi"});
    let body = json!({"items": vec![message; 20], "metadata": {"k": "v"}});
    let conversation = ConversationBody::read(body.clone(), &Vocabulary::default()).unwrap();
    assert_eq!(conversation.items.len(), 20);
    assert_eq!(conversation.metadata.unwrap()["k"], "v");
    let InputItem::Item(record) = &conversation.items[3] else {
        panic!("an item");
    };
    assert_eq!(record.param, "items[3]");
    assert_eq!(
        ItemsBody::read(body, &Vocabulary::default())
            .unwrap()
            .items
            .len(),
        20
    );
}

#[test]
fn bodies_about_conversations_are_refused_with_the_path_to_what_is_wrong() {
    let words = Vocabulary::default();
    let message = json!({"role": "user", "content": "hi"});
    for (body, code, param) in [
        (json!({"items": 5}), "invalid_type", "items"),
        (
            json!({"items": vec![message; 21]}),
            "invalid_value",
            "items",
        ),
        (
            json!({"items": [{"type": "x"}]}),
            "unsupported_item_type",
            "items[0].type",
        ),
        (
            json!({"items": [{"type": "compaction_trigger"}]}),
            "unsupported_item_type",
            "items[0].type",
        ),
    ] {
        check_refused(
            ConversationBody::read(body.clone(), &words),
            &body,
            code,
            param,
        );
        check_refused(ItemsBody::read(body.clone(), &words), &body, code, param);
    }
    let body = json!({"metadata": {"k": 1}});
    check_refused(
        ConversationBody::read(body.clone(), &words),
        &body,
        "invalid_type",
        "metadata.k",
    );
    for body in [
        json!({}),
        json!({"items": []}),
        json!({"items": Value::Null}),
    ] {
        let read = ItemsBody::read(body.clone(), &words);
        check_refused(read, &body, "missing_required_parameter", "items");
    }
}
