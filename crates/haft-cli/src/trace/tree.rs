//! A run as a tree, in lines of at most 80 columns.

use std::io::{self, Write};

use haft::Usage;
use haft_server::{CallTrace, HydrationTrace, Note, NoteKind, RunTrace, TurnTrace};
use owo_colors::OwoColorize;

use crate::text::{counted, moment, one_line};

/// The columns: what it is, when it began, how long it took, and the same as a bar.
const LABEL: usize = 40;
const TIME: usize = 8;
const BAR: usize = 18;

/// A line has so many columns.
const WIDTH: usize = 80;

/// Prints it.
pub(super) fn print(out: &mut impl Write, trace: &RunTrace) -> io::Result<()> {
    head(out, trace)?;
    let mut tree = Tree {
        out,
        whole: extent(trace),
    };
    let mut notes = trace.notes.iter().peekable();
    for (at, turn) in trace.turns.iter().enumerate() {
        while let Some(note) = notes.next_if(|note| note.at_ms <= turn.start_ms) {
            tree.note(note)?;
        }
        // What happened before this turn was over belongs in it; one that was cut off was over when the
        // next began.
        let next = trace.turns.get(at + 1).map(|next| next.start_ms);
        let end = turn.end_ms.or(next).unwrap_or(f64::INFINITY);
        let mut inside = Vec::new();
        while let Some(note) = notes.next_if(|note| note.at_ms <= end) {
            inside.push(note);
        }
        tree.turn(at + 1, turn, &inside)?;
    }
    for note in notes {
        tree.note(note)?;
    }
    if trace.calls_omitted > 0 {
        let omitted = counted(trace.calls_omitted, "more call");
        writeln!(
            out,
            "  {}",
            format!("{omitted} were not written down").dimmed()
        )?;
    }
    Ok(())
}

fn head(out: &mut impl Write, trace: &RunTrace) -> io::Result<()> {
    let id = one_line(&trace.response_id, 48);
    let how = match (trace.outcome.as_deref(), trace.duration_ms) {
        (Some(outcome), Some(duration)) => {
            let outcome = one_line(outcome, 16);
            let duration = time(duration);
            match outcome.as_str() {
                "completed" => format!("{} in {duration}", outcome.green()),
                "failed" | "cancelled" => format!("{} after {duration}", outcome.red()),
                _ => format!("{} after {duration}", outcome.yellow()),
            }
        }
        _ => format!("{}", "under way".yellow()),
    };
    writeln!(out, "{}  {how}", id.bold())?;
    if let Some(reason) = &trace.reason {
        writeln!(out, "  because: {}", one_line(reason, WIDTH - 12))?;
    }
    let calls: usize = trace.turns.iter().map(|turn| turn.calls.len()).sum();
    let counts = [
        one_line(&trace.model, 24),
        counted(trace.turns.len() as u64, "turn"),
        counted(trace.calls_omitted.saturating_add(calls as u64), "call"),
        counted(trace.usage.requests, "request"),
    ];
    for line in [counts.join(", "), tokens(&trace.usage)] {
        writeln!(out, "  {}", one_line(&line, WIDTH - 3))?;
    }
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a number of seconds that fits"
    )]
    let began = moment(trace.started_at as i64);
    let asked = one_line(&format!("{began}, {}", trace.request_id), WIDTH - 3);
    writeln!(out, "  {}\n", asked.dimmed())
}

struct Tree<'t, W> {
    out: &'t mut W,
    /// How long all of it took, in milliseconds.
    whole: f64,
}

