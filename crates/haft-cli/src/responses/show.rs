//! `haft responses show`.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use haft::Value;
use owo_colors::OwoColorize;

use super::pages::{Wanted, collect};
use super::text;
use crate::arguments::ShowArguments;
use crate::remote::{Remote, RemoteError};
use crate::screen::item::Detail;
use crate::screen::{Layout, Screen};
use crate::terminal::{Spinner, print_json};
use crate::text::{ago, moment, now, one_line, spoken};

/// How much of a value is shown.
const SHOWN_CHARS: usize = 500;

pub(super) async fn show(arguments: &ShowArguments) -> Result<ExitCode, Box<dyn Error>> {
    let remote = Remote::connect(&arguments.remote)?;
    let spinner = Spinner::new("asking for the response");
    let mut response = spinner
        .during(remote.get(&["responses", &arguments.id], &[]))
        .await?;
    let input = if arguments.items {
        spinner.during(input_items(&remote, &arguments.id)).await?
    } else {
        Vec::new()
    };
    if arguments.json {
        if arguments.items {
            response["input_items"] = input.into();
        }
        print_json(&response)?;
    } else {
        print(&response, &input, arguments.items)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything that a response answered to, the oldest first.
pub(crate) async fn input_items(remote: &Remote, id: &str) -> Result<Vec<Value>, RemoteError> {
    let wanted = Wanted {
        path: &["responses", id, "input_items"],
        order: "asc",
        limit: None,
    };
    Ok(collect(remote, wanted, |_| {}).await?.0)
}

/// A response as a person reads it.
pub(super) fn print(response: &Value, input: &[Value], is_full: bool) -> io::Result<()> {
    let mut screen = Screen::new(Layout::Framed);
    let out = screen.lines()?;
    writeln!(
        out,
        "{}",
        one_line(text(response, "id"), SHOWN_CHARS).bold()
    )?;
    let mut field = |label: &str, value: &dyn Display| -> io::Result<()> {
        let value = one_line(&value.to_string(), SHOWN_CHARS);
        writeln!(out, "  {:<12}{value}", label.dimmed())
    };
    field("status", &status(response))?;
    field("model", &text(response, "model"))?;
    let made = response["created_at"].as_i64().unwrap_or_default();
    field("made", &format!("{}, {}", moment(made), ago(made, now())))?;
    if let Some(ended) = response["completed_at"].as_i64() {
        let took = u64::try_from(ended.saturating_sub(made)).unwrap_or_default();
        let took = spoken(Duration::from_secs(took));
        field("ended", &format!("{}, after {took}", moment(ended)))?;
    }
    if let Some(usage) = usage(response) {
        field("tokens", &usage)?;
    }
    for (label, value) in [
        ("continues", &response["previous_response_id"]),
        ("in", &response["conversation"]["id"]),
        ("told", &response["instructions"]),
    ] {
        if let Some(value) = value.as_str() {
            field(label, &value)?;
        }
    }
    if response["background"] == true {
        field("background", &"yes")?;
    }
    writeln!(out)?;
    let detail = if is_full { Detail::Full } else { Detail::Short };
    let output = response["output"].as_array();
    for item in input.iter().chain(output.into_iter().flatten()) {
        screen.item(item, detail)?;
    }
    screen.end_answer()
}

/// The status with its reason.
fn status(response: &Value) -> String {
    let status = text(response, "status");
    let reason = response["incomplete_details"]["reason"].as_str();
    let error = response["error"]["message"].as_str();
    match (reason, error) {
        (Some(reason), _) => format!("{status}: {reason}"),
        (None, Some(error)) => {
            let code = text(&response["error"], "code");
            format!("{status}: {error} ({code})")
        }
        (None, None) => status.to_owned(),
    }
}

/// What it cost.
fn usage(response: &Value) -> Option<String> {
    let usage = &response["usage"];
    let count = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    let mut words = format!(
        "{} in, {} out",
        count("/input_tokens")?,
        count("/output_tokens")?
    );
    for (path, what) in [
        ("/input_tokens_details/cached_tokens", "cached"),
        ("/output_tokens_details/reasoning_tokens", "for thoughts"),
    ] {
        if let Some(number @ 1..) = count(path) {
            words = format!("{words}, {number} {what}");
        }
    }
    Some(words)
}
