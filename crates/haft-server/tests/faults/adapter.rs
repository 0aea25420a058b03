//! The adapters, and what their protocols look like when they begin well.

use std::sync::Arc;
use std::time::Duration;

use haft_core::Model;
use haft_models::http::Timeouts;
use haft_models::{Anthropic, Ollama, OpenAiChat, OpenAiResponses};

use crate::KEY;

/// How long a backend may be silent that will not say anything more.
const SHORT: Duration = Duration::from_millis(100);
/// How long all others may be: nothing here takes so long, however busy the machine is.
const LONG: Duration = Duration::from_secs(30);

/// Where a backend will stay silent, and nobody needs to wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Silence {
    Nowhere,
    BeforeAnswer,
    InAnswer,
}

impl Silence {
    pub(crate) fn timeouts(self) -> Timeouts {
        let of = |place: Self| if self == place { SHORT } else { LONG };
        Timeouts {
            header: of(Self::BeforeAnswer),
            idle: of(Self::InAnswer),
            ..Timeouts::default()
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Adapter {
    Chat,
    Responses,
    Anthropic,
    Ollama,
}

impl Adapter {
    pub(crate) const ALL: [Self; 4] = [Self::Chat, Self::Responses, Self::Anthropic, Self::Ollama];

    /// The adapter for a server at this address, `https://localhost:1` or the like.
    pub(crate) fn model(self, root: &str, silence: Silence) -> Arc<dyn Model> {
        let timeouts = silence.timeouts();
        let v1 = format!("{root}/v1");
        match self {
            Self::Chat => Arc::new(self::chat(root, silence)),
            Self::Responses => {
                let model = OpenAiResponses::new("m").base_url(&v1);
                Arc::new(model.api_key(KEY).timeouts(timeouts))
            }
            Self::Anthropic => {
                let model = Anthropic::new("m").base_url(root);
                Arc::new(model.api_key(KEY).timeouts(timeouts))
            }
            Self::Ollama => {
                let model = Ollama::new("m").base_url(root);
                Arc::new(model.api_key(KEY).timeouts(timeouts))
            }
        }
    }

    /// What a stream says that it is.
    pub(crate) fn stream_type(self) -> &'static str {
        match self {
            Self::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        }
    }

    /// The beginning of a good answer: some words of it.
    pub(crate) fn beginning(self) -> String {
        match self {
            Self::Chat => sse(&[(
                "",
                r#"{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"},"finish_reason":null}]}"#,
            )]),
            Self::Responses => sse(&[
                (
                    "response.created",
                    r#"{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","status":"in_progress","output":[]}}"#,
                ),
                (
                    "response.output_item.added",
                    r#"{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}}"#,
                ),
                (
                    "response.content_part.added",
                    r#"{"type":"response.content_part.added","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}"#,
                ),
                (
                    "response.output_text.delta",
                    r#"{"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hello"}"#,
                ),
            ]),
            Self::Anthropic => sse(&[
                (
                    "message_start",
                    r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":0}}}"#,
                ),
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}"#,
                ),
            ]),
            Self::Ollama => String::from(
                "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"Hello\"},\"done\":false}\n",
            ),
        }
    }

    /// The first half of something that never becomes whole, in a stream.
    pub(crate) fn half_a_piece(self) -> &'static str {
        match self {
            Self::Ollama => "{\"model\":\"m\",\"message\":{\"role\":\"assis",
            _ => "data: {\"type\":\"response.output_text.delta\",\"choices\":[{\"ind",
        }
    }
}

/// The adapter that also passes Chat Completions on.
pub(crate) fn chat(root: &str, silence: Silence) -> OpenAiChat {
    OpenAiChat::new("m")
        .base_url(&format!("{root}/v1"))
        .api_key(KEY)
        .timeouts(silence.timeouts())
}

fn sse(events: &[(&str, &str)]) -> String {
    let frames = events.iter().map(|(event, data)| match *event {
        "" => format!("data: {data}\n\n"),
        event => format!("event: {event}\ndata: {data}\n\n"),
    });
    frames.collect()
}
