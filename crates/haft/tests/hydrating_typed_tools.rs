//! `T::hydrate`: one typed tool, without a catalogue.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use haft::{Hydrate, ToolContext};

mod a {
    /// Say who answers.
    #[haft::tool]
    pub(crate) fn who() -> &'static str {
        "a"
    }
}

mod b {
    /// Say who answers.
    #[haft::tool]
    pub(crate) fn who() -> &'static str {
        "b"
    }
}

/// Count.
#[haft::tool]
fn count(
    /// How many
    n: i64,
    /// Large ones
    large: Option<u64>,
) -> String {
    format!("{n} {large:?}")
}

async fn answer<T: Hydrate>(arguments: &str) -> String {
    let call = T::hydrate(arguments).tool.unwrap();
    call.run(&ToolContext::default())
        .await
        .unwrap()
        .text_for_model()
}

#[tokio::test]
async fn two_tools_of_equal_definition_stay_two_tools() {
    assert_eq!(answer::<a::who>("{}").await, "a");
    assert_eq!(answer::<b::who>("{}").await, "b");
    assert_eq!(answer::<a::who>("{}").await, "a");
}

#[tokio::test]
async fn integral_numbers_instantiate_to_integers() {
    for (written, read) in [
        (r#"{"n": 5.0}"#, "5 None"),
        (r#"{"n": -3e2}"#, "-300 None"),
        (r#"{"n": 1e18}"#, "1000000000000000000 None"),
        (
            r#"{"n": 1, "large": 1.5e19}"#,
            "1 Some(15000000000000000000)",
        ),
        (r#"{"n": 1, "large": null}"#, "1 None"),
    ] {
        assert_eq!(answer::<count>(written).await, read, "{written}");
    }
}

#[test]
fn arguments_are_checked_before_anything_is_made_of_them() {
    let result = count::hydrate(r#"{"n": 2.5}"#);
    assert!(result.tool.is_none());
    assert_eq!(
        result.text_for_model().unwrap(),
        "Tool 'count': invalid arguments: 'n' must be integer, got number"
    );
}
