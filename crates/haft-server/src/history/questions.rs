//! Questions about calls, and what was said to them (`open-responses.md` §5.6).
//!
//! A question stands open until the model speaks again. A yes of this request is to be carried out; one
//! of an earlier request was, or nobody knows. Whoever goes on without a word has said no.

use std::collections::HashMap;

use haft_core::{Item, Role};
use serde_json::{Map, Value};

use super::Record;
use super::claims::{Claim, Claims};
use crate::error::{ApiError, ErrorCode};

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nobody has said anything.
    Open,
    /// No, for this reason.
    Refused(Option<String>),
    /// Yes, in this request.
    Allowed {
        /// Where that was said.
        param: String,
    },
    /// The call ran, and this record tells of it.
    Ran(usize),
    /// Yes, but nothing tells what came of it.
    Lost,
    /// The call ran in a response outside this context; the claim holds its record.
    RanElsewhere,
}

/// The questions of a context.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    fates: HashMap<String, Fate>,
    /// Those that can still be answered, and what was said.
    open: Vec<(String, Option<Said>)>,
    /// Whether the client has spoken since the model did.
    has_client_spoken: bool,
    has_user_spoken: bool,
}

#[derive(Debug)]
enum Said {
    Yes { param: Option<String> },
    No { reason: Option<String> },
}

impl Questions {
    /// Follows a context from its beginning. An answer to what was not asked is an error. An approval that
    /// an earlier request has used up counts, although the context does not hold it.
    pub(crate) fn of(records: &[Record], claims: &Claims) -> Result<Self, ApiError> {
        let mut questions = Self::default();
        for (at, record) in records.iter().enumerate() {
            questions.take(at, record)?;
        }
        let has_user_spoken = questions.has_user_spoken;
        for (id, said) in std::mem::take(&mut questions.open) {
            let fate = match said {
                Some(Said::Yes { param: Some(param) }) => Fate::Allowed { param },
                Some(Said::Yes { param: None }) => Fate::Lost,
                Some(Said::No { reason }) => Fate::Refused(reason),
                None if has_user_spoken => Fate::Refused(None),
                None => Fate::Open,
            };
            questions.fates.insert(id, fate);
        }
        for (id, fate) in &mut questions.fates {
            if !matches!(fate, Fate::Open | Fate::Refused(_) | Fate::Lost) {
                continue;
            }
            match claims.get(id) {
                Some(Claim::Ran { .. }) => *fate = Fate::RanElsewhere,
                Some(Claim::OutcomeUnknown) => *fate = Fate::Lost,
                Some(Claim::Refused) | None => {}
            }
        }
        Ok(questions)
    }

    pub(crate) fn fate(&self, id: &str) -> Option<&Fate> {
        self.fates.get(id)
    }

    fn take(&mut self, at: usize, record: &Record) -> Result<(), ApiError> {
        match &record.item {
            Item::Message(message) if message.role == Role::Assistant => self.model_speaks(),
            Item::Message(message) => {
                self.has_client_spoken = true;
                self.has_user_spoken |= message.role == Role::User;
            }
            Item::FunctionCall(_) | Item::Reasoning(_) => self.model_speaks(),
            Item::FunctionCallOutput(_) => self.has_client_spoken = true,
            Item::Other(members) => return self.take_other(at, record, members),
            _ => {}
        }
        Ok(())
    }

    fn take_other(
        &mut self,
        at: usize,
        record: &Record,
        members: &Map<String, Value>,
    ) -> Result<(), ApiError> {
        let text = |key: &str| members.get(key).and_then(Value::as_str);
        match record.item.kind() {
            "mcp_approval_request" => {
                self.model_speaks();
                self.open.push((record.id.clone(), None));
            }
            "mcp_approval_response" => {
                self.has_client_spoken = true;
                let id = text("approval_request_id").unwrap_or_default();
                let open = self.open.iter_mut().find(|(open, _)| open == id);
                match (open, &record.param) {
                    (Some((_, said @ None)), param) => {
                        let is_yes = members.get("approve") == Some(&Value::Bool(true));
                        let reason = text("reason").map(str::to_owned);
                        let param = param.clone();
                        *said = Some(if is_yes {
                            Said::Yes { param }
                        } else {
                            Said::No { reason }
                        });
                    }
                    (_, Some(param)) => return Err(not_found(id, param)),
                    // It was stored, and what it answers is gone.
                    (_, None) => {}
                }
            }
            kind if kind == "mcp_call" || kind.contains(':') => {
                let asked = text("approval_request_id");
                let open = self.open.iter();
                let open = open.map(|(id, _)| id.as_str());
                let place = open.into_iter().position(|id| Some(id) == asked);
                match place {
                    Some(place) => {
                        let (id, _) = self.open.remove(place);
                        self.fates.insert(id, Fate::Ran(at));
                    }
                    None => self.model_speaks(),
                }
            }
            // This server's own word.
            "tool_search_output" if text("execution") != Some("client") => {}
            kind if kind.ends_with("_output") => self.has_client_spoken = true,
            "custom_tool_call" | "tool_search_call" => self.model_speaks(),
            _ => {}
        }
        Ok(())
    }

    /// What the model says behind somebody else's words is a new turn: what was open is no more.
    fn model_speaks(&mut self) {
        if !std::mem::take(&mut self.has_client_spoken) {
            return;
        }
        self.has_user_spoken = false;
        for (id, said) in self.open.drain(..) {
            let fate = match said {
                Some(Said::Yes { .. }) => Fate::Lost,
                Some(Said::No { reason }) => Fate::Refused(reason),
                None => Fate::Refused(None),
            };
            self.fates.insert(id, fate);
        }
    }
}

/// An answer to a question that was not asked, or is not open any more.
pub(crate) fn not_found(id: &str, param: &str) -> ApiError {
    let message = format!(
        "there is no open approval request `{}`: answer one of the last response, as it was sent, once",
        haft_core::cut(id)
    );
    let error = ApiError::new(ErrorCode::ApprovalRequestNotFound, message);
    error.at(format!("{param}.approval_request_id"))
}
