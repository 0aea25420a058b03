//! In which pieces an answer comes, and how often a step is good for.

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

/// The sizes of the deltas of a streamed answer, in characters.
///
/// In JSON: `"whole"`, a number, or a list of numbers.
///
/// ```
/// use haft_models::scripted::Pieces;
/// assert_eq!(Pieces::Each(2).cut("haft!"), ["ha", "ft", "!"]);
/// assert_eq!(Pieces::Sizes(vec![1, 0]).cut("haft"), ["h", "", "aft"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Pieces {
    /// Each text in one delta.
    #[default]
    Whole,
    /// So many characters in each; 0 counts as 1.
    Each(usize),
    /// These sizes one after the other, then the rest in one piece. 0 gives an empty delta.
    Sizes(Vec<usize>),
}

impl Pieces {
    /// The pieces of a text. Together they are the text; an empty text has none.
    pub fn cut<'t>(&self, text: &'t str) -> Vec<&'t str> {
        match self {
            _ if text.is_empty() => Vec::new(),
            Self::Whole => vec![text],
            Self::Each(size) => {
                let mut pieces = Vec::new();
                let mut rest = text;
                while !rest.is_empty() {
                    pieces.push(take(&mut rest, (*size).max(1)));
                }
                pieces
            }
            Self::Sizes(sizes) => {
                let mut rest = text;
                let mut pieces = Vec::new();
                for &size in sizes {
                    if rest.is_empty() {
                        break;
                    }
                    pieces.push(take(&mut rest, size));
                }
                if !rest.is_empty() {
                    pieces.push(rest);
                }
                pieces
            }
        }
    }
}

/// Takes so many characters from the front.
fn take<'t>(rest: &mut &'t str, characters: usize) -> &'t str {
    let at = rest
        .char_indices()
        .nth(characters)
        .map_or(rest.len(), |(at, _)| at);
    let (piece, left) = rest.split_at(at);
    *rest = left;
    piece
}

/// The sizes of the chunks in which a server sends its bytes.
///
/// In JSON: `"events"`, a number, or a list of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Chunks {
    /// Each event in one chunk.
    #[default]
    Events,
    /// So many bytes in each, across events and inside of characters; 0 counts as 1.
    Each(usize),
    /// These sizes one after the other, then the rest in one chunk.
    Sizes(Vec<usize>),
}

/// How often a step is good for.
///
/// In JSON: a number from 1, or `"forever"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// So many requests.
    Times(u32),
    /// Every request that reaches it. Such a step need not be used.
    Forever,
}

impl Default for Repeat {
    fn default() -> Self {
        Self::Times(1)
    }
}

/// One of the three forms: a word, a size, sizes.
enum Sizes {
    Word,
    Each(usize),
    List(Vec<usize>),
}

fn read_sizes<'de, D: Deserializer<'de>>(deserializer: D, word: &str) -> Result<Sizes, D::Error> {
    let json = Value::deserialize(deserializer)?;
    let size = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok());
    let read = match &json {
        Value::String(text) if text == word => Some(Sizes::Word),
        Value::Number(_) => size(&json).filter(|n| *n > 0).map(Sizes::Each),
        Value::Array(list) => list
            .iter()
            .map(size)
            .collect::<Option<_>>()
            .map(Sizes::List),
        _ => None,
    };
    read.ok_or_else(|| {
        let forms = format!("expected `{word}`, a size from 1, or a list of sizes");
        D::Error::custom(format!("{forms}, found `{json}`"))
    })
}

fn write_sizes<S: Serializer>(serializer: S, each: usize) -> Result<S::Ok, S::Error> {
    each.max(1).serialize(serializer)
}

impl<'de> Deserialize<'de> for Pieces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match read_sizes(deserializer, "whole")? {
            Sizes::Word => Self::Whole,
            Sizes::Each(size) => Self::Each(size),
            Sizes::List(sizes) => Self::Sizes(sizes),
        })
    }
}

impl Serialize for Pieces {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Whole => "whole".serialize(serializer),
            Self::Each(size) => write_sizes(serializer, *size),
            Self::Sizes(sizes) => sizes.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Chunks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match read_sizes(deserializer, "events")? {
            Sizes::Word => Self::Events,
            Sizes::Each(size) => Self::Each(size),
            Sizes::List(sizes) => Self::Sizes(sizes),
        })
    }
}

impl Serialize for Chunks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Events => "events".serialize(serializer),
            Self::Each(size) => write_sizes(serializer, *size),
            Self::Sizes(sizes) => sizes.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Repeat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Value::deserialize(deserializer)?;
        if json == "forever" {
            return Ok(Self::Forever);
        }
        let times = json.as_u64().and_then(|times| u32::try_from(times).ok());
        match times {
            Some(times) if times > 0 => Ok(Self::Times(times)),
            _ => Err(D::Error::custom(format!(
                "expected a number from 1 or `forever`, found `{json}`"
            ))),
        }
    }
}

impl Serialize for Repeat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Times(times) => times.serialize(serializer),
            Self::Forever => "forever".serialize(serializer),
        }
    }
}
