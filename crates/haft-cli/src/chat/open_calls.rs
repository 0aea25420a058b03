//! Calls that wait for their client: nobody here can execute them, but a person can answer.

use haft::{Value, json};

use crate::screen::item::call_of;

/// The calls that an answer ended with, and the outputs that were given so far.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    calls: Vec<OpenCall>,
    outputs: Vec<Value>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    output_type: &'static str,
}

impl OpenCalls {
    /// Those of these items that nobody has answered.
    pub(super) fn of(items: &[Value]) -> Self {
        let is_answered = |id: &str| {
            let mut items = items.iter();
            items.any(|it| {
                it["call_id"] == id
                    && it["type"]
                        .as_str()
                        .is_some_and(|it| it.ends_with("_output"))
            })
        };
        let calls = items.iter().filter_map(|item| {
            let call = call_of(item).filter(|call| call.is_the_clients)?;
            (!is_answered(call.id)).then(|| OpenCall {
                id: call.id.to_owned(),
                name: call.name.into_owned(),
                arguments: call.arguments.to_owned(),
                output_type: if item["type"] == "custom_tool_call" {
                    "custom_tool_call_output"
                } else {
                    "function_call_output"
                },
            })
        });
        Self {
            calls: calls.collect(),
            outputs: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Those that are not answered yet.
    pub(super) fn iter(&self) -> impl Iterator<Item = &OpenCall> {
        self.calls.iter()
    }

    /// Whether one of this id is not answered yet.
    pub(super) fn has(&self, call_id: &str) -> bool {
        self.calls.iter().any(|call| call.id == call_id)
    }

    /// Answers one, if it is there.
    pub(super) fn answer(&mut self, call_id: &str, text: &str) {
        let Some(at) = self.calls.iter().position(|call| call.id == call_id) else {
            return;
        };
        let call = self.calls.remove(at);
        self.outputs.push(json!({
            "type": call.output_type,
            "call_id": call.id,
            "output": text,
        }));
    }

    /// All outputs, once every call is answered.
    pub(super) fn take_outputs(&mut self) -> Option<Vec<Value>> {
        self.calls
            .is_empty()
            .then(|| std::mem::take(&mut self.outputs))
            .filter(|outputs| !outputs.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_go_out_together_when_every_call_is_answered() {
        let items = [
            json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}),
            json!({"type": "custom_tool_call", "call_id": "b", "name": "g", "input": "x"}),
            json!({"type": "function_call", "call_id": "c", "name": "h", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": "c", "output": "done"}),
            json!({"type": "haft:clock", "call_id": "d", "arguments": "{}"}),
        ];
        let mut open = OpenCalls::of(&items);
        let names: Vec<_> = open.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["f", "g"]);
        assert!(open.has("a") && !open.has("c"));
        open.answer("c", "again");
        open.answer("a", "1");
        assert_eq!(open.take_outputs(), None);
        open.answer("b", "2");
        let outputs = open.take_outputs().unwrap();
        assert_eq!(outputs[0]["type"], "function_call_output");
        assert_eq!(
            outputs[1],
            json!({"type": "custom_tool_call_output", "call_id": "b",
            "output": "2"})
        );
        assert_eq!(open.take_outputs(), None);
    }
}
