//! `Concerto.toml` (concerto.md §16).

mod shape;

use std::fmt;

use serde_json::{Map, Value as Json};
use toml::de::{DeTable, DeValue};

use crate::ir;
use shape::{Reader, Table};

/// Something about a place in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The line, from 1.
    pub line: usize,
    /// The character in it, from 1.
    pub column: usize,
    /// What is wrong there, and what to do.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.text)
    }
}

/// Why a manifest cannot be used: everything that is wrong with it, by place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// What is wrong; never empty.
    pub problems: Vec<Note>,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let line = if index == 0 { "" } else { "\n" };
            write!(f, "{line}Concerto.toml:{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ManifestError {}

/// What a program may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// Nothing.
    #[default]
    None,
    /// What is listed.
    Only(Vec<String>),
    /// Everything.
    All,
}

/// What the manifest grants (§12).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Directories.
    pub fs: Grant,
    /// Hosts.
    pub http: Grant,
    /// Environment variables.
    pub env: Grant,
    /// Child processes that the source names.
    pub process: bool,
}

/// A manifest that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// What the project is called.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
    /// The file to start with when a directory is given.
    pub entry: Option<String>,
    /// Connections, in the order of the file; never with a secret.
    pub connections: Vec<ir::Connection>,
    /// MCP servers, in the order of the file; `config.type` is `mcp`.
    pub servers: Vec<ir::Connection>,
    /// Agents: their names and settings, in the order of the file.
    pub agents: Vec<(String, Map<String, Json>)>,
    /// What programs may reach.
    pub permissions: Permissions,
    /// Keys that mean nothing here, by place.
    pub warnings: Vec<Note>,
}

impl Manifest {
    /// Reads the text of a manifest.
    ///
    /// ```
    /// use haft_concerto::manifest::Manifest;
    ///
    /// let text = "[project]\nname = \"shop\"\n[connections.desk]\nprovider = \"mock\"\n";
    /// let manifest = Manifest::read(text)?;
    /// assert_eq!(manifest.connections[0].name, "desk");
    ///
    /// let wrong = Manifest::read("[project]\nname = 5\n").unwrap_err();
    /// assert_eq!(wrong.to_string(), "Concerto.toml:2:8: `project.name` is a string, and this is a number");
    /// # Ok::<(), haft_concerto::manifest::ManifestError>(())
    /// ```
    pub fn read(text: &str) -> Result<Self, ManifestError> {
        let mut reader = Reader::new(text);
        let mut manifest = Self::default();
        match DeTable::parse(text) {
            Ok(table) => manifest.sections(table.get_ref(), &mut reader),
            Err(error) => {
                let at = error.span().map_or(text.len(), |span| span.start);
                reader.problem(at, format!("this is no TOML: {}", error.message()));
            }
        }
        if reader.has_problems() {
            // A key that nobody knows is often the one that is missing.
            let problems = reader.sorted();
            return Err(ManifestError { problems });
        }
        manifest.warnings = reader.sorted();
        Ok(manifest)
    }

    fn sections(&mut self, table: &DeTable<'_>, reader: &mut Reader<'_>) {
        reader.known("", table, shape::SECTIONS);
        if let Some(project) = reader.section(table, "project") {
            self.project(&project, reader);
        } else if !table.contains_key("project") {
            let text = "`[project]` is missing; it names the project: `name = \"…\"`";
            reader.problem(0, text.to_owned());
        }
        for entry in reader.entries(table, "connections") {
            self.connection(&entry, reader);
        }
        for entry in reader.entries(table, "mcp") {
            self.server(&entry, reader);
        }
        for entry in reader.entries(table, "agents") {
            reader.members(&entry, shape::AGENT);
            reader.require(&entry, "command");
            let config = config(entry.members, shape::AGENT);
            self.agents.push((entry.name.to_owned(), config));
        }
        if let Some(permissions) = reader.section(table, "permissions") {
            reader.members(&permissions, shape::PERMISSIONS);
            let config = config(permissions.members, shape::PERMISSIONS);
            self.permissions = Permissions {
                fs: grant(config.get("fs")),
                http: grant(config.get("http")),
                env: grant(config.get("env")),
                process: config.get("process") == Some(&Json::Bool(true)),
            };
        }
    }

    fn project(&mut self, table: &Table<'_, '_>, reader: &mut Reader<'_>) {
        reader.members(table, shape::PROJECT);
        reader.require(table, "name");
        let text = |key| table.text(key).map(str::to_owned);
        self.name = text("name").unwrap_or_default();
        self.version = text("version");
        self.entry = text("entry");
    }

