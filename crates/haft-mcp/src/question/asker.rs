//! Whoever answers, and for whom.

use std::fmt;
use std::sync::Arc;

use haft_core::BoxFuture;

use super::{Answer, Question, QuestionKind};

/// Somebody who answers the questions of servers.
///
/// ```
/// use haft_mcp::{Answer, Asker, Question};
///
/// /// Takes what the form proposes.
/// fn defaults(_: Question) -> Answer {
///     Answer::Accept(serde_json::Map::new())
/// }
/// let asker: &dyn Asker = &defaults;
/// # let _ = asker;
/// ```
pub trait Asker: Send + Sync + 'static {
    /// Answers one question. It may take its time, within the limits of the call. What a form proposes
    /// need not be repeated: it counts where nothing else is said.
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer>;

    /// Whom it asks. Servers of the legacy era do not say to which call a question belongs: where
    /// several calls are under way, one is asked only if all of them are the same caller's. Askers
    /// without a name are the same only if they are one.
    fn caller(&self) -> Option<&str> {
        None
    }

    /// Which questions it can answer. Servers of the modern era are told so with the call.
    fn takes(&self) -> Takes {
        Takes::ALL
    }
}

impl<F> Asker for F
where
    F: Fn(Question) -> Answer + Send + Sync + 'static,
{
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        let answer = self(question);
        Box::pin(async move { answer })
    }
}

/// The kinds of questions that somebody can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Takes {
    /// Forms to fill in.
    pub forms: bool,
    /// Pages to visit.
    pub pages: bool,
}

impl Takes {
    /// Every kind.
    pub const ALL: Self = Self {
        forms: true,
        pages: true,
    };

    /// None at all.
    pub const NOTHING: Self = Self {
        forms: false,
        pages: false,
    };

    /// Whether a question of this kind can be answered.
    pub fn includes(self, kind: &QuestionKind) -> bool {
        match kind {
            QuestionKind::Form { .. } => self.forms,
            QuestionKind::Page { .. } => self.pages,
        }
    }
}

/// Who answers what servers ask in the middle of a call.
#[derive(Clone, Default)]
pub enum Questions {
    /// Nobody, whatever a call says: servers are told so.
    #[default]
    Refused,
    /// Whoever made the call, if it brings an asker
    /// ([`CallOptions::asker`](crate::CallOptions::asker)).
    PerCall,
    /// This one, for every call that does not bring its own.
    By(Arc<dyn Asker>),
}

impl Questions {
    /// Whether there may ever be somebody to ask.
    pub fn may_be_asked(&self) -> bool {
        !matches!(self, Self::Refused)
    }
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "Refused",
            Self::PerCall => "PerCall",
            Self::By(_) => "By(..)",
        })
    }
}

/// Whoever answers in one run. Put into the run's context
/// ([`ToolContext::state`](haft_core::ToolContext::state)), it goes with every call that an
/// [`McpTool`](crate::McpTool) makes there. The servers' pool must allow it. One that is the same person's
/// in several runs says so by [`Asker::caller`].
///
/// ```
/// use std::sync::Arc;
/// use haft_core::ToolContext;
/// use haft_mcp::{Answer, AskerSlot, ConnectOptions, Pool, Question, Questions};
///
/// let pool = Pool::builder().connect(ConnectOptions {
///     questions: Questions::PerCall,
///     ..ConnectOptions::default()
/// }).build();
/// let person = |question: Question| match question.message.as_str() {
///     "Which colour?" => Answer::Accept(serde_json::Map::new()),
///     _ => Answer::Decline,
/// };
/// // As `run.context(context)`.
/// let context = ToolContext::builder().state(AskerSlot(Arc::new(person))).build();
/// # let _ = (pool, context);
/// ```
#[derive(Clone)]
pub struct AskerSlot(pub Arc<dyn Asker>);

impl fmt::Debug for AskerSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AskerSlot(..)")
    }
}
