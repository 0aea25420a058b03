//! `tool_choice`: which of the tools the model must, may or must not call.

use std::sync::Arc;

use haft_core::{ToolChoice, ToolDefinition, ToolSpecs, cut};
use serde_json::{Value, json};

use crate::error::{ApiError, ErrorCode};
use crate::wire::read::Read;
use crate::wire::read::fields::{Fields, invalid, wrong_type};
use crate::wire::read::forms::{Form as _, ListOf, Object, Text, Word};

const AT: &str = "tool_choice";

/// The tools that the model is shown, and what is said about calling them.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) tools: ToolSpecs,
    pub(super) choice: Option<ToolChoice>,
}

/// Reads the choice and applies it.
pub(super) fn offer(choice: Option<Value>, tools: Vec<Arc<ToolDefinition>>) -> Read<Offer> {
    let mut shown = tools;
    let choice = match choice {
        None => None,
        Some(word @ Value::String(_)) => {
            Some(match Word(&["auto", "none", "required"]).read(word, AT)? {
                "none" => ToolChoice::None,
                "required" => ToolChoice::Required,
                _ => ToolChoice::Auto,
            })
        }
        Some(members @ Value::Object(_)) => {
            let is_subset = members.get("type") == Some(&json!("allowed_tools"));
            let fields = Fields::of(members, AT)?;
            Some(if is_subset {
                allowed(fields, &mut shown)?
            } else {
                let name = named(fields)?;
                find(&name, &shown, AT)?;
                ToolChoice::Function(name)
            })
        }
        Some(other) => return Err(wrong_type(AT, "a string or an object", &other)),
    };
    if shown.is_empty() && choice == Some(ToolChoice::Required) {
        let message = "`tool_choice` is `required` and there are no tools: add some, or use `auto`";
        return Err(invalid(AT, message));
    }
    Ok(Offer {
        choice: choice.filter(|_| !shown.is_empty()),
        tools: shown.into_iter().collect(),
    })
}

/// Nobody here looks at the calls that come back, so the model is shown no other tools.
fn allowed(mut fields: Fields, shown: &mut Vec<Arc<ToolDefinition>>) -> Read<ToolChoice> {
    let mut allowed = fields.need("allowed_tools", Object)?;
    let mode = allowed.need("mode", Word(&["auto", "required"]))?;
    let at = allowed.at("tools");
    let form = ListOf(|value: Value, path: &str| {
        let name = named(Fields::of(value, path)?)?;
        find(&name, shown, path)?;
        Ok(name)
    });
    let names = allowed.need("tools", form)?;
    if names.is_empty() {
        let message = format!("`{at}` is empty: name the tools, or use `none`");
        return Err(invalid(&at, message));
    }
    shown.retain(|tool| names.iter().any(|name| name == tool.name().as_str()));
    Ok(if mode == "required" {
        ToolChoice::Required
    } else {
        ToolChoice::Auto
    })
}

/// `{"type":"function","function":{"name":…}}`
fn named(mut fields: Fields) -> Read<String> {
    let at = fields.at("type");
    let kind = fields.need("type", Text)?;
    if kind != "function" {
        let message = format!(
            "`{at}` is `{}`, but this model knows functions only: name one",
            cut(&kind)
        );
        return Err(ApiError::new(ErrorCode::UnsupportedTool, message).at(at));
    }
    fields.need("function", Object)?.need("name", Text)
}

fn find(name: &str, tools: &[Arc<ToolDefinition>], path: &str) -> Read<()> {
    if tools.iter().any(|tool| tool.name().as_str() == name) {
        return Ok(());
    }
    let message = format!(
        "`{path}` names `{}`, which is not among the tools of this request: add it to `tools`, or \
         name another",
        cut(name)
    );
    Err(ApiError::new(ErrorCode::ToolNotFound, message).at(path))
}
