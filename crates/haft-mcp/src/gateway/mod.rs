//! haft's tools as an MCP server: one in front of many.
//!
//! What comes in: a [`Backend`] that has tools, and clients of either era of the protocol, over standard
//! input and output or over HTTP. What goes out: the tools under their exposed names, or three stable
//! tools that find and call the others ([`Mode`]), with results passed on unchanged. A call is checked,
//! reports its progress, can be cancelled, and can ask the client, whatever the eras of the two ends.
//!
//! Nothing of the protocol library is in these types. The gateway must never list other tools because
//! somebody searched, never let one caller go on with what another started, and never wait without end.

mod access;
mod backend;
mod caller;
mod context;
mod convert;
mod facade;
#[expect(
    clippy::module_inception,
    reason = "the type that the room is named for"
)]
mod gateway;
mod handler;
mod http;
mod incoming;
mod input;
mod job;
mod line;
mod mode;
mod outcome;
mod overview;
mod pages;
mod parked;
mod pattern;
mod rounds;
mod search;
mod state;
mod stdio;
mod subset;
mod target;
mod tool;
mod validators;
mod view;
mod watch;

pub use access::{Access, AccessRule, CallerFilter};
pub use backend::{
    Backend, BackendError, BackendLog, CallRequest, Change, CompletionOf, CompletionRequest,
    Features, Identity, PromptRequest, ReadRequest, WatchGuard,
};
pub use caller::Caller;
pub use context::{AskError, CallContext, Client, Confirmation, LogLevel};
pub use gateway::{Gateway, GatewayBuilder, GatewayError};
pub use http::HttpOptions;
pub use input::{Answer, AnswerAction, Input, InputKind, InputNeeded, InputRequest, Reply};
pub use mode::{Mode, Threshold};
pub use outcome::{
    CallOutcome, Completion, ListedPrompt, ListedResource, Listing, PromptArgument, PromptMessage,
    PromptOutcome, ReadOutcome,
};
pub use search::{LexicalSearch, Search};
pub use stdio::ServeError;
pub use subset::Subset;
pub use tool::{CacheHints, ListedTool, OwnValidator, ToolList};
