//! A server that wants to know things: in rounds as the modern era has it, or in between as before.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::brain::{Brain, Sink};
use super::words::{answer, say, text};

/// A form with one field that proposes something and one that does not.
pub fn form() -> Value {
    json!({
        "mode": "form",
        "message": "Who?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "colour": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
            },
            "required": ["name"],
        },
    })
}

/// Asks `inputs` questions in each of `rounds` rounds, and tells what the last one brought.
///
/// `method` and `params` say what is asked; `stateless` leaves the state out.
pub fn rounds(id: &Value, params: &Value, sink: &Sink) {
    let arguments = &params["arguments"];
    let number = |key: &str, usual: u64| arguments[key].as_u64().unwrap_or(usual);
    let round = params["requestState"]
        .as_str()
        .and_then(|state| state.split('#').nth(1)?.parse::<u64>().ok())
        .unwrap_or(u64::from(params["inputResponses"].is_object()));
    if round >= number("rounds", 1) {
        let seen = json!({"responses": params["inputResponses"], "state": params["requestState"]});
        return text(sink, id, &seen.to_string());
    }
    let asked = match &arguments["params"] {
        Value::Null => form(),
        params => params.clone(),
    };
    let method = arguments["method"].as_str().unwrap_or("elicitation/create");
    let requests: serde_json::Map<_, _> = (0..number("inputs", 1))
        .map(|index| {
            (
                format!("key {index}"),
                json!({"method": method, "params": asked}),
            )
        })
        .collect();
    let mut result = json!({"resultType": "input_required", "inputRequests": requests});
    if arguments["stateless"] != true {
        // Odd on purpose: it has to come back to the byte.
        result["requestState"] = format!("\u{e9}\u{0}\"/+=\n#{}", round + 1).into();
    }
    answer(sink, id, &result);
}

impl Brain {
    /// Asks `count` questions, one after the other or all at once, and tells what was answered.
    pub fn interrogate(&self, id: &Value, arguments: &Value, sink: &Sink) {
        let (brain, id, sink) = (self.clone(), id.clone(), Arc::clone(sink));
        let arguments = arguments.clone();
        thread::spawn(move || {
            let count = usize::try_from(arguments["count"].as_u64().unwrap_or(1)).unwrap();
            let params = match &arguments["params"] {
                Value::Null => form(),
                params => params.clone(),
            };
            for index in 0..count {
                say(
                    &sink,
                    &json!({"jsonrpc": "2.0", "id": format!("q{index}"), "method": "elicitation/create", "params": params}),
                );
                if arguments["at_once"] != true {
                    brain.wait_for_replies(index + 1);
                }
            }
            brain.wait_for_replies(count);
            text(&sink, &id, &Value::from(brain.take_replies()).to_string());
        });
    }

    fn wait_for_replies(&self, count: usize) {
        for _ in 0..1_000 {
            if self.replies() >= count {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}
