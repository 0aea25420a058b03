//! The log, on standard error: standard output is for what the command has to say.

use std::io;

use tracing_subscriber::EnvFilter;

use crate::config::{Complaint, Place};

/// The variable that says what is logged.
const VARIABLE: &str = "HAFT_LOG";
/// What is logged where it says nothing.
const USUAL: &str = "warn,haft=info";

/// Starts the log.
pub(super) fn start() -> Result<(), Complaint> {
    let said = std::env::var(VARIABLE).ok();
    let said = said.filter(|filter| !filter.trim().is_empty());
    let filter = filter(said.as_deref().unwrap_or(USUAL))?;
    // One that is there already was set up by somebody who knows better.
    let _ = tracing_subscriber::fmt()
        .compact()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(false)
        .try_init();
    Ok(())
}

fn filter(text: &str) -> Result<EnvFilter, Complaint> {
    EnvFilter::try_new(text).map_err(|error| {
        let name = VARIABLE.to_owned();
        Complaint::new(
            Place::Variable { name },
            format!("this is no filter: {error}"),
        )
        .remedy("write a level such as `debug`, or `warn,haft=info,haft_server=debug`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read() {
        for text in [USUAL, "debug", "off", "haft_server=trace"] {
            assert!(filter(text).is_ok(), "{text}");
        }
        let complaint = filter("haft=loud").unwrap_err().to_string();
        assert!(complaint.starts_with("HAFT_LOG: "), "{complaint}");
    }
}
