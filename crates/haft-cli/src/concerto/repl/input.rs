//! Pieces of source as they are typed: at a terminal with an editor, elsewhere as they come.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

use haft_concerto::repl::Repl;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};

/// How long a piece may be.
const MAX_BYTES: u64 = 8 << 20;

const PROMPT: &str = "> ";

const COMMANDS: [&str; 4] = [":help", ":quit", ":reset", ":type "];

/// What somebody did.
pub(super) enum Typed {
    /// Something that is whole, or a command.
    Piece(String),
    /// Ctrl-C: what was begun is dropped.
    Dropped,
    /// Ctrl-D, or the end of the pipe.
    End,
}

/// Where pieces come from.
pub(super) enum Input {
    Terminal(Option<Box<Editor<Pieces, DefaultHistory>>>),
    Pipe,
}

impl Input {
    /// As this process was started.
    pub(super) fn open() -> io::Result<Self> {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Ok(Self::Pipe);
        }
        let config = Config::builder().auto_add_history(true).build();
        let mut editor = Editor::with_config(config).map_err(told)?;
        editor.set_helper(Some(Pieces));
        Ok(Self::Terminal(Some(Box::new(editor))))
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// The next piece. Reading blocks, so another thread does it.
    pub(super) async fn next(&mut self) -> io::Result<Typed> {
        let gone = || io::Error::other("nothing can be read any more");
        match self {
            Self::Pipe => {
                let read = tokio::task::spawn_blocking(of_pipe).await;
                read.map_err(|_| gone())?
            }
            Self::Terminal(place) => {
                let mut editor = place.take().ok_or_else(gone)?;
                let read = tokio::task::spawn_blocking(move || {
                    let read = editor.readline(PROMPT);
                    (editor, read)
                });
                let (editor, read) = read.await.map_err(|_| gone())?;
                *place = Some(editor);
                match read {
                    Ok(text) => Ok(Typed::Piece(text)),
                    Err(ReadlineError::Eof) => Ok(Typed::End),
                    Err(ReadlineError::Interrupted) => Ok(Typed::Dropped),
                    Err(ReadlineError::Io(error)) => Err(error),
                    Err(error) => Err(told(error)),
                }
            }
        }
    }
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "the signature that `map_err` asks for"
)]
fn told(error: ReadlineError) -> io::Error {
    io::Error::other(error.to_string())
}

/// Lines until they are a whole piece.
fn of_pipe() -> io::Result<Typed> {
    let mut text = String::new();
    let mut input = io::stdin().lock().take(MAX_BYTES + 1);
    loop {
        let read = input
            .read_line(&mut text)
            .map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => {
                    io::Error::new(error.kind(), "standard input is not UTF-8")
                }
                _ => error,
            })?;
        if text.len() as u64 > MAX_BYTES {
            let words = format!("a piece has more than {MAX_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        }
        if read == 0 {
            return Ok(if text.is_empty() {
                Typed::End
            } else {
                Typed::Piece(text)
            });
        }
        if !goes_on(&text) {
            return Ok(Typed::Piece(text));
        }
    }
}

fn goes_on(text: &str) -> bool {
    !text.trim_start().starts_with(':') && Repl::is_unfinished(text)
}

/// Knows when a piece is whole, and the commands, for Tab.
pub(super) struct Pieces;

impl Helper for Pieces {}
impl Hinter for Pieces {
    type Hint = String;
}
impl Highlighter for Pieces {}

impl Validator for Pieces {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if goes_on(context.input()) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Completer for Pieces {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let begun = line.get(..position).unwrap_or_default();
        let fitting = COMMANDS.iter().filter(|it| {
            begun.starts_with(':') && !begun.contains(char::is_whitespace) && it.starts_with(begun)
        });
        Ok((0, fitting.map(ToString::to_string).collect()))
    }
}
