//! The smaller objects of a request: `text`, `reasoning`, `include`, `metadata` and the like.

use haft_core::cut;
use serde_json::{Map, Value};

use super::fields::{Fields, invalid, missing, wrong_type};
use super::forms::{
    Form as _, ListOf, Name, Object, Text, TextUpTo, Whole, Word, not_among, too_long,
};
use super::{Read, Vocabulary};
use crate::wire::request::{Include, ReasoningOptions, TextFormat, TextOptions};

/// How much a client may note down about a response or a conversation.
const MAX_PAIRS: usize = 16;
const MAX_KEY: usize = 64;
const MAX_VALUE: usize = 512;

/// `metadata`: a few texts by name.
pub(super) fn read_metadata(value: Value, path: &str) -> Read<Map<String, Value>> {
    let Value::Object(pairs) = value else {
        return Err(wrong_type(path, "an object of strings", &value));
    };
    if pairs.len() > MAX_PAIRS {
        return Err(invalid(
            path,
            format!(
                "`{path}` has {} pairs: keep at most {MAX_PAIRS}",
                pairs.len()
            ),
        ));
    }
    let mut read = Map::with_capacity(pairs.len());
    for (key, value) in pairs {
        let place = format!("{path}.{}", cut(&key));
        if key.chars().count() > MAX_KEY {
            return Err(too_long(&place, MAX_KEY));
        }
        let text = TextUpTo(MAX_VALUE).read(value, &place)?;
        read.insert(key, text.into());
    }
    Ok(read)
}

/// `reasoning`; what else stands in it is kept.
pub(super) fn reasoning(value: Value, path: &str) -> Read<ReasoningOptions> {
    const EFFORTS: Word = Word(&["none", "minimal", "low", "medium", "high", "xhigh", "max"]);
    const SUMMARIES: Word = Word(&["auto", "concise", "detailed"]);
    let mut fields = Fields::of(value, path)?;
    let mut summary = fields.get("summary", SUMMARIES)?;
    // The former name, which `OpenAI` still takes.
    if let Some(former) = fields.get("generate_summary", SUMMARIES)? {
        fields.put("generate_summary", former.into());
        summary = summary.or(Some(former));
    }
    Ok(ReasoningOptions {
        effort: fields.get("effort", EFFORTS)?.map(str::to_owned),
        summary: summary.map(str::to_owned),
        extra: fields.rest(),
    })
}

/// `text`.
pub(super) fn text_options(value: Value, path: &str, words: &Vocabulary<'_>) -> Read<TextOptions> {
    let mut fields = Fields::of(value, path)?;
    Ok(TextOptions {
        format: fields
            .get("format", |value, path: &str| {
                text_format(value, path, words)
            })?
            .unwrap_or(TextFormat::Text),
        verbosity: fields
            .get("verbosity", Word(&["low", "medium", "high"]))?
            .map(str::to_owned),
    })
}

fn text_format(value: Value, path: &str, words: &Vocabulary<'_>) -> Read<TextFormat> {
    const FORMATS: Word = Word(&["text", "json_object", "json_schema"]);
    let mut fields = Fields::of(value, path)?;
    match fields.need("type", FORMATS)? {
        "text" => Ok(TextFormat::Text),
        "json_object" => Ok(TextFormat::JsonObject),
        _ => json_schema(fields, words),
    }
}

/// A format with a schema. Without one, which a client may send, any object will do.
pub(crate) fn json_schema(mut fields: Fields, words: &Vocabulary<'_>) -> Read<TextFormat> {
    let at = fields.at("schema");
    let name = fields.get("name", Name)?;
    let description = fields.get("description", Text)?;
    let strict = fields.get("strict", super::forms::Flag)?.unwrap_or(false);
    let Some(schema) = fields.take("schema") else {
        return Ok(TextFormat::JsonObject);
    };
    if !schema.is_object() {
        return Err(wrong_type(
            &at,
            "a JSON schema, which is an object",
            &schema,
        ));
    }
    words
        .schemas
        .compile(&schema)
        .map_err(|error| invalid(&at, format!("`{at}` is no usable JSON schema: {error}")))?;
    Ok(TextFormat::JsonSchema {
        name: name.unwrap_or_else(|| String::from("response")),
        description,
        schema,
        strict,
    })
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            format: TextFormat::Text,
            verbosity: None,
        }
    }
}

/// What `include` may name. Those without an effect belong to tools that are not here.
const INCLUDES: [&str; 8] = [
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
];

/// Those that belong to tools which a provider runs.
const PROVIDER_INCLUDES: [&str; 5] = [
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
];

impl Include {
    /// One entry of `include`, as a form.
    pub(crate) fn word(value: Value, path: &str) -> Read<&'static str> {
        let text = Text.read(value, path)?;
        INCLUDES
            .into_iter()
            .find(|word| *word == text)
            .ok_or_else(|| not_among(path, &text, INCLUDES.into_iter()))
    }

    /// What these entries ask for.
    pub(crate) fn of(words: &[&str]) -> Self {
        Self {
            encrypted_reasoning: words.contains(&INCLUDES[0]),
            logprobs: words.contains(&INCLUDES[1]),
            provider: (0..)
                .zip(PROVIDER_INCLUDES)
                .filter(|(_, value)| words.contains(value))
                .fold(0, |bits, (bit, _)| bits | 1 << bit),
        }
    }

    /// The values that belong to tools of a provider.
    pub(crate) fn provider_values(self) -> Vec<&'static str> {
        let values = (0..).zip(PROVIDER_INCLUDES);
        let asked = values.filter(|(bit, _)| self.provider >> bit & 1 == 1);
        asked.map(|(_, value)| value).collect()
    }
}

/// `context_management`: how many tokens are too many.
pub(super) fn compact_threshold(value: Value, path: &str) -> Read<Option<u64>> {
    let mut thresholds = ListOf(|value: Value, path: &str| {
        let mut fields = Object.read(value, path)?;
        fields.need("type", Word(&["compaction"]))?;
        let at = fields.at("compact_threshold");
        fields
            .get(
                "compact_threshold",
                Whole {
                    min: 1,
                    max: u64::MAX,
                },
            )?
            .ok_or_else(|| missing(&at, "say from how many tokens on to compact"))
    })
    .read(value, path)?;
    if thresholds.len() > 1 {
        return Err(invalid(
            path,
            format!("`{path}` has {} entries: keep one", thresholds.len()),
        ));
    }
    Ok(thresholds.pop())
}