impl<W: Write> Tree<'_, W> {
    fn turn(&mut self, number: usize, turn: &TurnTrace, inside: &[&Note]) -> io::Result<()> {
        let took = turn.end_ms.map(|end| end - turn.start_ms);
        let label = format!("turn {number}");
        self.row("  ", &label, Some(turn.start_ms), took, Tone::Strong)?;
        let edge = if turn.calls.is_empty() { " " } else { "│" };
        let mut words = Vec::new();
        if let Some(first) = turn.first_token_ms {
            words.push(format!("first token after {}", time(first - turn.start_ms)));
        }
        if let Some(usage) = &turn.usage {
            words.push(tokens(usage));
        }
        if let Some(finish) = &turn.finish {
            words.push(one_line(finish, 24));
        }
        if turn.discarded {
            words.push(String::from("discarded: it broke `tool_choice`"));
        }
        self.words(&format!("  {edge} "), &words)?;
        for (at, attempt) in turn.attempts.iter().enumerate() {
            let Some(error) = &attempt.error else {
                continue;
            };
            let mut words = format!("attempt {}: {}", at + 1, one_line(error, 32));
            if let Some(end) = attempt.end_ms {
                words = format!("{words} after {}", time(end - attempt.start_ms));
            }
            if let Some(delay) = attempt.delay_ms {
                #[allow(clippy::cast_precision_loss, reason = "a wait of seconds or minutes")]
                let delay = time(delay as f64);
                words = format!("{words}, repeated {delay} later");
            }
            let words = one_line(&words, WIDTH - 5);
            writeln!(self.out, "  {edge} {}", words.red())?;
        }
        for note in inside {
            let words = one_line(&said(note), WIDTH - 5);
            writeln!(self.out, "  {edge} {}", words.yellow())?;
        }
        let last = turn.calls.len().saturating_sub(1);
        for (at, call) in turn.calls.iter().enumerate() {
            self.call(call, at == last)?;
        }
        Ok(())
    }

    fn call(&mut self, call: &CallTrace, is_last: bool) -> io::Result<()> {
        let (branch, edge) = if is_last {
            ("  └ ", "      ")
        } else {
            ("  ├ ", "  │   ")
        };
        let label = if call.kind.ends_with(&format!(":{}", call.name)) {
            call.kind.clone()
        } else {
            format!("{}  {}", call.name, call.kind)
        };
        self.row(branch, &label, call.start_ms, call.duration_ms, Tone::Plain)?;
        let outcome = one_line(call.outcome.as_deref().unwrap_or("under way"), 24);
        // Behind it: a comma, a space, and the dots of what is cut.
        let room = WIDTH - edge.chars().count() - outcome.chars().count() - 3;
        let outcome = match outcome.as_str() {
            "succeeded" => outcome.green().to_string(),
            "handed_over" | "suspended" | "under way" => outcome.yellow().to_string(),
            _ => outcome.red().to_string(),
        };
        write!(self.out, "{edge}{outcome}")?;
        let mut words = Vec::new();
        words.extend(call.hydration.as_ref().map(hydrated));
        words.extend(call.verdict.as_deref().map(|it| one_line(it, 24)));
        if let Some(bytes) = call.output_bytes {
            words.push(counted(bytes, "byte"));
        }
        if !words.is_empty() {
            let words = one_line(&words.join(", "), room);
            write!(self.out, "{}", format!(", {words}").dimmed())?;
        }
        writeln!(self.out)
    }

    /// Something that happened to the run between its turns.
    fn note(&mut self, note: &Note) -> io::Result<()> {
        let took = match &note.kind {
            NoteKind::Compaction { duration_ms, .. } => Some(*duration_ms),
            _ => None,
        };
        let label = said(note);
        self.row("  ", &label, Some(note.at_ms), took, Tone::Note)?;
        if let NoteKind::Compaction { usage, .. } = &note.kind {
            self.words("    ", &[tokens(usage)])?;
        }
        Ok(())
    }

    /// One line with times and a bar.
    fn row(
        &mut self,
        branch: &str,
        label: &str,
        start: Option<f64>,
        took: Option<f64>,
        tone: Tone,
    ) -> io::Result<()> {
        let room = LABEL - branch.chars().count();
        let label = one_line(label, room - 1);
        let padding = " ".repeat(room.saturating_sub(label.chars().count()));
        let label = match tone {
            Tone::Strong => label.bold().to_string(),
            Tone::Plain => label.cyan().to_string(),
            Tone::Note => label.yellow().to_string(),
        };
        let told = |time_of: Option<f64>| time_of.map_or_else(String::new, time);
        let line = format!(
            "{branch}{label}{padding}{:>TIME$}{:>TIME$}",
            told(start),
            told(took)
        );
        let bar = match start {
            Some(start) => bar(start, took.unwrap_or(0.0), self.whole),
            None => String::new(),
        };
        if bar.is_empty() {
            writeln!(self.out, "{}", line.trim_end())
        } else {
            writeln!(self.out, "{line}  {}", bar.dimmed())
        }
    }

    fn words(&mut self, edge: &str, words: &[String]) -> io::Result<()> {
        if words.is_empty() {
            return Ok(());
        }
        let words = one_line(&words.join(", "), WIDTH - edge.chars().count() - 1);
        writeln!(self.out, "{edge}{}", words.dimmed())
    }
}

