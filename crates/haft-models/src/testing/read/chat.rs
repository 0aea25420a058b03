//! Requests of Chat Completions and of Ollama, which have the same messages.

use serde_json::Value;

use super::{list_at, openai_choice, said, text_at, text_of};
use crate::scripted::{OutputView, RequestView};

pub(super) fn view(body: &Value) -> Result<RequestView, String> {
    let mut view = ollama_view(body)?;
    let choice = body.get("tool_choice").filter(|it| !it.is_null());
    view.tool_choice = choice.map(openai_choice).transpose()?;
    view.parallel_tool_calls = body.get("parallel_tool_calls").and_then(Value::as_bool);
    Ok(view)
}

pub(super) fn ollama_view(body: &Value) -> Result<RequestView, String> {
    let messages = list_at(body, "messages");
    if messages.is_empty() {
        return Err("the body has no `messages`".to_owned());
    }
    let mut view = RequestView {
        tools: tools(body)?,
        ..RequestView::default()
    };
    let mut instructions = Vec::new();
    for message in messages {
        let content = message.get("content").unwrap_or(&Value::Null);
        match text_at(message, "role") {
            Some("system" | "developer") if view.items == 0 => {
                instructions.push(text_of(content));
            }
            Some("system" | "developer") => view.items += 1,
            Some("user") => {
                view.items += 1;
                view.user = Some(text_of(content));
            }
            Some("assistant") => assistant(message, content, &mut view),
            Some("tool") => view.add_output(OutputView {
                call_id: text_at(message, "tool_call_id").map(str::to_owned),
                text: text_of(content),
                is_error: None,
            }),
            _ => return Err("a message has no `role` that is known".to_owned()),
        }
    }
    view.instructions = said(instructions.join("\n\n"));
    Ok(view)
}

fn assistant(message: &Value, content: &Value, view: &mut RequestView) {
    let thoughts = ["reasoning_content", "reasoning", "thinking"];
    let has_thoughts = thoughts
        .iter()
        .any(|key| text_at(message, key).is_some_and(|text| !text.is_empty()));
    let has_text = !text_of(content).is_empty() || text_at(message, "refusal").is_some();
    view.items += usize::from(has_thoughts) + usize::from(has_text);
    for _ in list_at(message, "tool_calls") {
        view.add_call();
    }
}

fn tools(body: &Value) -> Result<Vec<String>, String> {
    let tools = list_at(body, "tools").iter();
    let names = tools.map(|tool| {
        let name = tool.get("function").and_then(|it| text_at(it, "name"));
        name.map(str::to_owned)
            .ok_or_else(|| "a tool has no `function.name`".to_owned())
    });
    names.collect()
}
