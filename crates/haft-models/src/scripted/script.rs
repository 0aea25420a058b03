//! A script: steps in order, in Rust or as JSON lines.

use super::step::Step;

/// Steps, taken in order.
///
/// A request takes the first step that is not used up and whose `when`, if it has one, matches.
///
/// ```
/// use haft_models::scripted::{Script, call, say};
/// use serde_json::json;
///
/// let script = Script::from([call("ping", json!({})), say("pong")]);
/// let lines = "{\"calls\":[{\"name\":\"ping\",\"arguments\":{}}]}\n{\"text\":\"pong\"}\n";
/// assert_eq!(script.to_json_lines(), lines);
/// assert_eq!(Script::from_json_lines(lines)?, script);
///
/// let error = Script::from_json_lines("{\"text\":\"a\"}\n{\"txt\":\"b\"}").unwrap_err();
/// assert_eq!(error.line, 2);
/// assert!(error.to_string().contains("`txt`"));
/// # Ok::<(), haft_models::scripted::ScriptError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Script {
    steps: Vec<Step>,
}

impl Script {
    /// Reads one step per line. Empty lines are skipped; an unknown key is an error.
    pub fn from_json_lines(text: &str) -> Result<Self, ScriptError> {
        let mut steps = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            steps.push(read_line(line).map_err(|message| ScriptError {
                line: index + 1,
                message,
            })?);
        }
        Ok(Self { steps })
    }

    /// Writes one step per line.
    pub fn to_json_lines(&self) -> String {
        let mut text = String::new();
        for step in &self.steps {
            // Maps with text keys and finite numbers: nothing that JSON cannot say.
            text.push_str(&serde_json::to_string(step).unwrap_or_default());
            text.push('\n');
        }
        text
    }

    /// The steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

impl<S: IntoIterator<Item = Step>> From<S> for Script {
    fn from(steps: S) -> Self {
        Self {
            steps: steps.into_iter().collect(),
        }
    }
}

fn read_line(line: &str) -> Result<Step, String> {
    // A list would be read too, by position.
    if !line.trim_start().starts_with('{') {
        return Err("expected an object".to_owned());
    }
    serde_json::from_str(line).map_err(|error| {
        // Each line is a text of its own to the reader; only the column helps.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let words = error.to_string();
        let words = words.strip_suffix(&place).unwrap_or(&words);
        format!("{words} (column {})", error.column())
    })
}

/// A line that is not a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the script is not a step: {message}")]
pub struct ScriptError {
    /// Which line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}
