//! One step of a script: what is expected, what is answered, and how.

use haft_core::{ContentPart, FinishReason, Item, Message, RawArguments, Reasoning, Role};
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::expect::Expect;
use super::fault::Fault;
use super::pieces::{Chunks, Pieces, Repeat};
use super::step_usage::StepUsage;

/// One request and its answer.
///
/// The answer's items come in this order: `summary` and `reasoning` in
/// one, one message of `text` and `refusal`, `calls`,
/// `items`. The functions [`say`](super::say), [`call`](super::call) and their kin begin a step; its
/// methods go on with it.
///
/// ```
/// use haft_models::scripted::{Step, call, user_contains};
/// use serde_json::json;
///
/// let step = call("get_weather", json!({"city": "Oslo"})).expect(user_contains("weather"));
/// let line = r#"{"expect":{"user":{"contains":"weather"}},
///     "calls":[{"name":"get_weather","arguments":{"city":"Oslo"}}]}"#;
/// assert_eq!(serde_json::from_str::<Step>(line)?, step);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Step {
    /// A name for messages.
    #[serde(skip_serializing_if = "is_default")]
    pub name: Option<String>,
    /// Which requests the step is for. One that does not match goes on to the steps behind it, and
    /// the step stays.
    #[serde(skip_serializing_if = "is_default")]
    pub when: Option<Expect>,
    /// What the request must be like, or the script fails.
    #[serde(skip_serializing_if = "is_default")]
    pub expect: Option<Expect>,
    /// A summary of what the model thinks, part by part.
    #[serde(skip_serializing_if = "is_default")]
    pub summary: Vec<String>,
    /// What it thinks, word for word.
    #[serde(skip_serializing_if = "is_default")]
    pub reasoning: Option<String>,
    /// What it says.
    #[serde(skip_serializing_if = "is_default")]
    pub text: Option<String>,
    /// In which words it declines.
    #[serde(skip_serializing_if = "is_default")]
    pub refusal: Option<String>,
    /// What it calls.
    #[serde(skip_serializing_if = "is_default")]
    pub calls: Vec<ScriptedCall>,
    /// Items as they are.
    #[serde(skip_serializing_if = "is_default")]
    pub items: Vec<Item>,
    /// Why it stops; normally, if nothing is said.
    #[serde(skip_serializing_if = "is_default")]
    pub finish: Option<FinishReason>,
    /// What it says that it cost.
    #[serde(skip_serializing_if = "is_default")]
    pub usage: StepUsage,
    /// The sizes of the deltas.
    #[serde(skip_serializing_if = "is_default")]
    pub pieces: Pieces,
    /// The sizes of the chunks of bytes, over HTTP.
    #[serde(skip_serializing_if = "is_default")]
    pub chunks: Chunks,
    /// The wait before each event in this process, before each chunk over HTTP.
    #[serde(skip_serializing_if = "is_default")]
    pub delay_ms: u64,
    /// What goes wrong.
    #[serde(skip_serializing_if = "is_default")]
    pub fault: Option<Fault>,
    /// How often the step is good for.
    #[serde(skip_serializing_if = "is_default")]
    pub repeat: Repeat,
}

/// A call that the model makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The call's id; without one, calls are numbered through the script: `call_1`, `call_2`. An
    /// empty one stands for a provider that gives none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The arguments: text is sent as it is, even if it is no JSON.
    pub arguments: RawArguments,
}

impl ScriptedCall {
    /// A call with these arguments.
    pub fn new(name: impl Into<String>, arguments: impl Into<RawArguments>) -> Self {
        Self {
            id: None,
            name: name.into(),
            arguments: arguments.into(),
        }
    }
}

impl Step {
    /// Names the step for messages.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Only for requests like this.
    #[must_use]
    pub fn when(mut self, when: Expect) -> Self {
        self.when = Some(when);
        self
    }

    /// The request must be like this.
    #[must_use]
    pub fn expect(mut self, expect: Expect) -> Self {
        self.expect = Some(expect);
        self
    }

    /// Thinks this first.
    #[must_use]
    pub fn think(mut self, text: impl Into<String>) -> Self {
        self.reasoning = Some(text.into());
        self
    }

