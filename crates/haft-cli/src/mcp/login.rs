//! `haft mcp login`: a user authorizes haft at a server.

use std::error::Error;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use haft::json;
use haft_mcp::{
    LoginError, PastedLines, Questions, ServerSettings, TokenStoreError, TransportSettings, Url,
};

use super::servers::{Folder, Servers, tokens_in};
use crate::arguments::McpLoginArguments;
use crate::failure::Failure;
use crate::terminal::{Spinner, print_json};
use crate::text::{one_line, printable};

pub(super) async fn login(arguments: McpLoginArguments) -> Result<ExitCode, Box<dyn Error>> {
    let servers = Servers::configured(&arguments.from, Folder::Made, Questions::PerCall)?;
    let server = servers.find(Some(&arguments.name))?;
    let mut settings = ServerSettings::clone(server.settings());
    if let (Some(port), TransportSettings::Http(http)) = (arguments.port, &mut settings.transport) {
        http.oauth.get_or_insert_default().callback_port = Some(port);
    }
    let settings = &settings;
    let mut tokens = tokens_in(&servers.config.data_dir);
    if let Some(user) = &arguments.user {
        check_user(settings, user)?;
        tokens = tokens.for_user(user);
    }
    if arguments.forget {
        let forgotten = tokens.forget(url_of(settings)?);
        let unusable = |error: TokenStoreError| Failure::new(error.to_string());
        return told_forgotten(&arguments, forgotten.map_err(unusable)?);
    }
    let is_pasted = arguments.paste || (io::stdin().is_terminal() && is_headless());
    let show = |url: &Url| {
        // A closed standard error changes nothing; the time is bounded.
        let _ = writeln!(
            io::stderr(),
            "open this page in a browser to log in to `{}`:\n  {}",
            arguments.name,
            printable(url.as_str())
        );
        if is_pasted {
            let _ = writeln!(
                io::stderr(),
                "if the browser cannot come back to this machine, paste the address that it shows at the end:"
            );
        }
    };
    let pasted = is_pasted.then(pasted_lines);
    let login = haft_mcp::login_with(settings, show, &tokens, pasted);
    let done = if is_pasted {
        // A spinner would write over what is pasted.
        login.await
    } else {
        Spinner::new("waiting for the login").during(login).await
    };
    let done = done.map_err(|error| match error {
        LoginError::NoAddress { .. }
        | LoginError::HasToken { .. }
        | LoginError::NoOAuth { .. }
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

/// Whether no browser can be expected on this machine.
fn is_headless() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|it| !it.is_empty());
    let has_display =
        cfg!(any(windows, target_os = "macos")) || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    is_set("SSH_CONNECTION") || !has_display
}

/// The lines of standard input. The thread waits for the next one until the process ends.
fn pasted_lines() -> PastedLines {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Whether a tenant can have a login of its own to this server.
fn check_user(settings: &ServerSettings, user: &str) -> Result<(), Failure> {
    let label = &settings.label;
    if !haft_mcp::is_tenant_name(user) {
        let message = format!("`{}` is no name for a tenant", one_line(user, 64));
        return Err(Failure::mistake(message));
    }
    if !settings.has_logins_per_user() {
        let message = format!("all tenants share the login to `{label}`");
        return Err(Failure::mistake(message).remedy(format!(
            "leave out `--user`, or set `per_user = true` in `[mcp.{label}.oauth]`"
        )));
    }
    Ok(())
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
