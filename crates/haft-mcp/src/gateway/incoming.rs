//! Messages of clients, read before the protocol library sees them.
//!
//! The library drops what it cannot read, and takes a request with wrong parameters for one with an unknown
//! method. A client that gets no answer waits for ever, so every message that cannot be read is answered here
//! with an error, under the `id` of the request where it can be found.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage,
};
use serde_json::{Map, Value};

use crate::line::IdScanner;

/// The longest message of a client: an image of 10 MiB as base64, with room for the rest.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// The byte order mark, which RFC 8259 §8.1 lets a reader skip.
const BOM: &[u8] = "\u{feff}".as_bytes();

/// Where requests of protocol 2026-07-28 name their version.
const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// What a client sent.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A message for the protocol library.
    Message(Box<ClientJsonRpcMessage>),
    /// Nothing that needs an answer: an empty line, or a notification that nothing handles.
    Ignored,
    /// What cannot be read, and the error that answers it.
    Unreadable(Unreadable),
}

/// An error for a message that cannot be read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unreadable {
    pub(super) id: Option<RequestId>,
    pub(super) error: ErrorData,
}

impl Unreadable {
    fn new(id: Option<RequestId>, code: ErrorCode, text: impl Into<String>) -> Self {
        let error = ErrorData::new(code, text.into(), None);
        Self { id, error }
    }

    /// A message that is longer than allowed; `id` is the JSON of its `id`.
    pub(super) fn too_long(id: Option<&[u8]>, bytes: u64, limit: usize) -> Self {
        let id = id.and_then(|id| serde_json::from_slice(id).ok());
        let text = format!(
            "message too large: {bytes} bytes (limit {})",
            crate::error::size(limit as u64)
        );
        Self::new(id, ErrorCode::INVALID_REQUEST, text)
    }

    /// The error as a message.
    pub(super) fn into_message(self) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::error(self.error, self.id)
    }

    /// The error as JSON. An `id` that is not known is `null`, as JSON-RPC 2.0 §5 has it.
    pub(super) fn to_json(&self) -> Value {
        let id = self.id.clone().map(RequestId::into_json_value);
        serde_json::json!({"jsonrpc": "2.0", "id": id, "error": self.error})
    }
}

/// Reads one message.
pub(super) fn read(bytes: &[u8]) -> Incoming {
    let bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Incoming::Ignored;
    }
    // The usual case is read once.
    if let Ok(message) = serde_json::from_slice::<ClientJsonRpcMessage>(bytes)
        && (!is_misread(&message) || is_removed_method(bytes))
    {
        return Incoming::Message(Box::new(message));
    }
    match problem(bytes) {
        Some(unreadable) => Incoming::Unreadable(unreadable),
        None => Incoming::Ignored,
    }
}

/// Whether the library took a request of the protocol for a custom one, because its parameters are wrong.
fn is_misread(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else {
        return false;
    };
    matches!(&request.request, ClientRequest::CustomRequest(custom) if is_of_protocol(&custom.method))
}

fn is_of_protocol(method: &str) -> bool {
    matches!(
        method,
        "initialize"
            | "ping"
            | "server/discover"
            | "tools/list"
            | "tools/call"
            | "prompts/list"
            | "prompts/get"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "resources/subscribe"
            | "resources/unsubscribe"
            | "completion/complete"
            | "logging/setLevel"
            | "subscriptions/listen"
    )
}

/// Whether a request of protocol 2026-07-28 has a method that this revision removed: the library answers it as an
/// unknown method, which the revision demands whatever the parameters are.
fn is_removed_method(bytes: &[u8]) -> bool {
    let Ok(message) = serde_json::from_slice::<Value>(bytes) else {
        return false;
    };
    let is_removed = matches!(
        message["method"].as_str(),
        Some(
            "initialize"
                | "ping"
                | "resources/subscribe"
                | "resources/unsubscribe"
                | "logging/setLevel"
        )
    );
    // Only requests of this revision name their version there.
    is_removed && message["params"]["_meta"][PROTOCOL_VERSION].is_string()
}

/// Why a message cannot be read; none if it needs no answer.
fn problem(bytes: &[u8]) -> Option<Unreadable> {
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => {
            let mut scanner = IdScanner::default();
            scanner.feed(bytes);
            let id = scanner.found();
            let id = id.and_then(|id| serde_json::from_slice(&id).ok());
            let text = format!("the message cannot be read as JSON: {error}");
            return Some(Unreadable::new(id, ErrorCode::PARSE_ERROR, text));
        }
    };
    let invalid = |id, text: &str| Some(Unreadable::new(id, ErrorCode::INVALID_REQUEST, text));
    let message = match value {
        Value::Object(message) => message,
        Value::Array(_) => {
            return invalid(None, "batches are not supported; send one message each");
        }
        _ => return invalid(None, "a message is an object"),
    };
    let id = match message.get("id") {
        None => None,
        Some(id) => match serde_json::from_value::<RequestId>(id.clone()) {
            Ok(id) => Some(id),
            Err(_) if message.contains_key("method") => {
                return invalid(None, "`id` is a string or an integer");
            }
            Err(_) => None,
        },
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(id, "`jsonrpc` is `\"2.0\"`");
    }
    let method = match message.get("method") {
        Some(Value::String(method)) => method.as_str(),
        Some(_) => return invalid(id, "`method` is a string"),
        // An answer to a question that nothing waits for needs none itself.
        None if message.contains_key("result") || message.contains_key("error") => return None,
        None => {
            return invalid(
                id,
                "the message has neither `method` nor `result` nor `error`",
            );
        }
    };
    // Notifications are not answered, whatever is wrong with them.
    let id = id?;
    let text = parameters_problem(method, &message);
    Some(Unreadable::new(Some(id), ErrorCode::INVALID_PARAMS, text))
}

