//! What outlives a run: the conversation, and how far an unfinished run has come.

use std::path::{Path, PathBuf};

use haft_core::{
    CallOutput, Conversation, FunctionCall, FunctionCallOutput, HistoryError, Item, ToolName, Usage,
};
use haft_hydrate::CallIds;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::detect::LoopDetector;
use crate::disclosure::FrozenPrompt;
use crate::machine::ResumeError;
use crate::outcome::{CallRecord, CallStatus, Counters};

/// A conversation that can be put away and taken up again, in this process or another.
///
/// It serialises at every turn boundary; what is read back continues as the original would have.
///
/// ```
/// use haft_core::Item;
/// use haft_engine::Session;
///
/// let session = Session::from(vec![Item::user("hi"), Item::assistant("hello")]);
/// let stored = serde_json::to_string(&session)?;
/// assert_eq!(serde_json::from_str::<Session>(&stored)?, session);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// The form of this record, for those that come later.
    pub(crate) version: Version,
    /// Names the conversation in events; given when its first run starts.
    pub(crate) id: String,
    pub(crate) conversation: Conversation,
    pub(crate) call_ids: CallIds,
    /// The slices of session state, by name.
    pub(crate) state: Value,
    /// How far the current run has come; there is one while it is unfinished.
    pub(crate) run: Option<Progress>,
}

/// The one form of the record so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Version {
    #[default]
    #[serde(rename = "1")]
    One,
}

/// How far a run has come.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Progress {
    pub(crate) run_id: String,
    pub(crate) rounds: u32,
    pub(crate) calls_executed: u32,
    pub(crate) usage: Usage,
    pub(crate) counters: Counters,
    /// Whether a tool ran: from then on a forced choice is relaxed.
    pub(crate) tool_ran: bool,
    /// Rounds in a row with nothing but calls that `allowed_tools` forbids.
    pub(crate) forbidden_rounds: u32,
    /// Answers in a row that broke `tool_choice`.
    pub(crate) choice_broken: u32,
    /// Answers that did not have the demanded form.
    pub(crate) invalid_outputs: u32,
    /// The tools are withdrawn, because of this; the next answer is the last.
    pub(crate) last_turn: Option<LastTurn>,
    /// Why a loop ends the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) loop_message: Option<String>,
    /// Answers in a row that only repeated calls.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) nudges: u32,
    /// Whether the next request asks for an answer instead of a repeated call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_nudged: bool,
    pub(crate) detector: LoopDetector,
    pub(crate) records: Vec<CallRecord>,
    /// The calls of the last answer, while some of them are open.
    pub(crate) open: Vec<OpenCall>,
    /// Calls of it were left out because the call limit was reached.
    pub(crate) call_limit_hit: bool,
    /// What is said behind the outputs of these calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) queued: Vec<Item>,
    /// The prompt that the run works under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<FrozenPrompt>,
    /// The tools that it was shown since then, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) disclosed: Vec<ToolName>,
    /// How often it was started anew.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) restarts: u32,
    /// Where long results of the run are kept.
    pub(crate) spill_directory: Option<PathBuf>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde's skip_serializing_if asks for"
)]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Why an answer is the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LastTurn {
    /// The round limit.
    Rounds,
    /// The call limit.
    ToolCalls,
    /// The model kept calling tools that it may not call.
    ForbiddenCalls,
    /// The model kept repeating itself.
    Loop,
}

/// A call of a turn that is not finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenCall {
    pub(crate) item: FunctionCall,
    pub(crate) warning: Option<String>,
    /// Its place in the records.
    pub(crate) record: usize,
    /// Not for those who only see what a client may see.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) hidden: bool,
    pub(crate) state: OpenState,
}

/// How far an open call has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OpenState {
    /// Its output is in the conversation.
    Answered,
    /// The caller executes it.
    Pending,
    /// Somebody must allow it, because of this.
    Suspended { reason: String },
    /// It was held back behind one that waits.
    Held,
    /// It was about to run, or ran, when this was written down.
    Begun {
        /// Whether somebody had allowed it.
        approved: bool,
    },
    /// There is a result that the conversation does not have yet.
    Settled {
        status: CallStatus,
        output: CallOutput,
        is_error: bool,
    },
}

