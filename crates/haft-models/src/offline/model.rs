//! The rules as a model.

use futures_util::stream;
use haft_core::{
    BoxFuture, Capabilities, FinishReason, ForcedChoice, Item, ItemStatus, Message, Model,
    ModelError, ModelEvent, ModelRequest, ModelResponse, ModelStream, Streaming,
};
use serde_json::Value;

use super::answer::{Asked, noticed, word_pieces};
use super::plan::{Searched, plan};
use super::searching::is_search;

/// About so many bytes make a token.
const BYTES_PER_TOKEN: usize = 4;

/// A model of rules: no network, no weights, always the same answer to the same request.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use futures_util::StreamExt;
/// use haft_core::{Assembly, Item, Model, ModelRequest, ToolDefinition};
/// use haft_models::OfflineModel;
/// use serde_json::json;
///
/// let weather = ToolDefinition::builder("get_weather")
///     .description("The weather in a city")
///     .parameters(json!({
///         "type": "object",
///         "properties": {"city": {"type": "string"}},
///         "required": ["city"],
///     }))
///     .build()?;
/// let request = ModelRequest {
///     conversation: "What is the weather in New York today?".into(),
///     tools: [weather].into_iter().collect(),
///     ..ModelRequest::default()
/// };
/// let mut answer = Assembly::default();
/// let mut events = OfflineModel::new().send(request).await?;
/// while let Some(event) = events.next().await {
///     answer.add(event?);
/// }
/// let Some(Item::FunctionCall(call)) = answer.take_finished().and_then(|it| it.items.into_iter().next())
/// else { unreachable!() };
/// assert_eq!((&*call.name, &*call.arguments), ("get_weather", r#"{"city":"New York"}"#));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct OfflineModel;

impl OfflineModel {
    /// The model; there is nothing to set.
    pub fn new() -> Self {
        Self
    }

    fn answer(request: &ModelRequest) -> ModelResponse {
        let asked = Asked::read(&request.conversation);
        let searched = searched(request, &asked);
        let items = if let (Some(searched), Some(text)) = (searched, &asked.text) {
            act(request, text, searched)
        } else if !asked.calls.is_empty() {
            // One round of calls per message of the user: now it answers, whatever came of them.
            vec![Item::assistant(asked.report())]
        } else {
            let words = "There is no message of the user to answer.".to_owned();
            vec![Item::assistant(noticed([words]))]
        };
        let (items, finish) = within(items, request.options.max_output_tokens);
        let output_bytes: usize = items.iter().map(bytes_of).sum();
        let response = ModelResponse {
            finish,
            ..ModelResponse::of(items)
        };
        ModelResponse {
            model: Some("offline".to_owned()),
            ..response.with_usage(tokens(input_bytes(request)), tokens(output_bytes))
        }
    }
}

/// Whether tools were searched for; none if anything else was called since the message.
fn searched(request: &ModelRequest, asked: &Asked<'_>) -> Option<Searched> {
    let offered = || {
        let tools = request.tools.iter();
        tools.map(|tool| tool.definition().name().as_str())
    };
    let mut calls = asked.calls.iter();
    match asked.calls.len() {
        0 => Some(Searched::NotYet),
        _ if calls.all(|(call, _)| is_search(&call.name, offered())) => Some(Searched::Already),
        _ => None,
    }
}

/// The calls that a message asks for, and what keeps others from being made.
fn act(request: &ModelRequest, text: &str, searched: Searched) -> Vec<Item> {
    let plan = plan(request, text, searched);
    let mut items = Vec::new();
    if !plan.obstacles.is_empty() {
        items.push(Item::assistant(noticed(plan.obstacles)));
    }
    // Ids that no other turn of this conversation has.
    let turn = request.conversation.len();
    for (position, call) in plan.calls.into_iter().enumerate() {
        let id = format!("call_offline_{turn}_{position}");
        let arguments = Value::Object(call.arguments).to_string();
        items.push(Item::function_call(id, call.name, arguments));
    }
    items
}

/// As much of an answer as the limit lets through. The item that it falls into is incomplete.
fn within(items: Vec<Item>, max_tokens: Option<u64>) -> (Vec<Item>, FinishReason) {
    let Some(max_tokens) = max_tokens else {
        return (items, FinishReason::Normal);
    };
    let bytes = max_tokens.saturating_mul(BYTES_PER_TOKEN as u64);
    let mut room = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut kept = Vec::new();
    for mut item in items {
        let weight = bytes_of(&item);
        if weight > room {
            if cut(&mut item, room) {
                kept.push(item);
            }
            return (kept, FinishReason::Length);
        }
        room -= weight;
        kept.push(item);
    }
    (kept, FinishReason::Normal)
}

/// Cuts an item to so many bytes; false if nothing is left of it.
fn cut(item: &mut Item, room: usize) -> bool {
    match item {
        Item::Message(message) => {
            let mut text = message.text();
            text.truncate(text.floor_char_boundary(room));
            let is_empty = text.is_empty();
            *message = Message::new(message.role, text);
            message.status = Some(ItemStatus::Incomplete);
            !is_empty
        }
        Item::FunctionCall(call) => {
            let Some(room) = room.checked_sub(call.name.len()) else {
                return false;
            };
            let end = call.arguments.floor_char_boundary(room);
            call.arguments.truncate(end);
            call.status = Some(ItemStatus::Incomplete);
            true
        }
        _ => false,
    }
}

fn input_bytes(request: &ModelRequest) -> usize {
    let instructions = request.instructions.as_deref().map_or(0, str::len);
    let items: usize = request.conversation.items().map(bytes_of).sum();
    let tools = request.tools.iter().map(|tool| {
        let tool = tool.definition();
        let parameters = tool.parameters().map_or(0, |it| it.to_string().len());
        tool.name().as_str().len() + tool.description().map_or(0, str::len) + parameters
    });
    instructions + items + tools.sum::<usize>()
}

/// About how much an item weighs.
fn bytes_of(item: &Item) -> usize {
    match item {
        Item::Message(message) => message.text().len(),
        Item::FunctionCall(call) => call.name.len() + call.arguments.len(),
        Item::FunctionCallOutput(output) => output.output.to_text().len(),
        _ => 0,
    }
}

/// The tokens of so many bytes; nothing is free.
fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN).max(1)).unwrap_or(u64::MAX)
}

/// The events of an answer, text word by word.
fn events(response: ModelResponse, streaming: Streaming) -> Vec<ModelEvent> {
    let mut events = Vec::new();
    for event in response.into_events() {
        match event {
            ModelEvent::TextDelta { index, text } if streaming == Streaming::Pieces => {
                events.extend(word_pieces(&text).map(|piece| ModelEvent::TextDelta {
                    index,
                    text: piece.to_owned(),
                }));
            }
            event => events.push(event),
        }
    }
    events
}

impl Model for OfflineModel {
    fn name(&self) -> &'static str {
        "offline"
    }

    fn provider(&self) -> &'static str {
        "offline"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            supports_dynamic_tools: true,
            parallel_calls: true,
            forced_choice: ForcedChoice::Named,
            none_choice: true,
            // It looks at nothing, and says that it is no model.
            image_input: true,
            ..Capabilities::default()
        }
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        Box::pin(async move {
            let events = events(Self::answer(&request), request.options.stream);
            let stream: ModelStream = Box::pin(stream::iter(events.into_iter().map(Ok)));
            Ok(stream)
        })
    }
}
