//! What a preview shows beyond that.

use haft_core::FinishReason;
use haft_hydrate::text::{Root, TextPolicy, repair_text, replay};
use serde_json::{Value, json};

#[test]
fn a_preview_shows_what_is_there() {
    let shown = |input: &str| -> Value {
        let policy = TextPolicy::Preview;
        let repaired = repair_text(input, FinishReason::Unknown, policy, Root::Object).unwrap();
        assert_eq!(
            replay(input, &repaired.events).as_deref(),
            Some(&*repaired.text)
        );
        serde_json::from_str(&repaired.text).expect(&repaired.text)
    };
    assert_eq!(shown("{\"a\": \"hel"), json!({"a": "hel"}));
    assert_eq!(shown("{\"a\": [1, 2"), json!({"a": [1, 2]}));
    assert_eq!(
        shown("{\"a\": hello, \"b\":"),
        json!({"a": "hello", "b": null})
    );
    assert_eq!(shown("{\"a\": [1, ...], \"b"), json!({"a": [1], "b": null}));
    assert_eq!(shown("{\"a\": [\"+\"+"), json!({"a": ["", "+\"+"]}));
}
