//! What a client sees of the catalogue.

use std::sync::Arc;

use super::tool::ListedTool;

/// What a client sees of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Every tool.
    Passthrough,
    /// `search_tools`, `describe_tool` and `call_tool`, and the tools that are always listed.
    Facade,
    /// Every tool as long as they are few, otherwise the facade.
    Auto(Threshold),
}

impl Default for Mode {
    fn default() -> Self {
        Self::Auto(Threshold::default())
    }
}

/// Up to where tools are few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threshold {
    /// So many tools.
    pub tools: usize,
    /// So many hundredths of the context window.
    pub percent: usize,
    /// The context window that is assumed, in tokens.
    pub context_tokens: usize,
}

impl Default for Threshold {
    fn default() -> Self {
        Self {
            tools: 30,
            percent: 5,
            context_tokens: 200_000,
        }
    }
}

impl Threshold {
    /// Definitions are text of about four bytes a token; schemas have rather more.
    const BYTES_PER_TOKEN: usize = 4;

    fn exceeded_by(&self, tools: &[Arc<ListedTool>]) -> bool {
        if tools.len() > self.tools {
            return true;
        }
        let bytes: usize = tools.iter().map(|tool| tool.weight()).sum();
        let tokens = bytes / Self::BYTES_PER_TOKEN;
        tokens > self.context_tokens.saturating_mul(self.percent) / 100
    }
}

impl Mode {
    /// Whether these tools are behind the facade.
    pub(super) fn hides(&self, tools: &[Arc<ListedTool>]) -> bool {
        match self {
            Self::Passthrough => false,
            Self::Facade => true,
            Self::Auto(threshold) => threshold.exceeded_by(tools),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn tools(count: usize, description: &str) -> Vec<Arc<ListedTool>> {
        let tool = |n| ListedTool::new(format!("t{n}"), Map::new()).described(description);
        (0..count).map(|n| Arc::new(tool(n))).collect()
    }

    #[test]
    fn thirty_small_tools_are_listed_and_one_more_is_too_many() {
        let auto = Mode::default();
        assert!(!auto.hides(&tools(30, "small")));
        assert!(auto.hides(&tools(31, "small")));
        assert!(Mode::Facade.hides(&[]));
        assert!(!Mode::Passthrough.hides(&tools(5_000, "small")));
    }

    #[test]
    fn a_twentieth_of_the_window_is_too_much() {
        let auto = Mode::default();
        assert!(!auto.hides(&tools(2, &"x".repeat(19_900))));
        assert!(auto.hides(&tools(2, &"x".repeat(20_100))));
    }
}
