//! An answer in pieces: `chat.completion.chunk`.

use std::collections::BTreeMap;

use bytes::Bytes;
use haft_core::{FinishReason, FunctionCall, Item, ItemKind, ModelEvent, Usage};
use serde::Serialize;
use serde_json::Value;

use super::call_ids::CallIds;
use super::whole::{Logprobs, logprobs_of, missing_arguments, refusal_of, thoughts_of};
use super::{BETWEEN, Heading, UsageBody, finish_reason, frame};
use crate::stream::DONE_FRAME;

/// Writes the events of one answer as frames, each a server-sent event of its own.
///
/// Pieces are told as they come; an item that is done completes what was not told in pieces.
#[derive(Debug)]
pub(crate) struct ChunkWriter {
    heading: Heading,
    with_usage: bool,
    has_begun: bool,
    open: BTreeMap<usize, Open>,
    ids: CallIds,
    calls: usize,
    /// The message and the thought that were told last.
    last_text: Option<usize>,
    last_thought: Option<Thought>,
    logprobs: Vec<Value>,
    frames: Vec<Bytes>,
}

/// What was told of an item.
#[derive(Debug, Default)]
struct Open {
    text: String,
    refusal: String,
    /// Whether thoughts or their summary are told; the first that comes, never both.
    voice: Option<Voice>,
    /// The place of a call among the calls.
    call: Option<usize>,
    arguments: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    Thoughts,
    Summary,
}

/// A stretch of thoughts: the item, and the part of its summary.
type Thought = (usize, usize);

#[derive(Serialize)]
struct Chunk<'c> {
    id: &'c str,
    object: &'static str,
    created: i64,
    model: &'c str,
    choices: &'c [Choice<'c>],
    #[serde(skip_serializing_if = "Member::is_absent")]
    usage: Member<UsageBody>,
}

#[derive(Serialize)]
struct Choice<'c> {
    index: u8,
    delta: Delta<'c>,
    logprobs: Option<Logprobs>,
    finish_reason: Option<&'static str>,
}

/// A member that may be missing, and may be null.
#[derive(Default, Serialize)]
#[serde(untagged)]
enum Member<T> {
    #[default]
    Absent,
    Null,
    Given(T),
}

impl<T> Member<T> {
    fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    fn or_null(value: Option<T>) -> Self {
        value.map_or(Self::Null, Self::Given)
    }
}

#[derive(Default, Serialize)]
struct Delta<'c> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Member::is_absent")]
    content: Member<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[CallDelta<'c>; 1]>,
}

#[derive(Serialize)]
struct CallDelta<'c> {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'c str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    function: FunctionDelta<'c>,
}

#[derive(Serialize)]
struct FunctionDelta<'c> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'c str>,
    arguments: &'c str,
}

