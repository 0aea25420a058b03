//! What a running tool knows beside its arguments.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::cancel::Cancel;
use crate::output::ToolError;
use crate::progress::{ProgressSink, ToolProgress};
use crate::state::{Slice, Transaction};

/// The host's side of a call: typed state, the call's identity, what it may do.
///
/// A tool takes it as `&ToolContext`; it never appears in the schema, so nothing the model writes
/// can reach it. Clones share the same content.
///
/// ```
/// use haft_core::ToolContext;
///
/// struct Database { rows: usize }
///
/// let context = ToolContext::builder().state(Database { rows: 3 }).build();
/// assert_eq!(context.state::<Database>().unwrap().rows, 3);
/// assert!(context.state::<String>().is_err());
/// ```
#[derive(Clone, Default)]
pub struct ToolContext {
    state: Arc<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    call: Arc<CallIdentity>,
    read_only: bool,
    keeps_long_results: bool,
    cancel: Cancel,
    progress: Option<Arc<dyn ProgressSink>>,
    transaction: Option<Transaction>,
}

#[derive(Default)]
struct CallIdentity {
    call_id: String,
    tool_name: String,
}

impl ToolContext {
    /// Starts a context.
    pub fn builder() -> ToolContextBuilder {
        ToolContextBuilder::default()
    }

    /// The state of type `T` that the host put there.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<&T, ToolError> {
        self.state
            .get(&TypeId::of::<T>())
            .and_then(|state| state.downcast_ref())
            .ok_or_else(|| missing::<T>())
    }

    /// The same state, shared: for work that outlives the call.
    pub fn shared<T: Send + Sync + 'static>(&self) -> Result<Arc<T>, ToolError> {
        self.state
            .get(&TypeId::of::<T>())
            .and_then(|state| Arc::clone(state).downcast().ok())
            .ok_or_else(|| missing::<T>())
    }

    /// The id of this call; empty outside a run.
    pub fn call_id(&self) -> &str {
        &self.call.call_id
    }

    /// The name under which the tool was called; empty outside a run.
    pub fn tool_name(&self) -> &str {
        &self.call.tool_name
    }

    /// Whether this call was let through only because it changes nothing.
    pub fn read_only(&self) -> bool {
        self.read_only
    }

    /// Whether a long result is put away as a whole and stays readable piece by piece. A tool that would
    /// otherwise shorten its result need not.
    pub fn keeps_long_results(&self) -> bool {
        self.keeps_long_results
    }

    /// The signal that this call shall stop. A call that goes on is dropped at its next `await`;
    /// one that holds something outside this process can let go of it first.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Tells whoever watches the run how far this call is. Never part of the conversation.
    pub fn progress(&self, progress: ToolProgress) {
        if let Some(sink) = &self.progress {
            sink.report(&self.call.call_id, progress);
        }
    }

    /// Shows whoever watches the run a piece of output as it comes. Never part of the conversation.
    pub fn output_chunk(&self, text: impl Into<String>) {
        self.progress(ToolProgress::chunk(text));
    }

    /// A slice of the session's state as this call sees it, its own changes included.
    pub fn slice<T: Slice>(&self) -> Result<Arc<T>, ToolError> {
        Ok(self.journal()?.get::<T>()?)
    }

    /// Changes a slice of the session's state. The change is kept when the call succeeds and
    /// undone when it fails; see [`Transaction::update`] for what `change` may do.
    pub fn update<T: Slice>(
        &self,
        change: impl Fn(&mut T) + Send + Sync + 'static,
    ) -> Result<(), ToolError> {
        if self.read_only {
            return Err(ToolError::new(format!(
                "this call may only read: the slice `{}` was not changed",
                T::NAME
            )));
        }
        Ok(self.journal()?.update(change)?)
    }

    /// The journal of this call's changes; absent outside a run.
    pub fn transaction(&self) -> Option<&Transaction> {
        self.transaction.as_ref()
    }

    fn journal(&self) -> Result<&Transaction, ToolError> {
        self.transaction.as_ref().ok_or_else(|| {
            ToolError::new(
                "there is no session state outside a run: run the tool in one, or give the \
                 context a transaction",
            )
        })
    }

    /// The same context, its changes of session state kept in this journal.
    #[must_use]
    pub fn with_transaction(mut self, transaction: Transaction) -> Self {
        self.transaction = Some(transaction);
        self
    }

    /// The same context, stopped by this signal.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// The same context, whose host keeps long results as a whole, or does not.
    #[must_use]
    pub fn with_long_results(mut self, are_kept: bool) -> Self {
        self.keeps_long_results = are_kept;
        self
    }

    /// The same context, with somebody who watches.
    #[must_use]
    pub fn with_progress(mut self, sink: Arc<dyn ProgressSink>) -> Self {
        self.progress = Some(sink);
        self
    }

    /// The context of one call, sharing this one's state.
    #[must_use]
    pub fn for_call(
        &self,
        tool_name: impl Into<String>,
        call_id: impl Into<String>,
        access: Access,
    ) -> Self {
        Self {
            state: Arc::clone(&self.state),
            call: Arc::new(CallIdentity {
                call_id: call_id.into(),
                tool_name: tool_name.into(),
            }),
            read_only: access == Access::ReadOnly,
            keeps_long_results: self.keeps_long_results,
            cancel: self.cancel.clone(),
            progress: self.progress.clone(),
            // A journal belongs to one call.
            transaction: None,
        }
    }
}

