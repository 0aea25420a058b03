//! Hydration of one typed tool, without a catalogue.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use haft_core::{ErrorCode, HydrationError, HydrationResult, RawArguments, Stage, Tool, ToolCall};

use crate::hydrator::{CallIds, Hydrator};
use crate::prepared::{Compile, PreparedTool, ValidatorCache};

/// One prepared tool per type, and not per definition: two types may have equal definitions.
static PREPARED: LazyLock<Mutex<HashMap<TypeId, PreparedTool>>> = LazyLock::new(Mutex::default);

/// Hydrates calls of one typed tool.
///
/// ```ignore
/// let result = get_weather::hydrate(r#"{"city": "Oslo"}"#);
/// ```
pub trait Hydrate: Tool + Sized {
    /// Parses and validates arguments and makes a call of them; repair off.
    fn hydrate(arguments: impl Into<RawArguments>) -> HydrationResult {
        let name = Self::try_definition().map_or("", |definition| definition.name().as_str());
        let call = ToolCall::new(name, arguments);
        let (tools, broken) = match prepared::<Self>() {
            Ok(tool) => (vec![tool], None),
            Err(reason) => (Vec::new(), Some(reason)),
        };
        let mut result = Hydrator::new().hydrate(&call, &tools[..], &mut CallIds::default());
        if let Some(message) = broken {
            result.errors = vec![HydrationError {
                stage: Stage::Validate,
                message,
                detail: ErrorCode::BrokenSchema,
            }];
        }
        result
    }
}

impl<T: Tool> Hydrate for T {}

fn prepared<T: Tool>() -> Result<PreparedTool, String> {
    let key = TypeId::of::<T>();
    let known = || PREPARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(tool) = known().get(&key) {
        return Ok(tool.clone());
    }
    // Compiled without the lock: two first calls may both do it, and one of them is kept.
    let object = T::into_object().map_err(|error| error.to_string())?;
    let tool = PreparedTool::new(object, &ValidatorCache::default(), Compile::Early)
        .map_err(|error| error.to_string())?;
    Ok(known().entry(key).or_insert(tool).clone())
}
