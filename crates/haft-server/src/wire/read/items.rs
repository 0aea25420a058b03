//! The items of `input`, in the form in which they are stored and listed (`open-responses.md` §1.3).

use std::collections::HashSet;

use haft_core::{
    FunctionCall, FunctionCallOutput, Item, ItemStatus, Message, Reasoning, Role, cut,
};
use serde_json::Value;

use super::fields::{Fields, invalid, missing, wrong_type};
use super::forms::{Flag, Form as _, MAX_TEXT, Name, ShortId, Text, TextUpTo, Word};
use super::item_table::{ItemForm, foreign_prefix};
use super::parts::{Place, content, output, parts};
use super::{Read, Vocabulary};
use crate::error::{ApiError, ErrorCode};
use crate::history::{WIRE_ID, is_mark};
use crate::wire::ids::new_id;
use crate::wire::request::{InputItem, InputRecord};

/// `input`: a text of the user, or items.
pub(super) fn read_input(value: Value, path: &str, words: &Vocabulary<'_>) -> Read<Vec<InputItem>> {
    match value {
        Value::String(_) => {
            let text = TextUpTo(MAX_TEXT).read(value, path)?;
            let mut message = Message::new(Role::User, text);
            let id = new_id("msg");
            message.id = Some(id.clone());
            message.status = Some(ItemStatus::Completed);
            Ok(vec![InputItem::Item(InputRecord {
                id,
                param: path.to_owned(),
                item: Item::Message(message),
                tools: Vec::new(),
            })])
        }
        Value::Array(_) => InputItem::read_list(value, path, words),
        other => Err(wrong_type(path, "a string or a list of items", &other)),
    }
}

impl InputItem {
    /// Reads a list of items that stands at `path`.
    ///
    /// Where two bear one id, the second gets a new one: an id must say which item is meant.
    pub(crate) fn read_list(value: Value, path: &str, words: &Vocabulary<'_>) -> Read<Vec<Self>> {
        let Value::Array(entries) = value else {
            return Err(wrong_type(path, "a list of items", &value));
        };
        let last = entries.len().saturating_sub(1);
        let mut ids = HashSet::new();
        let mut items = Vec::with_capacity(entries.len());
        for (index, entry) in entries.into_iter().enumerate() {
            let mut item = Self::read(entry, format!("{path}[{index}]"), words)?;
            match &mut item {
                Self::Item(record) => {
                    if !ids.insert(record.id.clone()) {
                        record.rename();
                    }
                }
                Self::CompactionTrigger if index != last => {
                    let at = format!("{path}[{index}]");
                    return Err(invalid(
                        &at,
                        format!(
                            "`{at}` is a `compaction_trigger`, which can only be the last item: move it to the end"
                        ),
                    ));
                }
                Self::CompactionTrigger | Self::Reference { .. } => {}
            }
            items.push(item);
        }
        Ok(items)
    }

    fn read(entry: Value, param: String, words: &Vocabulary<'_>) -> Read<Self> {
        let mut fields = Fields::of(entry, param.clone())?;
        // Clients never get to see these: whoever sends them has made them up.
        fields.forget(is_mark);
        let item_type = match fields.get("type", Text)? {
            Some(item_type) => item_type,
            None if fields.has("role") => String::from("message"),
            None if fields.has("id") && fields.has_only(&["id"]) => String::from("item_reference"),
            None => return Err(missing(&fields.at("type"), "say what kind of item it is")),
        };
        let (id, item) = match item_type.as_str() {
            "item_reference" => {
                return Ok(Self::Reference {
                    id: fields.need("id", Text)?,
                    param,
                });
            }
            "compaction_trigger" => return Ok(Self::CompactionTrigger),
            "message" => message(fields)?,
            "function_call" => function_call(fields)?,
            "function_call_output" => function_call_output(fields)?,
            "reasoning" => reasoning(fields)?,
            other => {
                let Some(form) = ItemForm::of(other, words) else {
                    return Err(unknown_type(&fields, other));
                };
                let read = form.read(other, fields, words)?;
                return Ok(Self::Item(InputRecord {
                    id: read.id,
                    param,
                    item: Item::Other(read.members),
                    tools: read.tools,
                }));
            }
        };
        Ok(Self::Item(InputRecord {
            id,
            param,
            item,
            tools: Vec::new(),
        }))
    }
}

fn unknown_type(fields: &Fields, item_type: &str) -> ApiError {
    let at = fields.at("type");
    ApiError::new(
        ErrorCode::UnsupportedItemType,
        format!(
            "`{at}` is `{}`, which is no type of item that this server knows: leave the item out, \
             or send it as a message",
            cut(item_type)
        ),
    )
    .at(at)
}

