//! Tools that are held back until the model searches for them.

use std::sync::Arc;

use haft_catalog::Catalog;
use haft_core::{
    Annotations, Capabilities, Defer, ModelRequest, ToolChoice, ToolDefinition, ToolObject,
    ToolOutput, dynamic_tool,
};
use haft_engine::{EventKind, Run, RunEvent, Session};
use serde_json::json;

use crate::script::{Reply, Script, calls, says};

fn tool(name: &str, defer: Defer) -> Arc<dyn ToolObject> {
    let definition = ToolDefinition::builder(name)
        .description(format!("Handle {} for the user.", name.replace('_', " ")))
        .parameters(json!({
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "additionalProperties": false,
        }))
        .annotations(Annotations {
            defer,
            ..Annotations::default()
        })
        .build()
        .unwrap();
    dynamic_tool(definition, |arguments, _| async move {
        Ok(ToolOutput::text(arguments["text"].as_str().unwrap_or("")))
    })
}

/// A dozen tools, more than are ever few.
fn dozen() -> Vec<Arc<dyn ToolObject>> {
    let things = [
        "weather", "mail", "calendar", "invoice", "ticket", "photo", "music", "map", "stock",
        "recipe", "flight", "hotel",
    ];
    things
        .map(|thing| tool(&format!("{thing}_lookup"), Defer::Auto))
        .into()
}

fn names(request: &ModelRequest) -> Vec<String> {
    let tools = request.tools.iter();
    tools
        .map(|tool| tool.definition().name().to_string())
        .collect()
}

fn find(id: &str, query: &str) -> Reply {
    let arguments = json!({"query": query, "limit": 1}).to_string();
    calls([(id, "search_tools", &*arguments)])
}

