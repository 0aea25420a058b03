//! What of a context goes into a compaction, and what stays outside of it.

use std::collections::{HashMap, HashSet};

use haft_core::{Item, ProviderCall, Role};
use serde_json::Value;

use super::piece::{Origin, Piece};
use crate::estimate::tokens_of_item;
use crate::history::{Unsaid, call_of};

/// Who keeps the user's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The client: it gets them back as items.
    Window,
    /// The compaction, for so many tokens, the latest first.
    Everything {
        budget: u64,
        /// Whether the model is to go on at once: then it needs what was done last as it was.
        goes_on: bool,
    },
}

/// A context, divided.
#[derive(Debug, Default)]
pub(super) struct Division {
    /// What the host said.
    pub(super) host: Vec<Item>,
    /// The tools that were loaded.
    pub(super) tools: Vec<Value>,
    /// What was loaded without a word.
    pub(super) unsaid: Option<Unsaid>,
    /// What is kept word for word, in order.
    pub(super) kept: Vec<Item>,
    /// How many of these the summary follows: those behind which something is summed up. A request that was
    /// answered must not read as an open one.
    pub(super) kept_before_summary: usize,
    /// The places of what stays outside.
    pub(super) outside: Vec<usize>,
    /// The digests of all that goes in.
    pub(super) covers: Vec<u64>,
    /// Whether a summary says anything that is not kept anyway.
    pub(super) is_worthwhile: bool,
}

pub(super) fn divide(pieces: &[Piece], scope: Scope) -> Division {
    let open = open_places(pieces);
    let latest = match scope {
        Scope::Window => HashSet::new(),
        Scope::Everything { budget, goes_on } => {
            let mut places = latest_messages(pieces, budget);
            if goes_on {
                places.extend(last_batch(pieces));
            }
            places
        }
    };
    let mut division = Division {
        tools: loaded_tools(pieces, scope),
        unsaid: Unsaid::of(pieces.iter().map(|piece| &piece.unsaid)),
        ..Division::default()
    };
    for (at, piece) in pieces.iter().enumerate() {
        let is_users = is_from_user(piece);
        let is_clients = match scope {
            Scope::Window => is_users || is_declared(piece),
            Scope::Everything { .. } => false,
        };
        if is_clients || open.contains(&at) {
            division.outside.push(at);
            // Of an earlier compaction nothing is left but what comes out of it here.
            if piece.origin != Origin::Itself {
                division.covers.push(piece.digest());
            }
            continue;
        }
        division.covers.push(piece.digest());
        let item = &piece.record.item;
        match item {
            Item::Message(message) if matches!(message.role, Role::System | Role::Developer) => {
                division.host.push(item.clone());
            }
            // Sealed by somebody else: it cannot be summed up.
            _ if latest.contains(&at) || piece.kind() == "compaction" => {
                division.kept.push(item.clone());
            }
            _ => {
                let is_new = !piece.is_summary() && piece.kind() != "additional_tools";
                division.is_worthwhile |= is_new;
                if is_in_summary(piece) {
                    division.kept_before_summary = division.kept.len();
                }
            }
        }
    }
    division.covers.sort_unstable();
    division.covers.dedup();
    division
}

/// Whether a summary reports it: lists of tools and settings are part of no turn.
fn is_in_summary(piece: &Piece) -> bool {
    !matches!(
        piece.kind(),
        "additional_tools" | "configuration_update" | "mcp_list_tools"
    )
}

/// A message of the user; a summary is none, though it bears his role.
fn is_from_user(piece: &Piece) -> bool {
    let is_users =
        matches!(&piece.record.item, Item::Message(message) if message.role == Role::User);
    is_users && !piece.is_summary()
}

/// Tools that a client declares by an item of its own.
fn is_declared(piece: &Piece) -> bool {
    piece.kind() == "additional_tools" && piece.origin == Origin::Itself
}

/// Where calls without output stand, with the calls beside them and what came of those, and
/// approvals that nobody has answered.
pub(super) fn open_places(pieces: &[Piece]) -> HashSet<usize> {
    let mut outputs: HashMap<&str, usize> = HashMap::new();
    let mut answered = HashSet::new();
    for (at, piece) in pieces.iter().enumerate() {
        match call_of(&piece.record.item) {
            Some((id, true)) => {
                outputs.insert(id, at);
            }
            _ if piece.kind() == "mcp_approval_response" => {
                answered.extend(piece.member("approval_request_id").and_then(Value::as_str));
            }
            _ => {}
        }
    }
    let mut places = HashSet::new();
    for (at, piece) in pieces.iter().enumerate() {
        if piece.kind() == "mcp_approval_request" && !answered.contains(piece.record.id.as_str()) {
            places.insert(at);
        }
        if waiting_call(piece).is_none_or(|id| outputs.contains_key(id)) {
            continue;
        }
        for beside in batch_around(pieces, at) {
            let output = waiting_call(&pieces[beside]).and_then(|id| outputs.get(id));
            places.extend(output.copied());
            places.insert(beside);
        }
    }
    places
}

