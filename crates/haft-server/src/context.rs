//! What a request refers to, looked up: earlier responses, conversations, single items.

use haft_core::{Item, StoredItem, StoredResponse};
use serde_json::Value;

use crate::app::{App, Caller, ConversationLock, store_failed};
use crate::compaction::{Piece, Unfolding, unfold};
use crate::content_hosts::check_items;
use crate::error::{ApiError, ErrorCode};
use crate::history::{Claims, Record, Unsaid, is_mark, take_unsaid};
use crate::reasoning::ReasoningSeal;
use crate::wire::{
    BoundedSchemas, CreateRequest, InputItem, RequestTool, RequestToolKind, Vocabulary,
};

/// Everything that a model is to know, and where it came from.
pub(crate) struct Context {
    /// What earlier requests brought.
    pub(crate) inherited: Vec<Record>,
    /// What this request brings.
    pub(crate) input: Vec<Record>,
    /// All of it as the model is to know it: compactions are what they stand for.
    pub(crate) pieces: Vec<Piece>,
    /// Approvals that earlier requests have used up.
    pub(crate) claims: Claims,
    /// Held as long as the conversation is in use.
    pub(crate) lock: Option<ConversationLock>,
    /// Whether the request ends with a wish to be compacted.
    pub(crate) compacts_now: bool,
}

/// What a connection remembers of its last response, stored or not.
#[derive(Debug, Clone)]
pub(crate) struct Remembered {
    pub(crate) response_id: String,
    /// Its whole context and its output.
    pub(crate) records: Vec<Record>,
}

impl App {
    /// Looks everything up that the request refers to.
    pub(crate) async fn context(
        &self,
        caller: &Caller,
        request: &CreateRequest,
        memory: Option<&Remembered>,
    ) -> Result<Context, ApiError> {
        let mut context = Context {
            inherited: Vec::new(),
            input: Vec::new(),
            pieces: Vec::new(),
            claims: Claims::default(),
            lock: None,
            compacts_now: false,
        };
        if let Some(id) = &request.previous_response_id {
            context.inherited = match memory.filter(|memory| memory.response_id == *id) {
                Some(memory) => memory.records.clone(),
                None => self.previous(caller, id).await?,
            };
        }
        if let Some(id) = &request.conversation {
            context.lock = Some(self.conversations.lock(&caller.owner, id).await?);
            let items = self.store.conversation_items(&caller.owner, id).await;
            let items = items.map_err(store_failed)?;
            let items = items.ok_or_else(|| conversation_not_found(id).at("conversation"))?;
            context.inherited = records(&items)?;
        }
        let inherited_by = match request.conversation {
            Some(_) => "conversation",
            None => "previous_response_id",
        };
        let seal = self.reasoning_seal(&caller.owner);
        let pieces = |records: &[Record]| {
            let mut pieces =
                self.with_words(|words| inherited_pieces(records, inherited_by, words))?;
            for piece in &mut pieces {
                seal.restore_stored(&mut piece.record.item);
            }
            Ok::<_, ApiError>(pieces)
        };
        let mut all = pieces(&context.inherited)?;
        for item in request.input.iter().flatten() {
            match item {
                InputItem::Item(record) => {
                    let tools = record.tools.clone();
                    let mut record = Record {
                        id: record.id.clone(),
                        item: record.item.clone(),
                        param: Some(record.param.clone()),
                    };
                    context.input.push(record.clone());
                    let param = record.param.as_deref().unwrap_or_default();
                    seal.restore(&mut record.item, param)?;
                    self.complete_reasoning(caller, &mut record, &context.inherited, &seal)
                        .await?;
                    all.push(Piece {
                        tools,
                        ..Piece::new(record)
                    });
                }
                InputItem::Reference { id, param } => {
                    let item = self
                        .referenced(caller, id, param, &context.inherited)
                        .await?;
                    context.input.push(item.clone());
                    all.extend(pieces(&[item])?);
                }
                InputItem::CompactionTrigger => context.compacts_now = true,
            }
        }
        let model = &self.models.find(request.model.as_deref())?.model;
        context.pieces = self.with_words(|words| {
            let by = Unfolding {
                keys: &self.keys,
                owner: &caller.owner,
                words,
                passes_foreign: model.reads_compaction(),
                inherited_by,
            };
            unfold(all, &by)
        })?;
        let records = context.pieces.iter().map(|piece| &piece.record);
        // Here, because every route whose items can reach a model looks its context up.
        check_items(records.clone(), inherited_by, &self.content_hosts)?;
        context.claims = self.claims(&caller.owner, records).await?;
        Ok(context)
    }

