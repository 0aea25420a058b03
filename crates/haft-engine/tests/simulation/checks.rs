//! What must hold, whatever happened.

use std::collections::{HashMap, HashSet};

use haft_core::{Item, ModelRequest, ModelResponse, SessionState};
use haft_engine::{
    CallStatus, End, EventKind, Executed, IncompleteReason, Moment, Outcome, RunEvent, Ticket,
    Waiting,
};

use crate::world::{Committed, Plan, kind_of};

pub struct Checks {
    plan: Plan,
    pub cancelled: bool,
    /// Calls whose handler was started.
    started: HashSet<String>,
    /// Calls whose handler came to a good end.
    succeeded: Vec<String>,
    /// How often the end of each call was told.
    told: HashMap<String, usize>,
    /// Whether the current leg has ended.
    finished: bool,
    answers: usize,
}

impl Checks {
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            cancelled: false,
            started: HashSet::new(),
            succeeded: Vec::new(),
            told: HashMap::new(),
            finished: false,
            answers: 0,
        }
    }

    pub fn event(&mut self, event: &RunEvent) {
        assert!(
            !self.finished,
            "an event after the last: {}",
            kind_of(event)
        );
        match &event.kind {
            EventKind::RunFinished { .. } => self.finished = true,
            EventKind::ToolInvoked { call_id, .. } => {
                *self.told.entry(call_id.clone()).or_default() += 1;
            }
            _ => {}
        }
    }

    /// Every request carries a whole history.
    pub fn request(&mut self, request: &ModelRequest) {
        self.finished = false;
        request.conversation.verify().expect("a whole history");
        assert_eq!(
            request.tools.len(),
            if self.plan.options.spill_bytes.is_some() {
                6
            } else {
                5
            }
        );
    }

    pub fn answer(&mut self, _: &ModelResponse) {
        self.answers += 1;
    }

    pub fn starts(&mut self, ticket: &Ticket, running: &[Ticket]) {
        self.finished = false;
        let is_first = self.started.insert(ticket.call_id.clone());
        assert!(
            is_first || ticket.tool_name == "look",
            "call {} runs twice",
            ticket.call_id
        );
        assert!(
            running.len() < self.plan.options.max_parallel,
            "too many at once"
        );
        let alone = running.iter().any(|other| other.tool_name == "alone");
        assert!(!alone, "a sequential tool has company");
        if ticket.tool_name == "alone" {
            assert!(running.is_empty(), "a sequential tool does not wait");
        }
        if let Some(limit) = self.plan.options.max_tool_calls {
            assert!(
                self.started.len() <= limit as usize,
                "more calls than allowed"
            );
        }
    }

    pub fn finishes(&mut self, call_id: &str, executed: &Executed) {
        if let Executed::Returned(Ok(output)) = executed
            && output.is_success()
        {
            self.succeeded.push(call_id.to_owned());
        }
    }

    pub fn waits(&mut self, outcome: &Outcome, waiting: &Waiting) {
        assert!(self.finished, "a leg without an end");
        self.finished = false;
        assert!(!waiting.calls.is_empty() || !waiting.approvals.is_empty());
        let open: HashSet<_> = outcome
            .session
            .pending_calls()
            .chain(outcome.session.suspended_calls())
            .collect();
        assert_eq!(open.len(), waiting.calls.len() + waiting.approvals.len());
    }

    pub fn at_the_end(&self, outcome: &Outcome, state: &SessionState, now: Moment) {
        assert!(self.finished, "the end was not told");
        self.history(outcome);
        self.records(outcome);
        self.state(outcome, state);
        self.reason(outcome, now);
    }

    /// One output per call, in order, none lost and none twice.
    fn history(&self, outcome: &Outcome) {
        let conversation = outcome.session.conversation();
        conversation.verify().expect("a whole history");
        let mut turn: Vec<&str> = Vec::new();
        let mut answered: Vec<&str> = Vec::new();
        for item in conversation.items() {
            match item {
                Item::FunctionCall(call) => {
                    if !answered.is_empty() {
                        (turn, answered) = (Vec::new(), Vec::new());
                    }
                    turn.push(&call.call_id);
                }
                Item::FunctionCallOutput(output) => {
                    assert!(
                        turn.contains(&output.call_id.as_str()),
                        "an output of another turn"
                    );
                    answered.push(&output.call_id);
                }
                _ => {}
            }
        }
        for item in conversation.items() {
            if let Item::FunctionCallOutput(output) = item {
                let told = self.told.get(&output.call_id).copied();
                assert_eq!(
                    told,
                    Some(1),
                    "call {} was told {told:?} times",
                    output.call_id
                );
            }
        }
    }

    /// Every call has its record, with the result that the conversation has.
    fn records(&self, outcome: &Outcome) {
        let conversation = outcome.session.conversation();
        let calls: Vec<_> = conversation
            .items()
            .filter_map(|item| match item {
                Item::FunctionCall(call) => Some(call.call_id.as_str()),
                _ => None,
            })
            .collect();
        let records: Vec<_> = outcome
            .tool_calls
            .iter()
            .map(|call| call.call_id.as_str())
            .collect();
        assert_eq!(calls, records);
        for record in &outcome.tool_calls {
            let result = record.result.as_ref().expect("every call has a result");
            let ran = self.started.contains(&record.call_id);
            let answered = record.status == CallStatus::Answered;
            // Whether it began when the process died is what nobody knows.
            let is_unknown = record.status == CallStatus::OutcomeUnknown;
            assert!(!is_unknown || record.tool_name != "look", "{record:?}");
            assert_eq!(
                record.status.ran(),
                ran || answered || is_unknown,
                "{record:?}"
            );
            assert_eq!(
                result.is_error,
                !matches!(record.status, CallStatus::Succeeded | CallStatus::Answered),
                "{record:?}"
            );
        }
    }

    /// Exactly what succeeded left something behind.
    fn state(&self, outcome: &Outcome, state: &SessionState) {
        let committed = state.get::<Committed>().unwrap();
        let mut committed = committed.0.clone();
        let mut expected: Vec<_> = outcome
            .tool_calls
            .iter()
            .filter(|call| call.status == CallStatus::Succeeded)
            .map(|call| call.call_id.clone())
            .collect();
        let mut succeeded = self.succeeded.clone();
        committed.sort();
        expected.sort();
        succeeded.sort();
        assert_eq!(committed, expected, "{outcome:#?}");
        assert_eq!(committed, succeeded);
    }

    /// The end is what it says.
    fn reason(&self, outcome: &Outcome, now: Moment) {
        let options = &self.plan.options;
        match &outcome.end {
            End::Completed => {
                let last = outcome.session.items().next_back();
                assert!(!matches!(last, Some(Item::FunctionCall(_))));
            }
            End::Cancelled => assert!(self.cancelled),
            End::Waiting(_) => panic!("a waiting run is not over"),
            End::Failed { .. } => {}
            End::Incomplete { reason, .. } => match reason {
                IncompleteReason::MaxTurns => assert_eq!(outcome.rounds, options.max_rounds),
                IncompleteReason::MaxToolCalls => {
                    assert_eq!(
                        Some(self.started.len()),
                        options.max_tool_calls.map(|n| n as usize)
                    );
                }
                IncompleteReason::Budget => {
                    assert!(outcome.usage.total_tokens() > options.max_total_tokens.unwrap());
                }
                IncompleteReason::TimeLimit => assert!(now >= self.plan.deadline.unwrap()),
                _ => {}
            },
            other => panic!("unknown end {other:?}"),
        }
        assert!(outcome.rounds <= options.max_rounds);
        if self.cancelled {
            assert!(matches!(outcome.end, End::Cancelled), "{:?}", outcome.end);
        }
    }
}
