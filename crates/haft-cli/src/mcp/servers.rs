//! The MCP servers that a command works with: those of the configuration, or one that only the command line
//! knows.

use std::path::Path;
use std::sync::Arc;

use haft::JsonSchemaFactory;
use haft::models::process_environment;
use haft_mcp::{
    ConnectOptions, Label, Launcher, OAuthOptions, Pool, Questions, Secret, Server, ServerConfig,
    ServerStatus, SettingsError, TokenStore,
};

use crate::arguments::{AdHoc, McpFrom};
use crate::config::{McpServer, Resolved, without_models};
use crate::failure::Failure;
use crate::serve::data_dir;
use crate::text::{nearest, one_line};
use crate::user_dirs;

/// The status of servers whose settings cannot be used.
pub(crate) fn unusable_status(unusable: &[(Label, SettingsError)]) -> Vec<ServerStatus> {
    let unusable = unusable.iter();
    unusable
        .map(|(label, error)| ServerStatus::unusable(label.as_str(), error.to_string()))
        .collect()
}

/// What a server is called that only the command line knows.
const AD_HOC: &str = "server";

/// The file of the logins, in the data folder.
const TOKENS: &str = "mcp-tokens.json";

/// The data folder, for whoever reads and for whoever writes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Folder {
    /// It is made, if it is not there.
    Made,
    /// It is looked into, if it is there.
    AsItIs,
    /// It is made where that is possible; otherwise nothing is remembered.
    Optional,
}

/// The servers of a command.
pub(super) struct Servers {
    pub(super) pool: Pool,
    /// Those that cannot be used, and why.
    pub(super) unusable: Vec<(Label, SettingsError)>,
    /// All labels, in their order.
    pub(super) labels: Vec<Label>,
    pub(super) config: Resolved,
    /// Why the data folder cannot be written, where the command works without.
    pub(super) folder_problem: Option<Failure>,
}

impl Servers {
    /// Those of the configuration, with what is known of them.
    pub(super) fn configured(
        from: &McpFrom,
        folder: Folder,
        questions: Questions,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let mut config = without_models(from.config.as_deref())?;
        if let Some(folder) = &from.data_dir {
            config.data_dir.clone_from(folder);
        } else if config.data_dir == Path::new("haft-data")
            && !Path::new("haft.toml").exists()
            && let Some(folder) = user_dirs::data()
        {
            // Servers of variables belong to no project.
            config.data_dir = folder;
        }
        let mut folder_problem = None;
        let folder = match (config.mcp.as_slice(), folder) {
            ([], _) => None,
            (_, Folder::Made) => Some(data_dir(&config.data_dir)?),
            (_, Folder::AsItIs) => Some(config.data_dir.clone()),
            (_, Folder::Optional) => match data_dir(&config.data_dir) {
                Ok(folder) => Some(folder),
                Err(problem) => {
                    folder_problem = Some(problem);
                    // What was pinned there still counts.
                    Some(config.data_dir.clone()).filter(|it| it.is_dir())
                }
            },
        };
        let (pool, unusable) = pool_of(&config.mcp, folder.as_deref(), questions)?;
        Ok(Self {
            labels: config.mcp.iter().map(|it| it.label.clone()).collect(),
            pool,
            unusable,
            config,
            folder_problem,
        })
    }

    /// The one of the command line, if there is one, else those of the configuration.
    pub(super) fn open(
        ad_hoc: &AdHoc,
        from: &McpFrom,
        folder: Folder,
        questions: Questions,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let Some(server) = ad_hoc_server(ad_hoc)? else {
            return Self::configured(from, folder, questions);
        };
        // What bounds a call is said by the configuration, if there is one.
        let config = without_models(from.config.as_deref())?;
        let labels = vec![server.label.clone()];
        let (pool, unusable) = pool_of(&[server], None, questions)?;
        Ok(Self {
            pool,
            unusable,
            labels,
            config,
            folder_problem: None,
        })
    }

    /// The server of this name; of the only one where none is named.
    pub(super) fn find(&self, name: Option<&str>) -> Result<Arc<Server>, Failure> {
        let name = match (name, self.labels.as_slice()) {
            (Some(name), _) => name,
            (None, [only]) => only.as_str(),
            (None, _) => return Err(Failure::mistake("no server is named")),
        };
        if let Some((label, error)) = self.unusable.iter().find(|it| it.0.as_str() == name) {
            let text = format!("server `{label}` cannot be used: {error}");
            return Err(Failure::mistake(text));
        }
        self.pool.server(name).ok_or_else(|| self.unknown(name))
    }

    /// The status of the servers whose settings cannot be used.
    pub(super) fn unusable_status(&self) -> Vec<ServerStatus> {
        unusable_status(&self.unusable)
    }

    fn unknown(&self, name: &str) -> Failure {
        let known = self.labels.iter().map(Label::as_str);
        let failure = Failure::mistake(format!("there is no MCP server `{}`", one_line(name, 64)));
        failure.remedy(match nearest(name, known) {
            _ if self.labels.is_empty() => String::from(
                "describe it in `[mcp.NAME]` of `haft.toml`, or give it with `--command` or `--url`",
            ),
            Some(near) => format!("did you mean `{near}`?"),
            None => String::from("`haft mcp list` shows those that there are"),
        })
    }
}

