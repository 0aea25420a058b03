//! Whatever a model answers, in whatever order its pieces and the results of its calls come: the
//! stream is legal.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use futures_util::{StreamExt as _, stream};
use haft_core::{
    BoxFuture, Capabilities, ContentPart, Defer, FinishReason, FunctionCall, Item, ItemKind,
    Message, Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream, Reasoning,
    Role, Usage,
};
use haft_engine::LoopOptions;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::stage::{Stage, asking, echo, function};
use crate::stream::Dialect;
use crate::stream::legal::check;

/// A model that answers by chance, the same for the same seed.
struct Whim {
    random: Mutex<Rng>,
    left: Mutex<u32>,
    /// What it said, item by item.
    said: Arc<Mutex<Vec<String>>>,
    /// Whether it searches for tools.
    searches: bool,
}

impl Whim {
    fn new(seed: u64, searches: bool) -> Self {
        let mut random = Rng::with_seed(seed);
        let left = Mutex::new(random.u32(1..=5));
        Self {
            random: Mutex::new(random),
            left,
            said: Arc::default(),
            searches,
        }
    }
}

impl Model for Whim {
    fn name(&self) -> &'static str {
        "whim"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            supports_dynamic_tools: true,
            parallel_calls: true,
            none_choice: true,
            structured_output: true,
            structured_output_with_tools: true,
            ..Capabilities::default()
        }
    }

    fn send(&self, _: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let mut random = self.random.lock().unwrap();
        let mut left = self.left.lock().unwrap();
        *left = left.saturating_sub(1);
        let mut items: Vec<_> = if *left == 0 {
            vec![message(&mut Rng::with_seed(1), "done")]
        } else {
            (0..random.usize(0..5)).map(|_| item(&mut random)).collect()
        };
        if self.searches {
            for item in &mut items {
                search(&mut random, item);
            }
        }
        let said = items.iter().map(|item| essence(&json!(item)));
        self.said.lock().unwrap().extend(said);
        let events = answer(&mut random, items);
        let pause = Duration::from_millis(random.u64(0..400));
        let stream: ModelStream = Box::pin(stream::iter(events).then(move |event| async move {
            tokio::time::sleep(pause).await;
            event
        }));
        Box::pin(std::future::ready(Ok(stream)))
    }
}

const WORDS: [&str; 6] = ["", "a", "bee ", "{\"ok\":true}", "ü", "\n"];

fn words(random: &mut Rng) -> String {
    (0..random.usize(0..4))
        .map(|_| WORDS[random.usize(..WORDS.len())])
        .collect()
}

fn message(random: &mut Rng, text: &str) -> Item {
    let mut content = vec![ContentPart::output_text(text)];
    if random.u8(0..6) == 0 {
        content.push(ContentPart::Refusal {
            refusal: words(random),
        });
    }
    Item::Message(Message {
        id: (random.u8(0..3) == 0).then(|| "msg_same".to_owned()),
        status: None,
        role: Role::Assistant,
        content,
        extra: Map::new(),
    })
}

fn item(random: &mut Rng) -> Item {
    match random.u8(0..8) {
        0 | 1 => {
            let text = words(random);
            message(random, &text)
        }
        2 => Item::Reasoning(Reasoning {
            summary: (0..random.usize(0..3))
                .map(|_| ContentPart::SummaryText {
                    text: words(random),
                })
                .collect(),
            content: (0..random.usize(0..2))
                .map(|_| ContentPart::ReasoningText {
                    text: words(random),
                })
                .collect(),
            encrypted_content: random.bool().then(|| "sealed".to_owned()),
            ..Reasoning::default()
        }),
        _ => {
            let names = [
                "look",
                "listen",
                "echo",
                "other",
                "patch",
                "sky__look",
                "air__find",
                "air__book",
                "nobody",
            ];
            let arguments = match random.u8(0..6) {
                0 => String::new(),
                1 => "{\"text\": \"cut".to_owned(),
                2 => json!({"fail": true, "wait": random.u8(0..5)}).to_string(),
                3 => json!({"input": words(random)}).to_string(),
                _ => json!({"text": words(random), "wait": random.u8(0..9)}).to_string(),
            };
            let call_id = match random.u8(0..5) {
                0 => String::new(),
                1 => "call_same".to_owned(),
                _ => format!("call_{}", random.u32(..)),
            };
            Item::FunctionCall(FunctionCall {
                id: None,
                status: None,
                call_id,
                name: names[random.usize(..names.len())].to_owned(),
                arguments,
                extra: Map::new(),
            })
        }
    }
}

