//! `haft mcp add` and `haft mcp remove`: one server of `haft.toml`.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use haft_mcp::{Label, Secret, ServerConfig};

use super::import::print_replaced;
use super::secrets::Replacer;
use super::servers::{header_pair, variable_pair};
use super::table::ConfigFile;
use crate::arguments::{McpAddArguments, McpRemoveArguments};
use crate::config::check_form;
use crate::edit::Access;
use crate::failure::Failure;
use crate::text::{nearest, one_line};

pub(super) fn add(arguments: &McpAddArguments) -> Result<ExitCode, Box<dyn Error>> {
    let label = Label::new(&arguments.name).map_err(|_| {
        let name = one_line(&arguments.name, 64);
        Failure::mistake(format!("`{name}` cannot be the name of a server")).remedy(
            "use a letter, then letters, digits, `-` and single `_`, at most 24 in all; `haft` is taken",
        )
    })?;
    let mut config = described(arguments)?;
    check_form(&label, &config).map_err(|error| Failure::mistake(error.to_string()))?;
    let mut secrets = Replacer::default();
    let mut access = Access::OwnerOnly;
    if !arguments.copy_secrets {
        secrets.replace(&label, &mut config);
        access = Access::AsItIs;
    }
    let mut file = ConfigFile::open(&arguments.from)?;
    let shown = file.path.display().to_string();
    let is_known = file.labels()?.iter().any(|it| it == label.as_str());
    if is_known && !arguments.replace {
        let message = format!("`{shown}` has a server `{label}` already");
        return Err(Failure::mistake(message)
            .remedy("choose another name, or replace it with `--replace`")
            .into());
    }
    if is_known {
        file.remove(label.as_str())?;
    }
    file.add(&label, &config)?;
    file.write(access)?;
    let done = if is_known { "replaced" } else { "added" };
    writeln!(
        io::stdout(),
        "{done} `{label}` in `{shown}`; `haft mcp test {label}` checks it"
    )?;
    print_replaced(&mut io::stderr(), &secrets.replaced)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn remove(arguments: &McpRemoveArguments) -> Result<ExitCode, Box<dyn Error>> {
    let mut file = ConfigFile::open(&arguments.from)?;
    let labels = file.labels()?;
    let shown = file.path.display().to_string();
    if !labels.contains(&arguments.name) {
        let name = one_line(&arguments.name, 64);
        let failure = Failure::mistake(format!("`{shown}` has no table `[mcp.{name}]`"));
        return Err(failure
            .remedy(
                match nearest(&arguments.name, labels.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        String::from("`haft mcp list --json` shows which file each server is from")
                    }
                },
            )
            .into());
    }
    file.remove(&arguments.name)?;
    file.write(Access::AsItIs)?;
    writeln!(io::stdout(), "removed `{}` from `{shown}`", arguments.name)?;
    Ok(ExitCode::SUCCESS)
}

/// The server of the command line.
fn described(arguments: &McpAddArguments) -> Result<ServerConfig, Failure> {
    let mut config = ServerConfig {
        description: arguments.description.clone(),
        bearer_env: arguments.bearer_env.clone(),
        ..ServerConfig::default()
    };
    if let Some(url) = &arguments.url {
        if !url.contains("://") {
            let url = one_line(url, 64);
            return Err(
                Failure::mistake(format!("`{url}` is not an address")).remedy(format!(
                    "for a program write `haft mcp add {} -- {url} …`",
                    arguments.name
                )),
            );
        }
        config.url = Some(url.clone());
    }
    if let Some((program, words)) = arguments.command.split_first() {
        config.command = Some(program.clone());
        config.args = words.to_vec();
    }
    for pair in &arguments.env {
        let (name, value) = variable_pair(pair)?;
        config.env.insert(name.to_owned(), Secret::new(value));
    }
    for header in &arguments.header {
        let (name, value) = header_pair(header)?;
        config.headers.insert(name.to_owned(), Secret::new(value));
    }
    Ok(config)
}
