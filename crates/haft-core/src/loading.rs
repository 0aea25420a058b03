//! Tools that are part of a request's list and still not shown to the model.
//!
//! Some providers take a definition that the model shall get to know later. The list then is the same
//! from the first request to the last, which keeps what they have cached of everything behind it.

use serde_json::Value;

use crate::item::FunctionCallOutput;

/// When a model gets to see a tool of a request's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Loading {
    /// With the list.
    #[default]
    Listed,
    /// When the provider's own search has found it.
    Searched,
    /// When the output of a call refers to it: see [`FunctionCallOutput::referring_to`].
    Referenced,
}

impl Loading {
    /// Whether the list alone does not show it.
    ///
    /// ```
    /// use haft_core::Loading;
    /// assert!(Loading::Searched.is_deferred() && !Loading::Listed.is_deferred());
    /// ```
    pub fn is_deferred(self) -> bool {
        self != Self::Listed
    }
}

/// Under which an output keeps the names of the tools that it refers to.
///
/// It is haft's own note: adapters of providers that know no references leave it out.
pub const TOOL_REFERENCES: &str = "tool_references";

impl FunctionCallOutput {
    /// The same output, by which the model gets to know these tools as well.
    ///
    /// ```
    /// use haft_core::FunctionCallOutput;
    /// let output = FunctionCallOutput::new("call_1", "found").referring_to(["ping"]);
    /// assert_eq!(output.tool_references().collect::<Vec<_>>(), ["ping"]);
    /// ```
    #[must_use]
    pub fn referring_to<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let names: Vec<Value> = names.into_iter().map(|name| name.into().into()).collect();
        if !names.is_empty() {
            self.extra.insert(TOOL_REFERENCES.to_owned(), names.into());
        }
        self
    }

    /// The tools that the model gets to know by this output, in order.
    pub fn tool_references(&self) -> impl Iterator<Item = &str> {
        let names = self.extra.get(TOOL_REFERENCES).and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str)
    }
}
