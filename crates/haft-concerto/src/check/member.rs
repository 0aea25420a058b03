//! Methods and fields of values whose type is known.

use super::arguments::Given;
use super::{Checker, Code, Ty};
use crate::ast::{Field, Function, Name, Path, Receiver, StoreKind};
use crate::diagnostic::did_you_mean;
use crate::symbols::Symbol;

const TEXT: &[&str] = &[
    "len",
    "is_empty",
    "contains",
    "starts_with",
    "ends_with",
    "trim",
    "to_upper",
    "to_lower",
    "to_uppercase",
    "to_lowercase",
    "replace",
    "split",
    "lines",
    "chars",
    "reverse",
    "repeat",
    "parse_int",
    "parse_float",
];
const ARRAY: &[&str] = &[
    "len",
    "is_empty",
    "get",
    "first",
    "last",
    "contains",
    "index_of",
    "join",
    "slice",
    "concat",
    "enumerate",
    "map",
    "filter",
    "find",
    "any",
    "all",
    "reduce",
    "push",
    "pop",
    "insert",
    "remove",
    "clear",
    "reverse",
    "sort",
];
const RANGE: &[&str] = &["len", "is_empty"];
const OPTION: &[&str] = &[
    "unwrap",
    "unwrap_or",
    "is_some",
    "is_none",
    "map",
    "and_then",
    "ok_or",
];
const RESULT: &[&str] = &[
    "unwrap",
    "unwrap_or",
    "unwrap_or_else",
    "is_ok",
    "is_err",
    "map",
    "map_err",
    "and_then",
    "ok",
    "err",
];
const MODEL: &[&str] = &[
    "execute",
    "execute_with_schema",
    "with_memory",
    "with_tools",
    "without_tools",
];
const AGENT: &[&str] = &[
    "execute",
    "execute_with_schema",
    "with_memory",
    "with_context",
    "with_tools",
    "without_tools",
];
const HASHMAP: &[&str] = &[
    "set", "get", "has", "delete", "remove", "len", "is_empty", "keys", "values", "clear", "query",
];
const MEMORY: &[&str] = &["append", "messages", "last", "len", "is_empty", "clear"];
const LEDGER: &[&str] = &[
    "insert",
    "update",
    "update_keys",
    "delete",
    "remove",
    "len",
    "is_empty",
    "clear",
    "entries",
    "identifiers",
    "scope",
    "query",
    "from_identifier",
    "from_key",
    "from_any_keys",
    "from_exact_keys",
];

/// What methods are called elsewhere, and here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("add", "push"),
    ("append", "push"),
    ("ask", "execute"),
    ("call", "execute"),
    ("chat", "execute"),
    ("exec", "execute"),
    ("generate", "execute"),
    ("run", "execute"),
    ("execute", "run"),
    ("delete", "remove"),
    ("remove", "delete"),
    ("count", "len"),
    ("includes", "contains"),
    ("indexOf", "index_of"),
    ("length", "len"),
    ("lower", "to_lower"),
    ("prepend", "insert"),
    ("put", "set"),
    ("size", "len"),
    ("sorted", "sort"),
    ("startsWith", "starts_with"),
    ("endsWith", "ends_with"),
    ("strip", "trim"),
    ("toLowerCase", "to_lower"),
    ("toUpperCase", "to_upper"),
    ("upper", "to_upper"),
];

/// The built-in methods of a type; `None` of one that is not known well enough.
fn built_in(ty: &Ty) -> Option<&'static [&'static str]> {
    Some(match ty {
        Ty::Text => TEXT,
        Ty::Array(_) => ARRAY,
        Ty::Range => RANGE,
        Ty::Option(_) => OPTION,
        Ty::Result(..) => RESULT,
        Ty::Int | Ty::Float | Ty::Bool => &[],
        _ => return None,
    })
}

/// The method of these that was probably meant.
fn meant<'n>(wrong: &str, names: &[&'n str]) -> Option<&'n str> {
    let known = ELSEWHERE.iter().find(|(name, _)| *name == wrong);
    let known = known.and_then(|(_, here)| names.iter().copied().find(|it| it == here));
    known
        .or_else(|| did_you_mean(wrong, names.iter().copied()))
        .or_else(|| {
            let near = did_you_mean(wrong, ELSEWHERE.iter().map(|(name, _)| *name))?;
            let (_, here) = ELSEWHERE.iter().find(|(name, _)| *name == near)?;
            names.iter().copied().find(|it| it == here)
        })
}

