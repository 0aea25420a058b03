//! The handle between a language model and its tools.
//!
//! A tool is a documented function. Its doc comments and its types become the definition that the
//! model reads; its calls arrive as JSON and run with typed arguments.
//!
//! ```
//! # #[cfg(feature = "models")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! /// The weather in a city.
//! #[haft::tool(read_only)]
//! fn weather(city: String) -> String {
//!     format!("4 °C and snow in {city}")
//! }
//!
//! let outcome = haft::run(haft::models::OfflineModel::new())
//!     .tools(haft::tools![weather])
//!     .user("What is the weather in Oslo?")
//!     .await?
//!     .into_completed()?;
//! assert!(outcome.text.contains("snow in Oslo"));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "models"))]
//! # fn main() {}
//! ```
//!
//! A single call can be taken through the same checks by hand:
//!
//! ```
//! use haft::{Hydrate, ToolContext};
//!
//! /// Add two numbers.
//! #[haft::tool(read_only)]
//! fn add(
//!     /// The first number
//!     a: i64,
//!     /// The second number
//!     b: i64,
//! ) -> i64 {
//!     a + b
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), haft::ToolError> {
//! let call = add::hydrate(r#"{"a": 2, "b": 40}"#).tool.unwrap();
//! let output = call.run(&ToolContext::default()).await?;
//! assert_eq!(output.text_for_model(), "42");
//!
//! let refused = add::hydrate(r#"{"a": 2}"#);
//! assert_eq!(refused.text_for_model().unwrap(), "Tool 'add': invalid arguments: missing field 'b'");
//! # Ok(())
//! # }
//! ```
//!
//! - [`tool`] makes tools of functions and structs, [`dynamic_tool`] of definitions and closures.
//! - [`ToolDefinition`] is what a tool says about itself: frozen, with a schema, the same object for
//!   everybody. A tool without a schema is refused unless it opts out by name.
//! - [`ToolContext`] carries the host's state to a call; the model never sees it.
//! - [`tools!`] lists tools for a [`Catalog`]. Nothing registers itself.
//! - A [`Binding`] says what one run may see and call; a [`Hydrator`] makes its calls safe, one
//!   [`HydrationResult`] each; [`TrustPolicy`] asks whether a call may run unasked. The example
//!   `whole_way` walks all of it.
//!
//! This crate only gathers what the others make; it must never hold logic of its own, beside the
//! little that the generated code calls.

mod returned;

pub use haft_macros::tool;

// Tools: definition and call.
pub use haft_core::{
    BoxFuture, HydratedTool, InitContext, InstantiateError, InternalTool, Run, Tool, ToolObject,
    ToolSource, dynamic_tool, function_tool, tools,
};

// What a tool says about itself.
pub use haft_core::{
    Annotations, CustomKind, Defer, DefinitionError, Example, Fingerprint, MAX_DESCRIPTION_CHARS,
    MAX_NAME_BYTES, NameError, Namespace, NoSchemaMode, RESERVED_NAMES, ToolDefinition,
    ToolDefinitionBuilder, ToolKind, ToolName, ViewFormat, brief_of, canonical_json, doc_text,
    output_schema_of, schema_of,
};

// One call: what comes in, what it may know, what goes out.
pub use haft_core::{
    Access, FinishReason, IntoToolOutput, OutputPart, RawArguments, ToolCall, ToolContext,
    ToolContextBuilder, ToolError, ToolOutput,
};

// Which tools a model may choose.
pub use haft_core::{AllowedMode, AllowedTools, ToolChoice};

// How arguments became safe, and the record of it.
pub use haft_core::{
    CallSource, CompiledAt, ErrorCode, HydrationError, HydrationResult, InvalidField, Provenance,
    RepairClass, RepairEvent, RepairKind, RepairRecord, SchemaError, Stage, Trust, ValidationError,
    Validator, ValidatorFactory, ValidatorRecord,
};

// Hydration: calls in, one checked result per call out.
pub use haft_hydrate::{
    Admission, AuditedRepairer, CallIds, CheckedArguments, Compile, Contract,
    FormatCheckingFactory, Hydrate, Hydrator, JsonLinesSink, JsonSchemaFactory, LogSink, MAX_BYTES,
    MAX_DEPTH, PreparedTool, ProvenanceSink, RepairRefused, RepairRequest, Repaired, Repairer,
    Root, ToolTable, ValidatorCache, check_arguments, preview,
};

// The gate: policies, and whoever may say yes.
pub use haft_core::{
    ApprovalRequest, Approver, Decision, FileSystem, OnRepaired, Policy, PolicyCall, SuspendAlways,
    TrustPolicy, TrustRules, Verdict,
};

// Conversations, in the form of the Open Responses API.
pub use haft_core::{
    CallOutput, ContentPart, Conversation, Entry, FunctionCall, FunctionCallOutput, HistoryError,
    Item, ItemKind, ItemStatus, Message, Reasoning, Role,
};

// The seam to models.
pub use haft_core::{
    Assembly, Capabilities, ForcedChoice, Model, ModelError, ModelErrorKind, ModelEvent,
    ModelOptions, ModelRequest, ModelResponse, ModelStream, OutputFormat, RenderCache, RenderKey,
    Streaming, ToolSpec, ToolSpecs, Usage,
};

// What a running call may use: progress, a signal to stop, session state in transactions.
pub use haft_core::{
    Cancel, MAX_CHUNK_BYTES, ProgressSink, Resource, ResourceError, RestoreError, SessionState,
    SessionStateBuilder, Slice, SliceKind, Snapshot as StateSnapshot, SnapshotMeta, SnapshotPhase,
    StateError, ToolProgress, Transaction, TransactionId,
};

// The loop. `haft::run(model)` starts building one; its builder is `RunBuilder`, because `Run` is
// what struct tools implement.
#[doc(inline)]
pub use haft_engine as engine;
pub use haft_engine::Run as RunBuilder;
pub use haft_engine::{
    Backoff, CallRecord, CallStatus, Counters, End, EndSummary, EventKind, ExecutorCall,
    FailedAttempt, FailedReason, Feedback, FeedbackMemory, FeedbackMoment, FeedbackProvider,
    FeedbackTrigger, FilesSeen, HostError, IncompleteReason, LoopAction, LoopDetection,
    LoopDetector, LoopKind, LoopOptions, LoopReport, Nudge, Outcome, PendingCall, ReadBeforeWrite,
    ReadSectionResult, Reminder, ResumeError, RetryPolicy, RunContext, RunError, RunEvent,
    RunPhase, RunStream, SequentialDependency, Session, SpillStore, SucceededTools, ToolCallReply,
    ToolExecutor, ToolFinder, ToolResult, VisibilityChange, VisibilityExpansionRequired, Waiting,
    execute, execute_bound, execute_in, run, tool_call,
};

/// Language models: one adapter per wire protocol, and the offline one.
#[cfg(feature = "models")]
#[doc(inline)]
pub use haft_models as models;

/// The scripted model, in process and as a server on loopback: for tests of your own.
#[cfg(feature = "testing")]
#[doc(inline)]
pub use haft_models::testing;

/// MCP servers: their tools in a [`Catalog`], and a gateway that is one.
#[cfg(feature = "mcp")]
#[doc(inline)]
pub use haft_mcp as mcp;

/// Tools for a working directory.
#[cfg(feature = "builtin")]
#[doc(inline)]
pub use haft_builtin as builtin;

// The catalogue, and who sees what of it.
pub use haft_catalog::{
    Appended, AttachError, BindError, Binding, BindingBuilder, BriefSchema, CallRefused, Catalog,
    CatalogBuilder, Diagnostic, FilterOptions, KeywordIndex, KeywordScorer, LexicalScorer, Origin,
    PickProvenance, PickResult, Progress, RegisterError, RegisterReport, Registration,
    RejectedTools, Rejection, Snapshot, filter_tools, rank,
};

/// Prompts as trees of sections, shown in full or as summaries that a model can read.
#[doc(inline)]
pub use haft_catalog::prompt;
/// Search: the few tools that a step needs, among thousands.
#[doc(inline)]
pub use haft_catalog::search;
pub use haft_core::{Embedder, Score, ScoreError, Scorer, Scoring, ToolRef, scorer_fn};

pub use serde_json::{Value, json};

/// What the code that [`tool`] writes refers to. Not for people: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::returned::{CustomOutput, NoError, NoErrorSchema, Returned, SerializedOutput};
    pub use crate::returned::{NoArguments, parameters_of};
    pub use haft_core::output_schema_of;
    pub use {schemars, serde, serde_json};
}

/// The examples in the documentation of the attribute, tested here because they need this crate.
#[cfg(doctest)]
#[doc = include_str!("../../haft-macros/docs/tool.md")]
struct ToolAttribute;

/// The code that a new user sees first.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
