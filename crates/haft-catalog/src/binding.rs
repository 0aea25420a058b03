//! What one run may see and call.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use haft_core::{
    AllowedMode, ToolChoice, ToolDefinition, ToolName, ToolRef, ToolSpecs, ViewFormat, cut,
};
use haft_hydrate::{Admission, PreparedTool, ToolTable};

use crate::binding_builder::{BindError, resolve};
use crate::held::Held;
use crate::near::near;
use crate::offered::Offered;
use crate::refusal::{CallRefused, LISTED};
use crate::snapshot::Snapshot;

/// The tools of one run, in their order, and which of them may be called. Never changes.
///
/// It is the table by which the answers to its request are hydrated, whatever the catalogue holds by
/// then. Clones share one binding.
///
/// ```
/// use haft_catalog::Catalog;
/// use haft_core::{AllowedMode, ToolChoice, ToolDefinition, ViewFormat};
///
/// # fn tool(name: &str) -> std::sync::Arc<ToolDefinition> {
/// #     let object = serde_json::json!({"type": "object"});
/// #     ToolDefinition::builder(name).parameters(object).build().unwrap()
/// # }
/// let catalog = Catalog::new();
/// catalog.register_all([tool("ping"), tool("pong")]).into_result()?;
/// let binding = catalog
///     .snapshot()
///     .bind()
///     .tool_choice(ToolChoice::allowed(["ping"]))
///     .build()?;
/// assert!(binding.admit("ping").is_ok());
/// assert_eq!(
///     binding.admit("pong").unwrap_err().to_string(),
///     "Tool 'pong' is not allowed in this request. Allowed tools: ping."
/// );
/// assert!(binding.render(ViewFormat::Anthropic).starts_with(r#"[{"name":"ping""#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Binding {
    inner: Arc<Inner>,
}

struct Inner {
    snapshot: Arc<Snapshot>,
    tools: Vec<Arc<Offered>>,
    by_name: HashMap<ToolName, usize>,
    choice: ToolChoice,
    callable: Callable,
    specs: ToolSpecs,
    held: Held,
}

/// What `tool_choice` leaves to be called.
#[derive(Clone)]
enum Callable {
    All,
    Nothing,
    /// In the order in which `allowed_tools` lists them.
    Only(Vec<ToolName>),
}

/// How far a run has come, as far as its `tool_choice` is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Progress {
    /// No tool has run yet.
    #[default]
    NothingRan,
    /// There was a round in which a tool ran. A search alone does not count.
    ToolRan,
}

impl Binding {
    pub(crate) fn new(
        snapshot: Arc<Snapshot>,
        tools: Vec<Arc<Offered>>,
        choice: ToolChoice,
    ) -> Result<Self, BindError> {
        let by_name = by_name(&tools, &Held::default());
        let offered = |name: &String| match by_name.get_key_value(name.as_str()) {
            Some((name, _)) => Ok(name.clone()),
            None => Err(BindError::ChoiceNotOffered {
                name: cut(name),
                near: near(name, tools.iter().map(|tool| tool.name().as_str())),
            }),
        };
        let callable = match &choice {
            ToolChoice::Auto | ToolChoice::Required => Callable::All,
            ToolChoice::None => Callable::Nothing,
            ToolChoice::Function(name) => {
                offered(name)?;
                Callable::All
            }
            // Whoever computed this list did not mean "everything".
            ToolChoice::Allowed(allowed) if allowed.names.is_empty() => {
                return Err(BindError::NothingAllowed);
            }
            ToolChoice::Allowed(allowed) => {
                let mut names: Vec<ToolName> = Vec::new();
                for name in &allowed.names {
                    let name = offered(name)?;
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                match allowed.mode {
                    AllowedMode::None => Callable::Nothing,
                    AllowedMode::Auto | AllowedMode::Required => Callable::Only(names),
                }
            }
        };
        Ok(Self {
            inner: Arc::new(Inner {
                snapshot,
                specs: specs(&tools),
                tools,
                by_name,
                choice,
                callable,
                held: Held::default(),
            }),
        })
    }

    /// This binding with other tools, or the same shown otherwise. What may be called stays as it is.
    pub(crate) fn with(&self, tools: Vec<Arc<Offered>>, held: Held) -> Self {
        let inner = &self.inner;
        Self {
            inner: Arc::new(Inner {
                snapshot: Arc::clone(&inner.snapshot),
                specs: specs(&tools),
                by_name: by_name(&tools, &held),
                tools,
                choice: inner.choice.clone(),
                callable: inner.callable.clone(),
                held,
            }),
        }
    }

    /// Whether the list has a tool of this name, also if it cannot be called yet.
    pub(crate) fn lists(&self, name: &ToolName) -> bool {
        self.inner.tools.iter().any(|tool| tool.name() == name)
    }

    pub(crate) fn offered(&self) -> &[Arc<Offered>] {
        &self.inner.tools
    }

    pub(crate) fn held_back(&self) -> &Held {
        &self.inner.held
    }

    /// How many tools are offered.
    pub fn len(&self) -> usize {
        self.inner.tools.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.inner.tools.is_empty()
    }

    /// Which tools the model must, may or must not call.
    pub fn choice(&self) -> &ToolChoice {
        &self.inner.choice
    }

    /// The snapshot that it was made from.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.inner.snapshot
    }

