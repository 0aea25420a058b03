//! The demonstration as a person reads it.

use std::io::{self, StdoutLock, Write};

use anstream::AutoStream;
use haft::{Binding, HydrationResult, RepairEvent};
use owo_colors::OwoColorize;

use super::Fate;
use super::calls::Call;
use crate::text::one_line;

/// How much of a call is shown.
const SHOWN_CHARS: usize = 152;

/// Prints to standard output and keeps the score.
pub(crate) struct Page {
    out: AutoStream<StdoutLock<'static>>,
    score: Score,
}

#[derive(Default)]
struct Score {
    calls: usize,
    ran: usize,
    repaired: usize,
    held: usize,
    refused: usize,
}

impl Page {
    pub(crate) fn open(binding: &Binding) -> io::Result<Self> {
        let mut page = Self {
            out: AutoStream::auto(io::stdout().lock()),
            score: Score::default(),
        };
        page.opening(binding)?;
        Ok(page)
    }

    fn opening(&mut self, binding: &Binding) -> io::Result<()> {
        let road = "parse, validate, at most one audited repair, gate, run";
        writeln!(self.out)?;
        writeln!(
            self.out,
            "  {} takes calls as models write them: {road}",
            "haft".bold()
        )?;
        writeln!(self.out)?;
        for definition in binding.tools_for_llm() {
            writeln!(
                self.out,
                "  {:<22}{}",
                definition.name().as_str().cyan(),
                definition.brief().dimmed()
            )?;
        }
        Ok(())
    }

    pub(crate) fn call(
        &mut self,
        call: &Call,
        result: &HydrationResult,
        fate: &Fate,
    ) -> io::Result<()> {
        self.score.calls += 1;
        writeln!(self.out)?;
        writeln!(
            self.out,
            "{:>3}  {}",
            self.score.calls.dimmed(),
            call.title.bold()
        )?;
        writeln!(self.out, "     {}", shown(call).dimmed())?;
        for edit in edits(result) {
            writeln!(self.out, "     {} {}", "~".yellow(), edit.yellow())?;
        }
        match fate {
            Fate::Ran(text) => {
                self.score.ran += 1;
                self.score.repaired += usize::from(result.provenance.repaired);
                writeln!(
                    self.out,
                    "     {} {}",
                    "✓ ran".green().bold(),
                    one_line(text, SHOWN_CHARS)
                )?;
            }
            Fate::Failed(text) => {
                self.score.ran += 1;
                writeln!(
                    self.out,
                    "     {} {}",
                    "✗ ran and failed".red().bold(),
                    one_line(text, SHOWN_CHARS)
                )?;
            }
            Fate::Held(reason) => {
                self.score.held += 1;
                writeln!(
                    self.out,
                    "     {} {reason}",
                    "‖ waits for a person:".yellow().bold()
                )?;
            }
            Fate::Refused(text) => {
                self.score.refused += 1;
                writeln!(
                    self.out,
                    "     {} {}",
                    "✗ refused".red().bold(),
                    one_line(text, SHOWN_CHARS)
                )?;
            }
        }
        Ok(())
    }

    pub(crate) fn close(mut self) -> io::Result<()> {
        let score = &self.score;
        writeln!(self.out)?;
        writeln!(
            self.out,
            "  {} calls: {} ran ({} of them repaired), {} wait for a person, {} refused.",
            score.calls, score.ran, score.repaired, score.held, score.refused
        )?;
        writeln!(
            self.out,
            "  {}",
            "Every refusal is the text the model reads; the run would go on.".dimmed()
        )?;
        writeln!(self.out)?;
        writeln!(
            self.out,
            "  Next: cargo run -p haft-examples --example whole_way"
        )?;
        writeln!(self.out)
    }
}

/// The edits that were made, if they came to anything; equal ones are counted.
fn edits(result: &HydrationResult) -> Vec<String> {
    let repair = result.provenance.repair.as_ref().filter(|repair| repair.ok);
    let mut edits: Vec<(String, usize)> = Vec::new();
    for event in repair.into_iter().flat_map(|repair| &repair.events) {
        let text = edit(event);
        match edits.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => edits.push((text, 1)),
        }
    }
    edits
        .into_iter()
        .map(|(text, count)| match count {
            1 => text,
            count => format!("{text}   ×{count}"),
        })
        .collect()
}

fn edit(event: &RepairEvent) -> String {
    let kind = serde_json::to_value(event.kind).unwrap_or_default();
    let kind = kind.as_str().unwrap_or_default().replace('_', " ");
    let shown = |text: &str| match text {
        "" => "nothing".to_owned(),
        text => one_line(text, SHOWN_CHARS),
    };
    format!("{kind}: {} → {}", shown(&event.before), shown(&event.after))
}

fn shown(call: &Call) -> String {
    match call.repeat {
        1 => format!("{} {}", call.tool, one_line(call.written, SHOWN_CHARS)),
        times => format!(
            "{} {}… ({times} in all)",
            call.tool,
            call.written.repeat(20)
        ),
    }
}
