//! What a rendering depends on, beside the prompt.

use std::sync::Arc;

use haft_core::{SessionState, Slice, StateError, Transaction};

use super::overrides::Overrides;
use super::params::Params;
use super::visibility::Visibility;

/// Session state, to look at.
///
/// It is that of the session, or what one call sees of it with its own changes on it. Where a
/// prompt is rendered without either, every slice is reported as not registered.
#[derive(Clone, Copy, Default)]
pub struct StateView<'a>(Source<'a>);

#[derive(Clone, Copy, Default)]
enum Source<'a> {
    #[default]
    None,
    Session(&'a SessionState),
    Call(&'a Transaction),
}

impl StateView<'_> {
    /// The value of a slice.
    pub fn get<T: Slice>(&self) -> Result<Arc<T>, StateError> {
        match self.0 {
            Source::None => Err(StateError::NotRegistered { slice: T::NAME }),
            Source::Session(state) => state.get(),
            Source::Call(call) => call.get(),
        }
    }
}

impl<'a> From<&'a SessionState> for StateView<'a> {
    fn from(state: &'a SessionState) -> Self {
        Self(Source::Session(state))
    }
}

impl<'a> From<&'a Transaction> for StateView<'a> {
    fn from(call: &'a Transaction) -> Self {
        Self(Source::Call(call))
    }
}

/// Whose tools come with a section that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Collect {
    /// Those of sections whose content is shown: one that stays summarized has shown nothing yet.
    #[default]
    Shown,
    /// Those of every enabled section below it as well.
    All,
}

/// What a rendering depends on, beside the prompt: the same for a prompt and for reading in it.
#[derive(Clone, Default)]
pub struct Context<'a> {
    /// For the placeholders.
    pub params: Params,
    /// For predicates.
    pub state: StateView<'a>,
    /// Overrides of this rendering only; they go before those of the conversation.
    pub passed: Overrides,
    /// Overrides that are stored in the conversation's state. A section that is `Full` here was
    /// opened explicitly.
    pub stored: Overrides,
    /// Whose tools come with an opened section.
    pub collect: Collect,
}

impl<'a> Context<'a> {
    /// No parameters, no state, no overrides.
    pub fn new() -> Self {
        Self::default()
    }

    /// Over this state; a `&SessionState` or a `&Transaction`.
    #[must_use]
    pub fn state(mut self, state: impl Into<StateView<'a>>) -> Self {
        self.state = state.into();
        self
    }

    /// With these parameters.
    #[must_use]
    pub fn params(mut self, params: Params) -> Self {
        self.params = params;
        self
    }

    /// With one parameter more.
    #[must_use]
    pub fn param(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.params.set(name, value);
        self
    }

    /// With these overrides for this rendering only.
    #[must_use]
    pub fn passed(mut self, overrides: Overrides) -> Self {
        self.passed = overrides;
        self
    }

    /// With these overrides as the conversation's.
    #[must_use]
    pub fn stored(mut self, overrides: Overrides) -> Self {
        self.stored = overrides;
        self
    }

    /// With this section opened in the conversation.
    #[must_use]
    pub fn opened(mut self, path: impl Into<String>) -> Self {
        self.stored.set(path, Visibility::Full);
        self
    }

    /// With this choice of the tools that come along.
    #[must_use]
    pub fn collect(mut self, collect: Collect) -> Self {
        self.collect = collect;
        self
    }
}
