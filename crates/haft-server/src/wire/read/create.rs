//! The body of a request for a response, field by field (`open-responses.md` §1.2).

use serde_json::{Number, Value, json};

use super::fields::{Fields, invalid, missing};
use super::forms::{Decimal, Flag, Form as _, ListOf, Object, Text, TextUpTo, Whole, Word};
use super::items::read_input;
use super::options::{compact_threshold, read_metadata, reasoning, text_options};
use super::parameters::{ignored_members, refuse_foreign};
use super::{Door, Read, Vocabulary};
use crate::error::{ApiError, ErrorCode};
use crate::wire::request::{
    CreateRequest, Include, InputItem, RequestEcho, RequestTool, RequestToolKind, Truncation,
    WireChoice,
};

impl Door {
    /// Fields that mean nothing here and are let through whatever they hold.
    fn ignored(self) -> &'static [&'static str] {
        match self {
            Self::Http => &["generate", "stream_id"],
            Self::WebSocket => &["stream", "stream_options"],
            Self::Compact => &[
                "context_management",
                "frequency_penalty",
                "generate",
                "include",
                "max_output_tokens",
                "max_tool_calls",
                "metadata",
                "presence_penalty",
                "safety_identifier",
                "store",
                "stream_id",
                "stream_options",
                "temperature",
                "tool_choice",
                "top_logprobs",
                "top_p",
                "truncation",
            ],
            Self::InputTokens => &[
                "background",
                "context_management",
                "frequency_penalty",
                "generate",
                "include",
                "max_output_tokens",
                "max_tool_calls",
                "metadata",
                "presence_penalty",
                "prompt_cache_key",
                "safety_identifier",
                "service_tier",
                "store",
                "stream",
                "stream_id",
                "stream_options",
                "temperature",
                "top_logprobs",
                "top_p",
            ],
        }
    }

    /// Fields that ask for something that is not to be had here.
    fn refused(self) -> &'static [&'static str] {
        match self {
            Self::Http | Self::InputTokens => &[],
            Self::WebSocket => &["background"],
            Self::Compact => &["background", "conversation", "stream"],
        }
    }
}

impl CreateRequest {
    /// Reads a body that came in by `door`.
    ///
    /// A `tool_choice` that names a tool which only the history could have loaded is let through:
    /// whoever knows the history checks it.
    pub(crate) fn read(body: Value, door: Door, words: &Vocabulary<'_>) -> Read<Self> {
        let mut ignored = ignored_members(&body, door);
        let mut fields = Fields::of(body, "")?;
        refuse_foreign(&fields)?;
        for field in door.ignored() {
            fields.take(field);
        }
        for field in door.refused() {
            if fields
                .take(field)
                .is_some_and(|value| value != json!(false))
            {
                return Err(refused(field, door));
            }
        }
        let mut request = read_fields(&mut fields, words)?;
        ignored.extend(fields.names_left().map(str::to_owned));
        request.ignored = ignored;
        request.check_context(door)?;
        request.check_state()?;
        request.check_search()?;
        request.check_choice()?;
        Ok(request)
    }

    fn check_context(&self, door: Door) -> Read<()> {
        if door == Door::Compact && self.model.is_none() {
            return Err(missing("model", "name the model that compacts"));
        }
        let has_input = self.input.as_ref().is_some_and(|input| !input.is_empty());
        let has_context =
            has_input || self.previous_response_id.is_some() || self.conversation.is_some();
        if has_context || !self.generate {
            return Ok(());
        }
        Err(missing(
            "input",
            match door {
                Door::Compact => "send a text, a list of items, or a `previous_response_id`",
                _ => {
                    "send a text, a list of items, or a `previous_response_id` or `conversation` \
                     to go on from"
                }
            },
        ))
    }

    fn check_state(&self) -> Read<()> {
        if self.previous_response_id.is_some() && self.conversation.is_some() {
            return Err(invalid(
                "previous_response_id",
                "`previous_response_id` and `conversation` both say what to go on from: send one \
                 of them",
            ));
        }
        if self.background && !self.store {
            return Err(invalid(
                "background",
                "`background` is true and `store` is false, but a response that nobody waits for \
                 must be stored: set `store` to true",
            ));
        }
        Ok(())
    }

    /// Deferred tools can only be found by a search.
    fn check_search(&self) -> Read<()> {
        let is_search =
            |tool: &RequestTool| matches!(tool.kind, RequestToolKind::ToolSearch { .. });
        let mut all = self.tools.iter().chain(self.loaded_tools());
        if all.any(is_search) {
            return Ok(());
        }
        match self.tools.iter().find_map(RequestTool::deferred_at) {
            None => Ok(()),
            Some(path) => Err(invalid(
                &path,
                format!(
                    "`{path}` is true, but there is no tool of type `tool_search` to find it \
                     with: add {{\"type\":\"tool_search\"}} to `tools`, or do not defer it"
                ),
            )),
        }
    }

    fn check_choice(&self) -> Read<()> {
        let is_whole_story = self.previous_response_id.is_none()
            && self.conversation.is_none()
            && self.loaded_tools().next().is_none()
            && !self.input.iter().flatten().any(|item| {
                matches!(item, InputItem::Reference { .. })
                    || matches!(item, InputItem::Item(record) if record.item.kind() == "compaction")
            });
        if is_whole_story {
            self.tool_choice.check_against(&self.tools)?;
        }
        Ok(())
    }

