//! The `#[tool]` attribute.
//!
//! What comes in: an author's function or struct. What goes out: the same item, beside it an
//! implementation of `haft::Tool` whose definition is built once, at run time, from the doc
//! comments and the types. Every mistake that can be seen here is reported here, on the words that
//! are wrong, together with what to write instead.
//!
//! The generated code names everything by its full path below `::haft`, so that it means the same
//! whatever the author has in scope, and needs no dependency but `haft`. This crate must never be
//! used directly: `haft` re-exports the attribute and documents it.

mod arguments;
mod definition;
mod docs;
mod errors;
mod example;
mod function;
mod names;
mod parameter;
mod structure;
mod timeout;

use proc_macro::TokenStream;
use syn::{Item, parse_macro_input};

use crate::arguments::ToolArguments;

// The examples need `haft`, which depends on this crate: they are tested there.
#[cfg_attr(not(doctest), doc = include_str!("../docs/tool.md"))]
#[proc_macro_attribute]
pub fn tool(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as Item);
    syn::parse(arguments)
        .and_then(|arguments| expand(&arguments, &item))
        .unwrap_or_else(|error| errors::report(&error, item))
        .into()
}

fn expand(arguments: &ToolArguments, item: &Item) -> syn::Result<proc_macro2::TokenStream> {
    match item {
        Item::Fn(function) => function::expand(arguments, function),
        Item::Struct(structure) => structure::expand(arguments, structure),
        other => Err(errors::wrong_item(other)),
    }
}
