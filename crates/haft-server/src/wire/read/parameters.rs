//! Members of a request that the Responses API does not have.
//!
//! Those of Chat Completions change what a model answers, and `OpenAI` refuses them: so they are refused here. Every
//! other member that has no effect is accepted, since clients send more than one server knows, and reported by name.

use serde_json::Value;

use super::fields::Fields;
use super::{Door, Read};
use crate::error::{ApiError, ErrorCode};

/// Parameters of Chat Completions that have another name here.
const MOVED: [(&str, &str); 8] = [
    ("function_call", "tool_choice"),
    ("functions", "tools"),
    ("max_completion_tokens", "max_output_tokens"),
    ("max_tokens", "max_output_tokens"),
    ("messages", "input"),
    ("reasoning_effort", "reasoning.effort"),
    ("response_format", "text.format"),
    ("verbosity", "text.verbosity"),
];

/// Parameters of Chat Completions that have no counterpart here.
const UNKNOWN: [&str; 10] = [
    "audio",
    "logit_bias",
    "logprobs",
    "modalities",
    "n",
    "prediction",
    "seed",
    "stop",
    "suffix",
    "web_search_options",
];

/// Refuses the parameters that `OpenAI` refuses, and templates that only `OpenAI` stores.
pub(super) fn refuse_foreign(fields: &Fields) -> Read<()> {
    for (name, here) in MOVED {
        if fields.has(name) {
            let message = format!(
                "Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to `{here}`"
            );
            return Err(ApiError::new(ErrorCode::UnsupportedParameter, message).at(name));
        }
    }
    if let Some(name) = UNKNOWN.into_iter().find(|name| fields.has(name)) {
        let message =
            format!("Unknown parameter: '{name}'. The Responses API has no `{name}`; leave it out");
        return Err(ApiError::new(ErrorCode::UnknownParameter, message).at(name));
    }
    if fields.has("prompt") {
        let message = "Unsupported parameter: 'prompt'. This server stores no prompt templates; send the text in \
                       `instructions` and `input`";
        return Err(ApiError::new(ErrorCode::UnsupportedParameter, message).at("prompt"));
    }
    Ok(())
}

/// Entries of `include` that belong to tools which are not executed here.
const INCLUDES_OF_TOOLS: [&str; 5] = [
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
];

/// The nested members of a body that have no effect, as paths. Names only: values may be secret.
pub(super) fn ignored_members(body: &Value, door: Door) -> Vec<String> {
    let mut ignored = Vec::new();
    // On a WebSocket both mean something.
    if door == Door::Http {
        let names = ["generate", "stream_id"].into_iter();
        let given = names.filter(|name| !body.get(name).is_none_or(Value::is_null));
        ignored.extend(given.map(str::to_owned));
    }
    let known: [(&str, &[&str]); 3] = [
        ("reasoning", &["effort", "summary", "generate_summary"]),
        // Frames are never padded here.
        ("stream_options", &[]),
        ("text", &["format", "verbosity"]),
    ];
    for (name, known) in known {
        let members = body.get(name).and_then(Value::as_object);
        for (key, value) in members.into_iter().flatten() {
            let is_default = value.is_null() || *value == Value::Bool(false);
            if !is_default && !known.contains(&key.as_str()) {
                ignored.push(format!("{name}.{key}"));
            }
        }
    }
    let included = body.get("include").and_then(Value::as_array);
    let included = included.into_iter().flatten().filter_map(Value::as_str);
    let of_tools = included.filter(|entry| INCLUDES_OF_TOOLS.contains(entry));
    ignored.extend(of_tools.map(|entry| format!("include[{entry}]")));
    ignored
}
