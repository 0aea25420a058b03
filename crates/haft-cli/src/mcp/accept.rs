//! `haft mcp accept`: lets tools be used that are not what they were.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use haft::json;
use haft_mcp::{HeldTool, PinError, Questions};

use super::servers::{Folder, Servers};
use super::tools::print_held;
use crate::arguments::McpAcceptArguments;
use crate::failure::Failure;
use crate::terminal::{confirm, print_json};
use crate::text::{counted, one_line};

pub(super) fn accept(arguments: &McpAcceptArguments) -> Result<ExitCode, Box<dyn Error>> {
    let servers = Servers::configured(&arguments.from, Folder::AsItIs, Questions::PerCall)?;
    let name = arguments.name.as_str();
    if !servers.labels.iter().any(|it| it.as_str() == name) {
        // It says what there is.
        servers.find(Some(name))?;
    }
    let pins = servers.pool.pins();
    let pins = pins.ok_or_else(|| Failure::new("nothing is pinned without a data folder"))?;
    let unusable = |error: PinError| Failure::new(error.to_string());
    let wanted = arguments.tool.as_deref();
    // Tenants with credentials of their own may see other tools.
    let pinned = match &arguments.user {
        Some(user) => format!("{name}@{user}"),
        None => name.to_owned(),
    };
    let mut waiting = pins.waiting(&pinned).map_err(unusable)?;
    waiting.retain(|(tool, _)| wanted.is_none_or(|wanted| wanted == tool));
    if waiting.is_empty() {
        let what = match wanted {
            Some(tool) => format!("tool `{}` of server `{name}`", one_line(tool, 64)),
            None => format!("server `{name}`"),
        };
        return Err(
            Failure::mistake(format!("nothing of {what} waits to be accepted"))
                .remedy(format!(
                    "`haft mcp tools {name}` reads its list anew and shows what is held back"
                ))
                .into(),
        );
    }
    if !arguments.json {
        let mut out = anstream::stdout().lock();
        for (name, differences) in &waiting {
            let held = HeldTool {
                name: name.clone(),
                differences: differences.clone(),
            };
            print_held(&mut out, &held)?;
        }
        out.flush()?;
    }
    let count = counted(waiting.len() as u64, "tool");
    if !arguments.yes && !confirm(&format!("use {count} of `{name}` as shown"))? {
        writeln!(io::stderr(), "haft: nothing was accepted")?;
        return Ok(ExitCode::FAILURE);
    }
    pins.accept_shown(&pinned, &waiting).map_err(unusable)?;
    let accepted: Vec<&String> = waiting.iter().map(|(tool, _)| tool).collect();
    if arguments.json {
        print_json(&json!({"server": name, "accepted": accepted}))?;
    } else {
        let accepted: Vec<_> = accepted.iter().map(|it| one_line(it, 60)).collect();
        writeln!(io::stdout(), "accepted: {}", accepted.join(", "))?;
    }
    Ok(ExitCode::SUCCESS)
}
