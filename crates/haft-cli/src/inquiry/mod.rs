//! What an MCP server asks in the middle of a call, put to the person at the terminal.
//!
//! What comes in: a [`Question`] and the lines that are typed. What goes out: what is shown, prompt by
//! prompt, and the answer. It does no input or output of its own. Nothing is sent by pressing a key too
//! often: the last word is a yes, and nothing is a no. A page is shown and never opened.

mod by_hand;
mod field;

use haft_mcp::{Answer, Question, QuestionKind};
use serde_json::{Map, Value};

pub(crate) use self::by_hand::{AtTerminal, questions};
use self::field::{Field, Read};
use crate::text::{one_line, printable};

/// How much of one thing that a server says is shown.
const SHOWN_CHARS: usize = 4000;

/// What somebody did at a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    Line(String),
    /// Ctrl-C or Ctrl-D.
    Enough,
}

/// What comes next.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// These lines are shown, and then this is asked.
    Ask {
        told: Vec<String>,
        prompt: String,
    },
    Done(Answer),
}

/// A question on its way through a person.
pub(crate) struct Inquiry {
    server: String,
    fields: Vec<Field>,
    /// Which of them is asked for; behind the last one it is whether all of it may go.
    at: usize,
    filled: Map<String, Value>,
    /// What was not shown yet.
    told: Vec<String>,
    last: &'static str,
    answer: Option<Answer>,
}

impl Inquiry {
    pub(crate) fn new(question: &Question) -> Self {
        let server = question.server.to_string();
        let mut told = vec![match &question.tool {
            Some(tool) => format!(
                "? MCP server `{server}` asks, in a call of `{}`:",
                one_line(tool, 120)
            ),
            None => format!("? MCP server `{server}` asks:"),
        }];
        let message = printable(&question.message);
        let message: String = message.chars().take(SHOWN_CHARS).collect();
        told.extend(message.lines().map(|line| format!("  {line}")));
        if let Some(complaint) = &question.complaint {
            told.push(format!(
                "the answer before did not fit: {}",
                one_line(complaint, 400)
            ));
        }
        let (fields, last) = match &question.kind {
            QuestionKind::Form { schema } => (field::read_all(schema), "send it"),
            QuestionKind::Page { url } => {
                told.push(format!("  {}", printable(url.as_str())));
                told.push(String::from(
                    "haft does not open it: open it yourself if you know whose page that is",
                ));
                (Vec::new(), "have you done what is asked there")
            }
            _ => {
                told.push(String::from("haft does not know how to answer that"));
                (Vec::new(), "go on")
            }
        };
        let last = match (&question.kind, fields.is_empty()) {
            (QuestionKind::Form { .. }, true) => "do you agree",
            _ => last,
        };
        Self {
            server,
            fields,
            at: 0,
            filled: Map::new(),
            told,
            last,
            answer: None,
        }
    }

    /// What to show and to ask next, or what came of it.
    pub(crate) fn step(&mut self) -> Step {
        if let Some(answer) = &self.answer {
            return Step::Done(answer.clone());
        }
        let mut told = std::mem::take(&mut self.told);
        let prompt = match self.fields.get(self.at) {
            Some(field) => {
                told.extend(field.told());
                field.prompt()
            }
            None => format!("  {}? [y]es, [n]o: ", self.last),
        };
        Step::Ask { told, prompt }
    }

    /// Takes in what was typed at the prompt.
    pub(crate) fn hear(&mut self, heard: &Heard) {
        let line = match heard {
            Heard::Line(line) => line.trim(),
            Heard::Enough => return self.answer = Some(Answer::Decline),
        };
        let Some(field) = self.fields.get(self.at) else {
            return self.hear_last(line);
        };
        match field.read(line) {
            Read::Value(value) => {
                self.filled.insert(field.name.clone(), value);
                self.at += 1;
            }
            Read::Nothing => self.at += 1,
            Read::Missing => self.answer = Some(Answer::Decline),
            Read::Wrong(reason) => self.told.push(reason),
        }
        if self.at == self.fields.len() && self.answer.is_none() {
            self.tell_filled();
        }
    }

    /// What will be sent, with what the form proposes where nothing was said.
    fn tell_filled(&mut self) {
        self.told.push(format!("this goes to `{}`:", self.server));
        for field in &self.fields {
            let value = self.filled.get(&field.name).or(field.default.as_ref());
            let value = match value {
                Some(value) => one_line(&value.to_string(), 400),
                None => String::from("nothing"),
            };
            self.told
                .push(format!("  {}: {value}", one_line(&field.name, 64)));
        }
    }

    fn hear_last(&mut self, line: &str) {
        self.answer = match line.to_ascii_lowercase().as_str() {
            "y" | "yes" => Some(Answer::Accept(std::mem::take(&mut self.filled))),
            "" | "n" | "no" => Some(Answer::Decline),
            _ => {
                self.told.push(String::from("say `y` or `n`"));
                None
            }
        };
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