/// The id of a call that somebody else answers. One that ran here holds its own result; one that
/// was cut off never gets any.
fn waiting_call(piece: &Piece) -> Option<&str> {
    match &piece.record.item {
        Item::FunctionCall(call) => {
            let is_cut = call.status == Some(haft_core::ItemStatus::Incomplete);
            (!is_cut).then_some(call.call_id.as_str())
        }
        Item::Other(members) => {
            let is_asked = matches!(piece.kind(), "custom_tool_call" | "tool_search_call")
                || piece.record.item.provider_call().is_some_and(is_call);
            let is_cut = members.get("status").and_then(Value::as_str) == Some("incomplete");
            let id = members.get("call_id").and_then(Value::as_str);
            id.filter(|_| is_asked && !is_cut)
        }
        _ => None,
    }
}

/// Whether it is a call of a tool that the model's provider defines.
fn is_call(call: ProviderCall<'_>) -> bool {
    matches!(call, ProviderCall::Call { .. })
}

/// The calls in a row around one, with the thoughts that led to them.
fn batch_around(pieces: &[Piece], at: usize) -> std::ops::Range<usize> {
    let belongs = |piece: &Piece| piece.kind() == "reasoning" || waiting_call(piece).is_some();
    let before = pieces[..at].iter().rev().take_while(|piece| belongs(piece));
    let behind = pieces[at..].iter().take_while(|piece| belongs(piece));
    at - before.count()..at + behind.count()
}

/// The user's messages from the end on, as far as the budget goes; the very last ones in any case.
fn latest_messages(pieces: &[Piece], budget: u64) -> HashSet<usize> {
    let mut places = HashSet::new();
    let mut room = budget;
    let mut is_last_word = true;
    for (at, piece) in pieces.iter().enumerate().rev() {
        if is_from_user(piece) {
            let tokens = tokens_of_item(&piece.record.item);
            if tokens > room && !is_last_word {
                break;
            }
            room = room.saturating_sub(tokens);
            places.insert(at);
        } else if !places.is_empty() {
            is_last_word = false;
        }
    }
    places
}

/// What the model did last, if its context ends with that: calls and their outputs.
fn last_batch(pieces: &[Piece]) -> std::ops::Range<usize> {
    let is_output = |piece: &Piece| matches!(call_of(&piece.record.item), Some((_, true)));
    let is_calls = |piece: &Piece| {
        piece.kind() == "reasoning" || matches!(call_of(&piece.record.item), Some((_, false)))
    };
    let outputs = pieces.iter().rev().take_while(|piece| is_output(piece));
    let mut start = pieces.len() - outputs.count();
    if start == pieces.len() {
        return start..start;
    }
    let calls = pieces[..start]
        .iter()
        .rev()
        .take_while(|piece| is_calls(piece));
    start -= calls.count();
    // An output may answer a call that was made long before: then all since then is kept.
    loop {
        let answered: HashSet<&str> = pieces[start..]
            .iter()
            .filter_map(|piece| call_of(&piece.record.item).filter(|(_, is_output)| *is_output))
            .map(|(id, _)| id)
            .collect();
        let first = pieces[..start].iter().position(|piece| {
            matches!(call_of(&piece.record.item), Some((id, false)) if answered.contains(id))
        });
        match first {
            Some(first) => start = first,
            None => return start..pieces.len(),
        }
    }
}

/// The definitions that were loaded, each name once, in its latest form.
fn loaded_tools(pieces: &[Piece], scope: Scope) -> Vec<Value> {
    let mut tools: Vec<(String, Value)> = Vec::new();
    for piece in pieces {
        let stays_outside = scope == Scope::Window && is_declared(piece);
        if stays_outside || !matches!(piece.kind(), "additional_tools" | "tool_search_output") {
            continue;
        }
        let loaded = piece.member("tools").and_then(Value::as_array);
        for tool in loaded.into_iter().flatten() {
            let key = tool_key(tool);
            tools.retain(|(known, _)| *known != key);
            tools.push((key, tool.clone()));
        }
    }
    tools.into_iter().map(|(_, tool)| tool).collect()
}

/// What two definitions of one tool share. A namespace may be given in several pieces, each with
/// its own tools.
fn tool_key(tool: &Value) -> String {
    let text = |key: &str| tool.get(key).and_then(Value::as_str);
    match (text("type"), text("name")) {
        (Some("function" | "custom"), Some(name)) => format!("tool {name}"),
        _ => tool.to_string(),
    }
}
