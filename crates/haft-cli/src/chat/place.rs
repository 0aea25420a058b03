//! Where a conversation with a server stands: behind a response, or in a conversation of the API.

use std::error::Error;

use haft::{Value, json};

use super::memory::{Last, Memory};
use crate::arguments::ChatArguments;
use crate::failure::Failure;
use crate::remote::{Remote, RemoteError};
use crate::responses::input_items;
use crate::text::moment;

/// The word for a conversation that is yet to be made.
const NEW: &str = "new";

/// How many of the newest responses are looked at: several may be of the same second.
const NEWEST: &str = "20";

/// Where it stands.
#[derive(Debug, Default)]
pub(super) struct Place {
    line: Line,
    /// The response that is being made.
    current: Option<String>,
    /// Whether the last answer was stopped.
    stop: Stop,
    /// What was said before.
    past: Vec<Value>,
    /// What to say about where it begins.
    note: Option<String>,
}

#[derive(Debug, Default)]
enum Stop {
    #[default]
    None,
    /// It was; what it continued stands here.
    Behind(Option<String>),
}

#[derive(Debug)]
enum Line {
    /// Each response continues the last.
    Chain(Option<String>),
    /// All belong to this conversation.
    Conversation(String),
}

impl Default for Line {
    fn default() -> Self {
        Self::Chain(None)
    }
}

impl Place {
    /// Where the arguments say that it goes on.
    pub(super) async fn find(
        remote: &Remote,
        arguments: &ChatArguments,
        memory: &Memory,
    ) -> Result<Self, Box<dyn Error>> {
        match (&arguments.conversation, &arguments.response) {
            (Some(id), _) if id == NEW => {
                let id = made(remote).await?;
                Ok(Self {
                    note: Some(format!(
                        "a new conversation: `--conversation {id}` goes on with it"
                    )),
                    line: Line::Conversation(id),
                    ..Self::default()
                })
            }
            (Some(id), _) => Ok(Self::in_conversation(remote, id).await?),
            (None, Some(id)) => Ok(Self::behind(remote, id).await?.0),
            (None, None) if arguments.r#continue => Self::last(remote, memory).await,
            (None, None) => Ok(Self::default()),
        }
    }

    /// Where the last conversation from here ended, else the newest of the tenant; which of them, it
    /// says.
    async fn last(remote: &Remote, memory: &Memory) -> Result<Self, Box<dyn Error>> {
        let remembered = match memory.recall(remote.base()) {
            Some(Last::Response(id)) => Self::behind(remote, &id).await.map(|(place, made)| Self {
                note: Some(format!("continuing `{id}` of {made}")),
                ..place
            }),
            Some(Last::Conversation(id)) => {
                let place = Self::in_conversation(remote, &id).await;
                place.map(|place| Self {
                    note: Some(format!("continuing the conversation `{id}`")),
                    ..place
                })
            }
            None => return Self::newest(remote, "none from here is remembered").await,
        };
        match remembered {
            // It was deleted, or belongs to another tenant than this key.
            Err(error) if error.status == Some(404) => {
                Self::newest(remote, "the last one from here is gone").await
            }
            remembered => Ok(remembered?),
        }
    }

    /// Behind the response that was made last, whoever made it.
    async fn newest(remote: &Remote, reason: &str) -> Result<Self, Box<dyn Error>> {
        let id = newest(remote).await?;
        let (place, made) = Self::behind(remote, &id).await?;
        let words = "the newest response of the tenant, whoever made it";
        Ok(Self {
            note: Some(format!("continuing `{id}` of {made}, {words}: {reason}")),
            ..place
        })
    }

    /// Behind a response; and when that was made.
    async fn behind(remote: &Remote, id: &str) -> Result<(Self, String), RemoteError> {
        let response = remote.get(&["responses", id], &[]).await?;
        let mut past = input_items(remote, id).await?;
        past.extend(response["output"].as_array().cloned().unwrap_or_default());
        let place = Self {
            line: Line::Chain(Some(id.to_owned())),
            past,
            ..Self::default()
        };
        let made = response["created_at"].as_i64().unwrap_or_default();
        Ok((place, moment(made)))
    }

    async fn in_conversation(remote: &Remote, id: &str) -> Result<Self, RemoteError> {
        let path = ["conversations", id, "items"];
        let mut list = remote.get(&path, &[("limit", "100")]).await?;
        let newest = list["data"].take();
        let newest = newest.as_array().cloned().unwrap_or_default();
        Ok(Self {
            line: Line::Conversation(id.to_owned()),
            past: newest.into_iter().rev().collect(),
            ..Self::default()
        })
    }

    /// What to say about where it begins.
    pub(super) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The conversation of the API, if it is in one.
    pub(super) fn conversation(&self) -> Option<&str> {
        match &self.line {
            Line::Chain(_) => None,
            Line::Conversation(id) => Some(id),
        }
    }

