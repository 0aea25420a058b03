//! A question that is answered with yes or no.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use crate::failure::Failure;

/// No answer is longer.
const MAX_ANSWER_BYTES: u64 = 1024;

/// Asks the person at the terminal. Whatever is not yes is no; where nobody can be asked it is an
/// error, for what was not allowed does not happen.
pub(crate) fn confirm(question: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(
            Failure::new(format!("{question}: nobody is there to be asked"))
                .remedy("say `--yes` if it shall happen"),
        );
    }
    let asked = || -> io::Result<String> {
        write!(io::stderr(), "{question}? [y/N] ")?;
        io::stderr().flush()?;
        let mut answer = String::new();
        let mut input = io::stdin().lock().take(MAX_ANSWER_BYTES);
        input.read_line(&mut answer)?;
        Ok(answer)
    };
    let answer = asked().map_err(|error| Failure::new(format!("cannot ask: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
}