impl InputRecord {
    /// Gives the item a new id.
    fn rename(&mut self) {
        let prefix = self.id.split_once('_').map_or("item", |(prefix, _)| prefix);
        self.id = new_id(prefix);
        let id = Some(self.id.clone());
        match &mut self.item {
            Item::Message(item) => item.id = id,
            Item::FunctionCall(item) => item.id = id,
            Item::FunctionCallOutput(item) => item.id = id,
            Item::Reasoning(item) => item.id = id,
            Item::Other(members) => {
                let known = members.insert(String::from("id"), self.id.as_str().into());
                let is_foreign = members.get("type").and_then(Value::as_str);
                if is_foreign.and_then(foreign_prefix).is_some() {
                    members.entry(WIRE_ID).or_insert(known.unwrap_or_default());
                }
            }
            // No other kind is ever read here.
            _ => {}
        }
    }
}

/// The id and the status that every core item has.
fn head(fields: &mut Fields, prefix: &str) -> Read<(String, Option<ItemStatus>)> {
    let id = fields.get("id", Text)?.filter(|id| !id.is_empty());
    let statuses = Word(&["in_progress", "completed", "incomplete"]);
    let status = match fields.get("status", statuses)? {
        Some("in_progress") => ItemStatus::InProgress,
        Some("incomplete") => ItemStatus::Incomplete,
        _ => ItemStatus::Completed,
    };
    Ok((id.unwrap_or_else(|| new_id(prefix)), Some(status)))
}

/// A member that is checked and then kept with what else was there.
fn keep_text(fields: &mut Fields, key: &str) -> Read<()> {
    if let Some(text) = fields.get(key, Text)? {
        fields.put(key, text.into());
    }
    Ok(())
}

fn message(mut fields: Fields) -> Read<(String, Item)> {
    const ROLES: Word = Word(&["user", "assistant", "system", "developer"]);
    let (id, status) = head(&mut fields, "msg")?;
    let role = fields.need("role", |value: Value, path: &str| {
        if value == "tool" {
            let message = format!(
                "`{path}` is `tool`, the form of Chat Completions; send the output of a call as \
                 `{{\"type\": \"function_call_output\", \"call_id\": …, \"output\": …}}`"
            );
            return Err(ApiError::new(ErrorCode::InvalidValue, message).at(path));
        }
        ROLES.read(value, path)
    })?;
    let (role, place) = match role {
        "assistant" => (Role::Assistant, Place::Answered),
        "system" => (Role::System, Place::Said),
        "developer" => (Role::Developer, Place::Said),
        _ => (Role::User, Place::Said),
    };
    let content = fields.need("content", |value, path: &str| content(value, path, place))?;
    if let Some(phase) = fields.get("phase", Word(&["commentary", "final_answer"]))? {
        fields.put("phase", phase.into());
    }
    let item = Item::Message(Message {
        id: Some(id.clone()),
        status,
        role,
        content,
        extra: fields.rest(),
    });
    Ok((id, item))
}

fn function_call(mut fields: Fields) -> Read<(String, Item)> {
    let (id, status) = head(&mut fields, "fc")?;
    let call_id = fields.need("call_id", ShortId)?;
    let name = fields.need("name", Name)?;
    let arguments = fields.need("arguments", Text)?;
    keep_text(&mut fields, "namespace")?;
    let item = Item::FunctionCall(FunctionCall {
        id: Some(id.clone()),
        status,
        call_id,
        name,
        arguments,
        extra: fields.rest(),
    });
    Ok((id, item))
}

fn function_call_output(mut fields: Fields) -> Read<(String, Item)> {
    let (id, status) = head(&mut fields, "fco")?;
    let call_id = fields.need("call_id", ShortId)?;
    let output = fields.need("output", output)?;
    let is_error = fields.get("is_error", Flag)?.unwrap_or(false);
    let item = Item::FunctionCallOutput(FunctionCallOutput {
        id: Some(id.clone()),
        status,
        call_id,
        output,
        is_error,
        extra: fields.rest(),
    });
    Ok((id, item))
}

fn reasoning(mut fields: Fields) -> Read<(String, Item)> {
    let list = |place| move |value: Value, path: &str| parts(value, path, place);
    let (id, status) = head(&mut fields, "rs")?;
    let summary = fields.get("summary", list(Place::Summary))?;
    let content = fields.get("content", list(Place::Thought))?;
    let encrypted_content = fields.get("encrypted_content", Text)?;
    let item = Item::Reasoning(Reasoning {
        id: Some(id.clone()),
        status,
        summary: summary.unwrap_or_default(),
        content: content.unwrap_or_default(),
        encrypted_content,
        extra: fields.rest(),
    });
    Ok((id, item))
}
