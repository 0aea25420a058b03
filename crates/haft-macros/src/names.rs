//! What a tool is called.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::{Ident, LitStr};

/// Names that haft's own tools bear; the same list as `haft_core::RESERVED_NAMES`.
const RESERVED: [&str; 6] = [
    "read_section",
    "pick_tools",
    "search_tools",
    "describe_tool",
    "call_tool",
    "recall_tool_result",
];

/// The longest name, as `haft_core::MAX_NAME_BYTES`.
const MAX_BYTES: usize = 64;

/// The name of a function tool: the given one, else the function's.
pub(crate) fn of_function(given: Option<&LitStr>, ident: &Ident) -> syn::Result<String> {
    given_or(given, ident, |own| own)
}

/// The name of a struct tool: the given one, else the struct's in `snake_case`.
pub(crate) fn of_struct(given: Option<&LitStr>, ident: &Ident) -> syn::Result<String> {
    given_or(given, ident, |own| snake_case(&own))
}

fn given_or(
    given: Option<&LitStr>,
    ident: &Ident,
    derive: impl FnOnce(String) -> String,
) -> syn::Result<String> {
    let (name, span) = match given {
        Some(name) => (name.value(), name.span()),
        None => (derive(ident.unraw().to_string()), ident.span()),
    };
    check(&name, span)?;
    if RESERVED.contains(&name.as_str()) {
        return Err(syn::Error::new(
            span,
            format!(
                "the name `{name}` is reserved for haft's own tool: choose another with \
                 `#[tool(name = \"…\")]`"
            ),
        ));
    }
    Ok(name)
}

/// Refuses a text that cannot be the name of a tool.
pub(crate) fn check(name: &str, span: Span) -> syn::Result<()> {
    let legal = (1..=MAX_BYTES).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if legal {
        return Ok(());
    }
    Err(syn::Error::new(
        span,
        format!(
            "`{name}` is not a legal tool name: use 1 to 64 of the characters A-Z, a-z, 0-9, `_` \
             and `-`, here or in `#[tool(name = \"…\")]`"
        ),
    ))
}

/// `LookupCustomer` as `lookup_customer`, `HTTPFetch` as `http_fetch`, `Sha256Sum` as `sha256_sum`.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::with_capacity(name.len() + 4);
    for (at, &letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(at + 1);
        let starts_word = letter.is_uppercase()
            && before.is_some_and(|before| {
                before != '_'
                    && (!before.is_uppercase() || after.is_some_and(|after| after.is_lowercase()))
            });
        if starts_word {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserved_names_are_those_of_the_core() {
        assert_eq!(RESERVED, haft_core::RESERVED_NAMES);
        assert_eq!(MAX_BYTES, haft_core::MAX_NAME_BYTES);
    }

    #[test]
    fn a_legal_name_here_is_a_legal_name_in_the_core() {
        let long = "x".repeat(65);
        for name in ["a", "A-b_9", "", "a b", "ä", "a.b", &long, &long[1..]] {
            assert_eq!(
                check(name, Span::call_site()).is_ok(),
                haft_core::ToolName::new(name).is_ok(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_struct_name_becomes_snake_case() {
        for (camel, snake) in [
            ("LookupCustomer", "lookup_customer"),
            ("HTTPFetch", "http_fetch"),
            ("FetchHTTP", "fetch_http"),
            ("Sha256Sum", "sha256_sum"),
            ("GetURLOfV2", "get_url_of_v2"),
            ("A", "a"),
            ("AB", "ab"),
            ("already_snake", "already_snake"),
            ("Mixed_Case", "mixed_case"),
        ] {
            assert_eq!(snake_case(camel), snake);
        }
    }
}