    /// The tools that items of this input load, in order.
    pub(crate) fn loaded_tools(&self) -> impl Iterator<Item = &RequestTool> {
        self.input.iter().flatten().flat_map(|item| match item {
            InputItem::Item(record) => record.tools.as_slice(),
            _ => &[],
        })
    }
}

fn refused(field: &str, door: Door) -> ApiError {
    let place = match door {
        Door::WebSocket => "on a WebSocket",
        _ => "here",
    };
    ApiError::new(
        ErrorCode::UnsupportedParameter,
        format!("`{field}` cannot be used {place}: leave it out"),
    )
    .at(field)
}

fn read_fields(fields: &mut Fields, words: &Vocabulary<'_>) -> Read<CreateRequest> {
    const ANY: u64 = u64::MAX;
    let penalty = Decimal {
        min: -2.0,
        max: 2.0,
    };
    let temperature = fields.get("temperature", Decimal { min: 0.0, max: 2.0 })?;
    let top_p = fields.get("top_p", Decimal { min: 0.0, max: 1.0 })?;
    let presence_penalty = fields.get("presence_penalty", penalty)?;
    let frequency_penalty = fields.get("frequency_penalty", penalty)?;
    let (tool_choice, choice_echo) = fields
        .get("tool_choice", |value, path: &str| {
            WireChoice::read(value, path, words)
        })?
        .unwrap_or((WireChoice::Auto, json!("auto")));
    fields.get("stream_options", Object)?;
    Ok(CreateRequest {
        model: fields.get("model", Text)?,
        input: fields.get("input", |value, path: &str| read_input(value, path, words))?,
        instructions: fields.get("instructions", Text)?,
        previous_response_id: fields.get("previous_response_id", Text)?,
        conversation: fields.get("conversation", conversation_id)?,
        tools: fields
            .get("tools", |value, path: &str| {
                RequestTool::read_declared(value, path, words)
            })?
            .unwrap_or_default(),
        tool_choice,
        parallel_tool_calls: fields.get("parallel_tool_calls", Flag)?.unwrap_or(true),
        max_tool_calls: fields.get("max_tool_calls", small(1, u32::MAX))?,
        max_output_tokens: fields.get("max_output_tokens", Whole { min: 16, max: ANY })?,
        echo: RequestEcho {
            temperature: number_or(temperature.as_ref(), 1),
            top_p: number_or(top_p.as_ref(), 1),
            presence_penalty: number_or(presence_penalty.as_ref(), 0),
            frequency_penalty: number_or(frequency_penalty.as_ref(), 0),
            tool_choice: choice_echo,
        },
        temperature: temperature.and_then(|number| number.as_f64()),
        top_p: top_p.and_then(|number| number.as_f64()),
        presence_penalty: presence_penalty.and_then(|number| number.as_f64()),
        frequency_penalty: frequency_penalty.and_then(|number| number.as_f64()),
        top_logprobs: fields.get("top_logprobs", small(0, 20))?,
        text: fields
            .get("text", |value, path: &str| text_options(value, path, words))?
            .unwrap_or_default(),
        reasoning: fields.get("reasoning", reasoning)?,
        include: Include::of(
            &fields
                .get("include", ListOf(Include::word))?
                .unwrap_or_default(),
        ),
        store: fields.get("store", Flag)?.unwrap_or(true),
        stream: fields.get("stream", Flag)?.unwrap_or(false),
        background: fields.get("background", Flag)?.unwrap_or(false),
        truncation: match fields.get("truncation", Word(&["auto", "disabled"]))? {
            Some("auto") => Truncation::Auto,
            _ => Truncation::Disabled,
        },
        metadata: fields.get("metadata", read_metadata)?.unwrap_or_default(),
        service_tier: fields.get("service_tier", Text)?,
        safety_identifier: match fields.get("safety_identifier", TextUpTo(64))? {
            None => user(fields),
            given => given,
        },
        prompt_cache_key: fields.get("prompt_cache_key", TextUpTo(64))?,
        compact_threshold: fields
            .get("context_management", compact_threshold)?
            .flatten(),
        stream_id: fields.get("stream_id", Text)?,
        generate: fields.get("generate", Flag)?.unwrap_or(true),
        ignored: Vec::new(),
    })
}

/// `user`, which `safety_identifier` has replaced. One that cannot be an identifier stays where it is.
fn user(fields: &mut Fields) -> Option<String> {
    const MAX_LENGTH: usize = 64;
    let user = fields.take("user")?;
    match user {
        Value::String(user) if user.chars().count() <= MAX_LENGTH => Some(user),
        other => {
            fields.put("user", other);
            None
        }
    }
}

/// A whole number of 32 bits.
fn small(min: u32, max: u32) -> impl Fn(Value, &str) -> Read<u32> {
    move |value, path| {
        let range = Whole {
            min: min.into(),
            max: max.into(),
        };
        let whole = range.read(value, path)?;
        Ok(u32::try_from(whole).unwrap_or(u32::MAX))
    }
}

fn number_or(given: Option<&Number>, default: i32) -> Value {
    given.map_or_else(|| default.into(), |number| Value::Number(number.clone()))
}

/// A conversation, by its id or as an object with one.
fn conversation_id(value: Value, path: &str) -> Read<String> {
    match value {
        Value::Object(_) => Fields::of(value, path)?.need("id", Text),
        Value::String(_) => Text.read(value, path),
        other => Err(super::fields::wrong_type(
            path,
            "an id or an object with an `id`",
            &other,
        )),
    }
}
