//! What is typed, line by line: at a terminal with an editor, elsewhere as it comes.
//!
//! Reading blocks, so a thread does it. It reads only when it is asked to: in between the terminal
//! belongs to whoever prints.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, Read as _};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};
use tokio::sync::oneshot;

use super::command::COMMANDS;

/// How long a line may be; the API takes no longer text.
const MAX_LINE_BYTES: u64 = 10 * 1024 * 1024;

/// Nobody reads a question and answers it in less.
const READING: Duration = Duration::from_millis(100);

/// What somebody did.
#[derive(Debug)]
pub(super) enum Typed {
    Line(String),
    /// Ctrl-C, with or without something in the line.
    Interrupted,
    /// Ctrl-D, or the end of the pipe.
    End,
}

/// A line that is wanted.
struct Wanted {
    prompt: String,
    /// What stands in it already, to be sent or changed.
    begun: String,
    /// Whether it can be had again with the arrow keys.
    is_remembered: bool,
    reply: oneshot::Sender<io::Result<Typed>>,
}

/// Where lines come from.
pub(super) struct Input {
    wanted: mpsc::Sender<Wanted>,
    is_terminal: bool,
    /// Lines that were typed before a question and are no answers to it.
    ahead: Mutex<VecDeque<String>>,
}

impl Input {
    /// The terminal, with an editor: arrow keys, a history of this conversation, and Tab.
    pub(super) fn terminal() -> io::Result<Self> {
        let config = Config::builder().auto_add_history(false).build();
        let mut editor = Editor::<Commands, DefaultHistory>::with_config(config)
            .map_err(|error| io::Error::other(error.to_string()))?;
        editor.set_helper(Some(Commands));
        let read = move |wanted: &Wanted| match editor
            .readline_with_initial(&wanted.prompt, (&wanted.begun, ""))
        {
            Ok(line) => {
                if wanted.is_remembered && !line.trim().is_empty() {
                    // What cannot be remembered can still be said.
                    let _ = editor.add_history_entry(&line);
                }
                Ok(Typed::Line(line))
            }
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(ReadlineError::Interrupted) => Ok(Typed::Interrupted),
            Err(ReadlineError::Io(error)) => Err(error),
            Err(error) => Err(io::Error::other(error.to_string())),
        };
        Self::over(read, true)
    }

    /// Standard input as it comes.
    pub(super) fn pipe() -> io::Result<Self> {
        let read = |_: &Wanted| {
            let mut line = Vec::new();
            let mut input = io::stdin().lock().take(MAX_LINE_BYTES + 1);
            input.read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Ok(Typed::End);
            }
            if line.len() as u64 > MAX_LINE_BYTES {
                let words = format!("a line has more than {MAX_LINE_BYTES} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, words));
            }
            let line = String::from_utf8(line).map_err(|_| {
                let words = "standard input is not UTF-8: write the messages as UTF-8";
                io::Error::new(io::ErrorKind::InvalidData, words)
            })?;
            let line = line.strip_suffix('\n').unwrap_or(&line);
            let line = line.strip_suffix('\r').unwrap_or(line);
            Ok(Typed::Line(line.to_owned()))
        };
        Self::over(read, false)
    }

    fn over(
        mut read: impl FnMut(&Wanted) -> io::Result<Typed> + Send + 'static,
        is_terminal: bool,
    ) -> io::Result<Self> {
        let (wanted, asked) = mpsc::channel::<Wanted>();
        thread::Builder::new()
            .name(String::from("input"))
            .spawn(move || {
                for wanted in asked {
                    let typed = read(&wanted);
                    // Nobody waits any more: the conversation is over.
                    if wanted.reply.send(typed).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            wanted,
            is_terminal,
            ahead: Mutex::default(),
        })
    }

    /// The next line, for a message.
    pub(super) async fn line(&self, prompt: &str) -> io::Result<Typed> {
        let begun = self.ahead().pop_front().unwrap_or_default();
        self.ask(prompt, begun, true).await
    }

    /// An answer to a question, which is not part of the history. What was typed before the question
    /// was there answers something else: it stands in the next line that is asked for.
    pub(super) async fn answer(&self, prompt: &str) -> io::Result<Typed> {
        loop {
            let asked = Instant::now();
            match self.ask(prompt, String::new(), false).await? {
                Typed::Line(line) if self.is_terminal && asked.elapsed() < READING => {
                    self.ahead().push_back(line);
                }
                typed => return Ok(typed),
            }
        }
    }

    fn ahead(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, prompt: &str, begun: String, is_remembered: bool) -> io::Result<Typed> {
        let (reply, typed) = oneshot::channel();
        let wanted = Wanted {
            prompt: prompt.to_owned(),
            begun,
            is_remembered,
            reply,
        };
        let gone = || io::Error::other("nothing can be read any more");
        self.wanted.send(wanted).map_err(|_| gone())?;
        typed.await.map_err(|_| gone())?
    }
}

/// Knows the commands, for Tab.
struct Commands;

impl Helper for Commands {}
impl Hinter for Commands {
    type Hint = String;
}
impl Highlighter for Commands {}
impl Validator for Commands {}

impl Completer for Commands {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let begun = line.get(..position).unwrap_or_default();
        let is_command = begun.starts_with('/') && !begun.contains(char::is_whitespace);
        let names = COMMANDS.iter().map(|(name, ..)| *name);
        let fitting = names.filter(|name| is_command && name.starts_with(begun));
        Ok((0, fitting.map(|name| format!("{name} ")).collect()))
    }
}
