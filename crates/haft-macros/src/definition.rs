//! The parts of `impl haft::Tool` that function and struct tools share.

use proc_macro2::TokenStream;
use quote::quote;

use crate::arguments::{NoSchema, ToolArguments};

/// What a definition is built from.
pub(crate) struct Definition<'a> {
    pub(crate) arguments: &'a ToolArguments,
    /// The tool's name, checked.
    pub(crate) name: &'a str,
    /// The doc comment, an expression.
    pub(crate) documentation: &'a TokenStream,
    /// The type that the parameter schema describes; not used by a tool without schema.
    pub(crate) parameters: &'a TokenStream,
    /// The output schema, an expression.
    pub(crate) output_schema: Option<TokenStream>,
}

impl Definition<'_> {
    /// `try_definition` and, where one was given, `validator`.
    pub(crate) fn expand(&self) -> TokenStream {
        let Self {
            arguments,
            name,
            documentation,
            parameters,
            output_schema,
        } = self;
        let haft = &arguments.haft;
        let annotations = arguments.annotations();
        let parameters = if let Some(NoSchema { mode, .. }) = &arguments.no_schema {
            quote!(.no_schema(#haft::NoSchemaMode::#mode))
        } else {
            quote! {
                .parameters(#haft::__private::parameters_of::<#parameters>(&__haft_description))
            }
        };
        let output_schema = output_schema
            .as_ref()
            .map(|schema| quote!(.output_schema(#schema)));
        let strict = arguments.strict.map(|strict| quote!(.strict(#strict)));
        let validator = self.validator();
        quote! {
            fn try_definition() -> ::core::result::Result<
                &'static ::std::sync::Arc<#haft::ToolDefinition>,
                &'static #haft::DefinitionError,
            > {
                static __HAFT_DEFINITION: ::std::sync::LazyLock<
                    ::core::result::Result<
                        ::std::sync::Arc<#haft::ToolDefinition>,
                        #haft::DefinitionError,
                    >,
                > = ::std::sync::LazyLock::new(|| {
                    let __haft_description = #haft::doc_text(#documentation);
                    #haft::ToolDefinition::builder(#name)
                        .annotations(#annotations)
                        #parameters
                        #output_schema
                        #strict
                        .kind(#haft::ToolKind::Internal)
                        .description(__haft_description)
                        .build()
                });
                ::core::result::Result::as_ref(&*__HAFT_DEFINITION)
            }

            #validator
        }
    }

    /// Compiled once, like the definition.
    fn validator(&self) -> Option<TokenStream> {
        let haft = &self.arguments.haft;
        let path = self.arguments.validator.as_ref()?;
        Some(quote! {
            fn validator() -> ::core::option::Option<::std::sync::Arc<dyn #haft::Validator>> {
                static __HAFT_VALIDATOR: ::std::sync::LazyLock<
                    ::std::sync::Arc<dyn #haft::Validator>,
                > = ::std::sync::LazyLock::new(#path);
                ::core::option::Option::Some(::std::sync::Arc::clone(&*__HAFT_VALIDATOR))
            }
        })
    }
}
