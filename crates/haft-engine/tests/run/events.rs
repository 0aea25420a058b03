//! Everything a run does is told, in order.

use std::sync::{Arc, Mutex};

use haft_core::{
    Annotations, FinishReason, Item, ModelResponse, Reasoning, ToolProgress, dynamic_tool,
};
use haft_engine::{EventKind, Run};

use crate::script::{Reply, Script, calls, says};
use crate::tools::{definition, echo, tool};

fn name(kind: &EventKind) -> String {
    let json = serde_json::to_value(kind).unwrap();
    json["event"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn events_come_in_the_order_of_what_happens() {
    let model = Script::new([calls([("a", "echo", r#"{"text":"x"}"#)]), says("done")]);
    let mut run = Run::new(model).tools([echo()]).user("go").start().unwrap();
    let mut names = Vec::new();
    while let Some(event) = run.next().await {
        assert!(event.context.run_id.starts_with("run_"));
        assert!(event.context.conversation_id.starts_with("conv_"));
        assert!(event.timestamp > 1.0e9);
        names.push(name(&event.kind));
    }
    assert_eq!(
        names,
        [
            "turn_started",
            "answer_started",
            "item_started",
            "arguments_delta",
            "item_finished",
            "answer_finished",
            "item_added",
            "tool_calls_requested",
            "tool_started",
            "tool_invoked",
            "item_added",
            "tool_results",
            "turn_started",
            "answer_started",
            "item_started",
            "text_delta",
            "item_finished",
            "answer_finished",
            "item_added",
            "run_finished",
        ]
    );
}

#[tokio::test]
async fn every_answer_says_what_it_cost_and_who_gave_it() {
    let mut first = crate::script::calling([("a", "echo", r#"{"text":"x"}"#)]).with_usage(10, 2);
    first.model = Some("other".into());
    first.response_id = Some("answer-1".into());
    let last = crate::script::says_for("done", 20, 3);
    let model = Script::new([Reply::Answer(first), last]);
    let mut run = Run::new(model).tools([echo()]).user("go").start().unwrap();
    let mut told = Vec::new();
    while let Some(event) = run.next().await {
        if let EventKind::AnswerFinished {
            finish,
            usage,
            model,
            response_id,
        } = event.kind
        {
            assert_eq!(finish, FinishReason::Normal);
            told.push((usage.unwrap().total_tokens(), model, response_id));
        }
    }
    let (other, id) = (Some("other".into()), Some("answer-1".into()));
    assert_eq!(told, [(12, other, id), (23, None, None)]);
}

/// R10
#[tokio::test]
async fn there_is_one_tool_invoked_per_tool_message() {
    let panics = tool("panics", |_| panic!("boom"));
    let model = Script::new([
        calls([
            ("a", "echo", "{}"),
            ("b", "nothing", "{}"),
            ("c", "echo", "oops"),
            ("d", "panics", "{}"),
        ]),
        says("done"),
    ]);
    let mut run = Run::new(model)
        .tools([echo(), panics])
        .user("go")
        .start()
        .unwrap();
    let (mut invoked, mut messages) = (Vec::new(), Vec::new());
    while let Some(event) = run.next().await {
        match event.kind {
            EventKind::ToolInvoked {
                call_id,
                success,
                error_kind,
                ..
            } => invoked.push((call_id, success, error_kind)),
            EventKind::ItemAdded {
                item: Item::FunctionCallOutput(output),
                ..
            } => messages.push(output.call_id),
            _ => {}
        }
    }
    invoked.sort();
    assert_eq!(messages, ["a", "b", "c", "d"]);
    assert_eq!(
        invoked,
        [
            ("a".into(), true, None),
            ("b".into(), false, Some("unknown_tool")),
            ("c".into(), false, Some("invalid_arguments")),
            ("d".into(), false, Some("panicked")),
        ]
    );
}

/// R10: what opens a section and what comes too early count like any other call.
#[tokio::test]
async fn there_is_one_tool_invoked_per_call_that_opens_something() {
    use haft_catalog::prompt::{PromptTemplate, Section, Visibility};
    let prompt = PromptTemplate::<String>::new("test", "opened")
        .section(
            Section::new("ref", "Reference")
                .body("All.")
                .summary("Some.")
                .visibility(Visibility::Summary)
                .tool(tool("late", |_| Ok(haft_core::ToolOutput::empty()))),
        )
        .build()
        .unwrap();
    let read = r#"{"section_key":"ref"}"#;
    let replies = || {
        [
            calls([
                ("a", "read_section", read),
                ("b", "late", "{}"),
                ("c", "read_section", r#"{"section_key":"no"}"#),
                ("d", "read_section", "{}"),
            ]),
            calls([("e", "late", "{}")]),
            says("done"),
        ]
    };
    let fixed = Script::with_capabilities(replies(), haft_core::Capabilities::default());
    for model in [Script::new(replies()), fixed] {
        let mut run = Run::new(model).prompt(&prompt).user("go").start().unwrap();
        let (mut invoked, mut messages) = (Vec::new(), Vec::new());
        while let Some(event) = run.next().await {
            match event.kind {
                EventKind::ToolInvoked {
                    call_id, success, ..
                } => invoked.push((call_id, success)),
                EventKind::ItemAdded {
                    item: Item::FunctionCallOutput(output),
                    ..
                } => messages.push(output.call_id),
                _ => {}
            }
        }
        invoked.sort();
        assert_eq!(messages, ["a", "b", "c", "d", "e"]);
        let expected = [
            ("a", true),
            ("b", false),
            ("c", false),
            ("d", false),
            ("e", true),
        ];
        assert_eq!(
            invoked,
            expected.map(|(id, success)| (id.to_owned(), success))
        );
    }
}

/// R33
#[tokio::test]
async fn callbacks_hear_in_event_order_and_before_anything_of_the_batch_runs() {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = |what: &str| {
        let (heard, what) = (Arc::clone(&heard), what.to_owned());
        move |more: &str| heard.lock().unwrap().push(format!("{what} {more}"))
    };
    let ran = note("ran");
    let working = tool("work", move |text| {
        ran(&text);
        Ok(haft_core::ToolOutput::text("ok"))
    });
    let thinking = Item::Reasoning(Reasoning {
        content: vec![haft_core::ContentPart::ReasoningText { text: "hm".into() }],
        ..Reasoning::default()
    });
    let mut first = crate::script::calling([("a", "work", r#"{"text":"1"}"#)]);
    first.items.insert(0, thinking);
    let model = Script::new([Reply::Answer(first), says("done")]);
    let (content, reasoning) = (note("content"), note("reasoning"));
    let (called, resulted) = (note("calls"), note("results"));
    let _ = Run::new(model)
        .tools([working])
        .on_content(move |text| content(text))
        .on_reasoning(move |text| reasoning(text))
        .on_tool_calls(move |calls| called(&calls[0].name))
        .on_tool_results(move |results| resulted(&results[0].output))
        .user("go")
        .await
        .unwrap();
    assert_eq!(
        *heard.lock().unwrap(),
        [
            "reasoning hm",
            "calls work",
            "ran 1",
            "results ok",
            "content done"
        ]
    );
}

/// R36
#[tokio::test]
async fn progress_is_told_and_never_part_of_the_conversation() {
    let working = dynamic_tool(
        definition("work", Annotations::default()),
        |_, context| async move {
            context.progress(ToolProgress::at(1.0).of(3.0));
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
            for n in 0..100 {
                context.output_chunk(format!("line {n}\n"));
            }
            Ok("ok")
        },
    );
    let model = Script::new([calls([("a", "work", "{}")]), says("done")]);
    let mut run = Run::new(model.clone())
        .tools([working])
        .user("go")
        .start()
        .unwrap();
    let mut told = Vec::new();
    while let Some(event) = run.next().await {
        if let EventKind::ToolProgress { call_id, progress } = event.kind {
            assert_eq!(call_id, "a");
            told.push(progress);
        }
    }
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0], ToolProgress::at(1.0).of(3.0));
    assert!(told[1].chunk.as_ref().unwrap().ends_with("line 99\n"));
    let outcome = run.finish().await;
    let kept = serde_json::to_string(&outcome.session).unwrap();
    let sent = format!("{:?}", model.received()[1].conversation);
    assert!(!kept.contains("line 1") && !sent.contains("line 1"));
}

#[tokio::test]
async fn an_answer_that_is_not_used_is_told_to_be_discarded() {
    let model = Script::new([says("no"), calls([("a", "echo", "{}")]), says("done")]);
    let mut run = Run::new(model)
        .tools([echo()])
        .tool_choice(haft_core::ToolChoice::Required)
        .user("go")
        .start()
        .unwrap();
    let mut discarded = 0;
    while let Some(event) = run.next().await {
        discarded += usize::from(matches!(event.kind, EventKind::AnswerDiscarded { .. }));
    }
    assert_eq!(discarded, 1);
}

#[tokio::test]
async fn dropping_a_run_stops_its_calls() {
    let stopped = Arc::new(());
    let held = Arc::clone(&stopped);
    let holding = dynamic_tool(definition("hold", Annotations::default()), move |_, _| {
        let held = Arc::clone(&held);
        async move {
            std::future::pending::<()>().await;
            drop(held);
            Ok("never")
        }
    });
    let model = Script::new([Reply::Answer(ModelResponse::of([Item::function_call(
        "a", "hold", "{}",
    )]))]);
    let mut run = Run::new(model)
        .tools([Arc::clone(&holding)])
        .user("go")
        .start()
        .unwrap();
    while let Some(event) = run.next().await {
        if let EventKind::ToolStarted { .. } = event.kind {
            break;
        }
    }
    tokio::task::yield_now().await;
    drop((run, holding));
    for _ in 0..100 {
        if Arc::strong_count(&stopped) == 1 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the call is still there");
}