    /// What the next conversation may go on from.
    pub(super) fn to_remember(&self) -> Option<Last> {
        match &self.line {
            Line::Chain(last) => last.clone().map(Last::Response),
            Line::Conversation(id) => Some(Last::Conversation(id.clone())),
        }
    }

    pub(super) fn past(&self) -> &[Value] {
        &self.past
    }

    /// What to say to come back here; nothing if nothing was said yet.
    pub(super) fn way_back(&self) -> Option<String> {
        match &self.line {
            Line::Chain(last) => last.as_ref().map(|id| format!("--response {id}")),
            Line::Conversation(id) => Some(format!("--conversation {id}")),
        }
    }

    /// Says it to the server.
    pub(super) fn add_to(&self, body: &mut Value) {
        match &self.line {
            Line::Chain(None) => {}
            Line::Chain(Some(last)) => body["previous_response_id"] = last.as_str().into(),
            Line::Conversation(id) => body["conversation"] = id.as_str().into(),
        }
    }

    /// A response has begun.
    pub(super) fn began(&mut self, response: &Value) {
        self.current = response["id"].as_str().map(str::to_owned);
        self.stop = Stop::None;
    }

    /// It has ended, and is what the next one continues.
    pub(super) fn ended(&mut self, response: &Value) {
        self.current = None;
        if let (Line::Chain(last), Some(id)) = (&mut self.line, response["id"].as_str()) {
            *last = Some(id.to_owned());
        }
    }

    /// It was stopped: the next one continues what there is of it.
    pub(super) fn stopped(&mut self) {
        let current = self.current.take();
        match &mut self.line {
            Line::Chain(last) if current.is_some() => {
                self.stop = Stop::Behind(std::mem::replace(last, current));
            }
            Line::Chain(_) => {}
            Line::Conversation(_) => self.stop = Stop::Behind(None),
        }
    }

    /// Whether the server may still be busy with what was stopped.
    pub(super) fn was_stopped(&self) -> bool {
        matches!(self.stop, Stop::Behind(_))
    }

    /// Goes back to where it stood before something was stopped.
    pub(super) fn step_back(&mut self) {
        let stop = std::mem::take(&mut self.stop);
        if let (Line::Chain(last), Stop::Behind(before)) = (&mut self.line, stop) {
            *last = before;
        }
    }

    /// Begins anew, in the same way.
    pub(super) async fn begin_anew(&mut self, remote: &Remote) -> Result<(), RemoteError> {
        let line = match &self.line {
            Line::Chain(_) => Line::Chain(None),
            Line::Conversation(_) => Line::Conversation(made(remote).await?),
        };
        *self = Self {
            line,
            ..Self::default()
        };
        Ok(())
    }
}

/// A new conversation.
async fn made(remote: &Remote) -> Result<String, RemoteError> {
    let made = remote.post(&["conversations"], &json!({})).await?;
    Ok(made["id"].as_str().unwrap_or_default().to_owned())
}

/// The response that was made last.
async fn newest(remote: &Remote) -> Result<String, Box<dyn Error>> {
    let page = remote.get(&["responses"], &[("limit", NEWEST)]).await?;
    let listed = page["data"].as_array().map_or(&[][..], Vec::as_slice);
    let last = last_of(listed).map(str::to_owned);
    let none = || {
        Failure::new(format!("there is nothing to continue at {}", remote.base()))
            .remedy("begin a conversation without `--continue`")
    };
    Ok(last.ok_or_else(none)?)
}

/// The last of a list that begins with the newest. Within one second it is the one that no other of
/// that second continues.
fn last_of(listed: &[Value]) -> Option<&str> {
    let newest = listed.first()?;
    let of_that_second = || {
        let same = |it: &&Value| it["created_at"] == newest["created_at"];
        listed.iter().take_while(same)
    };
    let is_continued = |it: &Value| {
        let mut others = of_that_second();
        others.any(|other| other["previous_response_id"] == it["id"])
    };
    let last = of_that_second().find(|it| !is_continued(it));
    last.unwrap_or(newest)["id"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_one_second_the_last_is_the_one_that_nobody_continues() {
        let response = |id: &str, at: i64, previous: Option<&str>| json!({"id": id, "created_at": at, "previous_response_id": previous});
        let listed = [
            response("z", 9, None),
            response("m", 9, Some("z")),
            response("a", 9, Some("m")),
            response("older", 8, None),
        ];
        assert_eq!(last_of(&listed), Some("a"));
        assert_eq!(last_of(&listed[3..]), Some("older"));
        assert_eq!(last_of(&[]), None);
    }

    #[test]
    fn what_was_stopped_is_continued_until_the_server_does_not_know_it() {
        let mut place = Place::default();
        place.began(&json!({"id": "one"}));
        place.ended(&json!({"id": "one"}));
        place.began(&json!({"id": "two"}));
        place.stopped();
        assert!(place.was_stopped());
        assert_eq!(place.way_back().unwrap(), "--response two");
        place.step_back();
        assert!(!place.was_stopped());
        assert_eq!(place.way_back().unwrap(), "--response one");
    }
}
