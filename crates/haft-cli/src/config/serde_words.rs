//! What serde says, in words for a person.

/// A name that nobody knows, and the names that would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unknown {
    /// `field` or `variant`.
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) known: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Key,
    Value,
}

/// What is said where one of some words is wanted and no text is found.
pub(super) const NO_WORD: &str = "wanted string or table";

/// Reads ``unknown field `x`, expected one of `a`, `b` ``; serde's only way to tell.
pub(super) fn unknown(message: &str) -> Option<Unknown> {
    let (kind, rest) = match message.strip_prefix("unknown field `") {
        Some(rest) => (Kind::Key, rest),
        None => (Kind::Value, message.strip_prefix("unknown variant `")?),
    };
    // The name may hold anything; what follows it holds no such words.
    let at = rest
        .rfind("`, expected ")
        .or_else(|| rest.rfind("`, there are no "))?;
    let (name, known) = rest.split_at(at);
    // The names stand between backticks: every other piece.
    let known = known[1..].split('`').skip(1).step_by(2);
    Some(Unknown {
        kind,
        name: name.to_owned(),
        known: known.map(str::to_owned).collect(),
    })
}

/// Other messages: without the value that was found, which may be a secret.
pub(super) fn reworded(message: &str) -> String {
    if message.ends_with("untagged enum HeaderSource") {
        return String::from("expected the header's value, or `{ env = \"VARIABLE\" }`");
    }
    if message == NO_WORD {
        return String::from("expected one of some words, in quotes");
    }
    for opening in ["invalid type: ", "invalid value: "] {
        let Some(rest) = message.strip_prefix(opening) else {
            continue;
        };
        let Some((found, expected)) = rest.rsplit_once(", expected ") else {
            continue;
        };
        let found = match found.split_once([' ', '`', '"']) {
            Some(("string", _)) => "text",
            Some(("integer", rest)) if rest.contains('-') => "a negative number",
            Some(("integer", _)) => "a whole number",
            Some(("floating", _)) => "a number with a point",
            Some(("boolean", _)) => "`true` or `false`",
            _ if found == "map" => "a table",
            _ if found == "sequence" => "a list",
            _ => "something else",
        };
        let expected = match expected {
            "a string" | "string" | "path string" => "text in quotes",
            "a sequence" => "a list",
            "a map" => "a table",
            "a boolean" => "`true` or `false`",
            "f64" | "f32" => "a number",
            "i64" | "i32" => "a whole number",
            "u64" | "u32" | "u16" | "u8" | "usize" => "a whole number, 0 or more",
            other if other.starts_with("struct ") => "a table",
            other => other,
        };
        return format!("expected {expected}, found {found}");
    }
    match message.strip_prefix("missing field ") {
        Some(key) => format!("the key {key} is missing"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Two {
        #[serde(rename = "first")]
        _first: Option<u8>,
        #[serde(rename = "second")]
        _second: Option<u8>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "nobody sees the colours")]
    enum Colour {
        Red,
        Green,
        Blue,
    }

    /// The words are serde's: if a newer one says it otherwise, this is where it is seen.
    #[test]
    fn the_words_of_serde_are_understood() {
        let error = serde_json::from_str::<Two>(r#"{"fi`, expected rst": 1}"#).unwrap_err();
        let error = error.to_string();
        let unknown_key = unknown(&error).unwrap();
        assert_eq!(unknown_key.kind, Kind::Key);
        assert_eq!(unknown_key.name, "fi`, expected rst");
        assert_eq!(unknown_key.known, ["first", "second"]);
        let error = serde_json::from_str::<Colour>(r#""Read""#).unwrap_err();
        let unknown_value = unknown(&error.to_string()).unwrap();
        assert_eq!(unknown_value.kind, Kind::Value);
        assert_eq!(unknown_value.known, ["Red", "Green", "Blue"]);
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_not_repeated() {
        let error = toml::from_str::<Two>("first = \"hunter2, expected x\"").unwrap_err();
        assert_eq!(
            reworded(error.message()),
            "expected a whole number, 0 or more, found text",
        );
    }
}
