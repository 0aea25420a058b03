//! Items become calls and outputs that a model can read.

use std::collections::{HashMap, HashSet};

use haft_core::{
    CallOutput, Conversation, FunctionCall, FunctionCallOutput, Item, ItemStatus, ProviderCall,
    Role,
};
use serde_json::{Map, Value, json};

use super::check::call_of;
use super::claims::{Claim, Claims, is_over};
use super::marks::{CALL, TURN, UNSEEN, WIRE_ID, WRITTEN, is_mark};
use super::questions::{Fate, Questions};
use super::searches::{found, names_in, searches};
use super::unseen::{Unseen, UnseenCall, without_unseen};
use super::{Record, ToolNames};
use crate::error::ApiError;
use crate::mcp;

/// What a call of the client is answered with that was cut off before it was whole.
const CUT_OFF: &str = "Not executed: output limit.";

/// What the model reads of a call that was not approved (`dynamic-tools.md` §11, word for word).
fn not_approved(tool: &str, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => {
            format!("Tool '{tool}' needs approval and was not approved. Reason: {reason}")
        }
        None => format!("Tool '{tool}' needs approval and was not approved."),
    }
}

/// And of one that was approved when its response broke off.
fn lost(tool: &str) -> String {
    format!(
        "Tool '{tool}' was interrupted while it ran. Whether it took effect is unknown: check before \
         you call it again."
    )
}

/// A context as a model is to read it.
#[derive(Debug, Default)]
pub(crate) struct Expanded {
    pub(crate) items: Vec<Item>,
    /// Calls among them that are to be carried out before the model is asked: they have no output.
    pub(crate) carried: Vec<Carried>,
    /// What is said behind their outputs.
    pub(crate) queued: Vec<Item>,
    /// The ids of calls among them that the client was not told of.
    pub(crate) unseen: HashSet<String>,
    /// Questions that nobody has answered. Their calls are left out.
    pub(crate) unanswered: Vec<String>,
}

/// A call that somebody has allowed.
#[derive(Debug, Clone)]
pub(crate) struct Carried {
    /// The question, which is the id of the call too.
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// Where it was allowed.
    pub(crate) param: String,
}

/// The items for the model. `takes_images` says whether it sees images in outputs of calls.
pub(crate) fn expand(
    records: &[Record],
    names: &dyn ToolNames,
    takes_images: bool,
    claims: &Claims,
) -> Result<Expanded, ApiError> {
    let outputs = records.iter().filter_map(|record| call_of(&record.item));
    let outputs = outputs.filter(|(_, is_output)| *is_output);
    let mut expansion = Expansion {
        records,
        questions: Questions::of(records, claims)?,
        claims,
        searches: searches(records),
        expanded: Expanded::default(),
        outputs: Vec::new(),
        turn: None,
        answered: outputs.map(|(call_id, _)| call_id).collect(),
        names,
        takes_images,
    };
    for (at, record) in records.iter().enumerate() {
        expansion.add(at, record);
    }
    expansion.close_turn();
    let mut expanded = expansion.expanded;
    expanded.queue();
    Ok(expanded)
}

impl Expanded {
    /// Takes out what others say behind calls that have no output yet.
    fn queue(&mut self) {
        let is_open = |item: &Item| match item {
            Item::FunctionCall(call) => self.carried.iter().any(|open| open.id == call.call_id),
            _ => false,
        };
        let Some(last) = self.items.iter().rposition(is_open) else {
            return;
        };
        let behind = self.items.split_off(last + 1);
        for item in behind {
            match &item {
                Item::Message(message) if message.role != Role::Assistant => self.queued.push(item),
                _ => self.items.push(item),
            }
        }
    }

    /// Everything in order, as if the open calls were answered with nothing.
    pub(crate) fn answered(&self) -> Conversation {
        let outputs = self
            .carried
            .iter()
            .map(|open| Item::FunctionCallOutput(FunctionCallOutput::new(open.id.clone(), "")));
        let items = self.items.iter().cloned().chain(outputs);
        items.chain(self.queued.iter().cloned()).collect()
    }
}

struct Expansion<'n> {
    records: &'n [Record],
    questions: Questions,
    claims: &'n Claims,
    /// The searches that ran here, each with the place of what it found.
    searches: HashMap<usize, usize>,
    expanded: Expanded,
    /// The outputs of the turn whose calls are being read.
    outputs: Vec<FunctionCallOutput>,
    turn: Option<u64>,
    /// The calls that somebody sent an output for.
    answered: HashSet<&'n str>,
    names: &'n dyn ToolNames,
    takes_images: bool,
}

