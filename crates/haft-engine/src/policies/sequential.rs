//! Tools that must run after others.

use std::collections::{BTreeMap, BTreeSet};

use haft_core::{
    Access, Policy, PolicyCall, SessionState, Slice, StateError, ToolDefinition, ToolOutput,
    Transaction, Verdict,
};
use serde::{Deserialize, Serialize};

use super::remember;

/// A tool runs only after its prerequisites have succeeded in this conversation.
///
/// ```
/// use haft_engine::SequentialDependency;
/// let order = SequentialDependency::new().after("deploy", ["build", "test"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SequentialDependency {
    prerequisites: BTreeMap<String, BTreeSet<String>>,
}

/// The prerequisites that have succeeded so far: this policy's memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SucceededTools(BTreeSet<String>);

impl Slice for SucceededTools {
    const NAME: &'static str = "policy.sequential_dependency";
}

impl SequentialDependency {
    /// A policy that asks for nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// `tool` runs only after these have; added to those it already has.
    #[must_use]
    pub fn after<S: Into<String>>(
        mut self,
        tool: impl Into<String>,
        prerequisites: impl IntoIterator<Item = S>,
    ) -> Self {
        let known = self.prerequisites.entry(tool.into()).or_default();
        known.extend(prerequisites.into_iter().map(Into::into));
        self
    }

    fn is_prerequisite(&self, tool: &str) -> bool {
        self.prerequisites
            .values()
            .any(|tools| tools.contains(tool))
    }
}

impl Policy for SequentialDependency {
    fn name(&self) -> &'static str {
        "sequential_dependency"
    }

    fn check(&self, call: &PolicyCall<'_>, state: &SessionState) -> Verdict {
        let tool = call.tool_name();
        let Some(needed) = self.prerequisites.get(tool) else {
            return Verdict::Allow(Access::Full);
        };
        // A memory that is not there knows of no success.
        let succeeded = state.get::<SucceededTools>().unwrap_or_default();
        let missing: Vec<_> = needed
            .difference(&succeeded.0)
            .map(String::as_str)
            .collect();
        if missing.is_empty() {
            return Verdict::Allow(Access::Full);
        }
        Verdict::Deny(format!(
            "Tool '{tool}' must run after: {}.",
            missing.join(", ")
        ))
    }

    fn on_result(&self, call: &PolicyCall<'_>, _: &ToolOutput, transaction: &Transaction) {
        let tool = call.tool_name();
        if self.is_prerequisite(tool) {
            let tool = tool.to_owned();
            remember::<SucceededTools>(self.name(), transaction, move |succeeded| {
                succeeded.0.insert(tool.clone());
            });
        }
    }

    fn has_memory(&self, definition: &ToolDefinition) -> bool {
        let tool = definition.name().as_str();
        self.prerequisites.contains_key(tool) || self.is_prerequisite(tool)
    }

    fn register(&self, state: &SessionState) -> Result<(), StateError> {
        state.register::<SucceededTools>()
    }
}
