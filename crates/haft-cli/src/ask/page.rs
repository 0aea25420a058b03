//! What stands above and below a run.

use std::io::{self, Write as _};
use std::time::Duration;

use haft::{End, Outcome};
use owo_colors::OwoColorize;

use crate::arguments::ModelChoice;
use crate::screen::Screen;
use crate::text::{counted, printable, spoken};

/// The question, and who is asked.
pub(super) fn open(screen: &mut Screen, question: &str, model: &ModelChoice) -> io::Result<()> {
    let who = match model {
        ModelChoice::Offline => "offline: rules in this process, no language model, no network",
        ModelChoice::OpenAiChat(name)
        | ModelChoice::OpenAiResponses(name)
        | ModelChoice::Anthropic(name)
        | ModelChoice::Ollama(name) => name,
    };
    let out = screen.lines()?;
    writeln!(out)?;
    for (label, text) in [("question", question), ("model", who)] {
        writeln!(out, "  {:<10}{}", label.dimmed(), printable(text))?;
    }
    writeln!(out)
}

/// The end with its reason, and the figures.
pub(super) fn close(screen: &mut Screen, outcome: &Outcome, took: Duration) -> io::Result<()> {
    screen.end_answer()?;
    let figures = [
        counted(outcome.usage.requests, "turn"),
        counted(outcome.tool_calls.len() as u64, "call"),
        counted(outcome.usage.total_tokens(), "token"),
        spoken(took),
    ];
    let end = outcome.end.name();
    let out = screen.lines()?;
    writeln!(out)?;
    match &outcome.end {
        End::Completed => write!(out, "  {}", end.green().bold())?,
        _ => write!(out, "  {}", end.red().bold())?,
    }
    writeln!(out, ": {}\n", figures.join(", "))?;
    out.flush()?;
    // Why there is no answer is for whoever watches, not for whoever reads the answer.
    match outcome.end.summary().message {
        Some(message) => writeln!(io::stderr(), "haft: {}", printable(&message)),
        None => Ok(()),
    }
}

/// Where a person goes from the demonstration.
pub(crate) fn what_next() -> io::Result<()> {
    let mut out = anstream::stdout();
    writeln!(
        out,
        "  The loop, the checks and the tools were real; the offline model only plays a model's part."
    )?;
    for (what, command) in [
        ("a conversation", "cargo run --release -- chat"),
        (
            "a real model",
            "cargo run --release -- ask \"…\" --model openai-responses:gpt-5.2",
        ),
        (
            "",
            "cargo run --release -- ask \"…\" --model ollama:qwen3:8b",
        ),
        ("hostile calls", "cargo run --release -- demo calls"),
        ("as a server", "cargo run --release"),
        (
            "your own tools",
            "cargo run -p haft-examples --example quickstart",
        ),
    ] {
        writeln!(out, "  {:<16}{command}", what.dimmed())?;
    }
    writeln!(out)
}