impl Expansion<'_> {
    fn add(&mut self, at: usize, record: &Record) {
        let unseen = Unseen::beside(&record.item);
        self.add_unseen(unseen.before);
        match &record.item {
            Item::FunctionCall(call) => self.add_function_call(call),
            Item::Other(members) => self.add_other(at, record, members),
            item => {
                self.close_turn();
                self.expanded.items.push(without_unseen(item));
            }
        }
        self.add_unseen(unseen.behind);
    }

    /// Calls that the client was not told of. An item that is there twice brings them once.
    fn add_unseen(&mut self, calls: Vec<UnseenCall>) {
        for UnseenCall { turn, call, output } in calls {
            if self.expanded.unseen.insert(call.call_id.clone()) {
                self.push_call(call, Some(turn));
                self.outputs.push(output);
            }
        }
    }

    fn add_function_call(&mut self, call: &FunctionCall) {
        let mut call = call.clone();
        let namespace = call.extra.shift_remove("namespace");
        let namespace = namespace.as_ref().and_then(Value::as_str);
        call.name = self.names.client(namespace, &call.name);
        let turn = call.extra.shift_remove(TURN).and_then(|turn| turn.as_u64());
        call.extra.shift_remove(UNSEEN);
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
        self.expanded.items.push(Item::FunctionCall(call));
    }

    /// The outputs of a turn come behind all of its calls.
    fn close_turn(&mut self) {
        let outputs = self.outputs.drain(..).map(Item::FunctionCallOutput);
        self.expanded.items.extend(outputs);
        self.turn = None;
    }

    fn add_other(&mut self, at: usize, record: &Record, members: &Map<String, Value>) {
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
                self.expanded.items.push(Item::FunctionCallOutput(output));
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
                } else {
                    self.add_search(at, record, &arguments);
                }
            }
            "tool_search_output" => {
                if let Some(call_id) = text("call_id") {
                    self.close_turn();
                    let found = FunctionCallOutput::new(call_id, found_tools(members));
                    self.expanded.items.push(Item::FunctionCallOutput(found));
                }
            }
            // What came of a call that somebody was asked about stands with the question.
            kind if kind == "mcp_call" || kind.contains(':') => {
                let asked = text("approval_request_id");
                let fate = asked.and_then(|id| self.questions.fate(id));
                if !matches!(fate, Some(Fate::Ran(_))) {
                    self.add_hosted(record, members);
                }
            }
            "mcp_approval_request" => self.add_question(record, members),
            // Nothing of these is for the model: they say what there is, or what was decided.
            "additional_tools"
            | "configuration_update"
            | "mcp_list_tools"
            | "mcp_approval_response" => {}
            _ => {
                let is_open = match record.item.provider_call() {
                    Some(ProviderCall::Call { call_id, .. }) => !self.answered.contains(call_id),
                    _ => false,
                };
                // The client was never asked to execute a call that was cut off.
                if is_cut && is_open {
                    return;
                }
                self.close_turn();
                self.expanded.items.push(Item::Other(as_received(members)));
            }
        }
    }

    /// A search that ran here, with what it found.
    fn add_search(&mut self, at: usize, record: &Record, arguments: &Value) {
        let output = self.searches.get(&at).and_then(|at| self.records.get(*at));
        let (Some(output), Item::Other(members)) = (output, &record.item) else {
            return;
        };
        let Item::Other(output) = &output.item else {
            return;
        };
        let call_id = members.get(CALL).and_then(Value::as_str);
        let call_id = call_id.unwrap_or(&record.id);
        let written = members.get(WRITTEN).and_then(Value::as_str);
        let arguments = written.map_or_else(|| arguments.to_string(), str::to_owned);
        let call = call(call_id, &self.names.own_search(), arguments);
        let turn = turn_of(members);
        self.push_call(call, turn);
        let text = found(output, self.names);
        let output =
            FunctionCallOutput::new(call_id, text).referring_to(names_in(output, self.names));
        self.outputs.push(output);
        if turn.is_none() {
            // What is called next may be what was found, which was not there before.
            self.close_turn();
        }
    }

    /// A call that ran here, with what came of it.
    fn add_hosted(&mut self, record: &Record, members: &Map<String, Value>) {
        let text = |key: &str| members.get(key).and_then(Value::as_str);
        let kind = record.item.kind();
        let name = match kind {
            "mcp_call" => {
                let (label, name) = (text("server_label"), text("name"));
                self.names
                    .mcp(label.unwrap_or_default(), name.unwrap_or_default())
            }
            kind => self.names.hosted(kind),
        };
        let call_id = text(CALL).or_else(|| text("call_id"));
        let call_id = call_id.unwrap_or(&record.id).to_owned();
        self.push_call(
            call(&call_id, &name, arguments_of(members)),
            turn_of(members),
        );
        let output = self.output_of_call(call_id, record, members);
        self.outputs.push(output);
    }

    /// A call that somebody was asked about, with what became of it.
    fn add_question(&mut self, record: &Record, members: &Map<String, Value>) {
        let text = |key: &str| members.get(key).and_then(Value::as_str);
        let id = record.id.clone();
        let (label, raw) = (text("server_label"), text("name"));
        let (label, raw) = (label.unwrap_or_default(), raw.unwrap_or_default());
        let name = self.names.mcp(label, raw);
        let arguments = arguments_of(members);
        let fate = self.questions.fate(&id).cloned().unwrap_or(Fate::Open);
        let output = match &fate {
            Fate::Open => {
                self.expanded.unanswered.push(id);
                return;
            }
            Fate::Allowed { param } => {
                self.expanded.carried.push(Carried {
                    id: id.clone(),
                    label: label.to_owned(),
                    name: raw.to_owned(),
                    arguments: text("arguments").unwrap_or_default().to_owned(),
                    param: param.clone(),
                });
                None
            }
            Fate::Refused(reason) => {
                let text = not_approved(&name, reason.as_deref());
                Some(FunctionCallOutput::new(id.clone(), text).as_error())
            }
            Fate::Lost => Some(FunctionCallOutput::new(id.clone(), lost(&name)).as_error()),
            Fate::Ran(at) => {
                let ran = self.records.get(*at);
                ran.map(|ran| self.output_of_approved(&id, &name, ran))
            }
            Fate::RanElsewhere => match self.claims.get(&id) {
                Some(Claim::Ran { record, .. }) => {
                    Some(self.output_of_approved(&id, &name, record))
                }
                _ => None,
            },
        };
        self.push_call(call(&id, &name, arguments), turn_of(members));
        self.outputs.extend(output);
    }

    /// What a model reads of an approved call that ran. One that was cut off has an unknown outcome.
    fn output_of_approved(&self, id: &str, name: &str, record: &Record) -> FunctionCallOutput {
        match &record.item {
            Item::Other(members) if is_over(record) => {
                self.output_of_call(id.to_owned(), record, members)
            }
            _ => FunctionCallOutput::new(id, lost(name)).as_error(),
        }
    }

    /// What a model reads of a call that ran here.
    fn output_of_call(
        &self,
        call_id: String,
        record: &Record,
        members: &Map<String, Value>,
    ) -> FunctionCallOutput {
        let mut output = FunctionCallOutput::new(call_id, "");
        if record.item.kind() == "mcp_call" {
            (output.output, output.is_error) = mcp::output_of(members, self.takes_images);
            return output;
        }
        match members.get("error") {
            None | Some(Value::Null) => output.output = output_of(members.get("output")),
            Some(error) => {
                let message = error.get("message").or(Some(error));
                output.output = output_of(message);
                output.is_error = true;
            }
        }
        output
    }
}

