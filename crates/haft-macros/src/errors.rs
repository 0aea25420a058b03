//! Mistakes, collected: an author sees all of them at once.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, FnArg, Item};

use crate::parameter::{belongs_to_the_tool, is_tool};

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    /// Adds a mistake, on the words that are wrong.
    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Adds a mistake at `tokens`.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    /// Keeps the value of a success and the mistake of a failure.
    pub(crate) fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// All mistakes as one error, if there are any.
    pub(crate) fn finish(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// The mistakes beside the item as plain Rust, so that nothing else seems to be missing and an
/// editor still knows the item.
pub(crate) fn report(error: &syn::Error, mut item: Item) -> TokenStream {
    let strip = |attributes: &mut Vec<Attribute>| {
        attributes.retain(|attribute| !belongs_to_the_tool(attribute));
    };
    match &mut item {
        Item::Fn(function) => {
            for input in &mut function.sig.inputs {
                match input {
                    FnArg::Typed(parameter) => strip(&mut parameter.attrs),
                    FnArg::Receiver(receiver) => strip(&mut receiver.attrs),
                }
            }
        }
        Item::Struct(structure) => {
            for field in &mut structure.fields {
                field.attrs.retain(|attribute| !is_tool(attribute.path()));
            }
        }
        _ => {}
    }
    let errors = error.to_compile_error();
    quote!(#item #errors)
}

/// `#[tool]` on something that is neither a function nor a struct.
pub(crate) fn wrong_item(item: &Item) -> syn::Error {
    match item {
        Item::Enum(item) => syn::Error::new(
            item.enum_token.span,
            "an enum cannot be a tool, because arguments are an object: make it a field of a \
             struct with named fields, and put `#[tool]` there",
        ),
        Item::Union(item) => syn::Error::new(
            item.union_token.span,
            "a union cannot be a tool: use a struct with named fields",
        ),
        Item::Impl(item) => syn::Error::new(
            item.impl_token.span,
            "`#[tool]` does not go on an `impl`: put it on the struct that holds the arguments",
        ),
        other => syn::Error::new_spanned(
            first_word(other),
            "`#[tool]` goes on a function or on a struct with named fields",
        ),
    }
}

/// Enough of an item to point at.
fn first_word(item: &Item) -> TokenStream {
    match item {
        Item::Mod(item) => item.mod_token.to_token_stream(),
        Item::Trait(item) => item.trait_token.to_token_stream(),
        Item::Type(item) => item.type_token.to_token_stream(),
        Item::Const(item) => item.const_token.to_token_stream(),
        Item::Static(item) => item.static_token.to_token_stream(),
        other => other.to_token_stream(),
    }
}
