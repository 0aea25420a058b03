//! Which keys a manifest has, of what kind they are, and how everything else is told with its place.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Note;
use crate::diagnostic::did_you_mean;

/// What a key is.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    /// An address, which is written into the IR: no secret may be in it.
    Address,
    OneOf(&'static [&'static str]),
    /// Seconds: a number from 0 on.
    Seconds,
    /// A whole number from 0 on.
    Whole,
    Bool,
    TextList,
    /// Texts by name.
    Texts,
    /// A list of texts, or `true` for all.
    Grant,
    Table(&'static [Key]),
    Anything,
}

pub(super) type Key = (&'static str, Kind);

pub(super) const SECTIONS: &[&str] = &["project", "connections", "mcp", "agents", "permissions"];

pub(super) const PROJECT: &[Key] = &[
    ("name", Kind::Text),
    ("version", Kind::Text),
    ("entry", Kind::Text),
];

pub(super) const CONNECTION: &[Key] = &[
    (
        "provider",
        Kind::OneOf(&["openai", "anthropic", "google", "ollama", "custom", "mock"]),
    ),
    ("api_key_env", Kind::Text),
    ("base_url", Kind::Address),
    ("default_model", Kind::Text),
    ("timeout", Kind::Seconds),
    ("models", Kind::Texts),
    (
        "retry",
        Kind::Table(&[
            ("max_attempts", Kind::Whole),
            ("backoff", Kind::OneOf(&["none", "linear", "exponential"])),
            ("initial_delay_ms", Kind::Whole),
            ("max_delay_ms", Kind::Whole),
        ]),
    ),
    (
        "rate_limit",
        Kind::Table(&[
            ("requests_per_minute", Kind::Whole),
            ("tokens_per_minute", Kind::Whole),
            ("concurrent_requests", Kind::Whole),
        ]),
    ),
];

pub(super) const SERVER: &[Key] = &[
    ("transport", Kind::OneOf(&["stdio", "http", "sse"])),
    ("command", Kind::Text),
    ("url", Kind::Address),
    ("timeout", Kind::Seconds),
    ("env", Kind::Texts),
];

pub(super) const AGENT: &[Key] = &[
    ("transport", Kind::OneOf(&["stdio"])),
    ("command", Kind::Text),
    ("args", Kind::TextList),
    ("env", Kind::Texts),
    ("working_dir", Kind::Text),
    ("timeout", Kind::Seconds),
    ("params", Kind::Anything),
];

pub(super) const PERMISSIONS: &[Key] = &[
    ("fs", Kind::Grant),
    ("http", Kind::Grant),
    ("env", Kind::Grant),
    ("process", Kind::Bool),
];

/// A table of the manifest and where it is.
pub(super) struct Table<'t, 'd> {
    pub(super) name: &'t str,
    /// `connections.desk`.
    pub(super) path: String,
    pub(super) at: usize,
    pub(super) members: &'t DeTable<'d>,
}

impl Table<'_, '_> {
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.members.get(key).and_then(|it| it.get_ref().as_str())
    }
}

/// What is found while a manifest is read.
pub(super) struct Reader<'t> {
    text: &'t str,
    problems: Vec<(usize, Note)>,
    warnings: Vec<(usize, Note)>,
}

