//! The item that is being written.

use haft_core::{
    ContentPart, FunctionCall, Item, ItemStatus, Message, ModelEvent, Reasoning, Role,
};
use serde_json::{Map, Value};

use crate::lift::Events;
use crate::wire::anthropic::{BLOCK_MARK, REDACTED_MARK, SIGNATURE_MARK};

/// The item that is being written.
pub(super) enum Open {
    /// Text blocks in a row. It is announced with its first letter: there are no empty messages.
    Text {
        index: Option<usize>,
        parts: Vec<String>,
    },
    Call {
        index: usize,
        call_id: String,
        name: String,
        /// The pieces, one after the other.
        written: String,
        /// What the block began with: `{}` in streams, everything in a whole answer.
        input: String,
    },
    Thinking {
        index: usize,
        text: String,
        signature: Option<String>,
    },
    Redacted {
        index: usize,
        data: String,
    },
    Other {
        index: usize,
        block: Map<String, Value>,
        written: String,
    },
}

impl Open {
    pub(super) fn text() -> Self {
        Self::Text {
            index: None,
            parts: vec![String::new()],
        }
    }

    /// Tells that the item is whole, or where the limit fell into it.
    pub(super) fn finish(self, status: Option<ItemStatus>, out: &mut Events) {
        let (index, item) = match self {
            Self::Text { index: None, .. } => return,
            Self::Text {
                index: Some(index),
                parts,
            } => (index, message_item(parts, status)),
            Self::Call {
                index,
                call_id,
                name,
                written,
                input,
            } => {
                // Nothing written means `{}`, as the block began, unless the limit fell there.
                let is_cut = status.is_some() && input == "{}";
                let arguments = if !written.is_empty() || is_cut {
                    written
                } else {
                    if !input.is_empty() {
                        let text = input.clone();
                        out.push_back(ModelEvent::ArgumentsDelta { index, text });
                    }
                    input
                };
                let item = Item::FunctionCall(FunctionCall {
                    id: None,
                    status,
                    call_id,
                    name,
                    arguments,
                    extra: Map::new(),
                });
                (index, item)
            }
            Self::Thinking {
                index,
                text,
                signature,
            } => {
                let content = (!text.is_empty()).then_some(ContentPart::ReasoningText { text });
                let item = Item::Reasoning(Reasoning {
                    status,
                    content: content.into_iter().collect(),
                    // Without a signature the provider would refuse the block.
                    encrypted_content: signature
                        .filter(|signature| !signature.is_empty())
                        .map(|signature| format!("{SIGNATURE_MARK}{signature}")),
                    ..Reasoning::default()
                });
                (index, item)
            }
            Self::Redacted { index, data } => {
                let item = Item::Reasoning(Reasoning {
                    encrypted_content: Some(format!("{REDACTED_MARK}{data}")),
                    ..Reasoning::default()
                });
                (index, item)
            }
            Self::Other {
                index,
                block,
                written,
            } => (index, other_item(block, written)),
        };
        out.push_back(ModelEvent::ItemDone { index, item });
    }
}

fn message_item(parts: Vec<String>, status: Option<ItemStatus>) -> Item {
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    Item::Message(Message {
        status,
        content: parts.map(ContentPart::output_text).collect(),
        ..Message::new(Role::Assistant, "")
    })
}

/// A block that haft does not know, to be sent back as it came.
fn other_item(mut block: Map<String, Value>, written: String) -> Item {
    if !written.is_empty() {
        let input = serde_json::from_str(&written).unwrap_or(Value::String(written));
        block.insert("input".into(), input);
    }
    let kind = block.get("type").and_then(Value::as_str).unwrap_or("block");
    let kind = format!("{BLOCK_MARK}{kind}");
    Item::Other(Map::from_iter([
        ("type".into(), kind.into()),
        ("block".into(), block.into()),
    ]))
}