    /// The tools that the model sees, in order: all that are offered, also those that it may not
    /// call, because a list that stays the same stays in the provider's cache.
    pub fn visible(&self) -> impl ExactSizeIterator<Item = &PreparedTool> {
        self.inner.tools.iter().map(|tool| tool.prepared())
    }

    /// The tools that it may call, in the same order.
    pub fn callable(&self) -> impl Iterator<Item = &PreparedTool> {
        self.visible()
            .filter(|tool| self.may_call(tool.definition().name()))
    }

    /// The definitions to announce, in order, each as it is shown: in full or in brief.
    pub fn tools_for_llm(&self) -> impl ExactSizeIterator<Item = &Arc<ToolDefinition>> {
        self.inner.tools.iter().map(|tool| tool.spec().definition())
    }

    /// The tools as a request shows them to a model.
    pub fn specs(&self) -> &ToolSpecs {
        &self.inner.specs
    }

    /// The offered tool of this name, if it may be called in this request; else what to tell the
    /// model.
    pub fn admit(&self, wire_name: &str) -> Result<&PreparedTool, CallRefused> {
        let Some(tool) = self.find(wire_name) else {
            if let Some(refused) = self.inner.held.refusal(wire_name) {
                return Err(refused);
            }
            return Err(CallRefused::Unknown {
                name: cut(wire_name),
                available: self.first_names(),
            });
        };
        let name = tool.definition().name();
        match &self.inner.callable {
            Callable::Nothing => Err(CallRefused::NoCalls { name: name.clone() }),
            Callable::Only(allowed) if !allowed.contains(name) => Err(CallRefused::NotAllowed {
                name: name.clone(),
                allowed: allowed.clone(),
            }),
            Callable::All | Callable::Only(_) => Ok(tool),
        }
    }

    fn find(&self, wire_name: &str) -> Option<&PreparedTool> {
        let &at = self.inner.by_name.get(wire_name)?;
        Some(self.inner.tools[at].prepared())
    }

    /// As many names as a refusal shows, and one more if there are more.
    fn first_names(&self) -> Vec<ToolName> {
        let names = self.inner.tools.iter().map(|tool| tool.name().clone());
        let names = names.filter(|name| self.inner.by_name.contains_key(name));
        names.take(LISTED + 1).collect()
    }

    fn may_call(&self, name: &ToolName) -> bool {
        match &self.inner.callable {
            _ if !self.inner.by_name.contains_key(name) => false,
            Callable::All => true,
            Callable::Nothing => false,
            Callable::Only(allowed) => allowed.contains(name),
        }
    }

    /// The `tool_choice` to send; none when no tools are offered.
    ///
    /// A forced function and `required` hold until a tool ran; otherwise the run could only end at
    /// its limit. `none`, `auto` and an allowed subset persist.
    pub fn tool_choice(&self, progress: Progress) -> Option<ToolChoice> {
        let choice = &self.inner.choice;
        match progress {
            _ if self.is_empty() => None,
            Progress::NothingRan => Some(choice.clone()),
            Progress::ToolRan => Some(choice.relaxed()),
        }
    }

    /// The list of offered tools as a compact JSON array: the same binding, the same bytes.
    ///
    /// Each tool is serialised once per format, for all bindings that offer it.
    pub fn render(&self, format: ViewFormat) -> Arc<String> {
        self.inner.specs.rendered().get(format.key(), || {
            let tools: Vec<_> = self.rendered(format).collect();
            let tools: Vec<_> = tools.iter().map(|tool| tool.as_str()).collect();
            format!("[{}]", tools.join(","))
        })
    }

    /// The elements of [`render`](Self::render), for whoever builds the array himself.
    pub fn rendered(&self, format: ViewFormat) -> impl ExactSizeIterator<Item = Arc<String>> {
        self.inner.tools.iter().map(move |tool| tool.render(format))
    }

    /// The same tools under another choice.
    pub fn with_choice(&self, choice: ToolChoice) -> Result<Self, BindError> {
        let inner = &self.inner;
        let mut chosen = Self::new(Arc::clone(&inner.snapshot), inner.tools.clone(), choice)?;
        if let Some(chosen) = Arc::get_mut(&mut chosen.inner) {
            // The list is the same, and so is what adapters made of it.
            chosen.specs = inner.specs.clone();
            chosen.by_name.clone_from(&inner.by_name);
            chosen.held = inner.held.clone();
        }
        Ok(chosen)
    }