fn sorted(mut list: Vec<(usize, Note)>) -> Vec<Note> {
    list.sort_by_key(|(at, _)| *at);
    list.into_iter().map(|(_, note)| note).collect()
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }

    pub(super) fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Everything that was noted, in the order of the file.
    pub(super) fn sorted(&mut self) -> Vec<Note> {
        let mut all = std::mem::take(&mut self.problems);
        all.append(&mut self.warnings);
        sorted(all)
    }

    fn note(&self, at: usize, text: String) -> (usize, Note) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |it| it + 1);
        let column = before[start..].chars().count() + 1;
        (at, Note { line, column, text })
    }

    /// Something that keeps the manifest from being used.
    pub(super) fn problem(&mut self, at: usize, text: String) {
        let note = self.note(at, text);
        self.problems.push(note);
    }

    /// A key that must be there.
    pub(super) fn require(&mut self, table: &Table<'_, '_>, key: &str) {
        if !table.members.contains_key(key) {
            self.problem(table.at, format!("`{}.{key}` is missing", table.path));
        }
    }

    /// Warns of keys that are not known.
    pub(super) fn known(&mut self, path: &str, table: &DeTable<'_>, known: &[&'static str]) {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let near = match name {
                "api_key" | "key" | "token" if known.contains(&"api_key_env") => {
                    "; a key stays in the environment: name its variable in `api_key_env`"
                        .to_owned()
                }
                _ => did_you_mean(name, known.iter().copied())
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?")),
            };
            let text = if path.is_empty() {
                format!("unknown key or section `{name}`{near}")
            } else {
                format!("unknown key `{path}.{name}`{near}")
            };
            let note = self.note(key.span().start, text);
            self.warnings.push(note);
        }
    }

    /// A section, if it is there and a table.
    pub(super) fn section<'a, 'd>(
        &mut self,
        table: &'a DeTable<'d>,
        name: &str,
    ) -> Option<Table<'a, 'd>> {
        let (key, value) = table.get_key_value(name)?;
        self.table(key, value, "")
    }

    fn table<'a, 'd>(
        &mut self,
        key: &'a Spanned<std::borrow::Cow<'d, str>>,
        value: &'a Spanned<DeValue<'d>>,
        outer: &str,
    ) -> Option<Table<'a, 'd>> {
        let name: &str = key.get_ref();
        let path = match outer {
            "" => name.to_owned(),
            outer => format!("{outer}.{name}"),
        };
        let Some(table) = value.get_ref().as_table() else {
            self.wrong(value, &path, "is a table");
            return None;
        };
        Some(Table {
            name,
            path,
            at: key.span().start,
            members: table,
        })
    }

    /// The tables of a section, in the order of the file.
    pub(super) fn entries<'a, 'd>(
        &mut self,
        table: &'a DeTable<'d>,
        name: &str,
    ) -> Vec<Table<'a, 'd>> {
        let Some(section) = self.section(table, name) else {
            return Vec::new();
        };
        let mut list: Vec<_> = section.members.iter().collect();
        list.sort_by_key(|(key, _)| key.span().start);
        let entries = list
            .into_iter()
            .filter_map(|(key, value)| self.table(key, value, name));
        entries.collect()
    }

    /// Looks at every member of a table.
    pub(super) fn members(&mut self, table: &Table<'_, '_>, keys: &'static [Key]) {
        let names: Vec<&str> = keys.iter().map(|(key, _)| *key).collect();
        self.known(&table.path, table.members, &names);
        for (key, value) in table.members {
            let name: &str = key.get_ref();
            if let Some((_, kind)) = keys.iter().find(|(key, _)| *key == name) {
                self.member(&format!("{}.{name}", table.path), value, *kind, key);
            }
        }
    }

    fn member(
        &mut self,
        path: &str,
        value: &Spanned<DeValue<'_>>,
        kind: Kind,
        key: &Spanned<std::borrow::Cow<'_, str>>,
    ) {
        let found = value.get_ref();
        let is_texts = |list: &[Spanned<DeValue<'_>>]| list.iter().all(|it| it.get_ref().is_str());
        let (fine, wanted) = match kind {
            Kind::Anything => return,
            Kind::Text | Kind::Address => (found.is_str(), "is a string"),
            Kind::Bool => (found.is_bool(), "is `true` or `false`"),
            Kind::Whole => (
                number(found).is_some_and(|it| it >= 0.0 && found.is_integer()),
                "is a whole number from 0 on",
            ),
            Kind::Seconds => (
                number(found).is_some_and(|it| it >= 0.0),
                "is a number of seconds",
            ),
            Kind::TextList => (
                found.as_array().is_some_and(|list| is_texts(list)),
                "is a list of strings",
            ),
            Kind::Grant => (
                found.is_bool() || found.as_array().is_some_and(|list| is_texts(list)),
                "is a list of strings, or `true` for all",
            ),
            Kind::Texts => return self.texts(path, value),
            Kind::OneOf(words) => return self.one_of(path, value, words),
            Kind::Table(keys) => {
                let Some(inner) = found.as_table() else {
                    return self.wrong(value, path, "is a table");
                };
                let inner = Table {
                    name: "",
                    path: path.to_owned(),
                    at: key.span().start,
                    members: inner,
                };
                return self.members(&inner, keys);
            }
        };
        if !fine {
            self.wrong(value, path, wanted);
        } else if matches!(kind, Kind::Address) && found.as_str().is_some_and(holds_secret) {
            let text = format!(
                "`{path}` holds a user or password: put a key into the environment and name it in `api_key_env`"
            );
            self.problem(value.span().start, text);
        }
    }

    fn texts(&mut self, path: &str, value: &Spanned<DeValue<'_>>) {
        let Some(table) = value.get_ref().as_table() else {
            return self.wrong(value, path, "is a table of strings");
        };
        for (key, value) in table {
            if !value.get_ref().is_str() {
                self.wrong(value, &format!("{path}.{}", key.get_ref()), "is a string");
            }
        }
    }

    fn one_of(&mut self, path: &str, value: &Spanned<DeValue<'_>>, words: &'static [&'static str]) {
        let Some(word) = value.get_ref().as_str() else {
            return self.wrong(value, path, "is a string");
        };
        if words.contains(&word) {
            return;
        }
        let near = did_you_mean(word, words.iter().copied())
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        let text = format!("`{path}` is none of {}{near}", words.join(", "));
        self.problem(value.span().start, text);
    }

    /// A value of another kind. What it is stays out of the message: it may be a key.
    fn wrong(&mut self, value: &Spanned<DeValue<'_>>, path: &str, wanted: &str) {
        let found = match value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "`true` or `false`",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        // A number that is negative is a number all the same.
        let is_said = wanted.contains(found.trim_start_matches("a "));
        let text = if is_said {
            format!("`{path}` {wanted}")
        } else {
            format!("`{path}` {wanted}, and this is {found}")
        };
        self.problem(value.span().start, text);
    }
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(it) => {
            let whole = i64::from_str_radix(it.as_str(), it.radix()).ok()?;
            #[expect(clippy::cast_precision_loss, reason = "only its sign is looked at")]
            Some(whole as f64)
        }
        DeValue::Float(it) => it.as_str().parse::<f64>().ok().filter(|it| it.is_finite()),
        _ => None,
    }
}

/// Whether an address has a user or a password in it.
fn holds_secret(address: &str) -> bool {
    let (_, rest) = address.split_once("://").unwrap_or(("", address));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.contains('@')
}
