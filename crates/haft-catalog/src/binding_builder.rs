//! From references to a binding.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_core::{DefinitionError, Fingerprint, ToolChoice, ToolKind, ToolName, ToolRef, cut};

use crate::binding::Binding;
use crate::near::{near, suggestion};
use crate::offered::Offered;
use crate::snapshot::Snapshot;

/// Why there is no binding. The request that asked for it is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// `allowed_tools` lists nothing.
    #[error(
        "`allowed_tools` lists no tool: leave it out to allow all, or use `none` to allow none"
    )]
    NothingAllowed,
    /// A reference to nothing.
    #[error(
        "there is no tool or namespace `{name}`: {}",
        suggestion(near, "look at the catalogue's names and namespaces")
    )]
    UnknownTool {
        /// The name as given.
        name: String,
        /// Names that are like it.
        near: Vec<String>,
    },
    /// `tool_choice` names a tool that is not offered.
    #[error(
        "`tool_choice` names `{name}`, which is not offered in this request: {}",
        suggestion(near, "add it with `with_tools`, or choose another")
    )]
    ChoiceNotOffered {
        /// The name as given.
        name: String,
        /// Offered names that are like it.
        near: Vec<String>,
    },
    /// A given tool's types or JSON make no definition.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// A given tool's schema does not compile.
    #[error("tool `{tool}` has an invalid schema: {reason}: correct its parameters")]
    InvalidSchema {
        /// The tool.
        tool: ToolName,
        /// What is wrong, and where.
        reason: String,
    },
}

/// Says what one run may see and call.
///
/// Offered are the static tools, which are the whole catalogue unless [`tools`](Self::tools) lists
/// others, then the dynamic ones of [`with_tools`](Self::with_tools). Of two with one name the first
/// is taken. The order of calls on this builder does not matter, except that `with_tools` extends.
///
/// Where a tool given as an object bears the plain name of a catalogue tool in a namespace, the
/// latter is offered under its hashed name, so that both are there (`mcp.md` §7.2).
#[derive(Debug, Clone)]
#[must_use = "a binding exists only after `build`"]
pub struct BindingBuilder {
    snapshot: Arc<Snapshot>,
    listed: Option<Vec<ToolRef>>,
    dynamic: Vec<ToolRef>,
    excludes_static: bool,
    choice: ToolChoice,
}

impl BindingBuilder {
    pub(crate) fn new(snapshot: Arc<Snapshot>) -> Self {
        Self {
            snapshot,
            listed: None,
            dynamic: Vec::new(),
            excludes_static: false,
            choice: ToolChoice::Auto,
        }
    }

    /// The static tools of the model, in this order, in place of the whole catalogue.
    pub fn tools<R: Into<ToolRef>>(mut self, tools: impl IntoIterator<Item = R>) -> Self {
        let listed = self.listed.get_or_insert_default();
        listed.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Adds tools for this binding only.
    pub fn with_tools<R: Into<ToolRef>>(mut self, tools: impl IntoIterator<Item = R>) -> Self {
        self.dynamic.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Leaves the static tools out.
    pub fn without_tools(mut self) -> Self {
        self.excludes_static = true;
        self
    }

    /// Which tools the model must, may or must not call; it decides if nothing is said.
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.choice = choice;
        self
    }

    /// The binding. Names that nothing bears are errors.
    pub fn build(self) -> Result<Binding, BindError> {
        let snapshot = self.snapshot;
        let mut found = Vec::new();
        match (self.excludes_static, &self.listed) {
            (true, _) => {}
            (false, None) => found.extend(snapshot.all_offered().iter().map(known)),
            (false, Some(listed)) => resolve_all(listed, &snapshot, &mut found)?,
        }
        resolve_all(&self.dynamic, &snapshot, &mut found)?;
        let tools = deduplicated(found);
        Binding::new(snapshot, tools, self.choice)
    }
}

/// A tool that a reference led to.
pub(crate) struct Found {
    pub(crate) tool: Arc<Offered>,
    /// Given as an object, not found in the catalogue.
    is_given: bool,
}

fn known(tool: &Arc<Offered>) -> Found {
    Found {
        tool: Arc::clone(tool),
        is_given: false,
    }
}

fn resolve_all(
    references: &[ToolRef],
    snapshot: &Snapshot,
    found: &mut Vec<Found>,
) -> Result<(), BindError> {
    for reference in references {
        found.extend(resolve(reference, snapshot)?);
    }
    Ok(())
}

/// The tools that a reference means, in catalogue order.
pub(crate) fn resolve(reference: &ToolRef, snapshot: &Snapshot) -> Result<Vec<Found>, BindError> {
    match reference {
        ToolRef::Tool(source) => {
            let tool = source.clone().into_object()?;
            let name = tool.definition().name().clone();
            let given = Offered::native(tool, None, snapshot.workshop()).map_err(|error| {
                BindError::InvalidSchema {
                    tool: name,
                    reason: error.reason,
                }
            })?;
            Ok(vec![Found {
                tool: with_attached_validator(given, snapshot),
                is_given: true,
            }])
        }
        ToolRef::Name(name) => match snapshot.offered(name) {
            Some(tool) => Ok(vec![known(tool)]),
            None => in_namespace(name, snapshot),
        },
        ToolRef::Namespace(namespace) => in_namespace(namespace.as_str(), snapshot),
    }
}

fn in_namespace(name: &str, snapshot: &Snapshot) -> Result<Vec<Found>, BindError> {
    if let Some(tools) = snapshot.offered_in(name) {
        return Ok(tools.map(known).collect());
    }
    let names = snapshot.names().map(AsRef::as_ref);
    let namespaces = snapshot.namespaces().map(AsRef::as_ref);
    Err(BindError::UnknownTool {
        name: cut(name),
        near: near(name, names.chain(namespaces)),
    })
}

/// The object that was given is the one that runs; a validator that somebody attached to the same
/// tool in the catalogue holds for it too.
fn with_attached_validator(given: Arc<Offered>, snapshot: &Snapshot) -> Arc<Offered> {
    let same = snapshot
        .offered(given.name().as_str())
        .filter(|tool| tool.definition().fingerprint() == given.definition().fingerprint());
    match same.and_then(|tool| tool.attached()) {
        Some(validator) => given.with_validator(Arc::clone(validator)),
        None => given,
    }
}

fn deduplicated(found: Vec<Found>) -> Vec<Arc<Offered>> {
    let given: HashMap<ToolName, (Fingerprint, ToolKind)> = found
        .iter()
        .filter(|found| found.is_given)
        .map(|found| (found.tool.name().clone(), sameness(&found.tool)))
        .collect();
    let mut seen = HashSet::new();
    found
        .into_iter()
        .map(|found| {
            let clashes = !found.is_given
                && given
                    .get(found.tool.name())
                    .is_some_and(|other| *other != sameness(&found.tool));
            match found.tool.hashed() {
                Some(hashed) if clashes => Arc::clone(hashed),
                _ => found.tool,
            }
        })
        .filter(|tool| seen.insert(tool.name().clone()))
        .collect()
}

/// Two tools with one name are the same if nothing tells them apart from outside.
fn sameness(tool: &Offered) -> (Fingerprint, ToolKind) {
    let definition = tool.definition();
    (definition.fingerprint().clone(), definition.kind().clone())
}
