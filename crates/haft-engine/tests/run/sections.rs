//! Sections of a prompt that the model reads, and the tools that come with them.

use std::sync::Arc;

use haft_catalog::prompt::{Prompt, PromptTemplate, Section, Visibility};
use haft_core::{Capabilities, Item, ModelRequest, ToolObject, ToolOutput};
use haft_engine::{End, EventKind, Run, RunEvent, Session, VisibilityChange};
use serde_json::json;

use crate::results;
use crate::script::{Reply, Script, calls, says};
use crate::tools::tool;

/// The prompt of `dynamic-tools.md` §1.6.
fn golden() -> Prompt {
    PromptTemplate::new("test", "golden")
        .section(Section::new("task", "Task").body("Answer questions."))
        .section(
            Section::new("ref", "Reference")
                .body("All API notes.")
                .summary("API notes.")
                .visibility(Visibility::Summary)
                .tools([said_by("search"), said_by("cite")])
                .child(Section::new("limits", "Limits").body("10 rps."))
                .child(
                    Section::new("errors", "Errors")
                        .body("All codes.")
                        .summary("Error codes.")
                        .visibility(Visibility::Summary)
                        .tool(said_by("explain")),
                ),
        )
        .section(Section::new("old", "Old").body("Gone.").enabled(false))
        .section(Section::new("style", "Style").body("Be brief."))
        .build()
        .unwrap()
}

