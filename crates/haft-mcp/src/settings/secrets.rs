//! Where the secrets of a server are.

use std::io::Read as _;
use std::path::Path;

use super::VariableLookup;
use crate::secret::Secret;

/// How long a token in a file may be.
const MAX_TOKEN_BYTES: u64 = 16 * 1024;

/// The token in a file.
pub(super) fn token_in(file: &Path) -> Result<Secret, String> {
    let mut text = String::new();
    std::fs::File::open(file)
        .and_then(|file| file.take(MAX_TOKEN_BYTES).read_to_string(&mut text))
        .map_err(|error| format!("`{}`: {error}", file.display()))?;
    match text.trim() {
        "" => Err(format!("`{}` is empty", file.display())),
        token => Ok(Secret::new(token)),
    }
}

/// A text with its references replaced: `${NAME}` or `${env:NAME}` by the variable of that name,
/// `${NAME:-default}` by the default where the variable is not set or empty. `$${` stands for `${` itself.
pub(super) fn expand(mut text: &str, variables: VariableLookup<'_>) -> Result<String, String> {
    let mut expanded = String::new();
    while let Some((before, rest)) = text.split_once("${") {
        if let Some(literal) = before.strip_suffix('$') {
            expanded.push_str(literal);
            expanded.push_str("${");
            text = rest;
            continue;
        }
        let Some((reference, behind)) = rest.split_once('}') else {
            return Err(
                "`${` has no `}`: close it, or write `$${` for the characters themselves".into(),
            );
        };
        let reference = reference.strip_prefix("env:").unwrap_or(reference);
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (reference, None),
        };
        let value = match (variables(name), default) {
            (Some(value), None) => value,
            (Some(value), Some(_)) if !value.is_empty() => value,
            (_, Some(default)) => default.to_owned(),
            (None, None) => {
                let name = haft_core::cut(name);
                return Err(format!("the variable `{name}` is not set: set it"));
            }
        };
        expanded.push_str(before);
        expanded.push_str(&value);
        text = behind;
    }
    expanded.push_str(text);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_every_client_are_expanded() {
        let variables = |name: &str| match name {
            "SET" => Some("value".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        for (text, expected) in [
            ("a ${SET} b", "a value b"),
            ("${env:SET}", "value"),
            ("${SET:-other}", "value"),
            ("${EMPTY:-other}", "other"),
            ("${env:GONE:-other}", "other"),
            ("${GONE:-}", ""),
            ("$${SET} $SET", "${SET} $SET"),
        ] {
            assert_eq!(expand(text, &variables).as_deref(), Ok(expected), "{text}");
        }
        assert!(expand("${GONE}", &variables).is_err());
        assert!(expand("${SET", &variables).is_err());
    }
}
