//! `messages`: who said what, and which output belongs to which call.

use haft_core::{CallOutput, ContentPart, FunctionCallOutput, Item, Message, Reasoning, Role, cut};
use serde_json::Value;

use super::parts::{Place, content};
use crate::error::{ApiError, ErrorCode};
use crate::wire::read::Read;
use crate::wire::read::fields::{Fields, invalid, missing, wrong_type};
use crate::wire::read::forms::{ListOf, Object, Text, not_among};

/// Messages as items.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) items: Vec<Item>,
    /// The message that each item comes from, as a path.
    pub(super) places: Vec<String>,
    calls: Vec<Call>,
}

/// A call of the history.
#[derive(Debug)]
struct Call {
    /// Its id as the client writes it.
    given: String,
    /// Its id in the conversation.
    own: String,
    /// Where it stands.
    place: String,
    is_answered: bool,
}

/// Reads the list of messages.
pub(super) fn messages(value: Value, path: &str) -> Read<Messages> {
    let Value::Array(entries) = value else {
        return Err(wrong_type(path, "a list of messages", &value));
    };
    if entries.is_empty() {
        return Err(invalid(
            path,
            format!("`{path}` is empty: send at least one message"),
        ));
    }
    let mut messages = Messages::default();
    for (at, entry) in entries.into_iter().enumerate() {
        messages.add(Fields::of(entry, format!("{path}[{at}]"))?)?;
    }
    messages.check_answered()?;
    Ok(messages)
}

impl Messages {
    fn add(&mut self, mut fields: Fields) -> Read<()> {
        match fields.need("role", Text)?.as_str() {
            "system" => self.said(fields, Role::System),
            "developer" => self.said(fields, Role::Developer),
            "user" => self.said(fields, Role::User),
            "assistant" => self.answered(fields),
            "tool" => self.output(fields),
            "function" => Err(outdated(
                &fields.at("role"),
                "send a message of the role `tool` with a `tool_call_id`",
            )),
            other => {
                let roles = ["system", "developer", "user", "assistant", "tool"];
                Err(not_among(&fields.at("role"), other, roles.into_iter()))
            }
        }
    }

    fn push(&mut self, item: Item, fields: &Fields) {
        self.items.push(item);
        self.places.push(fields.path().to_owned());
    }

    fn said(&mut self, mut fields: Fields, role: Role) -> Read<()> {
        let content = fields.need("content", |value, path: &str| {
            content(value, path, Place::Said)
        })?;
        let message = Message {
            content,
            ..Message::new(role, "")
        };
        self.push(Item::Message(message), &fields);
        Ok(())
    }

    /// Thoughts, then words, then calls. What is empty says nothing.
    fn answered(&mut self, mut fields: Fields) -> Read<()> {
        for (member, advice) in [
            ("function_call", "send the call in `tool_calls`"),
            ("audio", "send what was said as `content`"),
        ] {
            if fields.has(member) {
                return Err(outdated(&fields.at(member), advice));
            }
        }
        // Servers and clients use either name; only the first is always text.
        let reasoning = fields.get("reasoning_content", Text)?;
        let reasoning = reasoning.or_else(|| match fields.take("reasoning") {
            Some(Value::String(text)) => Some(text),
            _ => None,
        });
        if let Some(text) = reasoning.filter(|text| !text.is_empty()) {
            let reasoning = Reasoning {
                content: vec![ContentPart::ReasoningText { text }],
                ..Reasoning::default()
            };
            self.push(Item::Reasoning(reasoning), &fields);
        }
        let mut said = fields
            .get("content", |value, path: &str| {
                content(value, path, Place::Answered)
            })?
            .unwrap_or_default();
        let refusal = fields.get("refusal", Text)?;
        said.extend(refusal.map(|refusal| ContentPart::Refusal { refusal }));
        said.retain(|part| match part {
            ContentPart::Refusal { refusal } => !refusal.is_empty(),
            part => part.text() != Some(""),
        });
        if !said.is_empty() {
            let message = Message {
                content: said,
                ..Message::new(Role::Assistant, "")
            };
            self.push(Item::Message(message), &fields);
        }
        let calls = fields.get("tool_calls", ListOf(call))?.unwrap_or_default();
        for call in calls {
            self.call(call, &fields)?;
        }
        Ok(())
    }