/// Makes some calls searches.
fn search(random: &mut Rng, item: &mut Item) {
    const QUERIES: [&str; 4] = ["listen", "look sky patch", "find book", "qqqq"];
    if let Item::FunctionCall(call) = item
        && matches!(&*call.name, "nobody" | "other" | "look")
    {
        "search_tools".clone_into(&mut call.name);
        if random.u8(0..5) > 0 {
            let query = QUERIES[random.usize(..QUERIES.len())];
            call.arguments = json!({"query": query, "limit": random.u8(1..4)}).to_string();
        }
    }
}

/// The pieces of one item, in order.
fn pieces(random: &mut Rng, index: usize, item: Item) -> VecDeque<ModelEvent> {
    let mut events = VecDeque::new();
    let kind = match &item {
        Item::Message(_) => ItemKind::Message,
        Item::Reasoning(_) => ItemKind::Reasoning,
        Item::FunctionCall(call) => ItemKind::FunctionCall {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            recovered: call.is_recovered(),
        },
        other => ItemKind::Other {
            item_type: other.kind().to_owned(),
        },
    };
    events.push_back(ModelEvent::ItemStarted {
        index,
        id: item.id().map(str::to_owned),
        kind,
    });
    // Some providers tell nothing before an item is whole.
    if random.u8(0..4) > 0 {
        let cut = |random: &mut Rng, text: &str| -> Vec<String> {
            let middle = random.usize(0..=text.chars().count());
            let at = text.char_indices().nth(middle);
            let (one, two) = text.split_at(at.map_or(text.len(), |(at, _)| at));
            vec![one.to_owned(), two.to_owned()]
        };
        match &item {
            Item::Message(message) => {
                for part in &message.content {
                    let (is_refusal, text) = match part {
                        ContentPart::Refusal { refusal } => (true, refusal.as_str()),
                        other => (false, other.text().unwrap_or_default()),
                    };
                    events.extend(cut(random, text).into_iter().map(|text| {
                        if is_refusal {
                            ModelEvent::RefusalDelta { index, text }
                        } else {
                            ModelEvent::TextDelta { index, text }
                        }
                    }));
                }
            }
            Item::Reasoning(reasoning) => {
                for (part, summary) in reasoning.summary.iter().enumerate() {
                    let text = summary.text().unwrap_or_default();
                    let deltas = cut(random, text).into_iter();
                    events.extend(deltas.map(|text| ModelEvent::SummaryDelta {
                        index,
                        part,
                        text,
                    }));
                }
                for part in &reasoning.content {
                    let deltas = cut(random, part.text().unwrap_or_default()).into_iter();
                    events.extend(deltas.map(|text| ModelEvent::ReasoningDelta { index, text }));
                }
            }
            Item::FunctionCall(call) => {
                let deltas = cut(random, &call.arguments).into_iter();
                events.extend(deltas.map(|text| ModelEvent::ArgumentsDelta { index, text }));
            }
            _ => {}
        }
    }
    events.push_back(ModelEvent::ItemDone { index, item });
    events
}

/// An answer of these items, their pieces mixed; they begin in order.
fn answer(random: &mut Rng, items: Vec<Item>) -> Vec<Result<ModelEvent, ModelError>> {
    let mut waiting: Vec<_> = items
        .into_iter()
        .enumerate()
        .map(|(index, item)| pieces(random, index, item))
        .collect();
    let mut events = vec![Ok(ModelEvent::Started {
        response_id: None,
        model: None,
    })];
    let is_mixed = random.bool();
    waiting.retain(|pieces| !pieces.is_empty());
    while !waiting.is_empty() {
        let is_start =
            |event: Option<&ModelEvent>| matches!(event, Some(ModelEvent::ItemStarted { .. }));
        let begun = waiting.iter().take_while(|it| !is_start(it.front()));
        let choice = (begun.count() + 1).min(waiting.len());
        let which = if is_mixed { random.usize(..choice) } else { 0 };
        events.extend(waiting[which].pop_front().map(Ok));
        waiting.retain(|pieces| !pieces.is_empty());
    }
    let finish = match random.u8(0..10) {
        0 => FinishReason::Length,
        1 => FinishReason::ContentFilter,
        2 => {
            events.truncate(random.usize(0..=events.len()));
            let error = ModelError::new(ModelErrorKind::InvalidRequest, "it broke");
            events.push(Err(error));
            return events;
        }
        _ => FinishReason::Normal,
    };
    events.push(Ok(ModelEvent::Finished {
        finish,
        usage: Some(Usage {
            input_tokens: 3,
            output_tokens: 5,
            ..Usage::default()
        }),
    }));
    events
}

