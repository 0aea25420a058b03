//! Policies that come with the engine, and how several of them decide together.
//!
//! What comes in: a hydrated call, and the policies that apply to it in their order: those of the
//! section that owns the tool, those of the prompt, those of the run. What goes out: one verdict.
//! Closed unless opened: a policy that breaks denies.

mod read_before_write;
mod sequential;

use std::sync::Arc;

use haft_core::{
    Access, Policy, PolicyCall, SessionState, ToolOutput, Transaction, Verdict, caught,
};

pub(crate) use read_before_write::normalised;
pub use read_before_write::{FilesSeen, ReadBeforeWrite};
pub use sequential::{SequentialDependency, SucceededTools};

/// What the policies say together: the first denial ends the check, else the strictest answer wins.
/// A policy that panics denies. Without policies a call may run.
pub fn check_all<'a>(
    policies: impl IntoIterator<Item = &'a Arc<dyn Policy>>,
    call: &PolicyCall<'_>,
    state: &SessionState,
) -> Verdict {
    let mut verdict = Verdict::Allow(Access::Full);
    for policy in policies {
        let said = caught(|| policy.check(call, state)).unwrap_or_else(|panic| {
            let name = name_of(policy);
            tracing::error!(policy = name, panic, "a policy panicked");
            // What the panic says is for the operator, not for the model.
            Verdict::Deny(format!(
                "Tool '{}' was not run: its policy '{name}' failed.",
                call.tool_name()
            ))
        });
        verdict = verdict.strictest(said);
        if matches!(verdict, Verdict::Deny(_)) {
            break;
        }
    }
    verdict
}

/// Tells the policies of a call that succeeded, before it is committed.
///
/// One that panics has not remembered the call, and nobody else suffers for it.
pub fn tell_all<'a>(
    policies: impl IntoIterator<Item = &'a Arc<dyn Policy>>,
    call: &PolicyCall<'_>,
    output: &ToolOutput,
    transaction: &Transaction,
) {
    for policy in policies {
        if let Err(panic) = caught(|| policy.on_result(call, output, transaction)) {
            let name = name_of(policy);
            tracing::error!(policy = name, panic, "a policy panicked over a result");
        }
    }
}

fn name_of(policy: &Arc<dyn Policy>) -> String {
    caught(|| policy.name().to_owned()).unwrap_or_default()
}

/// Writes a policy's memory; one that cannot is logged, and the policy then knows less, not more.
fn remember<T: haft_core::Slice>(
    policy: &str,
    transaction: &Transaction,
    change: impl Fn(&mut T) + Send + Sync + 'static,
) {
    if let Err(error) = transaction.update(change) {
        tracing::error!(policy, %error, "a policy could not remember a call");
    }
}

#[cfg(test)]
#[path = "policies_tests.rs"]
mod tests;
