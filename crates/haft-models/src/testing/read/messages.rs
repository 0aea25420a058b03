//! Requests of Anthropic's Messages API.

use haft_core::ToolChoice;
use serde_json::Value;

use super::deferred::check_messages;
use super::{list_at, said, text_at, text_of};
use crate::scripted::{OutputView, RequestView};

pub(super) fn view(body: &Value) -> Result<RequestView, String> {
    if body.get("max_tokens").and_then(Value::as_u64).is_none() {
        return Err("the body has no `max_tokens`".to_owned());
    }
    let messages = list_at(body, "messages");
    if messages.is_empty() {
        return Err("the body has no `messages`".to_owned());
    }
    check_messages(body)?;
    let choice = body.get("tool_choice").filter(|it| !it.is_null());
    let disabled = choice.and_then(|it| it.get("disable_parallel_tool_use")?.as_bool());
    let tools = list_at(body, "tools").iter();
    let mut view = RequestView {
        instructions: body.get("system").map(text_of).and_then(said),
        tools: tools
            .filter_map(|tool| text_at(tool, "name"))
            .map(str::to_owned)
            .collect(),
        tool_choice: choice.map(read_choice).transpose()?,
        parallel_tool_calls: disabled.map(|disabled| !disabled),
        ..RequestView::default()
    };
    for message in messages {
        let role = text_at(message, "role");
        let is_user = match role {
            Some("user") => true,
            Some("assistant") => false,
            _ => return Err("a message is neither of `user` nor of `assistant`".to_owned()),
        };
        read_message(message, is_user, &mut view)?;
    }
    Ok(view)
}

fn read_message(message: &Value, is_user: bool, view: &mut RequestView) -> Result<(), String> {
    let content = message.get("content").unwrap_or(&Value::Null);
    let mut text = match content {
        Value::String(text) => text.clone(),
        _ => String::new(),
    };
    for block in list_at(message, "content") {
        match text_at(block, "type") {
            Some("text") => {
                let words = text_at(block, "text").unwrap_or("");
                match words_of_output(words) {
                    Some((id, words)) if is_user => tell_output(view, id, words),
                    _ => text.push_str(words),
                }
            }
            Some("tool_use") => view.add_call(),
            Some("tool_result") => view.add_output(OutputView {
                call_id: text_at(block, "tool_use_id").map(str::to_owned),
                text: block.get("content").map(text_of).unwrap_or_default(),
                is_error: Some(block.get("is_error") == Some(&Value::Bool(true))),
            }),
            Some("thinking" | "redacted_thinking") => view.items += 1,
            Some(_) => {}
            None => return Err("a content block has no `type`".to_owned()),
        }
    }
    if !text.is_empty() {
        view.items += 1;
        if is_user {
            view.user = Some(text);
        }
    }
    Ok(())
}

/// What a call said, where its result holds nothing but references.
fn words_of_output(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("<tool_output tool_use_id=\"")?;
    let (id, rest) = rest.split_once("\">\n")?;
    Some((id, rest.strip_suffix("\n</tool_output>")?))
}

fn tell_output(view: &mut RequestView, id: &str, words: &str) {
    let mut outputs = view.outputs.iter_mut().rev();
    if let Some(output) = outputs.find(|output| output.call_id.as_deref() == Some(id)) {
        words.clone_into(&mut output.text);
    }
}

fn read_choice(json: &Value) -> Result<ToolChoice, String> {
    match (text_at(json, "type"), text_at(json, "name")) {
        (Some("auto"), _) => Ok(ToolChoice::Auto),
        (Some("any"), _) => Ok(ToolChoice::Required),
        (Some("none"), _) => Ok(ToolChoice::None),
        (Some("tool"), Some(name)) => Ok(ToolChoice::Function(name.to_owned())),
        _ => Err(
            "`tool_choice` must have the `type` `auto`, `any`, `none`, or `tool` with a `name`"
                .to_owned(),
        ),
    }
}
