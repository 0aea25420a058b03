//! The seam behind the gateway: whoever has the tools.
//!
//! In production that is the catalogue: tools, and nothing else. The protocol has more (prompts,
//! resources, completion, logging), which a backend may offer by saying so in its [`Features`]; what it
//! does not offer, the gateway does not declare and answers with "method not found".

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::broadcast;

use super::caller::Caller;
use super::context::CallContext;
use super::input::{Input, InputKind, Reply};
use super::outcome::{
    CallOutcome, Completion, ListedPrompt, ListedResource, Listing, PromptOutcome, ReadOutcome,
};
use super::tool::{ListedTool, ToolList};
use crate::log_message::LogLevel;
use crate::pool::ServerStatus;

/// Whoever has the tools.
///
/// Only [`identity`](Self::identity), [`tools`](Self::tools), [`find_tool`](Self::find_tool) and
/// [`call`](Self::call) must be there. A call that is no longer wanted is told so through
/// [`CallContext::cancel`]; five seconds later it is dropped.
pub trait Backend: Send + Sync + 'static {
    /// Who answers.
    fn identity(&self) -> Identity;

    /// What there is besides tools.
    fn features(&self) -> Features {
        Features::default()
    }

    /// All tools that this caller may use, always in the same order, from what is known. It may wait a moment
    /// for servers of which nothing is known yet. The same `Arc` as before, as long as nothing has changed,
    /// saves the gateway work.
    fn tools(
        &self,
        caller: &Caller,
    ) -> impl Future<Output = Result<Arc<ToolList>, BackendError>> + Send;

    /// One of these tools, from what is known now, without waiting.
    fn find_tool(&self, caller: &Caller, name: &str) -> Option<Arc<ListedTool>>;

    /// One of these tools. Unlike [`find_tool`](Self::find_tool) it may wait, but only for the one server whose
    /// tool it would be.
    fn resolve_tool(
        &self,
        caller: &Caller,
        name: &str,
    ) -> impl Future<Output = Result<Arc<ListedTool>, BackendError>> + Send {
        async move {
            if let Some(tool) = self.find_tool(caller, name) {
                return Ok(tool);
            }
            let list = self.tools(caller).await?;
            let found = list.tools.iter().find(|tool| tool.name == name).cloned();
            found.ok_or_else(|| BackendError::UnknownTool(name.to_owned()))
        }
    }

    /// Calls a tool.
    fn call(
        &self,
        request: CallRequest,
        context: CallContext,
    ) -> impl Future<Output = Result<Reply<CallOutcome>, BackendError>> + Send;

    /// How the servers stand whose tools this caller may use, in the order of their tools. Nothing is waited
    /// for and nothing is started.
    fn servers(&self, _caller: &Caller) -> Vec<ServerStatus> {
        Vec::new()
    }

    /// A call was answered without [`call`](Self::call): `unknown_tool` or `invalid_arguments`. For logs and
    /// metrics; `name` is what the client sent.
    fn call_rejected(&self, _caller: &Caller, _name: &str, _reason: &'static str) {}

    /// Hears of changes from now on; none if nothing ever changes.
    fn changes(&self) -> Option<broadcast::Receiver<Change>> {
        None
    }

    /// All prompts.
    fn prompts(
        &self,
        _caller: &Caller,
    ) -> impl Future<Output = Result<Listing<ListedPrompt>, BackendError>> + Send {
        std::future::ready(Err(BackendError::Unsupported))
    }

    /// One prompt, filled in.
    fn prompt(
        &self,
        _request: PromptRequest,
        _context: CallContext,
    ) -> impl Future<Output = Result<Reply<PromptOutcome>, BackendError>> + Send {
        std::future::ready(Err(BackendError::Unsupported))
    }

    /// All resources.
    fn resources(
        &self,
        _caller: &Caller,
    ) -> impl Future<Output = Result<Listing<ListedResource>, BackendError>> + Send {
        std::future::ready(Err(BackendError::Unsupported))
    }

    /// All families of resources.
    fn resource_templates(
        &self,
        _caller: &Caller,
    ) -> impl Future<Output = Result<Listing<ListedResource>, BackendError>> + Send {
        std::future::ready(Err(BackendError::Unsupported))
    }

    /// What a resource holds.
    fn read(
        &self,
        _request: ReadRequest,
        _context: CallContext,
    ) -> impl Future<Output = Result<Reply<ReadOutcome>, BackendError>> + Send {
        std::future::ready(Err(BackendError::Unsupported))
    }

    /// Whether changes of this resource are told ([`Change::Resource`]).
    fn watches(&self, _caller: &Caller, _uri: &str) -> bool {
        false
    }

    /// Subscribes a client to changes of a resource, which are then reported as [`Change::Resource`]. The
    /// subscription ends when what is returned is dropped.
    fn subscribe(
        &self,
        caller: &Caller,
        uri: &str,
    ) -> impl Future<Output = Result<WatchGuard, BackendError>> + Send {
        let guard = if self.watches(caller, uri) {
            Ok(WatchGuard::default())
        } else {
            Err(BackendError::UnknownResource(uri.to_owned()))
        };
        std::future::ready(guard)
    }

    /// A client wants log messages from this level on ([`CallContext::log`], [`logs`](Self::logs)). They are
    /// filtered for each client; this only says what has to be produced.
    fn set_log_level(&self, _caller: &Caller, _level: LogLevel) {}

    /// Log messages that belong to no call, for clients of the legacy era; none if there are none.
    fn logs(&self, _caller: &Caller) -> Option<broadcast::Receiver<BackendLog>> {
        None
    }

    /// Suggestions for what is being typed.
    fn complete(
        &self,
        _request: CompletionRequest,
        _caller: &Caller,
    ) -> impl Future<Output = Result<Completion, BackendError>> + Send {
        std::future::ready(Err(BackendError::Unsupported))
    }
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The program.
    pub name: String,
    /// Its version.
    pub version: String,
    /// For people.
    pub title: Option<String>,
    /// What a model should know about these tools as a whole.
    pub instructions: Option<String>,
}

