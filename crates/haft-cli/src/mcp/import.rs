//! `haft mcp import`: the servers of another client, as tables of `haft.toml`.

use std::error::Error;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use haft::{Value, json};
use haft_mcp::{Label, ServerConfig};
use owo_colors::OwoColorize;

use super::clients::{Client, project_of};
use super::secrets::{Replaced, Replacer};
use super::table::{ConfigFile, summary, table};
use crate::arguments::McpImportArguments;
use crate::config::client_file::{ClientFile, ClientServer, ClientServers, Scope};
use crate::edit::Access;
use crate::failure::Failure;
use crate::terminal::print_json;
use crate::text::{counted, one_line};

/// What came of an entry.
#[derive(Debug)]
struct Entry {
    name: String,
    file: PathBuf,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
    Added(Label, Box<ServerConfig>),
    Replaced(Label, Box<ServerConfig>),
    /// The configuration has a server of this label.
    Kept(Label),
    Skipped(String),
}

/// What was found of a client.
#[derive(Debug, Default)]
struct Found {
    files: Vec<(PathBuf, ClientServers)>,
    notes: Vec<String>,
}

pub(super) fn import(arguments: &McpImportArguments) -> Result<ExitCode, Box<dyn Error>> {
    let found = find(&arguments.source)?;
    let mut file = ConfigFile::open(&arguments.from)?;
    let mut secrets = Replacer::default();
    let entries = merge(&found, &mut file, arguments, &mut secrets)?;
    let changes = entries.iter().filter(|it| it.outcome.is_change()).count();
    let access = if arguments.copy_secrets {
        Access::OwnerOnly
    } else {
        Access::AsItIs
    };
    if changes > 0 && !arguments.dry_run {
        file.write(access)?;
    }
    let report = Report {
        arguments,
        file: &file,
        entries: &entries,
        notes: &found.notes,
        replaced: &secrets.replaced,
        changes,
    };
    if arguments.json {
        print_json(&report.json())?;
    } else {
        report.print()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The files of the source, read.
fn find(source: &str) -> Result<Found, Failure> {
    let mut found = Found::default();
    let Some(client) = Client::named(source) else {
        let path = Path::new(source);
        let file = ClientFile::read(path).map_err(|error| {
            let names = Client::names();
            Failure::mistake(error).remedy(format!("name a client, one of {names}, or a file"))
        })?;
        let project = project_of(path);
        let scope = project.as_deref().map_or(Scope::User, Scope::Project);
        let servers = file.servers(scope).map_err(Failure::mistake)?;
        found.add(path, servers);
        return Ok(found);
    };
    let here = std::env::current_dir().unwrap_or_default();
    let (user, project) = (client.user_file(), client.project_file(&here));
    let there = |path: &Option<PathBuf>| path.clone().filter(|it| it.is_file());
    // What is nearest wins, as in the clients.
    if let Some(path) = there(&user)
        && client == Client::Claude
    {
        let file = ClientFile::read(&path).map_err(Failure::new)?;
        found.add(&path, file.servers_of_project(&here));
        let others = file.count_of_other_projects(&here);
        if others > 0 {
            let others = counted(others as u64, "server");
            found.notes.push(format!(
                "{others} of other projects left out; import them in their folders"
            ));
        }
    }
    if let Some(path) = there(&project).filter(|it| Some(it) != user.as_ref()) {
        let file = ClientFile::read(&path).map_err(Failure::new)?;
        // Without servers it is no error: the file may hold other settings.
        found.add(
            &path,
            file.servers(Scope::Project(&here)).unwrap_or_default(),
        );
    }
    if let Some(path) = there(&user) {
        let file = ClientFile::read(&path).map_err(Failure::new)?;
        found.add(&path, file.servers(Scope::User).unwrap_or_default());
    }
    if found.files.is_empty() {
        let places = user.iter().chain(&project);
        let places: Vec<_> = places.map(|it| format!("`{}`", it.display())).collect();
        let message = format!("{} has no settings here", client.title());
        return Err(Failure::mistake(message).remedy(format!(
            "looked for {}; name another file",
            places.join(" and ")
        )));
    }
    Ok(found)
}

impl Found {
    fn add(&mut self, path: &Path, mut servers: ClientServers) {
        self.notes.append(&mut servers.notes);
        self.files.push((path.to_owned(), servers));
    }
}

/// Puts what is new into the configuration.
fn merge(
    found: &Found,
    file: &mut ConfigFile,
    arguments: &McpImportArguments,
    secrets: &mut Replacer,
) -> Result<Vec<Entry>, Failure> {
    let known = file.labels()?;
    let mut entries: Vec<Entry> = Vec::new();
    for (path, servers) in &found.files {
        for ClientServer {
            name,
            label,
            config,
        } in &servers.servers
        {
            let is_taken = entries.iter().any(|it| it.outcome.label() == Some(label));
            let is_known = known.iter().any(|it| it == label.as_str());
            let outcome = if is_taken {
                Outcome::Skipped(format!("another file has a server `{label}`"))
            } else if is_known && !arguments.replace {
                Outcome::Kept(label.clone())
            } else {
                let mut config = Box::new(config.clone());
                if !arguments.copy_secrets {
                    secrets.replace(label, &mut config);
                }
                if is_known {
                    file.remove(label.as_str())?;
                }
                file.add(label, &config)?;
                if is_known {
                    Outcome::Replaced(label.clone(), config)
                } else {
                    Outcome::Added(label.clone(), config)
                }
            };
            entries.push(Entry {
                name: name.clone(),
                file: path.clone(),
                outcome,
            });
        }
        entries.extend(servers.skipped.iter().map(|(name, reason)| Entry {
            name: name.clone(),
            file: path.clone(),
            outcome: Outcome::Skipped(reason.clone()),
        }));
    }
    Ok(entries)
}

impl Outcome {
    fn label(&self) -> Option<&Label> {
        match self {
            Self::Added(label, _) | Self::Replaced(label, _) | Self::Kept(label) => Some(label),
            Self::Skipped(_) => None,
        }
    }

    fn is_change(&self) -> bool {
        matches!(self, Self::Added(..) | Self::Replaced(..))
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Added(..) => "added",
            Self::Replaced(..) => "replaced",
            Self::Kept(_) => "kept",
            Self::Skipped(_) => "skipped",
        }
    }
}

struct Report<'a> {
    arguments: &'a McpImportArguments,
    file: &'a ConfigFile,
    entries: &'a [Entry],
    notes: &'a [String],
    replaced: &'a [Replaced],
    changes: usize,
}

