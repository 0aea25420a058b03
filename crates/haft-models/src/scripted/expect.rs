//! What a step must have received.

use std::fmt::Display;

use haft_core::{ToolChoice, cut};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::step::is_default;
use super::view::{OutputView, RequestView};

/// What must have been received. Everything is optional; what is not said is not looked at.
///
/// ```
/// use haft_models::scripted::{Expect, user_contains};
/// let expect = user_contains("weather").offers(["get_weather"]);
/// let json = r#"{"user":{"contains":"weather"},"tools":{"exactly":["get_weather"]}}"#;
/// assert_eq!(serde_json::from_str::<Expect>(json)?, expect);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// The text of the user's last message.
    #[serde(skip_serializing_if = "is_default")]
    pub user: Option<TextMatch>,
    /// What the host says before everything else.
    #[serde(skip_serializing_if = "is_default")]
    pub instructions: Option<TextMatch>,
    /// The tools offered.
    #[serde(skip_serializing_if = "is_default")]
    pub tools: Option<NamesMatch>,
    /// The tool choice.
    #[serde(skip_serializing_if = "is_default")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether several calls at once are allowed, as the request says it.
    #[serde(skip_serializing_if = "is_default")]
    pub parallel_tool_calls: Option<bool>,
    /// The outputs of calls: those with a `call_id` anywhere, the others in the order of the latest
    /// round.
    #[serde(skip_serializing_if = "is_default")]
    pub outputs: Vec<ExpectedOutput>,
    /// The number of items in the conversation.
    #[serde(skip_serializing_if = "is_default")]
    pub items: Option<usize>,
    /// A part of the body, over HTTP: the members of objects that are named here must be there,
    /// lists must be equally long.
    #[serde(skip_serializing_if = "is_default")]
    pub body: Option<Value>,
}

/// What a text must be like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextMatch {
    /// This.
    Equals(String),
    /// This is a part of it.
    Contains(String),
}

/// What a list of names must be like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamesMatch {
    /// These, in this order.
    Exactly(Vec<String>),
    /// These and maybe others.
    Contains(Vec<String>),
    /// None of these.
    Lacks(Vec<String>),
}

/// What the output of a call must be like.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExpectedOutput {
    /// Whose output; without it, the next one of the latest round.
    #[serde(skip_serializing_if = "is_default")]
    pub call_id: Option<String>,
    /// Its text.
    #[serde(skip_serializing_if = "is_default")]
    pub text: Option<TextMatch>,
    /// Whether it tells of a failure.
    #[serde(skip_serializing_if = "is_default")]
    pub is_error: Option<bool>,
}

impl Expect {
    /// The user's last message is this.
    #[must_use]
    pub fn user_says(mut self, text: impl Into<String>) -> Self {
        self.user = Some(TextMatch::Equals(text.into()));
        self
    }

    /// The user's last message has this in it.
    #[must_use]
    pub fn user_contains(mut self, text: impl Into<String>) -> Self {
        self.user = Some(TextMatch::Contains(text.into()));
        self
    }

    /// The instructions have this in them.
    #[must_use]
    pub fn instructions_contain(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(TextMatch::Contains(text.into()));
        self
    }

    /// These tools are offered, in this order, and no others.
    #[must_use]
    pub fn offers<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.tools = Some(NamesMatch::Exactly(owned(names)));
        self
    }

    /// These tools are offered, among others.
    #[must_use]
    pub fn offers_among<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.tools = Some(NamesMatch::Contains(owned(names)));
        self
    }

    /// None of these tools is offered.
    #[must_use]
    pub fn withholds<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.tools = Some(NamesMatch::Lacks(owned(names)));
        self
    }

    /// The tool choice is this.
    #[must_use]
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = Some(choice);
        self
    }

    /// Whether several calls at once are allowed.
    #[must_use]
    pub fn parallel_tool_calls(mut self, allowed: bool) -> Self {
        self.parallel_tool_calls = Some(allowed);
        self
    }

    /// The next output of the latest round is this.
    #[must_use]
    pub fn output_says(self, text: impl Into<String>) -> Self {
        self.output(ExpectedOutput::default().says(text))
    }

    /// The next output of the latest round has this in it.
    #[must_use]
    pub fn output_contains(self, text: impl Into<String>) -> Self {
        self.output(ExpectedOutput::default().contains(text))
    }

    /// One more output.
    #[must_use]
    pub fn output(mut self, output: ExpectedOutput) -> Self {
        self.outputs.push(output);
        self
    }

    /// The conversation has so many items.
    #[must_use]
    pub fn items(mut self, number: usize) -> Self {
        self.items = Some(number);
        self
    }

    /// The body has this in it.
    #[must_use]
    pub fn body(mut self, part: Value) -> Self {
        self.body = Some(part);
        self
    }

    /// Everything that is not as expected, in words.
    pub(crate) fn unmet(&self, view: &RequestView) -> Vec<String> {
        let mut unmet = Vec::new();
        if let Some(wanted) = &self.user {
            unmet.extend(wanted.unmet("the last user text", view.user.as_deref()));
        }
        if let Some(wanted) = &self.instructions {
            unmet.extend(wanted.unmet("the instructions", view.instructions.as_deref()));
        }
        if let Some(wanted) = &self.tools {
            unmet.extend(wanted.unmet(&view.tools));
        }
        if let Some(wanted) = &self.tool_choice
            && view.tool_choice.as_ref() != Some(wanted)
        {
            let received = view.tool_choice.as_ref().map(json);
            unmet.push(differs("`tool_choice`", json(wanted), received));
        }
        if let Some(wanted) = self.parallel_tool_calls
            && view.parallel_tool_calls != Some(wanted)
        {
            let received = view.parallel_tool_calls;
            unmet.push(differs("`parallel_tool_calls`", wanted, received));
        }
        if let Some(wanted) = self.items
            && view.items != wanted
        {
            unmet.push(differs("the number of items", wanted, Some(view.items)));
        }
        self.check_outputs(view, &mut unmet);
        if let Some(wanted) = &self.body {
            match &view.body {
                Some(body) => unmet.extend(body_differs(wanted, body, "")),
                None => unmet.push(
                    "expected a `body`, but the request came in this process: use the server"
                        .to_owned(),
                ),
            }
        }
        unmet
    }

    fn check_outputs(&self, view: &RequestView, unmet: &mut Vec<String>) {
        let mut in_order = view.latest_outputs().iter();
        let mut position = 0;
        for wanted in &self.outputs {
            let (what, found) = if let Some(id) = &wanted.call_id {
                let same = |output: &&OutputView| output.call_id.as_ref() == Some(id);
                let found = view.outputs.iter().rev().find(same);
                (format!("the output of call `{id}`"), found)
            } else {
                position += 1;
                (format!("output {position}"), in_order.next())
            };
            if let Some(output) = found {
                wanted.check(&what, output, unmet);
                continue;
            }
            let ids = view.outputs.iter().map(|output| match &output.call_id {
                Some(id) => id.as_str(),
                None => "(without id)",
            });
            let received = in_backticks(ids);
            unmet.push(format!("expected {what}, received outputs of {received}"));
        }
    }
}

