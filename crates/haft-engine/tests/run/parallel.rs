//! Calls of one answer run side by side, within bounds, and their results keep their order.

use haft_core::Annotations;
use haft_engine::{End, Run};

use crate::script::{Script, calls, says};
use crate::tools::{Crowd, echo, function, sleeper};
use crate::{outputs, texts};

fn sequential() -> Annotations {
    Annotations {
        sequential: true,
        ..Annotations::default()
    }
}

#[tokio::test(start_paused = true)]
async fn results_are_in_call_order_whoever_is_first() {
    let model = Script::new([
        calls([
            ("a", "sleep", r#"{"text":"300"}"#),
            ("b", "sleep", r#"{"text":"20"}"#),
            ("c", "sleep", r#"{"text":"100"}"#),
        ]),
        says("done"),
    ]);
    let outcome = Run::new(model)
        .tools([sleeper("sleep")])
        .user("go")
        .await
        .unwrap();
    assert_eq!(texts(&outcome), ["300", "20", "100"]);
    let ids: Vec<_> = outputs(&outcome.items)
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    assert_eq!(ids, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_run_at_once_than_the_bound_says() {
    for (bound, expected) in [(1, 1), (3, 3), (8, 5)] {
        let crowd = Crowd::default();
        let call = |id| (id, "work", "{}");
        let model = Script::new([
            calls([call("a"), call("b"), call("c"), call("d"), call("e")]),
            says("done"),
        ]);
        let outcome = Run::new(model)
            .tools([crowd.tool("work", Annotations::default())])
            .loop_detection(haft_engine::LoopDetection::off())
            .max_parallel(bound)
            .user("go")
            .await
            .unwrap();
        assert_eq!(crowd.most(), expected);
        assert_eq!(texts(&outcome), ["done"; 5]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_sequential_tool_waits_for_the_earlier_and_holds_the_later_back() {
    let crowd = Crowd::default();
    let model = Script::new([
        calls([
            ("a", "alone", "{}"),
            ("b", "alone", "{}"),
            ("c", "work", "{}"),
        ]),
        says("done"),
    ]);
    let tools = [
        crowd.tool("alone", sequential()),
        crowd.tool("work", Annotations::default()),
    ];
    let outcome = Run::new(model).tools(tools).user("go").await.unwrap();
    assert_eq!(crowd.most(), 1);
    assert!(outcome.is_completed());
}

#[tokio::test]
async fn one_call_at_a_time_takes_only_the_first_of_an_answer() {
    let model = Script::new([
        calls([
            ("a", "echo", r#"{"text":"1"}"#),
            ("b", "echo", r#"{"text":"2"}"#),
        ]),
        says("done"),
    ]);
    let outcome = Run::new(model.clone())
        .tools([echo()])
        .parallel_tool_calls(false)
        .user("go")
        .await
        .unwrap();
    assert_eq!(texts(&outcome), ["1", "Not executed: one call at a time."]);
    assert_eq!(model.received()[0].parallel_tool_calls, Some(false));
    assert_eq!(outcome.rounds, 1);
}

#[tokio::test]
async fn one_call_at_a_time_holds_for_functions_of_the_caller_too() {
    let model = Script::new([calls([("a", "ask", "{}"), ("b", "ask", "{}")])]);
    let outcome = Run::new(model)
        .tools([function("ask")])
        .parallel_tool_calls(false)
        .user("go")
        .await
        .unwrap();
    let End::Waiting(waiting) = &outcome.end else {
        panic!("{:?}", outcome.end)
    };
    assert_eq!(waiting.calls.len(), 1);
    assert_eq!(waiting.calls[0].call_id, "a");
}

#[tokio::test]
async fn nothing_about_parallel_calls_is_sent_where_nothing_was_said() {
    let model = Script::new([says("done")]);
    let _ = Run::new(model.clone()).tools([echo()]).user("go").await;
    assert_eq!(model.received()[0].parallel_tool_calls, None);
}
