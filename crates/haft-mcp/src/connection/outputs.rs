//! Whether a result is what its tool promises.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::{Validator, ValidatorFactory, caught};
use serde_json::Value;

use crate::listing::ToolList;
use crate::outcome::ToolOutcome;
use crate::text::visible;

/// How many problems are told.
const TOLD: usize = 5;

/// What the tools of one server promise to give.
pub(super) struct Outputs {
    factory: Option<Arc<dyn ValidatorFactory>>,
    promised: Mutex<HashMap<String, Promise>>,
}

/// A schema and what checks it.
struct Promise {
    schema: Arc<Value>,
    check: Check,
}

/// What checks a schema: made when it is first needed.
#[derive(Clone)]
enum Check {
    NotMade,
    Impossible,
    Made(Arc<dyn Validator>),
}

impl Promise {
    fn new(schema: &Arc<Value>) -> Self {
        Self {
            schema: Arc::clone(schema),
            check: Check::NotMade,
        }
    }
}

impl Outputs {
    pub(super) fn new(factory: Option<Arc<dyn ValidatorFactory>>) -> Self {
        Self {
            factory,
            promised: Mutex::default(),
        }
    }

    fn promised(&self) -> MutexGuard<'_, HashMap<String, Promise>> {
        self.promised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what the tools promise now.
    pub(super) fn learn(&self, list: &ToolList) {
        if self.factory.is_none() {
            return;
        }
        let promise = |tool: &crate::tool::ToolDef| {
            let schema = tool.output_schema.as_ref()?;
            Some((tool.name.clone(), Promise::new(schema)))
        };
        *self.promised() = list.tools.iter().filter_map(promise).collect();
    }

    /// What is wrong with a result. `promised`: what the tool promises, where the caller knows it.
    pub(super) fn complaint(
        &self,
        tool: &str,
        promised: Option<&Arc<Value>>,
        outcome: &ToolOutcome,
    ) -> Option<String> {
        // What failed has nothing to show.
        if outcome.is_error {
            return None;
        }
        let validator = self.validator(tool, promised)?;
        let Some(structured) = &outcome.structured else {
            return Some("the result has no structured content, which the tool promises".into());
        };
        let problems = caught(|| validator.validate(structured));
        let problems = problems.unwrap_or_else(|panic| {
            tracing::error!(tool, panic, "a validator panicked");
            Vec::new()
        });
        if problems.is_empty() {
            return None;
        }
        let told = problems.into_iter().take(TOLD).map(|error| {
            let path = Some(error.detail.path).filter(|path| !path.is_empty());
            let path = path.unwrap_or_else(|| "/".into());
            format!("`{}`: {}", visible(&path), visible(&error.message))
        });
        let told: Vec<_> = told.collect();
        Some(format!(
            "the structured content does not fit the tool's `outputSchema`: {}",
            told.join("; ")
        ))
    }

    fn validator(&self, tool: &str, promised: Option<&Arc<Value>>) -> Option<Arc<dyn Validator>> {
        let factory = self.factory.as_ref()?;
        let mut known = self.promised();
        if let Some(given) = promised {
            let is_known = known
                .get(tool)
                .is_some_and(|it| Arc::ptr_eq(&it.schema, given) || it.schema == *given);
            if !is_known {
                known.insert(tool.to_owned(), Promise::new(given));
            }
        }
        let promise = known.get_mut(tool)?;
        if matches!(promise.check, Check::NotMade) {
            promise.check = made(tool, &**factory, &promise.schema);
        }
        match &promise.check {
            Check::Made(validator) => Some(Arc::clone(validator)),
            Check::NotMade | Check::Impossible => None,
        }
    }
}

fn made(tool: &str, factory: &dyn ValidatorFactory, schema: &Value) -> Check {
    let reason = match caught(|| factory.compile(schema)) {
        Ok(Ok(validator)) => return Check::Made(validator),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => panic,
    };
    tracing::warn!(tool, reason, "results are not checked");
    Check::Impossible
}
