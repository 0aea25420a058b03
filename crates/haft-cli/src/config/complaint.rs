//! What is wrong with a configuration, where, and what to do about it: one at a time.

use std::fmt;
use std::ops::Range;

use serde_json::{Value, json};

use super::excerpt::Excerpt;
use crate::text::{one_line, printable};

/// How much of a message is shown: it may quote what somebody wrote.
const MESSAGE_CHARS: usize = 400;

/// One thing that is wrong.
///
/// As text it is the whole message: the place, what is wrong, the line with a mark below, and the
/// remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    place: Place,
    message: String,
    remedy: Option<String>,
}

/// Where something was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a file.
    File { name: String, excerpt: Box<Excerpt> },
    /// A whole file, where no line can be named.
    WholeFile { name: String },
    /// In an environment variable.
    Variable { name: String },
}

impl Place {
    /// The part of a file's text from here to there.
    pub(crate) fn in_file(name: &str, text: &str, span: &Range<usize>) -> Self {
        Self::File {
            name: name.to_owned(),
            excerpt: Box::new(Excerpt::new(text, span)),
        }
    }
}

impl Complaint {
    pub(crate) fn new(place: Place, message: impl Into<String>) -> Self {
        Self {
            place,
            message: message.into(),
            remedy: None,
        }
    }

    /// For programs: the file and its line, or the variable, and the rest as in words.
    pub(crate) fn json(&self) -> Value {
        let (file, variable, line) = match &self.place {
            Place::File { name, excerpt } => (Some(name), None, Some(excerpt.line)),
            Place::WholeFile { name } => (Some(name), None, None),
            Place::Variable { name } => (None, Some(name), None),
        };
        json!({
            "file": file,
            "line": line,
            "variable": variable,
            "message": one_line(&self.message, MESSAGE_CHARS),
            "help": self.remedy,
        })
    }

    /// Adds what to do.
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = one_line(&self.message, MESSAGE_CHARS);
        match &self.place {
            Place::File { name, excerpt } => {
                let (line, column) = (excerpt.line, excerpt.column);
                write!(
                    f,
                    "{}:{line}:{column}: {message}\n{excerpt}",
                    printable(name)
                )?;
            }
            Place::WholeFile { name } | Place::Variable { name } => {
                write!(f, "{}: {message}", printable(name))?;
            }
        }
        match &self.remedy {
            Some(remedy) => write!(f, "\n  = help: {}", printable(remedy)),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Complaint {}
