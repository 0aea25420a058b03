//! One server of another program's file, in haft's keys.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use haft_mcp::{HttpKind, Label, Secret, ServerConfig};
use serde_json::{Map, Value};

use super::client_file::Scope;
use crate::text::one_line;

/// The longest label.
const LABEL_BYTES: usize = 24;

/// What `${` means in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    /// A reference to a variable.
    References,
    /// Itself: Codex expands nothing.
    Literal,
}

/// Reads texts in the syntax of their file.
struct Reader<'a> {
    syntax: Syntax,
    scope: Scope<'a>,
    notes: &'a mut Vec<String>,
}

/// An entry in haft's keys. An error is the reason to skip it, and quotes no value.
pub(super) fn config_of(
    entry: &Map<String, Value>,
    syntax: Syntax,
    scope: Scope<'_>,
    notes: &mut Vec<String>,
) -> Result<ServerConfig, String> {
    let mut config = ServerConfig::default();
    let mut reader = Reader {
        syntax,
        scope,
        notes,
    };
    for (key, value) in entry {
        if value.is_null() {
            continue;
        }
        match key.as_str() {
            "command" => config.command = Some(reader.text(key, value)?),
            "args" => config.args = reader.texts(key, value)?,
            "env" => config.env.extend(reader.secrets(key, value)?),
            "env_vars" => config.env.extend(passed_on(value)),
            "cwd" => config.cwd = Some(reader.text(key, value)?.into()),
            "url" | "serverUrl" | "httpUrl" => config.url = Some(reader.text(key, value)?),
            "headers" | "http_headers" => config.headers.extend(reader.secrets(key, value)?),
            "env_http_headers" => {
                let names = Reader {
                    syntax: Syntax::Literal,
                    ..reader.again()
                }
                .secrets(key, value)?;
                let headers = names.into_iter();
                let headers = headers.map(|(name, it)| (name, reference(it.expose())));
                config.headers.extend(headers);
            }
            "bearer_token_env_var" => config.bearer_env = value.as_str().map(str::to_owned),
            "description" => config.description = value.as_str().map(str::to_owned),
            "startup_timeout_sec" => config.connect_timeout = seconds(key, value, 1.0)?,
            "startup_timeout_ms" => config.connect_timeout = seconds(key, value, 1000.0)?,
            "tool_timeout_sec" => config.call_timeout = seconds(key, value, 1.0)?,
            // Gemini CLI and Windsurf: milliseconds.
            "timeout" => config.call_timeout = seconds(key, value, 1000.0)?,
            "enabled_tools" | "includeTools" => config.allow = Some(names(key, value)?),
            "disabled_tools" | "excludeTools" | "disabledTools" => {
                config.deny = names(key, value)?;
            }
            "type" | "transport" => match value.as_str() {
                Some("sse") => config.transport = Some(HttpKind::Sse),
                Some("http" | "streamable-http" | "streamableHttp" | "streamable") => {
                    config.transport = Some(HttpKind::Streamable);
                }
                Some("stdio" | "local" | "remote") => {}
                _ => return Err(format!("`{key}` is none of `stdio`, `http` and `sse`")),
            },
            // Calls are not asked about unless `approve` says so.
            "disabled" | "enabled" | "trust" => {}
            key => {
                let key = one_line(key, 64);
                reader
                    .notes
                    .push(format!("`{key}` has no meaning for haft and is ignored"));
            }
        }
    }
    if config.command.is_some() && config.url.is_none() {
        config.transport = None;
    }
    in_project(&mut config, scope);
    Ok(config)
}

/// Programs of a project are started in its folder where they are named relative to it.
fn in_project(config: &mut ServerConfig, scope: Scope<'_>) {
    let Scope::Project(folder) = scope else {
        return;
    };
    let is_relative = |text: &str| text.starts_with("./") || text.starts_with("../");
    let is_local = |text: &str| text.contains('/') && Path::new(text).is_relative();
    let command = config.command.as_deref();
    if let Some(cwd) = &mut config.cwd {
        if !cwd.display().to_string().starts_with("${") {
            *cwd = folder.join(&*cwd);
        }
    } else if command.is_some_and(|it| is_local(it) && !it.starts_with("${"))
        || (command.is_some() && config.args.iter().any(|it| is_relative(it)))
    {
        config.cwd = Some(folder.to_owned());
    }
}

