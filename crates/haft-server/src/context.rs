//! What a request refers to, looked up: earlier responses, conversations, single items.

use haft_core::{Item, StoredItem, StoredResponse};
use haft_hydrate::JsonSchemaFactory;
use serde_json::Value;

use crate::app::{App, Caller, ConversationLock, store_failed};
use crate::error::{ApiError, ErrorCode};
use crate::history::Record;
use crate::wire::{CreateRequest, InputItem, RequestTool, Vocabulary};

/// Everything that a model is to know, and where it came from.
pub(crate) struct Context {
    /// What earlier requests brought.
    pub(crate) inherited: Vec<Record>,
    /// What this request brings.
    pub(crate) input: Vec<Record>,
    /// Tools that items of the history brought, oldest first.
    pub(crate) loaded: Vec<RequestTool>,
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
            loaded: Vec::new(),
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
            context.lock = Some(self.conversations.lock(&caller.owner, id)?);
            let items = self.store.conversation_items(&caller.owner, id).await;
            let items = items.map_err(store_failed)?;
            let items = items.ok_or_else(|| conversation_not_found(id).at("conversation"))?;
            context.inherited = records(&items)?;
        }
        self.load_tools(&mut context)?;
        for item in request.input.iter().flatten() {
            match item {
                InputItem::Item(record) => {
                    context.loaded.extend(record.tools.iter().cloned());
                    context.input.push(Record {
                        id: record.id.clone(),
                        item: record.item.clone(),
                        param: Some(record.param.clone()),
                    });
                }
                InputItem::Reference { id, param } => {
                    let item = self
                        .referenced(caller, id, param, &context.inherited)
                        .await?;
                    context.input.push(item);
                }
                InputItem::CompactionTrigger => context.compacts_now = true,
            }
        }
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
            return Ok(known.clone());
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

    /// The tools that inherited items brought.
    fn load_tools(&self, context: &mut Context) -> Result<(), ApiError> {
        let is_vendor_type = |tool_type: &str| self.is_vendor_type(tool_type);
        let words = Vocabulary {
            is_vendor_type: &is_vendor_type,
            schemas: &JsonSchemaFactory,
        };
        for record in &context.inherited {
            let Item::Other(members) = &record.item else {
                continue;
            };
            if !matches!(
                record.item.kind(),
                "additional_tools" | "tool_search_output"
            ) {
                continue;
            }
            let tools = members
                .get("tools")
                .cloned()
                .unwrap_or(Value::Array(Vec::new()));
            let tools = RequestTool::read_list(tools, "previous_response_id", &words)?;
            context.loaded.extend(tools);
        }
        Ok(())
    }
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
