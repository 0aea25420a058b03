//! Questions about calls: somebody must say whether they may run.

use std::collections::HashSet;
use std::io::{self, Write as _};

use haft::{Access, Policy, PolicyCall, SessionState, Value, Verdict};
use owo_colors::OwoColorize;

use super::desk::Desk;
use super::input::Typed;
use crate::text::{one_line, printable};

/// How much of the arguments is shown: all that a person would read.
const SHOWN_CHARS: usize = 4000;

/// Who says yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judge {
    /// The person at the terminal.
    Person,
    /// The command line did, for everything.
    Allowed,
    /// Nobody is there.
    Nobody,
}

/// Who judges, and what was said for good.
pub(super) struct Approvals {
    judge: Judge,
    /// The tools that may always run.
    allowed: HashSet<String>,
}

/// A question about a call.
pub(super) struct Question<'q> {
    pub(super) tool: &'q str,
    pub(super) arguments: &'q Value,
    /// Why somebody is asked.
    pub(super) reason: &'q str,
}

/// The answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Word {
    Yes,
    /// Yes, and the same for this tool from now on.
    Always,
    /// With a reason for the model, perhaps.
    No(Option<String>),
    /// No, and the answer is not wanted any more.
    Quit,
}

impl Approvals {
    pub(super) fn new(judge: Judge) -> Self {
        Self {
            judge,
            allowed: HashSet::new(),
        }
    }
}

impl Desk {
    /// Asks about a call.
    pub(super) async fn judge(&mut self, question: &Question<'_>) -> io::Result<Word> {
        self.vigil.end();
        let tool = one_line(question.tool, 120);
        if self.approvals.allowed.contains(question.tool) {
            return Ok(Word::Yes);
        }
        match self.approvals.judge {
            Judge::Person => {}
            Judge::Allowed => return Ok(Word::Yes),
            Judge::Nobody => {
                self.screen.note(&format!(
                    "`{tool}` is not allowed to run, and nobody is there to be asked: `--yes` \
                     allows everything"
                ))?;
                return Ok(Word::No(Some(String::from("nobody could be asked"))));
            }
        }
        let out = self.screen.lines()?;
        let reason = one_line(question.reason, 400);
        writeln!(out, "  {} {}: {reason}", "?".yellow().bold(), tool.bold())?;
        let arguments = serde_json::to_string_pretty(question.arguments).unwrap_or_default();
        let arguments = printable(&arguments);
        let shown: String = arguments.chars().take(SHOWN_CHARS).collect();
        writeln!(out, "    {}", shown.replace('\n', "\n    "))?;
        if shown.len() < arguments.len() {
            writeln!(out, "    … {} more bytes", arguments.len() - shown.len())?;
        }
        out.flush()?;
        let word = self.word().await?;
        if word == Word::Always {
            self.approvals.allowed.insert(question.tool.to_owned());
        }
        Ok(word)
    }

    /// Asks until the answer is one.
    async fn word(&mut self) -> io::Result<Word> {
        let prompt = "  may it run? [y]es, [n]o, [a]lways this tool, [q]uit this answer: ";
        loop {
            let word = match self.input.answer(prompt).await? {
                Typed::Line(line) => word_of(&line),
                Typed::Interrupted | Typed::End => Some(Word::Quit),
            };
            if let Some(word) = word {
                return Ok(word);
            }
            self.screen
                .note("say `y`, `n`, `n` with a reason for the model, `a` or `q`")?;
        }
    }
}

/// What a line says about a call. Nothing is allowed by pressing a key too often.
fn word_of(line: &str) -> Option<Word> {
    let line = line.trim();
    let (word, rest) = line
        .split_once(|it: char| it.is_whitespace() || it == ',' || it == ':')
        .unwrap_or((line, ""));
    let rest = rest.trim();
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" if rest.is_empty() => Some(Word::Yes),
        "a" | "always" if rest.is_empty() => Some(Word::Always),
        "q" | "quit" if rest.is_empty() => Some(Word::Quit),
        "n" | "no" => Some(Word::No((!rest.is_empty()).then(|| rest.to_owned()))),
        _ => None,
    }
}

/// Asks about every call, whatever its tool says.
pub(super) struct AskAlways;

impl Policy for AskAlways {
    fn name(&self) -> &'static str {
        "ask_always"
    }

    fn check(&self, call: &PolicyCall<'_>, _: &SessionState) -> Verdict {
        match call.arguments() {
            Some(_) => Verdict::NeedApproval(String::from("you want to be asked about every call")),
            // It does not run anyway.
            None => Verdict::Allow(Access::Full),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        assert_eq!(word_of(" y "), Some(Word::Yes));
        assert_eq!(word_of("Always"), Some(Word::Always));
        assert_eq!(word_of("q"), Some(Word::Quit));
        assert_eq!(word_of("n"), Some(Word::No(None)));
        let reason = Some(Word::No(Some("not today".into())));
        assert_eq!(word_of("no, not today"), reason);
        for unclear in ["", "yy", "yes but", "ja", "always?"] {
            assert_eq!(word_of(unclear), None, "{unclear}");
        }
    }
}
