//! `example(input = {…}, output = …)`.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, Path, Token};

/// A call that shows how the tool is used. The values are JSON, for `json!` to read.
pub(crate) struct Example {
    input: Group,
    output: Option<TokenStream>,
}

const FORM: &str = "write `example(input = {\"city\": \"Oslo\"}, output = \"4 degrees\")`; the output may be left out";

impl Example {
    /// The example as a `haft::Example`.
    pub(crate) fn expand(&self, haft: &Path) -> TokenStream {
        let Self { input, output } = self;
        let output = if let Some(output) = output {
            quote!(::core::option::Option::Some(#haft::__private::serde_json::json!(#output)))
        } else {
            quote!(::core::option::Option::None)
        };
        quote! {
            #haft::Example {
                input: #haft::__private::serde_json::json!(#input),
                output: #output,
            }
        }
    }
}

impl Parse for Example {
    /// Reads what stands between the parentheses.
    fn parse(tokens: ParseStream<'_>) -> syn::Result<Self> {
        let (mut input, mut output) = (None, None);
        while !tokens.is_empty() {
            let key: Ident = tokens.parse()?;
            tokens.parse::<Token![=]>()?;
            if key == "input" && input.is_none() {
                input = Some(object(tokens)?);
            } else if key == "output" && output.is_none() {
                output = Some(value(tokens)?);
            } else {
                return Err(syn::Error::new(key.span(), FORM));
            }
            if !tokens.is_empty() {
                tokens.parse::<Token![,]>()?;
            }
        }
        match input {
            Some(input) => Ok(Self { input, output }),
            None => Err(syn::Error::new(tokens.span(), FORM)),
        }
    }
}

fn object(tokens: ParseStream<'_>) -> syn::Result<Group> {
    match tokens.parse()? {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Ok(group),
        other => Err(syn::Error::new(
            other.span(),
            "the input of an example is a JSON object, for example {\"city\": \"Oslo\"}",
        )),
    }
}

/// Everything up to the next comma on this level.
fn value(tokens: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut value = TokenStream::new();
    while !tokens.is_empty() && !tokens.peek(Token![,]) {
        value.extend([tokens.parse::<TokenTree>()?]);
    }
    if value.is_empty() {
        return Err(syn::Error::new(tokens.span(), FORM));
    }
    Ok(value)
}