    fn connection(&mut self, entry: &Table<'_, '_>, reader: &mut Reader<'_>) {
        reader.members(entry, shape::CONNECTION);
        reader.require(entry, "provider");
        if matches!(
            entry.text("provider"),
            Some("openai" | "anthropic" | "google")
        ) {
            reader.require(entry, "api_key_env");
        }
        // What means nothing here may be a key, so it is left out.
        let config = config(entry.members, shape::CONNECTION);
        self.connections.push(ir::Connection {
            name: entry.name.to_owned(),
            config: Json::Object(config),
        });
    }

    fn server(&mut self, entry: &Table<'_, '_>, reader: &mut Reader<'_>) {
        reader.members(entry, shape::SERVER);
        if !is_label(entry.name) {
            let problem =
                "is no valid name: letters, digits and `-`, single `_` between them, at most 24";
            reader.problem(entry.at, format!("`{}` {problem}", entry.path));
        }
        match entry.text("transport") {
            Some("stdio") => reader.require(entry, "command"),
            Some("http" | "sse") => reader.require(entry, "url"),
            _ if ["command", "url", "transport"]
                .iter()
                .any(|key| entry.members.contains_key(*key)) => {}
            _ => {
                let text = format!("`{}` has no `command` and no `url`", entry.path);
                reader.problem(entry.at, text);
            }
        }
        let mut config = config(entry.members, shape::SERVER);
        config.insert("type".to_owned(), "mcp".into());
        self.servers.push(ir::Connection {
            name: entry.name.to_owned(),
            config: Json::Object(config),
        });
    }
}

/// Whether a name can be the label of a server (`mcp.md`).
pub(crate) fn is_label(name: &str) -> bool {
    let parts_fine = name.split('_').all(|part| !part.is_empty());
    let characters = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.len() <= 24
        && name != "haft"
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && parts_fine
        && name.chars().all(characters)
}

/// What was checked already; anything else grants nothing.
fn grant(value: Option<&Json>) -> Grant {
    match value {
        Some(Json::Bool(true)) => Grant::All,
        Some(Json::Array(list)) => {
            let names = list.iter().filter_map(|it| it.as_str().map(str::to_owned));
            Grant::Only(names.collect())
        }
        _ => Grant::None,
    }
}

/// The known members of a table as JSON, in the order of the file.
fn config(table: &DeTable<'_>, keys: &[shape::Key]) -> Map<String, Json> {
    let mut config = json_table(table);
    config.retain(|name, _| keys.iter().any(|(key, _)| key == name));
    config
}

/// A table as JSON, its members in the order of the file.
fn json_table(table: &DeTable<'_>) -> Map<String, Json> {
    let mut list: Vec<_> = table.iter().collect();
    list.sort_by_key(|(key, _)| key.span().start);
    let pair = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let key: &std::borrow::Cow<'_, str> = key.get_ref();
        (key.to_string(), json_value(value.get_ref()))
    };
    list.into_iter().map(pair).collect()
}

