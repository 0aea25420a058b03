//! `#[tool]` on a struct.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Fields, ItemStruct};

use crate::arguments::ToolArguments;
use crate::definition::Definition;
use crate::errors::Errors;
use crate::parameter::is_tool;
use crate::{docs, names};

/// The struct as it is, and `haft::Tool` for it: its fields are the arguments, `haft::Run` runs it.
pub(crate) fn expand(arguments: &ToolArguments, item: &ItemStruct) -> syn::Result<TokenStream> {
    let mut errors = Errors::default();
    check(arguments, item, &mut errors);
    let name = errors.take(names::of_struct(arguments.name.as_ref(), &item.ident));
    let documentation = errors.take(docs::of_tool(&item.attrs, &item.ident));
    errors.finish()?;

    let haft = &arguments.haft;
    let ident = &item.ident;
    let conditions = item.attrs.iter().filter(|a| a.path().is_ident("cfg"));
    // A unit struct is read from `null`, and arguments are an object: so it is not read at all.
    let (argument_type, instance) = match &item.fields {
        Fields::Unit => (
            quote!(#haft::__private::NoArguments),
            quote!({ let _ = __haft_arguments; #ident }),
        ),
        _ => (quote!(#ident), quote!(__haft_arguments)),
    };
    let output_schema = arguments
        .output_schema
        .as_ref()
        .map(|_| quote!(#haft::__private::output_schema_of::<<#ident as #haft::Run>::Output>()));
    let definition = Definition {
        arguments,
        name: &name.unwrap_or_default(),
        documentation: &documentation.unwrap_or_default(),
        parameters: &argument_type,
        output_schema,
    }
    .expand();
    Ok(quote! {
        #item

        #(#conditions)*
        const _: () = {
            #[automatically_derived]
            impl #haft::Tool for #ident {
                type Arguments = #argument_type;

                #definition

                async fn execute(
                    __haft_arguments: #argument_type,
                    __haft_context: &#haft::ToolContext,
                ) -> ::core::result::Result<#haft::ToolOutput, #haft::ToolError> {
                    let __haft_output =
                        <#ident as #haft::Run>::run(#instance, __haft_context).await?;
                    #haft::IntoToolOutput::into_tool_output(__haft_output)
                }
            }
        };
    })
}

fn check(arguments: &ToolArguments, item: &ItemStruct, errors: &mut Errors) {
    if !item.generics.params.is_empty() {
        errors.at(
            &item.generics,
            "a tool cannot be generic, because a model calls it with one schema: write the types \
             out",
        );
    }
    if let Fields::Unnamed(fields) = &item.fields {
        errors.at(
            fields,
            "the fields of a tool need names, which the model sees: write `struct … { name: Type }`",
        );
    }
    if let Some(no_schema) = &arguments.no_schema {
        errors.push(syn::Error::new(
            no_schema.span,
            "a struct has a schema: put `no_schema` on a function that takes one \
             `serde_json::Value`, or remove it",
        ));
    }
    for field in &item.fields {
        // A derive above `#[tool]` has run already and would not see what is written here.
        for attribute in field.attrs.iter().filter(|a| is_tool(a.path())) {
            errors.at(
                attribute,
                "`#[tool]` does not go on a field: write `#[serde(default = \"function\")]` for a \
                 default",
            );
        }
    }
}
