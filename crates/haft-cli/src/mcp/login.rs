//! `haft mcp login`: a person lets haft use a server that asks for authorization.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use haft::json;
use haft_mcp::{LoginError, Questions, ServerSettings, TokenStoreError, TransportSettings, Url};

use super::servers::{Folder, Servers, tokens_in};
use crate::arguments::McpLoginArguments;
use crate::failure::Failure;
use crate::terminal::{Spinner, print_json};
use crate::text::printable;

pub(super) async fn login(arguments: McpLoginArguments) -> Result<ExitCode, Box<dyn Error>> {
    let servers = Servers::configured(&arguments.from, Folder::Made, Questions::PerCall)?;
    let server = servers.find(Some(&arguments.name))?;
    let settings = server.settings();
    let tokens = tokens_in(&servers.config.data_dir);
    if arguments.forget {
        let forgotten = tokens.forget(url_of(settings)?);
        let unusable = |error: TokenStoreError| Failure::new(error.to_string());
        return told_forgotten(&arguments, forgotten.map_err(unusable)?);
    }
    let show = |url: &Url| {
        // Whether somebody reads along changes nothing; the time is bounded.
        let _ = writeln!(
            io::stderr(),
            "open this page in a browser to log in to `{}`:\n  {}",
            arguments.name,
            printable(url.as_str())
        );
    };
    let spinner = Spinner::new("waiting for the login");
    let done = spinner
        .during(haft_mcp::login(settings, show, &tokens))
        .await;
    let done = done.map_err(|error| match error {
        LoginError::NoAddress { .. }
        | LoginError::HasToken { .. }
        | LoginError::ForItself { .. } => Failure::mistake(error.to_string()),
        error => Failure::new(error.to_string()),
    })?;
    if arguments.json {
        print_json(&json!({"server": arguments.name, "scopes": done.scopes}))?;
    } else {
        let rights = match done.scopes.as_slice() {
            [] => String::new(),
            scopes => format!(", with the rights {}", scopes.join(", ")),
        };
        let text = format!("logged in to `{}`{rights}", arguments.name);
        writeln!(io::stdout(), "{}", printable(&text))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn url_of(settings: &ServerSettings) -> Result<&Url, Failure> {
    let TransportSettings::Http(http) = &settings.transport else {
        let server = settings.label.clone();
        let error = LoginError::NoAddress { server };
        return Err(Failure::mistake(error.to_string()));
    };
    Ok(&http.url)
}

fn told_forgotten(
    arguments: &McpLoginArguments,
    was_known: bool,
) -> Result<ExitCode, Box<dyn Error>> {
    let name = &arguments.name;
    if arguments.json {
        print_json(&json!({"server": name, "forgotten": was_known}))?;
    } else if was_known {
        writeln!(io::stdout(), "forgot the login to `{name}`")?;
    } else {
        writeln!(io::stdout(), "there was no login to `{name}`")?;
    }
    Ok(ExitCode::SUCCESS)
}
