//! A conversation on paper.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use haft::{Usage, Value};

use crate::failure::Failure;
use crate::screen::item::{call_of, result_of, text_of};

/// What was said so far, and what it cost.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    pub(super) items: Vec<Value>,
    pub(super) usage: Usage,
    pub(super) answers: u64,
}

impl Transcript {
    /// Writes it to a file that is not there yet: as JSON if the file is called so, else as a person
    /// reads it.
    pub(super) fn save(&self, path: &Path) -> Result<(), Failure> {
        let is_json = path
            .extension()
            .is_some_and(|it| it.eq_ignore_ascii_case("json"));
        let text = if is_json {
            serde_json::to_string_pretty(&self.items).map(|json| json + "\n")
        } else {
            Ok(self.markdown())
        };
        let written = text.map_err(io::Error::from).and_then(|text| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            // What was said is nobody else's.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            options.open(path)?.write_all(text.as_bytes())
        });
        written.map_err(|error| {
            let shown = path.display();
            match error.kind() {
                ErrorKind::AlreadyExists => Failure::new(format!("`{shown}` is there already"))
                    .remedy("give another name, or remove it first"),
                _ => Failure::new(format!("cannot write `{shown}`: {error}")),
            }
        })
    }

    fn markdown(&self) -> String {
        let mut text = String::new();
        for item in &self.items {
            let written = match item["type"].as_str().unwrap_or("message") {
                "message" => {
                    let role = item["role"].as_str().unwrap_or("somebody");
                    let said = text_of(&item["content"]);
                    write!(text, "## {role}\n\n{said}\n\n")
                }
                kind if kind.ends_with("_output") => {
                    write!(text, "```\n{}\n```\n\n", text_of(&item["output"]))
                }
                _ => match call_of(item) {
                    Some(call) => {
                        let (result, _) = result_of(item);
                        let name = &call.name;
                        let arguments = call.arguments;
                        write!(text, "`{name} {arguments}`\n\n").and_then(|()| {
                            match result.as_ref() {
                                "" => Ok(()),
                                result => write!(text, "```\n{result}\n```\n\n"),
                            }
                        })
                    }
                    None => Ok(()),
                },
            };
            // Writing to a text cannot fail.
            let _ = written;
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft::json;

    #[test]
    fn a_conversation_is_written_and_never_over_another() {
        let folder = tempfile::tempdir().unwrap();
        let transcript = Transcript {
            items: vec![
                json!({"type": "message", "role": "user", "content": "What time is it?"}),
                json!({"type": "haft:clock", "call_id": "1", "arguments": "{}", "output": "noon",
                    "error": null}),
                json!({"type": "message", "role": "assistant",
                    "content": [{"type": "output_text", "text": "Noon."}]}),
            ],
            ..Transcript::default()
        };
        let page = folder.path().join("chat.md");
        transcript.save(&page).unwrap();
        let expected = "## user\n\nWhat time is it?\n\n`clock {}`\n\n```\nnoon\n```\n\n## assistant\
                        \n\nNoon.\n\n";
        assert_eq!(std::fs::read_to_string(&page).unwrap(), expected);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let rights = std::fs::metadata(&page).unwrap().permissions();
            assert_eq!(rights.mode() & 0o777, 0o600);
        }
        let failure = transcript.save(&page).unwrap_err().to_string();
        assert!(failure.contains("is there already"), "{failure}");
        let items = folder.path().join("chat.json");
        transcript.save(&items).unwrap();
        let read = std::fs::read_to_string(&items).unwrap();
        assert_eq!(
            serde_json::from_str::<Vec<Value>>(&read).unwrap(),
            transcript.items
        );
    }
}
