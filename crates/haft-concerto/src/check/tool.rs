//! Tools, MCP servers, and what is bound to models.

use std::collections::HashMap;

use super::settings::{self, Place};
use super::{Checker, Code, Ty};
use crate::ast::{Call, Decorator, Expr, ExprKind, Function, ItemKind, Mcp, Param, Tool};
use crate::manifest::is_label;
use crate::source::Span;
use crate::symbols::Symbol;

/// The longest name that providers take.
const MAX_WIRE_NAME: usize = 64;

impl Checker<'_> {
    /// `with_tools` and `without_tools`: a builder.
    pub(super) fn binding(&mut self, name: &str, span: Span, call: &Call, ty: &Ty) -> Ty {
        match ty {
            Ty::Agent => {
                let text = format!("`{name}` has no effect on an agent");
                self.tell_with_help(Code::W007, span, text, "an agent has tools of its own");
            }
            // A type of the program may have such a method too.
            Ty::Named(_) => return Ty::Unknown,
            _ if name == "without_tools" => {
                if !call.arguments.is_empty() {
                    let text = "`without_tools` takes no arguments";
                    self.tell(Code::E026, call.span, text);
                }
            }
            _ => self.tools_argument(call),
        }
        ty.clone()
    }

    fn tools_argument(&mut self, call: &Call) {
        let help = "write `with_tools([Name, …])`";
        let [argument] = call.arguments.as_slice() else {
            let text = "`with_tools` takes one array of tools and MCP servers";
            self.tell_with_help(Code::E026, call.span, text, help);
            return;
        };
        let value = argument.value.unwrapped();
        match &value.kind {
            ExprKind::Array(list) => list.iter().for_each(|it| self.tool_element(it)),
            // What a variable or a call gives is looked at when the program runs.
            ExprKind::Path(path) => {
                let known = if let Some(variable) =
                    path.single().and_then(|it| self.scopes.find(&it.text))
                {
                    matches!(variable.ty, Ty::Unknown | Ty::Array(_))
                } else {
                    let found = self.symbols.resolve(self.module, path);
                    matches!(found, Some((_, Symbol::Const(_))) | None)
                };
                if !known {
                    let text =
                        format!("`with_tools` takes an array, and `{}` is none", path.text());
                    self.tell_with_help(Code::E026, value.span, text, help);
                }
            }
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Nil
            | ExprKind::Str(_)
            | ExprKind::Text(_)
            | ExprKind::Map(_)
            | ExprKind::Struct(_)
            | ExprKind::Closure(_) => {
                let text = "`with_tools` takes an array of tools and MCP servers";
                self.tell_with_help(Code::E026, value.span, text, help);
            }
            _ => {}
        }
    }

    fn tool_element(&mut self, element: &Expr) {
        let fine = match &element.unwrapped().kind {
            ExprKind::Path(path) => {
                if let Some(variable) = path.single().and_then(|it| self.scopes.find(&it.text)) {
                    matches!(variable.ty, Ty::Unknown | Ty::Tool)
                } else {
                    let found = self.symbols.resolve(self.module, path);
                    // An undefined name was told already.
                    matches!(
                        found,
                        Some((_, Symbol::Tool(_) | Symbol::Mcp(_) | Symbol::Const(_))) | None
                    )
                }
            }
            ExprKind::Postfix(_) | ExprKind::If(_) | ExprKind::Match(_) | ExprKind::Block(_) => {
                true
            }
            _ => false,
        };
        if !fine {
            let text = "this is neither a tool nor an MCP server";
            self.tell(Code::E026, element.span, text);
        }
    }

    /// The `tools: […]` of a model.
    pub(super) fn static_tools(&mut self, value: &Expr) {
        let ExprKind::Array(list) = &value.unwrapped().kind else {
            self.tell(
                Code::E027,
                value.span,
                "`tools` is an array of tools and MCP servers",
            );
            return;
        };
        for element in list {
            let Some(path) = element.as_path() else {
                self.tell(
                    Code::E027,
                    element.span,
                    "this is no name of a tool or an MCP server",
                );
                continue;
            };
            let found = self.symbols.resolve(self.module, path);
            if matches!(found, Some((_, Symbol::Tool(_) | Symbol::Mcp(_)))) {
                continue;
            }
            let text = format!("there is no tool and no MCP server `{}`", path.text());
            let near = self.near(&path.text(), self.symbols.names());
            if let Some(near) = near.map(str::to_owned) {
                self.tell_with_help(
                    Code::E027,
                    path.span,
                    text,
                    format!("did you mean `{near}`?"),
                );
            } else {
                let help =
                    "declare `tool NAME { … }`, `mcp NAME { … }`, or `[mcp.NAME]` in Concerto.toml";
                self.tell_with_help(Code::E027, path.span, text, help);
            }
        }
    }

    pub(super) fn tool(&mut self, tool: &Tool, order: usize) {
        self.entries(&tool.entries);
        self.unknown_settings(&tool.entries, &settings::TOOL);
        for entry in &tool.entries {
            let ty = self.in_scope(|checker| checker.expr(&entry.value));
            self.setting(entry, &ty, &settings::TOOL);
        }
        for state in &tool.state {
            let declared = self.declared(&state.ty);
            let name = format!("{}.{}", tool.name.text, state.name.text);
            let found = self.reading(&name, order, |checker| {
                checker.in_scope(|checker| checker.expr(&state.value))
            });
            if !super::control::is_empty_braces(&state.value) {
                self.expect_type(&found, &declared, state.value.span, "the state");
            }
        }
        for method in &tool.methods {
            if method.signature.public {
                self.described(method);
            }
            self.decorators(&method.signature.decorators, Place::Tool);
            self.params_described(method);
            if method.signature.public {
                self.params_that_models_can_give(method);
            }
            self.tool_method(method);
        }
    }

    fn described(&mut self, method: &Function) {
        let signature = &method.signature;
        let described = signature
            .decorators
            .iter()
            .find(|it| it.name.text == "describe");
        let text = described.and_then(|it| match it.arguments.as_deref() {
            Some([(None, text)]) => text.as_text(),
            _ => None,
        });
        if text.is_none() {
            let name = &signature.name;
            let text = format!("the public method `{}` has no description", name.text);
            let help = "write `@describe(\"what it does\")` above it: the model reads it";
            self.tell_with_help(Code::E024, name.span, text, help);
        }
    }

    fn params_described(&mut self, method: &Function) {
        let signature = &method.signature;
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for decorator in signature
            .decorators
            .iter()
            .filter(|it| it.name.text == "param")
        {
            let Some([(None, name), (None, text)]) = decorator.arguments.as_deref() else {
                self.malformed(decorator);
                continue;
            };
            let (Some(name_text), Some(_)) = (name.as_text(), text.as_text()) else {
                self.malformed(decorator);
                continue;
            };
            if !signature.params.iter().any(|it| it.name.text == name_text) {
                let text = format!("`@param` names no parameter: `{name_text}`");
                self.tell(Code::E025, name.span, text);
                continue;
            }
            *seen.entry(name_text).or_default() += 1;
        }
        for param in &signature.params {
            for decorator in param.decorators.iter().filter(|it| it.name.text == "param") {
                match decorator.arguments.as_deref() {
                    Some([(None, text)]) if text.as_text().is_some() => {
                        *seen.entry(&param.name.text).or_default() += 1;
                    }
                    _ => self.malformed(decorator),
                }
            }
        }
        let doubled = |it: &&Param| {
            seen.get(it.name.text.as_str())
                .is_some_and(|count| *count > 1)
        };
        if let Some(param) = signature.params.iter().find(doubled) {
            let text = format!(
                "the parameter `{}` has more than one `@param`",
                param.name.text
            );
            self.tell(Code::E025, param.name.span, text);
        }
        let some = !seen.is_empty() && signature.public;
        let without = |it: &&Param| !seen.contains_key(it.name.text.as_str());
        if let Some(param) = signature.params.iter().find(without).filter(|_| some) {
            let text = format!(
                "the parameter `{}` has no `@param`, others have",
                param.name.text
            );
            self.tell(Code::W004, param.name.span, text);
        }
    }

    /// A variant is nothing that a model could write: in the schema its type is an object.
    fn params_that_models_can_give(&mut self, method: &Function) {
        for param in &method.signature.params {
            let Some(ty) = &param.ty else { continue };
            let mut meant = self.meaning_in(self.module, ty);
            while let Ty::Option(inner) | Ty::Array(inner) = meant {
                meant = *inner;
            }
            let Ty::Named(of) = meant else { continue };
            let Some((_, Symbol::Enum(it))) = self.symbols.full(&of) else {
                continue;
            };
            let names = it.variants.iter().map(|it| format!("\"{}\"", it.name.text));
            let names = names.collect::<Vec<_>>().join(" | ");
            let text = format!("models cannot give a `{of}`: for them it is an object");
            let help = format!("declare the parameter as `{names}`, which is a String");
            self.tell_with_help(Code::W010, param.name.span, text, help);
        }
    }

    fn malformed(&mut self, decorator: &Decorator) {
        let text = "`@param` is malformed";
        let help = "`@param(\"text\")` in front of a parameter, `@param(\"name\", \"text\")` above a method";
        self.tell_with_help(Code::E025, decorator.span, text, help);
    }

    /// Names on the wire: `Tool__method`, each once and not too long.
    pub(super) fn wire_names(&mut self) {
        let symbols = self.symbols;
        let mut seen: HashMap<String, String> = HashMap::new();
        for declared in &symbols.items {
            let ItemKind::Tool(tool) = &declared.item.kind else {
                continue;
            };
            for method in tool.methods.iter().filter(|it| it.signature.public) {
                let name = &method.signature.name;
                let shown = format!("{}::{}", tool.name.text, name.text);
                let wire = format!("{}__{}", tool.name.text, name.text);
                if wire.len() > MAX_WIRE_NAME {
                    let text = format!(
                        "`{wire}` is too long a name: providers take {MAX_WIRE_NAME} characters"
                    );
                    self.tell(Code::E029, name.span, text);
                }
                if let Some(other) = seen.insert(wire.clone(), shown.clone())
                    && (other != shown || declared.module != 0)
                {
                    let text =
                        format!("`{shown}` and `{other}` are both called `{wire}` by models");
                    self.tell_with_help(Code::E029, name.span, text, "rename one of them");
                }
            }
        }
    }

    pub(super) fn mcp(&mut self, mcp: &Mcp) {
        self.entries(&mcp.entries);
        self.unknown_settings(&mcp.entries, &settings::SERVER);
        for entry in &mcp.entries {
            let ty = self.in_scope(|checker| checker.expr(&entry.value));
            self.setting(entry, &ty, &settings::SERVER);
        }
        let name = &mcp.name;
        if !is_label(&name.text) {
            let text = format!("`{}` is no valid name of an MCP server", name.text);
            let help =
                "letters, digits and single `_` between them, at most 24 characters, not `haft`";
            self.tell_with_help(Code::E028, name.span, text, help);
        }
        let says = |key: &str| mcp.entries.iter().any(|it| it.name.text == key);
        if !says("command") && !says("url") && !self.known.servers.contains(&name.text) {
            let text = format!("nothing says how to reach the MCP server `{}`", name.text);
            let help = format!(
                "write `command` or `url` here, or `[mcp.{}]` in Concerto.toml",
                name.text
            );
            self.tell_with_help(Code::W005, name.span, text, help);
        }
        for declared in &mcp.signatures {
            self.decorators(&declared.signature.decorators, Place::Tool);
            self.signature(&declared.signature);
        }
    }
}