/// What is wrong with the parameters of a request.
fn parameters_problem(method: &str, message: &Map<String, Value>) -> String {
    let params = message.get("params").unwrap_or(&Value::Null);
    let Some(params) = params.as_object() else {
        return match params {
            Value::Null => format!("`{method}` needs `params`"),
            other => format!("`params` of `{method}` is an object, not {}", kind(other)),
        };
    };
    let wrong = |key: &str, expected: &str, is_right: fn(&Value) -> bool| {
        let value = params.get(key)?;
        let text = format!("`{key}` of `{method}` is {expected}, not {}", kind(value));
        (!is_right(value)).then_some(text)
    };
    let needed = match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => Some("uri"),
        "logging/setLevel" => Some("level"),
        _ => None,
    };
    let missing = needed.filter(|key| !params.contains_key(*key));
    let missing = missing.map(|key| format!("`{method}` needs `{key}`"));
    missing
        .or_else(|| needed.and_then(|key| wrong(key, "a string", Value::is_string)))
        .or_else(|| wrong("arguments", "an object", Value::is_object))
        .or_else(|| wrong("cursor", "a string", Value::is_string))
        .or_else(|| wrong("_meta", "an object", Value::is_object))
        .unwrap_or_else(|| format!("`params` of `{method}` do not fit the protocol"))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error_of(text: &str) -> (Value, i64, String) {
        match read(text.as_bytes()) {
            Incoming::Unreadable(unreadable) => {
                let json = unreadable.to_json();
                let code = json["error"]["code"].as_i64().unwrap();
                let text = json["error"]["message"].as_str().unwrap().to_owned();
                (json["id"].clone(), code, text)
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn methods_that_2026_07_28_removed_are_left_to_the_library() {
        for method in ["initialize", "logging/setLevel", "resources/subscribe"] {
            let modern = json!({"jsonrpc": "2.0", "id": 1, "method": method,
                "params": {"_meta": {PROTOCOL_VERSION: "2026-07-28"}}});
            let read_message = read(modern.to_string().as_bytes());
            assert!(matches!(read_message, Incoming::Message(_)), "{method}");
            let legacy = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}});
            assert_eq!(error_of(&legacy.to_string()).1, -32602, "{method}");
        }
    }

    #[test]
    fn messages_that_cannot_be_read_are_answered_under_their_id() {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"t","arguments":{{"a":{}{}}}}}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        );
        for (text, id, code, part) in [
            ("{", Value::Null, -32700, "cannot be read as JSON"),
            (deep.as_str(), json!(7), -32700, "recursion limit"),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{"#,
                json!("a"),
                -32700,
                "cannot be read as JSON",
            ),
            ("[]", Value::Null, -32600, "batches"),
            ("3", Value::Null, -32600, "an object"),
            (r#"{"id":1,"method":"ping"}"#, json!(1), -32600, "jsonrpc"),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
                json!(1),
                -32600,
                "jsonrpc",
            ),
            (r#"{"jsonrpc":"2.0","id":1}"#, json!(1), -32600, "method"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
                json!(1),
                -32600,
                "method",
            ),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
                Value::Null,
                -32600,
                "`id`",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":[]}}"#,
                json!(1),
                -32602,
                "`arguments` of `tools/call` is an object, not an array",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":"{}"}}"#,
                json!(1),
                -32602,
                "not a string",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}"#,
                json!(1),
                -32602,
                "needs `name`",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":3}}"#,
                json!(1),
                -32602,
                "`name` of",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#,
                json!(1),
                -32602,
                "an array",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
                json!(1),
                -32602,
                "needs `params`",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
                json!(1),
                -32602,
                "do not fit",
            ),
        ] {
            let (found, number, message) = error_of(text);
            assert_eq!((found, number), (id, code), "{text}: {message}");
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn messages_that_can_be_read_pass() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"made/up","params":{"a":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
        ] {
            assert!(
                matches!(read(text.as_bytes()), Incoming::Message(_)),
                "{text}"
            );
        }
        for text in [
            "",
            "  \r",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":3}"#,
        ] {
            assert!(
                !matches!(read(text.as_bytes()), Incoming::Unreadable(_)),
                "{text}"
            );
        }
    }
}
