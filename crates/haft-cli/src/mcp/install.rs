//! `haft mcp install`: haft as a server in the settings of another client.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use haft::{Value, json};

use super::clients::Client;
use super::table::ConfigFile;
use crate::arguments::McpInstallArguments;
use crate::config::client_file::{ClientFile, Scope};
use crate::config::without_models;
use crate::edit::jsonc::Jsonc;
use crate::edit::toml_tables::{self, quoted};
use crate::edit::{Access, EditError, write_whole};
use crate::failure::Failure;
use crate::terminal::print_json;

/// What haft is called in other clients.
const NAME: &str = "haft";

pub(super) fn install(arguments: &McpInstallArguments) -> Result<ExitCode, Box<dyn Error>> {
    let client = arguments.client;
    let path = settings_file(arguments)?;
    let config = ConfigFile::path_of(&arguments.from);
    let setting = setting(arguments, &config)?;
    if arguments.print {
        let text = if client == Client::Codex {
            codex_table(&setting)
        } else {
            let whole = json!({client.servers_key(): {NAME: setting}});
            format!("{}\n", serde_json::to_string_pretty(&whole)?)
        };
        write!(io::stdout(), "{text}")?;
        writeln!(io::stderr(), "belongs into `{}`", path.display())?;
        return Ok(ExitCode::SUCCESS);
    }
    let file = SettingsFile::open(client, path)?;
    let own = labels(arguments);
    let twice = file.offered_twice(&own);
    let mut text = if arguments.remove {
        file.without(&file.text, NAME)?
    } else {
        file.with(&setting)?
    };
    if arguments.replace_servers {
        for name in &twice {
            text = file.without(&text, name)?;
        }
    }
    let is_changed = text != file.text;
    let backup =
        (arguments.replace_servers && is_changed && !twice.is_empty() && !file.text.is_empty())
            .then(|| with_suffix(&file.path, ".bak"));
    if let Some(backup) = &backup {
        std::fs::copy(&file.path, backup).map_err(|error| {
            Failure::new(format!("cannot write `{}`: {error}", backup.display()))
        })?;
    }
    if is_changed {
        write_whole(&file.path, &text, Access::AsItIs).map_err(|error| {
            Failure::new(format!("cannot write `{}`: {error}", file.path.display()))
                .remedy("`--print` shows the setting, to be written by hand")
        })?;
    }
    let report = Report {
        arguments,
        file: &file,
        is_changed,
        backup: backup.as_deref(),
        twice: &twice,
        has_servers: !own.is_empty(),
    };
    if arguments.json {
        print_json(&report.json(&setting))?;
    } else {
        report.print()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The file that is changed.
fn settings_file(arguments: &McpInstallArguments) -> Result<PathBuf, Failure> {
    let client = arguments.client;
    if arguments.project {
        let here = std::env::current_dir().unwrap_or_default();
        return client.project_file(&here).ok_or_else(|| {
            Failure::mistake(format!("{} has no settings for projects", client.title()))
                .remedy("leave out `--project`")
        });
    }
    let path = client.user_file();
    path.ok_or_else(|| Failure::mistake("the home folder of this user is not known"))
}

/// haft, in the form of the client.
fn setting(arguments: &McpInstallArguments, config: &Path) -> Result<Value, Failure> {
    let client = arguments.client;
    if let Some(url) = &arguments.http {
        return over_http(client, url, arguments.bearer_env.as_deref());
    }
    let own = std::env::current_exe()
        .map_err(|error| Failure::new(format!("the path of this program is not known: {error}")))?;
    let mut args = vec![String::from("mcp"), String::from("serve")];
    // The client may start haft in any folder.
    if config.exists() {
        args.push(String::from("--config"));
        args.push(ConfigFile::absolute(config).display().to_string());
    }
    let mut setting = json!({"command": own.display().to_string(), "args": args});
    if matches!(client, Client::Claude | Client::Vscode) {
        setting = json!({"type": "stdio", "command": setting["command"], "args": setting["args"]});
    }
    Ok(setting)
}

fn over_http(client: Client, url: &str, bearer: Option<&str>) -> Result<Value, Failure> {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(Failure::mistake(
            "`--http` takes an address such as `http://127.0.0.1:4141/mcp`",
        ));
    }
    let mut setting = match client {
        Client::ClaudeDesktop => {
            return Err(
                Failure::mistake("Claude Desktop reads no addresses from its file")
                    .remedy("leave out `--http`: Claude Desktop starts haft itself then"),
            );
        }
        Client::Claude | Client::Vscode => json!({"type": "http", "url": url}),
        Client::Windsurf => json!({"serverUrl": url}),
        Client::Gemini => json!({"httpUrl": url}),
        Client::Codex | Client::Cursor => json!({"url": url}),
    };
    if let Some(variable) = bearer {
        let reference = match client {
            Client::Codex => {
                setting["bearer_token_env_var"] = variable.into();
                return Ok(setting);
            }
            Client::Claude | Client::ClaudeDesktop | Client::Gemini => format!("${{{variable}}}"),
            Client::Cursor | Client::Vscode | Client::Windsurf => format!("${{env:{variable}}}"),
        };
        setting["headers"] = json!({"Authorization": format!("Bearer {reference}")});
    }
    Ok(setting)
}

fn codex_table(setting: &Value) -> String {
    let mut text = format!("[mcp_servers.{NAME}]\n");
    for (key, value) in setting.as_object().into_iter().flatten() {
        let value = match value {
            Value::Array(list) => {
                let list = list
                    .iter()
                    .map(|it| quoted(it.as_str().unwrap_or_default()));
                format!("[{}]", list.collect::<Vec<_>>().join(", "))
            }
            value => quoted(value.as_str().unwrap_or_default()),
        };
        let _ = writeln!(text, "{key} = {value}");
    }
    text
}

/// The labels of haft's own servers, as far as its configuration can be read.
fn labels(arguments: &McpInstallArguments) -> Vec<String> {
    let config = without_models(arguments.from.config.as_deref());
    let servers = config.map(|it| it.mcp).unwrap_or_default();
    servers.iter().map(|it| it.label.to_string()).collect()
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A client's file.
struct SettingsFile {
    client: Client,
    path: PathBuf,
    text: String,
}

impl SettingsFile {
    fn open(client: Client, path: PathBuf) -> Result<Self, Failure> {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                let shown = path.display();
                return Err(Failure::new(format!("cannot read `{shown}`: {error}")));
            }
        };
        Ok(Self { client, path, text })
    }

    fn with(&self, setting: &Value) -> Result<String, Failure> {
        let wrong = |error: EditError| self.wrong(&error);
        let key = self.client.servers_key();
        if self.client != Client::Codex {
            let json = Jsonc::parse(&self.text).map_err(wrong)?;
            return json.with(&[key, NAME], setting).map_err(wrong);
        }
        let table = codex_table(setting);
        let (there, wanted) = (toml_tables::parse(&self.text), toml_tables::parse(&table));
        let (there, wanted) = (there.map_err(wrong)?, wanted.map_err(wrong)?);
        let there = there.get(key).and_then(|it| it.get(NAME));
        if there.is_some() && there == wanted.get(key).and_then(|it| it.get(NAME)) {
            return Ok(self.text.clone());
        }
        let without = toml_tables::remove(&self.text, &[key, NAME]).map_err(wrong)?;
        toml_tables::append(&without, &table).map_err(wrong)
    }

    fn without(&self, text: &str, name: &str) -> Result<String, Failure> {
        let wrong = |error: EditError| self.wrong(&error);
        let key = self.client.servers_key();
        if self.client == Client::Codex {
            return toml_tables::remove(text, &[key, name]).map_err(wrong);
        }
        if text.trim().is_empty() {
            return Ok(text.to_owned());
        }
        let json = Jsonc::parse(text).map_err(wrong)?;
        json.without(&[key, name]).map_err(wrong)
    }

    /// The servers of the client that haft has, too, by their names there.
    fn offered_twice(&self, own: &[String]) -> Vec<String> {
        let read = ClientFile::read(&self.path).and_then(|file| file.servers(Scope::User));
        let servers = read.map(|it| it.servers).unwrap_or_default().into_iter();
        let twice = servers.filter(|it| own.iter().any(|label| label == it.label.as_str()));
        twice.map(|it| it.name).collect()
    }

    fn wrong(&self, error: &EditError) -> Failure {
        Failure::new(format!("`{}`: {error}", self.path.display()))
            .remedy("`--print` shows the setting, to be written by hand")
    }
}

