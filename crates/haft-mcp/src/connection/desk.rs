//! Where the questions of one server are asked, and how often and how long.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use haft_core::ValidatorFactory;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::ConnectOptions;
use super::parties::{NoOne, Parties};
use super::request::later;
use crate::error::Cause;
use crate::names::Label;
use crate::question::{Answer, Asker, Form, Question, QuestionKind, Questions};
use crate::settings::ServerSettings;

/// How often a person may try to fill in one form.
const TRIES: usize = 3;

/// Why a question gets no answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Unasked {
    /// There is never anybody to ask.
    Nobody,
    /// It cannot be asked now, or at all.
    Refused(String),
    /// The one to ask could not be asked.
    Unaskable(String),
}

/// Whoever answers for calls that bring nobody, and whatever checks what is said.
struct Seam {
    asker: Option<Arc<dyn Asker>>,
    validators: Arc<dyn ValidatorFactory>,
}

/// What servers of the legacy era may still ask. They do not say to which call a question belongs, so
/// that all calls under way share it.
#[derive(Debug, Default)]
struct Budget {
    questions: usize,
    time: Duration,
}

/// The questions of one connection.
pub(super) struct Desk {
    server: Label,
    seam: Option<Seam>,
    /// Rounds of a call, questions of a round, and the time for all of them.
    rounds: usize,
    inputs: usize,
    time: Duration,
    budget: Mutex<Budget>,
    calls: watch::Sender<Parties>,
    asking: watch::Sender<usize>,
}

impl Desk {
    pub(super) fn new(settings: &ServerSettings, options: &ConnectOptions) -> Result<Self, Cause> {
        let asker = match &options.questions {
            Questions::Refused => None,
            Questions::PerCall => Some(None),
            Questions::By(asker) => Some(Some(Arc::clone(asker))),
        };
        let seam = match (asker, &options.validator) {
            (None, _) => None,
            (Some(asker), Some(validators)) => Some(Seam {
                asker,
                validators: Arc::clone(validators),
            }),
            (Some(_), None) => {
                return Err(Cause::Settings(
                    "an asker needs a validator that checks its answers: give one".into(),
                ));
            }
        };
        Ok(Self {
            server: settings.label.clone(),
            seam,
            rounds: settings.limits.rounds,
            inputs: settings.limits.inputs,
            time: settings.timeouts.asking,
            budget: Mutex::default(),
            calls: watch::Sender::new(Parties::default()),
            asking: watch::Sender::new(0),
        })
    }

    /// Whether there may be somebody to ask.
    pub(super) fn is_open(&self) -> bool {
        self.seam.is_some()
    }

    /// Whoever answers for a call that brought this one, or nobody.
    pub(super) fn asker(&self, own: Option<Arc<dyn Asker>>) -> Option<Arc<dyn Asker>> {
        let seam = self.seam.as_ref()?;
        own.or_else(|| seam.asker.clone())
    }

    /// How many questions are being asked.
    pub(super) fn asking(&self) -> watch::Receiver<usize> {
        self.asking.subscribe()
    }

    fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call is under way until this is dropped; without an answer it is one that was given up.
    pub(super) fn call(&self, asker: Option<Arc<dyn Asker>>) -> UnderWay<'_> {
        let mut budget = self.budget();
        if self.calls.borrow().under_way() == 0 {
            *budget = Budget {
                questions: 0,
                time: self.time,
            };
        }
        budget.questions += self.rounds;
        let mut id = 0;
        self.calls.send_modify(|calls| id = calls.begin(asker));
        UnderWay {
            desk: self,
            id,
            is_answered: false,
        }
    }

    /// Asks what a server of the legacy era wants to know.
    pub(super) async fn asked(&self, params: &Value) -> Result<Value, Unasked> {
        if self.seam.is_none() {
            return Err(Unasked::Nobody);
        }
        let question =
            Question::from_protocol(&self.server, None, params).map_err(Unasked::Refused)?;
        let asker = self.meant(&question)?;
        let (_asking, left) = self.admitted()?;
        let kind = question.kind.clone();
        let began = Instant::now();
        let mut calls = self.calls.subscribe();
        let answer = tokio::select! {
            answer = self.ask(&*asker, question) => answer?,
            // Nobody is left who wanted to know.
            _ = calls.wait_for(|calls| !calls.is_waited_for(&asker)) => Answer::Cancel,
            () = tokio::time::sleep(left) => Answer::Cancel,
        };
        let mut budget = self.budget();
        budget.time = budget.time.saturating_sub(began.elapsed());
        Ok(answer.to_protocol(&kind))
    }

    /// Whoever a question is for that does not say it.
    fn meant(&self, question: &Question) -> Result<Arc<dyn Asker>, Unasked> {
        let meant = self.calls.borrow().meant();
        let no_one = match meant {
            Ok(asker) => return Ok(asker),
            Err(no_one) => no_one,
        };
        tracing::debug!(server = %self.server, ?no_one, "a question is not asked");
        Err(match no_one {
            NoOne::Idle => Unasked::Refused("nothing may be asked outside a call".into()),
            NoOne::Silent => Unasked::Unaskable(format!(
                "nobody can be asked: whoever made the call answers no questions, and the server wants {}",
                question.wanted()
            )),
            NoOne::Doubt => Unasked::Unaskable(
                "nobody can be asked: calls of several callers are under way, and the question does not say \
                 to which of them it belongs. Call again when the others are done"
                    .into(),
            ),
        })
    }

    /// One question more, if there may be one, and how long it may take.
    fn admitted(&self) -> Result<(Counted<'_>, Duration), Unasked> {
        let refused = |text: String| Err(Unasked::Refused(text));
        let mut budget = self.budget();
        if *self.asking.borrow() >= self.inputs {
            return refused(format!("more than {} questions at once", self.inputs));
        }
        if budget.questions == 0 || budget.time.is_zero() {
            return refused("too many questions in one call".into());
        }
        budget.questions -= 1;
        Ok((Counted::new(&self.asking), budget.time))
    }

    /// Asks until the answer fits.
    async fn ask(&self, asker: &dyn Asker, mut question: Question) -> Result<Answer, Unasked> {
        let Some(seam) = &self.seam else {
            return Err(Unasked::Nobody);
        };
        let kind = question.kind.clone();
        let form = match &kind {
            QuestionKind::Form { schema } => {
                Some(Form::new(schema, &*seam.validators).map_err(Unasked::Refused)?)
            }
            QuestionKind::Page { .. } => None,
        };
        for _ in 0..TRIES {
            let said = AssertUnwindSafe(async { asker.ask(question.clone()).await });
            let answer = match said.catch_unwind().await {
                Ok(answer) => answer,
                Err(panic) => {
                    let text = haft_core::panic_text(&*panic);
                    tracing::error!(server = %self.server, text, "an asker panicked");
                    return Ok(Answer::Cancel);
                }
            };
            if let Answer::Unaskable(reason) = answer {
                return Err(Unasked::Unaskable(reason));
            }
            let (Answer::Accept(said), Some(form)) = (&answer, &form) else {
                return Ok(answer);
            };
            match form.filled(said.clone()) {
                Ok(filled) => return Ok(Answer::Accept(filled)),
                Err(complaint) => question.complaint = Some(complaint),
            }
        }
        tracing::warn!(server = %self.server, "no answer fitted the form of a question");
        Ok(Answer::Cancel)
    }

    /// Asks a question of the modern era; `left` is the time that is left for all of its call.
    pub(super) async fn ask_within(
        &self,
        asker: &dyn Asker,
        question: Question,
        left: &mut Duration,
    ) -> Result<Value, Cause> {
        let kind = question.kind.clone();
        let wanted = question.wanted();
        let began = Instant::now();
        let answer = tokio::time::timeout(*left, self.ask(asker, question)).await;
        *left = left.saturating_sub(began.elapsed());
        match answer {
            Ok(Ok(answer)) => Ok(answer.to_protocol(&kind)),
            Ok(Err(Unasked::Refused(problem))) => Err(Cause::Unexpected(problem)),
            Ok(Err(Unasked::Unaskable(wanted))) => Err(Cause::InputRequired { wanted }),
            Ok(Err(Unasked::Nobody)) => Err(Cause::InputRequired { wanted }),
            Err(_) => Err(Cause::InputRequired {
                wanted: format!("nobody answered within {} s", self.time.as_secs()),
            }),
        }
    }
}

/// A call on its way.
pub(super) struct UnderWay<'a> {
    desk: &'a Desk,
    id: u64,
    is_answered: bool,
}

impl UnderWay<'_> {
    /// The server will not ask about it any more.
    pub(super) fn answered(&mut self) {
        self.is_answered = true;
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let (id, until) = (self.id, later(Instant::now(), self.desk.time));
        let is_answered = self.is_answered;
        self.desk.calls.send_modify(|calls| {
            if is_answered {
                calls.answered(id);
            } else {
                calls.given_up(id, until);
            }
        });
    }
}

/// One of those that are counted.
pub(super) struct Counted<'a>(&'a watch::Sender<usize>);

impl<'a> Counted<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
