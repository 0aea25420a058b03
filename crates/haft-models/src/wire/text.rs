//! Reading members that may be anything.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeOwned, Error, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The text of a member; none if it is something else.
pub(crate) fn text(raw: Option<&RawValue>) -> Option<String> {
    let json = raw?.get();
    let is_text = json.starts_with('"');
    is_text
        .then(|| serde_json::from_str::<Text<'_>>(json).ok())
        .flatten()
        .map(|text| text.0.into_owned())
}

/// The arguments of a call, or a piece of them: text as it is, anything else as its JSON, byte for
/// byte. Nothing for `null`.
pub(crate) fn arguments(raw: Option<&RawValue>) -> Option<String> {
    let raw = raw.filter(|raw| raw.get() != "null")?;
    Some(text(Some(raw)).unwrap_or_else(|| raw.get().to_owned()))
}

/// A member of this type; none if it is something else.
pub(crate) fn read<T: DeserializeOwned>(raw: Option<&RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// The token counts of an answer. Counts that cannot be read are not there: the answer itself is complete.
pub(crate) fn usage<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let raw = Option::<&RawValue>::deserialize(deserializer)?;
    let Some(raw) = raw else {
        return Ok(None);
    };
    let usage = serde_json::from_str(raw.get());
    if let Err(error) = &usage {
        tracing::debug!(%error, "ignoring `usage` that cannot be read");
    }
    Ok(usage.ok())
}

/// Text in which half a surrogate pair is replaced: servers cut between the halves.
#[derive(Debug, Default)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyText;

        impl<'de> Visitor<'de> for AnyText {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Text<'de>, E> {
                Ok(Text(String::from_utf8_lossy(bytes)))
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(
                    String::from_utf8_lossy(bytes).into_owned(),
                )))
            }
        }
        // As bytes, because as text half a pair is refused.
        deserializer.deserialize_bytes(AnyText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn text_is_read_and_half_a_pair_is_replaced() {
        assert_eq!(
            text(Some(&raw(r#""a\u00e9\ud83d\ude00\n""#))).unwrap(),
            "aé😀\n"
        );
        let half = text(Some(&raw(r#""a\ud83db""#))).unwrap();
        assert!(
            half.starts_with('a') && half.ends_with('b') && half.contains('\u{fffd}'),
            "{half}"
        );
        assert_eq!(text(Some(&raw("3"))), None);
    }

    #[test]
    fn arguments_keep_their_bytes() {
        assert_eq!(
            arguments(Some(&raw(r#"{"a" : 1.0}"#))).unwrap(),
            r#"{"a" : 1.0}"#
        );
        assert_eq!(
            arguments(Some(&raw(r#""{\"a\" : 1}""#))).unwrap(),
            r#"{"a" : 1}"#
        );
        assert_eq!(arguments(Some(&raw("null"))), None);
    }
}
