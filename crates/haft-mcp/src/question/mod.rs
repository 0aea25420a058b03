//! What a server wants to know in the middle of a call, and whoever can say it.
//!
//! The protocol calls this elicitation. Questions come from strangers: their texts are made visible,
//! a page is shown and never opened, and what is answered is checked against the form before it leaves.

mod asker;
mod form;

use reqwest::Url;
use serde_json::{Map, Value, json};

pub use self::asker::{Asker, AskerSlot, Questions, Takes};
pub(crate) use self::form::Form;
use crate::names::Label;
use crate::text::visible;

/// How much of a question's text is shown.
const MAX_MESSAGE_BYTES: usize = 4_000;

/// How long an address may be.
const MAX_URL_BYTES: usize = 4_000;

/// Something that a server asks a person.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// Who asks.
    pub server: Label,
    /// The tool whose call it belongs to, by its raw name. Servers of the legacy era do not say.
    pub tool: Option<String>,
    /// What is asked, in the server's words.
    pub message: String,
    /// How it is to be answered.
    pub kind: QuestionKind,
    /// What was wrong with the answer before, if there was one.
    pub complaint: Option<String>,
}

/// How a question is to be answered.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum QuestionKind {
    /// A form to fill in.
    Form {
        /// Its fields: a JSON Schema of a flat object.
        schema: Map<String, Value>,
    },
    /// A page that the person has to visit. It is for the person to open, and for nobody else.
    Page {
        /// Where it is. Its host is the part that a person can judge.
        url: Url,
    },
}

/// What a person says.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Yes, with what was filled in. For a page there is nothing to fill in.
    Accept(Map<String, Value>),
    /// No.
    Decline,
    /// Nothing.
    Cancel,
    /// The person could not be asked at all, for this reason. The call fails with it; a server of the
    /// legacy era is told.
    Unaskable(String),
}

impl Answer {
    /// In the protocol's words.
    pub(crate) fn to_protocol(&self, kind: &QuestionKind) -> Value {
        match (self, kind) {
            (Self::Accept(values), QuestionKind::Form { .. }) => {
                json!({"action": "accept", "content": values})
            }
            (Self::Accept(_), QuestionKind::Page { .. }) => json!({"action": "accept"}),
            (Self::Decline, _) => json!({"action": "decline"}),
            // The protocol has no other word for it; where there is an error, it is said by that.
            (Self::Cancel | Self::Unaskable(_), _) => json!({"action": "cancel"}),
        }
    }
}

impl Question {
    /// What is wanted, for whoever cannot give it.
    pub fn wanted(&self) -> String {
        let what = match &self.kind {
            QuestionKind::Form { .. } => "a form to be filled in",
            QuestionKind::Page { .. } => "a page to be visited",
        };
        format!("{what} (elicitation). It asks: {}", self.message)
    }

    /// Reads the `params` of `elicitation/create`, or says what is wrong with them.
    pub fn from_protocol(
        server: &Label,
        tool: Option<&str>,
        params: &Value,
    ) -> Result<Self, String> {
        let message = params.get("message").and_then(Value::as_str);
        let message = visible(message.ok_or("the question has no `message`")?);
        let message = match message.char_indices().nth(MAX_MESSAGE_BYTES) {
            Some((at, _)) => format!("{}…", &message[..at]),
            None => message,
        };
        let kind = match params.get("mode").and_then(Value::as_str) {
            Some("url") => page(params)?,
            None | Some("form") => QuestionKind::Form {
                schema: form::read(params)?,
            },
            Some(other) => {
                return Err(format!(
                    "a question of the mode `{}` is not known",
                    haft_core::cut(&visible(other))
                ));
            }
        };
        Ok(Self {
            server: server.clone(),
            tool: tool.map(str::to_owned),
            message,
            kind,
            complaint: None,
        })
    }
}

fn page(params: &Value) -> Result<QuestionKind, String> {
    let url = params.get("url").and_then(Value::as_str);
    let url = url.filter(|url| url.len() <= MAX_URL_BYTES);
    let url = url.and_then(|url| Url::parse(url).ok());
    let is_page = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    match url.filter(is_page) {
        Some(url) => Ok(QuestionKind::Page { url }),
        None => Err("the page of a question has no address that a browser could open".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(params: &Value) -> Result<Question, String> {
        Question::from_protocol(&Label::new("it").unwrap(), Some("tool"), params)
    }

    #[test]
    fn a_form_and_a_page_are_read_and_made_visible() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "title": "A\u{202e}b"}}});
        let form = read(&json!({"message": "Na\u{200b}me?", "requestedSchema": schema})).unwrap();
        assert_eq!(form.message, "Name?");
        let QuestionKind::Form { schema } = form.kind else {
            panic!()
        };
        assert_eq!(schema["properties"]["a"]["title"], "Ab");
        let page = json!({"mode": "url", "message": "Sign in", "url": "https://bücher.example/x", "elicitationId": "e"});
        let QuestionKind::Page { url } = read(&page).unwrap().kind else {
            panic!()
        };
        // As it is, not as it wants to look.
        assert_eq!(url.as_str(), "https://xn--bcher-kva.example/x");
    }

    #[test]
    fn what_is_no_question_is_told() {
        for (params, problem) in [
            (json!({}), "the question has no `message`"),
            (json!({"message": "?"}), "the question has no form"),
            (
                json!({"message": "?", "mode": "url", "url": "javascript:alert(1)"}),
                "the page of a question has no address that a browser could open",
            ),
            (
                json!({"message": "?", "mode": "url", "url": "file:///etc/passwd"}),
                "the page of a question has no address that a browser could open",
            ),
            (
                json!({"message": "?", "mode": "voice"}),
                "a question of the mode `voice` is not known",
            ),
        ] {
            assert_eq!(read(&params).unwrap_err(), problem);
        }
        let long =
            json!({"mode": "url", "message": "é".repeat(9_000), "url": "https://x.example/"});
        assert_eq!(read(&long).unwrap().message.chars().count(), 4_001);
    }

    #[test]
    fn answers_are_said_as_the_protocol_says_them() {
        let form = QuestionKind::Form { schema: Map::new() };
        let page = QuestionKind::Page {
            url: Url::parse("https://x.example/").unwrap(),
        };
        let yes = Answer::Accept([("a".to_owned(), json!(1))].into_iter().collect());
        assert_eq!(
            yes.to_protocol(&form),
            json!({"action": "accept", "content": {"a": 1}})
        );
        assert_eq!(yes.to_protocol(&page), json!({"action": "accept"}));
        assert_eq!(
            Answer::Decline.to_protocol(&form),
            json!({"action": "decline"})
        );
        assert_eq!(
            Answer::Cancel.to_protocol(&page),
            json!({"action": "cancel"})
        );
    }
}
