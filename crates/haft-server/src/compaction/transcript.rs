//! A conversation as a text that a model reads from outside.
//!
//! It is given as material and not as a conversation of the model's own: it may hold calls of
//! tools that are not offered any more, calls without outputs, and items that only one protocol
//! knows. What a model cannot be given as text goes along as it is if the model takes it, and is
//! named if not.

use haft_core::{CallOutput, Capabilities, ContentPart, Item, Role};
use serde_json::Value;

use super::compacted::HEADING;
use super::piece::Piece;

/// At most so many bytes of a call's output are told, from both of its ends.
const OUTPUT_BYTES: usize = 16 * 1024;

/// The conversation in parts: text, and between it what is none.
pub(super) fn transcript(pieces: &[Piece], capabilities: &Capabilities) -> Vec<ContentPart> {
    let mut writer = Writer {
        parts: Vec::new(),
        text: String::from("<conversation>\n"),
        capabilities,
    };
    for piece in pieces {
        writer.piece(piece);
    }
    writer.text.push_str("</conversation>");
    writer.flush();
    writer.parts
}

struct Writer<'c> {
    parts: Vec<ContentPart>,
    text: String,
    capabilities: &'c Capabilities,
}

impl Writer<'_> {
    fn piece(&mut self, piece: &Piece) {
        match &piece.record.item {
            Item::Message(_) if piece.is_summary() => {
                let text = piece.record.item.text();
                let text = text.strip_prefix(HEADING).unwrap_or(&text);
                self.line("earlier summary", text.trim_start());
            }
            Item::Message(message) => {
                self.heading(match message.role {
                    Role::User => "user",
                    Role::Assistant => "assistant",
                    Role::System => "system",
                    Role::Developer => "developer",
                });
                self.parts(&message.content);
            }
            Item::FunctionCall(call) => {
                self.line(&format!("call of `{}`", call.name), &call.arguments);
            }
            Item::FunctionCallOutput(output) => {
                let heading = if output.is_error {
                    "output, an error"
                } else {
                    "output"
                };
                match &output.output {
                    CallOutput::Text(text) => self.line(heading, &shortened(text)),
                    CallOutput::Parts(parts) => {
                        self.heading(heading);
                        self.parts(parts);
                    }
                }
            }
            Item::Reasoning(reasoning) => {
                let told = reasoning.summary.iter().chain(&reasoning.content);
                let told: Vec<_> = told.filter_map(ContentPart::text).collect();
                if !told.is_empty() {
                    self.line("thoughts of the assistant", &told.join("\n"));
                }
            }
            _ => self.other(piece),
        }
    }

    fn other(&mut self, piece: &Piece) {
        let text = |key: &str| piece.member(key).and_then(Value::as_str);
        match piece.kind() {
            "custom_tool_call" => {
                let heading = format!("call of `{}`", text("name").unwrap_or_default());
                self.line(&heading, text("input").unwrap_or_default());
            }
            "custom_tool_call_output" => match piece.member("output") {
                Some(Value::String(text)) => self.line("output", &shortened(text)),
                Some(output) => self.line("output", &shortened(&output.to_string())),
                None => {}
            },
            "additional_tools"
            | "configuration_update"
            | "mcp_list_tools"
            | "tool_search_output"
            | "compaction" => {}
            kind => {
                let told = piece.member("output").map(|output| match output {
                    Value::String(text) => shortened(text),
                    other => shortened(&other.to_string()),
                });
                let name =
                    text("name").map_or_else(|| kind.to_owned(), |name| format!("{kind} `{name}`"));
                let mut words = Vec::new();
                for key in ["arguments", "action", "input", "error"] {
                    match piece.member(key) {
                        None | Some(Value::Null) => {}
                        Some(Value::String(value)) => words.push(format!("{key}: {value}")),
                        Some(value) => words.push(format!("{key}: {value}")),
                    }
                }
                words.extend(told.map(|output| format!("output: {output}")));
                self.line(&name, &words.join("\n"));
            }
        }
    }

    fn parts(&mut self, parts: &[ContentPart]) {
        for part in parts {
            let is_taken = match part.kind() {
                "input_image" => self.capabilities.image_input,
                "input_file" => self.capabilities.file_input,
                "input_video" => self.capabilities.video_input,
                _ => false,
            };
            match part {
                ContentPart::Refusal { refusal } => self.text.push_str(refusal),
                part if is_taken => {
                    self.flush();
                    self.parts.push(part.clone());
                }
                part => {
                    let named = format!("[{}]", part.kind());
                    self.text.push_str(part.text().unwrap_or(&named));
                }
            }
            self.text.push('\n');
        }
        self.text.push('\n');
    }

    fn line(&mut self, heading: &str, text: &str) {
        self.heading(heading);
        self.text.push_str(text);
        self.text.push_str("\n\n");
    }

    fn heading(&mut self, heading: &str) {
        self.text.push('[');
        self.text.push_str(heading);
        self.text.push_str("]\n");
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.parts.push(ContentPart::InputText { text });
        }
    }
}

/// The beginning and the end of a long output; the text says what is missing.
fn shortened(text: &str) -> String {
    if text.len() <= OUTPUT_BYTES {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(OUTPUT_BYTES / 2);
    let tail = text.ceil_char_boundary(text.len() - OUTPUT_BYTES / 2);
    let missing = tail - head;
    format!(
        "{}\n[{missing} bytes are left out here]\n{}",
        &text[..head],
        &text[tail..]
    )
}
