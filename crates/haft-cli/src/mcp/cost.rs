//! `haft mcp cost`: how many tokens tool definitions take in every request, with and without the gateway.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use futures_util::future::join_all;
use haft::{Catalog, Value, json};
use haft_mcp::gateway::{Caller, Mode};
use haft_mcp::{Questions, exposed_name};
use haft_server::{GatewayOptions, Sight, gateway};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::servers::{Folder, Servers};
use crate::arguments::McpCostArguments;
use crate::failure::Failure;
use crate::terminal::{Spinner, print_json};
use crate::text::{counted, one_line, printable};
use crate::tokens;

/// The context window that is assumed, as by the gateway itself.
const WINDOW: u64 = 200_000;

/// Context windows by the beginnings of model names.
const WINDOWS: [(&str, u64); 9] = [
    ("claude", 200_000),
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("o3", 200_000),
    ("o4", 200_000),
    ("gemini", 1_048_576),
    ("deepseek", 128_000),
    ("qwen3", 131_072),
];

/// The share of one server.
struct Share {
    label: String,
    tools: usize,
    tokens: usize,
    problem: Option<String>,
}

pub(super) async fn cost(arguments: &McpCostArguments) -> Result<ExitCode, Box<dyn Error>> {
    let servers = Servers::configured(&arguments.from, Folder::Optional, Questions::Refused)?;
    if servers.labels.is_empty() {
        return Err(Failure::mistake("there is no MCP server to count")
            .remedy("`haft mcp import CLIENT` takes those of another client over, `haft mcp add` adds one")
            .into());
    }
    let spinner = Spinner::new("asking MCP servers for their tools");
    let counted = spinner.during(Box::pin(count(&servers))).await;
    servers.pool.close().await;
    let cost = counted?;
    let window = window(arguments.model.as_deref());
    if arguments.json {
        print_json(&cost.json(arguments.model.as_deref(), window))?;
    } else {
        cost.print(arguments.model.as_deref(), window)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn window(model: Option<&str>) -> u64 {
    // Names of routers have the provider in front.
    let name = model.map(|it| it.rsplit('/').next().unwrap_or(it));
    let known = WINDOWS
        .iter()
        .find(|(start, _)| name.is_some_and(|it| it.starts_with(start)));
    known.map_or(WINDOW, |(_, window)| *window)
}

struct Cost {
    shares: Vec<Share>,
    /// Every definition.
    all: usize,
    /// What the gateway lists in their place.
    facade: usize,
    facade_tools: usize,
}

async fn count(servers: &Servers) -> Result<Cost, Failure> {
    let all = servers.pool.servers();
    let lists = join_all(all.iter().map(|server| Box::pin(server.tools()))).await;
    // Both lists as a client of the gateway reads them.
    let every = listed(servers, Mode::Passthrough).await?;
    let facade = listed(servers, Mode::Facade).await?;
    let mut shares = Vec::new();
    for (server, list) in all.iter().zip(lists) {
        let label = server.label();
        let (mut share, names) = match list {
            Ok(tools) => {
                let names = tools.tools.iter();
                let names =
                    names.map(|it| exposed_name(label, &it.name, haft::MAX_NAME_BYTES).to_string());
                (Share::new(label.as_str(), None), names.collect::<Vec<_>>())
            }
            Err(error) => (
                Share::new(label.as_str(), Some(error.to_string())),
                Vec::new(),
            ),
        };
        let own = every.iter().filter(|it| {
            it["name"]
                .as_str()
                .is_some_and(|it| names.iter().any(|name| name == it))
        });
        for tool in own {
            share.tools += 1;
            share.tokens += tokens_of(tool);
        }
        shares.push(share);
    }
    let unusable = servers.unusable.iter();
    shares
        .extend(unusable.map(|(label, error)| Share::new(label.as_str(), Some(error.to_string()))));
    shares.sort_by_key(|it| std::cmp::Reverse(it.tokens));
    Ok(Cost {
        all: shares.iter().map(|it| it.tokens).sum(),
        shares,
        facade: facade.iter().map(tokens_of).sum(),
        facade_tools: facade.len(),
    })
}

/// The definition as a client announces it to its model.
fn tokens_of(tool: &Value) -> usize {
    let definition = json!({
        "type": "function",
        "name": tool["name"],
        "description": tool["description"],
        "parameters": tool["inputSchema"],
    });
    tokens::count(&definition.to_string())
}

/// The list that a client of the gateway reads in this mode.
async fn listed(servers: &Servers, mode: Mode) -> Result<Vec<Value>, Failure> {
    let failed = |error: String| Failure::new(format!("the gateway cannot be asked: {error}"));
    let options = GatewayOptions {
        mode,
        ..GatewayOptions::default()
    };
    let limits = servers.config.loop_options.clone();
    let gateway = gateway(
        Catalog::new(),
        servers.pool.clone(),
        Sight::Operator,
        limits,
        options,
    );
    let gateway = gateway.map_err(|error| failed(error.to_string()))?;
    let (client, server) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(server);
    let (answers, mut requests) = tokio::io::split(client);
    let asking = async {
        let mut answers = BufReader::new(answers).lines();
        let mut ask = async |id: u64, method: &str, params: Value| -> io::Result<Value> {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            requests
                .write_all(format!("{request}\n").as_bytes())
                .await?;
            while let Some(line) = answers.next_line().await? {
                let message: Value = serde_json::from_str(&line)?;
                if message["id"] == id {
                    return Ok(message["result"].clone());
                }
            }
            Err(io::ErrorKind::UnexpectedEof.into())
        };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "haft", "version": env!("CARGO_PKG_VERSION")},
        });
        ask(1, "initialize", hello).await?;
        let mut tools = Vec::new();
        let mut cursor = Value::Null;
        for id in 2.. {
            let params = if cursor.is_null() {
                json!({})
            } else {
                json!({"cursor": cursor})
            };
            let page = ask(id, "tools/list", params).await?;
            tools.extend(page["tools"].as_array().cloned().unwrap_or_default());
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        Ok::<_, io::Error>(tools)
    };
    let serving = gateway.serve_stdio(input, output, Caller::local());
    let tools = tokio::select! {
        tools = asking => tools.map_err(|error| failed(error.to_string())),
        _ = serving => Err(failed(String::from("it has ended"))),
    };
    gateway.close();
    tools
}

