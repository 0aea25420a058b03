//! A server as a table of `haft.toml`, and the file that it is written to.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_mcp::{HttpKind, Label, Secret, ServerConfig};

use crate::arguments::McpFrom;
use crate::edit::toml_tables::{self, key, quoted};
use crate::edit::{Access, EditError, write_whole};
use crate::failure::Failure;
use crate::user_dirs;

/// `haft.toml` while servers are added and removed.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    pub(super) is_new: bool,
    text: String,
}

impl ConfigFile {
    /// The file of `--config`, else `haft.toml` of this folder, else the user's.
    pub(super) fn open(from: &McpFrom) -> Result<Self, Failure> {
        let path = Self::path_of(from);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                let shown = path.display();
                return Err(Failure::new(format!("cannot read `{shown}`: {error}")));
            }
        };
        Ok(Self {
            is_new: text.is_none(),
            text: text.unwrap_or_default(),
            path,
        })
    }

    pub(super) fn path_of(from: &McpFrom) -> PathBuf {
        let here = PathBuf::from("haft.toml");
        match &from.config {
            Some(path) => path.clone(),
            None if here.exists() => here,
            None => user_dirs::config_file().unwrap_or(here),
        }
    }

    /// The labels of its `[mcp.NAME]` tables.
    pub(super) fn labels(&self) -> Result<Vec<String>, Failure> {
        let table = toml_tables::parse(&self.text).map_err(|error| self.wrong(&error))?;
        let servers = table.get("mcp").and_then(toml::Value::as_table);
        let servers = servers.into_iter().flat_map(|it| it.keys().cloned());
        Ok(servers.collect())
    }

    pub(super) fn add(&mut self, label: &Label, config: &ServerConfig) -> Result<(), Failure> {
        let new = toml_tables::append(&self.text, &table(label, config));
        self.text = new.map_err(|error| self.wrong(&error))?;
        Ok(())
    }

    pub(super) fn remove(&mut self, label: &str) -> Result<(), Failure> {
        let new = toml_tables::remove(&self.text, &["mcp", label]);
        self.text = new.map_err(|error| self.wrong(&error))?;
        Ok(())
    }

    /// Writes it, for its owner alone where it holds secrets.
    pub(super) fn write(&self, access: Access) -> Result<(), Failure> {
        write_whole(&self.path, &self.text, access).map_err(|error| {
            let shown = self.path.display();
            Failure::new(format!("cannot write `{shown}`: {error}"))
                .remedy("name another file with `--config FILE`")
        })
    }

    fn wrong(&self, error: &EditError) -> Failure {
        Failure::mistake(format!("`{}`: {error}", self.path.display()))
            .remedy("`haft config check` shows what is wrong with a configuration")
    }

    /// Its path from the root, for programs that run elsewhere.
    pub(super) fn absolute(path: &Path) -> PathBuf {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        std::fs::canonicalize(&absolute).unwrap_or(absolute)
    }
}

/// A server as TOML.
pub(super) fn table(label: &Label, config: &ServerConfig) -> String {
    let mut text = format!("[mcp.{}]\n", key(label.as_str()));
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name} = {value}");
    };
    let path = |path: &Path| quoted(&path.display().to_string());
    if let Some(it) = &config.description {
        line("description", quoted(it));
    }
    if let Some(it) = &config.command {
        line("command", quoted(it));
    }
    if !config.args.is_empty() {
        line("args", list(&config.args));
    }
    if let Some(it) = &config.url {
        line("url", quoted(it));
    }
    for (name, values) in [("env", &config.env), ("headers", &config.headers)] {
        if !values.is_empty() {
            line(name, members(values));
        }
    }
    if let Some(it) = &config.cwd {
        line("cwd", path(it));
    }
    if let Some(it) = &config.bearer_env {
        line("bearer_env", quoted(it));
    }
    match config.transport {
        Some(HttpKind::Sse) => line("transport", quoted("sse")),
        Some(HttpKind::Streamable) => line("transport", quoted("streamable")),
        Some(HttpKind::Auto) | None => {}
    }
    for (name, time) in [
        ("connect_timeout", config.connect_timeout),
        ("call_timeout", config.call_timeout),
    ] {
        if let Some(time) = time {
            line(name, seconds(time));
        }
    }
    if let Some(names) = &config.allow {
        line("allow", list(names));
    }
    if !config.deny.is_empty() {
        line("deny", list(&config.deny));
    }
    text
}

fn list(texts: &[String]) -> String {
    let texts: Vec<_> = texts.iter().map(|it| quoted(it)).collect();
    format!("[{}]", texts.join(", "))
}

fn members(values: &BTreeMap<String, Secret>) -> String {
    let members = values.iter();
    let members: Vec<_> = members
        .map(|(name, value)| format!("{} = {}", key(name), quoted(value.expose())))
        .collect();
    format!("{{ {} }}", members.join(", "))
}

fn seconds(time: Duration) -> String {
    if time.subsec_nanos() == 0 {
        time.as_secs().to_string()
    } else {
        format!("{:?}", time.as_secs_f64())
    }
}

/// What a server runs or where it is, in one line.
pub(super) fn summary(config: &ServerConfig) -> String {
    match (&config.command, &config.url) {
        (Some(command), _) => {
            let words = std::iter::once(command).chain(&config.args);
            words.cloned().collect::<Vec<_>>().join(" ")
        }
        (None, Some(url)) => crate::text::without_password(url),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_comes_back_as_the_same_server() {
        let config = ServerConfig {
            command: Some("a \"b\"".into()),
            args: vec!["-y".into(), "\\x".into()],
            env: BTreeMap::from([("A.B".into(), Secret::new("${A}"))]),
            cwd: Some("/x".into()),
            call_timeout: Some(Duration::from_millis(1500)),
            connect_timeout: Some(Duration::from_secs(5)),
            allow: Some(vec!["t".into()]),
            deny: vec!["u".into()],
            description: Some("é".into()),
            ..ServerConfig::default()
        };
        let text = table(&Label::new("files").unwrap(), &config);
        let parsed: toml::Table = text.parse().unwrap();
        let back: ServerConfig = parsed["mcp"]["files"].clone().try_into().unwrap();
        assert_eq!(format!("{back:?}"), format!("{config:?}"));
        assert_eq!(back.env["A.B"].expose(), "${A}");
        let config = ServerConfig {
            url: Some("https://x/mcp".into()),
            headers: BTreeMap::from([("X".into(), Secret::new("y"))]),
            bearer_env: Some("T".into()),
            transport: Some(HttpKind::Sse),
            ..ServerConfig::default()
        };
        let text = table(&Label::new("web").unwrap(), &config);
        let parsed: toml::Table = text.parse().unwrap();
        let back: ServerConfig = parsed["mcp"]["web"].clone().try_into().unwrap();
        assert_eq!(format!("{back:?}"), format!("{config:?}"));
    }
}
