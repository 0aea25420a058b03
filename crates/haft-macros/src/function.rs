//! `#[tool]` on a function.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, ItemFn, ReturnType, Safety, Signature, Type};

use crate::arguments::ToolArguments;
use crate::definition::Definition;
use crate::docs::{self, is_doc};
use crate::errors::Errors;
use crate::names;
use crate::parameter::{Argument, Parameter, ends_in, ungrouped};

/// A unit struct of the function's name that implements `haft::Tool`; the function as its `call`.
pub(crate) fn expand(arguments: &ToolArguments, function: &ItemFn) -> syn::Result<TokenStream> {
    let tool = FunctionTool::read(arguments, function)?;
    let declaration = tool.declaration();
    let implementation = tool.implementation();
    Ok(quote!(#declaration #implementation))
}

/// A function tool, checked.
struct FunctionTool<'a> {
    arguments: &'a ToolArguments,
    function: &'a ItemFn,
    name: String,
    documentation: TokenStream,
    parameters: Vec<Parameter>,
}

impl<'a> FunctionTool<'a> {
    fn read(arguments: &'a ToolArguments, function: &'a ItemFn) -> syn::Result<Self> {
        let mut errors = Errors::default();
        let signature = &function.sig;
        check_signature(signature, &mut errors);
        let name = errors.take(names::of_function(
            arguments.name.as_ref(),
            &signature.ident,
        ));
        let documentation = errors.take(docs::of_tool(&function.attrs, &signature.ident));
        let parameters = read_parameters(signature, &mut errors);
        if let Some(no_schema) = &arguments.no_schema {
            check_untyped(no_schema.span, &parameters, &mut errors);
        }
        if let (Some(flag), true) = (&arguments.output_schema, returns_impl(&signature.output)) {
            errors.at(
                flag,
                "`output_schema` needs a named return type: replace `impl …` by the type",
            );
        }
        errors.finish()?;
        Ok(Self {
            arguments,
            name: name.unwrap_or_default(),
            documentation: documentation.unwrap_or_default(),
            parameters,
            function,
        })
    }

    fn arguments_of_model(&self) -> impl Iterator<Item = &Argument> {
        self.parameters.iter().filter_map(Parameter::as_argument)
    }

    /// `cfg` attributes below `#[tool]`: they hold for everything that comes of the function.
    fn conditions(&self) -> impl Iterator<Item = &Attribute> + Clone {
        self.function.attrs.iter().filter(|a| is_condition(a))
    }

    /// The unit struct and, on it, the function.
    fn declaration(&self) -> TokenStream {
        let ItemFn {
            attrs,
            vis,
            sig,
            block,
            ..
        } = self.function;
        let Signature {
            ident,
            asyncness,
            output,
            ..
        } = sig;
        let conditions = self.conditions();
        let impl_conditions = conditions.clone();
        let documentation = attrs.iter().filter(|a| is_doc(a));
        let attributes = attrs.iter().filter(|a| !is_doc(a) && !is_condition(a));
        let parameters = self.parameters.iter().map(Parameter::written);
        quote! {
            #(#conditions)*
            #(#documentation)*
            #[allow(non_camel_case_types)]
            #[derive(
                ::core::clone::Clone,
                ::core::marker::Copy,
                ::core::fmt::Debug,
            )]
            #vis struct #ident;

            #(#impl_conditions)*
            impl #ident {
                /// Calls the function behind the tool, without a model in between.
                // Advice that the author of a tool cannot follow, or that the model would read.
                #[allow(
                    clippy::missing_const_for_fn,
                    clippy::missing_errors_doc,
                    clippy::missing_panics_doc,
                    clippy::must_use_candidate,
                    clippy::needless_pass_by_value,
                )]
                #(#attributes)*
                #vis #asyncness fn call(#(#parameters),*) #output #block
            }
        }
    }

    /// `impl haft::Tool`, with the struct that the arguments are read into.
    fn implementation(&self) -> TokenStream {
        let haft = &self.arguments.haft;
        let ident = &self.function.sig.ident;
        let conditions = self.conditions();
        let (argument_struct, argument_type) = self.argument_struct();
        let definition = Definition {
            arguments: self.arguments,
            name: &self.name,
            documentation: &self.documentation,
            parameters: &argument_type,
            output_schema: self.output_schema(),
        }
        .expand();
        let call = self.call();
        let answer = self.answer();
        let deprecated = self
            .function
            .attrs
            .iter()
            .any(|a| a.path().is_ident("deprecated"));
        let deprecated = deprecated.then(|| quote!(#[allow(deprecated)]));
        // On the function's name: there the compiler says that a future cannot be sent.
        let place = Span::call_site().located_at(ident.span());
        let execute = quote_spanned! {place=>
            async fn execute(
                __haft_arguments: #argument_type,
                __haft_context: &#haft::ToolContext,
            ) -> ::core::result::Result<#haft::ToolOutput, #haft::ToolError>
        };
        quote! {
            #(#conditions)*
            const _: () = {
                #argument_struct

                #[automatically_derived]
                impl #haft::Tool for #ident {
                    type Arguments = #argument_type;

                    #definition

                    #deprecated
                    #execute {
                        use #haft::__private::{CustomOutput as _, NoError as _, SerializedOutput as _};
                        let __haft_returned = #call;
                        #answer
                    }
                }
            };
        }
    }

    /// What was returned, as an output. On the return type: there the compiler says that it cannot
    /// be one.
    fn answer(&self) -> TokenStream {
        let haft = &self.arguments.haft;
        let place = match &self.function.sig.output {
            ReturnType::Default => Span::call_site(),
            ReturnType::Type(_, ty) => Span::call_site().located_at(ty.span()),
        };
        quote_spanned! {place=>
            let __haft_value =
                #haft::__private::Returned::of(&__haft_returned).check(__haft_returned)?;
            #haft::__private::Returned::of(&__haft_value).output(__haft_value)
        }
    }

    /// The struct that the arguments are read into, and its name.
    fn argument_struct(&self) -> (TokenStream, TokenStream) {
        let haft = &self.arguments.haft;
        if self.arguments.no_schema.is_some() {
            return (TokenStream::new(), quote!(#haft::Value));
        }
        let fields = self
            .arguments_of_model()
            .enumerate()
            .map(|(number, argument)| argument.field(number));
        let defaults = self
            .arguments_of_model()
            .enumerate()
            .filter_map(|(number, argument)| argument.default_function(number));
        let path = path_text(haft);
        let (serde, schemars) = (
            format!("{path}::__private::serde"),
            format!("{path}::__private::schemars"),
        );
        let item = quote! {
            #(#defaults)*

            #[derive(
                #haft::__private::serde::Deserialize,
                #haft::__private::schemars::JsonSchema,
            )]
            #[serde(crate = #serde)]
            #[schemars(crate = #schemars)]
            pub struct __HaftArguments {
                #(#fields),*
            }
        };
        (item, quote!(__HaftArguments))
    }

    /// The call of the function, as an expression.
    fn call(&self) -> TokenStream {
        let ident = &self.function.sig.ident;
        let passed =
            self.parameters
                .iter()
                .map(|parameter| match (&self.arguments.no_schema, parameter) {
                    (Some(_), Parameter::Argument(_)) => quote!(__haft_arguments),
                    _ => parameter.passed(),
                });
        let wait = self.function.sig.asyncness.map(|_| quote!(.await));
        quote!(#ident::call(#(#passed),*) #wait)
    }

    fn output_schema(&self) -> Option<TokenStream> {
        self.arguments.output_schema.as_ref()?;
        let haft = &self.arguments.haft;
        let returned = match &self.function.sig.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, ty) => quote!(#ty),
        };
        let place = Span::call_site().located_at(returned.span());
        Some(quote_spanned! {place=> {
            use #haft::__private::NoErrorSchema as _;
            #haft::__private::Returned::<#returned>::new().output_schema()
        }})
    }
}

