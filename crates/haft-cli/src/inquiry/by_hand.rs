//! Questions in the middle of a call that a person makes by hand.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};

use haft::BoxFuture;
use haft_mcp::{Answer, Asker, Question, Questions, Takes};
use tokio::sync::{Mutex, Notify, mpsc};

use super::{Heard, Inquiry, Step};
use crate::terminal::Spinner;

/// No answer is longer.
const MAX_LINE_BYTES: u64 = 64 * 1024;

/// Whether somebody is there who sees a question and can answer it.
fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// How calls by hand are declared to servers: the same with and without a terminal, because servers list
/// other tools for other capabilities, and what appears only now would count as new and be held back.
pub(crate) fn questions() -> Questions {
    Questions::PerCall
}

/// Asks on standard error and reads standard input, one question at a time.
pub(crate) struct AtTerminal {
    spinner: Spinner,
    lines: Mutex<Option<mpsc::UnboundedReceiver<String>>>,
    asking: AtomicUsize,
    enough: Notify,
}

impl AtTerminal {
    /// `spinner` stands still meanwhile.
    pub(crate) fn new(spinner: Spinner) -> Self {
        Self {
            spinner,
            lines: Mutex::default(),
            asking: AtomicUsize::new(0),
            enough: Notify::new(),
        }
    }

    /// Somebody has pressed Ctrl-C; whether that was an answer.
    pub(crate) fn interrupt(&self) -> bool {
        let is_asking = self.asking.load(Ordering::Acquire) > 0;
        if is_asking {
            self.enough.notify_one();
        }
        is_asking
    }

    async fn put(&self, question: &Question) -> io::Result<Answer> {
        let mut lines = self.lines.lock().await;
        let lines = lines.get_or_insert_with(read_lines);
        let _paused = Paused::new(self);
        let mut inquiry = Inquiry::new(question);
        loop {
            let (told, prompt) = match inquiry.step() {
                Step::Ask { told, prompt } => (told, prompt),
                Step::Done(answer) => return Ok(answer),
            };
            for line in told {
                writeln!(io::stderr(), "{line}")?;
            }
            // What was typed before answers something else.
            while lines.try_recv().is_ok() {}
            write!(io::stderr(), "{prompt}")?;
            io::stderr().flush()?;
            let heard = tokio::select! {
                line = lines.recv() => line.map_or(Heard::Enough, Heard::Line),
                () = self.enough.notified() => Heard::Enough,
            };
            if heard == Heard::Enough {
                writeln!(io::stderr())?;
            }
            inquiry.hear(&heard);
        }
    }
}

impl Asker for AtTerminal {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            if !has_terminal() {
                let wanted = question.wanted();
                return Answer::Unaskable(format!(
                    "there is no terminal to ask at, and the server wants {wanted}"
                ));
            }
            let answer = self.put(&question).await;
            answer.unwrap_or_else(|error| {
                Answer::Unaskable(format!("the terminal cannot be used: {error}"))
            })
        })
    }

    fn takes(&self) -> Takes {
        if has_terminal() {
            Takes::ALL
        } else {
            Takes::NOTHING
        }
    }
}

/// The lines of standard input from now on. Reading cannot be stopped, so a thread does it until the end
/// of the process.
fn read_lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        loop {
            let mut line = String::new();
            let mut input = io::stdin().lock().take(MAX_LINE_BYTES);
            match input.read_line(&mut line) {
                Ok(1..) if sender.send(line).is_ok() => {}
                _ => return,
            }
        }
    });
    lines
}

/// Nothing moves while somebody is asked.
struct Paused<'a>(&'a AtTerminal);

impl<'a> Paused<'a> {
    fn new(terminal: &'a AtTerminal) -> Self {
        terminal.asking.fetch_add(1, Ordering::AcqRel);
        terminal.spinner.pause();
        Self(terminal)
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.spinner.resume();
        self.0.asking.fetch_sub(1, Ordering::AcqRel);
    }
}