fn json_value(value: &DeValue<'_>) -> Json {
    match value {
        DeValue::String(text) => Json::from(text.as_ref()),
        DeValue::Integer(number) => {
            let value = i64::from_str_radix(number.as_str(), number.radix());
            value.map_or(Json::Null, Json::from)
        }
        DeValue::Float(number) => Json::from(number.as_str().parse::<f64>().unwrap_or_default()),
        DeValue::Boolean(value) => Json::from(*value),
        DeValue::Datetime(value) => Json::from(value.to_string()),
        DeValue::Array(list) => list.iter().map(|it| json_value(it.get_ref())).collect(),
        DeValue::Table(table) => Json::Object(json_table(table)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        let text = format!("[project]\nname = \"a\"\n{text}");
        Manifest::read(&text).unwrap_err().to_string()
    }

    #[test]
    fn nothing_secret_gets_so_far_as_the_ir() {
        let key = "[connections.desk]\nprovider = \"ollama\"\napi_key = \"sk-hunter2\"\n";
        let manifest = Manifest::read(&format!("[project]\nname = \"a\"\n{key}")).unwrap();
        assert!(!format!("{manifest:?}").contains("hunter2"));
        assert_eq!(
            manifest.warnings[0].to_string(),
            "5:1: unknown key `connections.desk.api_key`; a key stays in the environment: name its \
             variable in `api_key_env`"
        );
        for place in [
            "[connections.desk]\nprovider = \"ollama\"\nbase_url = \"http://u:hunter2@h/v1\"\n",
            "[mcp.S]\ntransport = \"http\"\nurl = \"http://u:hunter2@h/mcp\"\n",
        ] {
            let said = wrong(place);
            assert!(
                said.contains("api_key_env") && !said.contains("hunter2"),
                "{said}"
            );
        }
    }

    #[test]
    fn everything_of_the_reference_is_read_in_order() {
        let text = r#"
            [project]
            name = "shop"
            version = "0.1.0"
            entry = "src/main.conc"
            [connections.zeta]
            provider = "openai"
            api_key_env = "DESK_KEY"
            timeout = 30
            [connections.zeta.models]
            fast = "small-2"
            [connections.alpha]
            provider = "mock"
            extra = 1
            [mcp.Search]
            transport = "stdio"
            command = "search-server --stdio"
            [agents.coder]
            command = "coder"
            [permissions]
            fs = ["./data"]
            env = true
            process = true
        "#;
        let manifest = Manifest::read(text).unwrap();
        let names: Vec<_> = manifest
            .connections
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(names, ["zeta", "alpha"]);
        assert_eq!(manifest.connections[0].config["models"]["fast"], "small-2");
        assert_eq!(manifest.servers[0].config["type"], "mcp");
        assert_eq!(manifest.agents[0].0, "coder");
        assert_eq!(
            manifest.permissions.fs,
            Grant::Only(vec!["./data".to_owned()])
        );
        assert_eq!(manifest.permissions.env, Grant::All);
        assert!(manifest.permissions.process);
        let warnings: Vec<_> = manifest.warnings.iter().map(Note::to_string).collect();
        assert_eq!(warnings, ["14:13: unknown key `connections.alpha.extra`"]);
    }

    #[test]
    fn what_is_missing_is_told_with_its_place() {
        let missing = Manifest::read("").unwrap_err().to_string();
        assert!(missing.starts_with("Concerto.toml:1:1: `[project]` is missing"));
        assert_eq!(
            wrong("[connections.a]\nprovider = \"openai\""),
            "Concerto.toml:3:14: `connections.a.api_key_env` is missing"
        );
        assert!(wrong("[mcp.S]\ntransport = \"http\"").contains("`mcp.S.url` is missing"));
        assert!(wrong("[mcp.S]\n").contains("no `command` and no `url`"));
        assert!(wrong("[mcp.a__b]\nurl = \"x\"").contains("no valid name"));
        assert!(wrong("[agents.a]\n").contains("`agents.a.command` is missing"));
    }

    #[test]
    fn a_mistake_in_the_text_has_its_line() {
        let said = wrong("[connections.a]\nprovider = ");
        assert!(said.starts_with("Concerto.toml:4:"), "{said}");
        assert!(!said.contains('|'), "{said}");
    }

    #[test]
    fn every_wrong_type_is_told_at_once_and_in_order() {
        let said = wrong(
            r#"version = 1
[connections.desk]
provider = "opnai"
timeout = "30"
models = { a = 1 }
retry = { max_attempts = -1, backoff = "quickly" }
rate_limit = 5
[mcp]
T = 3
[mcp.S]
transport = "stdo"
command = ["x"]
env = { A = 1 }
[agents.a]
command = "x"
args = "y"
timeout = -1
[permissions]
fs = "all"
http = [1]
process = "yes"
"#,
        );
        let expected = [
            "3:11: `project.version` is a string, and this is a number",
            "5:12: `connections.desk.provider` is none of openai, anthropic, google, ollama, custom, mock; \
             did you mean `openai`?",
            "6:11: `connections.desk.timeout` is a number of seconds, and this is a string",
            "7:16: `connections.desk.models.a` is a string, and this is a number",
            "8:26: `connections.desk.retry.max_attempts` is a whole number from 0 on",
            "8:40: `connections.desk.retry.backoff` is none of none, linear, exponential",
            "9:14: `connections.desk.rate_limit` is a table, and this is a number",
            "11:5: `mcp.T` is a table, and this is a number",
            "13:13: `mcp.S.transport` is none of stdio, http, sse; did you mean `stdio`?",
            "14:11: `mcp.S.command` is a string, and this is a list",
            "15:13: `mcp.S.env.A` is a string, and this is a number",
            "18:8: `agents.a.args` is a list of strings",
            "19:11: `agents.a.timeout` is a number of seconds",
            "21:6: `permissions.fs` is a list of strings, or `true` for all",
            "22:8: `permissions.http` is a list of strings, or `true` for all",
            "23:11: `permissions.process` is `true` or `false`, and this is a string",
        ];
        let expected = expected.map(|it| format!("Concerto.toml:{it}"));
        assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn sections_and_keys_that_are_nearly_right_are_recognised() {
        let text =
            "[project]\nname = \"a\"\nversoin = \"1\"\n[conections.desk]\nprovider = \"mock\"\n";
        let warnings = Manifest::read(text).unwrap().warnings;
        let warnings: Vec<_> = warnings.iter().map(Note::to_string).collect();
        assert_eq!(
            warnings,
            [
                "3:1: unknown key `project.versoin`; did you mean `version`?",
                "4:2: unknown key or section `conections`; did you mean `connections`?",
            ]
        );
    }
}
