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

/// A text with `${NAME}` replaced by the variable of that name.
pub(super) fn expand(mut text: &str, variables: VariableLookup<'_>) -> Result<String, String> {
    let mut expanded = String::new();
    while let Some((before, rest)) = text.split_once("${") {
        let Some((name, behind)) = rest.split_once('}') else {
            return Err("`${` has no `}`: close it".into());
        };
        let value = variables(name)
            .ok_or_else(|| format!("the variable `{}` is not set: set it", haft_core::cut(name)))?;
        expanded.push_str(before);
        expanded.push_str(&value);
        text = behind;
    }
    expanded.push_str(text);
    Ok(expanded)
}
