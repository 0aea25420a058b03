//! A request from its first round to its last.
//!
//! Two kinds of questions meet two kinds of clients. A backend either ends a round with questions and is
//! asked again (as modern servers do), or asks in the midst of its work (as legacy servers and approvals
//! do). A client either is asked by a request (legacy) or by the result of its own (modern). All four
//! pairs are here:
//!
//! | | legacy client | modern client |
//! |---|---|---|
//! | ends with questions | each is asked in turn, then the next round | passed on, with the state sealed |
//! | asks in the midst | asked in the midst | the work is parked until the client is back |

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{InputRequests, InputRequiredResult};
use serde_json::json;

use super::backend::{Backend, BackendError};
use super::context::{AskError, Event};
use super::convert;
use super::input::{Answer, Input, InputNeeded, InputRequest, Reply};
use super::job::{Finished, ForWhom, Job, Next, Work};
use super::line::{Asking, Line};
use super::parked::{Parked, Waiting};
use super::state::{Bound, MAX_QUESTIONS, MAX_ROUNDS, Sealer, State};

/// The key of a question that was asked in the midst of a call.
const ASKED: &str = "input";

/// A request and what its client sent along.
pub(super) struct Request {
    pub(super) work: Work,
    pub(super) whom: ForWhom,
    /// The server that it goes to; its questions are marked with it.
    pub(super) label: Option<String>,
    pub(super) bound: Bound,
    pub(super) answers: BTreeMap<String, Answer>,
    pub(super) state: Option<String>,
}

/// How a round ends for the client.
pub(super) enum Round {
    Complete(Finished),
    Needs(InputRequiredResult),
    /// It cannot go on, and the model should read why.
    Refused(String),
}

/// Where rounds happen.
pub(super) struct Rounds<'g, B> {
    pub(super) backend: &'g Arc<B>,
    pub(super) sealer: &'g Sealer,
    pub(super) parked: &'g Arc<Parked>,
}

impl<B: Backend> Rounds<'_, B> {
    pub(super) async fn run(&self, request: Request, mut line: Line) -> Result<Round, ErrorData> {
        let mut state = match &request.state {
            None => State::first(),
            Some(sealed) => self
                .sealer
                .open(sealed, &request.bound)
                .ok_or_else(stale_state)?,
        };
        let mut answers = request.own_answers();
        let mut job = if let Some(id) = state.parked.take() {
            let parked = self.parked.take(&id, &request.whom.caller);
            let waiting = parked.ok_or_else(stale_state)?;
            let Some(answer) = answers.remove(ASKED) else {
                // Not what was asked for: it is asked once more.
                return Ok(self.park(waiting, &request, state));
            };
            let _ = waiting.reply.send(Ok(answer));
            waiting.job
        } else {
            let backend = state.backend.take();
            self.start(&request, answers, backend)
        };
        loop {
            let done = tokio::select! {
                next = job.next() => match next {
                    Next::Done(done) => done,
                    Next::Event(Event::Progress(progress)) => {
                        line.report(progress).await;
                        continue;
                    }
                    Next::Event(Event::Log { level, logger, data }) => {
                        line.log(level, logger, data).await;
                        continue;
                    }
                    Next::Event(Event::Ask { request: question, reply }) => {
                        if line.asking == Asking::InResult {
                            let caller = request.whom.caller.clone();
                            let waiting = Waiting { caller, job, request: question, reply };
                            return Ok(self.park(waiting, &request, state));
                        }
                        let answer = self.ask(&line, &question, &state).await?;
                        let _ = reply.send(answer);
                        continue;
                    }
                },
                () = line.cancelled() => return Err(cancelled()),
            };
            let modern = line.asking == Asking::InResult;
            let needed = match done.map_err(|error| convert::error(&error, modern))? {
                Reply::Complete(finished) => return Ok(Round::Complete(finished)),
                Reply::InputRequired(needed) => needed,
            };
            if let Err(refusal) = request.allows(&needed, &state) {
                return Ok(Round::Refused(refusal));
            }
            state.rounds += 1;
            if modern {
                state.backend = needed.state;
                let questions = request.marked(needed.requests);
                return Ok(self.questions(questions, &request, &state));
            }
            let mut answers = BTreeMap::new();
            for (key, question) in needed.requests {
                match self.ask(&line, &question, &state).await? {
                    Ok(answer) => answers.insert(key, answer),
                    Err(error) => return Ok(Round::Refused(error.to_string())),
                };
            }
            job = self.start(&request, answers, needed.state);
        }
    }

    fn start(
        &self,
        request: &Request,
        answers: BTreeMap<String, Answer>,
        state: Option<String>,
    ) -> Job {
        let work = request.work.with(Input { answers, state });
        Job::start(self.backend.clone(), work, request.whom.clone())
    }

    /// Asks by a request; the outer error means that the client has gone.
    async fn ask(
        &self,
        line: &Line,
        question: &InputRequest,
        state: &State,
    ) -> Result<Result<Answer, AskError>, ErrorData> {
        if line.asking == Asking::Never {
            return Ok(Err(AskError::Unsupported(question.kind())));
        }
        tokio::select! {
            answer = line.ask(question, state.left()) => Ok(answer),
            () = line.cancelled() => Err(cancelled()),
        }
    }

    /// Lets a call wait for an answer that comes with another request.
    fn park(&self, waiting: Waiting, request: &Request, mut state: State) -> Round {
        state.rounds += 1;
        if state.rounds > MAX_ROUNDS || state.left().is_zero() {
            return Round::Refused(too_often());
        }
        let question = waiting.request.clone();
        let questions = request.marked([(ASKED.to_owned(), question)].into());
        match self.parked.put(waiting, state.left()) {
            Ok(id) => {
                state.parked = Some(id);
                self.questions(questions, request, &state)
            }
            Err(waiting) => {
                let _ = waiting.reply.send(Err(AskError::TooMany));
                Round::Refused(AskError::TooMany.to_string())
            }
        }
    }

    /// Questions in the protocol's words, and the state that comes back with the answers.
    fn questions(
        &self,
        questions: BTreeMap<String, InputRequest>,
        request: &Request,
        state: &State,
    ) -> Round {
        let mut said = InputRequests::new();
        for (key, question) in questions {
            let json = json!({"method": question.method(), "params": question.params()});
            match serde_json::from_value(json) {
                Ok(question) => said.insert(key, question),
                Err(error) => {
                    let error = AskError::Unsayable(error.to_string());
                    return Round::Refused(error.to_string());
                }
            };
        }
        let Some(sealed) = self.sealer.seal(state, &request.bound) else {
            return Round::Refused("the state of the request cannot be sealed".into());
        };
        let said = (!said.is_empty()).then_some(said);
        Round::Needs(InputRequiredResult::new(said, Some(sealed)))
    }
}

