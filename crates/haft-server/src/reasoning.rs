//! Reasoning items between the model's backend and a client.
//!
//! A backend wants its reasoning back with the tool calls that it led to: the text, the member that it
//! came in, the signature. Clients keep `summary` and `encrypted_content` and drop the rest, so all of it
//! is sealed into `encrypted_content` for those that ask for that, and restored when the item comes
//! back. What a Responses backend encrypted itself passes unchanged.

use haft_core::{ContentPart, Item, Owner, Reasoning};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{ApiError, ErrorCode};
use crate::history::{RAW_SUMMARY, is_mark};
use crate::sealed::{SealingKeys, is_sealed};

/// The form that is written; another form gets another number.
const VERSION: u32 = 1;

/// The content of a sealed reasoning item.
#[derive(Serialize, Deserialize)]
struct SealedReasoning {
    #[serde(rename = "v")]
    version: u32,
    reasoning: Reasoning,
}

/// Seals and opens the reasoning of one owner.
#[derive(Debug, Clone)]
pub(crate) struct ReasoningSeal {
    keys: SealingKeys,
    owner: Owner,
}

impl ReasoningSeal {
    pub(crate) fn new(keys: &SealingKeys, owner: &Owner) -> Self {
        Self {
            keys: keys.clone(),
            owner: owner.clone(),
        }
    }

    /// The `encrypted_content` that a client is given for a stored reasoning item; none where the item
    /// has one that the client can be given as it is, or where there is nothing to seal.
    pub(crate) fn seal(&self, stored: &Map<String, Value>) -> Option<String> {
        let Ok(Item::Reasoning(mut reasoning)) = Item::from_members(stored.clone()) else {
            return None;
        };
        unmask(&mut reasoning);
        match reasoning.encrypted_content.as_deref().unwrap_or_default() {
            "" if reasoning.content.is_empty() => return None,
            "" => {}
            // One that came from the client.
            encrypted if self.is_ours(encrypted) => return None,
            // Adapters put their name and a colon in front; what a Responses backend encrypted has
            // none. What another haft server sealed is sealed once more.
            encrypted if !encrypted.contains(':') && !is_sealed(encrypted) => return None,
            _ => {}
        }
        reasoning.id = None;
        reasoning.status = None;
        reasoning.extra.retain(|key, _| !is_mark(key));
        let sealed = SealedReasoning {
            version: VERSION,
            reasoning,
        };
        let plain = serde_json::to_vec(&sealed).ok()?;
        let sealed = self.keys.seal_stably(self.owner.as_str(), &plain);
        sealed
            .inspect_err(|error| tracing::warn!(%error, "cannot seal a reasoning item"))
            .ok()
    }

    fn is_ours(&self, encrypted: &str) -> bool {
        self.keys.unseal(self.owner.as_str(), encrypted).is_ok()
    }

    /// Restores what was sealed into an item that a client sent; `param` is the path of the item.
    pub(crate) fn restore(&self, item: &mut Item, param: &str) -> Result<(), ApiError> {
        let Item::Reasoning(reasoning) = item else {
            return Ok(());
        };
        if self.open(reasoning) {
            return Ok(());
        }
        let message = "the reasoning item cannot be read: `encrypted_content` was changed, or it was \
                       made for another tenant or by another server; leave the item out";
        let error = ApiError::new(ErrorCode::InvalidEncryptedContent, message);
        Err(error.at(format!("{param}.encrypted_content")))
    }

    /// Restores what was sealed into a stored item. One that cannot be opened belongs to the backend.
    pub(crate) fn restore_stored(&self, item: &mut Item) {
        if let Item::Reasoning(reasoning) = item {
            unmask(reasoning);
            let _is_opened = self.open(reasoning);
        }
    }

    /// Replaces a sealed item by what was sealed; false if it cannot be opened.
    fn open(&self, reasoning: &mut Reasoning) -> bool {
        let encrypted = reasoning.encrypted_content.as_deref().unwrap_or_default();
        if !is_sealed(encrypted) {
            return true;
        }
        let plain = self.keys.unseal(self.owner.as_str(), encrypted).ok();
        let opened = plain
            .and_then(|plain| serde_json::from_slice::<SealedReasoning>(&plain).ok())
            .filter(|opened| opened.version == VERSION);
        let Some(opened) = opened else {
            return false;
        };
        let mut marks = std::mem::take(&mut reasoning.extra);
        marks.retain(|key, _| is_mark(key));
        *reasoning = Reasoning {
            id: reasoning.id.take(),
            status: reasoning.status,
            ..opened.reasoning
        };
        reasoning.extra.extend(marks);
        true
    }
}

/// Makes a stored item what its backend gave: raw text that was presented as a summary becomes content
/// again.
fn unmask(reasoning: &mut Reasoning) {
    let is_raw = reasoning.extra.get(RAW_SUMMARY) == Some(&Value::Bool(true));
    if is_raw && !reasoning.summary.is_empty() {
        let part = reasoning.summary.remove(0);
        let text = part.text().unwrap_or_default().to_owned();
        let raw = ContentPart::ReasoningText { text };
        reasoning.content.insert(0, raw);
    }
    reasoning.extra.shift_remove(RAW_SUMMARY);
}

#[cfg(test)]
#[path = "reasoning_tests.rs"]
mod tests;