/// A pool of these servers. Without a folder nothing is remembered and nothing is pinned. `questions`:
/// whether calls bring somebody along who answers what servers ask.
pub(crate) fn pool_of(
    servers: &[McpServer],
    folder: Option<&Path>,
    questions: Questions,
) -> Result<(Pool, Vec<(Label, SettingsError)>), Failure> {
    let options = ConnectOptions {
        oauth: OAuthOptions {
            tokens: folder.map(tokens_in),
            opener: None,
        },
        ..connect_options(questions)
    };
    let mut builder = Pool::builder().connect(options);
    if let Some(folder) = folder {
        builder = builder.data_dir(folder);
    }
    let pool = builder.build();
    let mut unusable = Vec::new();
    for server in servers {
        match &server.settings {
            Ok(settings) => {
                let added = pool.add(settings.clone());
                added.map_err(|error| Failure::mistake(error.to_string()))?;
            }
            Err(error) => unusable.push((server.label.clone(), error.clone())),
        }
    }
    Ok((pool, unusable))
}

/// How servers are started and reached.
pub(crate) fn connect_options(questions: Questions) -> ConnectOptions {
    ConnectOptions {
        version: env!("CARGO_PKG_VERSION").into(),
        launcher: launcher(),
        validator: Some(Arc::new(JsonSchemaFactory)),
        questions,
        ..ConnectOptions::default()
    }
}

/// The logins that are kept in this data folder.
pub(super) fn tokens_in(folder: &Path) -> TokenStore {
    TokenStore::file(folder.join(TOKENS))
}

/// Programs are started through this one, which ends them when haft is gone.
#[cfg(unix)]
fn launcher() -> Launcher {
    let Ok(own) = std::env::current_exe() else {
        return Launcher::default();
    };
    let parent = std::process::id().to_string();
    let words = ["mcp", "supervise", "--parent", &parent, "--"];
    let words = words.into_iter().map(Into::into);
    Launcher::through(std::iter::once(own.into_os_string()).chain(words))
}

#[cfg(not(unix))]
fn launcher() -> Launcher {
    Launcher::default()
}

/// The server of the command line.
fn ad_hoc_server(said: &AdHoc) -> Result<Option<McpServer>, Failure> {
    let mut config = ServerConfig::default();
    match (&said.command, &said.url) {
        (Some(command), _) => {
            let mut words = words(command)?.into_iter();
            config.command = Some(words.next().unwrap_or_default());
            config.args = words.collect();
        }
        (None, Some(url)) => config.url = Some(url.clone()),
        (None, None) => return Ok(None),
    }
    for pair in &said.env {
        let (name, value) = variable_pair(pair)?;
        config.env.insert(name.to_owned(), Secret::new(value));
    }
    for header in &said.header {
        let (name, value) = header_pair(header)?;
        config.headers.insert(name.to_owned(), Secret::new(value));
    }
    config.bearer_env.clone_from(&said.bearer_env);
    let wrong = |text: String| Failure::mistake(text);
    let label = Label::new(AD_HOC).map_err(|error| wrong(error.to_string()))?;
    let settings = config.resolve(label.clone(), &process_environment);
    let settings = settings.map_err(|error| wrong(error.to_string()))?;
    Ok(Some(McpServer {
        label,
        settings: Ok(settings),
        from: String::from("the command line"),
    }))
}

/// The parts of `--env`.
pub(super) fn variable_pair(pair: &str) -> Result<(&str, &str), Failure> {
    pair.split_once('=')
        .ok_or_else(|| Failure::mistake("`--env` has no value").remedy("write `--env KEY=VALUE`"))
}

/// The parts of `--header`.
pub(super) fn header_pair(header: &str) -> Result<(&str, &str), Failure> {
    let (name, value) = header.split_once(':').ok_or_else(|| {
        Failure::mistake("`--header` has no value").remedy("write `--header 'NAME: VALUE'`")
    })?;
    Ok((name.trim(), value.trim()))
}

/// A line as a shell would take it apart: blanks, quotes, backslashes.
fn words(line: &str) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(characters.next()),
            (None, blank) if blank.is_whitespace() => words.extend(word.take()),
            (_, other) => word.get_or_insert_default().push(other),
        }
    }
    if quote.is_some() {
        return Err(Failure::mistake("a quote of `--command` is not closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_taken_apart_as_a_shell_would() {
        let read = |line: &str| words(line).map_err(|it| it.to_string());
        let expected = ["npx", "-y", "a b", "c\"d", "", "e f"].map(String::from);
        let line = r#"npx  -y 'a b' "c\"d" "" e\ f "#;
        assert_eq!(read(line), Ok(expected.into()));
        assert_eq!(read("  "), Ok(Vec::new()));
        assert!(read("a 'b").unwrap_err().contains("not closed"));
    }
}
