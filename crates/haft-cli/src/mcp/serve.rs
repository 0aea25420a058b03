//! `haft mcp serve`: all tools as one MCP server, for whoever started this process.

use std::error::Error;
use std::process::ExitCode;

use haft_mcp::Questions;
use haft_mcp::gateway::Caller;
use haft_server::{CallJournal, CallMonitor, Sight, gateway};
use tokio::signal::unix::{SignalKind, signal};

use super::servers::{Folder, Servers};
use crate::arguments::McpServeArguments;
use crate::catalogue;
use crate::concerto::{Scripts, Wanted, Words};
use crate::config::{CallRecording, GatewayConfig, Resolved, Watching};
use crate::failure::Failure;
use crate::serve::log;
use crate::text::one_line;

/// Serves until the client goes away or somebody says stop. Nothing but the protocol is written to
/// standard output.
pub(super) async fn serve(arguments: McpServeArguments) -> Result<ExitCode, Box<dyn Error>> {
    let filter = log::of_environment()?;
    let servers = Servers::configured(&arguments.from, Folder::Optional, Questions::PerCall)?;
    log::start(filter, &Watching::default());
    if let Some(problem) = &servers.folder_problem {
        tracing::warn!(
            "{problem}; serving without it: tool lists are not remembered, logins are not stored, and tools are not \
             pinned, so that `pin = \"hold\"` does not notice changes between two starts"
        );
    }
    for note in &servers.config.mcp_notes {
        tracing::warn!("{note}");
    }
    for (label, error) in &servers.unusable {
        tracing::warn!("server `{label}` cannot be used: {error}");
    }
    let mut offered = offered(&servers.config, arguments.endpoint.as_deref())?;
    if let Some(mode) = arguments.mode {
        offered.mode = mode;
    }
    if !arguments.only.is_empty() || !arguments.tools.is_empty() {
        for name in &arguments.only {
            if !servers.labels.iter().any(|it| it.as_str() == name) {
                servers.find(Some(name))?;
            }
        }
        offered.servers.clone_from(&arguments.only);
        offered.tools.clone_from(&arguments.tools);
    }
    let config = &servers.config;
    let own = catalogue::hosted_here(config.search_files.clone(), &config.data_dir)?;
    let wanted = Wanted {
        flags: &arguments.scripts,
        said: &config.concerto,
        config: arguments.from.config.as_deref(),
    };
    let scripts = Scripts::open(&wanted, &own.catalog, Words::Log).await?;
    let mut options = offered.options();
    options.unusable = servers.unusable_status();
    // A folder that cannot be written to costs the record, not the gateway.
    let journal = match config.watching.calls {
        CallRecording::Off => None,
        calls => CallJournal::in_folder(&config.data_dir, calls == CallRecording::Arguments).ok(),
    };
    if let Some(journal) = &journal {
        options.monitor = CallMonitor::default().with_journal(journal.clone());
    }
    let selected = options.selected_servers();
    let (catalog, pool) = (own.catalog.clone(), servers.pool.clone());
    let limits = config.loop_options.clone();
    let gateway = gateway(catalog, pool, Sight::Operator, limits, options);
    let gateway = gateway.map_err(|error| Failure::new(error.to_string()))?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    servers.pool.warm_where(|label| selected.admits(label));
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let caller = arguments.user.map_or_else(Caller::local, Caller::new);
    let serving = gateway.serve_stdio(input, output, caller);
    let served = tokio::select! {
        served = serving => served.map_err(|error| Failure::new(error.to_string())),
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    };
    gateway.close();
    scripts.close().await;
    servers.pool.close().await;
    if let Some(journal) = &journal {
        journal.flush();
    }
    served?;
    Ok(ExitCode::SUCCESS)
}

/// What the endpoint offers.
fn offered(config: &Resolved, endpoint: Option<&str>) -> Result<GatewayConfig, Failure> {
    let Some(wanted) = endpoint else {
        return Ok(config.gateway.clone().unwrap_or_default());
    };
    let mut endpoints = config.endpoints.iter();
    if let Some((_, offered)) = endpoints.find(|(name, _)| name == wanted) {
        return Ok(offered.clone());
    }
    let wanted = one_line(wanted, 64);
    let failure = Failure::mistake(format!("there is no endpoint `{wanted}`"));
    let known: Vec<_> = config
        .endpoints
        .iter()
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    Err(failure.remedy(match known.as_slice() {
        [] => format!("describe it in `[gateway.{wanted}]` of `haft.toml`"),
        known => format!(
            "the endpoints of the configuration are {}",
            known.join(", ")
        ),
    }))
}
