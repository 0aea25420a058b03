//! Items to content blocks, each rendered once.
//!
//! What comes in: one item. What goes out: the JSON texts of its blocks and where they belong. A
//! part of a message that this API has no place for is an error that names it; in the output of a
//! tool it is named in brackets, for a run must not end by it. Items of other protocols, and what
//! another provider thought and nobody else can read, stay behind.

use std::fmt::Write as _;

use haft_core::{
    CallOutput, Capabilities, ContentPart, FunctionCall, FunctionCallOutput, Item, Message,
    ModelError, Reasoning, RenderKey, Role, UnsupportedContent,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::input::{self, Input};
use super::media::source;
use crate::wire::anthropic::{BLOCK_MARK, REDACTED_MARK, SIGNATURE_MARK};

/// Under which the blocks of an item are kept.
pub(super) fn key(capabilities: &Capabilities) -> RenderKey {
    RenderKey::new("anthropic:blocks").variant(input::variant(capabilities))
}

/// The blocks of one item.
#[derive(Debug, PartialEq)]
pub(super) enum Blocks {
    /// Blocks of the model.
    Assistant(Vec<Block>),
    /// Blocks of the user.
    User(Vec<Block>),
    /// A call, by its id in the conversation.
    Call(Block),
    /// What came of a call.
    Output(Block),
    /// Words of the host: a block of `system` at the beginning, a marked one of the user later.
    Host { leading: Block, later: Block },
    /// Nothing that this provider could read.
    Nothing,
}

/// The JSON of one block.
#[derive(Debug, PartialEq)]
pub(super) struct Block {
    pub(super) json: Box<str>,
    /// Whether a cache mark may be put on it.
    pub(super) takes_mark: bool,
}

impl Block {
    pub(super) fn of(json: &Value) -> Self {
        Self::raw(json.to_string())
    }

    fn raw(json: String) -> Self {
        Self {
            json: json.into(),
            takes_mark: true,
        }
    }

    fn unmarked(json: &Value) -> Self {
        Self {
            takes_mark: false,
            ..Self::of(json)
        }
    }
}

/// Renders one item.
pub(super) fn render(item: &Item, capabilities: &Capabilities) -> Result<Blocks, ModelError> {
    Ok(match item {
        Item::Message(message) => match unsupported(item, capabilities) {
            Some(refused) => return Err(refused.into()),
            None => message_blocks(message),
        },
        Item::FunctionCall(call) => Blocks::Call(call_block(call)),
        Item::FunctionCallOutput(output) => Blocks::Output(output_block(output, capabilities)),
        Item::Reasoning(reasoning) => thinking_block(reasoning)
            .map_or(Blocks::Nothing, |block| Blocks::Assistant(vec![block])),
        other => other_block(other),
    })
}

/// The first part of an item that this API has no place for.
pub(crate) fn unsupported(item: &Item, capabilities: &Capabilities) -> Option<UnsupportedContent> {
    let is_host = |message: &Message| matches!(message.role, Role::System | Role::Developer);
    match item {
        // `system` holds nothing but text.
        Item::Message(message) if is_host(message) => item.refused_part(|part| {
            let is_text = matches!(Input::of(part), Input::Text(_));
            (!is_text).then(|| "the Messages API takes only text from the host".into())
        }),
        _ => item.refused_part(|part| refusal(part, capabilities)),
    }
}

fn refusal(part: &ContentPart, capabilities: &Capabilities) -> Option<String> {
    input::refusal(part, capabilities, |input| source(input).err())
}

/// A block of plain text.
pub(super) fn text_block(text: &str) -> Block {
    Block::of(&json!({"type": "text", "text": text}))
}

fn message_blocks(message: &Message) -> Blocks {
    let blocks = message.content.iter().filter_map(part_json);
    match message.role {
        Role::User => Blocks::User(blocks.map(|json| Block::of(&json)).collect()),
        Role::Assistant => Blocks::Assistant(blocks.map(|json| Block::of(&json)).collect()),
        Role::System | Role::Developer => {
            let texts = message.content.iter().map(Input::of);
            let text: String = texts
                .filter_map(|input| match input {
                    Input::Text(text) => Some(text),
                    _ => None,
                })
                .collect();
            if text.is_empty() {
                return Blocks::Nothing;
            }
            // Put into `system`, later words would change everything behind it.
            Blocks::Host {
                leading: text_block(&text),
                later: text_block(&format!("<system>\n{text}\n</system>")),
            }
        }
    }
}

/// A part as the JSON of a block; none for empty text, which the provider refuses. What has no place
/// is named in brackets: in a message of the user it does not come this far.
fn part_json(part: &ContentPart) -> Option<Value> {
    let input = Input::of(part);
    let text = match input {
        Input::Text(text) => text.to_owned(),
        _ => match source(&input) {
            Ok(block) => return Some(block),
            Err(_) => input::in_brackets(part),
        },
    };
    (!text.is_empty()).then(|| json!({"type": "text", "text": text}))
}

/// A call. Arguments that are a JSON object go out byte for byte; none at all are `{}`; others are
/// wrapped under the key that the provider's documentation suggests, so that the model still sees
/// what it wrote.
fn call_block(call: &FunctionCall) -> Block {
    let written = call.arguments.trim();
    let is_object = written.starts_with('{') && serde_json::from_str::<&RawValue>(written).is_ok();
    let input = if is_object {
        written.to_owned()
    } else if written.is_empty() || written == "null" {
        "{}".to_owned()
    } else {
        json!({"INVALID_JSON": call.arguments}).to_string()
    };
    let id = Value::from(legal_id(&call.call_id));
    let name = Value::from(call.name.as_str());
    Block::raw(format!(
        r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#
    ))
}

fn output_block(output: &FunctionCallOutput, capabilities: &Capabilities) -> Block {
    let mut block = Map::new();
    block.insert("type".into(), "tool_result".into());
    block.insert("tool_use_id".into(), legal_id(&output.call_id).into());
    let content = match &output.output {
        CallOutput::Text(text) => Value::from(text.as_str()),
        CallOutput::Parts(parts) => {
            let blocks = parts
                .iter()
                .filter_map(|part| match refusal(part, capabilities) {
                    Some(_) => Some(json!({"type": "text", "text": input::in_brackets(part)})),
                    None => part_json(part),
                });
            blocks.collect()
        }
    };
    if content != "" && content != json!([]) {
        block.insert("content".into(), content);
    } else if output.is_error {
        // The provider refuses a failure without words.
        block.insert("content".into(), "error".into());
    }
    if output.is_error {
        block.insert("is_error".into(), true.into());
    }
    Block::of(&Value::Object(block))
}

/// What the model thought here, unchanged; none for thoughts of other providers.
fn thinking_block(reasoning: &Reasoning) -> Option<Block> {
    let sealed = reasoning.encrypted_content.as_deref()?;
    if let Some(data) = sealed.strip_prefix(REDACTED_MARK) {
        let json = json!({"type": "redacted_thinking", "data": data});
        return Some(Block::unmarked(&json));
    }
    let signature = sealed.strip_prefix(SIGNATURE_MARK)?;
    let text: String = reasoning
        .content
        .iter()
        .filter_map(ContentPart::text)
        .collect();
    let json = json!({"type": "thinking", "thinking": text, "signature": signature});
    Some(Block::unmarked(&json))
}

/// A block of this provider that haft does not know, as it came; nothing for items of others.
fn other_block(item: &Item) -> Blocks {
    let kind = item.kind();
    if let Item::Other(members) = item
        && let Some(block) = members.get("block")
        && kind.starts_with(BLOCK_MARK)
    {
        return Blocks::Assistant(vec![Block::of(block)]);
    }
    tracing::warn!(
        kind,
        "an item is left out: this provider has no place for it"
    );
    Blocks::Nothing
}

/// The id of a call as this provider takes it: letters, digits, `_` and `-`. Every other byte is
/// written as `_` and its two digits, so that different ids stay different.
pub(super) fn legal_id(id: &str) -> String {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let mut legal = String::with_capacity(id.len());
    for byte in id.bytes() {
        if is_legal(byte) {
            legal.push(char::from(byte));
        } else {
            // Writing to a text does not fail.
            let _ = write!(legal, "_{byte:02x}");
        }
    }
    legal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Capabilities {
        Capabilities {
            image_input: true,
            file_input: true,
            ..Capabilities::default()
        }
    }

    fn blocks(item: &Item) -> Vec<String> {
        match render(item, &all()).unwrap() {
            Blocks::Assistant(blocks) | Blocks::User(blocks) => {
                blocks.into_iter().map(|block| block.json.into()).collect()
            }
            Blocks::Call(block) | Blocks::Output(block) => vec![block.json.into()],
            Blocks::Host { leading, later } => vec![leading.json.into(), later.json.into()],
            Blocks::Nothing => vec![],
        }
    }

    #[test]
    fn arguments_go_out_byte_for_byte_or_wrapped() {
        for (written, input) in [
            (
                r#" {"a" : 12345678901234567890123} "#,
                r#"{"a" : 12345678901234567890123}"#,
            ),
            ("", "{}"),
            ("null", "{}"),
            (r#"{"a":"#, r#"{"INVALID_JSON":"{\"a\":"}"#),
            ("[1]", r#"{"INVALID_JSON":"[1]"}"#),
        ] {
            let expected = format!(r#"{{"type":"tool_use","id":"c","name":"n","input":{input}}}"#);
            assert_eq!(blocks(&Item::function_call("c", "n", written)), [expected]);
        }
    }

    #[test]
    fn ids_become_legal_and_stay_different() {
        assert_eq!(legal_id("toolu_01-A"), "toolu_01-A");
        assert_eq!(legal_id("functions.f:0"), "functions_2ef_3a0");
        assert_ne!(legal_id("a.b"), legal_id("a:b"));
    }

    #[test]
    fn failures_stay_failures_and_have_words() {
        let output = FunctionCallOutput::new("c", "no").as_error();
        assert_eq!(
            blocks(&Item::FunctionCallOutput(output)),
            [r#"{"type":"tool_result","tool_use_id":"c","content":"no","is_error":true}"#]
        );
        let output = FunctionCallOutput::new("c", "").as_error();
        assert_eq!(
            blocks(&Item::FunctionCallOutput(output)),
            [r#"{"type":"tool_result","tool_use_id":"c","content":"error","is_error":true}"#]
        );
        assert_eq!(
            blocks(&Item::function_call_output("c", "")),
            [r#"{"type":"tool_result","tool_use_id":"c"}"#]
        );
    }

    #[test]
    fn thoughts_go_back_as_they_came_and_those_of_others_stay_behind() {
        let thought = |text: &str, sealed: Option<&str>| {
            Item::Reasoning(Reasoning {
                content: vec![ContentPart::ReasoningText { text: text.into() }],
                encrypted_content: sealed.map(Into::into),
                ..Reasoning::default()
            })
        };
        assert_eq!(
            blocks(&thought("hm", Some("anthropic:sig"))),
            [r#"{"type":"thinking","thinking":"hm","signature":"sig"}"#]
        );
        assert_eq!(
            blocks(&thought("", Some("anthropic-redacted:xyz"))),
            [r#"{"type":"redacted_thinking","data":"xyz"}"#]
        );
        assert!(blocks(&thought("hm", Some("gAAAA"))).is_empty());
        assert!(blocks(&thought("hm", None)).is_empty());
    }

    #[test]
    fn what_has_no_place_is_named() {
        let video = json!({"type": "message", "role": "user",
            "content": [{"type": "input_video", "video_url": "https://example.com/v"}]});
        let error = render(&serde_json::from_value(video).unwrap(), &all()).unwrap_err();
        assert!(error.message.contains("`input_video`"), "{error}");
        let output: Item = serde_json::from_value(json!({"type": "function_call_output",
            "call_id": "c", "output": [{"type": "input_audio"}, {"type": "input_text", "text": "a"}]}))
        .unwrap();
        assert_eq!(
            blocks(&output),
            [
                r#"{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"[unsupported content: input_audio]"},{"type":"text","text":"a"}]}"#
            ]
        );
        let item: Item = serde_json::from_value(json!({"type": "mystery_call"})).unwrap();
        assert!(blocks(&item).is_empty());
    }
}