#[tokio::test]
async fn what_is_found_is_loaded_at_the_end_and_stays() {
    let model = Script::new([
        calls([("early", "mail_lookup", r#"{"text":1}"#)]),
        find("s1", "look up the mail"),
        calls([("c1", "mail_lookup", r#"{"text":"x"}"#)]),
        find("s2", "flight lookup"),
        says("one"),
        says("two"),
    ]);
    let run = Run::new(model.clone()).tools(dozen()).defer(Defer::Always);
    let mut stream = run.user("go").start().unwrap();
    let mut injected = Vec::new();
    while let Some(RunEvent { kind, .. }) = stream.next().await {
        if let EventKind::ToolsInjected {
            tool_names,
            section_key,
            ..
        } = kind
        {
            injected.push((section_key, tool_names));
        }
    }
    let outcome = stream.finish().await;
    let texts = crate::texts(&outcome);
    assert_eq!(
        texts[0],
        "Tool 'mail_lookup' is not loaded. Find it with search_tools first."
    );
    assert_eq!(texts[1], "mail_lookup: Handle mail lookup for the user.");
    assert_eq!(texts[2], "x");
    let requests = model.received();
    assert_eq!(names(&requests[0]), ["search_tools"]);
    assert_eq!(names(&requests[2]), ["search_tools", "mail_lookup"]);
    let all = ["search_tools", "mail_lookup", "flight_lookup"];
    assert_eq!(names(&requests[4]), all);
    assert_eq!(injected.len(), 2);
    assert_eq!(injected[0].0, "search_tools");
    assert_eq!(outcome.counters.tools_injected, 2);
    // A search is no call that a limit counts, and no tool that ran.
    let stored = serde_json::to_string(&outcome.session).unwrap();
    let session: Session = serde_json::from_str(&stored).unwrap();
    let again = Run::new(model.clone()).tools(dozen()).session(session);
    again.defer(Defer::Always).user("more").await.unwrap();
    assert_eq!(names(&model.received()[5]), all);
}

#[tokio::test]
async fn nothing_found_is_told_so() {
    let model = Script::new([find("s", "zzz qqq"), says("done")]);
    let run = Run::new(model).tools(dozen()).defer(Defer::Always);
    let outcome = run.user("go").await.unwrap();
    assert_eq!(crate::texts(&outcome), ["No tool found."]);
    assert_eq!(outcome.counters.tools_injected, 0);
}

#[tokio::test]
async fn many_tools_are_held_back_by_themselves_and_few_are_not() {
    for (tools, above, offered) in [(12, Some(11), 1), (12, Some(12), 12), (10, Some(2), 10)] {
        let model = Script::new([says("done")]);
        let options = haft_engine::LoopOptions {
            defer_above: above,
            ..haft_engine::LoopOptions::default()
        };
        let run = Run::new(model.clone()).tools(dozen().into_iter().take(tools));
        run.options(options).user("go").await.unwrap();
        assert_eq!(
            model.received()[0].tools.len(),
            offered,
            "{tools} {above:?}"
        );
    }
    // Twelve of these take some 400 tokens: more than 5 % of 4,000, and less than that of 200,000.
    for (context, offered) in [(Some(4_000), 1), (None, 12)] {
        let capabilities = Capabilities {
            supports_dynamic_tools: true,
            context_tokens: context,
            ..Capabilities::default()
        };
        let model = Script::with_capabilities([says("done")], capabilities);
        let run = Run::new(model.clone()).tools(dozen());
        run.user("go").await.unwrap();
        assert_eq!(model.received()[0].tools.len(), offered, "{context:?}");
    }
}

#[tokio::test]
async fn what_is_never_held_back_or_chosen_is_there() {
    let mut tools = dozen();
    tools.push(tool("pinned", Defer::Never));
    let model = Script::new([
        calls([("c", "mail_lookup", r#"{"text":"x"}"#)]),
        says("done"),
    ]);
    Run::new(model.clone())
        .tools(tools)
        .defer(Defer::Always)
        .tool_choice(ToolChoice::Function("mail_lookup".into()))
        .user("go")
        .await
        .unwrap();
    assert_eq!(
        names(&model.received()[0]),
        ["mail_lookup", "pinned", "search_tools"]
    );
}

#[tokio::test]
async fn one_tool_may_be_held_back_alone() {
    let model = Script::new([says("done")]);
    let tools = [tool("a", Defer::Auto), tool("b", Defer::Always)];
    Run::new(model.clone())
        .tools(tools)
        .user("go")
        .await
        .unwrap();
    assert_eq!(names(&model.received()[0]), ["a", "search_tools"]);
}

#[tokio::test]
async fn the_decision_is_made_once_for_a_conversation() {
    let model = Script::new([says("one"), says("two")]);
    let few = Run::new(model.clone()).tools(dozen());
    let first = few.user("go").await.unwrap();
    let options = haft_engine::LoopOptions {
        defer_above: Some(1),
        ..haft_engine::LoopOptions::default()
    };
    let again = Run::new(model.clone())
        .tools(dozen())
        .session(first.session);
    again.options(options).user("more").await.unwrap();
    assert_eq!(model.received()[1].tools.len(), 12);
}

#[tokio::test]
async fn a_search_is_neither_a_counted_call_nor_a_tool_that_ran() {
    let model = Script::new([
        find("s1", "mail"),
        find("s2", "flight"),
        calls([("c1", "mail_lookup", r#"{"text":"x"}"#)]),
        says("done"),
    ]);
    let outcome = Run::new(model.clone())
        .tools(dozen())
        .defer(Defer::Always)
        .tool_choice(ToolChoice::Required)
        .max_tool_calls(1)
        .user("go")
        .await
        .unwrap();
    assert!(outcome.is_completed(), "{:?}", outcome.end);
    let choices: Vec<_> = model
        .received()
        .into_iter()
        .map(|request| request.tool_choice.unwrap())
        .collect();
    let required = ToolChoice::Required;
    assert_eq!(choices[..3], [required.clone(), required.clone(), required]);
    assert_eq!(choices[3], ToolChoice::Auto);
}

#[tokio::test]
async fn a_search_starts_a_model_anew_that_cannot_take_new_tools() {
    let model =
        Script::with_capabilities([find("s", "mail"), says("done")], Capabilities::default());
    let run = Run::new(model.clone()).tools(dozen()).defer(Defer::Always);
    let outcome = run.user("go").await.unwrap();
    assert_eq!(names(&model.received()[1]), ["search_tools", "mail_lookup"]);
    assert_eq!(outcome.counters.disclosure_restarts, 1);
}

#[tokio::test]
async fn a_run_that_dies_between_two_turns_goes_on_with_what_was_loaded() {
    let model = Script::new([find("s", "mail"), says("done"), says("resumed")]);
    let run = Run::new(model.clone()).tools(dozen()).defer(Defer::Always);
    let mut stream = run.user("go").start().unwrap();
    while let Some(event) = stream.next().await {
        if matches!(event.kind, EventKind::TurnStarted { turn: 2, .. }) {
            break;
        }
    }
    let stored = serde_json::to_string(stream.session()).unwrap();
    drop(stream);
    let session: Session = serde_json::from_str(&stored).unwrap();
    let run = Run::new(model.clone()).tools(dozen()).defer(Defer::Always);
    run.session(session).await.unwrap();
    let last = model.received().pop().unwrap();
    assert_eq!(names(&last), ["search_tools", "mail_lookup"]);
}

#[tokio::test]
async fn a_client_may_have_a_function_of_that_name() {
    let catalog = Catalog::new();
    let theirs = ToolDefinition::builder("search_tools")
        .parameters(json!({"type": "object"}))
        .defer(Defer::Never)
        .build()
        .unwrap();
    let binding = catalog.snapshot().bind().without_tools();
    let binding = binding.with_tools([theirs]).build().unwrap();
    let model = Script::new([says("done")]);
    Run::new(model.clone())
        .binding(binding)
        .tools(dozen())
        .defer(Defer::Always)
        .user("go")
        .await
        .unwrap();
    assert_eq!(
        names(&model.received()[0]),
        ["search_tools", "haft__search_tools"]
    );
}

#[tokio::test]
async fn a_call_by_name_with_valid_arguments_loads_and_runs_a_deferred_tool() {
    for is_dynamic in [true, false] {
        let capabilities = Capabilities {
            supports_dynamic_tools: is_dynamic,
            ..Capabilities::default()
        };
        let replies = [
            calls([("c1", "mail_lookup", r#"{"text":"x"}"#)]),
            says("one"),
            says("two"),
        ];
        let model = Script::with_capabilities(replies, capabilities);
        let run = Run::new(model.clone()).tools(dozen()).defer(Defer::Always);
        let mut stream = run.user("go").start().unwrap();
        let (mut loaded, mut injected) = (Vec::new(), Vec::new());
        while let Some(RunEvent { kind, .. }) = stream.next().await {
            match kind {
                EventKind::ToolLoaded { tool_name, call_id } => {
                    loaded.push((tool_name.to_string(), call_id));
                }
                EventKind::ToolsInjected { section_key, .. } => injected.push(section_key),
                _ => {}
            }
        }
        let outcome = stream.finish().await;
        assert_eq!(crate::texts(&outcome), ["x"]);
        assert!(outcome.tool_calls[0].loaded_by_call);
        assert_eq!(loaded, [("mail_lookup".to_owned(), "c1".to_owned())]);
        let list = ["search_tools", "mail_lookup"];
        assert_eq!(names(&model.received()[0]), ["search_tools"]);
        assert_eq!(names(&model.received()[1]), list);
        let (restarts, injections) = (u64::from(!is_dynamic), u64::from(is_dynamic));
        assert_eq!(outcome.counters.disclosure_restarts, restarts);
        assert_eq!(outcome.counters.tools_injected, injections);
        assert_eq!(injected.len() as u64, injections);
        // It stays loaded.
        let again = Run::new(model.clone())
            .tools(dozen())
            .session(outcome.session);
        again.defer(Defer::Always).user("more").await.unwrap();
        assert_eq!(names(&model.received()[2]), list);
    }
}

#[tokio::test]
async fn a_call_by_name_loads_nothing_that_the_request_does_not_allow() {
    let model = Script::new([
        calls([
            ("c1", "mail_lookup", r#"{"text":"x"}"#),
            ("c2", "map_lookup", r#"{"text":"y"}"#),
        ]),
        says("done"),
    ]);
    let allowed = haft_core::AllowedTools {
        mode: haft_core::AllowedMode::Auto,
        names: vec!["map_lookup".into()],
    };
    let mut tools = dozen();
    tools.retain(|tool| tool.definition().name().as_str() != "map_lookup");
    tools.push(tool("map_lookup", Defer::Always));
    let outcome = Run::new(model.clone())
        .tools(tools)
        .defer(Defer::Always)
        .tool_choice(ToolChoice::Allowed(allowed))
        .user("go")
        .await
        .unwrap();
    let texts = crate::texts(&outcome);
    assert!(!texts[0].contains('x'), "{texts:?}");
    assert_eq!(texts[1], "y");
    assert!(!outcome.tool_calls[0].loaded_by_call && outcome.tool_calls[1].loaded_by_call);
    let offered = names(&model.received()[1]);
    assert!(!offered.contains(&"mail_lookup".to_owned()), "{offered:?}");
}
