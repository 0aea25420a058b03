//! `haft config show`.

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;

use haft::{Value, json};
use owo_colors::OwoColorize;
use toml::Table;

use super::effective::{self, Origin, json as value_of, written};
use crate::arguments::ConfigArguments;
use crate::config::{Source, Variables, check_without_models};
use crate::terminal::print_json;
use crate::text::printable;

/// Where comments begin, if the line leaves room.
const COMMENT_COLUMN: usize = 44;

pub(super) fn show(arguments: &ConfigArguments) -> Result<ExitCode, Box<dyn Error>> {
    let source = Source::named_or_usual(arguments.from.config.as_deref())?;
    let variables = Variables::from_environment(std::env::vars_os())?;
    // What is wrong is complained about with its place; keys need not be there to be shown.
    let checked = check_without_models(&source, &variables)?;
    let file: Table = toml::from_str(&source.text)?;
    let settings = effective::settings(&file, &source.name, &variables);
    let models = effective::models(&file);
    let sections = effective::sections(&file);
    let endpoints = effective::endpoints(&file);
    let has_bare_gateway = effective::is_bare(&file, "gateway");
    if arguments.json {
        let mut told = json!({});
        for setting in &settings {
            // `loop.retry` is a table within a table.
            let mut table = &mut told;
            for name in setting.table.split('.') {
                table = &mut table[name];
            }
            let value = value_of(&setting.value);
            table[&setting.key] = json!({"value": value, "from": setting.origin.told()});
        }
        let models = models
            .into_iter()
            .map(|it| value_of(&toml::Value::Table(it)));
        told["model"] = models.collect::<Vec<Value>>().into();
        if !sections.is_empty() {
            let sections = sections
                .into_iter()
                .map(|it| value_of(&toml::Value::Table(it)));
            told["prompt"]["section"] = sections.collect::<Vec<Value>>().into();
        }
        if has_bare_gateway {
            told["gateway"] = json!({});
        }
        let gateway = file.get("gateway").and_then(toml::Value::as_table);
        for (key, value) in gateway.into_iter().flatten() {
            if value.is_table() || key == "rule" {
                told["gateway"][key] = json!({"value": value_of(value), "from": source.name});
            }
        }
        for server in &checked.mcp {
            let keys = effective::server(&file, server.label.as_str());
            let value = keys.map_or_else(|| json!({}), |it| value_of(&toml::Value::Table(it)));
            told["mcp"][server.label.as_str()] = json!({"value": value, "from": server.from});
        }
        print_json(&told)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = anstream::stdout().lock();
    let mut table = "";
    for setting in &settings {
        if setting.table != table {
            if !table.is_empty() {
                writeln!(out)?;
            }
            table = &setting.table;
            writeln!(out, "{}", format!("[{table}]").bold())?;
        }
        let line = format!("{} = {}", setting.key, written(&setting.value));
        let comment = format!("# {}", setting.origin.told());
        let line = format!("{:<COMMENT_COLUMN$}", printable(&line));
        let comment = printable(&comment);
        match setting.origin {
            Origin::Default => writeln!(out, "{} {}", line.dimmed(), comment.dimmed())?,
            _ => writeln!(out, "{line} {}", comment.cyan())?,
        }
    }
    if has_bare_gateway {
        let gateway = format!("{:<COMMENT_COLUMN$}", "[gateway]");
        let comment = format!("# {}", printable(&source.name));
        writeln!(out, "\n{} {}", gateway.bold(), comment.cyan())?;
    }
    let entries = endpoints.iter().map(|(heading, it)| (heading.as_str(), it));
    let entries = entries.chain(sections.iter().map(|it| ("[[prompt.section]]", it)));
    let entries = entries.chain(models.iter().map(|it| ("[[model]]", it)));
    for (heading, entry) in entries {
        writeln!(out, "\n{}", heading.bold())?;
        // What it is called first; the rest by name.
        let is_name = |key: &str| key == "name" || key == "key";
        let (names, rest): (Vec<_>, Vec<_>) = entry.iter().partition(|(key, _)| is_name(key));
        for (key, value) in names.into_iter().chain(rest) {
            writeln!(out, "{key} = {}", printable(&written(value)))?;
        }
    }
    for server in &checked.mcp {
        writeln!(out, "\n{}", format!("[mcp.{}]", server.label).bold())?;
        match effective::server(&file, server.label.as_str()) {
            Some(keys) => {
                for (key, value) in &keys {
                    writeln!(out, "{key} = {}", printable(&written(value)))?;
                }
            }
            None => writeln!(out, "{}", format!("# {}", printable(&server.from)).cyan())?,
        }
    }
    if file.get("model").is_none() {
        let words = "# no [[model]]: one is looked for when it is needed";
        writeln!(out, "\n{}", words.dimmed())?;
    }
    Ok(ExitCode::SUCCESS)
}