/// What a call may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read only.
    ReadOnly,
    /// Whatever the tool does.
    Full,
}

fn missing<T>() -> ToolError {
    let name = type_name::<T>();
    ToolError::new(format!(
        "no state of type `{name}` in this context: the host must add it with \
         `ToolContext::builder().state(…)`"
    ))
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // State may hold secrets: only how much of it there is.
        f.debug_struct("ToolContext")
            .field("tool_name", &self.call.tool_name)
            .field("call_id", &self.call.call_id)
            .field("read_only", &self.read_only)
            .field("state", &self.state.len())
            .finish_non_exhaustive()
    }
}

/// Collects the state of a [`ToolContext`].
#[derive(Default)]
#[must_use = "a context exists only after `build`"]
pub struct ToolContextBuilder {
    state: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

impl ToolContextBuilder {
    /// Adds state, found again by its type; a second one of the same type replaces the first.
    pub fn state<T: Send + Sync + 'static>(self, state: T) -> Self {
        self.shared(Arc::new(state))
    }

    /// Adds state that the host keeps a share of.
    pub fn shared<T: Send + Sync + 'static>(mut self, state: Arc<T>) -> Self {
        self.state.insert(TypeId::of::<T>(), state);
        self
    }

    /// The context.
    pub fn build(self) -> ToolContext {
        ToolContext {
            state: Arc::new(self.state),
            ..ToolContext::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_found_by_its_type() {
        let context = ToolContext::builder().state(7_u8).state("x").build();
        assert_eq!(context.state::<u8>(), Ok(&7));
        assert_eq!(context.shared::<&str>().map(|text| *text), Ok("x"));
    }

    #[test]
    fn missing_state_names_the_type_and_the_remedy() {
        let error = ToolContext::default().state::<u8>().unwrap_err();
        assert!(error.message().contains("`u8`") && error.message().contains(".state("));
    }

    #[test]
    fn debug_output_does_not_show_state() {
        let context = ToolContext::builder()
            .state(String::from("hunter2"))
            .build();
        assert!(!format!("{context:?}").contains("hunter2"));
    }

    #[test]
    fn the_context_of_a_call_shares_the_state() {
        let context = ToolContext::builder().state(7_u8).build();
        let call = context.for_call("get", "call_1", Access::ReadOnly);
        assert_eq!(
            (call.tool_name(), call.call_id(), call.read_only()),
            ("get", "call_1", true)
        );
        assert_eq!(call.state::<u8>(), Ok(&7));
    }
}
