//! Session state: calls that overlap, fail and succeed, and snapshots of what is left.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod interleavings;
mod snapshots;
mod transactions;

use std::sync::{Arc, Mutex};

use haft_core::{Resource, ResourceError, SessionState, Slice, SliceKind, TransactionId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Counter {
    value: i64,
}

impl Slice for Counter {
    const NAME: &'static str = "counter";
}

/// Grows with the session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Notes(Vec<u32>);

impl Slice for Notes {
    const NAME: &'static str = "notes";
    const GROWS: bool = true;
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Events(Vec<String>);

impl Slice for Events {
    const NAME: &'static str = "events";
    const KIND: SliceKind = SliceKind::Log;
}

fn session() -> SessionState {
    SessionState::builder()
        .slice::<Counter>()
        .slice::<Notes>()
        .slice::<Events>()
        .build()
        .unwrap()
}

fn counter(state: &SessionState) -> i64 {
    state.get::<Counter>().unwrap().value
}

/// Something outside: one text, and a record of what was asked of it.
#[derive(Default)]
struct Outside {
    name: &'static str,
    content: Mutex<String>,
    asked: Mutex<Vec<String>>,
    failing: Mutex<bool>,
}

impl Outside {
    fn named(name: &'static str, content: &str) -> Arc<Self> {
        Arc::new(Self {
            name,
            content: Mutex::new(content.to_owned()),
            ..Self::default()
        })
    }

    fn content(&self) -> String {
        self.content.lock().unwrap().clone()
    }

    fn answer(&self, what: String) -> Result<(), ResourceError> {
        self.asked.lock().unwrap().push(what);
        if *self.failing.lock().unwrap() {
            return Err(ResourceError::new("disk full"));
        }
        Ok(())
    }
}

impl Resource for Outside {
    fn name(&self) -> &str {
        self.name
    }

    fn capture(&self) -> Result<Value, ResourceError> {
        Ok(json!(self.content()))
    }

    fn restore(&self, captured: &Value) -> Result<(), ResourceError> {
        self.answer("restore".into())?;
        *self.content.lock().unwrap() = captured.as_str().unwrap().into();
        Ok(())
    }

    fn commit(&self, transaction: TransactionId) {
        let _ = self.answer(format!("commit {transaction:?}"));
    }

    fn rollback(&self, transaction: TransactionId) -> Result<(), ResourceError> {
        self.answer(format!("rollback {transaction:?}"))
    }
}
