//! Policies: who decides whether a validated call may run.
//!
//! A policy sees the call as hydration left it, the tool's definition and the session's committed
//! state. It answers with a [`Verdict`]; it must never run the tool or change the session. What it
//! has to remember of calls that succeeded it writes into the call's own transaction, so that a
//! success that is rolled back does not count.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::definition::ToolDefinition;
use crate::gate::{OnRepaired, TrustPolicy, Verdict};
use crate::name::{Namespace, ToolName};
use crate::output::ToolOutput;
use crate::provenance::HydrationResult;
use crate::state::{SessionState, StateError, Transaction};

/// Decides about calls.
///
/// ```
/// use haft_core::{Access, Policy, PolicyCall, SessionState, Verdict};
///
/// struct OfficeHours { open: bool }
///
/// impl Policy for OfficeHours {
///     fn name(&self) -> &str {
///         "office_hours"
///     }
///
///     fn check(&self, call: &PolicyCall<'_>, _: &SessionState) -> Verdict {
///         if self.open || call.definition.annotations().read_only {
///             Verdict::Allow(Access::Full)
///         } else {
///             Verdict::Deny(format!("'{}' is closed for today.", call.tool_name()))
///         }
///     }
/// }
/// ```
pub trait Policy: Send + Sync + 'static {
    /// What it is called in records.
    fn name(&self) -> &str;

    /// May this call run? The reason of a denial goes to the model as it stands.
    fn check(&self, call: &PolicyCall<'_>, state: &SessionState) -> Verdict;

    /// Hears of a call that succeeded, before its transaction is committed.
    fn on_result(&self, call: &PolicyCall<'_>, output: &ToolOutput, transaction: &Transaction) {
        let _ = (call, output, transaction);
    }

    /// Whether what it says about this tool depends on earlier calls. Such a call waits for the
    /// earlier ones of its batch and holds back the later ones.
    fn has_memory(&self, definition: &ToolDefinition) -> bool {
        let _ = definition;
        false
    }

    /// Registers the slices that it remembers in.
    fn register(&self, state: &SessionState) -> Result<(), StateError> {
        let _ = state;
        Ok(())
    }
}

/// A call in front of the gate.
#[derive(Debug, Clone, Copy)]
pub struct PolicyCall<'a> {
    /// What hydration made of it.
    pub hydration: &'a HydrationResult,
    /// Whose call it is.
    pub definition: &'a ToolDefinition,
}

impl<'a> PolicyCall<'a> {
    /// The call's id.
    pub fn call_id(&self) -> &'a str {
        &self.hydration.provenance.call_id
    }

    /// The tool's name.
    pub fn tool_name(&self) -> &'a str {
        self.definition.name().as_str()
    }

    /// The arguments that the tool would get: validated, or as parsed for a tool without schema.
    pub fn arguments(&self) -> Option<&'a Value> {
        let provenance = &self.hydration.provenance;
        match &provenance.validated {
            None if provenance.unvalidated => provenance.parsed.as_ref(),
            validated => validated.as_ref(),
        }
    }

    /// A text among the arguments.
    pub fn text_argument(&self, name: &str) -> Option<&'a str> {
        self.arguments()?.get(name)?.as_str()
    }
}

impl Policy for TrustPolicy {
    fn name(&self) -> &'static str {
        "trust"
    }

    fn check(&self, call: &PolicyCall<'_>, _: &SessionState) -> Verdict {
        TrustPolicy::check(*self, call.hydration, call.definition)
    }
}

/// A [`TrustPolicy`] that judges the repaired calls of some tools or namespaces differently.
///
/// ```
/// use haft_core::{Namespace, OnRepaired, ToolName, TrustRules};
///
/// let rules = TrustRules::default()
///     .namespace(Namespace::new("files")?, OnRepaired::Allow)
///     .tool(ToolName::new("files__delete")?, OnRepaired::Deny);
/// # Ok::<(), haft_core::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustRules {
    /// What holds for all other tools.
    pub trust: TrustPolicy,
    tools: BTreeMap<ToolName, OnRepaired>,
    namespaces: BTreeMap<Namespace, OnRepaired>,
}

impl TrustRules {
    /// Repaired calls of this tool; it goes before its namespace.
    #[must_use]
    pub fn tool(mut self, tool: ToolName, on_repaired: OnRepaired) -> Self {
        self.tools.insert(tool, on_repaired);
        self
    }

    /// Repaired calls of the tools in this namespace, or of this MCP server.
    #[must_use]
    pub fn namespace(mut self, namespace: Namespace, on_repaired: OnRepaired) -> Self {
        self.namespaces.insert(namespace, on_repaired);
        self
    }

    fn of(&self, tool: &ToolName) -> TrustPolicy {
        let of_namespace = || {
            // A namespace holds no `__`, so the first one ends it.
            let (label, _) = tool.as_str().split_once("__")?;
            self.namespaces.get(&Namespace::new(label).ok()?)
        };
        let on_repaired = self.tools.get(tool).or_else(of_namespace);
        TrustPolicy {
            on_repaired: *on_repaired.unwrap_or(&self.trust.on_repaired),
            ..self.trust
        }
    }
}

impl From<TrustPolicy> for TrustRules {
    fn from(trust: TrustPolicy) -> Self {
        Self {
            trust,
            ..Self::default()
        }
    }
}

impl Policy for TrustRules {
    fn name(&self) -> &'static str {
        "trust"
    }

    fn check(&self, call: &PolicyCall<'_>, _: &SessionState) -> Verdict {
        self.of(call.definition.name())
            .check(call.hydration, call.definition)
    }
}

/// The files that tools and policies talk about, as far as a policy needs to see them.
pub trait FileSystem: Send + Sync + 'static {
    /// Whether there is a file at this path, relative to the root and normalised.
    fn exists(&self, path: &str) -> bool;
}

impl<F: FileSystem + ?Sized> FileSystem for std::sync::Arc<F> {
    fn exists(&self, path: &str) -> bool {
        (**self).exists(path)
    }
}
