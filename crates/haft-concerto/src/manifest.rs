//! `Concerto.toml` (concerto.md §16).

use serde_json::{Map, Value as Json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::ir;

/// Why a manifest cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is no TOML.
    #[error("Concerto.toml: {0}")]
    Syntax(String),
    /// Something in it is missing or of the wrong form.
    #[error("Concerto.toml: `{place}` {problem}")]
    Invalid {
        /// Which table or key.
        place: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
}

fn invalid(place: impl Into<String>, problem: impl Into<String>) -> ManifestError {
    ManifestError::Invalid {
        place: place.into(),
        problem: problem.into(),
    }
}

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
    /// Keys that mean nothing here.
    pub warnings: Vec<String>,
}

const PROVIDERS: [&str; 6] = ["openai", "anthropic", "google", "ollama", "custom", "mock"];
const CONNECTION_KEYS: &[&str] = &[
    "provider",
    "api_key_env",
    "base_url",
    "default_model",
    "timeout",
    "models",
    "retry",
    "rate_limit",
];
const RETRY_KEYS: &[&str] = &[
    "max_attempts",
    "backoff",
    "initial_delay_ms",
    "max_delay_ms",
];
const RATE_KEYS: &[&str] = &[
    "requests_per_minute",
    "tokens_per_minute",
    "concurrent_requests",
];
const SERVER_KEYS: &[&str] = &["transport", "command", "url", "timeout", "env"];
const AGENT_KEYS: &[&str] = &[
    "transport",
    "command",
    "args",
    "env",
    "working_dir",
    "timeout",
    "params",
];

impl Manifest {
    /// Reads the text of a manifest.
    ///
    /// ```
    /// use haft_concerto::manifest::Manifest;
    ///
    /// let text = "[project]\nname = \"shop\"\n[connections.desk]\nprovider = \"mock\"\n";
    /// let manifest = Manifest::read(text)?;
    /// assert_eq!(manifest.connections[0].name, "desk");
    /// # Ok::<(), haft_concerto::manifest::ManifestError>(())
    /// ```
    pub fn read(text: &str) -> Result<Self, ManifestError> {
        let table = DeTable::parse(text).map_err(|it| ManifestError::Syntax(it.to_string()))?;
        let table = json_table(table.get_ref());
        let mut manifest = Self::default();
        manifest.known(
            "",
            &table,
            &["project", "connections", "mcp", "agents", "permissions"],
        );
        let project = table.get("project");
        let project =
            project.ok_or_else(|| invalid("[project]", "is missing; it names the project"))?;
        manifest.project(members("project", project)?)?;
        for (name, value) in entries(&table, "connections")? {
            let place = format!("connections.{name}");
            let mut config = members(&place, value)?.clone();
            manifest.connection(&place, &config)?;
            // What means nothing here may be a key.
            config.retain(|key, _| CONNECTION_KEYS.contains(&key.as_str()));
            let name = name.clone();
            let config = Json::Object(config);
            manifest.connections.push(ir::Connection { name, config });
        }
        for (name, value) in entries(&table, "mcp")? {
            let place = format!("mcp.{name}");
            if !is_label(name) {
                let problem = "is no valid name: letters, digits and `-`, single `_` between them, at most 24";
                return Err(invalid(place, problem));
            }
            let mut config = members(&place, value)?.clone();
            manifest.server(&place, &config)?;
            config.retain(|key, _| SERVER_KEYS.contains(&key.as_str()));
            config.insert("type".to_owned(), "mcp".into());
            let name = name.clone();
            let config = Json::Object(config);
            manifest.servers.push(ir::Connection { name, config });
        }
        for (name, value) in entries(&table, "agents")? {
            let place = format!("agents.{name}");
            let config = members(&place, value)?.clone();
            manifest.known(&place, &config, AGENT_KEYS);
            require(&place, &config, "command")?;
            manifest.agents.push((name.clone(), config));
        }
        if let Some(value) = table.get("permissions") {
            let config = members("permissions", value)?;
            manifest.known("permissions", config, &["fs", "http", "env", "process"]);
            manifest.permissions = Permissions {
                fs: grant(config, "fs")?,
                http: grant(config, "http")?,
                env: grant(config, "env")?,
                process: config
                    .get("process")
                    .and_then(Json::as_bool)
                    .unwrap_or(false),
            };
        }
        Ok(manifest)
    }

    fn known(&mut self, place: &str, config: &Map<String, Json>, keys: &[&str]) {
        for key in config.keys().filter(|key| !keys.contains(&key.as_str())) {
            let place = if place.is_empty() {
                String::new()
            } else {
                format!("{place}.")
            };
            self.warnings
                .push(format!("Concerto.toml: unknown key `{place}{key}`"));
        }
    }

    fn project(&mut self, config: &Map<String, Json>) -> Result<(), ManifestError> {
        self.known("project", config, &["name", "version", "entry"]);
        require("project", config, "name")?.clone_into(&mut self.name);
        self.version = text("project", config, "version")?.map(str::to_owned);
        self.entry = text("project", config, "entry")?.map(str::to_owned);
        Ok(())
    }