impl ExpectedOutput {
    /// It belongs to this call.
    #[must_use]
    pub fn of(mut self, call_id: impl Into<String>) -> Self {
        self.call_id = Some(call_id.into());
        self
    }

    /// Its text is this.
    #[must_use]
    pub fn says(mut self, text: impl Into<String>) -> Self {
        self.text = Some(TextMatch::Equals(text.into()));
        self
    }

    /// Its text has this in it.
    #[must_use]
    pub fn contains(mut self, text: impl Into<String>) -> Self {
        self.text = Some(TextMatch::Contains(text.into()));
        self
    }

    /// It tells of a failure.
    #[must_use]
    pub fn is_error(mut self) -> Self {
        self.is_error = Some(true);
        self
    }

    fn check(&self, what: &str, output: &OutputView, unmet: &mut Vec<String>) {
        if let Some(text) = &self.text {
            unmet.extend(text.unmet(what, Some(&output.text)));
        }
        // A protocol that says nothing of failures can only mean success.
        if let Some(wanted) = self.is_error
            && output.is_error.unwrap_or(false) != wanted
        {
            let what = format!("`is_error` of {what}");
            unmet.push(differs(&what, wanted, output.is_error));
        }
    }
}

impl TextMatch {
    fn unmet(&self, what: &str, received: Option<&str>) -> Option<String> {
        let (is_met, wanted) = match self {
            Self::Equals(text) => (received == Some(text), format!("be `{}`", cut(text))),
            Self::Contains(text) => (
                received.is_some_and(|received| received.contains(text)),
                format!("contain `{}`", cut(text)),
            ),
        };
        let received =
            received.map_or_else(|| "none".to_owned(), |text| format!("`{}`", cut(text)));
        (!is_met).then(|| format!("expected {what} to {wanted}, received {received}"))
    }
}

impl NamesMatch {
    fn unmet(&self, received: &[String]) -> Option<String> {
        let (is_met, how, names) = match self {
            Self::Exactly(names) => (names == received, "be exactly", names),
            Self::Contains(names) => (
                names.iter().all(|name| received.contains(name)),
                "contain",
                names,
            ),
            Self::Lacks(names) => (
                !names.iter().any(|name| received.contains(name)),
                "contain none of",
                names,
            ),
        };
        (!is_met).then(|| {
            let wanted = in_backticks(names.iter().map(String::as_str));
            let received = in_backticks(received.iter().map(String::as_str));
            format!("expected the tools to {how} {wanted}, received {received}")
        })
    }
}

/// Where a body lacks what is wanted, if it does.
fn body_differs(wanted: &Value, body: &Value, path: &str) -> Option<String> {
    match (wanted, body) {
        (Value::Object(wanted), Value::Object(body)) => wanted.iter().find_map(|(key, wanted)| {
            let path = format!("{path}/{key}");
            match body.get(key) {
                Some(value) => body_differs(wanted, value, &path),
                None => Some(differs(&at(&path), cut(&wanted.to_string()), None::<&str>)),
            }
        }),
        (Value::Array(wanted), Value::Array(body)) if wanted.len() == body.len() => {
            let mut pairs = wanted.iter().zip(body).enumerate();
            pairs.find_map(|(i, (wanted, value))| {
                body_differs(wanted, value, &format!("{path}/{i}"))
            })
        }
        _ if wanted == body => None,
        _ => {
            let (wanted, body) = (wanted.to_string(), body.to_string());
            Some(differs(&at(path), cut(&wanted), Some(cut(&body))))
        }
    }
}

fn at(path: &str) -> String {
    format!("the body at `{path}`")
}

fn differs(what: &str, wanted: impl Display, received: Option<impl Display>) -> String {
    let received = received.map_or_else(|| "none".to_owned(), |value| format!("`{value}`"));
    format!("expected {what} to be `{wanted}`, received {received}")
}

fn json(choice: &ToolChoice) -> String {
    serde_json::to_string(choice).unwrap_or_default()
}

fn owned<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Vec<String> {
    names.into_iter().map(Into::into).collect()
}

/// Names in a row, or `none`.
pub(crate) fn in_backticks<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.map(|name| format!("`{}`", cut(name))).collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    names.join(", ")
}
