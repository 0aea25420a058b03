//! `haft mcp test`: whether servers work.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use haft::{Value, json};
use haft_mcp::{Label, McpError, Questions, Server, ServerIdentity, ServerTools};
use owo_colors::OwoColorize;

use super::list::{era_text, transport_of};
use super::servers::{Folder, Servers};
use crate::arguments::McpTestArguments;
use crate::failure::Failure;
use crate::terminal::{Spinner, print_json};
use crate::text::{counted, one_line, printable, spoken};

pub(super) async fn test(arguments: McpTestArguments) -> Result<ExitCode, Box<dyn Error>> {
    let servers = Servers::open(
        &arguments.ad_hoc,
        &arguments.from,
        Folder::Made,
        Questions::PerCall,
    )?;
    let wanted = wanted(&servers, &arguments.names)?;
    if wanted.is_empty() {
        return Err(Failure::mistake("there is no MCP server to test")
            .remedy(
                "describe one in `[mcp.NAME]` of `haft.toml`, or give it with `--command` or `--url`",
            )
            .into());
    }
    let words = match wanted.len() {
        1 => format!("connecting to `{}`", wanted[0]),
        count => format!("connecting to {}", counted(count as u64, "server")),
    };
    let spinner = Spinner::new(&words);
    let tried = join_all(wanted.iter().map(|label| tried(&servers, label)));
    let results = spinner.during(tried).await;
    servers.pool.close().await;
    if arguments.json {
        let list: Vec<Value> = results.iter().map(Tried::json).collect();
        print_json(&list)?;
    } else {
        let mut out = anstream::stdout().lock();
        for result in &results {
            result.print(&mut out)?;
        }
    }
    let all_work = results.iter().all(|it| it.outcome.is_ok());
    Ok(if all_work {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Those that are named, else all.
fn wanted(servers: &Servers, names: &[String]) -> Result<Vec<Label>, Failure> {
    if names.is_empty() {
        return Ok(servers.labels.clone());
    }
    let labels = names.iter().map(|name| {
        let found = servers.labels.iter().find(|it| it.as_str() == name);
        match found {
            Some(label) => Ok(label.clone()),
            None => servers.find(Some(name)).map(|it| it.label().clone()),
        }
    });
    labels.collect()
}

/// How a server is.
struct Tried {
    label: Label,
    transport: &'static str,
    took: Duration,
    outcome: Result<Works, Fails>,
}

struct Works {
    era: &'static str,
    identity: ServerIdentity,
    tools: Arc<ServerTools>,
}

/// Why it does not work: the whole text, and the parts for programs.
struct Fails {
    text: String,
    error: Option<McpError>,
}

async fn tried(servers: &Servers, label: &Label) -> Tried {
    let begin = Instant::now();
    let (transport, outcome) = match servers.find(Some(label.as_str())) {
        Ok(server) => {
            let outcome = connect(&server).await;
            (transport_of(&server), outcome)
        }
        Err(failure) => {
            let text = failure.to_string();
            ("–", Err(Fails { text, error: None }))
        }
    };
    Tried {
        label: label.clone(),
        transport,
        took: begin.elapsed(),
        outcome,
    }
}

async fn connect(server: &Arc<Server>) -> Result<Works, Fails> {
    let fails = |error: McpError| Fails {
        text: error.to_string(),
        error: Some(error),
    };
    let connection = server.connection().await.map_err(fails)?;
    let tools = server.refresh().await.map_err(fails)?;
    Ok(Works {
        era: era_text(connection.era()),
        identity: connection.identity().clone(),
        tools,
    })
}

impl Tried {
    fn print(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        let label = self.label.as_str();
        match &self.outcome {
            Ok(works) => {
                let identity = &works.identity;
                let who = [identity.name.as_deref(), identity.version.as_deref()];
                let who: Vec<&str> = who.into_iter().flatten().collect();
                let who = match who.as_slice() {
                    [] => String::new(),
                    who => format!("{}, ", one_line(&who.join(" "), 60)),
                };
                let said = format!(
                    "{who}{}, {} {}, {}, {}",
                    self.transport,
                    works.era,
                    one_line(&identity.protocol, 20),
                    counted(works.tools.tools.len() as u64, "tool"),
                    spoken(self.took)
                );
                writeln!(out, "{} {}  {said}", "ok    ".green(), label.cyan())?;
                for diagnostic in &works.tools.diagnostics {
                    let text = one_line(&diagnostic.to_string(), 300);
                    writeln!(out, "         {}", text.yellow())?;
                }
                if !works.tools.held.is_empty() {
                    let held = counted(works.tools.held.len() as u64, "tool");
                    let text = format!(
                        "{held} held back until `haft mcp accept {label}`; `haft mcp tools {label}` shows \
                         why"
                    );
                    writeln!(out, "         {}", text.yellow())?;
                }
            }
            Err(fails) => {
                let text = printable(&fails.text).replace('\n', "\n         ");
                writeln!(out, "{} {}  {text}", "failed".red(), label.cyan())?;
            }
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let mut told = json!({
            "name": self.label.as_str(),
            "ok": self.outcome.is_ok(),
            "transport": self.transport,
            "duration_ms": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
        });
        match &self.outcome {
            Ok(works) => {
                let diagnostics = works.tools.diagnostics.iter().map(ToString::to_string);
                told["era"] = works.era.into();
                told["protocol"] = works.identity.protocol.as_str().into();
                told["server_name"] = works.identity.name.clone().into();
                told["server_version"] = works.identity.version.clone().into();
                told["tools"] = works.tools.tools.len().into();
                told["held"] = works.tools.held.len().into();
                told["diagnostics"] = diagnostics.collect::<Vec<_>>().into();
            }
            Err(fails) => {
                told["error"] = fails.text.lines().next().unwrap_or_default().into();
                if let Some(error) = &fails.error {
                    told["phase"] = error.phase.to_string().into();
                    told["stderr"] = error.stderr.as_str().into();
                }
            }
        }
        told
    }
}
