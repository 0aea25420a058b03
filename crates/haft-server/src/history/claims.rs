//! Approvals that an earlier request has used up.
//!
//! A request that continues from before an approval does not see it in its context: the response that ran
//! the call was lost with its process, was cancelled with its client, or is another branch. The store knows
//! that the approval was used, and by which response.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_core::{Item, Owner};
use serde_json::{Map, Value};

use super::Record;
use crate::app::{App, store_failed};
use crate::error::{ApiError, ErrorCode};

/// The note of a claim by a refusal.
const REFUSED: &str = "refused";

/// What the note of a claim by an approval begins with; the id of the response follows.
const APPROVED: &str = "approved ";

/// How much of a result an error message quotes.
const QUOTED_BYTES: usize = 2000;

/// What became of an approval request that an earlier request answered.
#[derive(Debug, Clone)]
pub(crate) enum Claim {
    /// It was refused.
    Refused,
    /// It was approved, and no record tells whether the call took effect.
    OutcomeUnknown,
    /// It was approved and the call ran: the item that records it, and the response that holds it.
    Ran {
        response_id: String,
        record: Box<Record>,
    },
}

/// The answered approval requests of a context, by their ids.
#[derive(Debug, Clone, Default)]
pub(crate) struct Claims(Arc<HashMap<String, Claim>>);

impl Claims {
    pub(crate) fn get(&self, id: &str) -> Option<&Claim> {
        self.0.get(id)
    }
}

impl App {
    /// Claims an approval request for a refusal. A refusal that is repeated is still one.
    pub(crate) async fn claim_refusal(&self, owner: &Owner, id: &str) -> Result<(), ApiError> {
        let claimed = self.store.take_once(owner, id, REFUSED).await;
        claimed.map(drop).map_err(store_failed)
    }

    /// Claims an approval request for the response that is about to run its call, so that it runs at most
    /// once. The error says what became of an earlier claim.
    pub(crate) async fn claim_approval(
        &self,
        owner: &Owner,
        id: &str,
        response_id: &str,
    ) -> Result<(), ApiError> {
        let note = format!("{APPROVED}{response_id}");
        let claimed = self.store.take_once(owner, id, &note).await;
        if claimed.map_err(store_failed)? {
            return Ok(());
        }
        let claims = self.claims_of(owner, vec![id.to_owned()]).await?;
        Err(answered_before(id, claims.get(id)))
    }

    /// Looks up the approval requests that the context does not tell the outcome of.
    pub(crate) async fn claims(
        &self,
        owner: &Owner,
        records: impl Iterator<Item = &Record> + Clone,
    ) -> Result<Claims, ApiError> {
        let told: HashSet<&str> = records.clone().filter_map(call_about).collect();
        let asked = records.filter(|record| record.item.kind() == "mcp_approval_request");
        let asked = asked.filter(|record| !told.contains(record.id.as_str()));
        let ids: Vec<String> = asked.map(|record| record.id.clone()).collect();
        if ids.is_empty() {
            return Ok(Claims::default());
        }
        self.claims_of(owner, ids).await
    }

    async fn claims_of(&self, owner: &Owner, ids: Vec<String>) -> Result<Claims, ApiError> {
        let taken = self.store.taken(owner, ids).await.map_err(store_failed)?;
        let mut claims = HashMap::new();
        for (id, note) in taken {
            let claim = match note.as_deref() {
                Some(REFUSED) => Claim::Refused,
                note => {
                    let response_id = note.and_then(|note| note.strip_prefix(APPROVED));
                    let ran = match response_id {
                        Some(response_id) => self.call_in(owner, response_id, &id).await?,
                        // An earlier version did not write who claimed it.
                        None => None,
                    };
                    ran.unwrap_or(Claim::OutcomeUnknown)
                }
            };
            claims.insert(id, claim);
        }
        Ok(Claims(Arc::new(claims)))
    }

    /// The finished call of a response that was approved by this id.
    async fn call_in(
        &self,
        owner: &Owner,
        response_id: &str,
        id: &str,
    ) -> Result<Option<Claim>, ApiError> {
        let response = self.store.response(owner, response_id).await;
        let Some(response) = response.map_err(store_failed)? else {
            return Ok(None);
        };
        let records = response
            .output
            .iter()
            .filter_map(|it| Record::stored(it).ok());
        let mut calls = records.filter(|record| call_about(record) == Some(id) && is_over(record));
        Ok(calls.next().map(|record| Claim::Ran {
            response_id: response_id.to_owned(),
            record: Box::new(record),
        }))
    }
}

/// The approval request that allowed a call.
fn call_about(record: &Record) -> Option<&str> {
    let kind = record.item.kind();
    let Item::Other(members) = &record.item else {
        return None;
    };
    let is_call = kind == "mcp_call" || kind.contains(':');
    members
        .get("approval_request_id")
        .and_then(Value::as_str)
        .filter(|_| is_call)
}

/// Whether a call came to its end: one that was cut off tells nothing.
pub(super) fn is_over(record: &Record) -> bool {
    let Item::Other(members) = &record.item else {
        return false;
    };
    let status = members.get("status").and_then(Value::as_str);
    matches!(status, None | Some("completed" | "failed"))
}

/// The error for an approval request that was answered before: it says what happened to the call.
fn answered_before(id: &str, claim: Option<&Claim>) -> ApiError {
    let id = haft_core::cut(id);
    let what = match claim {
        Some(Claim::Refused) => "it was refused, and the call was not executed".to_owned(),
        Some(Claim::Ran {
            response_id,
            record,
        }) => {
            let (result, is_error) = match &record.item {
                Item::Other(members) => result_of(members),
                _ => (String::new(), false),
            };
            // A call that failed or was interrupted may have taken effect or not: its item says what is known.
            let what = if is_error {
                "the call was started and is not started again; it ended without a result"
            } else {
                "the call was executed and is not executed again; its result"
            };
            let item = &record.id;
            format!("{what} (item `{item}` of response `{response_id}`): {result}")
        }
        Some(Claim::OutcomeUnknown) | None => {
            "the call was started and is not started again; its outcome is unknown, and it may have \
             taken effect: check before you repeat it, and continue with a new message instead of the \
             approval"
                .to_owned()
        }
    };
    let message = format!("the approval request `{id}` was already answered: {what}");
    ApiError::new(ErrorCode::ApprovalRequestNotFound, message).at("input")
}

/// The beginning of what a call returned, or of its error, and whether it is an error.
fn result_of(members: &Map<String, Value>) -> (String, bool) {
    let (output, is_error) = crate::mcp::output_of(members, false);
    let text = match output.to_text() {
        text if text.is_empty() => members.get("output").map(Value::to_string),
        text => Some(text),
    };
    let text = text.unwrap_or_default();
    let end = text.floor_char_boundary(QUOTED_BYTES);
    (text.get(..end).unwrap_or_default().to_owned(), is_error)
}
