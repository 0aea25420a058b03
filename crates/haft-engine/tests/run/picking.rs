//! Tools that are shown in one line until they are picked.

use std::sync::Arc;

use haft_catalog::{BriefSchema, Catalog};
use haft_core::{
    Annotations, Capabilities, ModelRequest, ToolChoice, ToolDefinition, ToolError, ToolObject,
    ToolOutput, dynamic_tool,
};
use haft_engine::{EventKind, Run, RunEvent, Session};
use serde_json::{Value, json};

use crate::results;
use crate::script::{Script, calls, says};
use crate::tools::{definition, text_schema};

/// A tool with a long description, which fails if its text says so.
fn long(name: &str) -> Arc<dyn ToolObject> {
    let definition = ToolDefinition::builder(name)
        .description(format!(
            "Does {name}.\nAnd this is how it does it, at length."
        ))
        .parameters(text_schema())
        .build()
        .unwrap();
    dynamic_tool(definition, |arguments, _| async move {
        match arguments["text"].as_str() {
            Some("fail") => Err(ToolError::new("kaput")),
            text => Ok(ToolOutput::text(text.unwrap_or_default())),
        }
    })
}

fn tools() -> [Arc<dyn ToolObject>; 3] {
    ["bash", "read_file", "grep"].map(long)
}

fn run(model: &Script) -> Run {
    Run::new(model.clone())
        .tools(tools())
        .brief_until_picked()
        .user("go")
}

/// Each tool of a request: its name, and `full` or `brief`.
fn shown(request: &ModelRequest) -> Vec<String> {
    let tools = request.tools.iter().map(|tool| tool.definition());
    let how = |tool: &ToolDefinition| match tool.parameters() {
        Some(schema) if *schema == json!({"type": "object"}) => "brief",
        _ => "full",
    };
    tools
        .map(|tool| format!("{} {}", tool.name(), how(tool)))
        .collect()
}

fn pick_schema(request: &ModelRequest) -> Value {
    let mut tools = request.tools.iter().map(|tool| tool.definition());
    let pick = tools
        .find(|tool| tool.name().as_str() == "pick_tools")
        .unwrap();
    assert_eq!(
        pick.description(),
        Some("Select tools to get their full specifications")
    );
    pick.parameters().unwrap().clone()
}

