//! One span, as it is sent.

use std::borrow::Cow;

use super::context::SpanContext;

/// What somebody did, from when to when.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    pub(super) context: SpanContext,
    pub(super) parent: Option<[u8; 8]>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    /// In seconds since the epoch.
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) attributes: Attributes,
    /// Whether it failed.
    pub(super) is_error: bool,
}

/// Who does something for whom, by the numbers of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// What is told of a span.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Attributes(pub(super) Vec<(&'static str, Value)>);

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(Cow<'static, str>),
    Integer(i64),
    Number(f64),
    Texts(Vec<String>),
}

impl Attributes {
    pub(super) fn text(&mut self, name: &'static str, text: impl Into<Cow<'static, str>>) {
        self.0.push((name, Value::Text(text.into())));
    }

    /// The same, where there is something to tell.
    pub(super) fn maybe(&mut self, name: &'static str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text.to_owned());
        }
    }

    pub(super) fn count(&mut self, name: &'static str, count: u64) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.0.push((name, Value::Integer(count)));
    }

    pub(super) fn number(&mut self, name: &'static str, number: f64) {
        self.0.push((name, Value::Number(number)));
    }

    pub(super) fn texts(&mut self, name: &'static str, texts: Vec<String>) {
        self.0.push((name, Value::Texts(texts)));
    }
}