impl Session {
    /// A conversation that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// The conversation's id; empty until its first run.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The conversation so far.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// The items so far.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = &Item> + ExactSizeIterator {
        self.conversation.items()
    }

    /// This session without its first items, for a host that has those already.
    ///
    /// ```
    /// use haft_core::Item;
    /// use haft_engine::Session;
    ///
    /// let history = vec![Item::user("hi"), Item::assistant("hello")];
    /// let mut items = history.clone();
    /// items.push(Item::user("and now?"));
    /// let session = Session::from(items);
    /// let stored = session.without_first(2);
    /// assert_eq!(stored.items().len(), 1);
    /// assert_eq!(stored.behind(&history.into()), session);
    /// ```
    #[must_use]
    pub fn without_first(&self, count: usize) -> Self {
        Self {
            conversation: self.items().skip(count).cloned().collect(),
            ..self.clone()
        }
    }

    /// This session behind the items of a conversation: the way back from
    /// [`without_first`](Self::without_first).
    #[must_use]
    pub fn behind(mut self, history: &Conversation) -> Self {
        let mut conversation = history.clone();
        conversation.extend(self.items().cloned());
        self.conversation = conversation;
        self
    }

    /// Adds an item. A waiting run's answers come first: then this would be the wrong place.
    pub(crate) fn push(&mut self, item: Item) {
        self.conversation.push(item);
    }

    /// Whether a run is unfinished: it waits for outputs or approvals, or was put away in between.
    pub fn is_unfinished(&self) -> bool {
        self.run.is_some()
    }

    /// Where the files of long results are that an unfinished run may read again.
    pub fn spill_directory(&self) -> Option<&Path> {
        self.run.as_ref()?.spill_directory.as_deref()
    }

    /// The ids of the calls that wait for an output of the caller.
    pub fn pending_calls(&self) -> impl Iterator<Item = &str> {
        self.open_calls(|state| *state == OpenState::Pending)
    }

    /// The ids of the calls that wait for somebody's word.
    pub fn suspended_calls(&self) -> impl Iterator<Item = &str> {
        self.open_calls(|state| matches!(state, OpenState::Suspended { .. }))
    }

    fn open_calls(&self, which: impl Fn(&OpenState) -> bool) -> impl Iterator<Item = &str> {
        self.run
            .iter()
            .flat_map(|run| &run.open)
            .filter(move |call| which(&call.state))
            .map(|call| call.item.call_id.as_str())
    }

    /// Checks calls against outputs, by id. An unfinished run's open calls may lack theirs.
    pub(crate) fn verify(&self) -> Result<(), HistoryError> {
        match &self.run {
            None => self.conversation.verify(),
            Some(_) => match self.conversation.verify() {
                Err(HistoryError::MissingOutput { .. }) | Ok(()) => Ok(()),
                Err(other) => Err(other),
            },
        }
    }

    /// The calls without output that bear these ids, in the order of the conversation. Every other call
    /// must have its output.
    pub(crate) fn calls_without_output(
        &self,
        call_ids: &[String],
    ) -> Result<Vec<FunctionCall>, ResumeError> {
        let mut open = Vec::new();
        let mut answered = self.conversation.clone();
        for item in self.items() {
            if let Item::FunctionCall(call) = item
                && call_ids.contains(&call.call_id)
            {
                open.push(call.clone());
                let output = FunctionCallOutput::new(call.call_id.clone(), "");
                answered.push(Item::FunctionCallOutput(output));
            }
        }
        let is_open = |call_id: &&String| open.iter().any(|call| call.call_id == **call_id);
        if let Some(call_id) = call_ids.iter().find(|call_id| !is_open(call_id)) {
            let call_id = call_id.clone();
            return Err(ResumeError::UnknownCall { call_id });
        }
        match answered.verify() {
            Ok(()) => Ok(open),
            Err(HistoryError::DuplicateOutput { call_id }) => {
                Err(ResumeError::DuplicateAnswer { call_id })
            }
            Err(HistoryError::MissingOutput { call_id }) => {
                Err(ResumeError::MissingOutput { call_id })
            }
            Err(error) => Err(ResumeError::History(error)),
        }
    }

    /// Makes new call ids differ from those of the history.
    pub(crate) fn reserve_call_ids(&mut self) {
        for item in self.conversation.items() {
            if let Item::FunctionCall(call) = item {
                self.call_ids.reserve(&call.call_id);
            }
        }
    }
}

impl From<Conversation> for Session {
    fn from(conversation: Conversation) -> Self {
        Self {
            conversation,
            ..Self::default()
        }
    }
}

impl From<Vec<Item>> for Session {
    fn from(items: Vec<Item>) -> Self {
        Conversation::from(items).into()
    }
}
