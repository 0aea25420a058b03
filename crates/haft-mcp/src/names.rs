//! What a server is called, and what its tools are called here.
//!
//! A name is a pure function of a label and a raw name. Which other servers exist, the order in which
//! they connect and the time of day never show in it.

use std::fmt;

use haft_core::{MAX_NAME_BYTES, NameError, Namespace, ToolName, cut};
use sha2::{Digest, Sha256};

/// The `_` and the twelve digits behind a shortened name.
const HASH_BYTES: usize = 13;

/// The longest label of a request.
const MAX_REQUEST_LABEL_BYTES: usize = 64;

/// What haft calls a server: from configuration or from a request, never from the server itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    text: Box<str>,
    /// What stands in front of a tool's name.
    prefix: Box<str>,
    /// Whether `prefix__tool` can be had without a hash.
    plain: bool,
}

impl Label {
    /// A label of the operator: `^[A-Za-z][A-Za-z0-9-]*(_[A-Za-z0-9-]+)*$`, at most 24 characters,
    /// not `haft`.
    ///
    /// ```
    /// use haft_mcp::Label;
    /// assert!(Label::new("file-system").is_ok());
    /// assert!(Label::new("file__system").is_err());
    /// ```
    pub fn new(text: impl AsRef<str>) -> Result<Self, NameError> {
        let namespace = Namespace::new(text)?;
        Ok(Self {
            text: namespace.as_str().into(),
            prefix: namespace.as_str().into(),
            plain: true,
        })
    }

    /// A label that a request gives: any 1 to 64 of `A-Z a-z 0-9 _ -`. One outside the operator's
    /// pattern is shortened in front of its tools, and their names always carry a hash.
    ///
    /// ```
    /// use haft_mcp::{Label, exposed_name};
    /// let label = Label::from_request("2_fast")?;
    /// assert!(exposed_name(&label, "go", 64).as_str().starts_with("m2_fast__go_"));
    /// # Ok::<(), haft_core::NameError>(())
    /// ```
    pub fn from_request(text: &str) -> Result<Self, NameError> {
        if let Ok(label) = Self::new(text) {
            return Ok(label);
        }
        let is_legal = (1..=MAX_REQUEST_LABEL_BYTES).contains(&text.len())
            && text.bytes().all(|byte| is_name_character(byte.into()));
        if !is_legal {
            return Err(NameError::InvalidName(cut(text)));
        }
        let mut prefix = text.to_owned();
        if !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
            prefix.insert(0, 'm');
        }
        prefix.truncate(Namespace::MAX_BYTES);
        Ok(Self {
            text: text.into(),
            prefix: prefix.into(),
            plain: false,
        })
    }

    /// The label as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The name under which a model sees a server's tool: at most `limit` bytes (of the 64 that every
/// provider takes), `^[A-Za-z][A-Za-z0-9_-]*$`. Never parse it back; look it up.
///
/// ```
/// use haft_mcp::{Label, exposed_name};
/// let files = Label::new("files")?;
/// assert_eq!(exposed_name(&files, "read", 64).as_str(), "files__read");
/// assert_eq!(exposed_name(&files, "read.all", 64).as_str().len(), "files__read_all".len() + 13);
/// # Ok::<(), haft_core::NameError>(())
/// ```
pub fn exposed_name(label: &Label, raw: &str, limit: usize) -> ToolName {
    let safe = sanitised(raw);
    let candidate = format!("{}__{safe}", label.prefix);
    let is_plain = label.plain && safe == raw && !raw.is_empty();
    if is_plain && candidate.len() <= limit.min(MAX_NAME_BYTES) {
        legal(&candidate)
    } else {
        exposed_name_hashed(label, raw, limit)
    }
}

