//! Which tool a call is for.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::backend::{Backend, BackendError};
use super::caller::Caller;
use super::facade;
use super::gateway::Gateway;
use super::outcome::CallOutcome;
use super::tool::ListedTool;

/// What a call is for.
pub(super) enum Target {
    /// A tool of the backend, with these arguments.
    Tool(Arc<ListedTool>, Map<String, Value>),
    /// Something that the gateway has answered itself.
    Answered(CallOutcome),
}

/// Finds out what a call is for. Every tool that the caller may use can be called by its exposed name,
/// be it listed or behind the facade.
pub(super) async fn find<B: Backend>(
    gateway: &Gateway<B>,
    caller: &Caller,
    name: &str,
    arguments: Map<String, Value>,
) -> Result<Target, BackendError> {
    if facade::find(name).is_some() && gateway.has_facade(caller).await? {
        return match name {
            facade::CALL => behind_facade(gateway, caller, arguments).await,
            facade::SEARCH => {
                let view = gateway.visible(caller).await?;
                let servers = gateway.servers(caller);
                let search = gateway.core.search.as_ref();
                let outcome = facade::search(arguments, &view.tools, &servers, search);
                Ok(Target::Answered(outcome))
            }
            _ => {
                let view = gateway.visible(caller).await?;
                Ok(Target::Answered(facade::describe(arguments, &view)))
            }
        };
    }
    match gateway.resolve(caller, name).await {
        Ok(tool) => Ok(checked(gateway, tool, arguments)),
        // The model reads why, which a client may keep to itself where it is an error of the protocol.
        Err(error @ BackendError::ServerUnavailable { .. }) => {
            Ok(Target::Answered(CallOutcome::error(error.to_string())))
        }
        Err(error) => Err(error),
    }
}

/// What `call_tool` is for. What is wrong with it is for the model, which has no list to look at.
async fn behind_facade<B: Backend>(
    gateway: &Gateway<B>,
    caller: &Caller,
    arguments: Map<String, Value>,
) -> Result<Target, BackendError> {
    let (name, arguments) = match facade::target(arguments) {
        Ok(target) => target,
        Err(text) => return Ok(Target::Answered(CallOutcome::error(text))),
    };
    let text = match gateway.resolve(caller, &name).await {
        Ok(tool) => return Ok(checked(gateway, tool, arguments)),
        Err(BackendError::UnknownTool(_)) => {
            let view = gateway.visible(caller).await?;
            facade::unknown(&name, &view.tools)
        }
        Err(error @ BackendError::ServerUnavailable { .. }) => error.to_string(),
        Err(error) => return Err(error),
    };
    Ok(Target::Answered(CallOutcome::error(text)))
}

/// The tool, unless the arguments do not fit.
fn checked<B: Backend>(
    gateway: &Gateway<B>,
    tool: Arc<ListedTool>,
    arguments: Map<String, Value>,
) -> Target {
    let validators = gateway.core.validators.as_ref();
    match validators.and_then(|it| it.complaint(&tool, &arguments)) {
        Some(complaint) => Target::Answered(CallOutcome::error(complaint)),
        None => Target::Tool(tool, arguments),
    }
}
