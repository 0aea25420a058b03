//! The catalogue at one moment.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use haft_core::{Namespace, ToolDefinition, ToolName, cut};
use haft_hydrate::{Admission, PreparedTool, ToolTable};

use crate::binding_builder::BindingBuilder;
use crate::error::Diagnostic;
use crate::groups::Groups;
use crate::natives::Natives;
use crate::offered::{Offered, Workshop};

/// All tools that could be offered at one moment, in catalogue order. Never changes.
///
/// Catalogue order: native tools by namespace and name (bytes), those in no namespace first; then
/// MCP servers in configured order, with their tools in server order.
///
/// ```
/// use haft_catalog::Catalog;
/// use haft_core::ToolDefinition;
///
/// # fn tool(name: &str) -> std::sync::Arc<ToolDefinition> {
/// #     let object = serde_json::json!({"type": "object"});
/// #     ToolDefinition::builder(name).parameters(object).build().unwrap()
/// # }
/// let catalog = Catalog::new();
/// catalog.register(tool("pong"))?;
/// let before = catalog.snapshot();
/// catalog.register(tool("ping"))?;
/// assert_eq!(before.len(), 1);
/// let names: Vec<_> = catalog.snapshot().names().map(ToString::to_string).collect();
/// assert_eq!(names, ["ping", "pong"]);
/// # Ok::<(), haft_catalog::RegisterError>(())
/// ```
pub struct Snapshot {
    version: u64,
    tools: Vec<Arc<Offered>>,
    by_name: HashMap<ToolName, usize>,
    by_namespace: BTreeMap<Namespace, Vec<usize>>,
    workshop: Workshop,
    unnamed: Vec<Diagnostic>,
}

impl Snapshot {
    pub(crate) fn build(
        version: u64,
        natives: &Natives,
        groups: &Groups,
        workshop: Workshop,
    ) -> Self {
        let (grouped, unnamed) = groups.named(natives);
        let tools: Vec<_> = natives
            .iter()
            .filter(|native| native.is_available())
            .map(|native| Arc::clone(native.offered()))
            .chain(grouped)
            .collect();
        let mut by_namespace: BTreeMap<Namespace, Vec<usize>> = BTreeMap::new();
        // A namespace without tools is known all the same: its server may not have answered yet.
        for label in groups.labels() {
            by_namespace.entry(label.clone()).or_default();
        }
        for native in natives.iter() {
            if let Some(namespace) = &native.offered().identity().namespace {
                by_namespace.entry(namespace.clone()).or_default();
            }
        }
        for (at, tool) in tools.iter().enumerate() {
            if let Some(namespace) = &tool.identity().namespace {
                by_namespace.entry(namespace.clone()).or_default().push(at);
            }
        }
        let by_name = tools
            .iter()
            .enumerate()
            .map(|(at, tool)| (tool.name().clone(), at))
            .collect();
        Self {
            version,
            tools,
            by_name,
            by_namespace,
            workshop,
            unnamed,
        }
    }

    /// Grows with each change of the catalogue.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The tools in catalogue order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &PreparedTool> {
        self.tools.iter().map(|tool| tool.prepared())
    }

    /// Their definitions, in catalogue order.
    pub fn definitions(&self) -> impl ExactSizeIterator<Item = &Arc<ToolDefinition>> {
        self.tools.iter().map(|tool| tool.definition())
    }

    /// Their wire names, in catalogue order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &ToolName> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// The tool of this wire name.
    pub fn get(&self, wire_name: &str) -> Option<&PreparedTool> {
        self.offered(wire_name).map(|tool| tool.prepared())
    }

    /// The tool that `namespace` (or the MCP server of that label) calls `raw`.
    ///
    /// A wire name is never taken apart to find that out.
    pub fn find(&self, namespace: &Namespace, raw: &str) -> Option<&PreparedTool> {
        self.offered_in(namespace.as_str())?
            .find(|tool| &*tool.identity().raw == raw)
            .map(|tool| tool.prepared())
    }

    /// The namespace (or MCP label) of a tool and its name in there; no namespace for most native
    /// tools. Nothing if there is no such tool.
    pub fn identity(&self, wire_name: &str) -> Option<(Option<&Namespace>, &str)> {
        let identity = self.offered(wire_name)?.identity();
        Some((identity.namespace.as_ref(), &identity.raw))
    }

    /// All namespaces and MCP labels, by bytes; also those that have no tools now.
    pub fn namespaces(&self) -> impl ExactSizeIterator<Item = &Namespace> {
        self.by_namespace.keys()
    }

    /// The tools of a namespace or MCP server, in catalogue order; nothing if it is not known.
    pub fn in_namespace(
        &self,
        namespace: &str,
    ) -> Option<impl ExactSizeIterator<Item = &PreparedTool>> {
        Some(self.offered_in(namespace)?.map(|tool| tool.prepared()))
    }

    /// Starts a binding of these tools.
    pub fn bind(self: &Arc<Self>) -> BindingBuilder {
        BindingBuilder::new(Arc::clone(self))
    }

    pub(crate) fn offered(&self, wire_name: &str) -> Option<&Arc<Offered>> {
        self.by_name.get(wire_name).map(|&at| &self.tools[at])
    }

    pub(crate) fn offered_in(
        &self,
        namespace: &str,
    ) -> Option<impl ExactSizeIterator<Item = &Arc<Offered>>> {
        let positions = self.by_namespace.get(namespace)?;
        Some(positions.iter().map(|&at| &self.tools[at]))
    }

    pub(crate) fn all_offered(&self) -> &[Arc<Offered>] {
        &self.tools
    }

    pub(crate) fn workshop(&self) -> &Workshop {
        &self.workshop
    }

    /// Tools that found no free name.
    pub(crate) fn unnamed(&self) -> &[Diagnostic] {
        &self.unnamed
    }
}

impl ToolTable for Snapshot {
    fn admission(&self, wire_name: &str) -> Admission<'_> {
        match self.get(wire_name) {
            Some(tool) => Admission::Admitted(tool),
            None => Admission::Refused {
                tool: None,
                text: format!("Unknown tool '{}'.", cut(wire_name)),
            },
        }
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("version", &self.version)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