    /// This binding with more tools behind those that it has. Nothing moves: the rendered list
    /// begins with the same bytes up to its closing bracket.
    ///
    /// A running conversation must not die of it: a tool whose name is already offered is skipped,
    /// a reference that leads nowhere is reported, and the rest is added.
    pub fn with_appended<R: Into<ToolRef>>(&self, tools: impl IntoIterator<Item = R>) -> Appended {
        let snapshot = Arc::clone(&self.inner.snapshot);
        self.with_appended_from(&snapshot, tools)
    }

    /// The same, with names looked up in a later snapshot.
    pub fn with_appended_from<R: Into<ToolRef>>(
        &self,
        snapshot: &Arc<Snapshot>,
        tools: impl IntoIterator<Item = R>,
    ) -> Appended {
        let mut tools_now = self.inner.tools.clone();
        let mut names = self.inner.by_name.clone();
        let (mut callable, mut choice) = (self.inner.callable.clone(), self.inner.choice.clone());
        let mut held = self.inner.held.clone();
        let (mut added, mut skipped, mut rejected) = (Vec::new(), Vec::new(), Vec::new());
        for reference in tools {
            let found = match resolve(&reference.into(), snapshot) {
                Ok(found) => found,
                Err(error) => {
                    tracing::warn!(%error, "a tool cannot be injected");
                    rejected.push(error);
                    continue;
                }
            };
            for tool in found.into_iter().map(|found| found.tool) {
                let name = tool.name().clone();
                if names.contains_key(&name) {
                    tracing::warn!(
                        tool_name = name.as_str(),
                        "Skipping duplicate tool during injection"
                    );
                    skipped.push(name);
                } else {
                    // haft's own tools serve the others; a subset of those does not shut them out,
                    // here or where a provider enforces it.
                    if is_own(&name) {
                        if let Callable::Only(allowed) = &mut callable {
                            allowed.push(name.clone());
                        }
                        if let ToolChoice::Allowed(allowed) = &mut choice {
                            allowed.names.push(name.to_string());
                        }
                    }
                    if held.disclose(&name) {
                        // It has been on the list all the while.
                        let place = tools_now.iter().position(|tool| *tool.name() == name);
                        names.extend(place.map(|place| (name.clone(), place)));
                    } else {
                        names.insert(name.clone(), tools_now.len());
                        tools_now.push(tool);
                    }
                    added.push(name);
                }
            }
        }
        Appended {
            binding: Self {
                inner: Arc::new(Inner {
                    snapshot: Arc::clone(snapshot),
                    specs: specs(&tools_now),
                    tools: tools_now,
                    by_name: names,
                    choice,
                    callable,
                    held,
                }),
            },
            added,
            skipped,
            rejected,
        }
    }
}

/// Whether this is one of haft's own tools: by its usual name, or by the one that it has where a client
/// calls a function so.
fn is_own(name: &ToolName) -> bool {
    let usual = name.as_str().strip_prefix("haft__");
    let usual = usual.unwrap_or(name.as_str());
    haft_core::RESERVED_NAMES.contains(&usual)
}

/// What became of tools that were to be appended.
#[derive(Debug)]
#[must_use = "the new binding is in here"]
pub struct Appended {
    /// The binding with the added tools at its end.
    pub binding: Binding,
    /// The names that are new.
    pub added: Vec<ToolName>,
    /// The names that were already offered.
    pub skipped: Vec<ToolName>,
    /// References that led to no tool.
    pub rejected: Vec<BindError>,
}

fn specs(tools: &[Arc<Offered>]) -> ToolSpecs {
    ToolSpecs::new(tools.iter().map(|tool| Arc::clone(tool.spec())).collect())
}

/// Where each tool is that can be called.
fn by_name(tools: &[Arc<Offered>], held: &Held) -> HashMap<ToolName, usize> {
    let names = tools.iter().map(|tool| tool.name().clone()).enumerate();
    let names = names.filter(|(_, name)| !held.keeps_unseen(name));
    names.map(|(at, name)| (name, at)).collect()
}

impl ToolTable for Binding {
    fn admission(&self, wire_name: &str) -> Admission<'_> {
        match self.admit(wire_name) {
            Ok(tool) => Admission::Admitted(tool),
            Err(refused) => Admission::Refused {
                tool: self.find(wire_name),
                text: refused.to_string(),
            },
        }
    }
}

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binding")
            .field("tools", &self.inner.tools)
            .field("choice", &self.inner.choice)
            .finish_non_exhaustive()
    }
}
