//! Every tool that exists.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_core::{
    InternalTool, Namespace, ToolDefinition, ToolName, ToolObject, ToolSource, Validator, cut,
};
use haft_hydrate::PreparedTool;
use serde_json::Value;
use tokio::sync::watch;

use crate::builder::CatalogBuilder;
use crate::error::{AttachError, Diagnostic, RegisterError, RegisterReport, Rejection};
use crate::groups::{Group, Groups};
use crate::hosting;
use crate::lifecycle::{Hosted, Internal};
use crate::natives::{Native, Natives, Taken};
use crate::near::near;
use crate::offered::{Offered, Workshop};
use crate::origin::Origin;
use crate::registration::Registration;
use crate::snapshot::Snapshot;

/// The catalogue: every tool that exists, as frozen definitions under stable names.
///
/// Clones share one catalogue. Each change is atomic: a [`Snapshot`] shows all of it or nothing, and
/// one taken earlier never changes.
///
/// ```
/// use haft_catalog::{Catalog, RegisterError};
/// use haft_core::{Namespace, ToolDefinition};
///
/// # fn tool(name: &str) -> std::sync::Arc<ToolDefinition> {
/// #     let object = serde_json::json!({"type": "object"});
/// #     ToolDefinition::builder(name).parameters(object).build().unwrap()
/// # }
/// let catalog = Catalog::new();
/// let files = Namespace::new("files").unwrap();
/// assert_eq!(catalog.register(tool("ping"))?.as_str(), "ping");
/// assert_eq!(catalog.register_in(&files, tool("read"))?.as_str(), "files__read");
///
/// // Nothing is overwritten; the error says where both come from.
/// let error = catalog.register(tool("ping")).unwrap_err();
/// assert!(matches!(error, RegisterError::DuplicateTool { .. }));
/// assert_eq!(catalog.len(), 2);
/// # Ok::<(), RegisterError>(())
/// ```
#[derive(Clone)]
pub struct Catalog {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) workshop: Workshop,
    pub(crate) initialize_timeout: Duration,
    pub(crate) shutdown_timeout: Duration,
    state: Mutex<State>,
    /// Told whenever the start of an internal tool ends.
    pub(crate) lifecycle: watch::Sender<()>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) natives: Natives,
    groups: Groups,
    pub(crate) hosted: Hosted,
    next_sequence: u64,
    version: u64,
    /// The snapshot of this version, once somebody asked for it.
    snapshot: Option<Arc<Snapshot>>,
}

impl State {
    pub(crate) fn changed(&mut self) {
        self.version += 1;
        self.snapshot = None;
    }
}

impl Inner {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Whatever asks a tool something does so before anything is changed: whoever panicked, the
        // state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new()
    }
}

impl Catalog {
    /// An empty catalogue with the bundled validator, compiled at registration.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Starts a catalogue with another validator, late compilation or other limits.
    pub fn builder() -> CatalogBuilder {
        CatalogBuilder::default()
    }

    pub(crate) fn assembled(
        workshop: Workshop,
        initialize_timeout: Duration,
        shutdown_timeout: Duration,
        groups: Vec<Namespace>,
    ) -> Self {
        let mut state = State::default();
        state.groups.set_order(groups);
        Self {
            inner: Arc::new(Inner {
                workshop,
                initialize_timeout,
                shutdown_timeout,
                state: Mutex::new(state),
                lifecycle: watch::Sender::new(()),
            }),
        }
    }

    /// Registers a tool under its own name and returns that name.
    #[track_caller]
    pub fn register(&self, tool: impl Into<ToolSource>) -> Result<ToolName, RegisterError> {
        self.add(Registration::new(tool))
    }

    /// Registers a tool in a namespace and returns its wire name, `namespace__name` in most cases.
    #[track_caller]
    pub fn register_in(
        &self,
        namespace: &Namespace,
        tool: impl Into<ToolSource>,
    ) -> Result<ToolName, RegisterError> {
        self.add(Registration::new(tool).in_namespace(namespace.clone()))
    }

    /// Registers a list of tools at once. One bad tool never spoils the rest.
    #[track_caller]
    pub fn register_all<T: Into<ToolSource>>(
        &self,
        tools: impl IntoIterator<Item = T>,
    ) -> RegisterReport {
        let origin = Origin::here();
        self.add_all(
            tools
                .into_iter()
                .map(|tool| Registration::new(tool).from_origin(origin.clone())),
        )
    }

