//! Compiled schemas, kept for as long as they are the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::{Validator, ValidatorFactory};
use serde_json::{Map, Value};

use super::tool::ListedTool;

/// More than a list may have; past that the oldest are forgotten all at once.
const KEPT: usize = 8_192;

/// Checks arguments before a tool hears of them.
pub(super) struct Validators {
    factory: Arc<dyn ValidatorFactory>,
    compiled: Mutex<HashMap<String, Compiled>>,
}

/// A schema, and its validator unless it does not compile.
#[derive(Clone)]
struct Compiled {
    schema: Arc<Map<String, Value>>,
    validator: Option<Arc<dyn Validator>>,
}

impl Validators {
    pub(super) fn new(factory: Arc<dyn ValidatorFactory>) -> Self {
        Self {
            factory,
            compiled: Mutex::default(),
        }
    }

    /// What is wrong with the arguments, for the model. A schema that does not compile is left to the
    /// tool's own server, which knows what it meant.
    pub(super) fn complaint(
        &self,
        tool: &ListedTool,
        arguments: &Map<String, Value>,
    ) -> Option<String> {
        let own = tool.validator.as_ref().map(|it| Arc::clone(&it.0));
        let validator = own.or_else(|| self.validator(tool))?;
        let arguments = Value::Object(arguments.clone());
        if validator.is_valid(&arguments) {
            return None;
        }
        let mut lines = vec![format!("invalid arguments for `{}`:", tool.name)];
        lines.extend(validator.validate(&arguments).into_iter().map(|error| {
            let path = if error.detail.path.is_empty() {
                "/"
            } else {
                &error.detail.path
            };
            format!("- `{path}`: {}", error.message)
        }));
        Some(lines.join("\n"))
    }

    fn validator(&self, tool: &ListedTool) -> Option<Arc<dyn Validator>> {
        let lock = || self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&tool.name).cloned();
        if let Some(known) = known.filter(|it| Arc::ptr_eq(&it.schema, &tool.input_schema)) {
            return known.validator;
        }
        let schema = Value::Object((*tool.input_schema).clone());
        let validator = self
            .factory
            .compile(&schema)
            .inspect_err(
                |error| tracing::warn!(tool = tool.name, %error, "arguments are not checked"),
            )
            .ok();
        let mut compiled = lock();
        if compiled.len() >= KEPT {
            compiled.clear();
        }
        let entry = Compiled {
            schema: tool.input_schema.clone(),
            validator: validator.clone(),
        };
        compiled.insert(tool.name.clone(), entry);
        validator
    }
}
