//! `haft mcp call`.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use haft::{Catalog, ToolDefinition};
use haft_mcp::{McpTool, Server};

use super::servers::{Folder, Servers};
use crate::arguments::McpCallArguments;
use crate::failure::Failure;
use crate::inquiry;
use crate::terminal::Spinner;
use crate::text::{nearest, one_line};
use crate::toolbox::ByHand;

pub(super) async fn call(arguments: McpCallArguments) -> Result<ExitCode, Box<dyn Error>> {
    let servers = Servers::open(
        &arguments.ad_hoc,
        &arguments.from,
        Folder::Made,
        inquiry::questions(),
    )?;
    let called = Box::pin(call_in(&servers, &arguments)).await;
    servers.pool.close().await;
    called
}

async fn call_in(
    servers: &Servers,
    arguments: &McpCallArguments,
) -> Result<ExitCode, Box<dyn Error>> {
    let is_ad_hoc = arguments.ad_hoc.command.is_some() || arguments.ad_hoc.url.is_some();
    let (name, words) = match arguments.words.split_first() {
        Some((name, words)) if !is_ad_hoc => (Some(name.as_str()), words),
        _ => (None, arguments.words.as_slice()),
    };
    let server = servers.find(name)?;
    let Some((tool, written)) = words.split_first() else {
        let remedy = format!(
            "`haft mcp tools {}` shows those that there are",
            server.label()
        );
        return Err(Failure::mistake("no tool is named").remedy(remedy).into());
    };
    let spinner = Spinner::new(&format!("connecting to `{}`", server.label()));
    let (catalog, definition) = spinner.during(Box::pin(offered(&server, tool))).await?;
    let help = match name {
        Some(name) => format!("`haft mcp tools {name} --json` shows what it takes"),
        None => String::from("`haft mcp tools --json` shows what it takes"),
    };
    let by_hand = ByHand {
        catalog: &catalog,
        tool: definition,
        arguments: written,
        options: servers.config.loop_options.clone(),
        is_allowed: arguments.yes,
        is_json: arguments.json,
        help,
    };
    by_hand.call().await
}

/// A catalogue with this tool of the server, by its own name or by the one that models see.
async fn offered(
    server: &Arc<Server>,
    wanted: &str,
) -> Result<(Catalog, Arc<ToolDefinition>), Failure> {
    let label = server.label();
    let shown = one_line(wanted, 64);
    let is_meant = |raw: &str| {
        raw == wanted || haft_mcp::exposed_name(label, raw, haft::MAX_NAME_BYTES).as_str() == wanted
    };
    // What is known from before may be old: only a tool that is there needs no second look.
    let known = server.known_tools();
    let known = known.filter(|known| known.tools.iter().any(|it| is_meant(&it.name)));
    let tools = match known {
        Some(known) => known,
        None => server
            .refresh()
            .await
            .map_err(|error| Failure::new(error.to_string()))?,
    };
    if let Some(held) = tools.held.iter().find(|it| is_meant(&it.name)) {
        let name = one_line(&held.name, 64);
        return Err(Failure::new(format!("the tool `{shown}` of `{label}` is held back"))
            .remedy(format!(
                "`haft mcp tools {label}` shows what has changed, `haft mcp accept {label} {name}` lets it be used"
            )));
    }
    if tools.excluded.iter().any(|it| is_meant(it)) {
        let text = format!("the tool `{shown}` of `{label}` is excluded");
        let remedy = format!("`allow` and `deny` of `[mcp.{label}]` say which are used");
        return Err(Failure::mistake(text).remedy(remedy));
    }
    let Some(tool) = tools.tools.iter().find(|it| is_meant(&it.name)) else {
        let names = tools.tools.iter().map(|it| it.name.as_str());
        let remedy = match nearest(wanted, names) {
            Some(near) => format!("did you mean `{}`?", one_line(near, 64)),
            None => format!("`haft mcp tools {label}` shows those that there are"),
        };
        let text = format!("server `{label}` has no tool `{shown}`");
        return Err(Failure::mistake(text).remedy(remedy));
    };
    let cannot =
        |error: String| Failure::new(format!("the tool `{shown}` cannot be used: {error}"));
    let object = McpTool::new(Arc::clone(server), Arc::clone(tool));
    let object = object.map_err(|error| cannot(error.to_string()))?;
    let catalog = Catalog::new();
    let name = catalog.register(Arc::new(object) as Arc<dyn haft::ToolObject>);
    let name = name.map_err(|error| cannot(error.to_string()))?;
    let definition = catalog
        .get(name.as_str())
        .map(|it| Arc::clone(it.definition()));
    let definition = definition.ok_or_else(|| cannot("it is not there".into()))?;
    Ok((catalog, definition))
}