#[derive(Debug, Clone, Copy)]
enum Tone {
    Strong,
    Plain,
    Note,
}

/// What happened to a run.
fn said(note: &Note) -> String {
    match &note.kind {
        NoteKind::Compaction { outcome, .. } => {
            format!("context summed up: {}", one_line(outcome, 16))
        }
        NoteKind::Truncation => String::from("context cut, it was too long"),
        NoteKind::Failover { from, to, error } if error == "left_alone" => format!(
            "{} is left alone: {} answered",
            one_line(from, 16),
            one_line(to, 16)
        ),
        NoteKind::Failover { from, to, error } => format!(
            "{} failed ({}): {} answered",
            one_line(from, 16),
            one_line(error, 16),
            one_line(to, 16)
        ),
        NoteKind::Resumed => String::from("taken up by another process"),
        _ => String::from("something of a later version"),
    }
}

fn hydrated(hydration: &HydrationTrace) -> String {
    let outcome = one_line(&hydration.outcome, 16);
    let details = hydration.errors.iter().chain(&hydration.repairs);
    let details: Vec<_> = details.map(|detail| one_line(detail, 32)).collect();
    if details.is_empty() {
        format!("arguments {outcome}")
    } else {
        format!("arguments {outcome} ({})", details.join(", "))
    }
}

fn tokens(usage: &Usage) -> String {
    let part = |count: u64, of: &str| match count {
        0 => String::new(),
        count => format!(" ({} {of})", grouped(count)),
    };
    format!(
        "{} tokens in{}, {} out{}",
        grouped(usage.input_tokens),
        part(usage.cached_input_tokens, "cached"),
        grouped(usage.output_tokens),
        part(usage.reasoning_tokens, "thought"),
    )
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Milliseconds as a person says them, short.
fn time(milliseconds: f64) -> String {
    let milliseconds = milliseconds.max(0.0);
    match milliseconds {
        it if it < 9.95 => format!("{it:.1}ms"),
        it if it < 999.5 => format!("{it:.0}ms"),
        it if it < 99_950.0 => format!("{:.1}s", it / 1000.0),
        it => {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a time that is not negative; one beyond all times is the longest"
            )]
            let seconds = (it / 1000.0) as u64;
            match seconds {
                ..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
                3600..360_000 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
                360_000..864_000_000 => format!("{}d", seconds / 86_400),
                _ => String::from("ages"),
            }
        }
    }
}

/// Where in the whole something lies: cells of a line, the last one as far as it reaches.
fn bar(start: f64, took: f64, whole: f64) -> String {
    const PARTS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
    if whole <= 0.0 {
        return String::new();
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place in a line of some columns"
    )]
    let eighths = |time: f64| ((time / whole).clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    // It begins with a whole cell; what is too short to be seen is seen all the same.
    let first = (eighths(start) / 8).min(BAR - 1);
    let length = eighths(start + took).saturating_sub(first * 8).max(1);
    let mut bar = " ".repeat(first);
    bar.extend(std::iter::repeat_n('█', length / 8));
    if !length.is_multiple_of(8) {
        bar.push(PARTS[length % 8 - 1]);
    }
    bar
}

/// How long all of it took, or has taken by now as far as is known.
fn extent(trace: &RunTrace) -> f64 {
    let turns = trace.turns.iter().map(|turn| {
        let calls = turn.calls.iter();
        let calls =
            calls.map(|call| call.start_ms.unwrap_or(0.0) + call.duration_ms.unwrap_or(0.0));
        calls.fold(turn.end_ms.unwrap_or(turn.start_ms), f64::max)
    });
    let known = turns.fold(0.0, f64::max);
    trace.duration_ms.unwrap_or(known).max(known)
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
