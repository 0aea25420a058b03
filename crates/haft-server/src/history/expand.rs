//! Items become calls and outputs that a model can read.

use std::collections::HashSet;

use haft_core::{CallOutput, FunctionCall, FunctionCallOutput, Item, ItemStatus};
use serde_json::{Map, Value, json};

use super::check::call_of;
use super::{Record, ToolNames};

/// What a call of the client is answered with that was cut off before it was whole.
const CUT_OFF: &str = "Not executed: output limit.";

/// The items for the model.
pub(crate) fn expand(records: &[Record], names: &dyn ToolNames) -> Vec<Item> {
    let outputs = records.iter().filter_map(|record| call_of(&record.item));
    let outputs = outputs.filter(|(_, is_output)| *is_output);
    let mut expansion = Expansion {
        items: Vec::new(),
        outputs: Vec::new(),
        turn: None,
        answered: outputs.map(|(call_id, _)| call_id).collect(),
        names,
    };
    for record in records {
        expansion.add(record);
    }
    expansion.close_turn();
    expansion.items
}

struct Expansion<'n> {
    items: Vec<Item>,
    /// The outputs of the turn whose calls are being read.
    outputs: Vec<FunctionCallOutput>,
    turn: Option<u64>,
    /// The calls that somebody sent an output for.
    answered: HashSet<&'n str>,
    names: &'n dyn ToolNames,
}

