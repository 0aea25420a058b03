//! What an answer says that it cost.

use haft_core::Usage;
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

use super::step::is_default;

/// What an answer says that it cost.
///
/// In JSON: absent, `"none"`, or an object with `input_tokens`, `output_tokens`,
/// `cached_input_tokens`, `cache_write_tokens` and `reasoning_tokens`, each optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StepUsage {
    /// 10 tokens in, 5 out.
    #[default]
    Usual,
    /// The provider says nothing.
    None,
    /// These.
    Tokens(Usage),
}

impl StepUsage {
    /// The tokens of one request, if they are told.
    pub fn tokens(self) -> Option<Usage> {
        let usage = match self {
            Self::None => return None,
            Self::Usual => Usage {
                input_tokens: 10,
                output_tokens: 5,
                ..Usage::default()
            },
            Self::Tokens(usage) => usage,
        };
        Some(Usage {
            requests: usage.requests.max(1),
            ..usage
        })
    }
}

/// The JSON form, which knows its keys.
#[derive(Default, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(clippy::struct_field_names, reason = "the names of the JSON form")]
struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
    cached_input_tokens: u64,
    #[serde(skip_serializing_if = "is_default")]
    cache_write_tokens: u64,
    reasoning_tokens: u64,
}

impl<'de> Deserialize<'de> for StepUsage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Value::deserialize(deserializer)?;
        if json == "none" {
            return Ok(Self::None);
        }
        if !json.is_object() {
            let found = format!("expected `none` or an object of tokens, found `{json}`");
            return Err(D::Error::custom(found));
        }
        let tokens: Tokens = serde_json::from_value(json).map_err(D::Error::custom)?;
        Ok(Self::Tokens(Usage {
            input_tokens: tokens.input_tokens,
            output_tokens: tokens.output_tokens,
            cache_write_tokens: tokens.cache_write_tokens,
            cached_input_tokens: tokens.cached_input_tokens,
            reasoning_tokens: tokens.reasoning_tokens,
            requests: 1,
        }))
    }
}

impl Serialize for StepUsage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(usage) = self.tokens() else {
            return "none".serialize(serializer);
        };
        let tokens = Tokens {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_input_tokens: usage.cached_input_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            reasoning_tokens: usage.reasoning_tokens,
        };
        tokens.serialize(serializer)
    }
}
