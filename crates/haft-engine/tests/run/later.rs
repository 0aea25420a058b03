//! What tools that come later never do: cost a request, invent a message, begin a count anew, or take the
//! place of another tool. Also what is told and counted about them.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use haft_catalog::prompt::{Prompt, PromptTemplate, Section, Visibility};
use haft_core::{Capabilities, Defer, Item, ToolObject, ToolOutput};
use haft_engine::{End, EventKind, IncompleteReason, Outcome, Run, RunEvent};
use serde_json::json;
use tracing::field::{Field, Visit};

use crate::script::{Reply, Script, calling, calls, says};
use crate::tools::tool;

/// Its id, the tool, the arguments.
type Call = (&'static str, &'static str, &'static str);

const READ: Call = ("r", "read_section", r#"{"section_key":"ref"}"#);
const SEARCH: Call = ("r", "search_tools", r#"{"query":"grep"}"#);
const PICK: Call = ("r", "pick_tools", r#"{"tools":["grep"]}"#);

fn said_by(name: &str) -> Arc<dyn ToolObject> {
    tool(name, |text| Ok(ToolOutput::text(text)))
}

/// A summary with two tools in it.
fn prompt() -> Prompt {
    PromptTemplate::new("test", "later")
        .section(
            Section::new("ref", "Reference")
                .body("All.")
                .summary("Some.")
                .visibility(Visibility::Summary)
                .tools([said_by("grep"), said_by("cite")]),
        )
        .build()
        .unwrap()
}

fn fixed(replies: impl IntoIterator<Item = Reply>) -> Script {
    Script::with_capabilities(replies, Capabilities::default())
}

/// What makes `grep` one of the tools that come later.
type WithTools = fn(Run) -> Run;

/// A way to ask for `grep`, and a run in which it is one.
fn ways() -> [(Call, WithTools); 3] {
    [
        (READ, |run| run.prompt(&prompt())),
        (SEARCH, |run| {
            run.tools([said_by("grep")]).defer(Defer::Always)
        }),
        (PICK, |run| {
            run.tools([said_by("grep")]).brief_until_picked()
        }),
    ]
}

/// R18, R19: an answer that asks for tools is followed by its result and the next request, and by nothing
/// else, whether the list grows or the model is started anew.
#[tokio::test]
async fn tools_that_come_later_cost_no_request_and_no_message() {
    for (asked, with_tools) in ways() {
        let replies = || {
            [
                calls([asked]),
                calls([("c", "grep", r#"{"text":"x"}"#)]),
                says("done"),
            ]
        };
        for model in [Script::new(replies()), fixed(replies())] {
            let outcome = with_tools(Run::new(model.clone())).user("go").await;
            assert!(outcome.unwrap().is_completed(), "{asked:?}");
            let requests = model.received();
            assert_eq!(requests.len(), 3, "{asked:?}");
            let told: Vec<_> = requests[2]
                .conversation
                .items()
                .map(|item| match item {
                    Item::FunctionCall(call) => format!("call {}", call.call_id),
                    Item::FunctionCallOutput(output) => format!("output {}", output.call_id),
                    other => other.kind().to_owned(),
                })
                .collect();
            let expected = ["message", "call r", "output r", "call c", "output c"];
            assert_eq!(told, expected, "{asked:?}");
        }
    }
}

fn incomplete(outcome: &Outcome) -> (IncompleteReason, &str) {
    match &outcome.end {
        End::Incomplete {
            reason, message, ..
        } => (*reason, message),
        other => panic!("{other:?}"),
    }
}

/// R22
#[tokio::test]
async fn budgets_count_on_over_a_restart() {
    let costly = |call| Reply::Answer(calling([call]).with_usage(10, 5));
    let model = fixed([
        costly(READ),
        costly(("c", "grep", r#"{"text":"x"}"#)),
        says("too late"),
    ]);
    let run = Run::new(model.clone()).prompt(&prompt());
    let outcome = run.max_total_tokens(25).user("go").await.unwrap();
    assert_eq!(outcome.counters.disclosure_restarts, 1);
    let words = "Budget exceeded: total_tokens 30 > 25";
    assert_eq!(incomplete(&outcome), (IncompleteReason::Budget, words));
    assert_eq!(outcome.usage.requests, 2);
}

/// R22
#[tokio::test]
async fn loops_are_counted_on_over_a_restart() {
    let same = || calls([("", "echo", r#"{"text":"x"}"#)]);
    let mut replies = vec![same(), same(), calls([READ])];
    replies.extend((0..4).map(|_| same()));
    let model = fixed(replies);
    let run = Run::new(model.clone()).prompt(&prompt());
    let outcome = run.tools([said_by("echo")]).user("go").await.unwrap();
    assert_eq!(outcome.counters.disclosure_restarts, 1);
    assert_eq!(incomplete(&outcome).0, IncompleteReason::LoopDetected);
    assert_eq!(outcome.rounds, 6);
    let warned = crate::texts(&outcome);
    let warned = warned.iter().filter(|text| text.contains("[loop warning"));
    assert_eq!(warned.count(), 2);
}

/// The counters of `dynamic-tools.md` §7 for the prompt of §1.6, both ways.
#[tokio::test]
async fn a_read_counts_as_an_injection_or_as_a_restart() {
    for (is_forced, expected) in [(false, (2, 1, 0)), (true, (0, 0, 1))] {
        let model = Script::new([calls([READ]), says("done")]);
        let run = Run::new(model).prompt(&prompt()).user("go");
        let run = if is_forced { run.force_restart() } else { run };
        let counters = run.await.unwrap().counters;
        let counted = (
            counters.tools_injected,
            counters.disclosure_dynamic,
            counters.disclosure_restarts,
        );
        assert_eq!(counted, expected);
    }
}

/// What is logged in this thread, a line each.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn holds(&self, line: &str) -> bool {
        let lines = self.0.lock().unwrap();
        lines.iter().any(|it| it == line)
    }
}

/// One line: the message, then the fields in their order.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(event.metadata().level().to_string() + " ");
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn the_tool_that_is_there_wins_over_one_that_comes_later() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let model = Script::new([
        calls([READ]),
        calls([("c", "grep", r#"{"text":"x"}"#)]),
        says("done"),
    ]);
    let first = tool("grep", |_| Ok(ToolOutput::text("the first")));
    let run = Run::new(model.clone()).tools([first]).prompt(&prompt());
    let mut stream = run.user("go").start().unwrap();
    let mut injected = Vec::new();
    while let Some(RunEvent { kind, .. }) = stream.next().await {
        if let EventKind::ToolsInjected {
            tool_names,
            skipped,
            ..
        } = kind
        {
            injected.push(json!([tool_names, skipped]));
        }
    }
    let outcome = stream.finish().await;
    assert_eq!(injected, [json!([["cite"], ["grep"]])]);
    assert_eq!(outcome.counters.tools_injected, 1);
    assert_eq!(crate::texts(&outcome)[1], "the first");
    let offered = &model.received()[2].tools;
    let offered: Vec<_> = offered.iter().map(|it| it.definition().name()).collect();
    assert_eq!(json!(offered), json!(["grep", "read_section", "cite"]));
    for line in [
        r#"WARN Skipping duplicate tool during injection tool_name="grep""#,
        r#"INFO Injected tools from section expansion section_key="ref" tool_count=1 tool_names="cite""#,
    ] {
        assert!(log.holds(line), "{line} is not in {log:?}", log = log.0);
    }
}
