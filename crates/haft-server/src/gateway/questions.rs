//! What servers ask in the midst of calls, passed on to the clients who called.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::BoxFuture;
use haft_mcp::gateway::{AnswerAction, CallContext, InputRequest};
use haft_mcp::{Answer, Asker, Label, Question, QuestionKind};

/// Passes questions of servers on. Given to the connections of a pool and to the gateway in front of it,
/// which must be the only one who calls: a question is passed on only where it is certain whose call it
/// belongs to, because there is no other.
#[derive(Debug, Default)]
pub struct Questions {
    calls: Mutex<Vec<Call>>,
    next: AtomicU64,
}

/// A call under way.
#[derive(Debug)]
struct Call {
    number: u64,
    server: Label,
    tool: String,
    context: CallContext,
}

impl Questions {
    /// Lets the client of this call be asked as long as the answer is held.
    pub(super) fn during(
        self: &Arc<Self>,
        server: &Label,
        tool: &str,
        context: &CallContext,
    ) -> During {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().push(Call {
            number,
            server: server.clone(),
            tool: tool.to_owned(),
            context: context.clone(),
        });
        During {
            questions: Arc::clone(self),
            number,
        }
    }

    /// The call that a question belongs to, if it can only be one.
    fn whose(&self, question: &Question) -> Option<CallContext> {
        let calls = self.lock();
        let is_meant = |call: &&Call| {
            let tool = question.tool.as_ref();
            call.server == question.server && tool.is_none_or(|tool| *tool == call.tool)
        };
        let mut meant = calls.iter().filter(is_meant);
        let only = meant.next()?;
        meant.next().is_none().then(|| only.context.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call whose client can be asked.
pub(super) struct During {
    questions: Arc<Questions>,
    number: u64,
}

impl Drop for During {
    fn drop(&mut self) {
        let mut calls = self.questions.lock();
        calls.retain(|call| call.number != self.number);
    }
}

impl Asker for Questions {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let Some(context) = self.whose(&question) else {
                tracing::warn!(server = %question.server, "it asks something, and nobody knows in whose call");
                return Answer::Cancel;
            };
            let mut message = format!("`{}` asks: {}", question.server, question.message);
            if let Some(complaint) = &question.complaint {
                message = format!("{message}\n({complaint})");
            }
            let request = match question.kind {
                QuestionKind::Form { schema } => InputRequest::Form { message, schema },
                QuestionKind::Page { url } => InputRequest::Url {
                    message,
                    url: url.into(),
                    id: format!("haft-{}", self.next.fetch_add(1, Ordering::Relaxed)),
                },
                _ => return Answer::Cancel,
            };
            match context.ask(request).await {
                Ok(answer) => match answer.action() {
                    Some(AnswerAction::Accept) => {
                        Answer::Accept(answer.content().cloned().unwrap_or_default())
                    }
                    Some(AnswerAction::Decline) => Answer::Decline,
                    _ => Answer::Cancel,
                },
                Err(error) => {
                    tracing::warn!(server = %question.server, %error, "its question has no answer");
                    Answer::Cancel
                }
            }
        })
    }
}
