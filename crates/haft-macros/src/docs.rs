//! Doc comments.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, ExprLit, Ident, Lit, Meta};

/// The doc comment of a tool, as an expression of type `&'static str`: the text as the author
/// wrote it, for `haft::doc_text` to turn into a description. A tool without one is a mistake.
pub(crate) fn of_tool(attributes: &[Attribute], ident: &Ident) -> syn::Result<TokenStream> {
    let lines: Vec<&Expr> = attributes.iter().filter_map(doc_value).collect();
    if lines.iter().all(|line| is_blank(line)) {
        return Err(syn::Error::new(
            ident.span(),
            format!(
                "the tool `{ident}` has no description: write a doc comment (`/// …`) above it, \
                 it tells the model what the tool does"
            ),
        ));
    }
    let lines = lines.into_iter().map(line);
    Ok(quote!(::core::concat!(#(#lines, "\n"),*)))
}

/// Whether an attribute is a doc comment or another `#[doc…]`.
pub(crate) fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

/// The text of a doc comment; `#[doc(hidden)]` and its like have none.
fn doc_value(attribute: &Attribute) -> Option<&Expr> {
    match &attribute.meta {
        Meta::NameValue(meta) if is_doc(attribute) => Some(&meta.value),
        _ => None,
    }
}

/// A literal that says nothing. What is not a literal, `include_str!` for instance, is not known.
fn is_blank(value: &Expr) -> bool {
    literal(value).is_some_and(|text| text.trim().is_empty())
}

fn line(value: &Expr) -> TokenStream {
    match literal(value) {
        Some(text) => without_stars(&text).to_token_stream(),
        None => value.to_token_stream(),
    }
}

fn literal(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Some(text.value()),
        _ => None,
    }
}

/// A block comment without the column of `*` that many authors draw on its left.
fn without_stars(text: &str) -> String {
    let bare = |line: &str| line.trim_start().strip_prefix('*').map(str::to_owned);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().to_owned();
    let rest: Vec<&str> = lines.collect();
    let drawn = rest
        .iter()
        .all(|line| line.trim().is_empty() || bare(line).is_some());
    if rest.is_empty() || !drawn {
        return text.to_owned();
    }
    let rest = rest.iter().map(|line| bare(line).unwrap_or_default());
    std::iter::once(first)
        .chain(rest)
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::without_stars;

    #[test]
    fn the_stars_of_a_block_comment_are_not_part_of_the_text() {
        assert_eq!(
            without_stars(" One.\n * Two.\n *\n * Three. "),
            " One.\n Two.\n\n Three. "
        );
        assert_eq!(
            without_stars(" One.\n Two * three."),
            " One.\n Two * three."
        );
        assert_eq!(without_stars(" One."), " One.");
    }
}
