//! One parameter of a function tool: an argument from the model, or the context.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, ExprLit, FnArg, Ident, Lit, Pat, PatType, Path, Token, Type};

use crate::docs::is_doc;
use crate::errors::Errors;

/// A parameter, by where its value comes from.
pub(crate) enum Parameter {
    /// The model writes it.
    Argument(Box<Argument>),
    /// The host gives it: `&ToolContext`.
    Context {
        /// As it stands in the function.
        written: TokenStream,
        /// `cfg` attributes.
        conditions: Vec<Attribute>,
    },
}

/// A parameter that the model fills in.
pub(crate) struct Argument {
    /// As it stands in the function.
    pub(crate) written: TokenStream,
    /// Its name.
    pub(crate) ident: Ident,
    /// Its type.
    pub(crate) ty: Type,
    /// `cfg` attributes.
    pub(crate) conditions: Vec<Attribute>,
    /// Attributes for the field: doc comments, `serde`, `schemars`.
    pub(crate) field_attributes: Vec<Attribute>,
    /// `#[tool(default = …)]`.
    pub(crate) default: Option<Expr>,
}

impl Argument {
    /// The field of the hidden argument struct; `number` tells the defaults of several apart.
    pub(crate) fn field(&self, number: usize) -> TokenStream {
        let Self {
            ident,
            ty,
            conditions,
            field_attributes,
            ..
        } = self;
        let default = self.default.as_ref().map(|_| {
            let function = default_function(number).to_string();
            quote!(#[serde(default = #function)])
        });
        quote!(#(#conditions)* #(#field_attributes)* #default #ident: #ty)
    }

    /// The function behind `#[tool(default = …)]`.
    pub(crate) fn default_function(&self, number: usize) -> Option<TokenStream> {
        let Self { ty, conditions, .. } = self;
        let function = default_function(number);
        let value = match self.default.as_ref()? {
            // "metric" for a String, a PathBuf or a Cow, without `.into()`.
            text @ Expr::Lit(ExprLit {
                lit: Lit::Str(_), ..
            }) => quote!(::core::convert::From::from(#text)),
            value => value.to_token_stream(),
        };
        Some(quote!(#(#conditions)* fn #function() -> #ty { #value }))
    }
}

fn default_function(number: usize) -> Ident {
    Ident::new(&format!("__haft_default_{number}"), Span::call_site())
}

impl Parameter {
    /// Reads one parameter; mistakes go into `errors`.
    pub(crate) fn read(input: &FnArg, errors: &mut Errors) -> Option<Self> {
        let parameter = match input {
            FnArg::Typed(parameter) => parameter,
            FnArg::Receiver(receiver) => {
                errors.at(
                    receiver,
                    "a function tool has no `self`: take state from `ctx: &ToolContext`, or put \
                     `#[tool]` on a struct and implement `haft::Run` for it",
                );
                return None;
            }
        };
        let attributes = ParameterAttributes::sort(&parameter.attrs, errors);
        if is_context(&parameter.ty) {
            return Some(context(parameter, attributes, errors));
        }
        let ident = name(&parameter.pat, errors);
        check_owned(&parameter.ty, errors);
        let PatType { pat, ty, .. } = parameter;
        let (conditions, kept) = (&attributes.conditions, &attributes.kept);
        Some(Self::Argument(Box::new(Argument {
            written: quote!(#(#conditions)* #(#kept)* #pat: #ty),
            ident: ident?,
            ty: ty.as_ref().clone(),
            conditions: attributes.conditions,
            field_attributes: attributes.field,
            default: attributes.default,
        })))
    }

    /// The parameter, if the model writes it.
    pub(crate) fn as_argument(&self) -> Option<&Argument> {
        match self {
            Self::Argument(argument) => Some(argument),
            Self::Context { .. } => None,
        }
    }

    /// As it stands in the function.
    pub(crate) fn written(&self) -> &TokenStream {
        match self {
            Self::Argument(argument) => &argument.written,
            Self::Context { written, .. } => written,
        }
    }

    /// The value that a call passes for it.
    pub(crate) fn passed(&self) -> TokenStream {
        match self {
            Self::Argument(argument) => {
                let (ident, conditions) = (&argument.ident, &argument.conditions);
                quote!(#(#conditions)* __haft_arguments.#ident)
            }
            Self::Context { conditions, .. } => quote!(#(#conditions)* __haft_context),
        }
    }
}

fn context(parameter: &PatType, attributes: ParameterAttributes, errors: &mut Errors) -> Parameter {
    if let Some(default) = &attributes.default {
        errors.at(
            default,
            "the context has no default: it comes from the host and is not part of the schema",
        );
    }
    if let Some(attribute) = attributes.field.iter().find(|attribute| !is_doc(attribute)) {
        errors.at(
            attribute,
            "the context is not part of the schema: remove this attribute",
        );
    }
    let is_shared = matches!(ungrouped(&parameter.ty), Type::Reference(reference)
        if reference.mutability.is_none()
            && reference.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident == "_"));
    if !is_shared {
        errors.at(
            &parameter.ty,
            "the context is borrowed for the call: write `&ToolContext`",
        );
    }
    let PatType { pat, ty, .. } = parameter;
    let (conditions, kept) = (&attributes.conditions, &attributes.kept);
    Parameter::Context {
        written: quote!(#(#conditions)* #(#kept)* #pat: #ty),
        conditions: attributes.conditions,
    }
}

/// The attributes of a parameter, by where they belong.
#[derive(Default)]
struct ParameterAttributes {
    conditions: Vec<Attribute>,
    /// For the field of the argument struct.
    field: Vec<Attribute>,
    /// For the function.
    kept: Vec<Attribute>,
    default: Option<Expr>,
}

impl ParameterAttributes {
    fn sort(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut sorted = Self::default();
        for attribute in attributes {
            let path = attribute.path();
            if path.is_ident("cfg") {
                sorted.conditions.push(attribute.clone());
            } else if is_of_the_field(attribute) {
                sorted.field.push(attribute.clone());
            } else if is_tool(path) {
                match errors.take(attribute.parse_args_with(default_argument)) {
                    Some(_) if sorted.default.is_some() => {
                        errors.at(attribute, "`default` is given twice: remove one");
                    }
                    default => sorted.default = default.or(sorted.default),
                }
            } else {
                sorted.kept.push(attribute.clone());
            }
        }
        sorted
    }
}

/// Whether an attribute of a parameter means nothing to the compiler, only to the tool.
pub(crate) fn belongs_to_the_tool(attribute: &Attribute) -> bool {
    is_of_the_field(attribute) || is_tool(attribute.path())
}

/// Whether an attribute of a parameter belongs to the field that is made of it.
fn is_of_the_field(attribute: &Attribute) -> bool {
    let path = attribute.path();
    is_doc(attribute) || path.is_ident("serde") || path.is_ident("schemars")
}

/// Whether a path names this attribute: `tool` or `haft::tool`.
pub(crate) fn is_tool(path: &Path) -> bool {
    path.segments
        .last()
        .is_some_and(|segment| segment.ident == "tool")
}

/// `default = EXPR`.
fn default_argument(input: syn::parse::ParseStream<'_>) -> syn::Result<Expr> {
    let key: Ident = input.parse()?;
    if key != "default" {
        return Err(syn::Error::new(
            key.span(),
            format!("`{key}` is no argument of a parameter: write `#[tool(default = …)]`"),
        ));
    }
    if !input.peek(Token![=]) {
        let text = "a default needs a value: write `#[tool(default = …)]`";
        return Err(syn::Error::new(key.span(), text));
    }
    input.parse::<Token![=]>()?;
    let value = input.parse()?;
    input.parse::<Option<Token![,]>>()?;
    Ok(value)
}

/// Whether a type is the context, however it is borrowed: any path that ends in `ToolContext`.
fn is_context(ty: &Type) -> bool {
    match ungrouped(ty) {
        Type::Reference(reference) => is_context(&reference.elem),
        Type::Path(path) => ends_in(&path.path, "ToolContext"),
        _ => false,
    }
}

/// A type without parentheses, and without the invisible ones that a macro puts around its own
/// parameters.
pub(crate) fn ungrouped(ty: &Type) -> &Type {
    match ty {
        Type::Paren(inner) => ungrouped(&inner.elem),
        Type::Group(inner) => ungrouped(&inner.elem),
        plain => plain,
    }
}

/// Whether the last segment of a path is `name`.
pub(crate) fn ends_in(path: &Path, name: &str) -> bool {
    path.segments
        .last()
        .is_some_and(|segment| segment.ident == name)
}

/// The name of a parameter: `x` or `mut x`, nothing else.
fn name(pattern: &Pat, errors: &mut Errors) -> Option<Ident> {
    match pattern {
        Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
            Some(pattern.ident.clone())
        }
        Pat::Wild(_) => {
            errors.at(
                pattern,
                "a parameter of a tool needs a name, which the model sees: write `name: Type`",
            );
            None
        }
        _ => {
            errors.at(
                pattern,
                "a parameter of a tool is a plain name, which the model sees: write `name: Type` \
                 and take the value apart in the body",
            );
            None
        }
    }
}

/// Refuses types that cannot be read from the model's arguments: references and `impl Trait`.
fn check_owned(ty: &Type, errors: &mut Errors) {
    if let Type::ImplTrait(_) = ungrouped(ty) {
        errors.at(
            ty,
            "a parameter of a tool needs a type of its own, from which the schema comes: name a \
             type instead of `impl …`",
        );
        return;
    }
    if borrows(ty.to_token_stream()) {
        errors.at(
            ty,
            format!(
                "arguments are owned by the call: take {} (only the context is passed as \
                 `&ToolContext`)",
                owned_form(ty)
            ),
        );
    }
}

/// Whether there is a reference or a lifetime other than `'static` anywhere in a type.
fn borrows(tokens: TokenStream) -> bool {
    let mut after_quote = false;
    for token in tokens {
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == '&' => return true,
            TokenTree::Ident(lifetime) if after_quote && lifetime != "static" => return true,
            TokenTree::Group(group) if borrows(group.stream()) => return true,
            _ => {}
        }
        after_quote = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '\'');
    }
    false
}

/// What to write instead of a borrowed type.
fn owned_form(ty: &Type) -> String {
    let Type::Reference(reference) = ungrouped(ty) else {
        return "owned types, for example `String` for `&str`".to_owned();
    };
    match &*reference.elem {
        Type::Path(path) if ends_in(&path.path, "str") => "`String`".to_owned(),
        Type::Path(path) if ends_in(&path.path, "Path") => "a `PathBuf`".to_owned(),
        Type::Slice(_) => "a `Vec`".to_owned(),
        Type::Path(path) => {
            let owned = path.to_token_stream().to_string().replace(' ', "");
            format!("`{owned}`")
        }
        _ => "an owned type".to_owned(),
    }
}
