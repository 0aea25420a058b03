//! The `mcpServers` of other programs: Claude Desktop, Claude Code, Cursor and many more have the same form.

use std::io::Read as _;
use std::path::Path;

use haft_mcp::{HttpKind, Label, Secret, ServerConfig, VariableLookup};
use serde_json::{Map, Value};

use super::mcp::{McpServer, check_form};
use crate::text::one_line;

/// No such file is larger.
const MAX_BYTES: u64 = 1 << 20;

/// How long a label may be.
const LABEL_BYTES: usize = 24;

/// The servers of such a file, and what was ignored in it.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    pub(super) servers: Vec<McpServer>,
    pub(super) notes: Vec<String>,
}

/// Reads it. What is wrong with the whole is an error; what haft does not know is noted.
pub(super) fn read(file: &Path, lookup: VariableLookup<'_>) -> Result<Foreign, String> {
    let shown = file.display();
    let mut text = String::new();
    std::fs::File::open(file)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| format!("`{shown}` cannot be read: {error}"))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("`{shown}` is too large"));
    }
    let json: Value = serde_json::from_str(&text).map_err(|error| {
        // The message itself may quote what is there.
        let (line, column) = (error.line(), error.column());
        format!("`{shown}` is no JSON, from line {line}, column {column} on")
    })?;
    let Some(servers) = json["mcpServers"].as_object() else {
        return Err(format!("`{shown}` has no object `mcpServers`"));
    };
    let mut foreign = Foreign::default();
    for (name, entry) in servers {
        let Some(entry) = entry.as_object() else {
            return Err(format!(
                "`{}` of `{shown}` is no object",
                one_line(name, 64)
            ));
        };
        foreign.add(file, name, entry, lookup)?;
    }
    Ok(foreign)
}

impl Foreign {
    fn add(
        &mut self,
        file: &Path,
        name: &str,
        entry: &Map<String, Value>,
        lookup: VariableLookup<'_>,
    ) -> Result<(), String> {
        let (file, name) = (file.display(), one_line(name, 64));
        if entry.get("disabled") == Some(&Value::Bool(true)) {
            self.notes
                .push(format!("`{name}` of `{file}` is disabled there"));
            return Ok(());
        }
        let label = label_of(&name)
            .ok_or_else(|| format!("`{name}` of `{file}` has no letter to be named by"))?;
        if label.as_str() != name {
            self.notes
                .push(format!("`{name}` of `{file}` is called `{label}` here"));
        }
        if self.servers.iter().any(|it| it.label == label) {
            return Err(format!(
                "`{file}` has two servers that are called `{label}` here: give one of them another name"
            ));
        }
        let mut config = ServerConfig::default();
        for (key, value) in entry {
            let wrong = || format!("`{key}` of `{name}` in `{file}` is not of its kind");
            match key.as_str() {
                "command" => config.command = Some(text(value).ok_or_else(wrong)?),
                "args" => config.args = texts(value).ok_or_else(wrong)?,
                "env" => config.env = secrets(value).ok_or_else(wrong)?,
                "cwd" => config.cwd = Some(text(value).ok_or_else(wrong)?.into()),
                "url" => config.url = Some(text(value).ok_or_else(wrong)?),
                "headers" => config.headers = secrets(value).ok_or_else(wrong)?,
                "description" => config.description = text(value),
                "disabled" => {}
                "type" | "transport" => match value.as_str() {
                    Some("sse") => config.transport = Some(HttpKind::Sse),
                    Some("http" | "streamable-http" | "streamableHttp" | "streamable") => {
                        config.transport = Some(HttpKind::Streamable);
                    }
                    Some("stdio") => {}
                    _ => return Err(wrong()),
                },
                key => {
                    let key = one_line(key, 64);
                    self.notes.push(format!(
                        "`{key}` of `{name}` in `{file}` means nothing to haft and is ignored"
                    ));
                }
            }
        }
        if starts_haft(&config) {
            self.notes.push(format!(
                "skipped `{name}` of `{file}`: it starts haft itself"
            ));
            return Ok(());
        }
        check_form(&label, &config).map_err(|error| format!("`{file}`: {error}"))?;
        let settings = config.resolve(label.clone(), lookup);
        self.servers.push(McpServer {
            label,
            settings,
            from: file.to_string(),
        });
        Ok(())
    }
}

/// Whether a server is `haft mcp serve`, by whatever program it is started. Clients list it beside the servers that haft
/// is to serve; a gateway that starts itself never ends.
fn starts_haft(config: &ServerConfig) -> bool {
    let is_gateway = config
        .args
        .windows(2)
        .any(|words| words == ["mcp", "serve"]);
    let mut programs = config.command.iter().chain(&config.args);
    is_gateway && programs.any(|program| is_haft(program))
}

fn is_haft(program: &str) -> bool {
    let path = Path::new(program);
    // With the version that `npx` and `uvx` take.
    let name = path.file_stem().and_then(|name| name.to_str());
    let name = name.and_then(|name| name.split(['@', '=']).next());
    let is_this = || {
        let this = std::env::current_exe().and_then(std::fs::canonicalize);
        this.is_ok_and(|this| std::fs::canonicalize(path).is_ok_and(|path| path == this))
    };
    name.is_some_and(|name| name.eq_ignore_ascii_case("haft")) || is_this()
}

