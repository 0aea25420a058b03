//! A run as a person reads it, event by event.

use std::collections::HashMap;
use std::io::{self, StdoutLock, Write};
use std::time::{Duration, Instant};

use anstream::AutoStream;
use haft::{End, EventKind, Item, Outcome, RawArguments, RunEvent, ToolProgress};
use owo_colors::OwoColorize;

use crate::arguments::ModelChoice;
use crate::text::{counted, one_line, printable, spoken};

/// How much of arguments and results is shown.
const SHOWN_CHARS: usize = 120;

/// Prints to standard output, with colours where it is a terminal.
pub(crate) struct Screen {
    out: AutoStream<StdoutLock<'static>>,
    began: Instant,
    calls: HashMap<String, Call>,
    /// Where the cursor is: text comes in pieces.
    place: Place,
}

/// What is known of a call so far.
#[derive(Default)]
struct Call {
    name: String,
    arguments: String,
    is_shown: bool,
    took: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Below a heading or a list of calls: text wants an empty line before it.
    BelowLines,
    /// In the middle of the model's words.
    InText,
}

/// How the model speaks.
#[derive(Clone, Copy)]
enum Tone {
    Answer,
    Thought,
}

impl Screen {
    pub(crate) fn open(question: &str, model: &ModelChoice) -> io::Result<Self> {
        let mut out = AutoStream::auto(io::stdout().lock());
        let who = match model {
            ModelChoice::Offline => "offline: rules in this process, no language model, no network",
            ModelChoice::OpenAiChat(name)
            | ModelChoice::OpenAiResponses(name)
            | ModelChoice::Anthropic(name)
            | ModelChoice::Ollama(name) => name,
        };
        writeln!(out)?;
        for (label, text) in [("question", question), ("model", who)] {
            writeln!(out, "  {:<10}{}", label.dimmed(), printable(text))?;
        }
        writeln!(out)?;
        Ok(Self {
            out,
            began: Instant::now(),
            calls: HashMap::new(),
            place: Place::BelowLines,
        })
    }

    pub(crate) fn show(&mut self, event: &RunEvent) -> io::Result<()> {
        match &event.kind {
            EventKind::ReasoningDelta { text, .. } => self.words(text, Tone::Thought),
            EventKind::TextDelta { text, .. } | EventKind::RefusalDelta { text, .. } => {
                self.words(text, Tone::Answer)
            }
            EventKind::ToolCallsRequested { calls } => {
                for call in calls {
                    let arguments = match &call.arguments {
                        RawArguments::Text(text) => text.clone(),
                        RawArguments::Json(value) => value.to_string(),
                    };
                    let known = Call {
                        name: call.name.clone(),
                        arguments,
                        ..Call::default()
                    };
                    let id = call.call_id.clone().unwrap_or_default();
                    self.calls.insert(id, known);
                }
                Ok(())
            }
            EventKind::ToolStarted { call_id, .. } => self.call(call_id),
            EventKind::ToolProgress { progress, .. } => self.progress(progress),
            EventKind::ToolInvoked {
                call_id,
                duration_ms,
                ..
            } => {
                if let Some(call) = self.calls.get_mut(call_id) {
                    call.took = Duration::from_millis(*duration_ms);
                }
                Ok(())
            }
            EventKind::ItemAdded {
                item: Item::FunctionCallOutput(output),
                ..
            } => self.result(&output.call_id, &output.output.to_text(), output.is_error),
            EventKind::RequestRetried {
                error, delay_ms, ..
            } => {
                let pause = spoken(Duration::from_millis(*delay_ms));
                let attempt = event.attempt;
                let next = attempt.saturating_add(1);
                self.note(&format!(
                    "attempt {attempt}: {error}; attempt {next} in {pause}"
                ))
            }
            EventKind::AnswerDiscarded { reason } => {
                self.note(&format!("this answer is not used: {reason}"))
            }
            EventKind::LoopDetected { kind, .. } => self.note(&kind.to_string()),
            _ => Ok(()),
        }
    }

