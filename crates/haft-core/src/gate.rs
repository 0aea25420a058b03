//! The gate's first question: may arguments of this provenance reach this tool unasked?
//!
//! Closed unless opened. What was validated as written passes; what was repaired, recovered from text
//! or never validated passes only as the policy says. Loop detection, budgets and the host's own policies come after.

use serde::{Deserialize, Serialize};

use crate::context::Access;
use crate::definition::{NoSchemaMode, ToolDefinition};
use crate::kind::ToolKind;
use crate::provenance::{HydrationResult, Provenance, Trust};
use crate::repair::RepairClass;

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Allow(Access),
    /// A person must be asked, because of this.
    NeedApproval(String),
    /// It must not run, because of this.
    Deny(String),
}

impl Verdict {
    /// The stricter of two: a denial, else that a person must be asked, else reading only.
    ///
    /// Where both ask for a person, both reasons are kept.
    #[must_use]
    pub fn strictest(self, other: Self) -> Self {
        match (self, other) {
            (Self::NeedApproval(one), Self::NeedApproval(other)) if one != other => {
                Self::NeedApproval(format!("{one}; {other}"))
            }
            (one, other) if other.strictness() > one.strictness() => other,
            (one, _) => one,
        }
    }

    fn strictness(&self) -> u8 {
        match self {
            Self::Allow(Access::Full) => 0,
            Self::Allow(Access::ReadOnly) => 1,
            Self::NeedApproval(_) => 2,
            Self::Deny(_) => 3,
        }
    }
}

/// What becomes of calls whose arguments were repaired, or that were recovered from text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnRepaired {
    /// They run, marked.
    Allow,
    /// A person is asked, unless the repair was lossless and the tool only reads; about a recovered
    /// call unless the tool only reads, or is idempotent and not destructive.
    #[default]
    Approve,
    /// They do not run.
    Deny,
}

/// Decides by provenance and annotations alone.
///
/// By default: validated calls run, destructive tools included, unless the tool is annotated
/// `x-needs-approval`; repaired ones need approval unless
/// the repair was lossless and the tool only reads; recovered ones (written as text) need approval
/// unless the tool only reads, or is idempotent and not destructive; unvalidated ones need approval except for
/// read-only tools in that mode.
///
/// ```
/// use haft_core::{OnRepaired, TrustPolicy};
/// let strict = TrustPolicy { on_repaired: OnRepaired::Deny, ..TrustPolicy::default() };
/// assert_ne!(strict, TrustPolicy::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent switches of the operator, each named where it is set"
)]
pub struct TrustPolicy {
    /// What becomes of repaired calls, and of those that were recovered from text.
    pub on_repaired: OnRepaired,
    /// Whether calls of destructive tools need approval.
    pub approve_destructive: bool,
    /// Whether calls of tools without schema in mode `full` run unasked.
    pub allow_unvalidated: bool,
    /// Whether the `read_only` hint of MCP tools counts, also of those that are not marked as a trusted
    /// server's (`x-mcp-trusted`). It comes from the server.
    pub trust_mcp_hints: bool,
    /// Whether this process's own shell (a tool annotated `x-shell`) runs unasked.
    pub allow_shell_unasked: bool,
}

impl TrustPolicy {
    /// May this call of this tool run unasked?
    pub fn check(self, result: &HydrationResult, definition: &ToolDefinition) -> Verdict {
        let by_arguments = match result.trust() {
            Trust::Validated if definition.no_schema_mode().is_some() => {
                self.check_unvalidated(definition)
            }
            Trust::Validated => Verdict::Allow(Access::Full),
            Trust::Repaired => self.check_repaired(definition, &result.provenance),
            Trust::Unvalidated => self.check_unvalidated(definition),
            Trust::Rejected => Verdict::Deny("the call was refused".into()),
        };
        let verdict = by_arguments.strictest(self.check_recovered(definition, &result.provenance));
        match verdict {
            Verdict::Allow(_)
                if self.approve_destructive && definition.annotations().destructive =>
            {
                Verdict::NeedApproval("the tool is destructive".into())
            }
            Verdict::Allow(_) if self.asks(definition) => {
                Verdict::NeedApproval("the tool asks for approval".into())
            }
            other => other,
        }
    }

