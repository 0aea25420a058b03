//! The demonstration as a person reads it.

use anstream::println;
use haft::{Binding, HydrationResult, RepairEvent};
use owo_colors::OwoColorize;

use super::Fate;
use super::calls::Call;

/// How much of a call is shown.
const SHOWN_CHARS: usize = 76;

/// Prints to standard output and keeps the score.
#[derive(Default)]
pub(crate) struct Page {
    calls: usize,
    ran: usize,
    repaired: usize,
    held: usize,
    refused: usize,
}

impl Page {
    pub(crate) fn open(binding: &Binding) -> Self {
        let road = "parse, validate, at most one audited repair, gate, run";
        println!();
        println!(
            "  {} takes calls as models write them: {road}",
            "haft".bold()
        );
        println!();
        for definition in binding.tools_for_llm() {
            println!(
                "  {:<22}{}",
                definition.name().as_str().cyan(),
                definition.brief().dimmed()
            );
        }
        Self::default()
    }

    pub(crate) fn call(&mut self, call: &Call, result: &HydrationResult, fate: &Fate) {
        self.calls += 1;
        println!();
        println!("{:>3}  {}", self.calls.dimmed(), call.title.bold());
        println!("     {}", shown(call).dimmed());
        for edit in edits(result) {
            println!("     {} {}", "~".yellow(), edit.yellow());
        }
        match fate {
            Fate::Ran(text) => {
                self.ran += 1;
                self.repaired += usize::from(result.provenance.repaired);
                println!("     {} {}", "✓ ran".green().bold(), one_line(text));
            }
            Fate::Failed(text) => {
                self.ran += 1;
                println!(
                    "     {} {}",
                    "✗ ran and failed".red().bold(),
                    one_line(text)
                );
            }
            Fate::Held(reason) => {
                self.held += 1;
                println!("     {} {reason}", "‖ waits for a person:".yellow().bold());
            }
            Fate::Refused(text) => {
                self.refused += 1;
                println!("     {} {}", "✗ refused".red().bold(), one_line(text));
            }
        }
    }

    pub(crate) fn close(&self) {
        println!();
        println!(
            "  {} calls: {} ran ({} of them repaired), {} wait for a person, {} refused.",
            self.calls, self.ran, self.repaired, self.held, self.refused
        );
        println!(
            "  {}",
            "Every refusal is the text the model reads; the run would go on.".dimmed()
        );
        println!();
        println!("  Next: cargo run -p haft-examples --example function_tool");
        println!();
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
        text => one_line(text),
    };
    format!("{kind}: {} → {}", shown(&event.before), shown(&event.after))
}

fn shown(call: &Call) -> String {
    match call.repeat {
        1 => format!("{} {}", call.tool, one_line(call.written)),
        times => format!(
            "{} {}… ({times} in all)",
            call.tool,
            call.written.repeat(20)
        ),
    }
}

fn one_line(text: &str) -> String {
    let line = text.replace('\n', "⏎");
    match line.char_indices().nth(SHOWN_CHARS * 2) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
