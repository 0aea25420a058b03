//! `haft responses list`.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use haft::{Value, json};
use owo_colors::OwoColorize;

use super::pages::{Wanted, collect};
use super::text;
use crate::arguments::ListArguments;
use crate::remote::Remote;
use crate::terminal::{Spinner, print_json};
use crate::text::{ago, now, one_line};

/// A column is at most so wide; an id of ours is 37.
const ID_CHARS: usize = 40;

pub(super) async fn list(arguments: &ListArguments) -> Result<ExitCode, Box<dyn Error>> {
    let remote = Remote::connect(&arguments.remote)?;
    let spinner = Spinner::new("asking for responses");
    let wanted = Wanted {
        path: &["responses"],
        order: "desc",
        limit: (!arguments.all).then_some(arguments.limit.get().into()),
    };
    let hear = |count| spinner.say(&format!("{count} responses so far"));
    let (responses, has_more) = spinner.during(collect(&remote, wanted, hear)).await?;
    if arguments.json {
        print_json(&json!({"object": "list", "data": responses, "has_more": has_more}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = anstream::stdout().lock();
    if responses.is_empty() {
        writeln!(out, "there are no stored responses at {}", remote.base())?;
        return Ok(ExitCode::SUCCESS);
    }
    let heading = format!(
        "{:<37}  {:<10}  {:<12}  {:>8}  {}",
        "id", "made", "status", "tokens", "model"
    );
    writeln!(out, "{}", heading.dimmed())?;
    let now = now();
    for response in &responses {
        line(&mut out, response, now)?;
    }
    if has_more {
        let all = "there are more: `--limit N` shows more of them, `--all` all";
        writeln!(out, "{}", all.dimmed())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn line(out: &mut impl Write, response: &Value, now: i64) -> io::Result<()> {
    let id = one_line(text(response, "id"), ID_CHARS);
    let made = response["created_at"].as_i64().unwrap_or_default();
    let made = ago(made, now);
    let status = one_line(text(response, "status"), 12);
    let tokens = response.pointer("/usage/total_tokens");
    let tokens = tokens.map_or_else(|| String::from("-"), Value::to_string);
    let model = one_line(text(response, "model"), ID_CHARS);
    let padded = format!("{status:<12}");
    let status = match status.as_str() {
        "completed" => padded.green().to_string(),
        "failed" | "cancelled" => padded.red().to_string(),
        _ => padded.yellow().to_string(),
    };
    writeln!(out, "{id:<37}  {made:<10}  {status}  {tokens:>8}  {model}")
}