/// A request by chance.
fn request(random: &mut Rng) -> Value {
    let approval = match random.u8(0..3) {
        0 => json!("always"),
        1 => json!("never"),
        _ => json!({"never": {"tool_names": ["find"]}}),
    };
    let tools = json!([
        function("look"), function("listen"), {"type": "haft:echo"}, {"type": "haft:other"},
        {"type": "custom", "name": "patch"},
        {"type": "namespace", "name": "sky", "tools": [function("look")]},
        {"type": "mcp", "server_label": "air", "require_approval": approval},
    ]);
    let allowed = |mode: &str| {
        json!({"type": "allowed_tools", "mode": mode, "tools": [
            {"type": "function", "name": "look"}, {"type": "haft:echo"},
        ]})
    };
    let mut body = json!({"input": "go", "stream": random.bool(), "tools": tools});
    body["tool_choice"] = match random.u8(0..10) {
        0 => "none".into(),
        1 => "required".into(),
        2 => json!({"type": "function", "name": "look"}),
        3 => json!({"type": "haft:echo"}),
        4 => allowed("auto"),
        5 => allowed("required"),
        6 => allowed("none"),
        _ => "auto".into(),
    };
    body["parallel_tool_calls"] = random.bool().into();
    if random.bool() {
        body["max_tool_calls"] = random.u32(1..3).into();
    }
    if random.u8(0..4) == 0 {
        body["text"] = json!({"format": {"type": "json_schema", "name": "ok", "strict": true,
            "schema": {"type": "object", "properties": {"ok": {"type": "boolean"}},
                "required": ["ok"], "additionalProperties": false}}});
    }
    if random.bool() {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    body
}

/// What an item says, whoever writes it down.
fn essence(item: &Value) -> String {
    let words = |list: &Value, key: &str| -> Vec<String> {
        let parts = list.as_array().into_iter().flatten();
        let parts = parts.filter_map(|part| part[key].as_str());
        let parts = parts.filter(|text| !text.is_empty());
        parts.map(str::to_owned).collect()
    };
    match item["type"].as_str().unwrap_or_default() {
        "message" => format!(
            "says {:?} refuses {:?}",
            words(&item["content"], "text").concat(),
            words(&item["content"], "refusal").concat()
        ),
        "reasoning" => format!(
            "thinks {:?} sums up {:?}",
            words(&item["content"], "text").concat(),
            words(&item["summary"], "text")
        ),
        _ => {
            let arguments = item["arguments"].as_str().unwrap_or_default();
            format!(
                "calls {}",
                if arguments.is_empty() {
                    "{}"
                } else {
                    arguments
                }
            )
        }
    }
}

/// What is shown is what the model said, each item once; items may be left out, words may not.
fn only_said(said: &[String], events: &[Value]) -> Result<(), String> {
    let Some(output) = events
        .last()
        .and_then(|last| last["response"]["output"].as_array())
    else {
        return Ok(());
    };
    let mut said = said.to_vec();
    for item in output {
        let kind = item["type"].as_str().unwrap_or_default();
        let is_empty = item["content"][0]["text"] == "" && kind == "message";
        let is_cut = item["status"] == "incomplete"
            || item["error"]["type"] == "not_executed"
            || kind == "mcp_call" && item["error"]["code"] == -32000;
        if kind == "mcp_list_tools"
            || kind == "custom_tool_call"
            || kind == "tool_search_call"
            || kind.ends_with("_output")
            || is_empty
            || is_cut
        {
            continue;
        }
        let essence = match item["arguments"].as_str() {
            Some("") => "calls {}".to_owned(),
            _ => essence(item),
        };
        let Some(at) = said.iter().position(|said| *said == essence) else {
            return Err(format!("nobody said this: {essence}"));
        };
        said.remove(at);
    }
    Ok(())
}

/// Calls outside of the choice never appear.
fn only_permitted(body: &Value, events: &[Value]) -> Result<(), String> {
    let choice = &body["tool_choice"];
    let permits = |item: &Value| match (choice.as_str(), choice["mode"].as_str()) {
        (Some("none"), _) | (_, Some("none")) => false,
        // Whoever may call a tool may search for it.
        _ if item["type"] == "tool_search_call" => true,
        (_, Some(_)) => {
            item["type"] == "haft:echo" || item["name"] == "look" && item["namespace"].is_null()
        }
        _ => true,
    };
    for event in events {
        let item = &event["item"];
        let kind = item["type"].as_str().unwrap_or_default();
        let is_of_server = kind == "mcp_call" || kind == "mcp_approval_request";
        let is_call = (is_of_server || item.get("call_id").is_some())
            && !item["type"]
                .as_str()
                .unwrap_or_default()
                .ends_with("_output");
        if is_call && !permits(item) {
            return Err(format!("a call that is not permitted appears: {event}"));
        }
    }
    Ok(())
}

/// Whether the arguments of a call fit the schema that all tools here have.
fn has_valid_arguments(call: &Value) -> bool {
    let Some(arguments) = call["arguments"].as_str() else {
        return call["input"].is_string();
    };
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    arguments.is_object() && (arguments["text"].is_null() || arguments["text"].is_string())
}

/// A search is followed by what it found, and a deferred tool is called only if it was found or the call's
/// arguments are valid, which loads it.
fn only_found(is_said: bool, events: &[Value]) -> Result<(), String> {
    let Some(last) = events.last() else {
        return Ok(());
    };
    let output = last["response"]["output"].as_array();
    let output: Vec<&Value> = output.into_iter().flatten().collect();
    let is = |item: Option<&&Value>, kind: &str| item.is_some_and(|item| item["type"] == kind);
    let mut found = String::new();
    for (at, item) in output.iter().enumerate() {
        match item["type"].as_str().unwrap_or_default() {
            kind if kind.starts_with("tool_search") && !is_said => {
                return Err(format!("a search that nobody asked for: {item}"));
            }
            "tool_search_call" if !is(output.get(at + 1), "tool_search_output") => {
                return Err(format!("a search without an end: {item}"));
            }
            "tool_search_output" if !is(output.get(at.wrapping_sub(1)), "tool_search_call") => {
                return Err(format!("an end without a search: {item}"));
            }
            "tool_search_output" => found.push_str(&item["tools"].to_string()),
            "function_call" | "custom_tool_call" | "mcp_call" if is_said => {
                let is_offered = item["name"] == "look" && item["namespace"].is_null();
                let is_found = found.contains(&item["name"].to_string());
                if !is_offered && !is_found && !has_valid_arguments(item) {
                    return Err(format!("nobody found this: {item}"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Defers most tools of a request, and says by whom they are found or leaves it to the server.
fn defer(body: &mut Value, is_said: bool) {
    let Some(tools) = body["tools"].as_array_mut() else {
        return;
    };
    if is_said {
        for tool in tools.iter_mut() {
            let is_offered = tool["name"] == "look" || tool["type"].to_string().contains("haft:");
            if !is_offered {
                tool["defer_loading"] = true.into();
            }
        }
        tools.push(json!({"type": "tool_search"}));
    }
}

/// What is held back in a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Nothing,
    /// What the request says.
    Said,
    /// Everything, without a word.
    Unsaid,
}

/// Runs one seed; gives what is wrong with its stream.
fn play(seed: u64) -> Result<(), String> {
    play_held(seed, Held::Nothing)
}

fn play_held(seed: u64, held: Held) -> Result<(), String> {
    let mut random = Rng::with_seed(seed);
    let mut body = request(&mut random);
    defer(&mut body, held == Held::Said);
    let model = Whim::new(random.u64(..), held != Held::Nothing);
    let said = Arc::clone(&model.said);
    let limits = LoopOptions {
        max_rounds: random.u32(1..4),
        deadline: (random.u8(0..5) == 0).then(|| Duration::from_secs(random.u64(1..9))),
        max_total_tokens: (random.u8(0..5) == 0).then(|| random.u64(1..30)),
        max_parallel: random.usize(1..4),
        tool_timeout: Duration::from_secs(4),
        final_turn: random.bool(),
        defer: match held {
            Held::Unsaid => Defer::Always,
            Held::Nothing | Held::Said => Defer::Auto,
        },
        ..LoopOptions::default()
    };
    let other = if random.bool() { echo } else { asking };
    let mut stage = Stage::bounded(model, vec![echo("echo"), other("other")], limits);
    if random.u8(0..6) == 0 {
        stage.cancel_after = Some(random.usize(1..20));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let played = runtime.block_on(stage.play(body.clone()));
    for dialect in [Dialect::OpenResponses, Dialect::OpenAi] {
        let events = played.events(dialect);
        let said = said.lock().unwrap();
        let told = check(&events)
            .and_then(|()| only_permitted(&body, &events))
            .and_then(|()| only_found(held == Held::Said, &events))
            .and_then(|()| only_said(&said, &events));
        told.map_err(|problem| {
            let lines = events.iter().map(Value::to_string).collect::<Vec<_>>();
            let said = said.join("\n");
            format!(
                "seed {seed}\n{body}\n{said}\n{problem}\n\n{}",
                lines.join("\n")
            )
        })?;
    }
    Ok(())
}

/// The time, or the output, is over while one call is half written and another, which somebody would be asked about,
/// waits behind it.
#[test]
fn a_held_call_never_follows_an_item_that_was_cut_off() {
    play(13_214_172_710_606_987_714).unwrap();
    play(10_710_685_201_855_503_836).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_run_gives_a_legal_stream(seed: u64) {
        if let Err(problem) = play(seed) {
            return Err(TestCaseError::fail(problem));
        }
    }

    #[test]
    fn every_run_with_a_search_gives_a_legal_stream(seed: u64, is_said: bool) {
        let held = if is_said { Held::Said } else { Held::Unsaid };
        if let Err(problem) = play_held(seed, held) {
            return Err(TestCaseError::fail(problem));
        }
    }
}
