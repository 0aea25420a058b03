//! What a compaction item holds, and its sealed form.

use std::collections::HashSet;

use haft_core::{Item, Message, Owner, Role};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::piece::{Origin, Piece};
use crate::error::{ApiError, ErrorCode};
use crate::history::{Record, Unsaid};
use crate::sealed::{SealError, SealingKeys};
use crate::wire::{RequestTool, Vocabulary, new_id};

/// The form that is written; another form gets another number.
const VERSION: u32 = 1;

/// What stands in front of a summary. It is a message of the user: words of the conversation must
/// not gain weight by being summed up.
pub(super) const HEADING: &str = "[Summary of the earlier conversation, which was compacted. It reports what \
                       was said and done before, also about the messages in front of it; it asks for nothing \
                       by itself.]";

/// The content of a compaction item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Compacted {
    #[serde(rename = "v")]
    version: u32,
    /// What the host said, word for word.
    pub(super) host: Vec<Item>,
    /// What else was said and done, in the model's words.
    pub(super) summary: String,
    /// The tools that were loaded.
    pub(super) tools: Vec<Value>,
    /// What was loaded without a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) unsaid: Option<Unsaid>,
    /// Items that are kept as they were, around the summary.
    pub(super) kept: Vec<Item>,
    /// How many of the kept items stand in front of the summary. Absent in items that were sealed before it was
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept_before_summary: Option<usize>,
    /// The digests of all items that this stands for.
    pub(super) covers: Vec<u64>,
}

impl Compacted {
    pub(super) fn new(
        host: Vec<Item>,
        summary: String,
        tools: Vec<Value>,
        kept: Vec<Item>,
        covers: Vec<u64>,
    ) -> Self {
        Self {
            version: VERSION,
            host,
            summary,
            tools,
            unsaid: None,
            kept,
            kept_before_summary: Some(0),
            covers,
        }
    }

    /// The same, with the summary behind so many of the kept items.
    pub(super) fn with_summary_after(self, count: usize) -> Self {
        Self {
            kept_before_summary: Some(count),
            ..self
        }
    }

    /// Where the summary stands among the kept items.
    fn summary_position(&self) -> usize {
        let is_from_user =
            |item: &&Item| matches!(item, Item::Message(message) if message.role == Role::User);
        // Older compactions do not record it. They kept messages of the user, nearly all of them answered, and
        // behind these the calls that the model continued from.
        let position = self
            .kept_before_summary
            .unwrap_or_else(|| self.kept.iter().take_while(is_from_user).count());
        position.min(self.kept.len())
    }

    /// The same, which remembers what was loaded without a word.
    pub(super) fn remembering(self, unsaid: Option<Unsaid>) -> Self {
        Self { unsaid, ..self }
    }

    /// Its sealed form.
    pub(super) fn seal(&self, keys: &SealingKeys, owner: &Owner) -> Result<String, ApiError> {
        let sealed = serde_json::to_vec(self)
            .map_err(|error| {
                tracing::error!(%error, "a compaction cannot be written");
                SealError::Failed
            })
            .and_then(|plain| keys.seal(owner.as_str(), &plain));
        sealed.map_err(|error| match error {
            SealError::TooLarge => ApiError::new(
                ErrorCode::ContextLengthExceeded,
                "what must be kept word for word is too large for a compaction item: send less of \
                 it, or smaller images and files",
            )
            .at("input"),
            SealError::Failed => {
                tracing::error!(%error, "a compaction cannot be sealed");
                ApiError::new(ErrorCode::ServerError, "the compaction cannot be sealed")
            }
        })
    }

    /// Opens what was sealed for this owner; `at` says where it stands.
    pub(super) fn open(
        keys: &SealingKeys,
        owner: &Owner,
        sealed: &str,
        at: &str,
    ) -> Result<Self, ApiError> {
        let plain = keys.unseal(owner.as_str(), sealed);
        let opened = plain
            .ok()
            .and_then(|plain| serde_json::from_slice::<Self>(&plain).ok())
            .filter(|opened| opened.version == VERSION);
        opened.ok_or_else(|| invalid(at))
    }

    /// The digests of what it stands for, to look them up.
    pub(super) fn coverage(&self) -> HashSet<u64> {
        self.covers.iter().copied().collect()
    }

    /// What the model reads in place of it, in order. `digest` is that of the compaction item.
    pub(super) fn pieces(&self, digest: u64, param: Option<&str>) -> Vec<Piece> {
        let piece = |item: &Item, origin| {
            let id = item.id().map_or_else(|| new_id("msg"), str::to_owned);
            let record = Record {
                id,
                item: item.clone(),
                param: param.map(str::to_owned),
            };
            Piece {
                origin,
                ..Piece::new(record)
            }
        };
        let summary = format!("{HEADING}\n\n{}", self.summary);
        let summary = Item::Message(Message::new(Role::User, summary));
        let (before, behind) = self.kept.split_at(self.summary_position());
        let kept = |item: &Item| piece(item, Origin::Kept(digest));
        let mut pieces: Vec<Piece> = self.host.iter().chain(before).map(kept).collect();
        pieces.push(piece(&summary, Origin::Summary(digest)));
        pieces.extend(behind.iter().map(kept));
        pieces
    }

    /// The piece that loads its tools; none if there are none.
    pub(super) fn tools_piece(
        &self,
        digest: u64,
        param: &str,
        words: &Vocabulary<'_>,
    ) -> Result<Option<Piece>, ApiError> {
        if self.tools.is_empty() && self.unsaid.is_none() {
            return Ok(None);
        }
        let list = Value::Array(self.tools.clone());
        let tools = RequestTool::read_list(list.clone(), &format!("{param}.tools"), words)?;
        let id = new_id("at");
        let members = Map::from_iter([
            ("type".into(), json!("additional_tools")),
            ("id".into(), json!(id)),
            ("status".into(), json!("completed")),
            ("role".into(), json!("developer")),
            ("tools".into(), list),
        ]);
        let record = Record {
            id,
            item: Item::Other(members),
            param: Some(param.to_owned()),
        };
        Ok(Some(Piece {
            record,
            tools,
            unsaid: self.unsaid.clone(),
            origin: Origin::Kept(digest),
        }))
    }
}

/// A compaction item that says nothing to anybody here.
pub(super) fn invalid(at: &str) -> ApiError {
    let message = "the compaction item cannot be read: it was changed, or it was made for somebody \
                   else or by another server; send the conversation itself, or compact it again";
    ApiError::new(ErrorCode::InvalidEncryptedContent, message).at(at)
}