    /// Many servers give the calls of every turn the same ids. In a conversation each has its own.
    fn call(&mut self, call: GivenCall, fields: &Fields) -> Read<()> {
        let mut earlier = self.calls.iter().filter(|known| known.given == call.id);
        if earlier.any(|known| !known.is_answered) {
            let at = format!("{}.id", call.place);
            let message = format!(
                "`{at}` is `{}`, like that of another call that has no output yet: give each its own",
                cut(&call.id)
            );
            return Err(invalid(&at, message));
        }
        let mut own = call.id.clone();
        let mut count = 1;
        while self.calls.iter().any(|known| known.own == own) {
            count += 1;
            own = format!("{}_{count}", call.id);
        }
        let item = Item::function_call(own.as_str(), call.name, call.arguments);
        self.push(item, fields);
        self.calls.push(Call {
            given: call.id,
            own,
            place: call.place,
            is_answered: false,
        });
        Ok(())
    }

    fn output(&mut self, mut fields: Fields) -> Read<()> {
        let at = fields.at("tool_call_id");
        let id = fields.need("tool_call_id", Text)?;
        let output = match fields.take("content") {
            None => {
                return Err(missing(
                    &fields.at("content"),
                    "say what came of the call, if only an empty text",
                ));
            }
            Some(Value::String(text)) => CallOutput::Text(text),
            Some(parts) => CallOutput::Parts(content(parts, &fields.at("content"), Place::Output)?),
        };
        let same_id = |call: &&mut Call| call.given == id;
        let Some(call) = self.calls.iter_mut().rev().find(same_id) else {
            let message = format!(
                "`{at}` is `{}`, but no message before it makes such a call: remove it, or send the \
                 assistant's message with the call",
                cut(&id)
            );
            return Err(ApiError::new(ErrorCode::ToolCallNotFound, message).at(at));
        };
        if call.is_answered {
            let message = format!("`{at}` is `{}`, which has an output already", cut(&id));
            return Err(ApiError::new(ErrorCode::DuplicateToolOutput, message).at(at));
        }
        call.is_answered = true;
        let output = FunctionCallOutput {
            output,
            ..FunctionCallOutput::new(call.own.as_str(), "")
        };
        self.push(Item::FunctionCallOutput(output), &fields);
        Ok(())
    }

    fn check_answered(&self) -> Read<()> {
        let Some(open) = self.calls.iter().find(|call| !call.is_answered) else {
            return Ok(());
        };
        let message = format!(
            "`{}` is the call `{}`, which has no output: add a message of the role `tool` for it",
            open.place,
            cut(&open.given)
        );
        Err(ApiError::new(ErrorCode::MissingToolOutput, message).at(open.place.as_str()))
    }
}

/// An entry of `tool_calls`.
struct GivenCall {
    id: String,
    name: String,
    arguments: String,
    place: String,
}

fn call(value: Value, path: &str) -> Read<GivenCall> {
    let mut fields = Fields::of(value, path)?;
    let at = fields.at("type");
    if let Some(kind) = fields.get("type", Text)?.filter(|kind| kind != "function") {
        let message = format!(
            "`{at}` is `{}`, but this model knows calls of functions only: remove it",
            cut(&kind)
        );
        return Err(ApiError::new(ErrorCode::UnsupportedTool, message).at(at));
    }
    let at = fields.at("id");
    let id = fields.need("id", Text)?;
    if id.is_empty() {
        return Err(invalid(
            &at,
            format!("`{at}` is empty: give the call an id"),
        ));
    }
    let mut function = fields.need("function", Object)?;
    Ok(GivenCall {
        id,
        name: function.need("name", Text)?,
        arguments: function.get("arguments", Text)?.unwrap_or_default(),
        place: path.to_owned(),
    })
}

fn outdated(path: &str, advice: &str) -> ApiError {
    let message = format!("`{path}` is not supported for this model: {advice}");
    ApiError::new(ErrorCode::UnsupportedParameter, message).at(path)
}
