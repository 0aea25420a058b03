//! Items of a conversation that are there already.

use std::borrow::Cow;
use std::io::{self, Write as _};

use haft::Value;
use owo_colors::OwoColorize;

use super::{SHOWN_CHARS, Screen};
use crate::text::{one_line, printable};

/// A call among the items of a response.
pub(crate) struct Call<'i> {
    /// By which it is told from others.
    pub(crate) id: &'i str,
    pub(crate) name: Cow<'i, str>,
    pub(crate) arguments: &'i str,
    /// Whether the client executes it, and answers with its output.
    pub(crate) is_the_clients: bool,
}

/// The call that an item is, if it is one.
pub(crate) fn call_of(item: &Value) -> Option<Call<'_>> {
    let text = |name: &str| item[name].as_str();
    let kind = text("type")?;
    let call_id = text("call_id").or_else(|| text("id"))?;
    let (name, is_the_clients) = match kind {
        "function_call" | "custom_tool_call" => (Cow::from(text("name")?), true),
        "mcp_call" => {
            let label = text("server_label").unwrap_or_default();
            (Cow::from(format!("{label}/{}", text("name")?)), false)
        }
        kind => match kind.split_once(':') {
            Some((_, name)) => (Cow::from(name), false),
            // Those that a provider runs: `web_search_call`.
            None => (Cow::from(kind.strip_suffix("_call")?), false),
        },
    };
    Some(Call {
        id: call_id,
        name,
        arguments: text("arguments")
            .or_else(|| text("input"))
            .unwrap_or_default(),
        is_the_clients,
    })
}

/// What came of a call that has its result in itself, and whether that tells of a failure.
pub(crate) fn result_of(item: &Value) -> (Cow<'_, str>, bool) {
    match (&item["error"], &item["output"]) {
        (Value::Null, Value::String(output)) => (output.into(), false),
        (Value::Null, Value::Null) => ("".into(), item["status"] == "failed"),
        (Value::Null, output) => (output.to_string().into(), false),
        (Value::String(error), _) => (error.into(), true),
        (error, _) => match error["message"].as_str() {
            Some(message) => (message.into(), true),
            None => (error.to_string().into(), true),
        },
    }
}

/// The text of a message, or of the output of a call.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let text = |part: &Value| {
                let text = part["text"].as_str().or_else(|| part["refusal"].as_str());
                text.map_or_else(
                    || format!("[{}]", part["type"].as_str().unwrap_or("something")),
                    str::to_owned,
                )
            };
            parts.iter().map(text).collect()
        }
        _ => String::new(),
    }
}

/// How much of an item is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Messages and calls, shortened where they are long.
    Short,
    /// Everything, thoughts too, in full.
    Full,
}

impl Screen {
    /// Shows an item that is there already.
    pub(crate) fn item(&mut self, item: &Value, detail: Detail) -> io::Result<()> {
        let kind = item["type"].as_str().unwrap_or("message");
        match kind {
            "message" => {
                let role = item["role"].as_str().unwrap_or("somebody");
                self.said(role, &text_of(&item["content"]), detail)
            }
            "reasoning" if detail == Detail::Full => {
                let thoughts = text_of(&item["content"]) + &text_of(&item["summary"]);
                self.said("thoughts", &thoughts, detail)
            }
            "reasoning" => Ok(()),
            "function_call_output" | "custom_tool_call_output" => {
                let call_id = item["call_id"].as_str().unwrap_or_default();
                self.said(call_id, &text_of(&item["output"]), detail)
            }
            kind => match call_of(item) {
                Some(call) if call.is_the_clients => {
                    let name = one_line(&call.name, SHOWN_CHARS);
                    let arguments = cut(call.arguments, detail);
                    let id = one_line(call.id, SHOWN_CHARS);
                    let id = id.dimmed();
                    self.line(&format!(
                        "{} {} {arguments} {id}",
                        "→".cyan().bold(),
                        name.cyan()
                    ))
                }
                Some(call) if detail == Detail::Short => self.call_done(item, &call),
                Some(call) => {
                    self.call_asked(call.id, &call.name, "");
                    let (text, _) = result_of(item);
                    let arguments = call.arguments;
                    self.said(&call.name, &format!("{arguments}\n{text}"), detail)
                }
                None => self.said(kind, "", detail),
            },
        }
    }

    /// What somebody said, with his name in front.
    fn said(&mut self, who: &str, text: &str, detail: Detail) -> io::Result<()> {
        let text = cut(text, detail);
        let text = text.replace('\n', "\n              ");
        let who = one_line(who, SHOWN_CHARS);
        let out = self.lines()?;
        writeln!(out, "  {:<12}{}", who.dimmed(), text.trim_end())
    }
}

fn cut(text: &str, detail: Detail) -> String {
    match detail {
        Detail::Short => one_line(text, 4 * SHOWN_CHARS),
        Detail::Full => printable(text),
    }
}
