//! What the offline model says.

use haft_core::{Conversation, FunctionCall, FunctionCallOutput, Item, Role};

/// The line with which every answer ends.
pub const NOTICE: &str = "[offline model: rules, not a language model]";

/// At most so many characters of an output are quoted.
const QUOTED_CHARS: usize = 4000;

/// What was asked last, and what came of it so far.
#[derive(Debug, Default)]
pub(super) struct Asked<'c> {
    pub(super) text: Option<String>,
    /// The calls since then, with their outputs.
    pub(super) calls: Vec<(&'c FunctionCall, Option<&'c FunctionCallOutput>)>,
}

impl<'c> Asked<'c> {
    pub(super) fn read(conversation: &'c Conversation) -> Self {
        let mut asked = Self::default();
        for item in conversation.items() {
            match item {
                Item::Message(message) if message.role == Role::User => {
                    asked = Self {
                        text: Some(message.text()),
                        calls: Vec::new(),
                    };
                }
                Item::FunctionCall(call) => asked.calls.push((call, None)),
                Item::FunctionCallOutput(output) => {
                    let mut calls = asked.calls.iter_mut().rev();
                    let same = calls.find(|(call, _)| call.call_id == output.call_id);
                    if let Some((_, slot)) = same {
                        *slot = Some(output);
                    }
                }
                _ => {}
            }
        }
        asked
    }

    /// An answer that quotes what came of each call.
    pub(super) fn report(&self) -> String {
        let lines = self.calls.iter().map(|(call, output)| {
            let name = &call.name;
            match output {
                None => format!("`{name}` has not answered."),
                Some(output) if output.is_error => {
                    format!("`{name}` failed: {}", quoted(&output.output.to_text()))
                }
                Some(output) => format!("`{name}`: {}", quoted(&output.output.to_text())),
            }
        });
        noticed(lines)
    }
}

/// Lines, and the notice below them.
pub(super) fn noticed(lines: impl IntoIterator<Item = String>) -> String {
    let mut text = String::new();
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str(NOTICE);
    text
}

fn quoted(output: &str) -> String {
    let output = output.trim();
    match output.char_indices().nth(QUOTED_CHARS) {
        Some((at, _)) => format!("{}…", &output[..at]),
        None if output.is_empty() => "(nothing)".to_owned(),
        None => output.to_owned(),
    }
}

/// A text in pieces of one word each, with the blanks behind it.
pub(super) fn word_pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace)
}
