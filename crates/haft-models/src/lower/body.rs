//! The JSON body of a request, put together from pieces that are JSON already.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

/// Writes one JSON object. Members keep the order in which they are written: the same request gives
/// the same bytes.
///
/// Members that the caller adds as they are (`extra`) stand at the end and replace those of the same
/// name.
pub(crate) struct BodyWriter<'e> {
    bytes: Vec<u8>,
    extra: Vec<&'e Map<String, Value>>,
}

impl<'e> BodyWriter<'e> {
    /// An object that will end with these members. Of two with one name the later counts.
    pub(crate) fn new(extra: impl IntoIterator<Item = &'e Map<String, Value>>) -> Self {
        Self {
            bytes: Vec::with_capacity(4 * 1024),
            extra: extra.into_iter().collect(),
        }
    }

    /// Writes a member.
    pub(crate) fn member(&mut self, name: &str, value: impl Serialize) {
        if self.is_free(name) {
            self.name(name);
            self.value(&value);
        }
    }

    /// Writes a member if there is a value for it.
    pub(crate) fn optional(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.member(name, value);
        }
    }

    /// Writes a member whose value is JSON already.
    pub(crate) fn raw(&mut self, name: &str, json: &[u8]) {
        if self.is_free(name) {
            self.name(name);
            self.bytes.extend_from_slice(json);
        }
    }

    /// Writes a list of pieces that are JSON already.
    pub(crate) fn list<P: AsRef<[u8]>>(&mut self, name: &str, pieces: impl IntoIterator<Item = P>) {
        if !self.is_free(name) {
            return;
        }
        self.name(name);
        self.bytes.push(b'[');
        for (place, piece) in pieces.into_iter().enumerate() {
            if place > 0 {
                self.bytes.push(b',');
            }
            self.bytes.extend_from_slice(piece.as_ref());
        }
        self.bytes.push(b']');
    }

    /// The bytes.
    pub(crate) fn finish(mut self) -> Bytes {
        let extra = std::mem::take(&mut self.extra);
        for (place, members) in extra.iter().enumerate() {
            for (name, value) in *members {
                if !extra[place + 1..]
                    .iter()
                    .any(|later| later.contains_key(name))
                {
                    self.name(name);
                    self.value(value);
                }
            }
        }
        if self.bytes.is_empty() {
            self.bytes.push(b'{');
        }
        self.bytes.push(b'}');
        self.bytes.into()
    }

    fn is_free(&self, name: &str) -> bool {
        !self.extra.iter().any(|members| members.contains_key(name))
    }

    fn name(&mut self, name: &str) {
        self.bytes
            .push(if self.bytes.is_empty() { b'{' } else { b',' });
        self.value(name);
        self.bytes.push(b':');
    }

    fn value(&mut self, value: &(impl Serialize + ?Sized)) {
        self.bytes.extend_from_slice(&json(value));
    }
}

/// A value as JSON bytes; `null` for what has none, such as a map with keys that are no text.
pub(crate) fn json(value: &(impl Serialize + ?Sized)) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|_| b"null".to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_keep_their_order_and_extra_ones_win() {
        let always = json!({"top_k": 1, "seed": 1});
        let asked = json!({"model": "other", "seed": 2});
        let extra = [&always, &asked].map(|value| value.as_object().unwrap());
        let mut body = BodyWriter::new(extra);
        body.member("model", "m");
        body.optional("temperature", None::<f64>);
        body.raw("tools", b"[{}]");
        body.list("messages", ["{\"a\":1}", "{}"]);
        assert_eq!(
            body.finish(),
            r#"{"tools":[{}],"messages":[{"a":1},{}],"top_k":1,"model":"other","seed":2}"#
        );
        assert_eq!(BodyWriter::new([]).finish(), "{}");
    }
}