impl Report<'_> {
    fn print(&self) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        let mut aside = anstream::stderr().lock();
        if self.arguments.dry_run {
            for entry in self.entries {
                if let Outcome::Added(label, config) | Outcome::Replaced(label, config) =
                    &entry.outcome
                {
                    writeln!(out, "{}", table(label, config))?;
                }
            }
        }
        let path = self.file.path.display();
        let lines = self.entries.iter().map(Entry::line);
        let heading = match (self.changes, self.arguments.dry_run) {
            (0, _) => format!("`{path}` is unchanged"),
            (_, true) => format!("would write `{path}`"),
            (_, false) if self.file.is_new => format!("wrote `{path}` (new)"),
            (_, false) => format!("wrote `{path}`"),
        };
        let report = std::iter::once(heading).chain(lines);
        for line in report {
            if self.arguments.dry_run {
                writeln!(aside, "{line}")?;
            } else {
                writeln!(out, "{line}")?;
            }
        }
        for note in self.notes {
            writeln!(aside, "note: {}", one_line(note, 400))?;
        }
        if self.entries.is_empty() {
            writeln!(aside, "no MCP server is configured there")?;
        }
        print_replaced(&mut aside, self.replaced)?;
        if self.arguments.copy_secrets && self.changes > 0 && !self.arguments.dry_run && cfg!(unix)
        {
            writeln!(
                aside,
                "`{path}` may hold secrets: only its owner can read it"
            )?;
        }
        if self.changes > 0 && !self.arguments.dry_run {
            let config = self.arguments.from.config.as_ref();
            let config = config.map(|it| format!(" --config {}", it.display()));
            let config = config.unwrap_or_default();
            writeln!(
                aside,
                "\nnext: `haft mcp test{config}` checks them, `haft mcp install CLIENT{config}` puts haft in front of them"
            )?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let entries = self.entries.iter().map(|it| {
            let (reason, config) = match &it.outcome {
                Outcome::Skipped(reason) => (Some(reason), None),
                Outcome::Added(label, config) | Outcome::Replaced(label, config) => {
                    (None, Some(table(label, config)))
                }
                Outcome::Kept(_) => (None, None),
            };
            json!({
                "name": it.name,
                "label": it.outcome.label().map(Label::as_str),
                "outcome": it.outcome.word(),
                "reason": reason,
                "from": it.file.display().to_string(),
                "toml": config.filter(|_| !self.arguments.copy_secrets),
            })
        });
        let variables = self.replaced.iter();
        let variables = variables
            .map(|it| json!({"name": it.variable, "server": it.server.as_str(), "key": it.key}));
        json!({
            "file": self.file.path.display().to_string(),
            "written": self.changes > 0 && !self.arguments.dry_run,
            "servers": entries.collect::<Vec<_>>(),
            "variables": variables.collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

impl Entry {
    fn line(&self) -> String {
        let said = match &self.outcome {
            Outcome::Added(_, config) | Outcome::Replaced(_, config) => {
                one_line(&summary(config), 80)
            }
            Outcome::Kept(_) => String::from("is there already; `--replace` writes it again"),
            Outcome::Skipped(reason) => one_line(reason, 200),
        };
        let word = format!("{:<9}", self.outcome.word());
        let name = self
            .outcome
            .label()
            .map_or(self.name.as_str(), Label::as_str);
        format!("  {}{:<20} {said}", word.dimmed(), name.cyan())
    }
}

/// Lists the variables that have to be set now.
pub(super) fn print_replaced(out: &mut impl io::Write, replaced: &[Replaced]) -> io::Result<()> {
    if replaced.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nliteral secrets were not copied (`--copy-secrets` does); set these variables where haft runs:"
    )?;
    for it in replaced {
        let is_set = std::env::var_os(&it.variable).is_some();
        let state = if is_set { ", set here" } else { "" };
        writeln!(
            out,
            "  {:<28} `{}` of `{}`{state}",
            it.variable, it.key, it.server
        )?;
    }
    Ok(())
}
