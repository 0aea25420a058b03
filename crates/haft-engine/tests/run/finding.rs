//! Tools that are held back until the model finds them.

use std::sync::Arc;

use haft_core::{
    AllowedMode, AllowedTools, Annotations, Capabilities, Defer, ModelRequest, ToolChoice,
    ToolName, ToolObject, ToolOutput,
};
use haft_engine::{EventKind, Run, RunEvent};

use crate::script::{Reply, Script, calls, says};
use crate::tools::{annotated, echo};

fn held(name: &str) -> Arc<dyn ToolObject> {
    let annotations = Annotations {
        defer: Defer::Always,
        ..Annotations::default()
    };
    annotated(name, annotations, |text| Ok(ToolOutput::text(text)))
}

fn tools() -> [Arc<dyn ToolObject>; 3] {
    [echo(), held("book_flight"), held("play_music")]
}

fn search(words: &str) -> Reply {
    search_as("s1", words)
}

fn search_as(call_id: &str, words: &str) -> Reply {
    calls([(
        call_id,
        "search_tools",
        &*format!(r#"{{"query":"{words}","limit":1}}"#),
    )])
}

fn names(request: &ModelRequest) -> Vec<String> {
    let tools = request.tools.iter();
    tools
        .map(|tool| tool.definition().name().to_string())
        .collect()
}

async fn told(run: Run) -> Vec<RunEvent> {
    let mut stream = run.start().unwrap();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    events
}

#[tokio::test]
async fn what_a_search_found_is_told_before_its_end_whatever_the_model_can_take() {
    let fixed = Capabilities::default();
    let dynamic = Capabilities {
        supports_dynamic_tools: true,
        ..Capabilities::default()
    };
    for capabilities in [fixed, dynamic] {
        let replies = [
            search("book flight"),
            search_as("s2", "qqqq zzzz"),
            says("done"),
        ];
        let model = Script::with_capabilities(replies, capabilities);
        let events = told(Run::new(model.clone()).tools(tools()).user("go")).await;
        let found: Vec<_> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::ToolsFound {
                    call_id,
                    tool_names,
                } => Some(format!("{call_id} found {}", tool_names.len())),
                EventKind::ToolInvoked { tool_name, .. } => Some(format!("{tool_name} ended")),
                _ => None,
            })
            .collect();
        assert_eq!(
            found,
            [
                "s1 found 1",
                "search_tools ended",
                "s2 found 0",
                "search_tools ended"
            ]
        );
        let requests = model.received();
        assert_eq!(names(&requests[0]), ["echo", "search_tools"]);
        assert_eq!(names(&requests[2]), ["echo", "search_tools", "book_flight"]);
    }
}

#[tokio::test]
async fn what_was_loaded_before_comes_last_in_its_order_held_back_or_not() {
    let model = Script::new([says("done")]);
    let loaded = ["play_music", "echo"].map(|name| ToolName::new(name).unwrap());
    let run = Run::new(model.clone()).tools(tools()).loaded(loaded);
    run.user("go").await.unwrap();
    assert_eq!(
        names(&model.received()[0]),
        ["search_tools", "play_music", "echo"]
    );
}

#[tokio::test]
async fn the_search_says_what_there_is_to_be_found() {
    let model = Script::new([says("done")]);
    let run = Run::new(model.clone())
        .tools(tools())
        .search_note("It finds flights.");
    run.user("go").await.unwrap();
    let request = &model.received()[0];
    let mut shown = request.tools.iter().map(|tool| tool.definition());
    let search = shown
        .find(|tool| tool.name().as_str() == "search_tools")
        .unwrap();
    let words = search.description().unwrap();
    assert!(words.starts_with("Find tools by what they do."), "{words}");
    assert!(words.ends_with("\n\nIt finds flights."), "{words}");
}

#[tokio::test]
async fn a_permitted_tool_stays_held_back_and_may_be_searched_for_where_a_demanded_one_is_shown() {
    let permitted = ToolChoice::Allowed(AllowedTools {
        mode: AllowedMode::Auto,
        names: vec!["book_flight".to_owned()],
    });
    let model = Script::new([
        search("book flight"),
        calls([("c1", "book_flight", r#"{"text":"oslo"}"#)]),
        says("done"),
    ]);
    let run = Run::new(model.clone())
        .tools(tools())
        .tool_choice(permitted);
    let outcome = run.user("go").await.unwrap();
    assert_eq!(crate::texts(&outcome)[1], "oslo");
    let requests = model.received();
    assert_eq!(names(&requests[0]), ["echo", "search_tools"]);
    let Some(ToolChoice::Allowed(sent)) = &requests[0].tool_choice else {
        panic!("{:?}", requests[0].tool_choice);
    };
    assert_eq!(sent.names, ["book_flight", "search_tools"]);

    let model = Script::new([
        calls([("c1", "book_flight", r#"{"text":"oslo"}"#)]),
        says("done"),
    ]);
    let demanded = ToolChoice::Function("book_flight".to_owned());
    let run = Run::new(model.clone()).tools(tools()).tool_choice(demanded);
    run.user("go").await.unwrap();
    assert_eq!(
        names(&model.received()[0]),
        ["echo", "book_flight", "search_tools"]
    );
}
