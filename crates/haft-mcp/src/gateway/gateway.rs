//! The gateway itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use haft_core::ValidatorFactory;
use tokio_util::sync::CancellationToken;

use super::backend::{Backend, BackendError};
use super::caller::Caller;
use super::facade;
use super::mode::Mode;
use super::pages::Pages;
use super::parked::Parked;
use super::search::{LexicalSearch, Search};
use super::state::{Sealer, random};
use super::subset::Subset;
use super::tool::ListedTool;
use super::validators::Validators;
use super::view::{View, Views};
use crate::pool::ServerStatus;

/// One MCP server in front of a [`Backend`]. Clones share everything.
///
/// ```
/// use std::sync::Arc;
/// use haft_mcp::gateway::{
///     Backend, BackendError, CallContext, CallOutcome, CallRequest, Caller, Gateway, Identity,
///     ListedTool, Mode, Reply, ToolList,
/// };
///
/// /// Has one tool, which says what it is told.
/// struct Parrot(Arc<ListedTool>);
///
/// impl Backend for Parrot {
///     fn identity(&self) -> Identity {
///         Identity::new("parrot", "1.0.0")
///     }
///
///     async fn tools(&self, _: &Caller) -> Result<Arc<ToolList>, BackendError> {
///         Ok(Arc::new(ToolList { tools: vec![self.0.clone()], ..ToolList::default() }))
///     }
///
///     fn find_tool(&self, _: &Caller, name: &str) -> Option<Arc<ListedTool>> {
///         (name == self.0.name).then(|| self.0.clone())
///     }
///
///     async fn call(
///         &self,
///         request: CallRequest,
///         _: CallContext,
///     ) -> Result<Reply<CallOutcome>, BackendError> {
///         let text = request.arguments["text"].as_str().unwrap_or_default();
///         Ok(Reply::Complete(CallOutcome::text(text)))
///     }
/// }
///
/// let schema = serde_json::json!({"type": "object", "properties": {"text": {"type": "string"}}});
/// let schema = schema.as_object().cloned().unwrap_or_default();
/// let parrot = Parrot(Arc::new(ListedTool::new("say", schema)));
/// let gateway = Gateway::builder(parrot).mode(Mode::Passthrough).build()?;
/// # Ok::<(), haft_mcp::gateway::GatewayError>(())
/// ```
pub struct Gateway<B> {
    pub(super) core: Arc<Core<B>>,
    pub(super) narrowed: Option<Narrowed>,
}

/// What all clones share.
pub(super) struct Core<B> {
    pub(super) backend: Arc<B>,
    pub(super) mode: Mode,
    pub(super) search: Arc<dyn Search>,
    pub(super) validators: Option<Validators>,
    pub(super) sealer: Sealer,
    pub(super) parked: Arc<Parked>,
    pub(super) pages: Pages,
    pub(super) views: Views,
    pub(super) subsets: BTreeMap<String, Arc<Subset>>,
    pub(super) closing: CancellationToken,
}

/// The part of the catalogue that is seen.
#[derive(Debug, Clone)]
pub(super) struct Narrowed {
    pub(super) name: String,
    subset: Arc<Subset>,
}

impl<B: Backend> Gateway<B> {
    /// A gateway to this backend.
    pub fn builder(backend: B) -> GatewayBuilder<B> {
        GatewayBuilder {
            backend,
            mode: Mode::default(),
            search: Arc::new(LexicalSearch::default()),
            validators: None,
            state_key: None,
            page_size: 500,
            subsets: BTreeMap::new(),
        }
    }

    /// What is behind it.
    pub fn backend(&self) -> &B {
        &self.core.backend
    }

    /// The same gateway, showing only the subset of this name.
    pub fn narrowed(&self, name: &str) -> Result<Self, GatewayError> {
        let subsets = &self.core.subsets;
        let Some(subset) = subsets.get(name) else {
            let known: Vec<String> = subsets.keys().map(|name| format!("`{name}`")).collect();
            return Err(GatewayError::UnknownSubset {
                name: name.to_owned(),
                known: if known.is_empty() {
                    "none".into()
                } else {
                    known.join(", ")
                },
            });
        };
        let narrowed = Narrowed {
            name: name.to_owned(),
            subset: subset.clone(),
        };
        Ok(Self {
            core: self.core.clone(),
            narrowed: Some(narrowed),
        })
    }

    /// Ends everything that is under way: streams, sessions, calls that wait for input. For good.
    pub fn close(&self) {
        self.core.closing.cancel();
        self.core.parked.clear();
    }

    /// The tools that a caller sees here, whatever the mode.
    pub(super) async fn visible(&self, caller: &Caller) -> Result<Arc<View>, BackendError> {
        let core = &self.core;
        let list = core.backend.tools(caller).await?;
        let subset = self.narrowed.as_ref().map(|it| it.name.as_str());
        let view = core
            .views
            .of(&list, subset, |tool| self.shows(tool), core.mode);
        Ok(view)
    }