#[tokio::test]
async fn a_pick_shows_tools_in_full_from_the_next_request_on_in_their_place() {
    let model = Script::new([
        calls([(
            "p",
            "pick_tools",
            r#"{"tools":["grep","bash","grep","nope"]}"#,
        )]),
        calls([("c", "bash", r#"{"text":"x"}"#)]),
        says("done"),
    ]);
    let outcome = run(&model).await.unwrap();
    let requests = model.received();
    assert_eq!(
        shown(&requests[0]),
        [
            "bash brief",
            "read_file brief",
            "grep brief",
            "pick_tools full"
        ]
    );
    assert_eq!(
        pick_schema(&requests[0]),
        json!({
            "type": "object",
            "properties": {"tools": {
                "type": "array", "description": "Tool names to select", "minItems": 1,
                "items": {"type": "string", "enum": ["bash", "read_file", "grep"]},
            }},
            "required": ["tools"],
            "additionalProperties": false,
        })
    );
    assert_eq!(
        shown(&requests[1]),
        [
            "bash full",
            "read_file brief",
            "grep full",
            "pick_tools full"
        ]
    );
    assert_eq!(
        pick_schema(&requests[1])["properties"]["tools"]["items"]["enum"],
        json!(["read_file"])
    );
    assert_eq!(
        crate::texts(&outcome),
        [
            "Selected grep, bash. Full specs available next turn. Unknown tools ignored: nope.",
            "x"
        ]
    );
    assert_eq!(outcome.counters.tools_picked, 2);
    let first = requests[0].tools.iter().next().unwrap().definition();
    assert_eq!(first.description(), Some("Does bash."));
}

/// R17
#[tokio::test]
async fn a_pick_of_nothing_is_an_error_that_says_what_there_is() {
    let model = Script::new([
        calls([
            ("a", "pick_tools", r#"{"tools":["x","y"]}"#),
            ("b", "pick_tools", r#"{"tools":[]}"#),
            ("c", "pick_tools", r#"{"tools":[1]}"#),
        ]),
        says("done"),
    ]);
    let outcome = run(&model).await.unwrap();
    let texts = crate::texts(&outcome);
    assert_eq!(
        texts[0],
        "Unknown tools: x, y. Available: bash, read_file, grep."
    );
    assert_eq!(texts[1], "No tools given. Put tool names in \"tools\".");
    assert!(texts[2].starts_with("Tool 'pick_tools': invalid arguments: "));
    assert!(results(&outcome).iter().all(|result| result.is_error));
    assert_eq!(outcome.counters.tools_picked, 0);
}

#[tokio::test]
async fn to_call_a_tool_is_to_pick_it_also_when_it_fails_and_not_when_it_is_invalid() {
    let model = Script::new([
        calls([
            ("a", "bash", r#"{"text":"fail"}"#),
            ("b", "grep", r#"{"nonsense":1}"#),
        ]),
        says("done"),
    ]);
    let mut stream = run(&model).start().unwrap();
    let mut auto = Vec::new();
    while let Some(RunEvent { kind, .. }) = stream.next().await {
        if let EventKind::ToolInvoked {
            tool_name,
            auto_picked,
            ..
        } = kind
        {
            auto.push((tool_name, auto_picked));
        }
    }
    let outcome = stream.finish().await;
    auto.sort();
    assert_eq!(
        auto,
        [("bash".to_owned(), true), ("grep".to_owned(), false)]
    );
    assert_eq!(
        shown(&model.received()[1]),
        [
            "bash full",
            "read_file brief",
            "grep brief",
            "pick_tools full"
        ]
    );
    assert_eq!(
        crate::texts(&outcome)[1],
        "Tool 'grep': invalid arguments: unexpected field 'nonsense' Call pick_tools with [\"grep\"] \
         to see its parameters."
    );
    assert_eq!(outcome.counters.tools_picked, 1);
}

#[tokio::test]
async fn a_pick_and_a_call_in_one_turn_both_run_and_pick_tools_goes_when_all_are_picked() {
    let model = Script::new([
        calls([
            ("p", "pick_tools", r#"{"tools":["bash","grep"]}"#),
            ("a", "bash", r#"{"text":"x"}"#),
            ("b", "read_file", r#"{"text":"y"}"#),
        ]),
        says("done"),
    ]);
    let outcome = run(&model).await.unwrap();
    assert_eq!(crate::texts(&outcome)[1..], ["x", "y"]);
    assert_eq!(
        shown(&model.received()[1]),
        ["bash full", "read_file full", "grep full"]
    );
    assert_eq!(outcome.counters.tools_picked, 3);
}

#[tokio::test]
async fn picks_end_with_the_answer_unless_they_are_kept() {
    for keeps in [false, true] {
        let model = Script::new([
            calls([("p", "pick_tools", r#"{"tools":["bash"]}"#)]),
            says("one"),
            says("two"),
        ]);
        let first = run(&model);
        let first = if keeps { first.keep_picks() } else { first };
        let first = first.await.unwrap();
        let stored = serde_json::to_string(&first.session).unwrap();
        let session: Session = serde_json::from_str(&stored).unwrap();
        run(&model).session(session).await.unwrap();
        let how = if keeps { "bash full" } else { "bash brief" };
        assert_eq!(shown(&model.received()[2])[0], how);
    }
}

/// R27
#[tokio::test]
async fn picks_of_one_conversation_are_not_those_of_another() {
    let model = Script::new([
        calls([("p", "pick_tools", r#"{"tools":["bash"]}"#)]),
        says("one"),
        says("two"),
    ]);
    run(&model).keep_picks().await.unwrap();
    run(&model).keep_picks().await.unwrap();
    assert_eq!(shown(&model.received()[2])[0], "bash brief");
}

#[tokio::test]
async fn a_forced_tool_is_picked_before_the_first_request() {
    let model = Script::new([calls([("c", "grep", r#"{"text":"x"}"#)]), says("done")]);
    let forced = ToolChoice::Function("grep".into());
    run(&model).tool_choice(forced).await.unwrap();
    assert_eq!(
        shown(&model.received()[0]),
        [
            "bash brief",
            "read_file brief",
            "grep full",
            "pick_tools full"
        ]
    );
}

#[tokio::test]
async fn parameters_can_be_kept_in_brief() {
    let model = Script::new([says("done")]);
    Run::new(model.clone())
        .tools(tools())
        .brief_schema(BriefSchema::Keep)
        .user("go")
        .await
        .unwrap();
    let request = &model.received()[0];
    assert_eq!(shown(request)[0], "bash full");
    let first = request.tools.iter().next().unwrap().definition();
    assert_eq!(first.description(), Some("Does bash."));
}

#[tokio::test]
async fn a_pick_starts_a_model_anew_that_cannot_take_new_tools() {
    let model = Script::with_capabilities(
        [
            calls([("p", "pick_tools", r#"{"tools":["bash"]}"#)]),
            says("done"),
        ],
        Capabilities::default(),
    );
    let outcome = run(&model).await.unwrap();
    assert_eq!(shown(&model.received()[1])[0], "bash full");
    assert_eq!(outcome.counters.disclosure_restarts, 1);
    assert_eq!(model.received().len(), 2);
}

#[tokio::test]
async fn injected_tools_are_shown_in_full_behind_pick_tools() {
    use haft_catalog::prompt::{PromptTemplate, Section, Visibility};
    let prompt = PromptTemplate::<String>::new("test", "picks")
        .section(
            Section::new("more", "More")
                .body("All.")
                .summary("Some.")
                .visibility(Visibility::Summary)
                .tool(dynamic_tool(
                    definition("late", Annotations::default()),
                    |_, _| async { Ok(ToolOutput::text("late")) },
                )),
        )
        .build()
        .unwrap();
    let model = Script::new([
        calls([("r", "read_section", r#"{"section_key":"more"}"#)]),
        says("done"),
    ]);
    run(&model).prompt(&prompt).await.unwrap();
    assert_eq!(
        shown(&model.received()[1]),
        [
            "bash brief",
            "read_file brief",
            "grep brief",
            "read_section full",
            "pick_tools full",
            "late full"
        ]
    );
}

/// R38
#[tokio::test]
async fn the_host_picks_between_runs() {
    let binding = Catalog::new().snapshot().bind().without_tools();
    let binding = binding.with_tools(tools()).build().unwrap();
    let mut session = Session::new();
    let unknown = session.pick(&binding, ["bash", "nope"]).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "no tool is called nope: pick among those of the binding"
    );
    assert!(session.picked().unwrap().is_empty());
    session.pick(&binding, ["bash"]).unwrap();
    let model = Script::new([says("one"), says("two")]);
    let outcome = run(&model).keep_picks().session(session).await.unwrap();
    assert_eq!(shown(&model.received()[0])[0], "bash full");
    let mut session = outcome.session;
    assert_eq!(session.picked().unwrap().len(), 1);
    session.clear_picked().unwrap();
    run(&model).session(session).await.unwrap();
    assert_eq!(shown(&model.received()[1])[0], "bash brief");
}
