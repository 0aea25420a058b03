//! A conversation as a person reads it, as it happens.
//!
//! What comes in: the events of a run, of this process or of a server. What goes out: lines on a
//! terminal, or plain text where there is none. Everything that a model, a tool or a server wrote is
//! made harmless before it is printed.

pub(crate) mod item;
mod run;
mod wire;

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use owo_colors::OwoColorize;

use crate::text::{one_line, printable, spoken};

/// How much of arguments and results is shown.
pub(crate) const SHOWN_CHARS: usize = 120;

/// Where lines go.
type Out = Box<dyn Write + Send>;

/// How it is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// For people: indented, with empty lines between what was said and what was done.
    Framed,
    /// For programs: the answer as it is on standard output, everything else on standard error.
    Plain,
}

/// Prints what happens.
pub(crate) struct Screen {
    answer: Out,
    aside: Out,
    layout: Layout,
    shows_thoughts: bool,
    calls: HashMap<String, Call>,
    /// Where the cursor is: text comes in pieces.
    place: Place,
    /// Whether the last piece ended its line.
    is_line_ended: bool,
}

/// What is known of a call so far.
struct Call {
    name: String,
    arguments: String,
    /// Whether it was shown, and with its arguments.
    shown: Shown,
    began: Instant,
    took: Option<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    No,
    Name,
    Whole,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Below a heading or a list of calls: text wants an empty line before it.
    BelowLines,
    /// In the middle of the model's words.
    InText(Tone),
}

/// How the model speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Answer,
    Thought,
}

/// What came of a call.
pub(crate) struct CallResult<'r> {
    pub(crate) text: &'r str,
    pub(crate) is_error: bool,
}

impl Screen {
    /// A screen on standard output; a plain one uses standard error, too.
    pub(crate) fn new(layout: Layout) -> Self {
        let aside: Out = match layout {
            Layout::Framed => Box::new(anstream::stdout()),
            Layout::Plain => Box::new(anstream::stderr()),
        };
        Self::over(Box::new(anstream::stdout()), aside, layout)
    }

    /// A plain one that keeps the answer to itself, for those who print it in another form.
    pub(crate) fn without_answer() -> Self {
        let aside = Box::new(anstream::stderr());
        Self::over(Box::new(io::sink()), aside, Layout::Plain)
    }

    fn over(answer: Out, aside: Out, layout: Layout) -> Self {
        Self {
            answer,
            aside,
            layout,
            shows_thoughts: true,
            calls: HashMap::new(),
            place: Place::BelowLines,
            is_line_ended: false,
        }
    }

    /// Whether the model's thoughts are shown, which they are if nothing is said.
    pub(crate) fn thoughts(mut self, shown: bool) -> Self {
        self.shows_thoughts = shown;
        self
    }

    /// For lines of whoever uses the screen.
    pub(crate) fn lines(&mut self) -> io::Result<&mut Out> {
        self.end_words()?;
        Ok(&mut self.aside)
    }

    /// A piece of what the model says, as it comes.
    pub(crate) fn words(&mut self, text: &str, tone: Tone) -> io::Result<()> {
        if text.is_empty() || (tone == Tone::Thought && !self.shows_thoughts) {
            return Ok(());
        }
        let begins = self.place != Place::InText(tone);
        if begins {
            self.end_words()?;
        }
        let is_framed = self.layout == Layout::Framed;
        let mut text = printable(text);
        if is_framed {
            text = text.replace('\n', "\n  ");
        }
        let out = match (self.layout, tone) {
            (Layout::Plain, Tone::Thought) => &mut self.aside,
            _ => &mut self.answer,
        };
        if begins && is_framed {
            write!(out, "\n  ")?;
        }
        self.place = Place::InText(tone);
        self.is_line_ended = text.ends_with('\n');
        match tone {
            Tone::Answer => write!(out, "{text}")?,
            Tone::Thought => write!(out, "{}", text.dimmed())?,
        }
        out.flush()
    }

