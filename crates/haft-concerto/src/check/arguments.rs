//! Whether arguments fit the parameters: how many there are, what they are called, of what type they are.

use std::collections::{HashMap, HashSet};

use super::{Checker, Code, Ty};
use crate::ast::{Call, Param, Type};
use crate::source::Span;

/// The value that a pipe puts in front of the arguments.
pub(super) struct Piped {
    pub(super) ty: Ty,
    pub(super) span: Span,
}

/// What a call is given.
pub(super) struct Given<'c> {
    pub(super) call: &'c Call,
    /// Of each argument.
    pub(super) types: Vec<Ty>,
    pub(super) piped: Option<&'c Piped>,
}

impl Given<'_> {
    pub(super) fn count(&self) -> usize {
        self.call.arguments.len() + usize::from(self.piped.is_some())
    }

    /// Type and place of the arguments without names, a piped one first.
    fn positional(&self) -> impl Iterator<Item = (&Ty, Span)> {
        let piped = self.piped.iter().map(|it| (&it.ty, it.span));
        let arguments = self.call.arguments.iter().zip(&self.types);
        let arguments = arguments.filter(|(it, _)| it.name.is_none());
        piped.chain(arguments.map(|(it, ty)| (ty, it.value.span)))
    }
}

impl Checker<'_> {
    /// Whether the arguments fit the parameters, whose types were written in the module `home`; `own` is 1
    /// if the receiver is an argument.
    pub(super) fn fit(
        &mut self,
        name: &str,
        params: &[Param],
        home: usize,
        given: &Given<'_>,
        own: usize,
        span: Span,
    ) {
        if !self.fit_number(name, params, given, own, span) {
            return;
        }
        let positional = params.iter().zip(given.positional().skip(own));
        let arguments = given.call.arguments.iter().zip(&given.types);
        let places = places(params);
        let named = arguments.filter_map(|(argument, ty)| {
            let name = argument.name.as_ref()?;
            let place = places.get(name.text.as_str())?;
            Some((&params[*place], (ty, argument.value.span)))
        });
        for (param, (found, span)) in positional.chain(named) {
            let Some(ty) = &param.ty else { continue };
            let declared = self.meaning_in(home, ty);
            if !found.suits(&declared) {
                let param = &param.name.text;
                let text =
                    format!("`{name}` takes `{declared}` as `{param}`, and this is `{found}`");
                self.tell_mismatch(Code::W010, found, &declared, (span, text));
            }
        }
    }

    /// Whether the values of a variant have its types.
    pub(super) fn fit_variant(
        &mut self,
        name: &str,
        types: &[Type],
        home: usize,
        given: &Given<'_>,
    ) {
        for (ty, (found, span)) in types.iter().zip(given.positional()) {
            let declared = self.meaning_in(home, ty);
            if !found.suits(&declared) {
                let text = format!("`{name}` carries `{declared}`, and this is `{found}`");
                self.tell_mismatch(Code::W010, found, &declared, (span, text));
            }
        }
    }

    /// That a value has another type than it should, and what makes it right.
    pub(super) fn tell_mismatch(
        &mut self,
        code: Code,
        found: &Ty,
        declared: &Ty,
        (span, text): (Span, String),
    ) {
        match found.remedy(declared) {
            Some(help) => self.tell_with_help(code, span, text, help),
            None => self.tell(code, span, text),
        }
    }

    /// Whether every parameter has its argument.
    fn fit_number(
        &mut self,
        name: &str,
        params: &[Param],
        given: &Given<'_>,
        own: usize,
        span: Span,
    ) -> bool {
        let positional = given.positional().count();
        let most = params.len() + own;
        if positional > most || positional < own {
            let text = format!(
                "`{name}` takes {}, not {}",
                arguments_text(most),
                given.count()
            );
            self.tell(Code::E016, span, text);
            return false;
        }
        let taken = positional - own;
        let places = places(params);
        let mut named = HashSet::new();
        let mut fits = true;
        for given in given
            .call
            .arguments
            .iter()
            .filter_map(|it| it.name.as_ref())
        {
            let index = places.get(given.text.as_str()).copied();
            fits = false;
            match index {
                None => {
                    let text = format!("`{name}` has no parameter `{}`", given.text);
                    let there = params.iter().map(|it| it.name.text.as_str());
                    let near = self.near(&given.text, there);
                    self.tell_near(Code::E016, given.span, text, near);
                }
                Some(index) if index < taken || named.contains(&index) => {
                    let text = format!("the parameter `{}` is given twice", given.text);
                    self.tell(Code::E016, given.span, text);
                }
                Some(index) => {
                    named.insert(index);
                    fits = true;
                }
            }
        }
        let missing = params.iter().enumerate().skip(taken);
        let mut missing =
            missing.filter(|(index, it)| it.default.is_none() && !named.contains(index));
        if let Some((_, param)) = missing.next() {
            let text = format!("`{name}` is called without `{}`", param.name.text);
            let required = params.iter().filter(|it| it.default.is_none()).count() + own;
            self.tell_with_help(
                Code::E016,
                span,
                text,
                format!("it needs {}", arguments_text(required)),
            );
            fits = false;
        }
        fits
    }
}

/// The place of each parameter; the first of those with one name.
fn places(params: &[Param]) -> HashMap<&str, usize> {
    let mut places = HashMap::new();
    for (index, param) in params.iter().enumerate() {
        places.entry(param.name.text.as_str()).or_insert(index);
    }
    places
}

pub(super) fn arguments_text(count: usize) -> String {
    match count {
        0 => "no arguments".to_owned(),
        1 => "one argument".to_owned(),
        count => format!("{count} arguments"),
    }
}