impl Expansion<'_> {
    fn add(&mut self, record: &Record) {
        match &record.item {
            Item::FunctionCall(call) => self.add_function_call(call),
            Item::FunctionCallOutput(output) => {
                self.close_turn();
                self.items.push(Item::FunctionCallOutput(output.clone()));
            }
            Item::Other(members) => self.add_other(record, members),
            item => {
                self.close_turn();
                self.items.push(item.clone());
            }
        }
    }

    fn add_function_call(&mut self, call: &FunctionCall) {
        let mut call = call.clone();
        let namespace = call.extra.shift_remove("namespace");
        let namespace = namespace.as_ref().and_then(Value::as_str);
        call.name = self.names.client(namespace, &call.name);
        let turn = call.extra.shift_remove(TURN).and_then(|turn| turn.as_u64());
        let is_cut = call.status == Some(ItemStatus::Incomplete);
        self.push_client_call(call, turn, is_cut);
    }

    /// A call of the client. One that was cut off was not made, unless the client says what came of
    /// it.
    fn push_client_call(&mut self, call: FunctionCall, turn: Option<u64>, is_cut: bool) {
        let call_id = call.call_id.clone();
        self.push_call(call, turn);
        if is_cut && !self.answered.contains(call_id.as_str()) {
            let output = FunctionCallOutput::new(call_id, CUT_OFF).as_error();
            self.outputs.push(output);
        }
    }

    fn push_call(&mut self, call: FunctionCall, turn: Option<u64>) {
        let is_next_turn = matches!((self.turn, turn), (Some(now), Some(then)) if now != then);
        if is_next_turn {
            self.close_turn();
        }
        self.turn = turn.or(self.turn);
        self.items.push(Item::FunctionCall(call));
    }

    /// The outputs of a turn come behind all of its calls.
    fn close_turn(&mut self) {
        let outputs = self.outputs.drain(..).map(Item::FunctionCallOutput);
        self.items.extend(outputs);
        self.turn = None;
    }

    fn add_other(&mut self, record: &Record, members: &Map<String, Value>) {
        let text = |key: &str| members.get(key).and_then(Value::as_str);
        let turn = members.get(TURN).and_then(Value::as_u64);
        let is_cut = text("status") == Some("incomplete");
        let kind = record.item.kind();
        match kind {
            "custom_tool_call" => {
                let name = text("name").unwrap_or_default();
                let name = self.names.client(text("namespace"), name);
                let arguments = json!({"input": text("input").unwrap_or_default()}).to_string();
                let call_id = text("call_id").unwrap_or_default();
                self.push_client_call(call(call_id, &name, arguments), turn, is_cut);
            }
            "custom_tool_call_output" => {
                self.close_turn();
                let mut output = FunctionCallOutput::new(text("call_id").unwrap_or_default(), "");
                output.output = output_of(members.get("output"));
                output.is_error = members.get("is_error") == Some(&Value::Bool(true));
                self.items.push(Item::FunctionCallOutput(output));
            }
            "tool_search_call" => {
                let arguments = members
                    .get("arguments")
                    .cloned()
                    .unwrap_or_else(|| json!({}));
                // One that ran on a server has no id of its own.
                if let Some(call_id) = text("call_id") {
                    let call = call(call_id, &self.names.search(), arguments.to_string());
                    self.push_client_call(call, turn, is_cut);
                }
            }
            "tool_search_output" => {
                if let Some(call_id) = text("call_id") {
                    self.close_turn();
                    let found = FunctionCallOutput::new(call_id, found_tools(members));
                    self.items.push(Item::FunctionCallOutput(found));
                }
            }
            "mcp_call" => {
                let name = text("name").unwrap_or_default();
                let name = self.names.client(text("server_label"), name);
                self.add_hosted(&record.id, &name, members);
            }
            kind if kind.contains(':') => {
                let name = self.names.hosted(kind);
                self.add_hosted(&record.id, &name, members);
            }
            // Nothing of these is for the model: they say what there is, or what was decided.
            "additional_tools"
            | "configuration_update"
            | "mcp_list_tools"
            | "mcp_approval_request"
            | "mcp_approval_response" => {}
            _ => {
                self.close_turn();
                self.items.push(record.item.clone());
            }
        }
    }

    /// A call that ran here, with what came of it.
    fn add_hosted(&mut self, id: &str, name: &str, members: &Map<String, Value>) {
        let text = |key: &str| members.get(key).and_then(Value::as_str);
        let call_id = text("call_id").unwrap_or(id).to_owned();
        let provenance = members.get("provenance");
        let turn = provenance
            .and_then(|told| told.get("turn"))
            .and_then(Value::as_u64);
        let arguments = text("arguments").filter(|arguments| !arguments.trim().is_empty());
        let arguments = arguments.unwrap_or("{}").to_owned();
        self.push_call(call(&call_id, name, arguments), turn);
        let mut output = FunctionCallOutput::new(call_id, "");
        match members.get("error") {
            None | Some(Value::Null) => output.output = output_of(members.get("output")),
            Some(error) => {
                let message = error.get("message").or(Some(error));
                output.output = output_of(message);
                output.is_error = true;
            }
        }
        self.outputs.push(output);
    }
}

/// Marks in stored calls which turn of their response they belong to; clients do not see it.
pub(crate) const TURN: &str = "haft_turn";

fn call(call_id: &str, name: &str, arguments: String) -> FunctionCall {
    FunctionCall {
        id: None,
        status: None,
        call_id: call_id.to_owned(),
        name: name.to_owned(),
        arguments,
        extra: Map::new(),
    }
}

fn output_of(output: Option<&Value>) -> CallOutput {
    match output {
        None | Some(Value::Null) => CallOutput::Text(String::new()),
        Some(Value::String(text)) => CallOutput::Text(text.clone()),
        Some(other) => serde_json::from_value(other.clone())
            .unwrap_or_else(|_| CallOutput::Text(other.to_string())),
    }
}

fn found_tools(members: &Map<String, Value>) -> String {
    let tools = members.get("tools").and_then(Value::as_array);
    let names: Vec<_> = tools
        .into_iter()
        .flatten()
        .filter_map(|tool| tool.get("name").and_then(Value::as_str))
        .collect();
    if names.is_empty() {
        "No tools were found.".to_owned()
    } else {
        format!("These tools can be called now: {}.", names.join(", "))
    }
}
