//! MCP servers in the files of other programs: Claude Code, Claude Desktop, Codex, Cursor, VS Code, Windsurf, Gemini
//! CLI and those that write the same forms.
//!
//! An entry that cannot be used is skipped with its reason; the others are read.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use haft_mcp::{Label, ServerConfig};
use serde_json::{Map, Value};

use super::client_entry::{self, Syntax, label_of, starts_haft};
use super::mcp::check_form;
use crate::edit::jsonc::Jsonc;
use crate::edit::toml_tables;
use crate::text::one_line;

/// The largest file that is read. Claude Code keeps more than settings in its own.
const MAX_BYTES: u64 = 64 << 20;

/// The servers of a file.
#[derive(Debug, Default)]
pub(crate) struct ClientServers {
    pub(crate) servers: Vec<ClientServer>,
    /// Entries that are left out, by their names there, and why.
    pub(crate) skipped: Vec<(String, String)>,
    /// What is ignored or different.
    pub(crate) notes: Vec<String>,
}

/// A server of another program's file.
#[derive(Debug)]
pub(crate) struct ClientServer {
    /// Its name there.
    pub(crate) name: String,
    pub(crate) label: Label,
    pub(crate) config: ServerConfig,
}

/// Where a file belongs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// The configuration of a user, for all projects.
    User,
    /// A project: relative paths begin at its folder.
    Project(&'a Path),
}

/// A file that was read.
#[derive(Debug)]
pub(crate) struct ClientFile {
    path: PathBuf,
    syntax: Syntax,
    document: Value,
}

impl ClientFile {
    /// Reads JSON with comments, or TOML where the name ends so. The error quotes nothing of the content.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let mut bytes = Vec::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| format!("`{shown}` cannot be read: {error}"))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(format!("`{shown}` is larger than {} MiB", MAX_BYTES >> 20));
        }
        let text = String::from_utf8(bytes).map_err(|_| format!("`{shown}` is not UTF-8"))?;
        let is_toml = path
            .extension()
            .is_some_and(|it| it.eq_ignore_ascii_case("toml"));
        let wrong = |error: crate::edit::EditError| format!("`{shown}` is {error}");
        let (syntax, document) = if is_toml {
            let table = toml_tables::parse(&text).map_err(wrong)?;
            let value = serde_json::to_value(table);
            (
                Syntax::Literal,
                value.map_err(|_| format!("`{shown}` cannot be read"))?,
            )
        } else {
            let json = Jsonc::parse(&text).map_err(wrong)?;
            (Syntax::References, json.value().clone())
        };
        Ok(Self {
            path: path.to_owned(),
            syntax,
            document,
        })
    }

    /// The servers of the file itself.
    pub(crate) fn servers(&self, scope: Scope<'_>) -> Result<ClientServers, String> {
        let Some(entries) = entries(&self.document) else {
            let shown = self.path.display();
            return Err(format!(
                "`{shown}` has no object `mcpServers`, `servers` or `mcp_servers`"
            ));
        };
        Ok(self.read_entries(entries, scope))
    }

    /// The servers that Claude Code keeps for one project in the user's file.
    pub(crate) fn servers_of_project(&self, folder: &Path) -> ClientServers {
        let project = &self.document["projects"][folder.display().to_string()];
        let entries = project["mcpServers"].as_object();
        let scope = Scope::Project(folder);
        entries.map_or_else(ClientServers::default, |it| self.read_entries(it, scope))
    }

    /// How many servers it keeps for other projects.
    pub(crate) fn count_of_other_projects(&self, folder: &Path) -> usize {
        let own = folder.display().to_string();
        let projects = self.document["projects"].as_object().into_iter().flatten();
        let others = projects.filter(|(path, _)| **path != own);
        others
            .filter_map(|(_, it)| it["mcpServers"].as_object())
            .map(Map::len)
            .sum()
    }

    fn read_entries(&self, entries: &Map<String, Value>, scope: Scope<'_>) -> ClientServers {
        let mut all = ClientServers::default();
        for (name, entry) in entries {
            let name = one_line(name, 64);
            if let Err(reason) = self.add(&mut all, &name, entry, scope) {
                all.skipped.push((name, reason));
            }
        }
        all
    }

    fn add(
        &self,
        all: &mut ClientServers,
        name: &str,
        entry: &Value,
        scope: Scope<'_>,
    ) -> Result<(), String> {
        let entry = entry.as_object().ok_or("it is not an object")?;
        let is = |key: &str, flag: bool| entry.get(key) == Some(&Value::Bool(flag));
        if is("disabled", true) || is("enabled", false) {
            return Err(String::from("it is disabled there"));
        }
        let label = label_of(name).ok_or("its name has no letter from a to z")?;
        if all.servers.iter().any(|it| it.label == label) {
            return Err(format!(
                "another server of the file is called `{label}` here"
            ));
        }
        let mut notes = Vec::new();
        let config = client_entry::config_of(entry, self.syntax, scope, &mut notes)?;
        if starts_haft(&config) {
            return Err(String::from("it starts haft itself"));
        }
        check_form(&label, &config).map_err(|error| error.to_string())?;
        if label.as_str() != name {
            notes.push(format!("is called `{label}` here"));
        }
        let file = self.path.display();
        let notes = notes
            .into_iter()
            .map(|note| format!("`{name}` of `{file}`: {note}"));
        all.notes.extend(notes);
        all.servers.push(ClientServer {
            name: name.to_owned(),
            label,
            config,
        });
        Ok(())
    }
}

