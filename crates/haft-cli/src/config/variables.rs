//! Configuration from environment variables: `HAFT_SERVER__LISTEN` is `listen` of `[server]`.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::complaint::{Complaint, Place};

const PREFIX: &str = "HAFT_";
const SEPARATOR: &str = "__";

/// A table made of variables, or one variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Variables {
    /// What one variable says.
    Value { name: String, text: String },
    /// What several say, under the next part of their names.
    Table(BTreeMap<String, Variables>),
}

impl Variables {
    /// None at all.
    pub(crate) fn none() -> Self {
        Self::Table(BTreeMap::new())
    }

    /// Those of these variables that configure haft; empty ones count as not set.
    pub(crate) fn from_environment(
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Complaint> {
        let mut given: Vec<(String, OsString)> = environment
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .filter(|(name, value)| !value.is_empty() && name.starts_with(PREFIX))
            .filter(|(name, _)| name.contains(SEPARATOR))
            .collect();
        // The same complaint every time.
        given.sort();
        let mut all = Self::none();
        for (name, value) in given {
            let place = Place::Variable { name: name.clone() };
            let Ok(text) = value.into_string() else {
                return Err(Complaint::new(place, "the value is not UTF-8"));
            };
            let key = name[PREFIX.len()..].to_lowercase();
            let path: Vec<&str> = key.split(SEPARATOR).collect();
            if path.iter().any(|part| part.is_empty()) {
                return Err(Complaint::new(place, "a part of the name is empty")
                    .remedy("write `HAFT_TABLE__KEY`, such as `HAFT_SERVER__LISTEN`"));
            }
            all.insert(&path, name.clone(), text).map_err(|other| {
                let message = format!("`{other}` sets the same key");
                Complaint::new(place, message).remedy("set one of the two")
            })?;
        }
        Ok(all)
    }

    /// Puts a value at its place; if something is there, the name of it is the error.
    fn insert(&mut self, path: &[&str], name: String, text: String) -> Result<(), String> {
        let table = match self {
            Self::Table(table) => table,
            Self::Value { name, .. } => return Err(name.clone()),
        };
        match path {
            [] => Ok(()),
            [last] => {
                if let Some(there) = table.get(*last) {
                    return Err(there.some_name().to_owned());
                }
                table.insert((*last).to_owned(), Self::Value { name, text });
                Ok(())
            }
            [first, rest @ ..] => table
                .entry((*first).to_owned())
                .or_insert_with(Self::none)
                .insert(rest, name, text),
        }
    }

    /// What is under this key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Table(table) => table.get(key),
            Self::Value { .. } => None,
        }
    }

    /// The keys that there are.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let table = match self {
            Self::Table(table) => Some(table),
            Self::Value { .. } => None,
        };
        table
            .into_iter()
            .flat_map(|it| it.keys().map(String::as_str))
    }

    /// The name of a variable of these, as it is in the environment.
    pub(crate) fn some_name(&self) -> &str {
        match self {
            Self::Value { name, .. } => name,
            Self::Table(table) => table.values().next().map_or("", Self::some_name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Variables, String> {
        let variables = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        Variables::from_environment(variables).map_err(|complaint| complaint.to_string())
    }

    #[test]
    fn names_become_paths() {
        let all = read(&[
            ("HAFT_SERVER__LISTEN", "a"),
            ("HAFT_LOOP__RETRY__ATTEMPTS", "2"),
            ("HAFT_SERVER__DATA_DIR", ""),
            ("HAFT_LOG", "debug"),
            ("OTHER_SERVER__LISTEN", "b"),
        ])
        .unwrap();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["loop", "server"]);
        let server: Vec<_> = all.get("server").unwrap().keys().collect();
        assert_eq!(server, ["listen"], "what is empty is not set");
        let attempts = all.get("loop").and_then(|it| it.get("retry"));
        assert_eq!(attempts.unwrap().some_name(), "HAFT_LOOP__RETRY__ATTEMPTS");
    }

    #[test]
    fn two_variables_for_one_key_are_refused() {
        let error = read(&[("HAFT_LOOP__A", "1"), ("HAFT_LOOP__A__B", "1")]).unwrap_err();
        assert!(
            error.starts_with("HAFT_LOOP__A__B: `HAFT_LOOP__A` sets"),
            "{error}"
        );
        let error = read(&[("HAFT_LOOP__a", "1"), ("HAFT_LOOP__A", "1")]).unwrap_err();
        assert!(error.contains("sets the same key"), "{error}");
        let error = read(&[("HAFT___A", "1")]).unwrap_err();
        assert!(error.contains("is empty"), "{error}");
    }
}
