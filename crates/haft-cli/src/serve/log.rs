//! The log, on standard error: standard output is for what the command has to say.

use std::io;

use tracing::{Level, Metadata};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{Complaint, FILTER_REMEDY, LogFormat, Place, Watching};

/// The variable that says what is logged, whatever the configuration says.
const VARIABLE: &str = "HAFT_LOG";

/// What the environment says about the log, if it says anything.
pub(crate) fn of_environment() -> Result<Option<EnvFilter>, Complaint> {
    let said = std::env::var(VARIABLE).ok();
    let said = said.filter(|filter| !filter.trim().is_empty());
    said.as_deref().map(filter).transpose()
}

/// Starts the log.
pub(crate) fn start(said: Option<EnvFilter>, config: &Watching) {
    // What the configuration says was read before.
    let filter = said.unwrap_or_else(|| EnvFilter::new(&config.filter));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(false);
    let content_free = filter_fn(may_be_logged);
    // A subscriber that is already installed stays.
    let _ = match config.log_format {
        LogFormat::Text => log.compact().finish().with(content_free).try_init(),
        LogFormat::Json => log
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .finish()
            .with(content_free)
            .try_init(),
    };
    for note in &config.notes {
        tracing::warn!("{note}");
    }
}

/// Whether an event or span may be logged at all, whatever the filter asks for. haft's own log lines hold
/// no content and no secrets. Libraries log frames, headers and messages below `warn`, and rmcp logs whole
/// messages even in warnings, so those are never written.
fn may_be_logged(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    let krate = target.split("::").next().unwrap_or(target);
    if krate == "haft" || krate.starts_with("haft_") {
        return true;
    }
    // The more verbose level is the greater one.
    krate != "rmcp" && *metadata.level() <= Level::WARN
}

fn filter(text: &str) -> Result<EnvFilter, Complaint> {
    EnvFilter::try_new(text).map_err(|error| {
        let name = VARIABLE.to_owned();
        Complaint::new(
            Place::Variable { name },
            format!("this is no filter: {error}"),
        )
        .remedy(FILTER_REMEDY)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read() {
        for text in ["warn,haft=info", "debug", "off", "haft_server=trace"] {
            assert!(filter(text).is_ok(), "{text}");
        }
        let complaint = filter("haft=loud").unwrap_err().to_string();
        assert!(complaint.starts_with("HAFT_LOG: "), "{complaint}");
    }
}
