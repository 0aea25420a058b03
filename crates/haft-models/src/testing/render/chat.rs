//! Answers of Chat Completions.

use haft_core::{ContentPart, FinishReason, FunctionCall, Item, Reasoning, Usage};
use serde_json::{Map, Value, json};

use super::responses::logprobs_of;
use super::{CREATED, Rendered};

const DONE: &str = "data: [DONE]\n\n";

pub(super) fn events(rendered: &Rendered<'_>) -> Result<Vec<String>, String> {
    let has_text = rendered
        .answer
        .items
        .iter()
        .any(|item| !item.text().is_empty());
    let content = if has_text { json!("") } else { Value::Null };
    let first = json!({"role": "assistant", "content": content, "refusal": null});
    let mut events = vec![delta(rendered, &first, &Value::Null)];
    let mut tell = |member: &str, text: &str, logprobs: &Value| {
        for (place, piece) in rendered.pieces(text).into_iter().enumerate() {
            // How likely the tokens are is told with the first piece.
            let logprobs = if place == 0 { logprobs } else { &Value::Null };
            let piece = json!({member: piece});
            events.push(weighed(rendered, &piece, logprobs, &Value::Null));
        }
    };
    let mut calls = Vec::new();
    for item in &rendered.answer.items {
        match item {
            Item::Message(message) => {
                for part in &message.content {
                    match part {
                        ContentPart::Refusal { refusal } => tell("refusal", refusal, &Value::Null),
                        part => tell("content", part.text().unwrap_or(""), &logprobs(part)),
                    }
                }
            }
            Item::Reasoning(reasoning) => {
                tell("reasoning_content", &thoughts(reasoning), &Value::Null);
            }
            Item::FunctionCall(call) => calls.push(call),
            other => return Err(rendered.cannot_say(other)),
        }
    }
    for (index, call) in calls.into_iter().enumerate() {
        for piece in call_deltas(rendered, index, call) {
            let piece = json!({"tool_calls": [piece]});
            events.push(delta(rendered, &piece, &Value::Null));
        }
    }
    events.push(delta(rendered, &json!({}), &finish(rendered)));
    if let Some(usage) = rendered.answer.usage
        && wants_usage(rendered)
    {
        let mut last = chunk(rendered);
        last.insert("choices".to_owned(), json!([]));
        last.insert("usage".to_owned(), usage_json(&usage));
        events.push(format!("data: {}\n\n", Value::Object(last)));
    }
    events.push(DONE.to_owned());
    Ok(events)
}

pub(super) fn whole(rendered: &Rendered<'_>) -> Result<Value, String> {
    let (mut text, mut refusal, mut thinking) = (None, None, None);
    let mut likelihoods = Value::Null;
    let mut calls = Vec::new();
    let append = |to: &mut Option<String>, text: &str| {
        to.get_or_insert_default().push_str(text);
    };
    for item in &rendered.answer.items {
        match item {
            Item::Message(message) => {
                for part in &message.content {
                    match part {
                        ContentPart::Refusal { refusal: words } => append(&mut refusal, words),
                        part => {
                            append(&mut text, part.text().unwrap_or(""));
                            likelihoods = logprobs(part);
                        }
                    }
                }
            }
            Item::Reasoning(reasoning) => append(&mut thinking, &thoughts(reasoning)),
            Item::FunctionCall(call) => {
                let arguments = rendered.arguments(&call.arguments);
                let function = json!({"name": call.name, "arguments": arguments});
                calls.push(with_id(
                    call,
                    json!({"type": "function", "function": function}),
                ));
            }
            other => return Err(rendered.cannot_say(other)),
        }
    }
    let mut message = json!({"role": "assistant", "content": text, "refusal": refusal});
    if let Some(thinking) = thinking {
        message["reasoning_content"] = thinking.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let mut body = json!({
        "id": id(rendered),
        "object": "chat.completion",
        "created": CREATED,
        "model": rendered.model(),
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": likelihoods,
            "finish_reason": finish(rendered),
        }],
        "service_tier": "default",
        "system_fingerprint": null,
    });
    if let Some(usage) = rendered.answer.usage {
        body["usage"] = usage_json(&usage);
    }
    Ok(body)
}

/// The first delta of a call has its id and name, the others pieces of its arguments.
fn call_deltas(rendered: &Rendered<'_>, index: usize, call: &FunctionCall) -> Vec<Value> {
    let whole = rendered.arguments(&call.arguments);
    let at_once = if whole.is_string() {
        json!("")
    } else {
        whole.clone()
    };
    let function = json!({"name": call.name, "arguments": at_once});
    let first = json!({"index": index, "type": "function", "function": function});
    let mut deltas = vec![with_id(call, first)];
    if whole.is_string() {
        let pieces = rendered.pieces(&call.arguments).into_iter();
        deltas
            .extend(pieces.map(|piece| json!({"index": index, "function": {"arguments": piece}})));
    }
    deltas
}

/// A call with its id, if it has one.
fn with_id(call: &FunctionCall, mut json: Value) -> Value {
    if !call.call_id.is_empty() {
        json["id"] = call.call_id.as_str().into();
    }
    json
}

fn delta(rendered: &Rendered<'_>, delta: &Value, finish: &Value) -> String {
    weighed(rendered, delta, &Value::Null, finish)
}

/// How likely the tokens of a text are, if the script says so.
fn logprobs(part: &ContentPart) -> Value {
    match logprobs_of(part) {
        Value::Array(tokens) if !tokens.is_empty() => json!({"content": tokens, "refusal": null}),
        _ => Value::Null,
    }
}

fn weighed(rendered: &Rendered<'_>, delta: &Value, logprobs: &Value, finish: &Value) -> String {
    let mut chunk = chunk(rendered);
    let choice = json!({"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish});
    chunk.insert("choices".to_owned(), json!([choice]));
    if wants_usage(rendered) {
        chunk.insert("usage".to_owned(), Value::Null);
    }
    format!("data: {}\n\n", Value::Object(chunk))
}

fn chunk(rendered: &Rendered<'_>) -> Map<String, Value> {
    let members = [
        ("id", json!(id(rendered))),
        ("object", json!("chat.completion.chunk")),
        ("created", json!(CREATED)),
        ("model", json!(rendered.model())),
        ("service_tier", json!("default")),
        ("system_fingerprint", Value::Null),
    ];
    let members = members.into_iter();
    members
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn id(rendered: &Rendered<'_>) -> String {
    format!("chatcmpl-script-{}", rendered.answer.number)
}

fn wants_usage(rendered: &Rendered<'_>) -> bool {
    let wanted = rendered.request.pointer("/stream_options/include_usage");
    wanted.and_then(Value::as_bool).unwrap_or(false)
}

fn finish(rendered: &Rendered<'_>) -> Value {
    match rendered.answer.finish {
        FinishReason::Normal if rendered.has_calls() => "tool_calls".into(),
        FinishReason::Normal => "stop".into(),
        FinishReason::Length => "length".into(),
        FinishReason::ContentFilter => "content_filter".into(),
        FinishReason::Error => "error".into(),
        _ => Value::Null,
    }
}

/// What these protocols can say of thoughts: the words themselves, or else their summary.
pub(super) fn thoughts(reasoning: &Reasoning) -> String {
    let parts = if reasoning.content.is_empty() {
        &reasoning.summary
    } else {
        &reasoning.content
    };
    parts.iter().filter_map(ContentPart::text).collect()
}

fn usage_json(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens(),
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}
