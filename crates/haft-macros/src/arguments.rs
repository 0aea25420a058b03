//! What stands in `#[tool(…)]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Ident, LitBool, LitInt, LitStr, Path, Token, bracketed, parenthesized, parse_quote};

use crate::errors::Errors;
use crate::example::Example;
use crate::{names, timeout};

/// The longest brief, in characters, as `haft_core::Annotations::MAX_BRIEF_CHARS`.
const MAX_BRIEF_CHARS: usize = 120;

/// Every argument, as the list in an error shows them.
const LEGAL: [&str; 22] = [
    "name",
    "title",
    "brief",
    "tags",
    "roles",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "sequential",
    "polling",
    "safe",
    "strict",
    "timeout",
    "timeout_ms",
    "example",
    "depends_on",
    "defer",
    "no_schema",
    "output_schema",
    "validator",
    "crate",
];

/// The arguments of the attribute, read and checked.
pub(crate) struct ToolArguments {
    /// Where `haft` is found from the author's crate.
    pub(crate) haft: Path,
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    pub(crate) brief: Option<LitStr>,
    pub(crate) tags: Vec<LitStr>,
    pub(crate) roles: Vec<LitStr>,
    pub(crate) depends_on: Vec<LitStr>,
    /// Fields of `haft::Annotations` that are set to true.
    pub(crate) hints: Vec<Ident>,
    pub(crate) safe: Option<bool>,
    pub(crate) strict: Option<bool>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) examples: Vec<Example>,
    /// A variant of `haft::Defer`.
    pub(crate) defer: Option<Ident>,
    pub(crate) no_schema: Option<NoSchema>,
    pub(crate) output_schema: Option<Ident>,
    pub(crate) validator: Option<Path>,
}

/// `no_schema = "…"`.
pub(crate) struct NoSchema {
    /// The mode, a variant of `haft::NoSchemaMode`.
    pub(crate) mode: Ident,
    /// Where it was written.
    pub(crate) span: Span,
}

impl Default for ToolArguments {
    fn default() -> Self {
        Self {
            haft: parse_quote!(::haft),
            name: None,
            title: None,
            brief: None,
            tags: Vec::new(),
            roles: Vec::new(),
            depends_on: Vec::new(),
            hints: Vec::new(),
            safe: None,
            strict: None,
            timeout_ms: None,
            examples: Vec::new(),
            defer: None,
            no_schema: None,
            output_schema: None,
            validator: None,
        }
    }
}

impl Parse for ToolArguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut arguments = Self::default();
        let mut errors = Errors::default();
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            let key = input.call(Ident::parse_any)?;
            if key != "example" && seen.contains(&key) {
                return Err(syn::Error::new(
                    key.span(),
                    format!("`{key}` is given twice: remove one"),
                ));
            }
            // What cannot be read leaves no place to go on from; what reads but is wrong does.
            if let Some(mistake) = arguments.read(&key, input)? {
                errors.push(mistake);
            }
            seen.push(key);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let both = seen.iter().find(|key| *key == "timeout_ms");
        if let (Some(key), true) = (both, seen.iter().any(|key| key == "timeout")) {
            errors.at(key, "`timeout` and `timeout_ms` say the same: remove one");
        }
        if let (Some(_), Some(validator)) = (&arguments.no_schema, &arguments.validator) {
            errors.at(
                validator,
                "a tool without schema is never validated: remove `validator` or `no_schema`",
            );
        }
        errors.finish().map(|()| arguments)
    }
}