/// The form with a hash: also used where the plain form already belongs to another tool.
pub fn exposed_name_hashed(label: &Label, raw: &str, limit: usize) -> ToolName {
    let mut name = format!("{}__{}", label.prefix, sanitised(raw));
    // Room for one letter and the hash is always left.
    let limit = limit.clamp(HASH_BYTES + 1, MAX_NAME_BYTES);
    name.truncate(limit - HASH_BYTES);
    let mut hash = Sha256::new();
    hash.update(label.text.as_bytes());
    hash.update(b"\0");
    hash.update(raw.as_bytes());
    name.push('_');
    for byte in &hash.finalize()[..6] {
        use fmt::Write as _;
        // Writing to a `String` cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    legal(&name)
}

fn legal(name: &str) -> ToolName {
    // Of legal characters and of legal length by construction; `import` leaves such a name alone.
    ToolName::import(name)
}

fn sanitised(raw: &str) -> String {
    let safe = |character| {
        if is_name_character(character) {
            character
        } else {
            '_'
        }
    };
    raw.chars().map(safe).collect()
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_those_of_a_namespace() {
        let label = Label::new("files").unwrap();
        let namespace = Namespace::new("files").unwrap();
        for raw in [
            "read",
            "a.b",
            "",
            "é",
            &"x".repeat(57),
            &"x".repeat(58),
            &"y".repeat(300),
        ] {
            let expected = ToolName::in_namespace(&namespace, raw);
            assert_eq!(exposed_name(&label, raw, 64), expected, "{raw}");
        }
    }

    #[test]
    fn a_request_may_use_other_labels_and_then_always_has_a_hash() {
        for text in ["haft", "a__b", "a_", "_", "9", "-x", &"l".repeat(64)] {
            let label = Label::from_request(text).unwrap();
            assert_eq!(label.as_str(), text);
            let name = exposed_name(&label, "go", 64);
            let (_, hash) = name.as_str().rsplit_once('_').unwrap();
            assert_eq!(hash.len(), 12, "{name}");
        }
        for text in ["", "a b", "ä", &"l".repeat(65)] {
            assert!(Label::from_request(text).is_err(), "{text}");
        }
        assert_eq!(
            Label::from_request("files").unwrap(),
            Label::new("files").unwrap()
        );
    }

    fn labels() -> impl Strategy<Value = Label> {
        let any_label = "[A-Za-z0-9_-]{1,64}";
        prop_oneof![
            "[A-Za-z][A-Za-z0-9-]{0,9}(_[A-Za-z0-9-]{1,4}){0,2}",
            any_label
        ]
        .prop_map(|text| Label::from_request(&text).unwrap())
    }

    fn raws() -> impl Strategy<Value = String> {
        prop_oneof![
            "[A-Za-z0-9_.-]{0,20}",
            "[a-b_.]{0,4}",
            "[a-z_]{50,130}",
            any::<String>()
        ]
    }

    proptest! {
        #[test]
        fn every_name_is_short_enough_and_legal(label in labels(), raw in raws(), limit in 14_usize..80) {
            for name in [exposed_name(&label, &raw, limit), exposed_name_hashed(&label, &raw, limit)] {
                prop_assert!(name.as_str().len() <= limit.min(64), "{}", name);
                prop_assert!(name.as_str().starts_with(|it: char| it.is_ascii_alphabetic()));
                prop_assert!(ToolName::new(name.as_str()).is_ok());
            }
        }

        #[test]
        fn different_tools_have_different_names(
            tools in proptest::collection::hash_set((labels(), raws()), 2..40),
            limit in prop_oneof![Just(64_usize), Just(48)],
        ) {
            let mut seen: HashMap<ToolName, (Label, String)> = HashMap::new();
            for (label, raw) in tools {
                let name = exposed_name(&label, &raw, limit);
                let other = seen.insert(name.clone(), (label.clone(), raw.clone()));
                prop_assert!(other.is_none(), "{name}: {other:?} and {label} {raw}");
            }
        }

        #[test]
        fn neither_order_nor_company_changes_a_name(
            tools in proptest::collection::vec((labels(), raws()), 1..20),
            extra in (labels(), raws()),
        ) {
            let name = |tools: &mut dyn Iterator<Item = &(Label, String)>| -> BTreeMap<_, _> {
                tools.map(|(label, raw)| ((label.clone(), raw.clone()), exposed_name(label, raw, 64))).collect()
            };
            let forward = name(&mut tools.iter());
            let mut backward = name(&mut std::iter::once(&extra).chain(tools.iter().rev()));
            if !tools.contains(&extra) {
                backward.remove(&extra);
            }
            prop_assert_eq!(forward, backward);
        }
    }
}