    /// A piece of what the model says, as it comes.
    fn words(&mut self, text: &str, tone: Tone) -> io::Result<()> {
        if self.place != Place::InText {
            write!(self.out, "\n  ")?;
            self.place = Place::InText;
        }
        let text = printable(text).replace('\n', "\n  ");
        match tone {
            Tone::Answer => write!(self.out, "{text}")?,
            Tone::Thought => write!(self.out, "{}", text.dimmed())?,
        }
        self.out.flush()
    }

    fn call(&mut self, call_id: &str) -> io::Result<()> {
        self.end_words()?;
        let Some(call) = self.calls.get_mut(call_id) else {
            return Ok(());
        };
        call.is_shown = true;
        let arguments = one_line(&call.arguments, SHOWN_CHARS);
        let name = one_line(&call.name, SHOWN_CHARS);
        writeln!(
            self.out,
            "  {} {} {}",
            "→".cyan().bold(),
            name.cyan(),
            arguments.dimmed()
        )
    }

    fn progress(&mut self, progress: &ToolProgress) -> io::Result<()> {
        let said = progress.message.as_deref().or(progress.chunk.as_deref());
        match said {
            Some(text) => self.note(text),
            None => Ok(()),
        }
    }

    fn result(&mut self, call_id: &str, text: &str, is_error: bool) -> io::Result<()> {
        // A call that was refused has not been seen yet.
        if self.calls.get(call_id).is_some_and(|call| !call.is_shown) {
            self.call(call_id)?;
        }
        let Some(call) = self.calls.get(call_id) else {
            return Ok(());
        };
        let name = one_line(&call.name, SHOWN_CHARS);
        let took = format!("({})", spoken(call.took));
        let text = one_line(text, SHOWN_CHARS);
        if is_error {
            let mark = "✗".red();
            writeln!(
                self.out,
                "  {} {name} {} {text}",
                mark.bold(),
                took.dimmed()
            )
        } else {
            let mark = "✓".green();
            writeln!(
                self.out,
                "  {} {name} {} {text}",
                mark.bold(),
                took.dimmed()
            )
        }
    }

    /// Something beside the conversation.
    fn note(&mut self, text: &str) -> io::Result<()> {
        self.end_words()?;
        writeln!(
            self.out,
            "  {} {}",
            "·".yellow(),
            one_line(text, SHOWN_CHARS).dimmed()
        )
    }

    fn end_words(&mut self) -> io::Result<()> {
        if self.place == Place::InText {
            self.place = Place::BelowLines;
            write!(self.out, "\n\n")?;
        }
        Ok(())
    }

    /// The end with its reason, and the figures.
    pub(crate) fn close(mut self, outcome: &Outcome) -> io::Result<()> {
        if self.place == Place::InText {
            writeln!(self.out)?;
        }
        let figures = [
            counted(outcome.usage.requests, "turn"),
            counted(outcome.tool_calls.len() as u64, "call"),
            counted(outcome.usage.total_tokens(), "token"),
            spoken(self.began.elapsed()),
        ];
        let end = outcome.end.name();
        writeln!(self.out)?;
        match &outcome.end {
            End::Completed => write!(self.out, "  {}", end.green().bold())?,
            _ => write!(self.out, "  {}", end.red().bold())?,
        }
        writeln!(self.out, ": {}\n", figures.join(", "))?;
        self.out.flush()?;
        // Why there is no answer is for whoever watches, not for whoever reads the answer.
        match outcome.end.summary().message {
            Some(message) => writeln!(io::stderr(), "haft: {}", printable(&message)),
            None => Ok(()),
        }
    }
}

/// Where a person goes from the demonstration.
pub(crate) fn what_next() -> io::Result<()> {
    let mut out = AutoStream::auto(io::stdout().lock());
    writeln!(
        out,
        "  The loop, the checks and the tools were real; the offline model only plays a model's part."
    )?;
    for (what, command) in [
        (
            "a real one",
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
