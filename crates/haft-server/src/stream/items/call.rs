//! Calls: of the client's functions and custom tools, and of tools that run here.

use haft_core::{CallOutput, Item};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Place, rest};
use crate::stream::event::Writer;

/// What a tool that the model calls is for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A function of the client.
    Function {
        name: String,
        namespace: Option<String>,
    },
    /// A tool of the client that takes free text.
    Custom {
        name: String,
        namespace: Option<String>,
    },
    /// The client's own search for tools.
    ToolSearch,
    /// A tool that runs here.
    Hosted {
        /// Its type, `haft:clock`.
        item_type: String,
    },
}

impl Shown {
    /// What the ids of its items begin with.
    pub(crate) fn id_prefix(&self) -> &str {
        match self {
            Self::Function { .. } => "fc",
            Self::Custom { .. } => "ctc",
            Self::ToolSearch => "tsc",
            Self::Hosted { item_type } => item_type.split(':').next().unwrap_or("haft"),
        }
    }

    /// Whether its calls are executed here.
    pub(crate) fn is_hosted(&self) -> bool {
        matches!(self, Self::Hosted { .. })
    }
}

/// A call that the model is writing.
#[derive(Debug)]
pub(super) struct OpenCall {
    call_id: String,
    shown: Shown,
    told: String,
}

impl OpenCall {
    pub(super) fn new(call_id: String, shown: Shown) -> Self {
        Self {
            call_id,
            shown,
            told: String::new(),
        }
    }

    /// Only functions show their arguments as they are written: the input of a custom tool is
    /// wrapped in an object for most models, and hosted calls have no events of their own.
    pub(super) fn add(&mut self, text: &str, place: &Place, writer: &mut Writer) {
        if text.is_empty() {
            return;
        }
        if let Shown::Function { .. } = self.shown {
            write_delta(
                "response.function_call_arguments.delta",
                text,
                place,
                writer,
            );
        }
        self.told.push_str(text);
    }

    /// What is known of the arguments.
    pub(super) fn told(&self) -> &str {
        &self.told
    }

    pub(super) fn close(
        &mut self,
        item: Option<&Item>,
        place: &Place,
        writer: &mut Writer,
    ) -> Map<String, Value> {
        let (mut extra, mut written) = (Map::new(), self.told.clone());
        if let Some(Item::FunctionCall(call)) = item {
            extra.clone_from(&call.extra);
            if let Some(more) = rest(&self.told.clone(), &call.arguments) {
                self.add(more, place, writer);
            }
            written.clone_from(&self.told);
        }
        let (item_id, output_index) = (&place.item_id, place.output_index);
        let text = match &self.shown {
            Shown::Custom { .. } => {
                let input = custom_input(&written);
                if !input.is_empty() {
                    let kind = "response.custom_tool_call_input.delta";
                    write_delta(kind, &input, place, writer);
                }
                let done =
                    json!({"item_id": item_id, "output_index": output_index, "input": input});
                writer.write("response.custom_tool_call_input.done", &done);
                input
            }
            Shown::Function { .. } => {
                if written.trim().is_empty() {
                    self.add("{}", place, writer);
                    written.clone_from(&self.told);
                }
                let done = json!({
                    "item_id": item_id, "output_index": output_index, "arguments": written,
                });
                writer.write("response.function_call_arguments.done", &done);
                written
            }
            Shown::ToolSearch | Shown::Hosted { .. } => written,
        };
        let mut json = match call_item(item_id, &self.call_id, &self.shown, &text, "completed") {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        for (key, value) in extra {
            json.entry(key).or_insert(value);
        }
        json
    }
}

fn write_delta(kind: &'static str, delta: &str, place: &Place, writer: &mut Writer) {
    #[derive(Serialize)]
    struct Body<'e> {
        item_id: &'e str,
        output_index: usize,
        delta: &'e str,
    }
    let delta = Body {
        item_id: &place.item_id,
        output_index: place.output_index,
        delta,
    };
    writer.write(kind, &delta);
}

/// A call as an item; `text` is what the model wrote for it.
pub(crate) fn call_item(id: &str, call_id: &str, shown: &Shown, text: &str, status: &str) -> Value {
    let mut json = match shown {
        Shown::Function { name, .. } => json!({
            "id": id, "type": "function_call", "status": status,
            "call_id": call_id, "name": name, "arguments": text,
        }),
        Shown::Custom { name, .. } => json!({
            "id": id, "type": "custom_tool_call", "status": status,
            "call_id": call_id, "name": name, "input": text,
        }),
        Shown::ToolSearch => json!({
            "id": id, "type": "tool_search_call", "status": status,
            "call_id": call_id, "execution": "client", "arguments": search_arguments(text),
        }),
        Shown::Hosted { item_type } => json!({
            "id": id, "type": item_type, "status": status, "call_id": call_id,
            "arguments": text, "output": null, "error": null,
        }),
    };
    if let Shown::Function { namespace, .. } | Shown::Custom { namespace, .. } = shown
        && let (Some(namespace), Some(members)) = (namespace, json.as_object_mut())
    {
        members.insert("namespace".into(), namespace.as_str().into());
    }
    json
}

/// What a hosted call came to.
pub(crate) struct HostedEnd<'e> {
    pub(crate) is_error: bool,
    pub(crate) error_kind: Option<&'e str>,
    pub(crate) output: &'e CallOutput,
    pub(crate) duration_ms: u64,
    pub(crate) is_repaired: bool,
    pub(crate) turn: u64,
}

/// A hosted call as an item, with what came of it.
pub(crate) fn hosted_item(
    id: &str,
    call_id: &str,
    item_type: &str,
    arguments: &str,
    end: &HostedEnd<'_>,
) -> Value {
    let mut json = json!({
        "id": id,
        "type": item_type,
        "status": if end.is_error { "failed" } else { "completed" },
        "call_id": call_id,
        "arguments": arguments,
        "output": null,
        "error": null,
        "provenance": {
            "turn": end.turn,
            "repaired": end.is_repaired,
            "duration_ms": end.duration_ms,
        },
    });
    if end.is_error {
        json["error"] = json!({
            "type": end.error_kind.unwrap_or("failed"),
            "message": end.output.to_text(),
        });
    } else {
        json["output"] = json!(end.output);
    }
    json
}

/// The text for a custom tool: most models write it into an object with one member.
fn custom_input(written: &str) -> String {
    match serde_json::from_str::<Value>(written) {
        Ok(Value::Object(mut members)) => match members.remove("input") {
            Some(Value::String(input)) => input,
            _ => written.to_owned(),
        },
        _ => written.to_owned(),
    }
}

/// A search's arguments are an object on the wire.
pub(super) fn search_arguments(written: &str) -> Value {
    match serde_json::from_str(written) {
        Ok(Value::Object(members)) => Value::Object(members),
        _ => json!({}),
    }
}