impl ToolArguments {
    /// Reads the value of `key`. The inner error is one after which reading can go on.
    fn read(&mut self, key: &Ident, input: ParseStream<'_>) -> syn::Result<Option<syn::Error>> {
        let mut errors = Errors::default();
        match key.to_string().as_str() {
            "name" => self.name = Some(text(key, input, &mut errors)?),
            "title" => self.title = Some(text(key, input, &mut errors)?),
            "brief" => {
                let brief = text(key, input, &mut errors)?;
                errors.take(check_brief(&brief));
                self.brief = Some(brief);
            }
            "tags" => self.tags = texts(key, input)?,
            "roles" => self.roles = texts(key, input)?,
            "depends_on" => {
                self.depends_on = texts(key, input)?;
                for name in &self.depends_on {
                    errors.take(names::check(&name.value(), name.span()));
                }
            }
            "read_only" | "destructive" | "idempotent" | "open_world" | "sequential"
            | "polling" => {
                if flag(input)? {
                    self.hints.push(key.clone());
                }
            }
            "safe" => self.safe = Some(flag(input)?),
            "strict" => self.strict = Some(flag(input)?),
            "output_schema" => self.output_schema = flag(input)?.then(|| key.clone()),
            "timeout" => {
                let text = text(key, input, &mut errors)?;
                self.timeout_ms = errors.take(timeout::milliseconds(&text));
            }
            "timeout_ms" => {
                self.timeout_ms = errors.take(whole_milliseconds(key, input)?);
            }
            "example" => {
                let content;
                parenthesized!(content in input);
                self.examples.push(content.parse()?);
            }
            "defer" => self.defer = errors.take(defer(key, input)?),
            "no_schema" => {
                let mode = text(key, input, &mut errors)?;
                self.no_schema = errors.take(no_schema(key, &mode));
            }
            "validator" => {
                input.parse::<Token![=]>()?;
                self.validator = Some(input.parse()?);
            }
            "crate" => {
                input.parse::<Token![=]>()?;
                self.haft = input.call(Path::parse_mod_style)?;
            }
            _ => return Err(unknown(key)),
        }
        Ok(errors.finish().err())
    }

