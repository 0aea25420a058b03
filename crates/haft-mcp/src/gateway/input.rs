//! What a call may want from the person, or the program, at the other end.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

/// A question to the client.
#[derive(Debug, Clone, PartialEq)]
pub enum InputRequest {
    /// A form to fill in.
    Form {
        /// What is asked, for people.
        message: String,
        /// The fields, as a flat JSON Schema.
        schema: Map<String, Value>,
    },
    /// A page to visit. Nobody opens it but the person.
    Url {
        /// Why, for people.
        message: String,
        /// Where.
        url: String,
        /// By which the visit is known.
        id: String,
    },
    /// A completion by the client's model. Deprecated by the protocol; haft asks for none itself.
    Sampling(Map<String, Value>),
    /// The client's folders. Deprecated by the protocol; haft asks for none itself.
    Roots,
}

/// The kinds of questions, each of which a client may or may not understand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputKind {
    /// [`InputRequest::Form`]
    Form,
    /// [`InputRequest::Url`]
    Url,
    /// [`InputRequest::Sampling`]
    Sampling,
    /// [`InputRequest::Roots`]
    Roots,
}

impl fmt::Display for InputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "a form to be filled in (elicitation)",
            Self::Url => "a page to be visited (URL elicitation)",
            Self::Sampling => "a completion by the client's model (sampling)",
            Self::Roots => "the client's folders (roots)",
        })
    }
}

impl InputRequest {
    /// Which kind it is.
    pub fn kind(&self) -> InputKind {
        match self {
            Self::Form { .. } => InputKind::Form,
            Self::Url { .. } => InputKind::Url,
            Self::Sampling(_) => InputKind::Sampling,
            Self::Roots => InputKind::Roots,
        }
    }

    /// What is asked, for people, if it is said.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Form { message, .. } | Self::Url { message, .. } => Some(message),
            Self::Sampling(_) | Self::Roots => None,
        }
    }

    /// Reads the question from the protocol's own words: a `method` and its `params`.
    ///
    /// ```
    /// use haft_mcp::gateway::{InputKind, InputRequest};
    /// use serde_json::json;
    ///
    /// let params = json!({"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}});
    /// let request = InputRequest::from_protocol("elicitation/create", params);
    /// assert_eq!(request.map(|it| it.kind()), Some(InputKind::Form));
    /// ```
    pub fn from_protocol(method: &str, params: Value) -> Option<Self> {
        let mut params = match params {
            Value::Object(params) => params,
            Value::Null => Map::new(),
            _ => return None,
        };
        let mut text = |key: &str| match params.remove(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        match method {
            "elicitation/create" if text("mode").as_deref() == Some("url") => Some(Self::Url {
                message: text("message")?,
                url: text("url")?,
                id: text("elicitationId")?,
            }),
            "elicitation/create" => Some(Self::Form {
                message: text("message")?,
                schema: match params.remove("requestedSchema") {
                    Some(Value::Object(schema)) => schema,
                    _ => return None,
                },
            }),
            "sampling/createMessage" => Some(Self::Sampling(params)),
            "roots/list" => Some(Self::Roots),
            _ => None,
        }
    }

    /// The protocol's name for the question.
    pub(super) fn method(&self) -> &'static str {
        match self {
            Self::Form { .. } | Self::Url { .. } => "elicitation/create",
            Self::Sampling(_) => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// The question in the protocol's words.
    pub(super) fn params(&self) -> Value {
        match self {
            Self::Form { message, schema } => {
                json!({"mode": "form", "message": message, "requestedSchema": schema})
            }
            Self::Url { message, url, id } => {
                json!({"mode": "url", "message": message, "url": url, "elicitationId": id})
            }
            Self::Sampling(params) => Value::Object(params.clone()),
            Self::Roots => json!({}),
        }
    }
}

/// What the client answered: an object in the words of the protocol, not checked any further.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer(Map<String, Value>);

/// What a person did with a form or a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerAction {
    /// Filled in, or visited.
    Accept,
    /// Refused.
    Decline,
    /// Put away without a word.
    Cancel,
}

impl Answer {
    /// The answer that is this object.
    pub fn new(object: Map<String, Value>) -> Self {
        Self(object)
    }

    /// What the person did, for forms and pages.
    pub fn action(&self) -> Option<AnswerAction> {
        match self.0.get("action")?.as_str()? {
            "accept" => Some(AnswerAction::Accept),
            "decline" => Some(AnswerAction::Decline),
            "cancel" => Some(AnswerAction::Cancel),
            _ => None,
        }
    }

    /// What a form that was accepted holds.
    pub fn content(&self) -> Option<&Map<String, Value>> {
        if self.action() == Some(AnswerAction::Accept) {
            self.0.get("content")?.as_object()
        } else {
            None
        }
    }

    /// The whole answer.
    pub fn as_object(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The whole answer, to keep.
    pub fn into_object(self) -> Map<String, Value> {
        self.0
    }
}

/// What earlier rounds of the same request brought. Both parts come from the client: the state is the
/// backend's own, unharmed; the answers are whatever the client sent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Input {
    /// The answers, under the keys that the questions had.
    pub answers: BTreeMap<String, Answer>,
    /// What the backend gave along with its questions.
    pub state: Option<String>,
}

/// A request that cannot be completed before these questions are answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InputNeeded {
    /// The questions, each under a key of the backend's choice. None at all means: ask again at once.
    pub requests: BTreeMap<String, InputRequest>,
    /// What the backend wants to see again with the answers.
    pub state: Option<String>,
}

/// How a request that may need input ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply<T> {
    /// With its result.
    Complete(T),
    /// With questions; it comes again with [`Input`].
    InputRequired(InputNeeded),
}

impl<T> Reply<T> {
    /// The same with another result.
    pub(super) fn map<U>(self, map: impl FnOnce(T) -> U) -> Reply<U> {
        match self {
            Self::Complete(result) => Reply::Complete(map(result)),
            Self::InputRequired(needed) => Reply::InputRequired(needed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_survive_the_way_through_the_protocol() {
        let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
        let questions = [
            InputRequest::Form {
                message: "Sure?".into(),
                schema: schema.as_object().unwrap().clone(),
            },
            InputRequest::Url {
                message: "Sign in".into(),
                url: "https://example.com/".into(),
                id: "e1".into(),
            },
            InputRequest::Sampling(json!({"maxTokens": 5}).as_object().unwrap().clone()),
            InputRequest::Roots,
        ];
        for question in questions {
            let again = InputRequest::from_protocol(question.method(), question.params());
            assert_eq!(again, Some(question));
        }
        assert_eq!(InputRequest::from_protocol("tools/list", json!({})), None);
        assert_eq!(
            InputRequest::from_protocol("elicitation/create", json!(3)),
            None
        );
    }

    #[test]
    fn a_declined_form_has_no_content() {
        let answer = json!({"action": "decline", "content": {"ok": true}});
        let answer = Answer::new(answer.as_object().unwrap().clone());
        assert_eq!(answer.action(), Some(AnswerAction::Decline));
        assert_eq!(answer.content(), None);
    }
}
