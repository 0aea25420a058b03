//! Hydration of one typed tool, without a catalogue.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use haft_core::{
    ErrorCode, Fingerprint, HydrationError, HydrationResult, RawArguments, Stage, Tool, ToolCall,
};

use crate::hydrator::{CallIds, Hydrator};
use crate::prepared::{Compile, PreparedTool, ValidatorCache};

/// One prepared tool per type: as many as the program has.
static PREPARED: LazyLock<Mutex<HashMap<Fingerprint, PreparedTool>>> =
    LazyLock::new(Mutex::default);

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
    let definition = T::try_definition().map_err(ToString::to_string)?;
    let mut known = PREPARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(tool) = known.get(definition.fingerprint()) {
        return Ok(tool.clone());
    }
    let object = T::into_object().map_err(|error| error.to_string())?;
    let tool = PreparedTool::new(object, &ValidatorCache::default(), Compile::Early)
        .map_err(|error| error.to_string())?;
    known.insert(definition.fingerprint().clone(), tool.clone());
    Ok(tool)
}
