//! `haft serve`: from a configuration to a server that answers.
//!
//! What comes in: the command line, `haft.toml`, the environment. What goes out: a server that
//! listens until it is told to stop, and a page on standard output that says where it is and how to
//! use it. It decides nothing about requests; that is the server's own.

pub(crate) mod choice;
pub(crate) mod log;
pub(crate) mod prepare;
mod server;
mod stop;
mod welcome;

use std::error::Error;
use std::io::{self, Write as _};
use std::time::Duration;

use haft::models::{Lookup, probe, process_environment};

use self::choice::Choice;
pub(crate) use self::prepare::data_dir;
pub(crate) use self::server::STORE;
use self::stop::Signals;
use self::welcome::Welcome;
use crate::arguments::ServeArguments;
use crate::concerto::Wanted;
use haft::json;

use crate::config::{Flags, LogFormat, Resolved, Source, Variables, resolve};
use crate::failure::Failure;
use crate::terminal::Spinner;

/// Whether clients come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// They do, and the key that they must have is looked up.
    Open,
    /// Nobody does.
    None,
}

/// Serves until somebody says stop.
pub(crate) async fn serve(arguments: ServeArguments) -> Result<(), Box<dyn Error>> {
    let filter = log::of_environment()?;
    let signals = Signals::listen()?;
    let scripts = arguments.scripts.clone();
    let file = arguments.config.clone();
    let accepted = server::Accepted {
        lost_keys: arguments.forget_sealing_keys,
        lost_api_keys: arguments.forget_api_keys,
        clock: arguments.accept_clock,
    };
    let (config, choice) = configured(arguments, Door::Open, &process_environment).await?;
    log::start(filter, &config.watching);
    for note in &config.mcp_notes {
        tracing::warn!("{note}");
    }
    let data_dir = data_dir(&config.data_dir)?;
    let listener = prepare::listener(&config.listen).await?;
    let address = listener.local_addr().map_err(Failure::of_listening)?;
    let wanted = Wanted {
        flags: &scripts,
        said: &config.concerto,
        config: file.as_deref(),
    };
    let server = server::build(&config, &choice, &data_dir, &wanted, accepted).await?;
    if !server.needs_key() && !config.allow_anonymous {
        prepare::only_this_machine(&address, &data_dir)?;
    }
    let models: Vec<&str> = choice.models.iter().map(|it| it.name.as_str()).collect();
    tracing::info!(
        %address,
        version = env!("CARGO_PKG_VERSION"),
        models = models.join(", "),
        data_dir = %data_dir.display(),
        "listening"
    );
    let page = Welcome {
        address,
        config: &config,
        choice: &choice,
        tools: server.tools(),
        own: server.own_tools(),
        data_dir: &data_dir,
        needs_key: server.needs_key(),
    };
    let page = match config.watching.log_format {
        LogFormat::Text => page.to_string(),
        // For programs, as the log is: often both end up in one place.
        LogFormat::Json => {
            let page = json!({"message": "listening", "address": format!("http://{address}")});
            format!("{page}\n")
        }
    };
    // Whoever started it may not read along; the server runs all the same.
    let _ = write!(io::stdout(), "{page}").and_then(|()| io::stdout().flush());
    // A run that is cancelled has as long again to end; then MCP servers have five seconds.
    let patience = config.drain_wait + 2 * config.stop_wait + Duration::from_secs(10);
    server.serve(listener, signals.stop(patience)).await?;
    tracing::info!("stopped");
    Ok(())
}

/// What to serve, and with which models.
pub(crate) async fn configured(
    arguments: ServeArguments,
    door: Door,
    lookup: Lookup<'_>,
) -> Result<(Resolved, Choice), Box<dyn Error>> {
    let source = Source::named_or_usual(arguments.config.as_deref())?;
    let variables = Variables::from_environment(std::env::vars_os())?;
    let model = match &arguments.model {
        Some(model) => Some(choice::by_flag(model, lookup)?),
        None => None,
    };
    let flags = Flags {
        listen: arguments.listen,
        data_dir: arguments.data_dir,
        allow_anonymous: arguments.allow_anonymous,
        model,
        has_no_door: door == Door::None,
        has_gateway: arguments.mcp,
    };
    let is_flagged = flags.model.is_some();
    let mut config = resolve(&source, &variables, flags, lookup)?;
    let models = std::mem::take(&mut config.models);
    let choice = match (models.is_empty(), is_flagged) {
        (true, _) => {
            let by_key = probe::from_environment(lookup);
            let found = choice::found(by_key, probe::local(probe::PATIENCE));
            let spinner = Spinner::new("looking for a model on this machine");
            spinner.during(found).await
        }
        (false, true) => Choice::new(models, choice::Reason::Flag),
        (false, false) => Choice::new(models, choice::Reason::File(source.name)),
    };
    let choice = choice.with_default(config.default_model.take());
    Ok((config, choice))
}
