//! Values that name something: functions, models, tools, stores.

use std::sync::Arc;

use super::Value;
use super::array::drop_flat;

/// A function of the program, with what it captured.
#[derive(Debug, Clone)]
pub struct Closure {
    /// Its number in the program.
    pub function: u32,
    /// Its name.
    pub name: Arc<str>,
    /// What it captured when it was made.
    pub captures: Vec<Value>,
}

impl Drop for Closure {
    fn drop(&mut self) {
        if self.captures.iter().any(Value::is_container) {
            drop_flat(self.captures.drain(..));
        }
    }
}

/// `from..to`, either side may be open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// Where it begins.
    pub from: Option<i64>,
    /// Where it ends.
    pub to: Option<i64>,
    /// Whether the end belongs to it.
    pub inclusive: bool,
}

impl Range {
    /// The first number and the last; none if it holds none. An open beginning is 0; an open end has no
    /// end, but the largest number ends a loop over it.
    pub fn bounds(&self) -> Option<(i64, i64)> {
        let from = self.from.unwrap_or(0);
        let last = match (self.to, self.inclusive) {
            (None, _) => i64::MAX,
            (Some(to), true) => to,
            (Some(to), false) => to.checked_sub(1)?,
        };
        (from <= last).then_some((from, last))
    }

    /// How many numbers it holds; `u64::MAX` also if it is all of them, which are one more.
    pub fn count(&self) -> u64 {
        let count = |(from, last): (i64, i64)| last.abs_diff(from).saturating_add(1);
        self.bounds().map_or(0, count)
    }

    /// How many numbers it holds, as far as an Int can say it.
    pub fn len(&self) -> i64 {
        i64::try_from(self.count()).unwrap_or(i64::MAX)
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a reference refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names say it
pub enum RefKind {
    Model,
    Schema,
    Tool,
    Mcp,
    HashMap,
    Memory,
    Ledger,
    Pipeline,
    Agent,
}

impl RefKind {
    /// What `typeof` gives.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Model => "ModelRef",
            Self::Schema => "SchemaRef",
            Self::Tool | Self::Mcp => "Function",
            Self::HashMap => "HashMapRef",
            Self::Memory => "MemoryRef",
            Self::Ledger => "LedgerRef",
            Self::Pipeline => "PipelineRef",
            Self::Agent => "AgentRef",
        }
    }

    /// The word in its display form.
    pub fn word(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Schema => "schema",
            Self::Tool | Self::Mcp => "fn",
            Self::HashMap => "hashmap",
            Self::Memory => "memory",
            Self::Ledger => "ledger",
            Self::Pipeline => "pipeline",
            Self::Agent => "agent",
        }
    }
}

/// A model, schema, tool, server, store, pipeline or agent, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// What it is.
    pub kind: RefKind,
    /// Its name; of a scope of a ledger the ledger's name, a zero byte, and the scope's.
    pub name: Arc<str>,
}

/// A model or an agent with what one call of it shall have. Every method gives a new one.
#[derive(Debug, Clone)]
pub struct Builder {
    /// The model or agent.
    pub target: Arc<Reference>,
    /// The memory to read and, if `true`, to append to.
    pub memory: Option<(Arc<str>, bool)>,
    /// Tools and servers of `with_tools`, in the order of the calls.
    pub tools: Vec<Arc<Reference>>,
    /// Whether `without_tools` was called.
    pub without_tools: bool,
    /// What `with_context` was given.
    pub context: Option<Value>,
}

impl Drop for Builder {
    fn drop(&mut self) {
        drop_flat(self.context.take().into_iter());
    }
}

impl Builder {
    /// A builder that changes nothing yet.
    pub fn new(target: Arc<Reference>) -> Self {
        Self {
            target,
            memory: None,
            tools: Vec::new(),
            without_tools: false,
            context: None,
        }
    }
}