const READ_REF: (&str, &str, &str) = ("r1", "read_section", r#"{"section_key":"ref"}"#);
const READ_ERRORS: (&str, &str, &str) = ("r2", "read_section", r#"{"section_key":"ref.errors"}"#);

fn said_by(name: &str) -> Arc<dyn ToolObject> {
    tool(name, |text| Ok(ToolOutput::text(text)))
}

fn fixed(replies: impl IntoIterator<Item = Reply>) -> Script {
    Script::with_capabilities(replies, Capabilities::default())
}

fn names(request: &ModelRequest) -> Vec<String> {
    let tools = request.tools.iter();
    tools
        .map(|tool| tool.definition().name().to_string())
        .collect()
}

/// Runs to the end; what was told on the way.
async fn told(run: Run) -> (haft_engine::Outcome, Vec<RunEvent>) {
    let mut stream = run.start().unwrap();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    (stream.finish().await, events)
}

/// R4, R5, R37
#[tokio::test]
async fn reading_injects_the_sections_tools_and_keeps_the_list() {
    let model = Script::new([
        calls([READ_REF]),
        calls([("c1", "search", r#"{"text":"x"}"#), READ_ERRORS]),
        calls([("c2", "explain", r#"{"text":"y"}"#)]),
        says("done"),
    ]);
    let (outcome, events) = told(Run::new(model.clone()).prompt(&golden()).user("go")).await;
    assert!(outcome.is_completed());
    let requests = model.received();
    assert_eq!(names(&requests[0]), ["read_section"]);
    assert_eq!(names(&requests[1]), ["read_section", "search", "cite"]);
    assert_eq!(
        names(&requests[2]),
        ["read_section", "search", "cite", "explain"]
    );
    // The prompt that was sent is not rendered again.
    assert_eq!(requests[0].instructions, requests[3].instructions);
    assert_eq!(
        requests[0].instructions.as_deref(),
        Some(
            "## 1. Task (task)\n\nAnswer questions.\n\n## 2. Reference (ref)\n\nAPI notes.\n\n---\n\
             [This section is summarized. To view full content, call `read_section` with key \
             \"ref\".]\n\n## 4. Style (style)\n\nBe brief."
        )
    );
    assert_eq!(
        crate::texts(&outcome)[0],
        "Content of section 'ref':\n\n## 2. Reference (ref)\n\nAll API notes.\n\n### 2.1. Limits \
         (ref.limits)\n\n10 rps.\n\n### 2.2. Errors (ref.errors)\n\nError codes.\n\n---\n[This \
         section is summarized. To view full content, call `read_section` with key \"ref.errors\".]"
    );
    let injected: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolsInjected {
                tool_names,
                section_key,
                skipped,
            } => Some((tool_names.len(), section_key.as_str(), skipped.len())),
            _ => None,
        })
        .collect();
    assert_eq!(injected, [(2, "ref", 0), (1, "ref.errors", 0)]);
    let counters = outcome.counters;
    assert_eq!(
        (
            counters.tools_injected,
            counters.disclosure_dynamic,
            counters.disclosure_restarts
        ),
        (3, 2, 0)
    );
    let value = outcome.tool_calls[0].value.as_ref().unwrap();
    assert_eq!(value["expanded_tools"], json!(["search", "cite"]));
}

/// R4, R6
#[tokio::test]
async fn a_model_that_cannot_take_new_tools_is_started_anew_with_the_whole_history() {
    let model = fixed([
        calls([READ_REF]),
        calls([("c1", "cite", r#"{"text":"x"}"#)]),
        says("done"),
    ]);
    let (outcome, events) = told(Run::new(model.clone()).prompt(&golden()).user("go")).await;
    assert!(outcome.is_completed());
    let requests = model.received();
    assert_eq!(names(&requests[1]), ["search", "cite", "read_section"]);
    let prompt = requests[1].instructions.as_deref().unwrap();
    assert!(prompt.contains("All API notes.") && prompt.contains("10 rps."));
    assert_eq!(
        crate::texts(&outcome),
        [
            "Section 'ref' expanded. Its content and tools are now part of the prompt.",
            "x"
        ]
    );
    let told: Vec<_> = requests[1].conversation.items().map(Item::kind).collect();
    assert_eq!(told, ["message", "function_call", "function_call_output"]);
    let restarted = events.iter().find_map(|event| match &event.kind {
        EventKind::DisclosureRestarted {
            section_keys,
            reason,
            restart,
        } => Some((section_keys.clone(), *reason, *restart)),
        _ => None,
    });
    let reason = "Adapter does not support dynamic tools";
    assert_eq!(restarted, Some((vec!["ref".to_owned()], reason, 1)));
    assert_eq!(outcome.counters.disclosure_restarts, 1);
    assert_eq!(outcome.counters.tools_injected, 0);
}

#[tokio::test]
async fn the_eleventh_restart_ends_the_run() {
    let sections = (0..11).map(|n| {
        Section::new(format!("s{n}"), format!("S{n}"))
            .body("All.")
            .summary("Some.")
            .visibility(Visibility::Summary)
            .tool(said_by(&format!("t{n}")))
    });
    let prompt = PromptTemplate::<String>::new("test", "many")
        .sections(sections)
        .build()
        .unwrap();
    let reads = (0..11).map(|n| {
        let key = format!(r#"{{"section_key":"s{n}"}}"#);
        calls([(&*format!("c{n}"), "read_section", &*key)])
    });
    let model = fixed(reads.collect::<Vec<_>>());
    let outcome = Run::new(model.clone())
        .prompt(&prompt)
        .max_rounds(50)
        .user("go")
        .await
        .unwrap();
    let End::Failed { reason, message } = outcome.end else {
        panic!("{:?}", outcome.end);
    };
    assert_eq!(reason.as_str(), "restart_limit");
    assert_eq!(message, "Too many prompt restarts (10)");
    assert_eq!(model.received().len(), 11);
}

#[tokio::test]
async fn a_tool_called_with_the_read_that_brings_it_comes_with_the_next_turn() {
    let model = Script::new([
        calls([
            ("c0", "search", r#"{"text":"early"}"#),
            READ_REF,
            ("c1", "search", r#"{"text":"x"}"#),
            ("c2", "nobody", "{}"),
            ("c3", "read_section", r#"{"section_key":"ref"}"#),
        ]),
        says("done"),
    ]);
    let outcome = Run::new(model.clone())
        .prompt(&golden())
        .user("go")
        .await
        .unwrap();
    let texts = crate::texts(&outcome);
    assert_eq!(
        texts[0],
        "Unknown tool 'search'. Available tools: read_section."
    );
    assert_eq!(
        texts[2],
        "Tool 'search' becomes available in the next turn."
    );
    assert_eq!(
        texts[3],
        "Unknown tool 'nobody'. Available tools: read_section."
    );
    assert!(texts[4].starts_with("Section is already expanded.\n\n"));
    assert_eq!(
        names(&model.received()[1]),
        ["read_section", "search", "cite"]
    );
}

/// R1, R3
#[tokio::test]
async fn unknown_and_disabled_sections_look_alike() {
    let model = Script::new([
        calls([
            ("a", "read_section", r#"{"section_key":"old"}"#),
            ("b", "read_section", r#"{"section_key":"nope"}"#),
            ("c", "read_section", r#"{"section_key":"ref.limits"}"#),
        ]),
        says("done"),
    ]);
    let outcome = Run::new(model).prompt(&golden()).user("go").await.unwrap();
    let texts = crate::texts(&outcome);
    assert_eq!(texts[0], "Unknown section key: 'old'");
    assert_eq!(texts[1], "Unknown section key: 'nope'");
    assert_eq!(
        texts[2],
        "Content of section 'ref.limits':\n\n### 2.1. Limits (ref.limits)\n\n10 rps."
    );
    assert!(results(&outcome)[0].is_error);
}

#[tokio::test]
async fn the_next_run_offers_what_was_opened_without_telling_again() {
    let model = Script::new([calls([READ_REF]), says("one"), says("two")]);
    let first = Run::new(model.clone())
        .prompt(&golden())
        .user("go")
        .await
        .unwrap();
    let stored = serde_json::to_string(&first.session).unwrap();
    let session: Session = serde_json::from_str(&stored).unwrap();
    let next = Run::new(model.clone())
        .session(session)
        .prompt(&golden())
        .user("and now");
    let (outcome, events) = told(next).await;
    assert!(outcome.is_completed());
    let last = &model.received()[2];
    assert_eq!(names(last), ["search", "cite", "read_section"]);
    assert!(
        last.instructions
            .as_deref()
            .unwrap()
            .contains("All API notes.")
    );
    let is_injected = |event: &RunEvent| matches!(event.kind, EventKind::ToolsInjected { .. });
    assert!(!events.iter().any(is_injected));
    assert!(events.iter().any(|event| matches!(
        &event.kind,
        EventKind::PromptRendered { prompt, section_states, .. }
            if prompt == "test/golden" && section_states.len() == 6
    )));
}

/// R38
#[tokio::test]
async fn the_host_opens_and_closes_sections_between_runs() {
    let set = |path: &str, visibility| VisibilityChange::SetVisibilityOverride {
        path: path.into(),
        visibility,
    };
    let mut session = Session::new();
    let unknown = session.dispatch(&golden(), set("nope", Visibility::Full));
    assert_eq!(
        unknown.unwrap_err().to_string(),
        "prompt `test/golden` has no section `nope`: use the path that its heading shows"
    );
    session
        .dispatch(&golden(), set("ref", Visibility::Full))
        .unwrap();
    session
        .dispatch(&golden(), set("style", Visibility::Full))
        .unwrap();
    let model = Script::new([says("one"), says("two")]);
    let run = Run::new(model.clone()).prompt(&golden());
    let outcome = run.session(session).user("go").await.unwrap();
    assert_eq!(
        names(&model.received()[0]),
        ["search", "cite", "read_section"]
    );
    let mut session = outcome.session;
    let clear = VisibilityChange::ClearVisibilityOverride { path: "ref".into() };
    session.dispatch(&golden(), clear).unwrap();
    assert_eq!(session.visibility_overrides().unwrap().len(), 1);
    let all = VisibilityChange::ClearAllVisibilityOverrides;
    session.dispatch(&golden(), all).unwrap();
    let run = Run::new(model.clone()).prompt(&golden());
    run.session(session).user("go").await.unwrap();
    assert_eq!(names(&model.received()[1]), ["read_section"]);
}

/// R6, R22
#[tokio::test]
async fn a_restart_runs_the_rest_of_the_turn_first_and_counts_as_no_new_run() {
    let model = fixed([
        calls([
            READ_REF,
            ("c1", "echo", r#"{"text":"behind it"}"#),
            READ_ERRORS,
        ]),
        calls([("c2", "explain", r#"{"text":"x"}"#)]),
        calls([("c3", "explain", r#"{"text":"y"}"#)]),
        says("enough"),
    ]);
    let outcome = Run::new(model.clone())
        .prompt(&golden())
        .tools([said_by("echo")])
        .max_rounds(2)
        .user("go")
        .await
        .unwrap();
    assert_eq!(
        crate::texts(&outcome),
        [
            "Section 'ref' expanded. Its content and tools are now part of the prompt.",
            "behind it",
            "Section 'ref.errors' expanded. Its content and tools are now part of the prompt.",
            "x",
            "Not executed: round limit reached.",
        ]
    );
    // Both sections of one turn are one restart, and rounds go on over it.
    assert_eq!(
        (outcome.counters.disclosure_restarts, outcome.rounds),
        (1, 2)
    );
    assert_eq!(
        names(&model.received()[1]),
        ["echo", "search", "cite", "explain", "read_section"]
    );
    assert_eq!(outcome.usage.requests, 4);
}

#[tokio::test]
async fn a_host_that_drives_by_itself_is_told_that_a_restart_is_needed() {
    use haft_engine::{Effect, Executed, Input, Moment, Runner};
    let model = fixed([calls([READ_REF])]);
    let now = Moment::from(std::time::SystemTime::now());
    let run = Run::new(model).prompt(&golden()).user("go");
    let mut machine = run.into_machine(now, 7).unwrap();
    let mut needed = None;
    while let Some(effect) = machine.next_effect() {
        match effect {
            Effect::Send { request, .. } => {
                if needed.is_some() {
                    break;
                }
                let (id, name, arguments) = READ_REF;
                let call = Item::function_call(id, name, arguments);
                for event in haft_core::ModelResponse::of([call]).into_events() {
                    machine.handle(Input::Model { request, event }, now);
                }
            }
            Effect::Run(ticket) => {
                let Runner::Tool(tool) = ticket.runner else {
                    panic!("no executor was given");
                };
                let context = haft_core::ToolContext::builder().build();
                let context = context.with_transaction(ticket.transaction.clone());
                let executed = Executed::Returned(tool.run(&context).await);
                let call = ticket.call;
                machine.handle(Input::Finished { call, executed }, now);
            }
            Effect::Restart(required) => needed = Some(required),
            _ => {}
        }
    }
    let needed = needed.unwrap();
    assert_eq!(needed.to_string(), "Section expansion requires restart");
    assert_eq!(needed.section_keys, ["ref"]);
    assert!(needed.requested_overrides.opens("ref"));
    assert_eq!(needed.reason, "Adapter does not support dynamic tools");
}

/// Denies every call that it is asked about.
struct Closed;

impl haft_core::Policy for Closed {
    fn name(&self) -> &'static str {
        "closed"
    }

    fn check(
        &self,
        call: &haft_core::PolicyCall<'_>,
        _: &haft_core::SessionState,
    ) -> haft_core::Verdict {
        haft_core::Verdict::Deny(format!("'{}' is closed.", call.tool_name()))
    }
}

#[tokio::test]
async fn a_sections_policies_and_feedback_are_for_its_own_tools() {
    let prompt = PromptTemplate::<String>::new("test", "gated")
        .section(
            Section::new("shut", "Shut")
                .body("All.")
                .summary("Some.")
                .visibility(Visibility::Summary)
                .tool(said_by("locked"))
                .policy(Closed)
                .child(
                    Section::new("inner", "Inner")
                        .body("More.")
                        .tool(said_by("open")),
                ),
        )
        .section(
            Section::new("loud", "Loud")
                .body("Noise.")
                .tool(said_by("shout"))
                .feedback(
                    haft_engine::Reminder::new("quiet", "Be quiet.")
                        .when(haft_core::FeedbackTrigger::EveryNCalls(1)),
                ),
        )
        .build()
        .unwrap();
    let model = Script::new([
        calls([("r", "read_section", r#"{"section_key":"shut"}"#)]),
        calls([
            ("a", "locked", r#"{"text":"a"}"#),
            ("b", "open", r#"{"text":"b"}"#),
            ("c", "shout", r#"{"text":"c"}"#),
        ]),
        says("done"),
    ]);
    let outcome = Run::new(model).prompt(&prompt).user("go").await.unwrap();
    assert_eq!(
        crate::texts(&outcome)[1..],
        ["'locked' is closed.", "b", "c\n\nBe quiet."]
    );
}

#[tokio::test]
async fn a_prompt_has_the_type_of_its_answer() {
    #[derive(serde::Deserialize, schemars::JsonSchema, Debug, PartialEq)]
    struct Rating {
        stars: u8,
    }
    let prompt = PromptTemplate::<Rating>::new("test", "rating")
        .section(Section::new("task", "Task").body("Rate $what."))
        .build()
        .unwrap();
    let model = Script::new([says(r#"{"stars":"many"}"#), says(r#"{"stars":4}"#)]);
    let outcome = Run::new(model.clone())
        .typed_prompt(&prompt)
        .param("what", "the soup")
        .user("go")
        .await
        .unwrap();
    assert_eq!(outcome.output_as::<Rating>(), Some(Rating { stars: 4 }));
    let told = model.received()[0].instructions.clone().unwrap();
    assert!(told.starts_with("## 1. Task (task)\n\nRate the soup."));
    let unfilled = Run::new(model).prompt(&prompt).user("go").await;
    let words = unfilled.unwrap_err().to_string();
    assert!(words.contains("task") && words.contains("what"), "{words}");
}
