//! How the model shall write, and what cannot be asked of a model behind an adapter.

use haft_core::ModelOptions;
use serde_json::{Map, Number, Value, json};

use crate::error::{ApiError, ErrorCode};
use crate::wire::TextFormat;
use crate::wire::read::fields::{Fields, invalid, wrong_type};
use crate::wire::read::forms::{Decimal, Flag, Form as _, ListOf, Object, Text, Whole, Word};
use crate::wire::read::{Read, Vocabulary, json_schema};

/// How many texts may end an answer.
const MAX_STOPS: usize = 4;

/// Refuses what no model behind an adapter could be asked, and what would be lost in silence.
pub(super) fn refuse(fields: &mut Fields) -> Read<()> {
    for (member, advice) in [
        ("functions", "declare them in `tools`"),
        ("function_call", "use `tool_choice`"),
        ("web_search_options", "leave it out"),
        ("audio", "leave it out"),
    ] {
        if fields.has(member) {
            let message = format!("`{member}` is not supported for this model: {advice}");
            return Err(ApiError::new(ErrorCode::UnsupportedParameter, message).at(member));
        }
    }
    let count = Whole { min: 1, max: 128 };
    if fields.get("n", count)?.is_some_and(|count| count > 1) {
        let message = "`n` is more than 1, but this model gives one answer at a time: ask again";
        return Err(unsupported("n", message));
    }
    let kinds = fields.get("modalities", ListOf(Text))?.unwrap_or_default();
    if kinds.iter().any(|kind| kind != "text") {
        let message =
            "`modalities` names more than `text`, which is all that this model answers in";
        return Err(unsupported("modalities", message));
    }
    Ok(())
}

fn unsupported(path: &str, message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::UnsupportedValue, message).at(path)
}

/// Reads the wishes that every protocol has words for.
pub(super) fn options(fields: &mut Fields, provider: &str) -> Read<ModelOptions> {
    const EFFORTS: Word = Word(&["none", "minimal", "low", "medium", "high", "xhigh", "max"]);
    let tokens = Whole {
        min: 1,
        max: u64::MAX,
    };
    let newer = fields.get("max_completion_tokens", tokens)?;
    let older = fields.get("max_tokens", tokens)?;
    let mut decimal = |key: &str, min: f64, max: f64| {
        let number = fields.get(key, Decimal { min, max })?;
        Ok::<_, ApiError>(number.as_ref().and_then(Number::as_f64))
    };
    let temperature = decimal("temperature", 0.0, 2.0)?;
    let top_p = decimal("top_p", 0.0, 1.0)?;
    let presence_penalty = decimal("presence_penalty", -2.0, 2.0)?;
    let frequency_penalty = decimal("frequency_penalty", -2.0, 2.0)?;
    let user = fields.get("user", Text)?;
    Ok(ModelOptions {
        max_output_tokens: newer.or(older),
        temperature,
        top_p,
        presence_penalty,
        frequency_penalty,
        top_logprobs: top_logprobs(fields)?,
        reasoning_effort: fields.get("reasoning_effort", EFFORTS)?.map(str::to_owned),
        verbosity: fields
            .get("verbosity", Word(&["low", "medium", "high"]))?
            .map(str::to_owned),
        safety_identifier: fields.get("safety_identifier", Text)?.or(user),
        prompt_cache_key: fields.get("prompt_cache_key", Text)?,
        service_tier: fields.get("service_tier", Text)?,
        extra: extra(fields, provider)?,
        ..ModelOptions::default()
    })
}

fn top_logprobs(fields: &mut Fields) -> Read<Option<u32>> {
    let is_asked = fields.get("logprobs", Flag)? == Some(true);
    let count = fields.get("top_logprobs", Whole { min: 0, max: 20 })?;
    if count.is_some_and(|count| count > 0) && !is_asked {
        let message = "`top_logprobs` is given without `logprobs`: set `logprobs` to true";
        return Err(invalid("top_logprobs", message));
    }
    let count = count.map_or(0, |count| u32::try_from(count).unwrap_or(20));
    Ok(is_asked.then_some(count))
}

/// The wishes that only some providers have a place for, under their names there.
///
/// A seed and a bias only change how an answer is written, so they are left out, and reported, where the provider has
/// no member for them. Where an answer stops is what it says, so it is not.
fn extra(fields: &mut Fields, provider: &str) -> Read<Map<String, Value>> {
    let stops = fields.get("stop", stops)?.unwrap_or_default();
    let seed = fields.take("seed");
    let seed = seed.filter(Value::is_number);
    let mut extra = Map::new();
    match provider {
        "anthropic" if !stops.is_empty() => {
            extra.insert("stop_sequences".into(), json!(stops));
        }
        "ollama" => {
            let mut options = Map::new();
            if !stops.is_empty() {
                options.insert("stop".into(), json!(stops));
            }
            if let Some(seed) = &seed {
                options.insert("seed".into(), seed.clone());
            }
            if !options.is_empty() {
                extra.insert("options".into(), options.into());
            }
        }
        _ if !stops.is_empty() => {
            let message = "`stop` is not supported for this model: leave it out";
            return Err(ApiError::new(ErrorCode::UnsupportedParameter, message).at("stop"));
        }
        _ => {}
    }
    Ok(extra)
}

/// The texts at which the answer stops: one, or a list.
fn stops(value: Value, path: &str) -> Read<Vec<String>> {
    let stops = match value {
        Value::String(stop) => vec![stop],
        Value::Array(_) => ListOf(Text).read(value, path)?,
        other => return Err(wrong_type(path, "a string or a list of strings", &other)),
    };
    if stops.len() > MAX_STOPS {
        let message = format!(
            "`{path}` has {} entries: keep at most {MAX_STOPS}",
            stops.len()
        );
        return Err(invalid(path, message));
    }
    Ok(stops)
}

/// `response_format`.
pub(super) fn response_format(
    value: Value,
    path: &str,
    words: &Vocabulary<'_>,
) -> Read<TextFormat> {
    const FORMATS: Word = Word(&["text", "json_object", "json_schema"]);
    let mut fields = Fields::of(value, path)?;
    match fields.need("type", FORMATS)? {
        "text" => Ok(TextFormat::Text),
        "json_object" => Ok(TextFormat::JsonObject),
        _ => json_schema(fields.need("json_schema", Object)?, words),
    }
}