/// The object with the servers: what each program calls it, or the whole where all members look like servers.
fn entries(document: &Value) -> Option<&Map<String, Value>> {
    for path in ["/mcpServers", "/servers", "/mcp_servers", "/mcp/servers"] {
        if let Some(found) = document.pointer(path) {
            return found.as_object();
        }
    }
    let all = document.as_object()?;
    let is_server = |entry: &Value| {
        let keys = ["command", "url", "serverUrl", "httpUrl"];
        keys.iter().any(|key| entry.get(key).is_some())
    };
    (!all.is_empty() && all.values().all(is_server)).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_mcp::{HttpKind, TransportSettings};

    fn read_text(name: &str, text: &str) -> Result<ClientServers, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        let read = ClientFile::read(&file).and_then(|file| file.servers(Scope::User));
        read.map_err(|text| text.replace(&file.display().to_string(), "F"))
    }

    fn settings(server: &ClientServer) -> haft_mcp::ServerSettings {
        let lookup = |name: &str| (name == "TOKEN").then(|| String::from("hunter2"));
        let config = server.config.clone();
        config.resolve(server.label.clone(), &lookup).unwrap()
    }

    #[test]
    fn json_of_every_client_is_read_in_its_order() {
        let text = r#"{
            // as editors write it
            "mcpServers": {
                "zeta": {"command": "${CMD:-npx}", "args": ["-y", "${TOKEN}"], "env": {"A": "${env:TOKEN}", "PORT": 80},},
                "My Search": {"type": "http", "url": "https://s.example/${TOKEN}", "headers": {"X": "Bearer ${TOKEN}"}},
                "old": {"type": "sse", "url": "https://o.example/sse", "autoApprove": ["x"]},
                "off": {"command": "x", "disabled": true},
                "surf": {"serverUrl": "https://w.example/mcp"},
                "gem": {"httpUrl": "https://g.example/mcp", "timeout": 5000, "trust": true,
                        "includeTools": ["a"], "excludeTools": ["b"], "env": null},
            }
        }"#;
        let read = read_text("mcp.json", text).unwrap();
        let labels: Vec<_> = read.servers.iter().map(|it| it.label.as_str()).collect();
        assert_eq!(labels, ["zeta", "My-Search", "old", "surf", "gem"]);
        let TransportSettings::Stdio(stdio) = settings(&read.servers[0]).transport else {
            panic!()
        };
        assert_eq!(
            (stdio.command.as_str(), stdio.args[1].as_str()),
            ("npx", "hunter2")
        );
        let env = |name: &str| stdio.env[name].expose().to_owned();
        assert_eq!((env("A").as_str(), env("PORT").as_str()), ("hunter2", "80"));
        let TransportSettings::Http(http) = settings(&read.servers[1]).transport else {
            panic!()
        };
        assert_eq!(http.url.as_str(), "https://s.example/hunter2");
        let TransportSettings::Http(http) = settings(&read.servers[2]).transport else {
            panic!()
        };
        assert_eq!(http.kind, HttpKind::Sse);
        let gemini = settings(&read.servers[4]);
        assert_eq!(gemini.timeouts.call.as_secs(), 5);
        assert_eq!((gemini.admits("a"), gemini.admits("c")), (true, false));
        assert_eq!(
            read.skipped,
            [(String::from("off"), String::from("it is disabled there"))]
        );
        let notes = read.notes.join("\n");
        for text in ["`autoApprove`", "is called `My-Search` here"] {
            assert!(notes.contains(text), "{notes}");
        }
    }

    #[test]
    fn toml_of_codex_is_read() {
        let text = r#"
            model = "x"
            [mcp_servers.files]
            command = "npx"
            args = ["${literal}"]
            env = { A = "b" }
            env_vars = ["TOKEN"]
            startup_timeout_sec = 5
            tool_timeout_sec = 1.5
            enabled_tools = ["a"]
            [mcp_servers.web]
            url = "https://w.example/mcp"
            bearer_token_env_var = "TOKEN"
            http_headers = { X = "y" }
            env_http_headers = { Z = "TOKEN" }
            disabled_tools = ["b"]
            [mcp_servers.off]
            command = "x"
            enabled = false
        "#;
        let read = read_text("config.toml", text).unwrap();
        assert_eq!(read.servers.len(), 2, "{:?}", read.skipped);
        let files = settings(&read.servers[0]);
        let TransportSettings::Stdio(stdio) = &files.transport else {
            panic!()
        };
        assert_eq!(stdio.args, ["${literal}"], "Codex expands nothing");
        assert_eq!(stdio.env["TOKEN"].expose(), "hunter2");
        assert_eq!(files.timeouts.connect.as_secs(), 5);
        let web = settings(&read.servers[1]);
        let TransportSettings::Http(http) = &web.transport else {
            panic!()
        };
        assert_eq!(http.bearer.as_ref().unwrap().expose(), "hunter2");
        assert_eq!(http.headers["Z"].expose(), "hunter2");
        assert!(!web.admits("b"));
    }

    #[test]
    fn one_invalid_entry_costs_only_itself() {
        let text = r#"{"servers": {
            "a": 3,
            "b": {"command": ["hunter2"]},
            "c": {"env": {"K": "hunter2"}},
            "!!": {"command": "x"},
            "d e": {"command": "x"}, "d-e": {"command": "x"},
            "f": {"command": "x", "type": "carrier-pigeon"},
            "w": {"command": "${workspaceFolder}/x"},
            "good": {"type": "stdio", "command": "x", "env": {"K": "${input:api-key}"}}
        }, "inputs": []}"#;
        let read = read_text("mcp.json", text).unwrap();
        let labels: Vec<_> = read.servers.iter().map(|it| it.label.as_str()).collect();
        assert_eq!(labels, ["d-e", "good"]);
        let skipped: Vec<_> = read
            .skipped
            .iter()
            .map(|(name, why)| format!("{name}: {why}"))
            .collect();
        let skipped = skipped.join("\n");
        for text in [
            "a: it is not an object",
            "b: `command` is not a text",
            "neither is given",
            "no letter",
            "d-e: another server",
            "f: `type`",
            "w: `${workspaceFolder}`",
        ] {
            assert!(skipped.contains(text), "{text} is not in\n{skipped}");
        }
        assert!(!skipped.contains("hunter2"), "{skipped}");
        assert!(
            read.notes.join("\n").contains("`API_KEY`"),
            "{:?}",
            read.notes
        );
    }

    #[test]
    fn a_file_without_servers_is_an_error_that_quotes_nothing() {
        for (text, expected) in [
            (r#"{"other": "hunter2"}"#, "has no object `mcpServers`"),
            (r#"{"mcpServers": [hunter2]}"#, "not valid JSON at line 1"),
        ] {
            let error = read_text("mcp.json", text).unwrap_err();
            assert!(
                error.contains(expected) && !error.contains("hunter2"),
                "{error}"
            );
        }
        assert_eq!(
            read_text("mcp.json", r#"{"a": {"command": "x"}}"#)
                .unwrap()
                .servers
                .len(),
            1
        );
    }
}
