//! A tool with its validator, compiled early or late, once.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use haft_core::{
    CompiledAt, Fingerprint, SchemaError, ToolDefinition, ToolObject, Validator, ValidatorFactory,
    caught, cut,
};

use crate::json_schema::JsonSchemaFactory;

/// Compiled validators by definition: each compiled at most once, also under concurrency, and
/// kept as long as a tool uses it.
pub struct ValidatorCache {
    factory: Arc<dyn ValidatorFactory>,
    slots: Mutex<HashMap<Fingerprint, Weak<Slot>>>,
}

type Slot = OnceLock<Result<Arc<dyn Validator>, SchemaError>>;

impl ValidatorCache {
    /// A cache over one factory.
    pub fn new(factory: Arc<dyn ValidatorFactory>) -> Self {
        Self {
            factory,
            slots: Mutex::default(),
        }
    }

    /// The factory.
    pub fn factory(&self) -> &Arc<dyn ValidatorFactory> {
        &self.factory
    }

    fn slot(&self, definition: &ToolDefinition) -> Arc<Slot> {
        // A panic while the lock is held leaves the map as it was: nothing is half-inserted.
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(definition.fingerprint()).and_then(Weak::upgrade) {
            return slot;
        }
        if slots.len() == slots.capacity() {
            slots.retain(|_, slot| slot.strong_count() > 0);
        }
        let slot = Arc::new(Slot::new());
        slots.insert(definition.fingerprint().clone(), Arc::downgrade(&slot));
        slot
    }
}

impl Default for ValidatorCache {
    /// A cache over the bundled validator.
    fn default() -> Self {
        Self::new(Arc::new(JsonSchemaFactory))
    }
}

impl fmt::Debug for ValidatorCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValidatorCache({})", self.factory.name())
    }
}

/// When validators are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compile {
    /// At registration: a broken schema is a registration error.
    #[default]
    Early,
    /// At the first call: a broken schema is an error of that call. For large remote catalogues.
    Late,
}

/// A tool ready to be hydrated.
#[derive(Clone)]
pub struct PreparedTool {
    tool: Arc<dyn ToolObject>,
    factory: Arc<dyn ValidatorFactory>,
    check: Check,
}

#[derive(Clone)]
enum Check {
    /// The tool opted out of a schema.
    Nothing,
    Attached(Arc<dyn Validator>),
    Compiled(Arc<Slot>, CompiledAt),
}

impl PreparedTool {
    /// Prepares a tool. With [`Compile::Early`] a schema that does not compile is an error here.
    pub fn new(
        tool: Arc<dyn ToolObject>,
        cache: &ValidatorCache,
        compile: Compile,
    ) -> Result<Self, SchemaError> {
        let check = if let Some(validator) = tool.validator() {
            Check::Attached(validator)
        } else if tool.definition().parameters().is_none() {
            Check::Nothing
        } else {
            let compiled_at = match compile {
                Compile::Early => CompiledAt::Registration,
                Compile::Late => CompiledAt::Hydration,
            };
            Check::Compiled(cache.slot(tool.definition()), compiled_at)
        };
        let prepared = Self {
            tool,
            factory: Arc::clone(cache.factory()),
            check,
        };
        if compile == Compile::Early {
            prepared.validator().transpose()?;
        }
        Ok(prepared)
    }

    /// The same tool with a validator of its own, which goes before the factory's.
    #[must_use]
    pub fn with_validator(&self, validator: Arc<dyn Validator>) -> Self {
        Self {
            check: Check::Attached(validator),
            ..self.clone()
        }
    }

    /// Another presentation of the same tool, for example under another name: same schema, same
    /// validator.
    #[must_use]
    pub fn presented_as(&self, tool: Arc<dyn ToolObject>) -> Self {
        Self {
            tool,
            ..self.clone()
        }
    }

    /// The tool.
    pub fn tool(&self) -> &Arc<dyn ToolObject> {
        &self.tool
    }

    /// Its definition.
    pub fn definition(&self) -> &Arc<ToolDefinition> {
        self.tool.definition()
    }

    /// Its validator, compiled now if it was not yet; none for a tool without schema.
    pub fn validator(&self) -> Option<Result<Arc<dyn Validator>, SchemaError>> {
        let slot = match &self.check {
            Check::Nothing => return None,
            Check::Attached(validator) => return Some(Ok(Arc::clone(validator))),
            Check::Compiled(slot, _) => slot,
        };
        let schema = self.definition().parameters()?;
        let compiled = slot.get_or_init(|| {
            caught(|| self.factory.compile(schema)).unwrap_or_else(|panic| {
                Err(SchemaError {
                    reason: format!("the validator panicked: {panic}"),
                })
            })
        });
        Some(compiled.clone())
    }

    /// How provenance names its validator: a factory's own name only for what the factory made.
    pub(crate) fn validator_identity(&self) -> (String, Option<String>) {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        match &self.check {
            Check::Attached(validator) => (
                owned(validator.name()).unwrap_or_else(|| "attached".to_owned()),
                owned(validator.version()),
            ),
            Check::Nothing | Check::Compiled(..) => (
                self.factory.name().to_owned(),
                owned(self.factory.version()),
            ),
        }
    }

    /// The factory for parts of its schema.
    pub(crate) fn factory(&self) -> &dyn ValidatorFactory {
        &*self.factory
    }

    /// When its validator was or will be compiled.
    pub(crate) fn compiled_at(&self) -> CompiledAt {
        match &self.check {
            Check::Nothing | Check::Attached(_) => CompiledAt::Registration,
            Check::Compiled(_, compiled_at) => *compiled_at,
        }
    }
}

impl fmt::Debug for PreparedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PreparedTool({})", self.definition().name())
    }
}

/// The tools of one request, by the names that were sent with it.
///
/// Calls are resolved in the table captured when the request was made, not in whatever a catalogue
/// holds by the time the answer arrives. What the request does not admit is refused here, before
/// anything is made of it.
pub trait ToolTable {
    /// Whether a call of this name may become a tool.
    fn admission(&self, wire_name: &str) -> Admission<'_>;
}

/// Whether a call may become a tool.
#[derive(Debug)]
pub enum Admission<'t> {
    /// It may become this one.
    Admitted(&'t PreparedTool),
    /// It may not.
    Refused {
        /// The tool that bears the name, if one does.
        tool: Option<&'t PreparedTool>,
        /// What the model reads.
        text: String,
    },
}

impl ToolTable for [PreparedTool] {
    fn admission(&self, wire_name: &str) -> Admission<'_> {
        let mut tools = self.iter();
        match tools.find(|tool| tool.definition().name().as_str() == wire_name) {
            Some(tool) => Admission::Admitted(tool),
            None => Admission::Refused {
                tool: None,
                text: format!("Unknown tool '{}'.", cut(wire_name)),
            },
        }
    }
}

impl<T: ToolTable + ?Sized> ToolTable for Arc<T> {
    fn admission(&self, wire_name: &str) -> Admission<'_> {
        (**self).admission(wire_name)
    }
}
