//! What the model reads when its call did not become a tool.

use crate::cut::cut;
use crate::provenance::{ErrorCode, HydrationResult};

/// So many validation errors are told; the record keeps more.
const ERRORS_TOLD: usize = 8;

impl HydrationResult {
    /// The tool message for a call that failed; none for one that succeeded.
    ///
    /// Each says what is wrong and no more: the arguments are not echoed.
    pub fn text_for_model(&self) -> Option<String> {
        let first = self.errors.first()?;
        let tool = cut(&self.provenance.provider_tool_id);
        Some(match &first.detail {
            ErrorCode::Truncated => {
                format!("Tool '{tool}': the arguments were cut off. Send the call again.")
            }
            ErrorCode::UnknownTool { text } | ErrorCode::NotAllowed { text } => text.clone(),
            ErrorCode::TypeMismatch { .. } => {
                format!("Tool '{tool}' failed: its arguments could not be read.")
            }
            ErrorCode::BrokenSchema => {
                format!("Tool '{tool}' failed: its arguments could not be checked.")
            }
            ErrorCode::Invalid(_) => {
                let told: Vec<_> = self
                    .errors
                    .iter()
                    .filter(|error| error.detail != ErrorCode::RepairFailed)
                    .take(ERRORS_TOLD)
                    .map(|error| error.message.as_str())
                    .collect();
                format!("Tool '{tool}': invalid arguments: {}", told.join("; "))
            }
            _ => format!("Tool '{tool}': {}.", first.message),
        })
    }
}
