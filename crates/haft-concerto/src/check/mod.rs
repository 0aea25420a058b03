//! What can be said about a program without running it: names, scopes, types, and the rules for
//! models, tools, tests and pipelines (concerto.md §3).

mod call;
mod control;
mod declared;
mod expr;
mod function;
mod item;
mod pattern;
mod scope;
mod tool;
mod ty;

use scope::{Context, Scopes};
use ty::Ty;

use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::source::Span;
use crate::symbols::Symbols;

/// What exists outside of the source.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The connections; `None` if any name is one.
    pub connections: Option<Vec<String>>,
    /// The MCP servers of the manifest.
    pub servers: Vec<String>,
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

    fn expect_type(&mut self, found: &Ty, declared: &Ty, span: Span, what: &str) {
        if !found.fits(declared) {
            let text = format!("{what} is declared as `{declared}` and gets `{found}`");
            self.tell(Code::E013, span, text);
        }
    }
}