impl Share {
    fn new(label: &str, problem: Option<String>) -> Self {
        Self {
            label: label.to_owned(),
            tools: 0,
            tokens: 0,
            problem,
        }
    }
}

impl Cost {
    /// How much the gateway saves, in tenths of a percent; nothing where it does not.
    fn saved(&self) -> usize {
        self.all.saturating_sub(self.facade) * 1000 / self.all.max(1)
    }

    fn print(&self, model: Option<&str>, window: u64) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        let tools: usize = self.shares.iter().map(|it| it.tools).sum();
        writeln!(out, "{:<28}{:>7}{:>10}", "server", "tools", "tokens")?;
        for share in &self.shares {
            match &share.problem {
                None => writeln!(
                    out,
                    "{:<28}{:>7}{:>10}",
                    share.label, share.tools, share.tokens
                )?,
                Some(_) => writeln!(out, "{:<28}{:>7}{:>10}", share.label, "-", "-")?,
            }
        }
        writeln!(out)?;
        let row = |what: &str, tools: usize, tokens: usize| {
            let percent = percent_of(tokens, window);
            format!("{what:<28}{tools:>7}{tokens:>10}  {percent} of the context window")
        };
        writeln!(out, "{}", row("without the gateway", tools, self.all))?;
        writeln!(
            out,
            "{}",
            row("with it (facade)", self.facade_tools, self.facade)
        )?;
        let saved = self.saved();
        writeln!(
            out,
            "{:<28}{:>16}.{} %",
            "saved in every request",
            saved / 10,
            saved % 10
        )?;
        drop(out);
        let mut aside = io::stderr();
        for share in &self.shares {
            if let Some(problem) = &share.problem {
                writeln!(
                    aside,
                    "note: `{}` is not counted: {}",
                    share.label,
                    printable(problem)
                )?;
            }
        }
        let model = model.map_or_else(String::new, |it| format!(" of `{}`", one_line(it, 64)));
        writeln!(
            aside,
            "\ntokens are those of {}, the context window{model} is {}",
            tokens::METHOD,
            counted(window, "token")
        )
    }

    fn json(&self, model: Option<&str>, window: u64) -> Value {
        let shares = self.shares.iter().map(|it| {
            json!({"server": it.label, "tools": it.tools, "tokens": it.tokens, "error": it.problem})
        });
        let saved = f64::from(u32::try_from(self.saved()).unwrap_or(u32::MAX)) / 10.0;
        json!({
            "counted_as": tokens::METHOD,
            "model": model,
            "context_window": window,
            "servers": shares.collect::<Vec<_>>(),
            "without_gateway": {"tools": self.shares.iter().map(|it| it.tools).sum::<usize>(), "tokens": self.all},
            "facade": {"tools": self.facade_tools, "tokens": self.facade},
            "saved_percent": saved,
        })
    }
}

fn percent_of(tokens: usize, window: u64) -> String {
    let tenths = tokens as u64 * 1000 / window.max(1);
    format!("{}.{} %", tenths / 10, tenths % 10)
}
