//! Whether an answer is the right one.

use anyhow::{Context as _, Result, bail, ensure};
use memchr::memmem::Finder;
use serde_json::Value;

use crate::case::{Kind, Loops};
use crate::script::{CALL_ID, TOOL, answer_text};
use crate::wire::Message;

/// Knows the right answer to one request.
pub(crate) struct Check {
    is_streamed: bool,
    expected: Expected,
    /// What every right answer holds, for a look that costs little.
    marks: Vec<Finder<'static>>,
}

/// What an answer comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Text,
    Call,
    /// The text, behind the result of a tool that ran at the server.
    Loop,
}

impl Check {
    /// One for each request of a case.
    pub(crate) fn of(kind: Kind, loops: Loops) -> Vec<Self> {
        let expected: &[Expected] = match (kind, loops) {
            (Kind::Loop, Loops::Client) => &[Expected::Call, Expected::Text],
            (Kind::Loop, Loops::Server) => &[Expected::Loop],
            _ => &[Expected::Text],
        };
        let is_streamed = kind.is_streamed();
        expected
            .iter()
            .map(|expected| Self::new(is_streamed, *expected))
            .collect()
    }

    fn new(is_streamed: bool, expected: Expected) -> Self {
        let text = answer_text();
        let mut marks = vec![match expected {
            Expected::Call => CALL_ID,
            Expected::Text | Expected::Loop => &text,
        }];
        if is_streamed {
            marks.push("response.completed");
        }
        let marks = marks.iter().map(|mark| Finder::new(mark).into_owned());
        Self {
            is_streamed,
            expected,
            marks: marks.collect(),
        }
    }

    /// A look at the answer that costs little.
    pub(crate) fn glance(&self, answer: &Message) -> Result<()> {
        let is_good = answer.line.starts_with("HTTP/1.1 200")
            && self
                .marks
                .iter()
                .all(|mark| mark.find(&answer.body).is_some());
        if !is_good {
            let body = String::from_utf8_lossy(&answer.body);
            bail!("a wrong answer: {}\n{body}", answer.line);
        }
        Ok(())
    }

    /// Reads the answer with care.
    pub(crate) fn read(&self, answer: &Message) -> Result<()> {
        self.glance(answer)?;
        let body = std::str::from_utf8(&answer.body)?;
        let resource = if self.is_streamed {
            self.read_stream(body)?
        } else {
            serde_json::from_str(body)?
        };
        self.read_resource(&resource)
            .with_context(|| format!("a wrong answer: {body}"))
    }

    fn read_resource(&self, resource: &Value) -> Result<()> {
        ensure!(resource["status"] == "completed", "it is not completed");
        let output = resource["output"].as_array().context("`output`")?;
        let of_type = |kind: &str| output.iter().find(|item| item["type"] == kind);
        if self.expected == Expected::Call {
            let call = of_type("function_call").context("there is no call")?;
            ensure!(call["name"] == TOOL && call["call_id"] == CALL_ID, "{call}");
            return Ok(());
        }
        if self.expected == Expected::Loop {
            let call = of_type(&format!("haft:{TOOL}")).context("no tool was called")?;
            ensure!(call["status"] == "completed", "{call}");
            ensure!(call.to_string().contains("42"), "{call}");
        }
        let message = of_type("message").context("there is no message")?;
        let text = &message["content"][0]["text"];
        ensure!(*text == answer_text().as_str(), "the text is {text}");
        Ok(())
    }

    /// The last event's response, if the events before it tell the same.
    fn read_stream(&self, body: &str) -> Result<Value> {
        let lines = body.lines().filter_map(|line| line.strip_prefix("data: "));
        let lines = lines.filter(|line| *line != "[DONE]");
        let events: Vec<Value> = lines.map(serde_json::from_str).collect::<Result<_, _>>()?;
        let deltas = events
            .iter()
            .filter(|event| event["type"] == "response.output_text.delta")
            .map(|event| event["delta"].as_str().unwrap_or_default());
        let told: String = deltas.collect();
        if self.expected != Expected::Call {
            ensure!(told == answer_text(), "the pieces tell `{told}`");
        }
        let first = events.first().context("there are no events")?;
        ensure!(
            first["type"] == "response.created",
            "it begins with {first}"
        );
        let last = events.last().context("there are no events")?;
        ensure!(last["type"] == "response.completed", "it ends with {last}");
        Ok(last["response"].clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plain(text: &str) -> Message {
        let output = json!([{"type": "message", "content": [{"text": text}]}]);
        Message {
            line: "HTTP/1.1 200 OK".into(),
            body: json!({"status": "completed", "output": output})
                .to_string()
                .into_bytes(),
        }
    }

    #[test]
    fn only_the_whole_answer_is_right() {
        let check = &Check::of(Kind::Plain, Loops::Server)[0];
        let right = plain(&answer_text());
        check.glance(&right).unwrap();
        check.read(&right).unwrap();
        assert!(check.glance(&plain("Oslo")).is_err());
        // One that a glance lets through.
        let more = plain(&format!("{}!", answer_text()));
        check.glance(&more).unwrap();
        assert!(check.read(&more).is_err());
        let mut failed = plain(&answer_text());
        failed.line = "HTTP/1.1 500 No".into();
        assert!(check.glance(&failed).is_err());
    }

    #[test]
    fn a_stream_must_tell_what_it_ends_with() {
        let check = &Check::of(Kind::Streamed, Loops::Server)[0];
        let text = answer_text();
        let stream = |told: &str| {
            let output = json!([{"type": "message", "content": [{"text": text}]}]);
            let response = json!({"status": "completed", "output": output});
            let frames = [
                json!({"type": "response.created"}),
                json!({"type": "response.output_text.delta", "delta": told}),
                json!({"type": "response.completed", "response": response}),
            ];
            let frames = frames.map(|frame| format!("data: {frame}\n\n"));
            Message {
                line: "HTTP/1.1 200 OK".into(),
                body: frames.concat().into_bytes(),
            }
        };
        check.read(&stream(&text)).unwrap();
        assert!(check.read(&stream("Oslo")).is_err());
    }
}