impl Identity {
    /// A program and its version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            title: None,
            instructions: None,
        }
    }
}

/// What a backend has besides tools. Nothing, unless it says so.
// Each is a capability of the protocol, declared or not.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// Prompts.
    pub prompts: bool,
    /// Resources and their templates.
    pub resources: bool,
    /// Completion of arguments.
    pub completion: bool,
    /// Log messages of running calls ([`CallContext::log`]).
    pub logging: bool,
}

/// Keeps a subscription to a resource until it is dropped.
#[derive(Default)]
pub struct WatchGuard(Option<Box<dyn Any + Send + Sync>>);

impl WatchGuard {
    /// A guard that drops this value when it is dropped.
    pub fn new(kept: impl Any + Send + Sync) -> Self {
        Self(Some(Box::new(kept)))
    }
}

impl fmt::Debug for WatchGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WatchGuard")
            .field(&self.0.is_some())
            .finish()
    }
}

/// A log message that belongs to no call.
#[derive(Debug, Clone, PartialEq)]
pub struct BackendLog {
    /// Its severity.
    pub level: LogLevel,
    /// Who wrote it.
    pub logger: Option<String>,
    /// The message.
    pub data: Value,
}

/// Something is different from now on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// What the resource at this address holds.
    Resource(String),
}

/// A call.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// The tool.
    pub tool: Arc<ListedTool>,
    /// What it is called with. Checked against its schema if the gateway was given a validator.
    pub arguments: Map<String, Value>,
    /// What earlier rounds brought.
    pub input: Input,
}

/// A prompt that is wanted.
#[derive(Debug, Clone)]
pub struct PromptRequest {
    /// Its name.
    pub name: String,
    /// What it is to be filled in with.
    pub arguments: Map<String, Value>,
    /// What earlier rounds brought.
    pub input: Input,
}

/// A resource that is wanted.
#[derive(Debug, Clone)]
pub struct ReadRequest {
    /// Its address.
    pub uri: String,
    /// What earlier rounds brought.
    pub input: Input,
}

/// A text that is being typed.
#[derive(Debug, Clone)]
pub struct CompletionRequest {
    /// For which prompt, or for which template of addresses.
    pub of: CompletionOf,
    /// For which argument.
    pub argument: String,
    /// What is there so far.
    pub value: String,
    /// Arguments that are decided already.
    pub known: BTreeMap<String, String>,
}

/// What an argument belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionOf {
    /// A prompt with this name.
    Prompt(String),
    /// A family of resources with this template.
    Resource(String),
}

/// Why a backend has no answer. What a tool itself could not do is no such error but a
/// [`CallOutcome::error`], which the model reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// There is no such tool.
    #[error("unknown tool `{0}`")]
    UnknownTool(String),
    /// The server whose tool it would be cannot be used now.
    #[error("MCP server `{server}` is unavailable: {reason}")]
    ServerUnavailable {
        /// Its label.
        server: String,
        /// The reason, for any caller.
        reason: String,
    },
    /// There is no such prompt.
    #[error("unknown prompt `{0}`")]
    UnknownPrompt(String),
    /// There is no such resource.
    #[error("unknown resource `{0}`")]
    UnknownResource(String),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The client would have to be able to answer such questions, and did not say that it is.
    #[error("the client does not offer {0}")]
    MissingCapability(InputKind),
    /// The server behind the backend refused the request with an error of the protocol.
    #[error("{message}")]
    Refused {
        /// The code of the error.
        code: i32,
        /// Its text.
        message: String,
    },
    /// The backend has nothing of the kind.
    #[error("not supported here")]
    Unsupported,
    /// It was told to stop.
    #[error("cancelled")]
    Cancelled,
    /// It could not, for no fault of the caller's. The text is sent to the client.
    #[error("{0}")]
    Failed(String),
}