    /// A call that was asked for.
    pub(crate) fn call_asked(&mut self, call_id: &str, name: &str, arguments: &str) {
        let call = Call {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            shown: Shown::No,
            began: Instant::now(),
            took: None,
        };
        self.calls.insert(call_id.to_owned(), call);
    }

    /// It begins.
    pub(crate) fn call_began(&mut self, call_id: &str) -> io::Result<()> {
        self.end_words()?;
        let Some(call) = self.calls.get_mut(call_id) else {
            return Ok(());
        };
        call.began = Instant::now();
        call.shown = match call.arguments.as_str() {
            "" => Shown::Name,
            _ => Shown::Whole,
        };
        let name = one_line(&call.name, SHOWN_CHARS);
        let mut line = format!("{} {}", "→".cyan().bold(), name.cyan());
        if call.shown == Shown::Whole {
            let arguments = one_line(&call.arguments, SHOWN_CHARS);
            line = format!("{line} {}", arguments.dimmed());
        }
        self.line(&line)
    }

    /// It took so long, says whoever measured it.
    pub(crate) fn call_took(&mut self, call_id: &str, took: Duration) {
        if let Some(call) = self.calls.get_mut(call_id) {
            call.took = Some(took);
        }
    }

    /// What came of it.
    pub(crate) fn call_ended(&mut self, call_id: &str, result: &CallResult<'_>) -> io::Result<()> {
        // A call that was refused has not been seen yet.
        if self
            .calls
            .get(call_id)
            .is_some_and(|it| it.shown == Shown::No)
        {
            self.call_began(call_id)?;
        }
        self.end_words()?;
        let Some(call) = self.calls.remove(call_id) else {
            return Ok(());
        };
        let mut name = one_line(&call.name, SHOWN_CHARS);
        if call.shown == Shown::Name && !call.arguments.is_empty() {
            let arguments = one_line(&call.arguments, SHOWN_CHARS);
            name = format!("{name} {}", arguments.dimmed());
        }
        let took = call.took.unwrap_or_else(|| call.began.elapsed());
        let took = format!("({})", spoken(took));
        let text = one_line(result.text, SHOWN_CHARS);
        let mark = if result.is_error {
            "✗".red().bold().to_string()
        } else {
            "✓".green().bold().to_string()
        };
        self.line(&format!("{mark} {name} {} {text}", took.dimmed()))
    }

    /// Something beside the conversation.
    pub(crate) fn note(&mut self, text: &str) -> io::Result<()> {
        self.end_words()?;
        let text = one_line(text, 4 * SHOWN_CHARS);
        self.line(&format!("{} {}", "·".yellow(), text.dimmed()))
    }

    /// One line beside the answer.
    fn line(&mut self, text: &str) -> io::Result<()> {
        match self.layout {
            Layout::Framed => writeln!(self.aside, "  {}", text.trim_end()),
            Layout::Plain => writeln!(self.aside, "{}", text.trim_end()),
        }
    }

    /// Whether the model is in the middle of saying something.
    pub(crate) fn is_in_words(&self) -> bool {
        self.place != Place::BelowLines
    }

    /// Ends what the model says, if it is saying something.
    pub(crate) fn end_words(&mut self) -> io::Result<()> {
        let Place::InText(tone) = self.place else {
            return Ok(());
        };
        self.place = Place::BelowLines;
        match (self.layout, tone) {
            (Layout::Framed, _) => write!(self.answer, "\n\n"),
            (Layout::Plain, _) if self.is_line_ended => Ok(()),
            (Layout::Plain, Tone::Thought) => writeln!(self.aside),
            (Layout::Plain, Tone::Answer) => writeln!(self.answer),
        }
    }

    /// Ends the answer: whatever comes next begins in a line of its own.
    pub(crate) fn end_answer(&mut self) -> io::Result<()> {
        if let (Place::InText(_), Layout::Framed) = (self.place, self.layout) {
            self.place = Place::BelowLines;
            writeln!(self.answer)?;
        }
        self.end_words()?;
        // Calls of one answer never end in another.
        self.calls.clear();
        self.answer.flush()?;
        self.aside.flush()
    }
}

#[cfg(test)]
mod tests;
