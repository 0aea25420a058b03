//! Calls: of the client's functions and custom tools, and of tools that run here.

use haft_core::Item;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::custom_input::CustomInput;
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
    /// The search of this server that the request asks for.
    ServerSearch,
    /// The search that nobody sees.
    InternalSearch,
    /// A tool that runs here.
    Hosted {
        /// Its type, `haft:clock`.
        item_type: String,
    },
    /// A tool of an MCP server.
    Mcp {
        server_label: String,
        /// As the server calls it.
        name: String,
    },
}

/// A call that runs here: what its item says of it beside what comes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostedCall {
    pub(crate) item_type: String,
    pub(crate) arguments: String,
    /// Whose tool it is; none for a tool of this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mcp: Option<McpName>,
    /// The question that somebody answered with yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approval_request_id: Option<String>,
}

/// A tool of an MCP server, in the words of the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct McpName {
    pub(crate) server_label: String,
    pub(crate) name: String,
}

/// The type of the items of searches.
pub(crate) const SEARCH_CALL: &str = "tool_search_call";

/// The type of the items of calls of MCP servers.
pub(crate) const MCP_CALL: &str = "mcp_call";

impl HostedCall {
    /// What the ids of its items begin with.
    pub(crate) fn id_prefix(&self) -> &str {
        prefix_of(&self.item_type)
    }

    /// Whose tool a person is asked about, and which: a tool of this server is its slug's.
    pub(crate) fn asked_as(&self) -> (&str, &str) {
        match &self.mcp {
            Some(mcp) => (&mcp.server_label, &mcp.name),
            None => self
                .item_type
                .split_once(':')
                .unwrap_or(("haft", &self.item_type)),
        }
    }

    /// The call as it begins.
    pub(crate) fn begun(&self, id: &str, call_id: &str) -> Value {
        let mut json = match &self.mcp {
            Some(mcp) => mcp_item(id, mcp, "", "in_progress"),
            None => json!({
                "id": id, "type": self.item_type, "status": "in_progress", "call_id": call_id,
                "arguments": self.arguments, "output": null, "error": null,
            }),
        };
        if let Some(request) = &self.approval_request_id {
            json["approval_request_id"] = request.as_str().into();
        }
        json
    }
}

fn prefix_of(item_type: &str) -> &str {
    match item_type.split_once(':') {
        Some((slug, _)) => slug,
        None if item_type == MCP_CALL => "mcp",
        None => "haft",
    }
}

fn mcp_item(id: &str, mcp: &McpName, arguments: &str, status: &str) -> Value {
    json!({
        "id": id, "type": MCP_CALL, "status": status,
        "server_label": mcp.server_label, "name": mcp.name, "arguments": arguments,
        "output": null, "error": null, "approval_request_id": null,
    })
}

impl Shown {
    /// What the ids of its items begin with.
    pub(crate) fn id_prefix(&self) -> &str {
        match self {
            Self::Function { .. } => "fc",
            Self::Custom { .. } => "ctc",
            Self::ToolSearch | Self::ServerSearch | Self::InternalSearch => "tsc",
            Self::Hosted { item_type } => prefix_of(item_type),
            Self::Mcp { .. } => "mcp",
        }
    }

    /// Whether its calls are executed here.
    pub(crate) fn is_hosted(&self) -> bool {
        matches!(self, Self::Hosted { .. } | Self::Mcp { .. })
    }

    /// A call of it that is executed here; none of one that the client executes.
    pub(crate) fn hosted(&self, arguments: &str) -> Option<HostedCall> {
        let (item_type, mcp) = match self {
            Self::Hosted { item_type } => (item_type.as_str(), None),
            Self::ServerSearch => (SEARCH_CALL, None),
            Self::Mcp { server_label, name } => {
                let mcp = McpName {
                    server_label: server_label.clone(),
                    name: name.clone(),
                };
                (MCP_CALL, Some(mcp))
            }
            _ => return None,
        };
        Some(HostedCall {
            item_type: item_type.to_owned(),
            arguments: arguments.to_owned(),
            mcp,
            approval_request_id: None,
        })
    }
}

/// A call that the model is writing.
#[derive(Debug)]
pub(super) struct OpenCall {
    call_id: String,
    shown: Shown,
    told: String,
    /// The input of a custom tool, as far as it was sent.
    input: CustomInput,
}

