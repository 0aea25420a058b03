//! Everything a run does, as one ordered stream.

use std::sync::Arc;

use haft_catalog::prompt::SectionState;
use haft_core::{
    CallOutput, FinishReason, Item, ItemKind, ModelErrorKind, ToolCall, ToolChoice, ToolName,
    ToolProgress, Usage,
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::loop_report::{LoopAction, LoopKind};
use crate::moment::Moment;
use crate::outcome::{EndSummary, ToolResult};

/// Which run an event belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RunContext {
    /// The run.
    pub run_id: String,
    /// The conversation.
    pub conversation_id: String,
    /// The request that asked for the run, if the host says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The trace that it is part of, if the host says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}

/// One thing that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunEvent {
    /// The run.
    #[serde(flatten)]
    pub context: Arc<RunContext>,
    /// The attempt of the current request, from 1.
    pub attempt: u32,
    /// When, in seconds since the epoch.
    pub timestamp: f64,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A request goes to the model.
    TurnStarted {
        /// Which of the run, from 1.
        turn: u64,
        /// What the model must, may or must not call in it; none where it is offered nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_choice: Option<ToolChoice>,
    },
    /// The model begins to answer.
    AnswerStarted,
    /// The model's answer is whole. What becomes of it follows.
    AnswerFinished {
        /// Why the model stopped.
        finish: FinishReason,
        /// What this request cost, if the provider says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// The model that answered, if it says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The provider's id of the answer, if it gives one.
        #[serde(skip_serializing_if = "Option::is_none")]
        response_id: Option<String>,
    },
    /// The request failed and is sent again after a pause.
    RequestRetried {
        /// What failed.
        error: String,
        /// What kind of failure it was.
        error_kind: ModelErrorKind,
        /// How long until the next attempt, in milliseconds.
        delay_ms: u64,
    },
    /// The model begins an item of its answer.
    ItemStarted {
        /// Its place in the answer.
        index: usize,
        /// Its id, if the provider gives it one.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// What it will be. A call has the id that it keeps.
        item: ItemKind,
    },
    /// A piece of the answer's text.
    TextDelta {
        /// The item's place in the answer.
        index: usize,
        /// The piece.
        text: String,
    },
    /// A piece of a refusal.
    RefusalDelta {
        /// The item's place in the answer.
        index: usize,
        /// The piece.
        text: String,
    },
    /// A piece of what the model thinks.
    ReasoningDelta {
        /// The item's place in the answer.
        index: usize,
        /// The piece.
        text: String,
    },
    /// A piece of a summary of what the model thinks.
    SummaryDelta {
        /// The item's place in the answer.
        index: usize,
        /// Which part of the summary, from 0.
        part: usize,
        /// The piece.
        text: String,
    },
    /// A piece of a call's arguments.
    ArgumentsDelta {
        /// The item's place in the answer.
        index: usize,
        /// The piece.
        text: String,
    },
    /// An event in the provider's own form about an item of one of its own tools.
    ProviderEvent {
        /// The item's place in the answer.
        index: usize,
        /// The event, its `type` included.
        body: Map<String, Value>,
    },
    /// The model has finished an item of its answer. What becomes of it is decided when the whole
    /// answer is there.
    ItemFinished {
        /// Its place in the answer.
        index: usize,
        /// The item.
        item: Item,
    },
    /// An item became part of the conversation.
    ItemAdded {
        /// The item.
        item: Item,
        /// Whether it is only for the model: a call that was left out or not allowed, and its
        /// answer. Clients of an API are not shown these.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        hidden: bool,
    },
    /// An answer that was shown is not used, and why.
    AnswerDiscarded {
        /// Why.
        reason: String,
    },
    /// The answer has the demanded form, but for a Markdown code fence around it: its text is this.
    FenceRemoved {
        /// The text without the fence.
        text: String,
    },
    /// The model asks for calls; nothing of them has run yet.
    ToolCallsRequested {
        /// The calls, in order.
        calls: Vec<ToolCall>,
    },
    /// A call begins to run.
    ToolStarted {
        /// The tool.
        tool_name: String,
        /// The call.
        call_id: String,
    },
    /// A running call says how far it is.
    ToolProgress {
        /// The call.
        call_id: String,
        /// How far.
        #[serde(flatten)]
        progress: ToolProgress,
    },
    /// Somebody is asked about a call.
    ApprovalRequested {
        /// The tool.
        tool_name: String,
        /// The call.
        call_id: String,
        /// The arguments that would run.
        arguments: Value,
        /// Why.
        reason: String,
    },
    /// A call is done with, whatever came of it. Exactly one per call.
    ToolInvoked {
        /// The tool.
        tool_name: String,
        /// The call.
        call_id: String,
        /// Whether it reached what it was called for.
        success: bool,
        /// What kind of failure it was.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_kind: Option<&'static str>,
        /// How long it ran.
        duration_ms: u64,
        /// Whether its arguments were repaired.
        repaired: bool,
        /// Whether calling it picked it.
        auto_picked: bool,
        /// Whether its value is not what its output schema says.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        output_mismatch: bool,
        /// What came of it, before anything is added for the model.
        output: CallOutput,
    },
    /// A prompt was rendered.
    PromptRendered {
        /// Its name, `ns/key`.
        prompt: String,
        /// How each section is shown, in order.
        section_states: Vec<(String, SectionState)>,
        /// The tools that are offered, in order.
        tool_names: Vec<ToolName>,
    },
    /// A search found tools, or nothing. Told before its [`ToolInvoked`](Self::ToolInvoked); what is
    /// new of them is offered from the next request on.
    ToolsFound {
        /// The call of the search.
        call_id: String,
        /// The names of what was found, best first, also of what was loaded before.
        tool_names: Vec<ToolName>,
    },
    /// A call named a deferred tool with valid arguments: the tool is loaded, and the call runs.
    ToolLoaded {
        /// The tool.
        tool_name: ToolName,
        /// The call.
        call_id: String,
    },
    /// Tools were added to the running conversation.
    ToolsInjected {
        /// The names that are new, in order.
        tool_names: Vec<ToolName>,
        /// The section that was read; `search_tools` for what was found, `direct_call` for a deferred tool that
        /// was called by its name.
        section_key: String,
        /// Names that were there already.
        skipped: Vec<ToolName>,
    },
    /// The model was started anew to take new tools.
    DisclosureRestarted {
        /// What was asked for.
        section_keys: Vec<String>,
        /// Why a restart was needed.
        reason: &'static str,
        /// The how manieth restart of the run it is, from 1.
        restart: u32,
    },
    /// Tools were picked: from the next request on they are shown in full.
    ToolsPicked {
        /// The names, in order.
        picked: Vec<ToolName>,
        /// Names that nothing bears.
        unknown: Vec<String>,
        /// Whether calling it picked it.
        auto: bool,
    },
    /// The results of a round, before the next request.
    ToolResults {
        /// One per call, in call order.
        results: Vec<ToolResult>,
    },
    /// A call was left out because the model has its result; it is asked for its answer instead.
    RepeatedCallSuppressed {
        /// The tool.
        tool_name: String,
        /// The call that was left out.
        call_id: String,
        /// How often the model has made this call, this time included.
        count: usize,
    },
    /// The model goes round in circles.
    LoopDetected {
        /// How.
        kind: LoopKind,
        /// How often, for repeated calls.
        count: usize,
        /// What is done about it.
        action: LoopAction,
        /// The call that gave it away.
        call_id: String,
    },
    /// The run ended. The last event, exactly once.
    RunFinished {
        /// How.
        outcome: EndSummary,
        /// How many answers with calls there were.
        rounds: u32,
        /// How many requests there were.
        requests: u64,
        /// What they cost.
        usage: Usage,
    },
}

impl RunEvent {
    pub(crate) fn new(
        context: &Arc<RunContext>,
        attempt: u32,
        at: Moment,
        kind: EventKind,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            attempt,
            timestamp: at.as_seconds(),
            kind,
        }
    }
}
