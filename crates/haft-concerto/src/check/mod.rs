//! What can be said about a program without running it: names, scopes, types, and the rules for
//! models, tools, tests and pipelines (concerto.md §3).

mod arguments;
mod call;
mod control;
mod declared;
mod expr;
mod function;
mod item;
mod literal;
mod member;
mod order;
mod pattern;
mod scope;
mod settings;
mod tool;
mod ty;

use scope::{Context, Scopes};
use ty::Ty;

use crate::diagnostic::{Code, Diagnostic, Diagnostics, did_you_mean};
use crate::source::Span;
use crate::symbols::Symbols;

/// What exists outside of the source.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The connections; `None` if any name is one.
    pub connections: Option<Vec<String>>,
    /// The MCP servers of the manifest.
    pub servers: Vec<String>,
    /// The agents of the manifest; `None` if any name is one.
    pub agents: Option<Vec<String>>,
}

/// Checks a program.
pub fn check(symbols: &Symbols<'_>, known: &Known, diagnostics: &mut Diagnostics) {
    let mut checker = Checker {
        symbols,
        known,
        diagnostics,
        module: 0,
        scopes: Scopes::default(),
        context: Context::default(),
        reads: None,
        readings: Vec::new(),
        is_script: false,
        is_store: false,
    };
    checker.program();
}

struct Checker<'a> {
    symbols: &'a Symbols<'a>,
    known: &'a Known,
    diagnostics: &'a mut Diagnostics,
    /// The module that the code stands in.
    module: usize,
    scopes: Scopes,
    context: Context,
    /// The constants that are read at once, while something gets its value.
    reads: Option<Vec<(String, Span)>>,
    readings: Vec<order::Reading>,
    /// Whether statements of a script are looked at.
    is_script: bool,
    /// Whether the beginning of a store is looked at.
    is_store: bool,
}

impl Checker<'_> {
    fn tell(&mut self, code: Code, span: Span, text: impl Into<String>) {
        self.diagnostics.push(Diagnostic::new(code, span, text));
    }

    fn tell_with_help(
        &mut self,
        code: Code,
        span: Span,
        text: impl Into<String>,
        help: impl Into<String>,
    ) {
        let told = Diagnostic::new(code, span, text).help(help);
        self.diagnostics.push(told);
    }

    /// The one of these names that was probably meant, as long as somebody is told.
    fn near<'n>(&self, wrong: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
        if self.diagnostics.is_full() {
            return None;
        }
        did_you_mean(wrong, names)
    }

    /// With the name that was probably meant, if there is one.
    fn tell_near(&mut self, code: Code, span: Span, text: impl Into<String>, near: Option<&str>) {
        match near {
            Some(near) => self.tell_with_help(code, span, text, format!("did you mean `{near}`?")),
            None => self.tell(code, span, text),
        }
    }

    fn expect_type(&mut self, found: &Ty, declared: &Ty, span: Span, what: &str) {
        if !found.fits(declared) {
            let text = format!("{what} is declared as `{declared}` and gets `{found}`");
            self.tell_mismatch(Code::E013, found, declared, (span, text));
        }
    }
}
