//! What the machine is told, and what it asks for.

use std::sync::Arc;
use std::time::Duration;

use haft_catalog::prompt::Overrides;
use haft_core::{
    Access, ApprovalRequest, Decision, HydratedTool, ModelError, ModelEvent, ModelRequest,
    ToolError, ToolOutput, ToolProgress, Transaction,
};

use crate::event::RunEvent;
use crate::executor::{ExecutorCall, ToolExecutor};

/// What the machine is told.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input {
    /// A piece of the model's answer.
    Model {
        /// To which request.
        request: u64,
        /// The piece.
        event: ModelEvent,
    },
    /// The request failed, or its answer broke off.
    ModelFailed {
        /// Which request.
        request: u64,
        /// How.
        error: ModelError,
    },
    /// A call is over.
    Finished {
        /// Its place in the turn.
        call: usize,
        /// How it went.
        executed: Executed,
    },
    /// Somebody decided about a call.
    Answered {
        /// Its place in the turn.
        call: usize,
        /// The word.
        decision: Decision,
    },
    /// A long result was put away, or could not be.
    Spilled {
        /// The call's place in the turn.
        call: usize,
        /// Whether it can be read again.
        kept: bool,
    },
    /// A running call says how far it is.
    Progress {
        /// The call.
        call_id: String,
        /// How far.
        progress: ToolProgress,
    },
    /// Time has passed.
    Tick,
    /// Somebody wants the run to stop.
    Cancel,
}

/// What the machine asks for, to be done in order.
#[derive(Debug)]
#[non_exhaustive]
pub enum Effect {
    /// Send a request to the model and report every piece of the answer.
    Send {
        /// Its number.
        request: u64,
        /// The request.
        body: Box<ModelRequest>,
    },
    /// Forget the request that is under way.
    Abandon,
    /// Run a call and report its end.
    Run(Ticket),
    /// Stop every running call. Nothing needs to be reported of them.
    StopCalls,
    /// Ask somebody about a call.
    Ask {
        /// Its place in the turn.
        call: usize,
        /// The question.
        question: Box<ApprovalRequest>,
        /// How long to wait for the answer.
        timeout: Duration,
    },
    /// Put a long result away.
    Spill {
        /// The call's place in the turn.
        call: usize,
        /// The call.
        call_id: String,
        /// The whole result.
        text: String,
    },
    /// The session is at a turn boundary and may be stored.
    Checkpoint,
    /// The model cannot take new tools in a running conversation: it is started anew, with the prompt and
    /// the tools of the next request and the whole history.
    Restart(VisibilityExpansionRequired),
    /// Calls are about to begin, or one of several has ended: where the run is journaled, the session
    /// is to be stored before anything that follows is done.
    Journal,
    /// Tell those who watch.
    Emit(RunEvent),
}

/// Why a model has to be started anew. A signal for whoever drives the machine, never an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Section expansion requires restart")]
pub struct VisibilityExpansionRequired {
    /// What was opened.
    pub requested_overrides: Overrides,
    /// The sections that were read, in order; `pick_tools` and `search_tools` where those were called.
    pub section_keys: Vec<String>,
    /// Why it is needed.
    pub reason: &'static str,
}

/// A call to run.
#[derive(Debug)]
pub struct Ticket {
    /// Its place in the turn.
    pub call: usize,
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool_name: String,
    /// Who runs it.
    pub runner: Runner,
    /// What it may do.
    pub access: Access,
    /// How long it may take.
    pub timeout: Duration,
    /// Its view of the session's state.
    pub transaction: Transaction,
}

/// Who runs a call.
pub enum Runner {
    /// The tool itself.
    Tool(Box<dyn HydratedTool>),
    /// An executor of the run.
    Executor(Arc<dyn ToolExecutor>, ExecutorCall),
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tool(tool) => tool.fmt(f),
            Self::Executor(_, call) => f.debug_tuple("Executor").field(call).finish(),
        }
    }
}

/// How a call went.
#[derive(Debug)]
pub enum Executed {
    /// It came to its end.
    Returned(Result<ToolOutput, ToolError>),
    /// It panicked, with these words.
    Panicked(String),
    /// Its time ran out.
    TimedOut,
}
