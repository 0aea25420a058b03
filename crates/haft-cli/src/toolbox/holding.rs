//! Which tools are held back until a model searches for them, and what says so.

use std::sync::Arc;

use haft::{Catalog, Defer, LoopOptions, ToolDefinition, ToolKind, Value, json};

/// What holds for the tools of a configuration.
pub(super) struct Holding {
    options: LoopOptions,
    /// Whether there are too many of them, for `auto`.
    are_many: bool,
}

/// What holds for one of them.
pub(super) struct Held {
    pub(super) is_held: bool,
    /// The setting that decides, in words.
    pub(super) because: String,
}

impl Holding {
    /// For these tools together. What a model's context holds is not known here.
    pub(super) fn of(options: &LoopOptions, tools: &[Arc<ToolDefinition>]) -> Self {
        let binding = Catalog::new().snapshot().bind().without_tools();
        let binding = binding.with_tools(tools.iter().cloned()).build();
        Self {
            are_many: binding.is_ok_and(|it| options.defers(&it, None)),
            options: options.clone(),
        }
    }

    /// What holds for this one.
    pub(super) fn tool(&self, tool: &ToolDefinition) -> Held {
        let own = tool.annotations().defer;
        let decides = |word: &str| {
            let of_server = tool.name().as_str().split_once("__");
            match of_server.filter(|_| *tool.kind() == ToolKind::Mcp) {
                Some((label, _)) => format!("`defer = \"{word}\"` below `[mcp.{label}]`"),
                None => format!("the tool's own `defer = \"{word}\"`"),
            }
        };
        match (own, self.options.defer) {
            (Defer::Always, _) => Held::yes(decides("always")),
            (Defer::Never, _) => Held::no(decides("never")),
            (Defer::Auto, Defer::Always) => Held::yes(of_loop("always")),
            (Defer::Auto, Defer::Never) => Held::no(of_loop("never")),
            (Defer::Auto, Defer::Auto) if self.are_many => Held::yes(format!(
                "{}, and there are more than {}",
                of_loop("auto"),
                self.limit()
            )),
            (Defer::Auto, Defer::Auto) => Held::no(of_loop("auto") + ", as long as there are few"),
        }
    }

    fn limit(&self) -> String {
        let percent = format!(
            "{} % of a context of 200,000 tokens holds",
            self.options.defer_percent
        );
        match self.options.defer_above {
            Some(count) => format!("{count}, or more than {percent}"),
            None => percent,
        }
    }

    /// What the configuration says for tools that say nothing.
    pub(super) fn usual(&self) -> &'static str {
        match self.options.defer {
            Defer::Auto => "auto",
            Defer::Always => "always",
            Defer::Never => "never",
        }
    }
}

fn of_loop(word: &str) -> String {
    format!("`defer = \"{word}\"` of `[loop]`")
}

impl Held {
    fn yes(because: String) -> Self {
        Self {
            is_held: true,
            because,
        }
    }

    fn no(because: String) -> Self {
        Self {
            is_held: false,
            because,
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({"is_held_back": self.is_held, "because": self.because})
    }
}