impl<'a> Checker<'a> {
    /// A method of a value.
    pub(super) fn method_call(
        &mut self,
        method: &Name,
        given: &Given<'_>,
        ty: &Ty,
        root: Option<&Path>,
    ) {
        let name = method.text.as_str();
        let changes = match ty {
            Ty::Array(_) => matches!(name, "push" | "pop" | "insert" | "remove" | "clear"),
            Ty::Map => matches!(name, "set" | "remove" | "clear" | "insert"),
            Ty::Named(of) => {
                if let Some((full, function)) = self.method_of(of, name) {
                    let signature = &function.signature;
                    let home = self.symbols.home(&full);
                    let span = method.span.to(given.call.span);
                    self.fit(name, &signature.params, home, given, 0, span);
                    signature.receiver == Some(Receiver::Mut)
                } else {
                    self.no_method(of, method);
                    false
                }
            }
            _ => false,
        };
        if let Some(names) = built_in(ty)
            && !names.contains(&name)
        {
            let text = format!("`{ty}` has no method `{name}`");
            self.tell_near(Code::W010, method.span, text, meant(name, names));
            return;
        }
        if changes && let Some(path) = root {
            self.assigned(path, false);
        }
        if let Some(path) = root {
            self.method_of_declared(path, method);
        }
    }

    /// The method of a type, and its full path.
    fn method_of(&self, of: &str, name: &str) -> Option<(String, &'a Function)> {
        match self.symbols.full(&format!("{of}::{name}"))? {
            (full, Symbol::Method(method)) => Some((full, method)),
            _ => None,
        }
    }

    /// A struct or an enum without this method.
    fn no_method(&mut self, of: &str, method: &Name) {
        let name = &method.text;
        // What a field holds may be called.
        let fields = self.fields_of(of).unwrap_or_default();
        if fields.iter().any(|it| it.name.text == *name) {
            return;
        }
        let text = format!("`{of}` has no method `{name}`");
        if self.diagnostics.is_full() {
            return;
        }
        let names = self.symbols.methods_of(of);
        let near = self.near(name, names.iter().map(String::as_str));
        self.tell_near(Code::W010, method.span, text, near);
    }

    /// A method of something that has a name of its own: a store, a model, an agent, a pipeline.
    fn method_of_declared(&mut self, path: &Path, method: &Name) {
        if path
            .single()
            .is_some_and(|name| self.scopes.find(&name.text).is_some())
        {
            return;
        }
        let Some((full, symbol)) = self.symbols.resolve(self.module, path) else {
            return;
        };
        let (what, names) = match symbol {
            Symbol::Model(_) => ("model", MODEL),
            Symbol::Agent(_) => ("agent", AGENT),
            Symbol::Pipeline(_) => ("pipeline", &["run"][..]),
            Symbol::Store(store) => match store.kind {
                StoreKind::HashMap => ("hashmap", HASHMAP),
                StoreKind::Memory => ("memory", MEMORY),
                StoreKind::Ledger => ("ledger", LEDGER),
            },
            _ => return,
        };
        let name = method.text.as_str();
        if names.contains(&name) || self.method_of(&full, name).is_some() {
            return;
        }
        if self.diagnostics.is_full() {
            return;
        }
        let own = self.symbols.methods_of(&full);
        let names: Vec<&str> = names
            .iter()
            .copied()
            .chain(own.iter().map(String::as_str))
            .collect();
        let text = format!("the {what} `{}` has no method `{name}`", path.text());
        self.tell_near(Code::W010, method.span, text, meant(name, &names));
    }

    fn fields_of(&self, of: &str) -> Option<&'a [Field]> {
        match self.symbols.full(of)? {
            (_, Symbol::Struct(it) | Symbol::Schema(it)) => Some(&it.fields),
            _ => None,
        }
    }

    /// A field of a value.
    pub(super) fn field(&mut self, field: &Name, ty: &Ty) {
        let name = field.text.as_str();
        if let Ty::Named(of) = ty {
            let Some(fields) = self.fields_of(of) else {
                return;
            };
            if fields.iter().any(|it| it.name.text == name) {
                return;
            }
            let text = format!("`{of}` has no field `{name}`");
            if self.method_of(of, name).is_some() {
                let help = format!("`{name}` is a method: write `.{name}(…)`");
                self.tell_with_help(Code::W010, field.span, text, help);
                return;
            }
            let near = self.near(name, fields.iter().map(|it| it.name.text.as_str()));
            self.tell_near(Code::W010, field.span, text, near);
            return;
        }
        let Some(names) = built_in(ty) else {
            return;
        };
        let text = format!("`{ty}` has no field `{name}`");
        let method = names.iter().copied().find(|it| *it == name);
        match method.or_else(|| meant(name, names)) {
            Some(method) => {
                let help = format!("there is a method: write `.{method}()`");
                self.tell_with_help(Code::W010, field.span, text, help);
            }
            None => self.tell(Code::W010, field.span, text),
        }
    }
}
