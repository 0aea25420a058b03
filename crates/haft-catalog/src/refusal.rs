//! What a model is told about a call that this request does not admit.

use haft_core::ToolName;

/// The most names that a refusal lists.
pub(crate) const LISTED: usize = 20;

/// A call that is not executed. The text is for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallRefused {
    /// No such tool is offered.
    #[error("Unknown tool '{name}'. {}", list("Available tools", available))]
    Unknown {
        /// The name as the model wrote it, cut if it is very long.
        name: String,
        /// What is offered: the first names, more of them than are shown if there are more.
        available: Vec<ToolName>,
    },
    /// It is there, and held back until somebody searches for it.
    #[error("Tool '{name}' is not loaded. Find it with {search} first.")]
    NotLoaded {
        /// The tool.
        name: ToolName,
        /// What finds it.
        search: ToolName,
    },
    /// It is offered, and `allowed_tools` does not list it.
    #[error(
        "Tool '{name}' is not allowed in this request. {}",
        list("Allowed tools", allowed)
    )]
    NotAllowed {
        /// The tool.
        name: ToolName,
        /// What may be called.
        allowed: Vec<ToolName>,
    },
    /// `tool_choice` is `none`.
    #[error("Tool '{name}' is not allowed in this request. No tool may be called.")]
    NoCalls {
        /// The tool.
        name: ToolName,
    },
}

fn list(title: &str, names: &[ToolName]) -> String {
    if names.is_empty() {
        return "No tools are available.".to_owned();
    }
    let shown: Vec<_> = names.iter().take(LISTED).map(ToolName::as_str).collect();
    let more = if names.len() > LISTED { ", …" } else { "" };
    format!("{title}: {}{more}.", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<ToolName> {
        (1..=count)
            .map(|n| ToolName::new(format!("t{n}")).unwrap())
            .collect()
    }

    #[test]
    fn at_most_20_names_are_listed() {
        let text = |count| list("Available tools", &names(count));
        assert_eq!(text(2), "Available tools: t1, t2.");
        assert!(text(20).ends_with("t19, t20."));
        assert!(text(21).ends_with("t19, t20, …."));
        assert_eq!(text(0), "No tools are available.");
    }
}
