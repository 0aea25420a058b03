//! The words everyone in haft uses.
//!
//! What comes in: a tool author's description of a tool, and what models and providers write. What
//! goes out: types that cannot say something wrong. A [`ToolDefinition`] is frozen and has a schema
//! or a named opt-out; a [`ToolName`] is legal for every provider; a [`HydrationResult`] always
//! carries its [`Provenance`].
//!
//! The seams are here too, so that the rooms around need not know each other: [`Tool`] and
//! [`ToolObject`] (definition and call), [`Validator`] (arguments against a schema), [`Scorer`]
//! (how well a tool fits a request).
//!
//! This crate must never do I/O, start a task or know a provider.

mod annotations;
mod approval;
mod call;
mod cancel;
mod capabilities;
mod caught;
mod choice;
mod clock;
mod context;
mod conversation;
mod cut;
mod definition;
mod definition_builder;
mod definition_error;
mod definition_json;
mod embedder;
mod feedback;
mod gate;
mod item;
mod item_json;
mod kind;
mod loading;
mod local_ref;
mod model;
mod model_error;
mod model_event;
mod name;
mod output;
mod policy;
mod progress;
mod prose;
mod provenance;
mod provider;
mod reference;
mod refusal;
mod render_cache;
mod repair;
mod schema;
mod scorer;
mod state;
mod store;
mod tool;
mod tool_specs;
mod typed_schema;
mod unsupported;
mod usage;
mod validator;
mod view;

pub use annotations::{Annotations, Defer, Example};
pub use approval::{ApprovalRequest, Approver, Decision, SuspendAlways};
pub use call::{FinishReason, RawArguments, ToolCall};
pub use cancel::Cancel;
pub use capabilities::{Capabilities, ForcedChoice};
pub use caught::{caught, panic_text};
pub use choice::{AllowedMode, AllowedTools, ToolChoice};
pub use clock::{ClockEvent, ClockReading, observe_clock, resume_clock, settled_now, unix_now};
pub use context::{Access, ToolContext, ToolContextBuilder};
pub use conversation::{Conversation, Entry, HistoryError};
pub use cut::cut;
pub use definition::{Fingerprint, NoSchemaMode, ToolDefinition, canonical_json};
pub use definition_builder::{MAX_DESCRIPTION_CHARS, ToolDefinitionBuilder};
pub use definition_error::DefinitionError;
pub use embedder::Embedder;
pub use feedback::{FeedbackMoment, FeedbackProvider, FeedbackTrigger};
pub use gate::{OnRepaired, TrustPolicy, Verdict};
pub use item::{
    CallOutput, ContentPart, FunctionCall, FunctionCallOutput, Item, ItemStatus, Message,
    Reasoning, Role,
};
pub use kind::{CustomKind, ToolKind};
pub use loading::{Loading, TOOL_REFERENCES};
pub use local_ref::resolve_local_ref;
pub use model::{Model, ModelOptions, ModelRequest, ModelStream, OutputFormat, Streaming};
pub use model_error::{ModelError, ModelErrorKind};
pub use model_event::{Assembly, ItemKind, ModelEvent, ModelResponse};
pub use name::{MAX_NAME_BYTES, NameError, Namespace, RESERVED_NAMES, ToolName};
pub use output::{IntoToolOutput, OutputPart, ToolError, ToolOutput};
pub use policy::{FileSystem, Policy, PolicyCall, TrustRules};
pub use progress::{MAX_CHUNK_BYTES, ProgressSink, ToolProgress};
pub use prose::{brief_of, doc_text};
pub use provenance::{
    CallSource, CompiledAt, ErrorCode, HydrationError, HydrationResult, InvalidField, Provenance,
    RepairRecord, Stage, Trust, ValidatorRecord,
};
pub use provider::{
    PROVIDER_TOOL_TYPES, ProviderCall, ProviderForm, ProviderOptions, ProviderTools,
    is_provider_item, open_provider_calls,
};
pub use reference::ToolRef;
pub use render_cache::{RenderCache, RenderKey};
pub use repair::{RepairClass, RepairEvent, RepairKind};
pub use schema::{check_parameters, subschemas, subschemas_mut, value_depth_exceeds};
pub use scorer::{Score, ScoreError, Scorer, Scoring, scorer_fn};
pub use state::{
    Resource, ResourceError, RestoreError, SessionState, SessionStateBuilder, Slice, SliceKind,
    Snapshot, SnapshotMeta, SnapshotPhase, StateError, Transaction, TransactionId,
};
pub use store::{
    Alongside, ClaimedKeys, Cleaned, ListedResponse, Owner, Page, PageQuery, ResponsePage,
    Retention, Store, StoreError, StoredConversation, StoredEvent, StoredItem, StoredResponse,
};
pub use tool::{
    BoxFuture, HydratedTool, InitContext, InstantiateError, InternalTool, OwnersTool, Run, Tool,
    ToolObject, ToolSource, dynamic_tool, function_tool, read_arguments,
};
pub use tool_specs::{ToolSpec, ToolSpecs};
pub use typed_schema::{output_schema_of, schema_of};
pub use unsupported::UnsupportedContent;
pub use usage::Usage;
pub use validator::{SchemaError, ValidationError, Validator, ValidatorFactory};
pub use view::ViewFormat;