impl Request {
    /// The answers under the keys that the backend gave its questions. Others are none of its business.
    fn own_answers(&self) -> BTreeMap<String, Answer> {
        let answers = self.answers.iter();
        let own = answers.filter_map(|(key, answer)| {
            let key = match self.mark() {
                Some(mark) => key.strip_prefix(&mark)?,
                None => key,
            };
            Some((key.to_owned(), answer.clone()))
        });
        own.collect()
    }

    fn marked(&self, questions: BTreeMap<String, InputRequest>) -> BTreeMap<String, InputRequest> {
        let Some(mark) = self.mark() else {
            return questions;
        };
        let questions = questions.into_iter();
        questions
            .map(|(key, question)| (format!("{mark}{key}"), question))
            .collect()
    }

    fn mark(&self) -> Option<String> {
        self.label.as_ref().map(|label| format!("{label}__"))
    }

    /// Whether these questions may be asked, after so many rounds, of this client.
    fn allows(&self, needed: &InputNeeded, state: &State) -> Result<(), String> {
        if state.rounds >= MAX_ROUNDS || state.left().is_zero() {
            return Err(too_often());
        }
        if needed.requests.len() > MAX_QUESTIONS {
            let count = needed.requests.len();
            return Err(format!(
                "the tool asked {count} questions at once; at most {MAX_QUESTIONS} are passed on"
            ));
        }
        if needed.requests.is_empty() && needed.state.is_none() {
            return Err("the tool asked for input, but not for which".into());
        }
        let mut questions = needed.requests.values();
        let client = &self.whom.client;
        match questions.find(|question| !client.can_answer(question.kind())) {
            None => Ok(()),
            Some(question) => Err(not_offered(question)),
        }
    }
}

/// What the model reads when its client cannot be asked.
fn not_offered(question: &InputRequest) -> String {
    let asked = match question.message() {
        Some(message) => format!(" It asked: {message}"),
        None => String::new(),
    };
    let kind = question.kind();
    format!("the tool wants {kind}, which this client does not offer.{asked}")
}

fn too_often() -> String {
    format!(
        "the tool asked for input too often or for too long: {MAX_ROUNDS} times or 15 minutes are the limit"
    )
}

fn stale_state() -> ErrorData {
    let text = "the `requestState` does not belong to this request or is too old: send the request again without it";
    ErrorData::invalid_params(text, None)
}

fn cancelled() -> ErrorData {
    convert::error(&BackendError::Cancelled, false)
}