/// The name as a label: what cannot be in one becomes `-`.
fn label_of(name: &str) -> Option<Label> {
    if let Ok(label) = Label::new(name) {
        return Some(label);
    }
    let legal = |it: char| {
        if it.is_ascii_alphanumeric() || it == '_' {
            it
        } else {
            '-'
        }
    };
    let name: String = name.chars().map(legal).collect();
    let mut name = name.trim_start_matches(|it: char| !it.is_ascii_alphabetic());
    if name.len() > LABEL_BYTES {
        name = &name[..LABEL_BYTES];
    }
    let mut name = name.trim_end_matches(['-', '_']).to_owned();
    while name.contains("__") {
        name = name.replace("__", "_");
    }
    if name == "haft" {
        name.push_str("-mcp");
    }
    Label::new(name).ok()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(text).collect()
}

/// Values of variables and headers. Editors write `${env:NAME}` for what is `${NAME}` here.
fn secrets(value: &Value) -> Option<std::collections::BTreeMap<String, Secret>> {
    let members = value.as_object()?.iter();
    let members = members.map(|(name, value)| {
        let value = match value {
            Value::String(text) => text.replace("${env:", "${"),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            _ => return None,
        };
        Some((name.clone(), Secret::new(value)))
    });
    members.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_mcp::TransportSettings;
    use serde_json::json;

    fn read_json(json: &Value) -> Result<Foreign, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        std::fs::write(&file, json.to_string()).unwrap();
        let lookup = |name: &str| (name == "TOKEN").then(|| String::from("hunter2"));
        read(&file, &lookup).map_err(|text| text.replace(&file.display().to_string(), "F"))
    }

    #[test]
    fn the_servers_of_other_programs_are_read_in_their_order() {
        let foreign = read_json(&json!({"mcpServers": {
            "zeta": {"command": "npx", "args": ["-y", "x"], "env": {"A": "${env:TOKEN}", "PORT": 80}},
            "My Search": {"type": "http", "url": "https://s.example/mcp", "headers": {"X": "${TOKEN}"}},
            "old": {"type": "sse", "url": "https://o.example/sse", "autoApprove": ["x"]},
            "off": {"command": "x", "disabled": true},
        }}))
        .unwrap();
        let labels: Vec<_> = foreign.servers.iter().map(|it| it.label.as_str()).collect();
        assert_eq!(labels, ["zeta", "My-Search", "old"]);
        let settings = |at: usize| foreign.servers[at].settings.as_ref().unwrap();
        let TransportSettings::Stdio(stdio) = &settings(0).transport else {
            panic!()
        };
        assert_eq!(stdio.args, ["-y", "x"]);
        assert_eq!(
            (stdio.env["A"].expose(), stdio.env["PORT"].expose()),
            ("hunter2", "80")
        );
        let TransportSettings::Http(http) = &settings(2).transport else {
            panic!()
        };
        assert_eq!(http.kind, HttpKind::Sse);
        let notes = foreign.notes.join("\n");
        for words in [
            "`autoApprove` of `old`",
            "`My Search` of",
            "is called `My-Search` here",
            "`off` of",
        ] {
            assert!(notes.contains(words), "{notes}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_without_secrets() {
        for (json, words) in [
            (json!({"servers": {}}), "has no object `mcpServers`"),
            (json!({"mcpServers": {"a": 3}}), "`a` of `F` is no object"),
            (
                json!({"mcpServers": {"a": {"command": ["hunter2"]}}}),
                "`command` of `a`",
            ),
            (
                json!({"mcpServers": {"a": {"env": {"K": "hunter2"}}}}),
                "neither is given",
            ),
            (
                json!({"mcpServers": {"a b": {"command": "x"}, "a-b": {"command": "x"}}}),
                "two servers that are called `a-b`",
            ),
            (
                json!({"mcpServers": {"!!": {"command": "x"}}}),
                "no letter to be named by",
            ),
        ] {
            let error = read_json(&json).unwrap_err();
            assert!(error.contains(words), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        // One whose variable is not set is there, and says so.
        let one =
            read_json(&json!({"mcpServers": {"a": {"command": "x", "env": {"K": "${GONE}"}}}}));
        let error = one.unwrap().servers[0].settings.clone().unwrap_err();
        assert!(error.to_string().contains("`GONE` is not set"), "{error}");
    }

    #[test]
    fn names_become_labels() {
        for (name, label) in [
            ("files", Some("files")),
            ("brave.search", Some("brave-search")),
            ("9lives", Some("lives")),
            ("a__b", Some("a_b")),
            ("haft", Some("haft-mcp")),
            (
                "@scope/a-very-long-name-of-a-server",
                Some("scope-a-very-long-name-o"),
            ),
            ("漢字", None),
        ] {
            let found = label_of(name);
            assert_eq!(found.as_ref().map(Label::as_str), label, "{name}");
        }
    }
}
