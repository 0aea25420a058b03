//! Repeated calls whose results the model has: left out, and the model is asked for its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream;
use haft_core::{
    Annotations, BoxFuture, Capabilities, FinishReason, Item, Model, ModelError, ModelRequest,
    ModelResponse, ModelStream, ToolDefinition, ToolObject, ToolOutput, dynamic_tool,
};
use haft_engine::{
    CallStatus, End, EventKind, IncompleteReason, LoopDetection, LoopOptions, Nudge, Run,
};
use serde_json::json;

use crate::script::{Reply, Script, calls, says};

const NUDGE: &str =
    "You have the result above. Do not call a tool again. Answer the question in plain words.";

fn repeats_calls() -> Capabilities {
    Capabilities {
        supports_dynamic_tools: true,
        repeats_calls: true,
        ..Capabilities::default()
    }
}

fn weak(replies: impl IntoIterator<Item = Reply>) -> Script {
    Script::with_capabilities(replies, repeats_calls())
}

/// A tool that counts its runs; `results` are given one after the other, the last one again and again.
fn tool(
    name: &str,
    annotations: Annotations,
    results: &'static [&'static str],
) -> (Arc<dyn ToolObject>, Arc<AtomicUsize>) {
    let definition = ToolDefinition::builder(name)
        .parameters(json!({"type": "object"}))
        .annotations(annotations)
        .build()
        .unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let tool = dynamic_tool(definition, move |_, _| {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        async move { Ok(ToolOutput::text(results[run.min(results.len() - 1)])) }
    });
    (tool, runs)
}

fn read_only() -> Annotations {
    Annotations {
        read_only: true,
        ..Annotations::default()
    }
}

