//! Tools in the provider's own form: hosted ones as they are, custom tools and namespaces that other providers
//! would get as plain functions.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use haft_core::{
    Conversation, FunctionCall, FunctionCallOutput, Item, Loading, ProviderForm, ProviderOptions,
};
use serde_json::{Map, Value, json};

use super::super::tools::{RenderedTool, RenderedTools};
use super::SEARCH_TOOL;

/// The list of tools: the provider's search, its own tools, then the others in `shown`, in their order. Empty,
/// without brackets, if there are none.
pub(super) fn tool_list(
    shown: &Bytes,
    tools: &RenderedTools,
    provider: &ProviderOptions,
    is_offered: bool,
) -> Bytes {
    let shows_all = shown.len() == tools.json().len();
    let has_forms = shows_all && !provider.forms.is_empty();
    let own: &[Value] = if is_offered { &provider.tools } else { &[] };
    let listed = tools.searchable(shown.clone(), SEARCH_TOOL);
    if own.is_empty() && !has_forms {
        return listed;
    }
    let mut list: Vec<String> = Vec::new();
    if listed.len() != shown.len() {
        list.push(SEARCH_TOOL.to_owned());
    }
    list.extend(own.iter().map(Value::to_string));
    if has_forms {
        add_native(tools, provider, &mut list);
    } else {
        let inside = shown
            .strip_prefix(b"[")
            .and_then(|it| it.strip_suffix(b"]"));
        list.extend(inside.map(|inside| String::from_utf8_lossy(inside).into_owned()));
    }
    format!("[{}]", list.join(",")).into()
}

/// A namespace as the request declared it, and its tools.
type Namespace = (Arc<Map<String, Value>>, Vec<Value>);

/// Adds the tools of a request, those in a row that are in one namespace as one entry. What is loaded later comes
/// at the end, so that the entries before it stay as they are.
fn add_native(tools: &RenderedTools, provider: &ProviderOptions, list: &mut Vec<String>) {
    let mut open: Option<Namespace> = None;
    for tool in tools.tools() {
        let form = provider.forms.get(tool.name());
        let namespace = form.and_then(|form| form.namespace.clone());
        if open.as_ref().map(|(open, _)| open) != namespace.as_ref() {
            list.extend(open.take().map(namespace_json));
        }
        match (form, namespace) {
            (None, _) => list.push(String::from_utf8_lossy(tool.json()).into_owned()),
            (Some(form), None) => list.push(tool_json(tool, form).to_string()),
            (Some(form), Some(namespace)) => {
                let (_, inside) = open.get_or_insert_with(|| (namespace, Vec::new()));
                inside.push(tool_json(tool, form));
            }
        }
    }
    list.extend(open.map(namespace_json));
}

fn namespace_json((declared, tools): Namespace) -> String {
    let mut json = Map::clone(&declared);
    json.insert("tools".into(), tools.into());
    Value::Object(json).to_string()
}

fn tool_json(tool: &RenderedTool, form: &ProviderForm) -> Value {
    let mut json = match &form.custom {
        Some(custom) => custom.clone(),
        None => serde_json::from_slice(tool.json()).unwrap_or_default(),
    };
    json.insert("name".into(), form.name.as_str().into());
    if tool.loading() == Loading::Searched {
        json.insert("defer_loading".into(), true.into());
    }
    Value::Object(json)
}

/// How `tool_choice` names a tool.
pub(super) fn named(name: &str, provider: &ProviderOptions) -> Value {
    let Some(form) = provider.forms.get(name) else {
        return json!({"type": "function", "name": name});
    };
    let kind = match form.custom {
        Some(_) => "custom",
        None => "function",
    };
    let mut json = json!({"type": kind, "name": form.name});
    if let Some(namespace) = form.namespace_name() {
        json["namespace"] = namespace.into();
    }
    json
}

/// The ids of the calls of custom tools, whose outputs have a type of their own.
pub(super) fn custom_calls<'c>(
    conversation: &'c Conversation,
    provider: &ProviderOptions,
) -> HashSet<&'c str> {
    if provider.forms.is_empty() {
        return HashSet::new();
    }
    let calls = conversation.items().filter_map(|item| match item {
        Item::FunctionCall(call) => Some(call),
        _ => None,
    });
    let is_custom = |call: &&FunctionCall| {
        let form = provider.forms.get(&call.name);
        form.is_some_and(|form| form.custom.is_some())
    };
    calls
        .filter(is_custom)
        .map(|call| call.call_id.as_str())
        .collect()
}

/// A call in the provider's form: the members that stand for its type, its tool and what was written.
pub(super) fn call_members(call: &FunctionCall, form: &ProviderForm) -> Map<String, Value> {
    let mut json = Map::new();
    let kind = match form.custom {
        Some(_) => "custom_tool_call",
        None => "function_call",
    };
    json.insert("type".into(), kind.into());
    json.insert("call_id".into(), call.call_id.as_str().into());
    json.insert("name".into(), form.name.as_str().into());
    if let Some(namespace) = form.namespace_name() {
        json.insert("namespace".into(), namespace.into());
    }
    if form.custom.is_some() {
        json.insert("input".into(), input_of(&call.arguments).into());
    }
    json
}

/// The text that a custom tool was called with.
fn input_of(arguments: &str) -> String {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(mut members)) => match members.remove("input") {
            Some(Value::String(input)) => input,
            _ => arguments.to_owned(),
        },
        _ => arguments.to_owned(),
    }
}

/// The type of a call's output.
pub(super) fn output_type(
    output: &FunctionCallOutput,
    custom_calls: &HashSet<&str>,
) -> &'static str {
    if custom_calls.contains(output.call_id.as_str()) {
        "custom_tool_call_output"
    } else {
        "function_call_output"
    }
}
