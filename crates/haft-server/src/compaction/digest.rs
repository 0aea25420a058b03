//! What an item is known by when it comes back.

use haft_core::{ContentPart, Item};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::history::call_of;

/// A number for what an item says.
///
/// Clients send items back with other ids and statuses, without annotations, or put together anew:
/// a message is known by its role and content, calls and outputs by the id of the call, what else
/// there is by its own id.
pub(super) fn digest(item: &Item) -> u64 {
    let mut hash = Hash(Sha256::new());
    if let Some((call_id, is_output)) = call_of(item) {
        hash.add(if is_output { "output" } else { "call" });
        hash.add(call_id);
        return hash.number();
    }
    hash.add(item.kind());
    match item {
        Item::Message(message) => {
            hash.add(&serde_json::json!(message.role).to_string());
            for part in &message.content {
                match part {
                    ContentPart::InputImage { image_url, .. } => hash.add(image_url),
                    ContentPart::Refusal { refusal } => hash.add(refusal),
                    ContentPart::Other(members) => {
                        hash.add(&serde_json::json!(members).to_string());
                    }
                    part => hash.add(part.text().unwrap_or_default()),
                }
            }
        }
        Item::Other(members) => {
            let sealed = members.get("encrypted_content").and_then(Value::as_str);
            hash.add(sealed.or(item.id()).unwrap_or_default());
        }
        item => hash.add(item.id().unwrap_or_default()),
    }
    hash.number()
}

struct Hash(Sha256);

impl Hash {
    /// The length goes in front, so that no two lists of words are the same bytes.
    fn add(&mut self, word: &str) {
        self.0.update(word.len().to_le_bytes());
        self.0.update(word.as_bytes());
    }

    fn number(self) -> u64 {
        let bytes = self.0.finalize();
        let first = bytes.first_chunk::<8>().copied();
        u64::from_le_bytes(first.unwrap_or_default())
    }
}
