//! The seam to whoever may say yes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definition::ToolDefinition;
use crate::tool::BoxFuture;

/// A call that waits for somebody's word.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub definition: Arc<ToolDefinition>,
    /// The validated arguments: exactly what would run.
    pub arguments: Value,
    /// Why somebody is asked.
    pub reason: String,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may run.
    Allow,
    /// It must not, perhaps for a reason that the model is told.
    Deny(Option<String>),
    /// Nobody can say now: the run ends as waiting, and goes on when the answer has come.
    Suspend,
}

/// Somebody who decides about calls.
///
/// ```
/// use haft_core::{ApprovalRequest, Approver, BoxFuture, Decision};
///
/// /// Lets everything through that only concerns the sandbox.
/// struct Sandbox;
///
/// impl Approver for Sandbox {
///     fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
///         Box::pin(async move {
///             match request.arguments["path"].as_str() {
///                 Some(path) if path.starts_with("sandbox/") => Decision::Allow,
///                 _ => Decision::Deny(Some("outside the sandbox".into())),
///             }
///         })
///     }
/// }
/// ```
pub trait Approver: Send + Sync + 'static {
    /// Decides about one call. It may take its time, within the run's limits.
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision>;
}

/// An approver that ends the run as waiting each time, for hosts that ask elsewhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct SuspendAlways;

impl Approver for SuspendAlways {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'_, Decision> {
        Box::pin(async { Decision::Suspend })
    }
}

impl<F> Approver for F
where
    F: Fn(&ApprovalRequest) -> Decision + Send + Sync + 'static,
{
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        let decision = self(&request);
        Box::pin(async move { decision })
    }
}