    /// The fields of `haft::Annotations` that were given.
    pub(crate) fn annotations(&self) -> TokenStream {
        let haft = &self.haft;
        let optional_text = |field: &str, text: &Option<LitStr>| {
            let field = Ident::new(field, Span::call_site());
            text.as_ref().map(|text| {
                quote! {
                    #field: ::core::option::Option::Some(::std::string::String::from(#text)),
                }
            })
        };
        let list = |field: &str, texts: &[LitStr]| {
            let field = Ident::new(field, Span::call_site());
            (!texts.is_empty())
                .then(|| quote!(#field: ::std::vec![#(::std::string::String::from(#texts)),*],))
        };
        let title = optional_text("title", &self.title);
        let brief = optional_text("brief", &self.brief);
        let tags = list("tags", &self.tags);
        let roles = list("roles", &self.roles);
        let hints = &self.hints;
        let safe = self
            .safe
            .map(|safe| quote!(safe: ::core::option::Option::Some(#safe),));
        let timeout = self
            .timeout_ms
            .map(|timeout| quote!(timeout_ms: ::core::option::Option::Some(#timeout),));
        let examples = self.examples.iter().map(|example| example.expand(haft));
        let examples =
            (!self.examples.is_empty()).then(|| quote!(examples: ::std::vec![#(#examples),*],));
        let depends_on = &self.depends_on;
        let depends_on = (!depends_on.is_empty())
            .then(|| quote!(depends_on: ::std::vec![#(#haft::ToolName::new(#depends_on)?),*],));
        let defer = self.defer.as_ref();
        let defer = defer.map(|variant| quote!(defer: #haft::Defer::#variant,));
        quote! {
            #haft::Annotations {
                #title #brief #tags #roles #(#hints: true,)* #safe #timeout #examples #depends_on #defer
                ..::core::default::Default::default()
            }
        }
    }
}

/// `key = "…"`, not blank.
fn text(key: &Ident, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<LitStr> {
    input.parse::<Token![=]>()?;
    if !input.peek(LitStr) {
        return Err(input.error(format!("`{key}` is a text: write `{key} = \"…\"`")));
    }
    let text: LitStr = input.parse()?;
    if text.value().trim().is_empty() {
        errors.at(
            &text,
            format!("`{key}` says nothing: write something or leave it out"),
        );
    }
    Ok(text)
}

/// `key = ["…", "…"]`.
fn texts(key: &Ident, input: ParseStream<'_>) -> syn::Result<Vec<LitStr>> {
    input.parse::<Token![=]>()?;
    if !input.peek(syn::token::Bracket) {
        return Err(input.error(format!("`{key}` is a list: write `{key} = [\"…\"]`")));
    }
    let content;
    bracketed!(content in input);
    let texts = Punctuated::<LitStr, Token![,]>::parse_terminated(&content)?;
    Ok(texts.into_iter().collect())
}

/// `key`, or `key = true` and `key = false`.
fn flag(input: ParseStream<'_>) -> syn::Result<bool> {
    if !input.peek(Token![=]) {
        return Ok(true);
    }
    input.parse::<Token![=]>()?;
    Ok(input.parse::<LitBool>()?.value)
}

fn whole_milliseconds(key: &Ident, input: ParseStream<'_>) -> syn::Result<syn::Result<u64>> {
    input.parse::<Token![=]>()?;
    let number: LitInt = input.parse()?;
    Ok(match number.base10_parse::<u64>() {
        Ok(milliseconds) if milliseconds > 0 => Ok(milliseconds),
        _ => Err(syn::Error::new(
            number.span(),
            format!("`{key}` is a whole number of milliseconds, at least 1"),
        )),
    })
}

fn check_brief(brief: &LitStr) -> syn::Result<()> {
    let text = brief.value();
    let chars = text.chars().count();
    if chars > MAX_BRIEF_CHARS {
        return Err(syn::Error::new(
            brief.span(),
            format!("the brief has {chars} characters, more than {MAX_BRIEF_CHARS}: shorten it"),
        ));
    }
    if text.contains(['\n', '\r']) {
        return Err(syn::Error::new(
            brief.span(),
            "the brief has more than one line: a brief is one line",
        ));
    }
    Ok(())
}

/// `key = "always"`, `"never"` or `"auto"`.
fn defer(key: &Ident, input: ParseStream<'_>) -> syn::Result<syn::Result<Ident>> {
    let words = format!(
        "write `{key} = \"always\"` to hold the tool back until it is searched for, \"never\" to \
         show it in every request, or \"auto\""
    );
    if !input.peek(Token![=]) {
        return Err(syn::Error::new(key.span(), words));
    }
    input.parse::<Token![=]>()?;
    if !input.peek(LitStr) {
        return Err(input.error(words));
    }
    let text: LitStr = input.parse()?;
    let variant = match text.value().as_str() {
        "always" => "Always",
        "never" => "Never",
        "auto" => "Auto",
        _ => return Ok(Err(syn::Error::new(text.span(), words))),
    };
    Ok(Ok(Ident::new(variant, Span::call_site())))
}

fn no_schema(key: &Ident, mode: &LitStr) -> syn::Result<NoSchema> {
    let variant = match mode.value().as_str() {
        "read-only" => "ReadOnly",
        "human-approval" => "HumanApproval",
        "full" => "Full",
        other => {
            return Err(syn::Error::new(
                mode.span(),
                format!(
                    "`{other}` is no mode for a tool without schema: write \"read-only\", \
                     \"human-approval\" or \"full\""
                ),
            ));
        }
    };
    Ok(NoSchema {
        mode: Ident::new(variant, Span::call_site()),
        span: key.span(),
    })
}

fn unknown(key: &Ident) -> syn::Error {
    let hint = if key == "description" {
        "`description` is no argument: the doc comment is the description".to_owned()
    } else if key == "examples" {
        "`examples` is no argument: write `example(input = {…}, output = …)`, once for each"
            .to_owned()
    } else {
        let legal = LEGAL.map(|name| format!("`{name}`")).join(", ");
        format!("`{key}` is no argument of `#[tool]`: use {legal}")
    };
    syn::Error::new(key.span(), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_that_an_error_lists_is_known() {
        for name in LEGAL {
            let tokens: TokenStream = name.parse().unwrap();
            let message = syn::parse2::<ToolArguments>(tokens)
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            assert!(!message.contains("is no argument"), "{name}: {message}");
        }
    }

    #[test]
    fn a_brief_is_as_long_as_the_core_allows() {
        assert_eq!(MAX_BRIEF_CHARS, haft_core::Annotations::MAX_BRIEF_CHARS);
    }
}