    /// Sums its thoughts up in one more part, like this.
    #[must_use]
    pub fn sum_up(mut self, text: impl Into<String>) -> Self {
        self.summary.push(text.into());
        self
    }

    /// Says this, before calls.
    #[must_use]
    pub fn say(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Declines in these words.
    #[must_use]
    pub fn refuse(mut self, text: impl Into<String>) -> Self {
        self.refusal = Some(text.into());
        self
    }

    /// Calls one more tool.
    #[must_use]
    pub fn call(mut self, name: impl Into<String>, arguments: impl Into<RawArguments>) -> Self {
        self.calls.push(ScriptedCall::new(name, arguments));
        self
    }

    /// Gives the last call this id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        if let Some(call) = self.calls.last_mut() {
            call.id = Some(id.into());
        }
        self
    }

    /// Answers with one more item, as it is.
    #[must_use]
    pub fn item(mut self, item: Item) -> Self {
        self.items.push(item);
        self
    }

    /// Stops for this reason.
    #[must_use]
    pub fn finish(mut self, reason: FinishReason) -> Self {
        self.finish = Some(reason);
        self
    }

    /// Costs so many tokens.
    #[must_use]
    pub fn usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        self.usage = StepUsage::Tokens(haft_core::Usage {
            input_tokens,
            output_tokens,
            requests: 1,
            ..haft_core::Usage::default()
        });
        self
    }

    /// Says nothing of what it cost.
    #[must_use]
    pub fn without_usage(mut self) -> Self {
        self.usage = StepUsage::None;
        self
    }

    /// Streams in deltas of this size.
    #[must_use]
    pub fn pieces(mut self, pieces: Pieces) -> Self {
        self.pieces = pieces;
        self
    }

    /// Streams, over HTTP, in chunks of this size.
    #[must_use]
    pub fn chunks(mut self, chunks: Chunks) -> Self {
        self.chunks = chunks;
        self
    }

    /// Waits so long before each event or chunk.
    #[must_use]
    pub fn delay_ms(mut self, milliseconds: u64) -> Self {
        self.delay_ms = milliseconds;
        self
    }

    /// Lets this go wrong.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Is good for so many requests; 0 counts as 1.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.repeat = Repeat::Times(times.max(1));
        self
    }

    /// Is good for every request that reaches it.
    #[must_use]
    pub fn forever(mut self) -> Self {
        self.repeat = Repeat::Forever;
        self
    }

    /// The items of the answer. `number_call` gives the id of a call that has none.
    pub(crate) fn answer(&self, mut number_call: impl FnMut() -> String) -> Vec<Item> {
        let mut items = Vec::new();
        if self.reasoning.is_some() || !self.summary.is_empty() {
            let summary = self.summary.iter().cloned();
            let thoughts = self.reasoning.iter().cloned();
            items.push(Item::Reasoning(Reasoning {
                summary: summary
                    .map(|text| ContentPart::SummaryText { text })
                    .collect(),
                content: thoughts
                    .map(|text| ContentPart::ReasoningText { text })
                    .collect(),
                ..Reasoning::default()
            }));
        }
        items.extend(self.message().map(Item::Message));
        for call in &self.calls {
            let id = match (&self.fault, &call.id) {
                (Some(Fault::MissingCallIds), _) => String::new(),
                (Some(Fault::RepeatedCallIds), _) => "call_1".to_owned(),
                (_, Some(id)) => id.clone(),
                (_, None) => number_call(),
            };
            let arguments = match &call.arguments {
                RawArguments::Text(text) => text.clone(),
                RawArguments::Json(value) => value.to_string(),
            };
            items.push(Item::function_call(id, call.name.clone(), arguments));
        }
        items.extend(self.items.iter().cloned());
        items
    }

    fn message(&self) -> Option<Message> {
        let text = self.text.clone().map(ContentPart::output_text);
        let refusal = self.refusal.clone();
        let refusal = refusal.map(|refusal| ContentPart::Refusal { refusal });
        let content: Vec<_> = text.into_iter().chain(refusal).collect();
        (!content.is_empty()).then(|| Message {
            id: None,
            status: None,
            role: Role::Assistant,
            content,
            extra: Map::new(),
        })
    }
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