impl ChunkWriter {
    pub(crate) fn new(heading: Heading, with_usage: bool) -> Self {
        Self {
            heading,
            with_usage,
            has_begun: false,
            open: BTreeMap::new(),
            ids: CallIds::default(),
            calls: 0,
            last_text: None,
            last_thought: None,
            logprobs: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// The frames that an event gives; the mark of the end comes with the last.
    pub(crate) fn take(&mut self, event: ModelEvent) -> Vec<Bytes> {
        match event {
            ModelEvent::ItemStarted { index, kind, .. } => self.start(index, &kind),
            ModelEvent::TextDelta { index, text } => self.say(index, &text),
            ModelEvent::RefusalDelta { index, text } => self.refuse(index, &text),
            ModelEvent::ReasoningDelta { index, text } => {
                self.think(index, 0, Voice::Thoughts, &text);
            }
            ModelEvent::SummaryDelta { index, part, text } => {
                self.think(index, part, Voice::Summary, &text);
            }
            ModelEvent::ArgumentsDelta { index, text } => self.argue(index, &text),
            ModelEvent::ItemDone { index, item } => self.complete(index, item),
            ModelEvent::Finished { finish, usage } => self.finish(finish, usage),
            // Nothing is told before there is something to tell: the answer may still fail.
            _ => {}
        }
        std::mem::take(&mut self.frames)
    }

    /// The first chunk says who speaks.
    fn begin(&mut self, content: Option<&str>) {
        if !self.has_begun {
            self.has_begun = true;
            self.write(Delta {
                role: Some("assistant"),
                content: Member::or_null(content),
                ..Delta::default()
            });
        }
    }

    fn start(&mut self, index: usize, kind: &ItemKind) {
        // All else that begins is told with its first piece.
        if let ItemKind::FunctionCall { call_id, name, .. } = kind {
            self.call(index, call_id, name);
        }
    }

    fn call(&mut self, index: usize, call_id: &str, name: &str) {
        self.begin(None);
        let place = self.calls;
        self.calls += 1;
        self.open.entry(index).or_default().call = Some(place);
        let id = self.ids.take(call_id);
        self.write(Delta {
            tool_calls: Some([CallDelta {
                index: place,
                id: Some(&id),
                kind: Some("function"),
                function: FunctionDelta {
                    name: Some(name),
                    arguments: "",
                },
            }]),
            ..Delta::default()
        });
    }

    fn say(&mut self, index: usize, text: &str) {
        if text.is_empty() {
            return;
        }
        self.begin(Some(""));
        self.open.entry(index).or_default().text.push_str(text);
        let is_other = self.last_text.is_some_and(|last| last != index);
        self.last_text = Some(index);
        let text = apart(text, is_other);
        self.write(Delta {
            content: Member::Given(&text),
            ..Delta::default()
        });
    }

    fn refuse(&mut self, index: usize, text: &str) {
        if text.is_empty() {
            return;
        }
        self.begin(None);
        self.open.entry(index).or_default().refusal.push_str(text);
        self.write(Delta {
            refusal: Some(text),
            ..Delta::default()
        });
    }

    fn think(&mut self, index: usize, part: usize, voice: Voice, text: &str) {
        let open = self.open.entry(index).or_default();
        if text.is_empty() || *open.voice.get_or_insert(voice) != voice {
            return;
        }
        self.begin(None);
        let thought = (index, part);
        let is_other = self.last_thought.is_some_and(|last| last != thought);
        self.last_thought = Some(thought);
        let text = apart(text, is_other);
        self.write(Delta {
            reasoning_content: Some(&text),
            ..Delta::default()
        });
    }

    fn argue(&mut self, index: usize, text: &str) {
        let open = self.open.entry(index).or_default();
        let Some(place) = open.call.filter(|_| !text.is_empty()) else {
            return;
        };
        open.arguments.push_str(text);
        self.write(Delta {
            tool_calls: Some([CallDelta {
                index: place,
                id: None,
                kind: None,
                function: FunctionDelta {
                    name: None,
                    arguments: text,
                },
            }]),
            ..Delta::default()
        });
    }

    /// Tells what was not told in pieces.
    fn complete(&mut self, index: usize, item: Item) {
        match item {
            Item::Message(message) => {
                let open = self.open.entry(index).or_default();
                let (text, refusal) = (message.text(), refusal_of(&message.content));
                let text = rest(&open.text, &text).to_owned();
                let refusal = rest(&open.refusal, &refusal).to_owned();
                self.say(index, &text);
                self.refuse(index, &refusal);
                self.logprobs.extend(logprobs_of(message.content));
            }
            Item::Reasoning(reasoning) => {
                let open = self.open.entry(index).or_default();
                if open.voice.is_none() {
                    self.think(index, 0, Voice::Thoughts, &thoughts_of(&reasoning));
                }
            }
            Item::FunctionCall(call) => self.complete_call(index, &call),
            _ => {}
        }
        self.open.remove(&index);
    }

    fn complete_call(&mut self, index: usize, call: &FunctionCall) {
        if self.open.get(&index).is_none_or(|open| open.call.is_none()) {
            self.call(index, &call.call_id, &call.name);
        }
        let told = self.open.get(&index).map_or("", |open| &open.arguments);
        let more = rest(told, &call.arguments).to_owned() + missing_arguments(call);
        self.argue(index, &more);
    }

    fn finish(&mut self, finish: FinishReason, usage: Option<Usage>) {
        self.begin(Some(""));
        let logprobs = Logprobs::of(std::mem::take(&mut self.logprobs));
        let choice = Choice {
            index: 0,
            delta: Delta::default(),
            logprobs,
            finish_reason: Some(finish_reason(finish, self.calls > 0)),
        };
        self.chunk(&[choice], None);
        if let Some(usage) = usage.filter(|_| self.with_usage) {
            self.chunk(&[], Some(usage.into()));
        }
        self.frames.push(Bytes::from_static(DONE_FRAME));
    }

    fn write(&mut self, delta: Delta<'_>) {
        let choice = Choice {
            index: 0,
            delta,
            logprobs: None,
            finish_reason: None,
        };
        self.chunk(&[choice], None);
    }

    fn chunk(&mut self, choices: &[Choice<'_>], usage: Option<UsageBody>) {
        self.frames.push(frame(&Chunk {
            id: &self.heading.id,
            object: "chat.completion.chunk",
            created: self.heading.created,
            model: &self.heading.model,
            choices,
            // Who asked for it is told in each chunk that it is not known yet.
            usage: if self.with_usage {
                Member::or_null(usage)
            } else {
                Member::Absent
            },
        }));
    }
}

/// A text, kept apart from another one before it.
fn apart(text: &str, is_other: bool) -> std::borrow::Cow<'_, str> {
    if is_other {
        format!("{BETWEEN}{text}").into()
    } else {
        text.into()
    }
}

/// What of `whole` is not yet told, if what was told is its beginning.
fn rest<'t>(told: &str, whole: &'t str) -> &'t str {
    whole.strip_prefix(told).unwrap_or_default()
}
