//! What a field can look like. Each form reads one value, or says what is wrong with it.

use haft_core::cut;
use serde_json::{Number, Value};

use super::Read;
use super::fields::{Fields, invalid, wrong_type};
use crate::error::{ApiError, ErrorCode};

/// The longest text of a message, of a part and of a tool's output, in characters.
pub(crate) const MAX_TEXT: usize = 10_485_760;

/// What a value must look like, and what it is read as. A function is a form too.
pub(crate) trait Form {
    /// What it is read as.
    type Output;

    /// Reads the value that stands at `path`.
    fn read(&self, value: Value, path: &str) -> Read<Self::Output>;
}

impl<T, F: Fn(Value, &str) -> Read<T>> Form for F {
    type Output = T;

    fn read(&self, value: Value, path: &str) -> Read<T> {
        self(value, path)
    }
}

/// Text of any length.
#[derive(Clone, Copy)]
pub(crate) struct Text;

impl Form for Text {
    type Output = String;

    fn read(&self, value: Value, path: &str) -> Read<String> {
        match value {
            Value::String(text) => Ok(text),
            other => Err(wrong_type(path, "a string", &other)),
        }
    }
}

/// Text of at most so many characters.
#[derive(Clone, Copy)]
pub(crate) struct TextUpTo(pub(crate) usize);

impl Form for TextUpTo {
    type Output = String;

    fn read(&self, value: Value, path: &str) -> Read<String> {
        let text = Text.read(value, path)?;
        // No text has more characters than bytes.
        if text.len() > self.0 && text.chars().count() > self.0 {
            return Err(too_long(path, self.0));
        }
        Ok(text)
    }
}

pub(super) fn too_long(path: &str, max: usize) -> ApiError {
    ApiError::new(
        ErrorCode::StringAboveMaxLength,
        format!("`{path}` has more than {max} characters: shorten it"),
    )
    .at(path)
}

/// An id that is never empty, of at most 64 characters.
#[derive(Clone, Copy)]
pub(crate) struct ShortId;

impl Form for ShortId {
    type Output = String;

    fn read(&self, value: Value, path: &str) -> Read<String> {
        let text = TextUpTo(64).read(value, path)?;
        if text.is_empty() {
            return Err(invalid(
                path,
                format!("`{path}` is empty: give it 1 to 64 characters"),
            ));
        }
        Ok(text)
    }
}

/// A name: 1 to 64 of `A-Z a-z 0-9 _ -`.
#[derive(Clone, Copy)]
pub(crate) struct Name;

impl Form for Name {
    type Output = String;

    fn read(&self, value: Value, path: &str) -> Read<String> {
        let name = TextUpTo(64).read(value, path)?;
        let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if name.is_empty() || !name.bytes().all(is_legal) {
            return Err(invalid(
                path,
                format!(
                    "`{path}` is `{name}`, which is no legal name: use 1 to 64 of the characters \
                     A-Z, a-z, 0-9, `_` and `-`"
                ),
            ));
        }
        Ok(name)
    }
}

/// One of some words.
#[derive(Clone, Copy)]
pub(crate) struct Word(pub(crate) &'static [&'static str]);

impl Form for Word {
    type Output = &'static str;

    fn read(&self, value: Value, path: &str) -> Read<&'static str> {
        let text = Text.read(value, path)?;
        let found = self.0.iter().find(|word| **word == text);
        found
            .copied()
            .ok_or_else(|| not_among(path, &text, self.0.iter().copied()))
    }
}

/// A word is none of those that are known.
pub(crate) fn not_among<'w>(
    path: &str,
    found: &str,
    words: impl Iterator<Item = &'w str>,
) -> ApiError {
    let words: Vec<_> = words.map(|word| format!("`{word}`")).collect();
    invalid(
        path,
        format!(
            "`{path}` is `{}`, which is not known: use one of {}",
            cut(found),
            words.join(", ")
        ),
    )
}

/// True or false.
#[derive(Clone, Copy)]
pub(crate) struct Flag;

impl Form for Flag {
    type Output = bool;

    fn read(&self, value: Value, path: &str) -> Read<bool> {
        match value {
            Value::Bool(flag) => Ok(flag),
            other => Err(wrong_type(path, "true or false", &other)),
        }
    }
}

/// A whole number in a range. `16.0` is one.
#[derive(Clone, Copy)]
pub(crate) struct Whole {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Form for Whole {
    type Output = u64;

    fn read(&self, value: Value, path: &str) -> Read<u64> {
        let Value::Number(number) = &value else {
            return Err(wrong_type(path, "a whole number", &value));
        };
        let float = number.as_f64().unwrap_or(f64::INFINITY);
        if number.as_u64().is_none() && float.is_finite() && float.fract() != 0.0 {
            return Err(ApiError::new(
                ErrorCode::InvalidType,
                format!("`{path}` must be a whole number, but is {number}"),
            )
            .at(path));
        }
        // A negative zero is a zero; what does not fit 64 bits is beyond every limit.
        let whole = number
            .as_u64()
            .or_else(|| format!("{}", float + 0.0).parse().ok());
        match whole {
            Some(whole) if whole > self.max => Err(above(path, number, &self.max)),
            Some(whole) if whole >= self.min => Ok(whole),
            None if float > 0.0 => Err(above(path, number, &self.max)),
            _ => Err(ApiError::new(
                ErrorCode::IntegerBelowMinValue,
                format!("`{path}` is {number}: it must be at least {}", self.min),
            )
            .at(path)),
        }
    }
}

/// A number in a range, as it was written.
#[derive(Clone, Copy)]
pub(crate) struct Decimal {
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Form for Decimal {
    type Output = Number;

    fn read(&self, value: Value, path: &str) -> Read<Number> {
        let Value::Number(number) = value else {
            return Err(wrong_type(path, "a number", &value));
        };
        let float = number.as_f64().unwrap_or(f64::INFINITY);
        if float > self.max {
            return Err(above(path, &number, &self.max));
        }
        if float < self.min {
            return Err(invalid(
                path,
                format!("`{path}` is {number}: it must be at least {}", self.min),
            ));
        }
        Ok(number)
    }
}

fn above(path: &str, found: &Number, max: &dyn std::fmt::Display) -> ApiError {
    ApiError::new(
        ErrorCode::DecimalAboveMaxValue,
        format!("`{path}` is {found}: it must be at most {max}"),
    )
    .at(path)
}

/// An object, to be read further.
#[derive(Clone, Copy)]
pub(crate) struct Object;

impl Form for Object {
    type Output = Fields;

    fn read(&self, value: Value, path: &str) -> Read<Fields> {
        Fields::of(value, path)
    }
}

/// A list of one form.
#[derive(Clone, Copy)]
pub(crate) struct ListOf<F>(pub(crate) F);

impl<F: Form> Form for ListOf<F> {
    type Output = Vec<F::Output>;

    fn read(&self, value: Value, path: &str) -> Read<Vec<F::Output>> {
        match value {
            Value::Array(entries) => entries
                .into_iter()
                .enumerate()
                .map(|(index, entry)| self.0.read(entry, &format!("{path}[{index}]")))
                .collect(),
            other => Err(wrong_type(path, "a list", &other)),
        }
    }
}
