//! The loop itself: ask, execute, tell, ask again.

use haft_core::{Item, ToolOutput, Usage};
use haft_engine::{CallStatus, End, Run, RunError};
use serde_json::json;

use crate::script::{Script, calls, says, says_for};
use crate::tools::{echo, tool};
use crate::{outputs, texts};

#[tokio::test]
async fn an_answer_without_calls_is_the_end() {
    let model = Script::new([says("hello")]);
    let outcome = Run::new(model.clone()).user("hi").await.unwrap();
    assert!(matches!(outcome.end, End::Completed));
    assert_eq!((outcome.text.as_str(), outcome.rounds), ("hello", 0));
    assert_eq!(outcome.items, [Item::assistant("hello")]);
    assert_eq!(model.received().len(), 1);
}

/// R18
#[tokio::test]
async fn results_go_back_to_the_model_with_the_ids_of_their_calls() {
    let model = Script::new([
        calls([
            ("a", "echo", r#"{"text":"one"}"#),
            ("b", "echo", r#"{"text":"two"}"#),
        ]),
        says("done"),
    ]);
    let outcome = Run::new(model.clone())
        .tools([echo()])
        .user("go")
        .await
        .unwrap();
    let second = &model.received()[1].conversation;
    let expected = [
        Item::user("go"),
        Item::function_call("a", "echo", r#"{"text":"one"}"#),
        Item::function_call("b", "echo", r#"{"text":"two"}"#),
        Item::function_call_output("a", "one"),
        Item::function_call_output("b", "two"),
    ];
    assert_eq!(second.items().cloned().collect::<Vec<_>>(), expected);
    assert_eq!((outcome.rounds, outcome.text.as_str()), (1, "done"));
    assert!(outcome.session.conversation().verify().is_ok());
}

#[tokio::test]
async fn text_beside_calls_is_kept_in_order() {
    let mut response = crate::script::calling([("a", "echo", r#"{"text":"x"}"#)]);
    response.items.insert(0, Item::assistant("Let me see."));
    let model = Script::new([crate::script::Reply::Answer(response), says("done")]);
    let outcome = Run::new(model).tools([echo()]).user("go").await.unwrap();
    assert_eq!(outcome.items[0], Item::assistant("Let me see."));
    assert_eq!(outcome.items[1].kind(), "function_call");
}

/// R26
#[tokio::test]
async fn the_usage_of_a_run_is_the_sum_of_all_its_requests() {
    let model = Script::new([
        crate::script::Reply::Answer(
            crate::script::calling([("a", "echo", "{}")]).with_usage(10, 5),
        ),
        says_for("done", 20, 7),
    ]);
    let outcome = Run::new(model).tools([echo()]).user("go").await.unwrap();
    let expected = Usage {
        input_tokens: 30,
        output_tokens: 12,
        requests: 2,
        ..Usage::default()
    };
    assert_eq!(outcome.usage, expected);
}

/// R25
#[tokio::test]
async fn a_stream_without_usage_ends_normally() {
    let outcome = Run::new(Script::new([says("x")])).user("hi").await.unwrap();
    assert!(outcome.is_completed());
    assert_eq!(outcome.usage.total_tokens(), 0);
    assert_eq!(outcome.usage.requests, 1);
}

/// R34
#[tokio::test]
async fn every_call_of_a_run_is_listed_refused_and_failed_ones_too() {
    let failing = tool("fail", |_| Ok(ToolOutput::failure("no luck")));
    let model = Script::new([
        calls([
            ("a", "echo", r#"{"text":"x"}"#),
            ("b", "nothing", "{}"),
            ("c", "echo", r#"{"text":5}"#),
            ("d", "fail", "{}"),
        ]),
        calls([("e", "echo", "not json")]),
        says("done"),
    ]);
    let outcome = Run::new(model)
        .tools([echo(), failing])
        .user("go")
        .await
        .unwrap();
    let listed: Vec<_> = outcome
        .tool_calls
        .iter()
        .map(|call| (call.call_id.as_str(), call.status, call.round))
        .collect();
    assert_eq!(
        listed,
        [
            ("a", CallStatus::Succeeded, 1),
            ("b", CallStatus::Unknown, 1),
            ("c", CallStatus::Refused, 1),
            ("d", CallStatus::Failed, 1),
            ("e", CallStatus::Refused, 2),
        ]
    );
    assert_eq!(
        outcome.tool_calls[0].provenance.validated,
        Some(json!({"text": "x"}))
    );
    assert_eq!(outputs(&outcome.items).len(), 5);
}

/// R11
#[tokio::test]
async fn message_and_value_of_a_result_both_reach_the_model() {
    let both = tool("both", |_| {
        Ok(ToolOutput::value(json!({"n": 1})).with_message("Found:"))
    });
    let model = Script::new([calls([("a", "both", "{}")]), says("done")]);
    let outcome = Run::new(model).tools([both]).user("go").await.unwrap();
    assert_eq!(texts(&outcome), ["Found:\n\n{\"n\":1}"]);
    assert_eq!(outcome.tool_calls[0].value, Some(json!({"n": 1})));
}

#[tokio::test]
async fn missing_empty_and_repeated_call_ids_are_replaced() {
    let long = "x".repeat(65);
    let model = Script::new([
        calls([
            ("", "echo", "{}"),
            ("same", "echo", "{}"),
            ("same", "echo", "{}"),
        ]),
        calls([("same", "echo", "{}"), (&long, "echo", "{}")]),
        says("done"),
    ]);
    let outcome = Run::new(model).tools([echo()]).user("go").await.unwrap();
    let mut ids: Vec<_> = outcome
        .tool_calls
        .iter()
        .map(|call| &call.call_id)
        .collect();
    assert_eq!(ids[1], "same");
    assert!(ids.iter().all(|id| (1..=64).contains(&id.len())));
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5);
    assert!(outcome.session.conversation().verify().is_ok());
}

#[tokio::test]
async fn a_conversation_goes_on_with_the_next_run() {
    let model = Script::new([says("one"), says("two")]);
    let first = Run::new(model.clone()).user("a").await.unwrap();
    let second = Run::new(model.clone())
        .session(first.session)
        .user("b")
        .await
        .unwrap();
    assert_eq!(second.session.items().len(), 4);
    assert_eq!(second.items, [Item::assistant("two")]);
    assert_eq!(model.received()[1].conversation.len(), 3);
}

/// R29
#[tokio::test]
async fn a_history_with_orphans_or_gaps_is_refused_before_anything_is_sent() {
    let model = Script::new([]);
    for items in [
        vec![Item::function_call_output("a", "x")],
        vec![Item::user("x"), Item::function_call("a", "echo", "{}")],
    ] {
        let refused = Run::new(model.clone()).input(items).await;
        assert!(matches!(refused, Err(RunError::History(_))));
    }
    assert!(model.received().is_empty());
}

#[tokio::test]
async fn an_empty_conversation_is_refused() {
    let refused = Run::new(Script::new([])).await;
    assert!(matches!(refused, Err(RunError::NothingToAnswer)));
}

/// R20
#[tokio::test]
async fn the_list_of_tools_is_the_same_in_every_request() {
    let model = Script::new([
        calls([("a", "echo", "{}")]),
        calls([("b", "nothing", "{}")]),
        says("done"),
    ]);
    let _ = Run::new(model.clone())
        .tools([echo(), tool("other", |_| Ok(ToolOutput::empty()))])
        .user("go")
        .await
        .unwrap();
    let lists: Vec<Vec<String>> = model
        .received()
        .iter()
        .map(|request| {
            let names = request.tools.iter();
            names
                .map(|tool| tool.definition().name().to_string())
                .collect()
        })
        .collect();
    assert_eq!(lists, vec![vec!["echo".to_owned(), "other".to_owned()]; 3]);
}

#[tokio::test]
async fn images_reach_a_model_that_takes_them() {
    let camera = tool("camera", |_| {
        Ok(ToolOutput::parts([haft_core::OutputPart::Image {
            media_type: "image/png".into(),
            data: "aGk=".into(),
        }]))
    });
    let model = Script::new([calls([("a", "camera", "{}")]), says("nice")]);
    let outcome = Run::new(model).tools([camera]).user("look").await.unwrap();
    let Item::FunctionCallOutput(output) = &outcome.items[1] else {
        panic!("{:?}", outcome.items)
    };
    let json = serde_json::to_value(&output.output).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 1);
    assert_eq!(json[0]["image_url"], "data:image/png;base64,aGk=");
}