impl Reader<'_> {
    fn again(&mut self) -> Reader<'_> {
        Reader {
            syntax: self.syntax,
            scope: self.scope,
            notes: self.notes,
        }
    }

    fn text(&mut self, key: &str, value: &Value) -> Result<String, String> {
        let text = value
            .as_str()
            .ok_or_else(|| format!("`{key}` is not a text"))?;
        self.expressed(text)
    }

    fn texts(&mut self, key: &str, value: &Value) -> Result<Vec<String>, String> {
        let wrong = || format!("`{key}` is not a list of texts");
        let list = value.as_array().ok_or_else(wrong)?.iter();
        let texts = list.map(|it| match it {
            Value::String(text) => self.expressed(text),
            Value::Number(number) => Ok(number.to_string()),
            _ => Err(wrong()),
        });
        texts.collect()
    }

    fn secrets(&mut self, key: &str, value: &Value) -> Result<BTreeMap<String, Secret>, String> {
        let wrong = || format!("`{key}` is not an object of texts");
        let members = value.as_object().ok_or_else(wrong)?.iter();
        let members = members.filter(|(_, value)| !value.is_null());
        let members = members.map(|(name, value)| {
            let text = match value {
                Value::String(text) => self.expressed(&braced(text, self.syntax))?,
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                _ => return Err(wrong()),
            };
            Ok((name.clone(), Secret::new(text)))
        });
        members.collect()
    }

    /// The text with the references of editors in haft's form.
    fn expressed(&mut self, text: &str) -> Result<String, String> {
        if self.syntax == Syntax::Literal {
            return Ok(text.replace("${", "$${"));
        }
        let mut expressed = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("${") {
            expressed.push_str(before);
            let Some((reference, behind)) = behind.split_once('}') else {
                return Err(String::from("a `${` has no `}`"));
            };
            expressed.push_str(&self.reference(reference)?);
            rest = behind;
        }
        expressed.push_str(rest);
        Ok(expressed)
    }

    fn reference(&mut self, name: &str) -> Result<String, String> {
        let project = match self.scope {
            Scope::Project(folder) => Some(folder),
            Scope::User => None,
        };
        let of_project = |text: Option<String>| {
            text.ok_or_else(|| format!("`${{{name}}}` has a value in the project only"))
        };
        Ok(match name {
            "userHome" => String::from("${HOME}"),
            "pathSeparator" | "/" => String::from(std::path::MAIN_SEPARATOR_STR),
            "workspaceFolder" | "CLAUDE_PROJECT_DIR" => {
                of_project(project.map(|it| it.display().to_string()))?
            }
            "workspaceFolderBasename" => of_project(
                project
                    .and_then(Path::file_name)
                    .map(|it| it.to_string_lossy().into_owned()),
            )?,
            _ => match name.split_once(':') {
                Some(("input", id)) => {
                    let variable = variable_name(id);
                    self.notes.push(format!(
                        "the editor asks for `{}`; haft reads the variable `{variable}` instead",
                        one_line(id, 64)
                    ));
                    format!("${{{variable}}}")
                }
                Some(("env", variable)) => format!("${{{variable}}}"),
                // `${NAME:-default}`
                Some((_, default)) if default.starts_with('-') => format!("${{{name}}}"),
                Some(_) => {
                    return Err(format!(
                        "`${{{}}}` is not known to haft",
                        one_line(name, 64)
                    ));
                }
                None => format!("${{{name}}}"),
            },
        })
    }
}

/// The names of tools.
fn names(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let list = value.as_array().into_iter().flatten();
    let names: Option<Vec<String>> = list.map(|it| it.as_str().map(str::to_owned)).collect();
    let names = names.filter(|_| value.is_array());
    names.ok_or_else(|| format!("`{key}` is not a list of texts"))
}

/// Gemini CLI writes `$NAME` for `${NAME}`; only a whole value is taken for that.
fn braced(text: &str, syntax: Syntax) -> String {
    let is_name = |name: &str| {
        let mut characters = name.chars();
        characters
            .next()
            .is_some_and(|it| it.is_ascii_uppercase() || it == '_')
            && characters.all(|it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_')
    };
    match text.strip_prefix('$') {
        Some(name) if syntax == Syntax::References && is_name(name) => format!("${{{name}}}"),
        _ => text.to_owned(),
    }
}

/// A name for a variable: capital letters, digits and `_`.
pub(crate) fn variable_name(text: &str) -> String {
    let legal = |it: char| {
        if it.is_ascii_alphanumeric() {
            it.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let name: String = text.chars().map(legal).collect();
    if name.starts_with(|it: char| it.is_ascii_digit()) {
        format!("_{name}")
    } else {
        name
    }
}

fn reference(variable: &str) -> Secret {
    Secret::new(format!("${{{variable}}}"))
}

/// The variables that Codex passes on by name.
fn passed_on(value: &Value) -> Vec<(String, Secret)> {
    let names = value.as_array().into_iter().flatten();
    let names = names.filter_map(|it| it.as_str().or_else(|| it["name"].as_str()));
    names
        .map(|name| (name.to_owned(), reference(name)))
        .collect()
}

fn seconds(key: &str, value: &Value, per_second: f64) -> Result<Option<Duration>, String> {
    let number = value.as_f64().map(|number| number / per_second);
    let duration = number.and_then(|it| Duration::try_from_secs_f64(it).ok());
    let duration = duration.filter(|it| !it.is_zero());
    duration
        .map(Some)
        .ok_or_else(|| format!("`{key}` is not a time"))
}

/// Whether a server is `haft mcp serve`, by whatever program it is started. Clients list it beside the servers that haft
/// is to serve; a gateway that starts itself never ends.
pub(super) fn starts_haft(config: &ServerConfig) -> bool {
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
pub(super) fn label_of(name: &str) -> Option<Label> {
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn programs_of_a_project_start_in_its_folder() {
        let folder = Path::new("/srv/project");
        for (entry, cwd) in [
            (
                serde_json::json!({"command": "./run.sh"}),
                Some("/srv/project"),
            ),
            (
                serde_json::json!({"command": "node", "args": ["./x.js"]}),
                Some("/srv/project"),
            ),
            (
                serde_json::json!({"command": "node", "cwd": "sub"}),
                Some("/srv/project/sub"),
            ),
            (
                serde_json::json!({"command": "npx", "args": ["-y", "@a/b"]}),
                None,
            ),
        ] {
            let entry = entry.as_object().unwrap();
            let config = config_of(
                entry,
                Syntax::References,
                Scope::Project(folder),
                &mut Vec::new(),
            );
            assert_eq!(config.unwrap().cwd.as_deref(), cwd.map(Path::new));
        }
    }
}