struct Report<'a> {
    arguments: &'a McpInstallArguments,
    file: &'a SettingsFile,
    is_changed: bool,
    backup: Option<&'a Path>,
    twice: &'a [String],
    has_servers: bool,
}

impl Report<'_> {
    fn print(&self) -> io::Result<()> {
        let (mut out, mut aside) = (io::stdout(), io::stderr());
        let (client, path) = (self.arguments.client, self.file.path.display());
        let title = client.title();
        match (self.is_changed, self.arguments.remove) {
            (true, true) => writeln!(out, "removed haft from {title}: `{path}`")?,
            (false, true) => writeln!(out, "haft is not in `{path}`")?,
            (true, false) => writeln!(out, "installed haft in {title}: `{path}`")?,
            (false, false) => writeln!(out, "haft is installed in {title} already: `{path}`")?,
        }
        if self.arguments.remove {
            return Ok(());
        }
        let twice: Vec<_> = self.twice.iter().map(|it| format!("`{it}`")).collect();
        if !twice.is_empty() {
            let twice = twice.join(", ");
            if self.arguments.replace_servers {
                writeln!(out, "removed there, because haft offers them: {twice}")?;
            } else {
                writeln!(
                    aside,
                    "note: {twice} still listed there, so that their tools are offered twice; `--replace-servers` \
                     removes them"
                )?;
            }
        }
        if let Some(backup) = self.backup {
            writeln!(out, "the file as it was: `{}`", backup.display())?;
        }
        if !self.has_servers && self.arguments.http.is_none() {
            writeln!(
                aside,
                "note: haft has no MCP servers yet; `haft mcp import {}` takes those of {title} over",
                client.id()
            )?;
        }
        let project = if self.arguments.project {
            " --project"
        } else {
            ""
        };
        writeln!(
            aside,
            "\nrestart {title} to use it; undo with `haft mcp install {} --remove{project}`",
            client.id()
        )
    }

    fn json(&self, setting: &Value) -> Value {
        json!({
            "client": self.arguments.client.id(),
            "file": self.file.path.display().to_string(),
            "changed": self.is_changed,
            "setting": (!self.arguments.remove).then_some(setting),
            "offered_twice": if self.arguments.replace_servers { &[] } else { self.twice },
            "removed": if self.arguments.replace_servers { self.twice } else { &[] },
            "backup": self.backup.map(|it| it.display().to_string()),
        })
    }
}
