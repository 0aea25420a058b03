//! Declarations.

use super::scope::Context;
use super::settings::{self, Place};
use super::{Checker, Code, Ty};
use crate::ast::{
    Config, ConfigEntry, Enum, Expr, ExprKind, Field, Fields, Item, ItemKind, VariantData,
};
use crate::diagnostic::did_you_mean;
use crate::symbols::Symbol;

impl Checker<'_> {
    pub(super) fn program(&mut self) {
        let symbols = self.symbols;
        for (order, declared) in symbols.items.iter().enumerate() {
            self.module = declared.module;
            self.item(declared.item, order);
        }
        self.module = 0;
        self.constants_in_order();
        self.wire_names();
        self.script();
    }

    fn script(&mut self) {
        let symbols = self.symbols;
        let Some(first) = symbols.script.first() else {
            return;
        };
        let main = symbols.items.iter().any(|it| {
            let name = match &it.item.kind {
                ItemKind::Function(function) => &function.signature.name.text,
                _ => return false,
            };
            it.module == 0 && name == "main"
        });
        if main {
            let text = "a program has statements outside of functions, or `fn main`, not both";
            self.tell_with_help(Code::E034, first.span, text, "move them into `main`");
        }
        self.is_script = true;
        self.in_context(Context::default(), |checker| {
            checker.in_scope(|checker| {
                for stmt in &symbols.script {
                    checker.stmt(stmt);
                }
            });
        });
    }

    fn item(&mut self, item: &Item, order: usize) {
        self.no_test(&item.decorators);
        let place = match item.kind {
            ItemKind::Model(_) => Place::Model,
            ItemKind::Function(_) => Place::Function,
            _ => Place::Other,
        };
        self.decorators(&item.decorators, place);
        for (_, value) in item
            .decorators
            .iter()
            .flat_map(|it| it.arguments.iter().flatten())
        {
            self.alone(value);
        }
        match &item.kind {
            ItemKind::Function(it) => self.function_item(it),
            ItemKind::Model(it) => self.model(it),
            ItemKind::Agent(it) => self.agent(it),
            ItemKind::Tool(it) => self.tool(it, order),
            ItemKind::Mcp(it) => self.mcp(it),
            ItemKind::Schema(it) | ItemKind::Struct(it) => self.fields_item(it),
            ItemKind::Enum(it) => self.enum_item(it),
            ItemKind::Trait(it) => {
                for method in &it.methods {
                    self.method(method, None);
                }
            }
            ItemKind::Impl(it) => {
                let own = match self.symbols.resolve_name(self.module, it.receiver_type()) {
                    Some((full, Symbol::Struct(_) | Symbol::Schema(_) | Symbol::Enum(_))) => {
                        Ty::Named(full)
                    }
                    Some((_, Symbol::Model(_))) => Ty::Model,
                    _ => Ty::Unknown,
                };
                for method in &it.methods {
                    self.method(method, Some(own.clone()));
                }
            }
            ItemKind::Pipeline(it) => self.pipeline(it),
            ItemKind::Const(it) => {
                let declared = self.declared(&it.ty);
                let name = &it.name.text;
                let found = self.reading(name, order, |checker| checker.alone(&it.value));
                if !super::control::is_empty_braces(&it.value) {
                    self.expect_type(&found, &declared, it.value.span, "the constant");
                }
            }
            ItemKind::TypeAlias(it) => drop(self.declared(&it.ty)),
            ItemKind::Store(it) => {
                self.declared(&it.ty);
                self.is_store = true;
                self.alone(&it.value);
                self.is_store = false;
            }
            ItemKind::Use(_) | ItemKind::Mod(_) => {}
        }
    }

    /// An expression outside of all functions.
    fn alone(&mut self, value: &Expr) -> Ty {
        self.in_context(Context::default(), |checker| {
            checker.in_scope(|checker| checker.expr(value))
        })
    }

    pub(super) fn entries(&mut self, entries: &[ConfigEntry]) {
        self.twice(entries.iter().map(|it| &it.name), "setting");
    }

    fn model(&mut self, it: &Config) {
        self.entries(&it.entries);
        self.unknown_settings(&it.entries, &settings::MODEL);
        let mut provider = None;
        for entry in &it.entries {
            match entry.name.text.as_str() {
                "provider" => provider = Some(&entry.value),
                "tools" => self.static_tools(&entry.value),
                _ => {
                    let ty = self.alone(&entry.value);
                    self.setting(entry, &ty, &settings::MODEL);
                }
            }
        }
        let Some(provider) = provider else {
            let text = format!("the model `{}` has no `provider`", it.name.text);
            let help = "write `provider: NAME`, a connection of Concerto.toml; with `--mock` any name will do";
            self.tell_with_help(Code::E023, it.name.span, text, help);
            return;
        };
        self.provider(provider);
    }

    fn provider(&mut self, value: &Expr) {
        let name = match &value.unwrapped().kind {
            ExprKind::Path(path) => path.text(),
            ExprKind::Str(text) => text.clone(),
            _ => {
                self.tell(
                    Code::E022,
                    value.span,
                    "`provider` is the name of a connection",
                );
                return;
            }
        };
        let Some(known) = &self.known.connections else {
            return;
        };
        if known.contains(&name) {
            return;
        }
        let text = format!("there is no connection `{name}`");
        let near = did_you_mean(&name, known.iter().map(String::as_str));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "declare `[connections.{name}]` in Concerto.toml, or a `[[model]]` of that name in haft.toml; \
                 to try the program without one: `haft run --mock`"
            ),
        };
        self.tell_with_help(Code::E022, value.span, text, help);
    }

    fn agent(&mut self, it: &Config) {
        self.entries(&it.entries);
        self.unknown_settings(&it.entries, &settings::AGENT);
        let mut connector = None;
        for entry in &it.entries {
            match entry.name.text.as_str() {
                // The name of a process in the manifest.
                "connector" => connector = Some(&entry.value),
                "tools" => {
                    let text = "tools have no effect on an agent";
                    self.tell_with_help(
                        Code::W007,
                        entry.name.span,
                        text,
                        "an agent has tools of its own",
                    );
                }
                _ => {
                    let ty = self.alone(&entry.value);
                    self.setting(entry, &ty, &settings::AGENT);
                }
            }
        }
        if !it.entries.iter().any(|it| it.name.text == "command") {
            self.connector(it, connector);
        }
    }

    /// Somebody must say which process an agent is.
    fn connector(&mut self, it: &Config, connector: Option<&Expr>) {
        let Some(known) = &self.known.agents else {
            return;
        };
        let (name, span) = match connector.map(|it| (&it.unwrapped().kind, it.span)) {
            Some((ExprKind::Path(path), span)) => (path.text(), span),
            Some((ExprKind::Str(text), span)) => (text.clone(), span),
            _ => (String::new(), it.name.span),
        };
        if known.contains(&name) {
            return;
        }
        let text = format!("nothing says how to start the agent `{}`", it.name.text);
        let help = match did_you_mean(&name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if name.is_empty() => {
                "write `connector: NAME`, and `[agents.NAME]` in Concerto.toml".to_owned()
            }
            None => format!("declare `[agents.{name}]` with a `command` in Concerto.toml"),
        };
        self.tell_with_help(Code::W005, span, text, help);
    }

    fn fields_item(&mut self, it: &Fields) {
        self.fields(&it.fields);
    }

    fn fields(&mut self, fields: &[Field]) {
        self.twice(fields.iter().map(|it| &it.name), "field");
        for field in fields {
            let declared = self.declared(&field.ty);
            if let Some(default) = &field.default {
                let found = self.alone(default);
                if !super::control::is_empty_braces(default) {
                    self.expect_type(&found, &declared, default.span, "the field");
                }
            }
        }
    }

    fn enum_item(&mut self, it: &Enum) {
        for variant in &it.variants {
            match &variant.data {
                VariantData::None => {}
                VariantData::Tuple(types) => types.iter().for_each(|ty| drop(self.declared(ty))),
                VariantData::Fields(fields, _) => self.fields(fields),
            }
        }
    }
}