    /// Registers a list of tools in a namespace at once. One bad tool never spoils the rest.
    ///
    /// ```
    /// use haft_catalog::Catalog;
    /// use haft_core::Namespace;
    ///
    /// # fn tool(name: &str) -> std::sync::Arc<haft_core::ToolDefinition> {
    /// #     let object = serde_json::json!({"type": "object"});
    /// #     haft_core::ToolDefinition::builder(name).parameters(object).build().unwrap()
    /// # }
    /// let files = Namespace::new("files")?;
    /// let report = Catalog::new().register_all_in(&files, [tool("read"), tool("write")]);
    /// let names = report.into_result()?;
    /// assert_eq!(names[1].as_str(), "files__write");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn register_all_in<T: Into<ToolSource>>(
        &self,
        namespace: &Namespace,
        tools: impl IntoIterator<Item = T>,
    ) -> RegisterReport {
        let origin = Origin::here();
        self.add_all(tools.into_iter().map(|tool| {
            Registration::new(tool)
                .in_namespace(namespace.clone())
                .from_origin(origin.clone())
        }))
    }

    /// Registers a tool with its namespace and origin spelled out.
    pub fn add(&self, registration: Registration) -> Result<ToolName, RegisterError> {
        let native = self.prepare(registration)?;
        self.insert(native)
    }

    /// Registers a list of such tools in one step: a snapshot sees all of them or none.
    pub fn add_all(&self, registrations: impl IntoIterator<Item = Registration>) -> RegisterReport {
        // Compiling is slow and foreign; it happens before the lock is taken.
        let prepared: Vec<_> = registrations
            .into_iter()
            .map(|registration| self.prepare(registration))
            .collect();
        let mut report = RegisterReport::default();
        let mut state = self.inner.lock();
        for (position, native) in prepared.into_iter().enumerate() {
            match native.and_then(|native| insert(&mut state, native)) {
                Ok(name) => report.registered.push(name),
                Err(error) => report.rejected.push(Rejection { position, error }),
            }
        }
        if !report.registered.is_empty() {
            state.changed();
        }
        report
    }

    /// Registers an internal tool without configuration. It is offered after
    /// [`start`](Self::start).
    #[track_caller]
    pub fn register_internal(
        &self,
        tool: Arc<dyn InternalTool>,
    ) -> Result<ToolName, RegisterError> {
        self.host(tool, None, &Origin::here())
    }

    /// Registers an internal tool with the operator's configuration, which must fit the tool's
    /// `config_schema`. It is offered after [`start`](Self::start).
    #[track_caller]
    pub fn register_internal_with(
        &self,
        tool: Arc<dyn InternalTool>,
        config: Value,
    ) -> Result<ToolName, RegisterError> {
        self.host(tool, Some(config), &Origin::here())
    }

    fn host(
        &self,
        tool: Arc<dyn InternalTool>,
        config: Option<Value>,
        origin: &Origin,
    ) -> Result<ToolName, RegisterError> {
        let workshop = &self.inner.workshop;
        let context = hosting::checked_context(&*tool, config, workshop.validators.factory())?;
        let object = hosting::as_internal(Arc::clone(&tool));
        let offered = prepare(object, None, workshop, origin)?;
        let sequence = {
            let mut state = self.inner.lock();
            state.next_sequence += 1;
            state.next_sequence
        };
        let internal = Internal::new(tool, context, sequence);
        self.insert(Native::hosted(offered, origin.clone(), internal))
    }

    /// Puts another tool in the place of the registered one with the same name.
    ///
    /// A validator that was attached to the former tool goes with it. An internal tool that was
    /// started stays up until [`shutdown`](Self::shutdown): earlier snapshots may still use it.
    #[track_caller]
    pub fn replace(&self, tool: impl Into<ToolSource>) -> Result<ToolName, RegisterError> {
        self.exchange(Registration::new(tool))
    }

    /// Puts another tool in the place of the one with the same name in the same namespace.
    #[track_caller]
    pub fn replace_in(
        &self,
        namespace: &Namespace,
        tool: impl Into<ToolSource>,
    ) -> Result<ToolName, RegisterError> {
        self.exchange(Registration::new(tool).in_namespace(namespace.clone()))
    }

    fn exchange(&self, registration: Registration) -> Result<ToolName, RegisterError> {
        let native = self.prepare(registration)?;
        let name = native.offered().name().clone();
        let mut state = self.inner.lock();
        let Some((name, former)) = state.natives.replace(native) else {
            return Err(RegisterError::NothingToReplace { name });
        };
        if let Some(internal) = &former.internal {
            state.hosted.forget(internal.sequence);
        }
        state.changed();
        Ok(name)
    }

    /// Takes a native tool out, by its wire name. Snapshots and bindings that have it keep it.
    pub fn remove(&self, wire_name: &str) -> Option<Arc<dyn ToolObject>> {
        let mut state = self.inner.lock();
        let removed = state.natives.remove(wire_name)?;
        if let Some(internal) = &removed.internal {
            state.hosted.forget(internal.sequence);
        }
        state.changed();
        Some(Arc::clone(removed.offered().prepared().tool()))
    }

    /// Attaches a validator to one tool. From the next snapshot on it goes before the catalogue's
    /// own, and provenance names it.
    pub fn attach_validator(
        &self,
        wire_name: &str,
        validator: Arc<dyn Validator>,
    ) -> Result<(), AttachError> {
        let mut state = self.inner.lock();
        let snapshot = self.current(&mut state);
        let native = state.natives.get(wire_name).map(Native::offered);
        let Some(tool) = native.or_else(|| snapshot.offered(wire_name)) else {
            return Err(AttachError::UnknownTool {
                name: cut(wire_name),
                near: near(wire_name, snapshot.names().map(ToolName::as_str)),
            });
        };
        if tool.definition().parameters().is_none() {
            return Err(AttachError::NoSchema {
                name: tool.name().clone(),
            });
        }
        let identity = tool.identity().clone();
        if native.is_some() {
            state.natives.attach(wire_name, validator);
        } else {
            state.groups.attach(&identity, validator);
        }
        state.changed();
        Ok(())
    }

    /// Sets the order of the groups: MCP servers as they are configured. Those that are not listed
    /// come after them, by label.
    pub fn set_group_order(&self, labels: impl IntoIterator<Item = Namespace>) {
        let mut state = self.inner.lock();
        state.groups.set_order(labels);
        state.changed();
    }

    /// Puts a list of tools in the place of all tools of one group: what an MCP server now lists.
    ///
    /// The tools keep the order of the list. A tool's raw name is the one in its
    /// `annotations.origin`, else its own. Bad tools are dropped, each with a diagnostic; validators
    /// that were attached stay with the tools of the same raw name.
    pub fn set_group<T: Into<ToolSource>>(
        &self,
        label: &Namespace,
        tools: impl IntoIterator<Item = T>,
    ) -> Vec<Diagnostic> {
        let tools = tools.into_iter().map(Into::into);
        let group = Group::prepare(label, tools, &self.inner.workshop);
        let dropped = group.dropped.clone();
        let mut state = self.inner.lock();
        state.groups.set(label.clone(), group);
        state.changed();
        dropped
    }

    /// Takes a whole group out; says whether there was one.
    pub fn remove_group(&self, label: &Namespace) -> bool {
        let mut state = self.inner.lock();
        let removed = state.groups.remove(label);
        if removed {
            state.changed();
        }
        removed
    }

    /// The catalogue as it is now. Costs a pointer while nothing changes.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current(&mut self.inner.lock())
    }

    fn current(&self, state: &mut State) -> Arc<Snapshot> {
        if let Some(snapshot) = &state.snapshot {
            return Arc::clone(snapshot);
        }
        let snapshot = Arc::new(Snapshot::build(
            state.version,
            &state.natives,
            &state.groups,
            self.inner.workshop.clone(),
        ));
        state.snapshot = Some(Arc::clone(&snapshot));
        snapshot
    }

    /// The tool of this wire name, if it can be offered now.
    pub fn get(&self, wire_name: &str) -> Option<PreparedTool> {
        self.snapshot().get(wire_name).cloned()
    }

    /// The definitions of all tools that can be offered now, in catalogue order.
    pub fn list(&self) -> Vec<Arc<ToolDefinition>> {
        self.snapshot().definitions().cloned().collect()
    }

    /// How many tools can be offered now.
    pub fn len(&self) -> usize {
        self.snapshot().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All namespaces and MCP labels, by bytes.
    pub fn namespaces(&self) -> Vec<Namespace> {
        self.snapshot().namespaces().cloned().collect()
    }

    /// What is not offered although somebody registered it, and why: internal tools that did not
    /// start or shut down, tools of groups that were dropped.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut state = self.inner.lock();
        let snapshot = self.current(&mut state);
        let hosted = state.hosted.failures();
        let grouped = state.groups.dropped().chain(snapshot.unnamed());
        hosted.chain(grouped).cloned().collect()
    }

    fn prepare(&self, registration: Registration) -> Result<Native, RegisterError> {
        let Registration {
            tool,
            namespace,
            origin,
        } = registration;
        let origin = origin.within(namespace.as_ref());
        let tool = tool.into_object()?;
        let offered = prepare(tool, namespace, &self.inner.workshop, &origin)?;
        Ok(Native::new(offered, origin))
    }

    fn insert(&self, native: Native) -> Result<ToolName, RegisterError> {
        let mut state = self.inner.lock();
        let name = insert(&mut state, native)?;
        state.changed();
        Ok(name)
    }
}

fn prepare(
    tool: Arc<dyn ToolObject>,
    namespace: Option<Namespace>,
    workshop: &Workshop,
    origin: &Origin,
) -> Result<Arc<Offered>, RegisterError> {
    let name = tool.definition().name().clone();
    if namespace.is_none() && name.is_reserved() {
        let origin = origin.clone();
        return Err(RegisterError::ReservedName { name, origin });
    }
    Offered::native(tool, namespace, workshop).map_err(|error| RegisterError::InvalidSchema {
        tool: name.into(),
        reason: error.reason,
    })
}

fn insert(state: &mut State, native: Native) -> Result<ToolName, RegisterError> {
    let second = native.origin.clone();
    let inserted = state.natives.insert(native);
    inserted.map_err(|Taken { name, by }| RegisterError::DuplicateTool {
        name,
        first: by,
        second,
    })
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Catalog").field(&self.snapshot()).finish()
    }
}