/// An item of a provider's own tool as the provider knows it: without what was noted here.
fn as_received(members: &Map<String, Value>) -> Map<String, Value> {
    let mut item = members.clone();
    match members.get(WIRE_ID).and_then(Value::as_str) {
        None => {}
        Some("") => {
            item.shift_remove("id");
        }
        Some(id) => {
            item.insert("id".into(), id.into());
        }
    }
    item.retain(|key, _| !is_mark(key));
    item
}

fn arguments_of(members: &Map<String, Value>) -> String {
    let arguments = members.get("arguments").and_then(Value::as_str);
    let arguments = arguments.filter(|arguments| !arguments.trim().is_empty());
    arguments.unwrap_or("{}").to_owned()
}

/// Which turn of its response a call belongs to, as far as that is known.
fn turn_of(members: &Map<String, Value>) -> Option<u64> {
    let told = members.get("provenance").and_then(|told| told.get("turn"));
    told.or_else(|| members.get(TURN)).and_then(Value::as_u64)
}

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

/// What the model reads of what the client found, by the names that it calls it by.
fn found_tools(members: &Map<String, Value>) -> String {
    let mut names = Vec::new();
    for tool in members
        .get("tools")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        for name in names_of(tool) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    if names.is_empty() {
        "No tools were found.".to_owned()
    } else {
        format!("These tools can be called now: {}.", names.join(", "))
    }
}

fn names_of(tool: &Value) -> Vec<String> {
    let text = |key: &str| tool[key].as_str().unwrap_or_default();
    let list = |key: &str| tool[key].as_array().into_iter().flatten();
    match text("type") {
        "namespace" => {
            let inner = list("tools").filter_map(|inner| inner["name"].as_str());
            inner
                .map(|inner| format!("{}__{inner}", text("name")))
                .collect()
        }
        "mcp" => {
            let allowed = list("allowed_tools").filter_map(Value::as_str);
            let named: Vec<_> = allowed
                .map(|name| format!("{}__{name}", text("server_label")))
                .collect();
            match named.as_slice() {
                [] => vec![format!("those of {}", text("server_label"))],
                _ => named,
            }
        }
        _ if !text("name").is_empty() => vec![text("name").to_owned()],
        other => other
            .strip_prefix("haft:")
            .map(str::to_owned)
            .into_iter()
            .collect(),
    }
}
