//! What a running call knows and can say.

use std::collections::BTreeMap;

use haft_core::{Cancel, ToolProgress};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::caller::Caller;
use super::input::{Answer, AnswerAction, InputKind, InputRequest};
pub use crate::log_message::LogLevel;

/// Who is at the other end, as far as it has said so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Client {
    /// The program, if it is known.
    pub name: Option<String>,
    /// The questions that it can answer, here and now.
    pub(super) answers: Vec<InputKind>,
}

impl Client {
    /// Whether it can answer questions of this kind.
    pub fn can_answer(&self, kind: InputKind) -> bool {
        self.answers.contains(&kind)
    }
}

/// What happens in a call before its end.
#[derive(Debug)]
pub(super) enum Event {
    Progress(ToolProgress),
    Log {
        level: LogLevel,
        logger: Option<String>,
        data: Value,
    },
    Ask {
        request: InputRequest,
        reply: oneshot::Sender<Result<Answer, AskError>>,
    },
}

/// What a running call knows and can say: who calls, how far it is, what it would like to be asked.
#[derive(Debug, Clone)]
pub struct CallContext {
    pub(super) caller: Caller,
    pub(super) client: Client,
    pub(super) cancel: Cancel,
    pub(super) trace: BTreeMap<String, String>,
    pub(super) log_level: Option<LogLevel>,
    pub(super) events: mpsc::Sender<Event>,
}

impl CallContext {
    /// Who calls.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// With which program.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Given when the answer is no longer wanted: the client cancelled, went away, or took too long.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// The caller's trace: `traceparent`, `tracestate`, `baggage`, as far as they were sent. Nothing else
    /// of a request's metadata goes on to a server.
    pub fn trace(&self) -> &BTreeMap<String, String> {
        &self.trace
    }

    /// The least severe log messages that the client wants to see of this call; none if it wants none.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    /// Tells how far the call is. It never waits: who reports faster than clients read is thinned out,
    /// and steps back are left out.
    pub fn progress(&self, progress: ToolProgress) {
        let _ = self.events.try_send(Event::Progress(progress));
    }

    /// Logs to the client, if it wants to hear of this level. It never waits.
    pub fn log(&self, level: LogLevel, logger: Option<&str>, data: Value) {
        let logger = logger.map(ToOwned::to_owned);
        let _ = self.events.try_send(Event::Log {
            level,
            logger,
            data,
        });
    }

    /// Asks the client in the midst of the call and waits for the answer: by a request to the client
    /// where its revision of the protocol has that, otherwise by an `input_required` result, after which
    /// this call stays alive until the client comes back with the answer.
    pub async fn ask(&self, request: InputRequest) -> Result<Answer, AskError> {
        if !self.client.can_answer(request.kind()) {
            return Err(AskError::Unsupported(request.kind()));
        }
        let (reply, answer) = oneshot::channel();
        let event = Event::Ask { request, reply };
        let asked = async {
            let gone = |()| AskError::Gone;
            self.events.send(event).await.map_err(|_| gone(()))?;
            answer.await.unwrap_or(Err(AskError::Gone))
        };
        tokio::select! {
            answer = asked => answer,
            () = self.cancel.cancelled() => Err(AskError::Gone),
        }
    }

    /// Asks the person for a yes. Whoever cannot be asked has not said yes.
    pub async fn confirm(&self, message: impl Into<String>) -> Confirmation {
        let mut schema = Map::new();
        schema.insert("type".into(), json!("object"));
        schema.insert("properties".into(), json!({}));
        let message = message.into();
        match self.ask(InputRequest::Form { message, schema }).await {
            Ok(answer) if answer.action() == Some(AnswerAction::Accept) => Confirmation::Yes,
            Ok(_) => Confirmation::No,
            Err(error) => Confirmation::NotAsked(error),
        }
    }
}

/// What came of asking for a yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmation {
    /// It may be done.
    Yes,
    /// It must not.
    No,
    /// Nobody could be asked, so it must not.
    NotAsked(AskError),
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client cannot answer such questions.
    #[error("the client does not offer {0}")]
    Unsupported(InputKind),
    /// Too many calls wait for answers.
    #[error("too many calls wait for input already: answer them first, or call again later")]
    TooMany,
    /// The question cannot be said in the protocol's words.
    #[error("the question cannot be passed on: {0}")]
    Unsayable(String),
    /// The client refused the question, or answered something that is none.
    #[error("the client did not answer: {0}")]
    Refused(String),
    /// Nobody is there any more, or not in time.
    #[error("nobody is there to answer")]
    Gone,
}