    /// Whether the author wants a person to see every call (`x-needs-approval`).
    fn asks(self, definition: &ToolDefinition) -> bool {
        let says = |key| definition.annotations().extra.get(key) == Some(&true.into());
        let own_shell = says("x-shell") && *definition.kind() == ToolKind::Internal;
        says("x-needs-approval") && !(own_shell && self.allow_shell_unasked)
    }

    fn check_repaired(self, definition: &ToolDefinition, provenance: &Provenance) -> Verdict {
        match self.on_repaired_of(definition) {
            OnRepaired::Allow => Verdict::Allow(Access::Full),
            OnRepaired::Deny => Verdict::Deny("its arguments were repaired".into()),
            OnRepaired::Approve => {
                let lossless = provenance.repair.as_ref().is_some_and(|repair| {
                    // A repair that tells nothing of what it did is not lossless.
                    !repair.events.is_empty()
                        && repair
                            .events
                            .iter()
                            .all(|event| event.kind.class() == RepairClass::Lossless)
                });
                if !lossless {
                    Verdict::NeedApproval("its arguments were coerced".into())
                } else if self.only_reads(definition) {
                    Verdict::Allow(Access::Full)
                } else {
                    let reason = "its arguments were repaired, and the tool does more than read";
                    Verdict::NeedApproval(reason.into())
                }
            }
        }
    }

    /// A call that the model wrote as text is its intention less surely than one that it made: the
    /// text may repeat what a tool returned. What it can change decides, and the operator.
    fn check_recovered(self, definition: &ToolDefinition, provenance: &Provenance) -> Verdict {
        let is_recovered = provenance
            .source
            .as_ref()
            .is_some_and(|source| source.recovered);
        if !is_recovered || self.only_reads(definition) || self.is_harmless_to_repeat(definition) {
            return Verdict::Allow(Access::Full);
        }
        match self.on_repaired_of(definition) {
            OnRepaired::Allow => Verdict::Allow(Access::Full),
            OnRepaired::Deny => Verdict::Deny("the call was recovered from text".into()),
            OnRepaired::Approve => {
                let reason = "the call was recovered from text, and the tool does more than read";
                Verdict::NeedApproval(reason.into())
            }
        }
    }

    /// What the operator decided for this tool (`x-on-repaired`), else for all.
    fn on_repaired_of(self, definition: &ToolDefinition) -> OnRepaired {
        let own = definition.annotations().extra.get("x-on-repaired");
        let own = own.and_then(|own| OnRepaired::deserialize(own).ok());
        own.unwrap_or(self.on_repaired)
    }

    fn check_unvalidated(self, definition: &ToolDefinition) -> Verdict {
        match definition.no_schema_mode() {
            Some(NoSchemaMode::ReadOnly) if self.only_reads(definition) => {
                Verdict::Allow(Access::ReadOnly)
            }
            Some(NoSchemaMode::Full) if self.allow_unvalidated => Verdict::Allow(Access::Full),
            _ => Verdict::NeedApproval("its arguments were not validated".into()),
        }
    }

    fn only_reads(self, definition: &ToolDefinition) -> bool {
        definition.annotations().read_only && self.believes(definition)
    }

    fn is_harmless_to_repeat(self, definition: &ToolDefinition) -> bool {
        let annotations = definition.annotations();
        annotations.idempotent && !annotations.destructive && self.believes(definition)
    }

    /// Whether the hints of a tool count.
    fn believes(self, definition: &ToolDefinition) -> bool {
        *definition.kind() != ToolKind::Mcp
            || self.trust_mcp_hints
            || definition.annotations().extra.get("x-mcp-trusted") == Some(&true.into())
    }
}