    fn connection(&mut self, place: &str, config: &Map<String, Json>) -> Result<(), ManifestError> {
        self.known(place, config, CONNECTION_KEYS);
        let provider = require(place, config, "provider")?;
        if !PROVIDERS.contains(&provider) {
            let known = PROVIDERS.join(", ");
            return Err(invalid(
                format!("{place}.provider"),
                format!("is none of {known}"),
            ));
        }
        for key in ["api_key_env", "base_url", "default_model"] {
            text(place, config, key)?;
        }
        if matches!(provider, "openai" | "anthropic" | "google") {
            require(place, config, "api_key_env")?;
        }
        without_password(place, config, "base_url")?;
        for (key, keys) in [("retry", RETRY_KEYS), ("rate_limit", RATE_KEYS)] {
            if let Some(value) = config.get(key) {
                let place = format!("{place}.{key}");
                self.known(&place, members(&place, value)?, keys);
            }
        }
        if let Some(models) = config.get("models") {
            let place = format!("{place}.models");
            let models = members(&place, models)?;
            if let Some((name, _)) = models.iter().find(|(_, value)| !value.is_string()) {
                return Err(invalid(
                    format!("{place}.{name}"),
                    "is the name of a model, a string",
                ));
            }
        }
        Ok(())
    }

    fn server(&mut self, place: &str, config: &Map<String, Json>) -> Result<(), ManifestError> {
        self.known(place, config, SERVER_KEYS);
        without_password(place, config, "url")?;
        let transport = text(place, config, "transport")?;
        match transport {
            Some("stdio") => drop(require(place, config, "command")?),
            Some("http" | "sse") => drop(require(place, config, "url")?),
            None if config.contains_key("command") || config.contains_key("url") => {}
            _ => {
                let problem = "is one of stdio, http, sse";
                return Err(invalid(format!("{place}.transport"), problem));
            }
        }
        Ok(())
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

fn members<'t>(place: &str, value: &'t Json) -> Result<&'t Map<String, Json>, ManifestError> {
    value
        .as_object()
        .ok_or_else(|| invalid(place, "is a table"))
}

fn entries<'t>(
    table: &'t Map<String, Json>,
    key: &str,
) -> Result<Vec<(&'t String, &'t Json)>, ManifestError> {
    match table.get(key) {
        Some(value) => Ok(members(key, value)?.iter().collect()),
        None => Ok(Vec::new()),
    }
}

fn text<'t>(
    place: &str,
    config: &'t Map<String, Json>,
    key: &str,
) -> Result<Option<&'t str>, ManifestError> {
    match config.get(key) {
        Some(Json::String(text)) => Ok(Some(text)),
        Some(_) => Err(invalid(format!("{place}.{key}"), "is a string")),
        None => Ok(None),
    }
}

fn require<'t>(
    place: &str,
    config: &'t Map<String, Json>,
    key: &str,
) -> Result<&'t str, ManifestError> {
    let found = text(place, config, key)?;
    found.ok_or_else(|| invalid(format!("{place}.{key}"), "is missing"))
}

/// An address is written into the IR, which holds no secret.
fn without_password(
    place: &str,
    config: &Map<String, Json>,
    key: &str,
) -> Result<(), ManifestError> {
    let address = text(place, config, key)?.unwrap_or_default();
    let (_, rest) = address.split_once("://").unwrap_or(("", address));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        let problem =
            "holds a user or password: put a key into the environment and name it in `api_key_env`";
        return Err(invalid(format!("{place}.{key}"), problem));
    }
    Ok(())
}

fn grant(config: &Map<String, Json>, key: &str) -> Result<Grant, ManifestError> {
    let wrong = || {
        invalid(
            format!("permissions.{key}"),
            "is a list of strings, or `true` for all",
        )
    };
    match config.get(key) {
        None | Some(Json::Bool(false)) => Ok(Grant::None),
        Some(Json::Bool(true)) => Ok(Grant::All),
        Some(Json::Array(list)) => {
            let texts = list.iter().map(|it| it.as_str().map(str::to_owned));
            texts
                .collect::<Option<_>>()
                .map(Grant::Only)
                .ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}

/// A table as JSON, its members in the order of the file.
fn json_table(table: &DeTable<'_>) -> Map<String, Json> {
    let mut list: Vec<_> = table.iter().collect();
    list.sort_by_key(|(key, _)| key.span().start);
    let pair = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
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
        assert!(manifest.warnings[0].contains("`connections.desk.api_key`"));
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
        assert_eq!(
            manifest.warnings,
            ["Concerto.toml: unknown key `connections.alpha.extra`"]
        );
    }

    #[test]
    fn what_is_missing_is_told_with_its_place() {
        assert!(
            Manifest::read("")
                .unwrap_err()
                .to_string()
                .contains("[project]")
        );
        assert!(Manifest::read("a = ").is_err());
        let shown = wrong("[connections.a]\nprovider = \"openai\"");
        assert_eq!(
            shown,
            "Concerto.toml: `connections.a.api_key_env` is missing"
        );
        assert!(wrong("[connections.a]\nprovider = \"x\"").contains("is none of openai"));
        assert!(wrong("[mcp.S]\ntransport = \"http\"").contains("`mcp.S.url` is missing"));
        assert!(wrong("[mcp.S]\n").contains("stdio, http, sse"));
        assert!(wrong("[mcp.a__b]\nurl = \"x\"").contains("no valid name"));
    }
}
