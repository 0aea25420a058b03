//! What is asked: the requests of each kind, in the words of each server.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

use crate::script::{ARGUMENTS, CALL_ID, TOOL, TRICKLING};

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One answer, as one piece of JSON.
    Plain,
    /// One answer as a stream that the backend sends all at once.
    Streamed,
    /// One answer as a stream that the backend sends event by event.
    Trickled,
    /// Two answers, as one piece of JSON: the first calls a tool.
    Loop,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Plain, Self::Streamed, Self::Trickled, Self::Loop];

    pub(crate) fn is_streamed(self) -> bool {
        matches!(self, Self::Streamed | Self::Trickled)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Streamed => "streamed",
            Self::Trickled => "trickled",
            Self::Loop => "loop",
        })
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut kinds = Self::ALL.into_iter();
        let kind = kinds.find(|kind| kind.to_string() == name);
        kind.ok_or_else(|| format!("`{name}` is none of plain, streamed, trickled and loop"))
    }
}

/// Who executes the tool of a two-turn request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loops {
    /// The client, with two requests.
    Client,
    /// The server, within one.
    Server,
}

/// The bodies to send, one after the other.
pub(crate) fn bodies(kind: Kind, loops: Loops, model: &str, store: bool) -> Vec<Value> {
    let model = if kind == Kind::Trickled {
        TRICKLING
    } else {
        model
    };
    let mut body = json!({
        "model": model,
        "instructions": "Answer in one sentence.",
        "input": "What is the capital of Norway, and what is six times seven?",
        "store": store,
    });
    if kind.is_streamed() {
        body["stream"] = true.into();
    }
    if kind != Kind::Loop {
        return vec![body];
    }
    if loops == Loops::Server {
        body["tools"] = json!([{"type": format!("haft:{TOOL}")}]);
        return vec![body];
    }
    body["tools"] = json!([{
        "type": "function", "name": TOOL, "description": "Evaluate an expression.",
        "parameters": {
            "type": "object", "properties": {"expression": {"type": "string"}},
            "required": ["expression"], "additionalProperties": false,
        },
    }]);
    let mut second = body.clone();
    second["input"] = json!([
        {"type": "message", "role": "user", "content": body["input"]},
        {"type": "function_call", "call_id": CALL_ID, "name": TOOL, "arguments": ARGUMENTS},
        {"type": "function_call_output", "call_id": CALL_ID, "output": r#"{"result":"42","exact":true}"#},
    ]);
    vec![body, second]
}

/// A request as it goes over the wire.
pub(crate) fn request(body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!(
        "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
