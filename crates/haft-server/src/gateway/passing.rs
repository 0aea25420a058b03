//! Questions of a server, passed on to the client whose call it is.

use std::sync::{Mutex, PoisonError};

use haft_core::BoxFuture;
use haft_mcp::gateway::{
    Answer as ClientAnswer, AnswerAction, AskError, CallContext, InputKind, InputRequest,
};
use haft_mcp::{Answer, Asker, Question, QuestionKind, Takes};

/// Asks the client of one call.
pub(super) struct AskCaller {
    context: CallContext,
    principal: String,
    /// What the client was not asked, and why.
    unasked: Mutex<Vec<String>>,
}

impl AskCaller {
    pub(super) fn new(context: CallContext) -> Self {
        Self {
            principal: context.caller().principal(),
            context,
            unasked: Mutex::default(),
        }
    }

    /// What the server wanted to know and could not be asked. Those of the legacy era answer the call all
    /// the same, with whatever they make of it.
    pub(super) fn unasked(&self) -> Option<String> {
        let unasked = self.unasked.lock().unwrap_or_else(PoisonError::into_inner);
        (!unasked.is_empty()).then(|| unasked.join("\n"))
    }

    fn cannot(&self, error: &AskError, question: &Question) -> Answer {
        let text = format!("{error}. The server wants {}", question.wanted());
        let mut unasked = self.unasked.lock().unwrap_or_else(PoisonError::into_inner);
        unasked.push(text.clone());
        Answer::Unaskable(text)
    }
}

impl Asker for AskCaller {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let Some(request) = request(&question) else {
                let error = AskError::Unsayable("haft does not know how".into());
                return self.cannot(&error, &question);
            };
            match self.context.ask(request).await {
                Ok(answer) => said(&answer),
                // Whoever wanted to know has gone.
                Err(AskError::Gone) => Answer::Cancel,
                Err(error) => self.cannot(&error, &question),
            }
        })
    }

    fn caller(&self) -> Option<&str> {
        Some(&self.principal)
    }

    fn takes(&self) -> Takes {
        let client = self.context.client();
        Takes {
            forms: client.can_answer(InputKind::Form),
            pages: client.can_answer(InputKind::Url),
        }
    }
}

/// The question as a client is asked it. It says who asks: to the client there is only haft.
fn request(question: &Question) -> Option<InputRequest> {
    let server = &question.server;
    let complaint = match &question.complaint {
        Some(complaint) => format!(" (The answer before did not fit: {complaint})"),
        None => String::new(),
    };
    let message = format!(
        "MCP server `{server}` asks: {}{complaint}",
        question.message
    );
    match &question.kind {
        QuestionKind::Form { schema } => Some(InputRequest::Form {
            message,
            schema: schema.clone(),
        }),
        QuestionKind::Page { url } => Some(InputRequest::Url {
            message,
            url: url.to_string(),
            id: format!("{server}-{:016x}", fastrand::u64(..)),
        }),
        _ => None,
    }
}

/// What the client's person did. What is no answer is none.
fn said(answer: &ClientAnswer) -> Answer {
    match answer.action() {
        Some(AnswerAction::Accept) => Answer::Accept(answer.content().cloned().unwrap_or_default()),
        Some(AnswerAction::Decline) => Answer::Decline,
        Some(AnswerAction::Cancel) | None => Answer::Cancel,
    }
}
