//! Ids of questions about calls, which nobody else can make.
//!
//! A client that keeps its own items sends the question back together with the answer. Its id is bound
//! to whose question it is and what it asks, so that a yes is a yes to exactly that.

use std::collections::HashMap;
use std::fmt::Write as _;

use ring::hmac;
use subtle::ConstantTimeEq as _;

use crate::wire::new_id;

const PREFIX: &str = "mcpr";
const NONCE_DIGITS: usize = 16;
const MARK_BYTES: usize = 16;
/// Ids have 64 characters at most.
const PLACE_DIGITS: usize = 10;

/// Makes ids of questions of one owner, and knows them again.
#[derive(Debug, Clone)]
pub(crate) struct QuestionIds {
    /// Never empty; the newest is the last.
    keys: Vec<hmac::Key>,
    owner: String,
    /// Where the servers are that the request brings along, by their labels.
    places: HashMap<String, String>,
}

impl QuestionIds {
    pub(crate) fn new(keys: Vec<hmac::Key>, owner: &str) -> Self {
        let owner = owner.to_owned();
        let places = HashMap::new();
        Self {
            keys,
            owner,
            places,
        }
    }

    /// Questions about these servers of a request are about them, and about no other of the same label.
    pub(crate) fn at(mut self, places: impl IntoIterator<Item = (String, String)>) -> Self {
        self.places.extend(places);
        self
    }

    /// The id of a new question.
    pub(crate) fn next(&self, label: &str, name: &str, arguments: &str) -> String {
        let random = new_id("");
        let nonce: String = random
            .chars()
            .filter(|it| *it != '_')
            .take(NONCE_DIGITS)
            .collect();
        let marks = self.keys.last().map(|key| {
            let asked = self.mark(key, &nonce, &[label, name, arguments]);
            asked + &self.place_mark(key, &nonce, label)
        });
        format!("{PREFIX}_{nonce}{}", marks.unwrap_or_default())
    }

    /// Whether this question was asked here, of this owner.
    pub(crate) fn is_ours(&self, id: &str, label: &str, name: &str, arguments: &str) -> bool {
        self.has_mark(id, |key, nonce, mark| {
            let own = self.mark(key, nonce, &[label, name, arguments]);
            own.as_bytes().ct_eq(mark.0.as_bytes()).into()
        })
    }

    /// Whether it was asked about the server that this request has at this label.
    pub(crate) fn is_about(&self, id: &str, label: &str) -> bool {
        self.has_mark(id, |key, nonce, mark| {
            let own = self.place_mark(key, nonce, label);
            own.as_bytes().ct_eq(mark.1.as_bytes()).into()
        })
    }

    /// Whether the nonce and the two marks of an id are right for one of the keys.
    fn has_mark(
        &self,
        id: &str,
        is_right: impl Fn(&hmac::Key, &str, (&str, &str)) -> bool,
    ) -> bool {
        let rest = id
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_prefix('_'));
        let parts = rest.and_then(|rest| rest.split_at_checked(NONCE_DIGITS));
        let parts = parts.and_then(|(nonce, marks)| {
            let marks = marks.split_at_checked(2 * MARK_BYTES)?;
            Some((nonce, marks))
        });
        let Some((nonce, marks)) = parts else {
            return false;
        };
        self.keys.iter().any(|key| is_right(key, nonce, marks))
    }

    fn place_mark(&self, key: &hmac::Key, nonce: &str, label: &str) -> String {
        let place = self.places.get(label).map_or("", String::as_str);
        let mut mark = self.mark(key, nonce, &[place, label]);
        mark.truncate(PLACE_DIGITS);
        mark
    }

    fn mark(&self, key: &hmac::Key, nonce: &str, asked: &[&str]) -> String {
        let mut context = hmac::Context::with_key(key);
        for part in [self.owner.as_str(), nonce].iter().chain(asked) {
            // With its length in front, no part can pass for the beginning of the next.
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part.as_bytes());
        }
        let tag = context.sign();
        let mut mark = String::with_capacity(2 * MARK_BYTES);
        for byte in tag.as_ref().iter().take(MARK_BYTES) {
            // Writing to a `String` cannot fail.
            let _ = write!(mark, "{byte:02x}");
        }
        mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(seeds: &[u8], owner: &str) -> QuestionIds {
        let keys = seeds
            .iter()
            .map(|seed| hmac::Key::new(hmac::HMAC_SHA256, &[*seed; 32]));
        QuestionIds::new(keys.collect(), owner)
    }

    #[test]
    fn an_id_holds_for_exactly_what_was_asked() {
        let ours = ids(&[1], "a");
        let id = ours.next("air", "find", "{}");
        assert!(id.len() <= 64, "{id}");
        assert!(ours.is_ours(&id, "air", "find", "{}"));
        for (label, name, arguments) in [
            ("sea", "find", "{}"),
            ("air", "drop", "{}"),
            ("air", "find", r#"{"a":1}"#),
            ("airf", "ind", "{}"),
        ] {
            assert!(!ours.is_ours(&id, label, name, arguments));
        }
        assert!(!ids(&[1], "b").is_ours(&id, "air", "find", "{}"));
        assert!(!ids(&[2], "a").is_ours(&id, "air", "find", "{}"));
        assert!(!ours.is_ours("mcpr_1", "air", "find", "{}"));
        assert!(!ours.is_ours("mcpr_00000000000000é0", "air", "find", "{}"));
    }

    #[test]
    fn a_question_about_one_server_is_none_about_another_of_the_same_label() {
        let at = |place: &str| ids(&[1], "a").at([("air".to_owned(), place.to_owned())]);
        let id = at("https://air.example").next("air", "find", "{}");
        assert!(at("https://air.example").is_about(&id, "air"));
        assert!(!at("https://sea.example").is_about(&id, "air"));
        assert!(!ids(&[1], "a").is_about(&id, "air"));
        assert!(ids(&[1], "a").is_ours(&id, "air", "find", "{}"));
    }

    #[test]
    fn older_keys_are_known_and_no_id_comes_twice() {
        let id = ids(&[1], "a").next("air", "find", "{}");
        let rotated = ids(&[1, 2], "a");
        assert!(rotated.is_ours(&id, "air", "find", "{}"));
        assert_ne!(
            rotated.next("air", "find", "{}"),
            rotated.next("air", "find", "{}")
        );
    }
}
