//! The plain parse: text to JSON by the letter, with the few readings that lose nothing.
//!
//! A byte-order mark and surrounding blanks go, empty text and `null` are `{}`, one level of double
//! encoding is taken off, and text whose only quotes are single ones is read once with double
//! ones. Nothing else is tried here.
//!
//! Whole numbers are kept exactly or refused: one beyond 64 bits would silently become a double,
//! `1e400` infinity and `1e-400` zero; all three are errors. Decimals are the nearest double. The
//! text as it came is always in the record. (`serde_json`'s `arbitrary_precision` is not used: as a
//! feature of a shared dependency it would change how every crate of the user reads numbers.)

use std::cell::RefCell;
use std::fmt;

use haft_core::{ErrorCode, HydrationError, RawArguments, Stage, cut, value_depth_exceeds};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use crate::text::{Root, is_truncated};

/// The deepest nesting of arguments.
pub const MAX_DEPTH: usize = 128;

/// The largest arguments, in bytes.
pub const MAX_BYTES: usize = 1024 * 1024;

/// Every integer below is a double exactly.
const EXACT_INTEGERS: f64 = 9_007_199_254_740_992.0;

/// Why a text is no argument object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParseFailure {
    pub(crate) code: ErrorCode,
    /// The text that failed: the inner one, where the arguments were encoded twice.
    pub(crate) text: Option<String>,
    /// What was read, where it is JSON and no object.
    pub(crate) value: Option<Value>,
}

impl From<ErrorCode> for Box<ParseFailure> {
    fn from(code: ErrorCode) -> Self {
        Self::new(ParseFailure {
            code,
            text: None,
            value: None,
        })
    }
}

impl ParseFailure {
    pub(crate) fn to_error(&self) -> HydrationError {
        HydrationError {
            stage: Stage::Parse,
            message: message(&self.code),
            detail: self.code.clone(),
        }
    }
}

fn message(code: &ErrorCode) -> String {
    match code {
        ErrorCode::InvalidJson { line, column } => {
            format!("arguments are not valid JSON (line {line}, column {column})")
        }
        ErrorCode::Truncated => "the arguments were cut off".into(),
        ErrorCode::NotAnObject => "arguments must be a JSON object".into(),
        ErrorCode::DuplicateKey { key } => {
            format!("key '{}' occurs twice in the arguments", cut(key))
        }
        ErrorCode::TooDeep => format!("arguments are nested deeper than {MAX_DEPTH}"),
        ErrorCode::TooLarge => format!("arguments are larger than {MAX_BYTES} bytes"),
        ErrorCode::NumberOutOfRange => {
            "the arguments hold a number that cannot be kept exactly".into()
        }
        other => format!("arguments could not be read: {other:?}"),
    }
}

/// Parses arguments as they arrived.
pub(crate) fn parse_arguments(raw: &RawArguments, root: Root) -> Result<Value, Box<ParseFailure>> {
    match raw {
        RawArguments::Text(text) => parse_text(text, root),
        RawArguments::Json(Value::String(text)) if root == Root::Object => parse_text(text, root),
        RawArguments::Json(value) => check_value(value, root),
    }
}

fn parse_text(text: &str, root: Root) -> Result<Value, Box<ParseFailure>> {
    if text.len() > MAX_BYTES {
        return Err(ErrorCode::TooLarge.into());
    }
    let trimmed = text.strip_prefix('\u{feff}').unwrap_or(text).trim();
    if trimmed.is_empty() || (trimmed == "null" && root == Root::Object) {
        return Ok(Value::Object(Map::new()));
    }
    match (parse_with_single_quotes(trimmed)?, root) {
        (Value::String(inner), Root::Object) => parse_encoded(&inner),
        (value, root) => check_root(value, root),
    }
}

/// The second level of double encoding.
fn parse_encoded(inner: &str) -> Result<Value, Box<ParseFailure>> {
    let value = parse_with_single_quotes(inner.trim());
    match value {
        Ok(value) => check_root(value, Root::Object),
        Err(mut failure) => {
            failure.text = Some(inner.to_owned());
            Err(failure)
        }
    }
}

fn parse_with_single_quotes(text: &str) -> Result<Value, Box<ParseFailure>> {
    parse_strict(text).or_else(|failure| {
        let readable = matches!(failure.code, ErrorCode::InvalidJson { .. })
            && text.contains('\'')
            && !text.contains('"');
        match readable.then(|| parse_strict(&with_double_quotes(text))) {
            Some(Ok(value)) => Ok(value),
            _ => Err(failure),
        }
    })
}

