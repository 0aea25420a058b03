//! An answer in a demanded form is valid, or the run says that it is not.

use haft_core::{Capabilities, Item, ToolChoice};
use haft_engine::{End, FailedReason, Run};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::script::{Script, calls, says};
use crate::tools::echo;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Weather {
    city: String,
    degrees: i32,
}

const GOOD: &str = r#"{"city":"Oslo","degrees":4}"#;

#[tokio::test]
async fn tools_run_first_and_then_the_answer_is_read() {
    let model = Script::new([calls([("a", "echo", "{}")]), says(GOOD)]);
    let outcome = Run::new(model)
        .tools([echo()])
        .answer_as::<Weather>()
        .user("go")
        .await
        .unwrap();
    let expected = Weather {
        city: "Oslo".into(),
        degrees: 4,
    };
    assert_eq!(outcome.output_as::<Weather>(), Some(expected));
    assert!(outcome.is_completed());
}

/// R35
#[tokio::test]
async fn a_wrong_answer_is_asked_for_again_with_what_is_wrong() {
    let model = Script::new([says(r#"{"city":"Oslo"}"#), says("cold"), says(GOOD)]);
    let outcome = Run::new(model.clone())
        .answer_as::<Weather>()
        .user("go")
        .await
        .unwrap();
    assert!(outcome.is_completed());
    let complaint = model.received()[1].conversation.items().last().cloned();
    let complaint = complaint.map(|item| item.text()).unwrap();
    assert!(complaint.contains("missing field 'degrees'"), "{complaint}");
}

/// R35
#[tokio::test]
async fn after_three_wrong_answers_the_run_fails_and_keeps_the_text() {
    let model = Script::new([says("no"), says("no"), says("cold")]);
    let outcome = Run::new(model.clone())
        .answer_as::<Weather>()
        .user("go")
        .await
        .unwrap();
    let End::Failed { reason, .. } = &outcome.end else {
        panic!("{:?}", outcome.end)
    };
    assert_eq!(*reason, FailedReason::OutputInvalid);
    assert_eq!(outcome.text, "cold");
    assert_eq!(outcome.output, None);
    assert_eq!(model.left(), 0);
}

#[tokio::test]
async fn a_model_without_structured_output_is_told_the_schema_in_words() {
    let model = Script::new([says(GOOD)]);
    let _ = Run::new(model.clone())
        .instructions("Be brief.")
        .answer_as::<Weather>()
        .user("go")
        .await
        .unwrap();
    let request = &model.received()[0];
    let told = request.instructions.as_deref().unwrap();
    assert!(
        told.starts_with("Be brief.\n\n") && told.contains("\"degrees\""),
        "{told}"
    );
    assert!(request.output_format.is_none());
}

#[tokio::test]
async fn a_model_with_structured_output_gets_the_schema() {
    let capabilities = Capabilities {
        structured_output: true,
        ..Capabilities::default()
    };
    let model = Script::with_capabilities([says(GOOD)], capabilities);
    let _ = Run::new(model.clone())
        .answer_as::<Weather>()
        .user("go")
        .await
        .unwrap();
    let request = &model.received()[0];
    assert!(request.instructions.is_none());
    let schema = &request.output_format.as_ref().unwrap().schema;
    assert_eq!(schema["required"][0], "city");
}

#[tokio::test]
async fn a_form_that_keeps_the_model_from_calling_is_not_demanded_beside_tools() {
    for together in [true, false] {
        let capabilities = Capabilities {
            structured_output: true,
            structured_output_with_tools: together,
            ..Capabilities::default()
        };
        let model = Script::with_capabilities([says(GOOD)], capabilities);
        let run = Run::new(model.clone()).tools([echo()]);
        let outcome = run.answer_as::<Weather>().user("go").await.unwrap();
        assert!(outcome.is_completed());
        let request = &model.received()[0];
        assert_eq!(request.output_format.is_some(), together);
        assert_eq!(request.instructions.is_none(), together);
    }
}

#[tokio::test]
async fn answers_are_not_repaired() {
    let almost = r#"{"city":"Oslo","degrees":4,}"#;
    let model = Script::new([says(almost), says(almost), says(almost)]);
    let outcome = Run::new(model)
        .repair()
        .answer_as::<Weather>()
        .user("go")
        .await
        .unwrap();
    assert_eq!(outcome.output, None);
}

#[tokio::test]
async fn a_schema_without_type_may_be_given() {
    let schema = serde_json::json!({"type": "array", "items": {"type": "integer"}});
    let outcome = Run::new(Script::new([says("[1,2]")]))
        .answer_schema("numbers", schema)
        .input([Item::user("go")])
        .await
        .unwrap();
    assert_eq!(outcome.output, Some(serde_json::json!([1, 2])));
}

#[tokio::test]
async fn a_schema_that_would_keep_the_model_from_calling_tools_goes_into_words() {
    let capabilities = Capabilities {
        structured_output: true,
        ..Capabilities::default()
    };
    let model = Script::with_capabilities([calls([("a", "echo", "{}")]), says(GOOD)], capabilities);
    let outcome = Run::new(model.clone())
        .tools([echo()])
        .answer_as::<Weather>()
        .user("go")
        .await
        .unwrap();
    assert!(outcome.output.is_some());
    for request in model.received() {
        assert!(request.output_format.is_none());
        assert!(request.instructions.unwrap().contains("JSON schema"));
    }
}

#[tokio::test]
async fn second_try_offers_no_tools_and_demands_the_schema() {
    let capabilities = Capabilities {
        structured_output: true,
        ..Capabilities::default()
    };
    let script = [says("cold"), calls([("a", "echo", "{}")]), says(GOOD)];
    let model = Script::with_capabilities(script, capabilities);
    let run = Run::new(model.clone()).tools([echo()]);
    let outcome = run.answer_as::<Weather>().user("go").await.unwrap();
    assert!(outcome.is_completed(), "{:?}", outcome.end);
    assert!(
        outcome.tool_calls.is_empty(),
        "a call in place of the answer is not made"
    );
    let received = model.received();
    let choices = received.iter().map(|request| request.tool_choice.clone());
    assert!(
        choices
            .skip(1)
            .all(|choice| choice == Some(ToolChoice::None))
    );
    let native = received
        .iter()
        .map(|request| request.output_format.is_some());
    assert_eq!(native.collect::<Vec<_>>(), [false, true, true]);
    assert!(
        received
            .iter()
            .all(|it| it.instructions == received[0].instructions)
    );
}

#[tokio::test]
async fn fenced_answer_is_read_and_kept_without_its_fence() {
    let model = Script::new([says(&format!("```json\n{GOOD}\n```"))]);
    let run = Run::new(model).answer_as::<Weather>();
    let outcome = run.user("go").await.unwrap();
    assert!(outcome.output.is_some());
    assert_eq!(outcome.text, GOOD);
    let said = outcome.session.items().last().map(Item::text);
    assert_eq!(said.as_deref(), Some(GOOD));
}