fn read(id: &str) -> Reply {
    calls([(id, "read", r#"{"path":"a"}"#)])
}

#[tokio::test]
async fn a_repeated_read_is_left_out_and_the_model_is_asked_for_its_answer() {
    let (tool, runs) = tool("read", read_only(), &["apples"]);
    let again = calls([("b", "read", r#"{ "path" : "a" }"#)]);
    let model = weak([read("a"), again, says("Apples.")]);
    let mut stream = Run::new(model.clone())
        .tools([tool])
        .user("What is in a?")
        .start()
        .unwrap();
    let mut suppressed = Vec::new();
    while let Some(event) = stream.next().await {
        if let EventKind::RepeatedCallSuppressed {
            tool_name,
            call_id,
            count,
        } = event.kind
        {
            suppressed.push((tool_name, call_id, count));
        }
    }
    let outcome = stream.finish().await;
    assert!(outcome.is_completed());
    assert_eq!(outcome.text, "Apples.");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(suppressed, [("read".to_owned(), "b".to_owned(), 2)]);
    assert_eq!(outcome.counters.calls_suppressed, 1);
    let status: Vec<_> = outcome.tool_calls.iter().map(|call| call.status).collect();
    assert_eq!(status, [CallStatus::Succeeded, CallStatus::Suppressed]);
    let requests = model.received();
    let sent: Vec<_> = requests[2].conversation.items().collect();
    assert_eq!(sent.len(), 4);
    assert_eq!(sent[3].text(), NUDGE);
    // Neither the repeated call nor the message is part of the conversation.
    assert_eq!(outcome.session.items().count(), 4);
    let stays = outcome.session.items().all(|item| item.text() != NUDGE);
    assert!(stays);
}

#[tokio::test]
async fn a_call_runs_again_where_that_may_be_meant() {
    let polling = Annotations {
        polling: true,
        ..read_only()
    };
    let detection = |nudge| LoopDetection {
        nudge,
        ..LoopDetection::default()
    };
    for (annotations, results, nudge, replies, expected) in [
        // Its tool says nothing about its effects.
        (Annotations::default(), &["x"][..], Nudge::On, 2, 2),
        (polling, &["x"], Nudge::On, 2, 2),
        (read_only(), &["x"], Nudge::Off, 2, 2),
        (read_only(), &["x"], Nudge::On, 2, 1),
    ] {
        let (tool, runs) = tool("read", annotations.clone(), results);
        let replies = (0..replies).map(|_| read(""));
        let model = weak(replies.chain([says("done")]));
        let run = Run::new(model).tools([tool]);
        let run = run.loop_detection(detection(nudge));
        run.user("go").await.unwrap();
        let ran = runs.load(Ordering::SeqCst);
        assert_eq!(ran, expected, "{annotations:?} {nudge:?}");
    }
    // A model that is not known to repeat itself.
    let (tool, runs) = tool("read", read_only(), &["x"]);
    let model = Script::new([read("a"), read("b"), says("done")]);
    Run::new(model).tools([tool]).user("go").await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_read_after_a_write_or_a_new_question_runs() {
    let (reading, reads) = tool("read", read_only(), &["x"]);
    let (writing, _) = tool("write", Annotations::default(), &["ok"]);
    let (looking, _) = tool("look", read_only(), &["?"]);
    let tools = [reading, writing, looking];
    let model = weak([
        read("a"),
        calls([("b", "write", "{}")]),
        read("c"),
        calls([("d", "look", "{}")]),
        // Only reads since the last one.
        read("e"),
        says("one"),
        read("f"),
        says("two"),
    ]);
    let first = Run::new(model.clone()).tools(tools.clone());
    let first = first.user("go").await.unwrap();
    assert_eq!(reads.load(Ordering::SeqCst), 2);
    let second = Run::new(model.clone()).tools(tools).session(first.session);
    second.user("Look again.").await.unwrap();
    assert_eq!(reads.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn results_that_differ_show_that_repetition_is_meant() {
    let (tool, runs) = tool("read", read_only(), &["1", "2"]);
    let again = calls([
        ("x", "read", r#"{"path":"a"}"#),
        ("y", "read", r#"{"path":"a"}"#),
    ]);
    // Two at once both run: there is no result yet.
    let model = weak([again, read("z"), says("done")]);
    Run::new(model).tools([tool]).user("go").await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn other_calls_of_the_answer_run() {
    let (reading, reads) = tool("read", read_only(), &["x"]);
    let (writing, writes) = tool("write", Annotations::default(), &["ok"]);
    let both = calls([("b", "read", r#"{"path":"a"}"#), ("c", "write", "{}")]);
    let model = weak([read("a"), both, says("done")]);
    let outcome = Run::new(model.clone())
        .tools([reading, writing])
        .user("go")
        .await
        .unwrap();
    assert_eq!(
        (reads.load(Ordering::SeqCst), writes.load(Ordering::SeqCst)),
        (1, 1)
    );
    assert_eq!(crate::texts(&outcome), ["x", "ok"]);
    let last = model.received().pop().unwrap();
    assert!(last.conversation.items().all(|item| item.text() != NUDGE));
}

#[tokio::test]
async fn a_function_of_the_caller_is_left_out_after_as_many_equal_results_as_are_admitted() {
    let press = ToolDefinition::builder("press")
        .parameters(json!({"type": "object"}))
        .build()
        .unwrap();
    for (results, is_left_out) in [(2, false), (3, true)] {
        let mut items = vec![Item::user("go")];
        for number in 0..results {
            let id = number.to_string();
            items.push(Item::function_call(&*id, "press", "{}"));
            items.push(Item::function_call_output(&*id, "ok"));
        }
        let catalog = haft_catalog::Catalog::new();
        let binding = catalog.snapshot().bind().with_tools([press.clone()]);
        let model = weak([calls([("n", "press", "{}")]), says("done")]);
        let outcome = Run::new(model)
            .binding(binding.build().unwrap())
            .session(items)
            .await
            .unwrap();
        assert_eq!(outcome.is_completed(), is_left_out, "{results}");
        assert_eq!(outcome.counters.calls_suppressed, u64::from(is_left_out));
    }
}

#[tokio::test]
async fn a_model_that_goes_on_repeating_gets_a_last_turn_without_calls_in_its_prompt() {
    let (tool, runs) = tool("read", read_only(), &["apples"]);
    let model = weak([read("a"), read("b"), read("c"), read("d"), says("Apples.")]);
    let outcome = Run::new(model.clone())
        .tools([tool])
        .user("What is in a?")
        .await
        .unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    let End::Incomplete { reason, .. } = outcome.end else {
        panic!("{:?}", outcome.end)
    };
    assert_eq!(reason, IncompleteReason::LoopDetected);
    assert_eq!(outcome.text, "Apples.");
    let last = model.received().pop().unwrap();
    assert!(last.tools.is_empty() && last.tool_choice.is_none());
    let texts: Vec<_> = last.conversation.items().map(Item::text).collect();
    let [text] = &texts[..] else {
        panic!("{texts:?}")
    };
    assert!(
        text.contains("Result of read") && text.contains("apples"),
        "{text}"
    );
}

#[tokio::test]
async fn a_loop_that_ends_the_run_grants_a_last_answer() {
    let (tool, _) = tool("read", Annotations::default(), &["x"]);
    let replies = (0..6).map(|_| read("")).chain([says("What I have.")]);
    let model = Script::new(replies);
    let outcome = Run::new(model.clone())
        .tools([Arc::clone(&tool)])
        .user("go")
        .await
        .unwrap();
    assert_eq!(
        outcome.end.summary().reason.as_deref(),
        Some("loop_detected")
    );
    assert_eq!(outcome.text, "What I have.");
    let last = model.received().pop().unwrap();
    assert_eq!(last.tool_choice, Some(haft_core::ToolChoice::None));
    let options = LoopOptions {
        final_turn: false,
        ..LoopOptions::default()
    };
    let model = Script::new((0..6).map(|_| read("")).chain([says("What I have.")]));
    let outcome = Run::new(model).tools([tool]).options(options);
    let outcome = outcome.user("go").await.unwrap();
    assert_eq!(outcome.text, "");
}

/// A small model as it was seen at work: it goes on from what stands last in its prompt.
struct Weak {
    /// The calls that the question takes, in order.
    steps: &'static [(&'static str, &'static str)],
    /// Whether it answers by itself once it has the last result.
    answers: bool,
    /// Whether a message that asks for the answer moves it.
    listens: bool,
}

impl Weak {
    fn reply(&self, request: &ModelRequest) -> Item {
        let items: Vec<_> = request.conversation.items().collect();
        let made: Vec<_> = items
            .iter()
            .filter_map(|item| match item {
                Item::FunctionCall(call) => Some(call),
                _ => None,
            })
            .collect();
        let (name, arguments) = match made.last() {
            None => self.steps[0],
            Some(last) => {
                let at = self.steps.iter().position(|step| step.1 == last.arguments);
                let at = at.unwrap_or(self.steps.len() - 1);
                self.steps[(at + 1).min(self.steps.len() - 1)]
            }
        };
        let is_through = made
            .iter()
            .any(|call| call.arguments == self.steps.last().unwrap().1);
        let is_asked = items
            .last()
            .is_some_and(|item| item.text().contains("plain words"));
        let has_calls = !made.is_empty();
        let is_free = request.tools.is_empty() && !has_calls;
        if is_free || (is_through && (self.answers || (is_asked && self.listens))) {
            return Item::assistant("The answer is 42.");
        }
        if request.tools.is_empty() || request.tool_choice == Some(haft_core::ToolChoice::None) {
            let call =
                format!("```json\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n```");
            return Item::assistant(call);
        }
        Item::function_call("", name, arguments)
    }
}

impl Model for Weak {
    fn name(&self) -> &'static str {
        "weak"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    fn capabilities(&self) -> Capabilities {
        repeats_calls()
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let response = ModelResponse {
            items: vec![self.reply(&request)],
            finish: FinishReason::Normal,
            ..ModelResponse::default()
        };
        let events: Vec<_> = response.into_events().into_iter().map(Ok).collect();
        Box::pin(async move { Ok(Box::pin(stream::iter(events)) as ModelStream) })
    }
}

/// The conversations that small models fail in, with the reactions off and on: how many are solved, and with how many
/// requests. The habits are those that were measured with a model of 1.5 billion parameters.
#[tokio::test]
async fn weak_models_solve_more_with_nudges_and_a_plain_last_turn() {
    const A: (&str, &str) = ("read", r#"{"path":"a"}"#);
    const B: (&str, &str) = ("read", r#"{"path":"b"}"#);
    const C: (&str, &str) = ("read", r#"{"path":"c"}"#);
    let set: &[(&'static [_], bool, bool)] = &[
        (&[A], true, true),
        (&[A, B], true, true),
        (&[A], false, true),
        (&[A, B], false, true),
        (&[A, B, C], false, true),
        (&[A], false, false),
        (&[A, B], false, false),
    ];
    let mut solved = Vec::new();
    for (nudge, final_turn) in [(Nudge::Off, false), (Nudge::Off, true), (Nudge::Auto, true)] {
        let (mut count, mut requests) = (0, 0);
        for (steps, answers, listens) in set {
            let (tool, _) = tool("read", read_only(), &["42"]);
            let options = LoopOptions {
                final_turn,
                loop_detection: LoopDetection {
                    nudge,
                    ..LoopDetection::default()
                },
                ..LoopOptions::default()
            };
            let model = Weak {
                steps,
                answers: *answers,
                listens: *listens,
            };
            let run = Run::new(model).tools([tool]).options(options);
            let outcome = run.user("What is the answer?").await.unwrap();
            count += u32::from(outcome.text.contains("42."));
            requests += outcome.usage.requests;
        }
        solved.push((count, requests));
    }
    // Before; with a last turn in plain words; with nudges too, which end the same conversations sooner.
    println!("solved of {}, requests: {solved:?}", set.len());
    assert_eq!(solved[0].0, 2);
    assert_eq!(solved[1].0, 7);
    assert_eq!(solved[2].0, 7);
    assert!(solved[2].1 < solved[1].1, "{solved:?}");
}
