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
    let core = &gateway.core;
    if facade::find(name).is_some() {
        let tools = gateway.visible(caller).await?.tools;
        if core.mode.hides(&tools) {
            return Ok(match name {
                facade::SEARCH => {
                    let search = core.search.as_ref();
                    Target::Answered(facade::search(arguments, &tools, search))
                }
                facade::DESCRIBE => Target::Answered(facade::describe(arguments, &tools)),
                _ => behind_facade(gateway, arguments, &tools),
            });
        }
    }
    let mut found = gateway.find(caller, name);
    if found.is_none() {
        // Perhaps its server has not been heard of yet.
        let tools = gateway.visible(caller).await?.tools;
        found = tools.into_iter().find(|tool| tool.name == name);
    }
    let tool = found.ok_or_else(|| BackendError::UnknownTool(name.to_owned()))?;
    Ok(checked(gateway, tool, arguments))
}

/// What `call_tool` is for. What is wrong with it is for the model, which has no list to look at.
fn behind_facade<B: Backend>(
    gateway: &Gateway<B>,
    arguments: Map<String, Value>,
    tools: &[Arc<ListedTool>],
) -> Target {
    match facade::target(arguments) {
        Err(text) => Target::Answered(CallOutcome::error(text)),
        Ok((name, arguments)) => match tools.iter().find(|tool| tool.name == name) {
            Some(tool) => checked(gateway, tool.clone(), arguments),
            None => Target::Answered(CallOutcome::error(facade::unknown(&name, tools))),
        },
    }
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