fn with_double_quotes(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\'' => result.push('"'),
            '\\' => match characters.next() {
                Some('\'') => result.push('\''),
                Some(escaped) => result.extend(['\\', escaped]),
                None => result.push('\\'),
            },
            other => result.push(other),
        }
    }
    result
}

fn check_value(value: &Value, root: Root) -> Result<Value, Box<ParseFailure>> {
    if value_depth_exceeds(value, MAX_DEPTH) {
        return Err(ErrorCode::TooDeep.into());
    }
    if value.is_null() && root == Root::Object {
        return Ok(Value::Object(Map::new()));
    }
    if value.to_string().len() > MAX_BYTES {
        return Err(ErrorCode::TooLarge.into());
    }
    check_root(value.clone(), root)
}

fn check_root(value: Value, root: Root) -> Result<Value, Box<ParseFailure>> {
    if root == Root::Any || value.is_object() {
        Ok(value)
    } else {
        let mut failure = Box::<ParseFailure>::from(ErrorCode::NotAnObject);
        failure.value = Some(value);
        Err(failure)
    }
}

/// JSON by the letter: no duplicate keys, bounded depth, numbers exact.
pub(crate) fn parse_strict(text: &str) -> Result<Value, Box<ParseFailure>> {
    let watch = RefCell::new(Watch::default());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // `Strict` counts the depth itself, to the documented bound.
    deserializer.disable_recursion_limit();
    let seed = Strict {
        depth: 0,
        watch: &watch,
    };
    let parsed = seed
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    let watch = watch.into_inner();
    match parsed {
        Ok(value) if watch.extreme_number && has_inexact_number(text) => {
            drop(value);
            Err(ErrorCode::NumberOutOfRange.into())
        }
        Ok(value) => Ok(value),
        Err(error) => Err(watch.fault.unwrap_or_else(|| classify(text, &error)).into()),
    }
}

fn classify(text: &str, error: &serde_json::Error) -> ErrorCode {
    if error.is_eof() || is_truncated(text) {
        ErrorCode::Truncated
    } else if error.to_string().starts_with("number out of range") {
        ErrorCode::NumberOutOfRange
    } else {
        ErrorCode::InvalidJson {
            line: error.line(),
            column: error.column(),
        }
    }
}

#[derive(Default)]
struct Watch {
    fault: Option<ErrorCode>,
    /// A double beyond the exact integers, or so small that digits may be lost.
    extreme_number: bool,
}

/// Builds a [`Value`], refusing what `serde_json` alone would let pass.
struct Strict<'w> {
    depth: usize,
    watch: &'w RefCell<Watch>,
}

impl Strict<'_> {
    fn inner<E: serde::de::Error>(&self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(self.fail(ErrorCode::TooDeep));
        }
        Ok(Self {
            depth: self.depth + 1,
            watch: self.watch,
        })
    }

    fn fail<E: serde::de::Error>(&self, code: ErrorCode) -> E {
        self.watch.borrow_mut().fault = Some(code);
        E::custom("refused")
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        if value.abs() >= EXACT_INTEGERS || value.abs() < f64::MIN_POSITIVE {
            self.watch.borrow_mut().extreme_number = true;
        }
        match serde_json::Number::from_f64(value) {
            Some(number) => Ok(Value::Number(number)),
            None => Err(self.fail(ErrorCode::NumberOutOfRange)),
        }
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self.inner()?)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            match members.entry(key) {
                Entry::Vacant(slot) => {
                    slot.insert(access.next_value_seed(self.inner()?)?);
                }
                Entry::Occupied(slot) => {
                    let key = cut(slot.key());
                    return Err(self.fail(ErrorCode::DuplicateKey { key }));
                }
            }
        }
        Ok(Value::Object(members))
    }
}

/// Whether a valid JSON text holds a number that a double or 64 bits would silently change: a whole
/// number too long for them, or one so small that it becomes zero.
fn has_inexact_number(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = &rest[at..];
        let end = if rest.starts_with('"') {
            end_of_string(rest)
        } else {
            let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            if is_inexact(&rest[..end]) {
                return true;
            }
            end
        };
        rest = &rest[end..];
    }
    false
}

fn is_inexact(number: &str) -> bool {
    /// Every decimal of so many digits survives a double.
    const DIGITS: usize = 15;
    let Ok(double) = number.parse::<f64>() else {
        return true;
    };
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.trim_matches(['-', '0', '.']).bytes();
    let digits = digits.filter(u8::is_ascii_digit).count();
    if !number.contains(['.', 'e', 'E']) {
        number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
    } else if double.abs() >= EXACT_INTEGERS {
        digits > DIGITS
    } else {
        double.abs() < f64::MIN_POSITIVE && digits > 0
    }
}

/// The length of the valid JSON string that `text` starts with.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
