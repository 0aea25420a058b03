//! A run with a section to read and tools to find, over loopback.

use std::sync::Arc;

use haft_catalog::prompt::{Prompt, PromptTemplate, Section, Visibility};
use haft_core::{Annotations, Defer, Model, ToolDefinition, ToolObject, ToolOutput, dynamic_tool};
use haft_engine::{EventKind, Outcome, Run, RunEvent};
use haft_models::testing::{Protocol, ScriptedServer, Step, call, say};
use haft_models::{Anthropic, CapabilityOverrides, Ollama, OpenAiChat, OpenAiResponses};
use serde_json::json;

/// What is held back.
const HELD: [(&str, &str); 12] = [
    (
        "convert_currency",
        "Converts an amount of money from one currency to another.",
    ),
    (
        "create_issue",
        "Opens a new issue in the tracker of a repository.",
    ),
    ("send_mail", "Sends a mail to somebody."),
    ("list_flights", "Lists flights between two airports."),
    ("book_hotel", "Books a room in a hotel."),
    ("translate_text", "Translates a text to another language."),
    ("resize_image", "Resizes a picture."),
    ("play_song", "Plays a song on a loudspeaker."),
    ("set_alarm", "Sets an alarm for a time of day."),
    ("find_recipe", "Finds a recipe for a meal."),
    (
        "measure_distance",
        "Measures the distance between two places.",
    ),
    ("print_document", "Prints a document on paper."),
];

pub fn definition(name: &str, description: &str, defer: Defer) -> Arc<ToolDefinition> {
    let definition = ToolDefinition::builder(name)
        .description(description)
        .parameters(json!({
            "type": "object",
            "properties": {"text": {"type": "string", "description": "What it is about."}},
            "required": ["text"],
            "additionalProperties": false,
        }))
        .annotations(Annotations {
            defer,
            ..Annotations::default()
        });
    definition.build().unwrap()
}

pub fn tool(name: &str, description: &str, defer: Defer) -> Arc<dyn ToolObject> {
    let definition = definition(name, description, defer);
    let name = name.to_owned();
    dynamic_tool(definition, move |arguments, _| {
        let text = format!("{name} of {}", arguments["text"]);
        async move { Ok(ToolOutput::text(text)) }
    })
}

/// One tool that is always there, and those that are held back.
pub fn tools() -> Vec<Arc<dyn ToolObject>> {
    let held = HELD.map(|(name, description)| tool(name, description, Defer::Always));
    let mut tools = vec![tool("ping", "Says that it is there.", Defer::Never)];
    tools.extend(held);
    tools
}

/// A prompt with a section that is summed up.
pub fn prompt() -> Prompt {
    PromptTemplate::new("test", "prefix")
        .section(Section::new("task", "Task").body("Answer questions."))
        .section(
            Section::new("ref", "Reference")
                .body("All notes.")
                .summary("Notes.")
                .visibility(Visibility::Summary)
                .tools([
                    tool("look_up", "Looks a note up.", Defer::Auto),
                    tool("cite", "Cites a note.", Defer::Auto),
                ]),
        )
        .build()
        .unwrap()
}

/// An adapter of this protocol.
pub fn adapter(
    protocol: Protocol,
    server: &ScriptedServer,
    overrides: CapabilityOverrides,
) -> Arc<dyn Model> {
    let (root, base) = (server.url(), server.base_url());
    match protocol {
        Protocol::ChatCompletions => Arc::new(OpenAiChat::new("m").base_url(&base)),
        Protocol::Responses => Arc::new(
            OpenAiResponses::new("m")
                .base_url(&base)
                .with_capabilities(overrides),
        ),
        Protocol::Messages => Arc::new(
            Anthropic::new("m")
                .base_url(&root)
                .with_capabilities(overrides),
        ),
        Protocol::Ollama => Arc::new(Ollama::new("m").base_url(&root)),
    }
}

/// A script that reads a section, uses its tools, and searches twice with haft's own search.
pub fn searching() -> Vec<Step> {
    let about = |text: &str| json!({"text": text});
    vec![
        call("ping", about("first")),
        call("read_section", json!({"section_key": "ref"})),
        call("look_up", about("a note")).call(
            "search_tools",
            json!({"query": "convert money currency", "limit": 2}),
        ),
        call("convert_currency", about("1 EUR")).call("cite", about("it")),
        call(
            "search_tools",
            json!({"query": "open an issue in the tracker", "limit": 2}),
        ),
        call("create_issue", about("a bug")),
        say("done"),
    ]
}

/// What became of a run.
pub struct Ran {
    pub outcome: Outcome,
    pub events: Vec<RunEvent>,
}

impl Ran {
    /// Which tools came, and by what.
    pub fn injected(&self) -> Vec<(String, Vec<String>)> {
        let injected = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::ToolsInjected {
                tool_names,
                section_key,
                ..
            } => {
                let names = tool_names.iter().map(ToString::to_string);
                Some((section_key.clone(), names.collect()))
            }
            _ => None,
        });
        injected.collect()
    }

    /// The calls and how each ended.
    pub fn calls(&self) -> Vec<(String, bool)> {
        let calls = self.outcome.tool_calls.iter();
        calls
            .map(|call| {
                (
                    call.tool_name.clone(),
                    call.result.as_ref().is_some_and(|it| !it.is_error),
                )
            })
            .collect()
    }
}

/// Runs to the end.
pub async fn drive(run: Run) -> Ran {
    let mut stream = run.start().unwrap();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    let outcome = stream.finish().await;
    assert!(outcome.is_completed(), "{:?}", outcome.end);
    Ran { outcome, events }
}

/// A run with everything.
pub fn run(model: Arc<dyn Model>) -> Run {
    Run::new(model).prompt(&prompt()).tools(tools()).user("go")
}