    /// Whether a caller sees the facade.
    pub(super) async fn has_facade(&self, caller: &Caller) -> Result<bool, BackendError> {
        match self.core.mode {
            Mode::Facade => Ok(true),
            Mode::Passthrough => Ok(false),
            Mode::Auto(_) => Ok(self.visible(caller).await?.is_hidden),
        }
    }

    /// What is listed of these tools.
    pub(super) fn listed(&self, caller: &Caller, view: &View) -> Vec<Arc<ListedTool>> {
        if !view.is_hidden {
            return view.tools.clone();
        }
        let always = view.tools.iter().filter(|tool| tool.always_listed);
        // The facade's own names are taken.
        let always = always.filter(|tool| facade::find(&tool.name).is_none());
        let own = facade::tools(&self.servers(caller));
        own.into_iter().chain(always.cloned()).collect()
    }

    /// How the servers stand of which this caller can see tools here.
    pub(super) fn servers(&self, caller: &Caller) -> Vec<ServerStatus> {
        let mut servers = self.core.backend.servers(caller);
        if let Some(narrowed) = &self.narrowed {
            servers.retain(|it| narrowed.subset.may_contain_server(&it.label));
            for server in &mut servers {
                if !narrowed.subset.contains_all_of(&server.label) {
                    // Which tools there are besides those of the subset is not the client's to know.
                    (server.tools, server.samples, server.held) = (None, Vec::new(), Vec::new());
                }
            }
        }
        servers
    }

    /// The tool of this name; only the server is waited for whose tool it would be.
    pub(super) async fn resolve(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<Arc<ListedTool>, BackendError> {
        let tool = self.core.backend.resolve_tool(caller, name).await?;
        if self.shows(&tool) {
            return Ok(tool);
        }
        Err(BackendError::UnknownTool(name.to_owned()))
    }

    pub(super) fn find(&self, caller: &Caller, name: &str) -> Option<Arc<ListedTool>> {
        let tool = self.core.backend.find_tool(caller, name)?;
        self.shows(&tool).then_some(tool)
    }

    fn shows(&self, tool: &ListedTool) -> bool {
        let narrowed = self.narrowed.as_ref();
        narrowed.is_none_or(|narrowed| narrowed.subset.contains(tool))
    }
}

impl<B> Clone for Gateway<B> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
            narrowed: self.narrowed.clone(),
        }
    }
}

impl<B> fmt::Debug for Gateway<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("mode", &self.core.mode)
            .field("narrowed", &self.narrowed)
            .finish_non_exhaustive()
    }
}

/// A gateway in the making.
pub struct GatewayBuilder<B> {
    backend: B,
    mode: Mode,
    search: Arc<dyn Search>,
    validators: Option<Validators>,
    state_key: Option<[u8; 32]>,
    page_size: usize,
    subsets: BTreeMap<String, Arc<Subset>>,
}

impl<B: Backend> GatewayBuilder<B> {
    /// What clients see. Without a word: everything, as long as it is little.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// How `search_tools` finds. Without a word: [`LexicalSearch`].
    #[must_use]
    pub fn search(mut self, search: impl Search) -> Self {
        self.search = Arc::new(search);
        self
    }

    /// Checks arguments against the tools' schemas before the backend hears of a call. Without a word
    /// that is left to the backend.
    #[must_use]
    pub fn validator(mut self, factory: Arc<dyn ValidatorFactory>) -> Self {
        self.validators = Some(Validators::new(factory));
        self
    }

    /// A part of the catalogue under a name, for [`Gateway::narrowed`].
    #[must_use]
    pub fn subset(mut self, name: impl Into<String>, subset: Subset) -> Self {
        self.subsets.insert(name.into(), Arc::new(subset));
        self
    }

    /// The key by which the states that clients carry are sealed. Several gateways behind one address
    /// need the same one. Without a word it is random.
    #[must_use]
    pub fn state_key(mut self, key: [u8; 32]) -> Self {
        self.state_key = Some(key);
        self
    }

    /// How many items a page of a list has: 500 without a word.
    #[must_use]
    pub fn page_size(mut self, items: usize) -> Self {
        self.page_size = items.max(1);
        self
    }

    /// The gateway.
    pub fn build(self) -> Result<Gateway<B>, GatewayError> {
        let key = self.state_key.or_else(random);
        let core = Core {
            backend: Arc::new(self.backend),
            mode: self.mode,
            search: self.search,
            validators: self.validators,
            sealer: Sealer::new(&key.ok_or(GatewayError::NoRandomness)?),
            parked: Arc::default(),
            pages: Pages::new(self.page_size),
            views: Views::default(),
            subsets: self.subsets,
            closing: CancellationToken::new(),
        };
        Ok(Gateway {
            core: Arc::new(core),
            narrowed: None,
        })
    }
}

/// Why there is no such gateway.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The system has no random numbers to make a key of.
    #[error("the system gives no random numbers: set a state key")]
    NoRandomness,
    /// Nobody has defined that subset.
    #[error("unknown subset `{name}`; the subsets are: {known}")]
    UnknownSubset {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
}