impl OpenCall {
    pub(super) fn new(call_id: String, shown: Shown) -> Self {
        Self {
            call_id,
            shown,
            told: String::new(),
            input: CustomInput::default(),
        }
    }

    /// Functions and MCP tools show their arguments as they are written, custom tools the input in them. Hosted
    /// calls have no events of their own.
    pub(super) fn add(&mut self, text: &str, place: &Place, writer: &mut Writer) {
        if text.is_empty() {
            return;
        }
        let kind = match self.shown {
            Shown::Function { .. } => Some("response.function_call_arguments.delta"),
            Shown::Mcp { .. } => Some(MCP_DELTA),
            _ => None,
        };
        if let Some(kind) = kind {
            write_delta(kind, text, place, writer);
        }
        self.told.push_str(text);
        if let Shown::Custom { .. } = self.shown
            && let Some(piece) = self.input.advance(&self.told)
        {
            write_delta(INPUT_DELTA, &piece, place, writer);
        }
    }

    /// The model is done with a call that runs here, and has written these arguments.
    pub(super) fn hand_over(
        mut self,
        written: Option<&str>,
        place: &Place,
        writer: &mut Writer,
    ) -> Option<(String, HostedCall)> {
        if let Shown::Mcp { .. } = self.shown {
            if let Some(more) = rest(&self.told.clone(), written.unwrap_or_default()) {
                self.add(more, place, writer);
            }
            if self.told.trim().is_empty() {
                self.add("{}", place, writer);
            }
            write_arguments(&self.told, place, writer);
        } else if let Some(written) = written {
            written.clone_into(&mut self.told);
        }
        let call = self.shown.hosted(&self.told)?;
        Some((self.call_id, call))
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
                let (input, rest) = std::mem::take(&mut self.input).finish(&written);
                if !rest.is_empty() {
                    write_delta(INPUT_DELTA, &rest, place, writer);
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
            Shown::ToolSearch
            | Shown::ServerSearch
            | Shown::InternalSearch
            | Shown::Hosted { .. }
            | Shown::Mcp { .. } => written,
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

/// Tells the arguments of an MCP call that is known as a whole.
pub(super) fn tell_arguments(arguments: &str, place: &Place, writer: &mut Writer) {
    if !arguments.is_empty() {
        write_delta(MCP_DELTA, arguments, place, writer);
    }
    write_arguments(arguments, place, writer);
}

const MCP_DELTA: &str = "response.mcp_call_arguments.delta";

const INPUT_DELTA: &str = "response.custom_tool_call_input.delta";

fn write_arguments(arguments: &str, place: &Place, writer: &mut Writer) {
    let done = json!({
        "item_id": place.item_id, "output_index": place.output_index, "arguments": arguments,
    });
    writer.write("response.mcp_call_arguments.done", &done);
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
            "id": id, "type": SEARCH_CALL, "status": status,
            "call_id": call_id, "execution": "client", "arguments": search_arguments(text),
        }),
        Shown::ServerSearch | Shown::InternalSearch => json!({
            "id": id, "type": SEARCH_CALL, "status": status,
            "call_id": null, "execution": "server", "arguments": search_arguments(text),
        }),
        Shown::Hosted { item_type } => json!({
            "id": id, "type": item_type, "status": status, "call_id": call_id,
            "arguments": text, "output": null, "error": null,
        }),
        Shown::Mcp { server_label, name } => {
            let mcp = McpName {
                server_label: server_label.clone(),
                name: name.clone(),
            };
            mcp_item(id, &mcp, text, status)
        }
    };
    if let Shown::Function { namespace, .. } | Shown::Custom { namespace, .. } = shown
        && let (Some(namespace), Some(members)) = (namespace, json.as_object_mut())
    {
        members.insert("namespace".into(), namespace.as_str().into());
    }
    json
}

/// A search's arguments are an object on the wire.
pub(in crate::stream) fn search_arguments(written: &str) -> Value {
    match serde_json::from_str(written) {
        Ok(Value::Object(members)) => Value::Object(members),
        _ if written.trim().is_empty() => json!({}),
        // The API demands an object, and what the model wrote is all that there is to search for.
        _ => json!({"query": written}),
    }
}
