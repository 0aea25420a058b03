//! `haft config check`.

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;

use haft::json;
use haft::models::process_environment;
use haft::prompt::Context;
use owo_colors::OwoColorize;

use crate::arguments::ConfigArguments;
use crate::catalogue::hosted_here;
use crate::concerto;
use crate::config::{
    Complaint, Flags, PromptConfig, Resolved, Source, Variables, build_prompt, check_tools,
    not_rendered, resolve,
};
use crate::terminal::print_json;
use crate::text::{counted, printable};

fn read(arguments: &ConfigArguments) -> Result<(Source, Resolved), Complaint> {
    let source = Source::named_or_usual(arguments.from.config.as_deref())?;
    let variables = Variables::from_environment(std::env::vars_os())?;
    let config = resolve(&source, &variables, Flags::default(), &process_environment)?;
    if let Some(prompt) = &config.prompt {
        check_prompt(prompt, &config)?;
    }
    Ok((source, config))
}

/// Whether it can be rendered. Tools of MCP servers are taken to be there: nobody is asked.
fn check_prompt(prompt: &PromptConfig, config: &Resolved) -> Result<(), Complaint> {
    let context = Context::new().params(prompt.params.clone());
    let rendered = build_prompt(prompt, None)?.render(&context);
    rendered.map_err(|error| not_rendered(prompt, &error))?;
    // Folders that cannot be searched are told where they are used.
    let Ok(own) = hosted_here(config.search_files.clone(), &config.data_dir) else {
        return Ok(());
    };
    let servers: Vec<_> = config.mcp.iter().map(|it| it.label.as_str()).collect();
    check_tools(prompt, &own.catalog.snapshot(), &servers)
}

pub(super) fn check(arguments: &ConfigArguments) -> Result<ExitCode, Box<dyn Error>> {
    let (source, config) = match read(arguments) {
        Ok(read) => read,
        Err(complaint) => {
            if arguments.json {
                let mut told = complaint.json();
                told["ok"] = false.into();
                print_json(&told)?;
            }
            // A person reads it beside that.
            return Err(complaint.into());
        }
    };
    let models: Vec<String> = config
        .models
        .iter()
        .map(|model| format!("{} ({})", model.name, model.adapter.as_str()))
        .collect();
    let data_dir = config.data_dir.display().to_string();
    let search = config.search_files.iter().flat_map(|it| &it.folders);
    let folders: Vec<String> = search.map(|it| it.path.display().to_string()).collect();
    let servers: Vec<String> = config.mcp.iter().map(|it| it.label.to_string()).collect();
    let programs = concerto::checked(&config.concerto, arguments.from.config.as_deref())?;
    let prompt = config.prompt.as_ref().map(PromptConfig::outline);
    let endpoints = config.endpoints.iter();
    let endpoints: Vec<_> = endpoints.map(|(name, _)| format!("/mcp/{name}")).collect();
    if arguments.json {
        print_json(&json!({
            "ok": true,
            "file": source.is_there.then_some(&source.name),
            "listen": config.listen.to_string(),
            "data_dir": data_dir,
            "models": models,
            "default_model": config.default_model,
            "searched_folders": folders,
            "mcp_servers": servers,
            "gateway": config.gateway.is_some(),
            "endpoints": endpoints,
            "programs": programs.iter().map(|(name, tools)| json!({"file": name, "tools": tools})).collect::<Vec<_>>(),
            "prompt": prompt.as_ref().map(|(name, sections)| json!({"name": name, "sections": sections})),
            "notes": config.mcp_notes,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = anstream::stdout().lock();
    let name = printable(&source.name);
    if source.is_there {
        writeln!(out, "{name} is {}", "right".green())?;
    } else {
        writeln!(
            out,
            "there is no {name} here: everything is as it is by default"
        )?;
    }
    let mut line =
        |label: &str, text: &str| writeln!(out, "  {:<9}{}", label.dimmed(), printable(text));
    line("listen", &config.listen.to_string())?;
    line(
        "models",
        &match models.as_slice() {
            [] => String::from("none is named: one is looked for when it is needed"),
            models => models.join(", "),
        },
    )?;
    if let Some(name) = &config.default_model {
        line("", &format!("`{name}` where a request names none"))?;
    }
    line("data", &data_dir)?;
    if !folders.is_empty() {
        line("searched", &folders.join(", "))?;
    }
    if !servers.is_empty() {
        let servers = servers.join(", ");
        line(
            "mcp",
            &format!("{servers}; `haft mcp test` says whether they work"),
        )?;
    }
    for (at, (name, tools)) in programs.iter().enumerate() {
        let label = if at == 0 { "concerto" } else { "" };
        line(
            label,
            &format!("{name}, {}", counted(*tools as u64, "tool")),
        )?;
    }
    if let Some((name, sections)) = prompt {
        let sections = counted(sections as u64, "section");
        line(
            "prompt",
            &format!("{name}, {sections}; `haft prompt render` shows what a model would see"),
        )?;
    }
    let own = config.gateway.as_ref().map(|_| String::from("/mcp"));
    for path in own.into_iter().chain(endpoints) {
        line("gateway", &format!("an MCP server for others at {path}"))?;
    }
    for note in &config.mcp_notes {
        line("note", note)?;
    }
    Ok(ExitCode::SUCCESS)
}