fn is_condition(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
}

/// A path as serde and schemars want it: as text.
fn path_text(path: &syn::Path) -> String {
    quote!(#path).to_string().replace(' ', "")
}

fn check_signature(signature: &Signature, errors: &mut Errors) {
    if let Some(token) = signature.constness {
        errors.at(token, "a tool cannot be `const`: remove it");
    }
    if let Safety::Unsafe(token) = signature.safety {
        errors.at(
            token,
            "a tool cannot be `unsafe`, because a model calls it: make the function safe",
        );
    }
    if let Some(abi) = &signature.abi {
        errors.at(abi, "a tool cannot be `extern`: remove it");
    }
    let generics = &signature.generics;
    if !generics.params.is_empty() {
        errors.at(
            generics,
            "a tool cannot be generic, because a model calls it with one schema: write the types \
             out",
        );
    } else if let Some(clause) = &generics.where_clause {
        errors.at(
            clause,
            "a tool cannot be generic: remove the `where` clause",
        );
    }
}

fn read_parameters(signature: &Signature, errors: &mut Errors) -> Vec<Parameter> {
    let mut parameters: Vec<Parameter> = Vec::new();
    for input in &signature.inputs {
        let parameter = Parameter::read(input, errors);
        let has_context = parameters
            .iter()
            .any(|parameter| matches!(parameter, Parameter::Context { .. }));
        if has_context && matches!(parameter, Some(Parameter::Context { .. })) {
            errors.at(input, "a tool has one context: remove this parameter");
        }
        parameters.extend(parameter);
    }
    parameters
}

/// A tool without schema takes the model's arguments as they are.
fn check_untyped(no_schema: Span, parameters: &[Parameter], errors: &mut Errors) {
    const FORM: &str = "a tool with `no_schema` takes the arguments as they come: one parameter of \
                        type `serde_json::Value`, beside the context";
    let mut arguments = parameters.iter().filter_map(Parameter::as_argument);
    match arguments.next() {
        None => errors.push(syn::Error::new(no_schema, FORM)),
        Some(argument) if !is_value(&argument.ty) => errors.at(&argument.ty, FORM),
        Some(argument) => {
            let attribute = argument.field_attributes.iter().find(|a| !is_doc(a));
            if let Some(attribute) = attribute {
                errors.at(attribute, "without a schema this has no effect: remove it");
            }
            if let Some(default) = &argument.default {
                errors.at(default, "without a schema there is no default: remove it");
            }
        }
    }
    for argument in arguments {
        errors.at(&argument.ty, FORM);
    }
}

fn is_value(ty: &Type) -> bool {
    matches!(ungrouped(ty), Type::Path(path) if ends_in(&path.path, "Value"))
}

fn returns_impl(output: &ReturnType) -> bool {
    fn mentions_impl(tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => ident == "impl",
            TokenTree::Group(group) => mentions_impl(group.stream()),
            _ => false,
        })
    }
    mentions_impl(quote!(#output))
}