    async fn previous(&self, caller: &Caller, id: &str) -> Result<Vec<Record>, ApiError> {
        let chain = self
            .store
            .chain(&caller.owner, id)
            .await
            .map_err(store_failed)?;
        let Some(chain) = chain else {
            let message = format!(
                "there is no stored response `{}` to go on from: send the whole input instead",
                haft_core::cut(id)
            );
            let error = ApiError::new(ErrorCode::PreviousResponseNotFound, message);
            return Err(error.at("previous_response_id"));
        };
        if chain.last().is_some_and(|last| !last.is_finished) {
            let message = format!("the response `{id}` is not finished: wait until it is");
            let error = ApiError::new(ErrorCode::PreviousResponseInProgress, message);
            return Err(error.at("previous_response_id"));
        }
        if let Some(missing) = chain.first().and_then(|first| first.previous.as_deref()) {
            // It went on from a response that only its own connection remembered. Without that one
            // the model would answer to half a conversation.
            let message = format!(
                "the response `{id}` went on from `{missing}`, which was not stored: send the whole \
                 input instead"
            );
            let error = ApiError::new(ErrorCode::PreviousResponseNotFound, message);
            return Err(error.at("previous_response_id"));
        }
        chain_records(&chain)
    }

    async fn referenced(
        &self,
        caller: &Caller,
        id: &str,
        param: &str,
        inherited: &[Record],
    ) -> Result<Record, ApiError> {
        if let Some(known) = inherited.iter().rev().find(|record| record.id == id) {
            return Ok(Record {
                param: Some(param.to_owned()),
                ..known.clone()
            });
        }
        let found = self
            .store
            .item(&caller.owner, id)
            .await
            .map_err(store_failed)?;
        let Some(found) = found else {
            let message = format!("there is no stored item `{}`", haft_core::cut(id));
            return Err(ApiError::new(ErrorCode::ItemNotFound, message).at(param));
        };
        Ok(Record {
            param: Some(param.to_owned()),
            ..Record::stored(&found)?
        })
    }

    /// Gives a reasoning item that is stored here what its client dropped: the text, or what the
    /// backend needs beside it. Text that the client changed counts more than what is stored.
    async fn complete_reasoning(
        &self,
        caller: &Caller,
        record: &mut Record,
        inherited: &[Record],
        seal: &ReasoningSeal,
    ) -> Result<(), ApiError> {
        let Item::Reasoning(given) = &mut record.item else {
            return Ok(());
        };
        if given.is_encrypted() {
            return Ok(());
        }
        let known = inherited.iter().rev().find(|known| known.id == record.id);
        let mut stored = if let Some(known) = known {
            known.item.clone()
        } else {
            let found = self.store.item(&caller.owner, &record.id).await;
            let Some(found) = found.map_err(store_failed)? else {
                return Ok(());
            };
            Record::stored(&found)?.item
        };
        seal.restore_stored(&mut stored);
        let Item::Reasoning(mut stored) = stored else {
            return Ok(());
        };
        stored.extra.retain(|key, _| !is_mark(key));
        let text = given.text();
        if text.is_empty() || text == stored.text() {
            *given = stored;
        }
        Ok(())
    }

    /// Does something with the words that this server knows.
    fn with_words<T>(&self, what: impl FnOnce(&Vocabulary<'_>) -> T) -> T {
        let is_vendor_type = |tool_type: &str| self.is_vendor_type(tool_type);
        what(&Vocabulary {
            is_vendor_type: &is_vendor_type,
            schemas: &BoundedSchemas::default(),
        })
    }
}

impl Context {
    /// The tools that its items brought, oldest first.
    pub(crate) fn loaded(&self) -> Vec<RequestTool> {
        let tools = self.pieces.iter().flat_map(|piece| {
            let is_found = piece.is_found_here();
            let tools = piece.tools.iter().cloned();
            tools.map(move |mut tool| {
                if let RequestToolKind::Mcp(entry) = &mut tool.kind {
                    entry.is_found = is_found;
                }
                tool
            })
        });
        tools.collect()
    }

    /// What the conversation remembers of tools that were held back without a word.
    pub(crate) fn unsaid(&self) -> Option<Unsaid> {
        Unsaid::of(self.pieces.iter().map(|piece| &piece.unsaid))
    }
}

/// Stored items, with the tools that they load.
fn inherited_pieces(
    records: &[Record],
    inherited_by: &str,
    words: &Vocabulary<'_>,
) -> Result<Vec<Piece>, ApiError> {
    let pieces = records.iter().map(|record| {
        let tools = match &record.item {
            Item::Other(members)
                if matches!(
                    record.item.kind(),
                    "additional_tools" | "tool_search_output"
                ) =>
            {
                members.get("tools").cloned()
            }
            _ => None,
        };
        let tools = tools.unwrap_or(Value::Array(Vec::new()));
        let place = record.param.as_deref().unwrap_or(inherited_by);
        let mut record = record.clone();
        let unsaid = take_unsaid(&mut record.item);
        Ok(Piece {
            tools: RequestTool::read_list(tools, place, words)?,
            unsaid,
            ..Piece::new(record)
        })
    });
    pieces.collect()
}

/// The items of a chain, oldest first.
pub(crate) fn chain_records(chain: &[StoredResponse]) -> Result<Vec<Record>, ApiError> {
    let items = chain
        .iter()
        .flat_map(|link| link.input.iter().chain(&link.output));
    items.map(Record::stored).collect()
}

pub(crate) fn records(items: &[StoredItem]) -> Result<Vec<Record>, ApiError> {
    items.iter().map(Record::stored).collect()
}

pub(crate) fn conversation_not_found(id: &str) -> ApiError {
    let message = format!("there is no conversation `{}`", haft_core::cut(id));
    ApiError::new(ErrorCode::ConversationNotFound, message)
}
