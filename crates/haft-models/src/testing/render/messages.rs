//! Answers of Anthropic's Messages API.

use haft_core::{ContentPart, FinishReason, FunctionCall, Item, Reasoning, Usage};
use serde_json::{Value, json};

use super::chat::thoughts;
use super::ollama::text_of;
use super::{Rendered, named_event, object_or_text, typed};
use crate::scripted::Fault;
use crate::wire::anthropic::BLOCK_MARK;

/// What a scripted thought is signed with.
const SIGNATURE: &str = "c2NyaXB0ZWQ=";

pub(super) fn events(rendered: &Rendered<'_>) -> Result<Vec<String>, String> {
    let mut message = message(rendered, &[], &Value::Null);
    if let Some(usage) = &rendered.answer.usage {
        // One token is told at the beginning, all at the end.
        message["usage"] = usage_json(usage, 1);
    }
    let mut events = Vec::new();
    let mut tell = |name: &str, members: Value| {
        events.push(named_event(name, &typed(name, members)));
    };
    tell("message_start", json!({"message": message}));
    tell("ping", json!({}));
    for (index, block) in blocks(rendered)?.into_iter().enumerate() {
        tell(
            "content_block_start",
            json!({"index": index, "content_block": block.empty}),
        );
        for delta in block.deltas {
            tell(
                "content_block_delta",
                json!({"index": index, "delta": delta}),
            );
        }
        tell("content_block_stop", json!({"index": index}));
    }
    let mut last = json!({
        "delta": {"stop_reason": stop_reason(rendered), "stop_sequence": null},
    });
    if let Some(usage) = &rendered.answer.usage {
        last["usage"] = json!({"output_tokens": usage.output_tokens});
    }
    tell("message_delta", last);
    tell("message_stop", json!({}));
    Ok(events)
}

pub(super) fn whole(rendered: &Rendered<'_>) -> Result<Value, String> {
    let blocks = blocks(rendered)?.into_iter();
    let content: Vec<_> = blocks.map(|block| block.whole).collect();
    let mut message = message(rendered, &content, &stop_reason(rendered));
    if let Some(usage) = &rendered.answer.usage {
        message["usage"] = usage_json(usage, usage.output_tokens);
    }
    Ok(message)
}

pub(super) fn error_event(code: Option<&str>, message: &str) -> String {
    let kind = code.unwrap_or("overloaded_error");
    let data = json!({"type": "error", "error": {"type": kind, "message": message}});
    named_event("error", &data)
}

/// A content block: as it begins, in pieces, and whole.
struct Block {
    empty: Value,
    deltas: Vec<Value>,
    whole: Value,
}

fn blocks(rendered: &Rendered<'_>) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    for item in &rendered.answer.items {
        match item {
            Item::Message(message) => {
                let texts = message.content.iter().filter_map(text_of);
                blocks.extend(texts.map(|text| text_block(rendered, text)));
            }
            Item::Reasoning(reasoning) => blocks.push(thinking_block(rendered, reasoning)),
            Item::FunctionCall(call) => blocks.push(call_block(rendered, call)),
            Item::Other(members) if item.kind().starts_with(BLOCK_MARK) => {
                let block = members.get("block").cloned().unwrap_or_default();
                blocks.push(own_block(rendered, block));
            }
            other => return Err(rendered.cannot_say(other)),
        }
    }
    Ok(blocks)
}

fn text_block(rendered: &Rendered<'_>, text: &str) -> Block {
    let pieces = rendered.pieces(text).into_iter();
    Block {
        empty: json!({"type": "text", "text": ""}),
        deltas: pieces
            .map(|piece| json!({"type": "text_delta", "text": piece}))
            .collect(),
        whole: json!({"type": "text", "text": text}),
    }
}

fn thinking_block(rendered: &Rendered<'_>, reasoning: &Reasoning) -> Block {
    let text = thoughts(reasoning);
    if let (true, Some(data)) = (text.is_empty(), &reasoning.encrypted_content) {
        let whole = json!({"type": "redacted_thinking", "data": data});
        return Block {
            empty: whole.clone(),
            deltas: Vec::new(),
            whole,
        };
    }
    let signature = reasoning.encrypted_content.as_deref().unwrap_or(SIGNATURE);
    let pieces = rendered.pieces(&text).into_iter();
    let signed = json!({"type": "signature_delta", "signature": signature});
    Block {
        empty: json!({"type": "thinking", "thinking": "", "signature": ""}),
        deltas: pieces
            .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
            .chain([signed])
            .collect(),
        whole: json!({"type": "thinking", "thinking": text, "signature": signature}),
    }
}

fn call_block(rendered: &Rendered<'_>, call: &FunctionCall) -> Block {
    let block = |input: Value| {
        let mut block = json!({"type": "tool_use", "name": call.name, "input": input});
        if !call.call_id.is_empty() {
            block["id"] = call.call_id.as_str().into();
        }
        block
    };
    let whole = block(object_or_text(&call.arguments));
    if rendered.has(&Fault::ObjectArguments) {
        return Block {
            empty: whole.clone(),
            deltas: Vec::new(),
            whole,
        };
    }
    // The provider begins with an empty piece.
    let pieces = std::iter::once("").chain(rendered.pieces(&call.arguments));
    Block {
        empty: block(json!({})),
        deltas: pieces
            .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
            .collect(),
        whole,
    }
}

/// A block that only this provider has. What its tools are asked is streamed, what they answer is not.
fn own_block(rendered: &Rendered<'_>, whole: Value) -> Block {
    let mut empty = whole.clone();
    let mut deltas = Vec::new();
    if let Some(input) = empty.get_mut("input") {
        let written = input.to_string();
        *input = json!({});
        let pieces = rendered.pieces(&written).into_iter();
        deltas = pieces
            .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
            .collect();
    }
    Block {
        empty,
        deltas,
        whole,
    }
}

fn message(rendered: &Rendered<'_>, content: &[Value], stop_reason: &Value) -> Value {
    json!({
        "id": format!("msg_script_{}", rendered.answer.number),
        "type": "message",
        "role": "assistant",
        "model": rendered.model(),
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
    })
}

fn stop_reason(rendered: &Rendered<'_>) -> Value {
    let is_refusal = |item: &Item| match item {
        Item::Message(message) => {
            let mut parts = message.content.iter();
            parts.any(|part| matches!(part, ContentPart::Refusal { .. }))
        }
        _ => false,
    };
    match rendered.answer.finish {
        FinishReason::Normal if rendered.has_calls() => "tool_use".into(),
        FinishReason::Normal if rendered.answer.items.iter().any(is_refusal) => "refusal".into(),
        FinishReason::Normal => "end_turn".into(),
        FinishReason::Length => "max_tokens".into(),
        FinishReason::ContentFilter => "refusal".into(),
        _ => Value::Null,
    }
}

/// Cached tokens are not among the input tokens here.
fn usage_json(usage: &Usage, output_tokens: u64) -> Value {
    json!({
        "input_tokens": usage
            .input_tokens
            .saturating_sub(usage.cached_input_tokens)
            .saturating_sub(usage.cache_write_tokens),
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_input_tokens,
        "output_tokens": output_tokens,
    })
}
