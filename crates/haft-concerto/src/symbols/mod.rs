//! The names of a program: what each declared path stands for, and what a path means where it stands.
//!
//! Paths are full: from the root of the program, `units::double`. Declarations are seen in their own
//! module and in those inside of it; `use` adds names to a module.

mod builtin;
mod elsewhere;
mod proposals;

use std::collections::HashMap;

pub use builtin::{BUILTINS, Builtin, STANDARD, TYPES, builtin, is_std_prefix};
pub(crate) use elsewhere::instead_of;

use crate::ast::{
    Config, Const, Enum, Fields, Function, Item, ItemKind, Mcp, Name, Part, Path, Pipeline,
    Program, Stmt, Store, Tool, Trait, Type, TypeAlias, TypeKind, Use, UseTail, Variant,
};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};

/// What a path stands for.
#[derive(Clone, Copy, Debug)]
#[expect(
    missing_docs,
    reason = "each holds the declaration that it is named for"
)]
pub enum Symbol<'a> {
    Function(&'a Function),
    Test(&'a Function),
    Model(&'a Config),
    Agent(&'a Config),
    Tool(&'a Tool),
    ToolMethod(&'a Tool, &'a Function),
    /// A server, and its block if there is one; the manifest alone is enough.
    Mcp(Option<&'a Mcp>),
    /// A tool of a server: whatever stands behind its name.
    McpTool,
    Schema(&'a Fields),
    Struct(&'a Fields),
    Enum(&'a Enum),
    Variant(&'a Enum, &'a Variant),
    Trait(&'a Trait),
    /// A method of a type or a trait.
    Method(&'a Function),
    Pipeline(&'a Pipeline),
    Const(&'a Const),
    Alias(&'a TypeAlias),
    Store(&'a Store),
    Module,
    Builtin(&'static Builtin),
    /// A module or type of the standard library.
    Std,
}

/// A declaration, its module and its place in the tree.
#[derive(Clone, Copy, Debug)]
pub struct Declared<'a> {
    /// The item.
    pub item: &'a Item,
    /// The index of its module in [`Symbols::modules`].
    pub module: usize,
}

/// The names of a program.
#[derive(Debug, Default)]
pub struct Symbols<'a> {
    /// The paths of the modules; the first is the root, `""`.
    pub modules: Vec<String>,
    /// All items but `mod` and `use`, in source order.
    pub items: Vec<Declared<'a>>,
    /// The statements of a script.
    pub script: Vec<&'a Stmt>,
    /// What the manifest's servers and blocks are called.
    table: HashMap<String, Symbol<'a>>,
    /// By path: the module that a declaration stands in. Its types are meant from there.
    homes: HashMap<String, usize>,
    uses: HashMap<String, String>,
    use_spans: Vec<(usize, &'a Use)>,
    /// By `T::m`, and by `T::Trait::m`: the function that is meant, as its own path.
    aliases: HashMap<String, String>,
    /// The same the other way round, each list in order.
    known_as: HashMap<String, Vec<String>>,
    /// Traits that a type has: type, trait.
    impls: Vec<(String, String)>,
}

/// A path in a module.
pub fn join(module: &str, name: &str) -> String {
    if module.is_empty() {
        return name.to_owned();
    }
    format!("{module}::{name}")
}

/// A path with further names behind it.
fn longer(mut path: String, names: &[String]) -> String {
    for name in names {
        path.push_str("::");
        path.push_str(name);
    }
    path
}

impl<'a> Symbols<'a> {
    /// Collects the declarations of a program. `servers` are those of the manifest.
    pub fn new(program: &'a Program, servers: &[String], diagnostics: &mut Diagnostics) -> Self {
        let mut symbols = Self::default();
        symbols.modules.push(String::new());
        for server in servers {
            symbols.table.insert(server.clone(), Symbol::Mcp(None));
        }
        for part in &program.parts {
            match part {
                Part::Item(item) => symbols.declare(item, 0, diagnostics),
                Part::Stmt(stmt) => symbols.script.push(stmt),
            }
        }
        symbols.bind_uses(diagnostics);
        symbols.bind_methods(diagnostics);
        symbols
    }

    fn declare(&mut self, item: &'a Item, module: usize, diagnostics: &mut Diagnostics) {
        match &item.kind {
            ItemKind::Mod(inner) => {
                let path = join(&self.modules[module], &inner.name.text);
                self.insert(
                    path.clone(),
                    Symbol::Module,
                    &inner.name,
                    module,
                    diagnostics,
                );
                self.modules.push(path);
                let index = self.modules.len() - 1;
                for item in inner.items.iter().flatten() {
                    self.declare(item, index, diagnostics);
                }
                return;
            }
            ItemKind::Use(used) => return self.use_spans.push((module, used)),
            _ => self.items.push(Declared { item, module }),
        }
        let Some((name, symbol)) = own_symbol(item) else {
            return;
        };
        let path = join(&self.modules[module], &name.text);
        match symbol {
            Symbol::Enum(it) => {
                for variant in &it.variants {
                    let path = join(&path, &variant.name.text);
                    let symbol = Symbol::Variant(it, variant);
                    self.insert(path, symbol, &variant.name, module, diagnostics);
                }
            }
            Symbol::Tool(it) => {
                for method in &it.methods {
                    let name = &method.signature.name;
                    let symbol = Symbol::ToolMethod(it, method);
                    self.insert(join(&path, &name.text), symbol, name, module, diagnostics);
                }
            }
            Symbol::Trait(it) => {
                for method in &it.methods {
                    let name = &method.signature.name;
                    let symbol = Symbol::Method(method);
                    self.insert(join(&path, &name.text), symbol, name, module, diagnostics);
                }
            }
            _ => {}
        }
        self.insert(path, symbol, name, module, diagnostics);
    }

    fn insert(
        &mut self,
        path: String,
        symbol: Symbol<'a>,
        name: &Name,
        module: usize,
        diagnostics: &mut Diagnostics,
    ) {
        match (self.table.get(&path), symbol) {
            (Some(Symbol::Mcp(_)), Symbol::Tool(_)) | (Some(Symbol::Tool(_)), Symbol::Mcp(_)) => {
                let text = format!("`{}` is both a tool and an MCP server", name.text);
                let told = Diagnostic::new(Code::E028, name.span, text);
                diagnostics.push(told.help("give one of them another name"));
                return;
            }
            // A block says more about a server of the manifest, which hides nothing but a tool.
            (None | Some(Symbol::Mcp(None)), _) => {
                self.homes.insert(path.clone(), module);
                self.table.insert(path, symbol);
                return;
            }
            _ => {}
        }
        let text = format!("`{}` is declared twice", name.text);
        let told = Diagnostic::new(Code::E011, name.span, text);
        diagnostics.push(told.help("rename one of them"));
    }

    fn bind_uses(&mut self, diagnostics: &mut Diagnostics) {
        let uses = std::mem::take(&mut self.use_spans);
        for (module, used) in &uses {
            let base = used.path.text();
            let pairs: Vec<(&Name, String)> = match &used.tail {
                UseTail::None => vec![(used.path.last(), base)],
                UseTail::As(name) => vec![(name, base)],
                UseTail::Group(names) => {
                    let pair = |name: &'a Name| (name, format!("{base}::{}", name.text));
                    names.iter().map(pair).collect()
                }
            };
            for (name, target) in pairs {
                let own = join(&self.modules[*module], &name.text);
                if own == target {
                    continue;
                }
                if self.table.contains_key(&own) || self.uses.contains_key(&own) {
                    let text = format!("`{}` is declared twice", name.text);
                    diagnostics.push(Diagnostic::new(Code::E011, name.span, text));
                    continue;
                }
                self.uses.insert(own, target);
            }
        }
        // What is used must be there, but may be declared by another `use`.
        for (module, used) in &uses {
            let names: Vec<String> = match &used.tail {
                UseTail::Group(names) => names.iter().map(|it| it.text.clone()).collect(),
                _ => vec![String::new()],
            };
            for name in names {
                let mut segments: Vec<String> = used
                    .path
                    .segments
                    .iter()
                    .map(|it| it.text.clone())
                    .collect();
                if !name.is_empty() {
                    segments.push(name);
                }
                // What an undefined name might have been takes time to find out.
                if !diagnostics.is_full() && self.resolve_segments(*module, &segments).is_none() {
                    let told = self.undefined(&segments.join("::"), used.path.span, *module);
                    diagnostics.push(told);
                }
            }
        }
        self.use_spans = uses;
    }

    fn bind_methods(&mut self, diagnostics: &mut Diagnostics) {
        let items = self.items.clone();
        for Declared { item, module } in &items {
            let ItemKind::Impl(it) = &item.kind else {
                continue;
            };
            let receiver = it.receiver_type();
            let Some((path, _)) = self.resolve_name(*module, receiver) else {
                if !diagnostics.is_full() {
                    let told = self.undefined(&receiver.text, receiver.span, *module);
                    diagnostics.push(told);
                }
                continue;
            };
            let used_trait = it
                .target
                .as_ref()
                .map(|_| self.resolve_name(*module, &it.name));
            let mut trait_path = None;
            match used_trait {
                Some(Some((name, Symbol::Trait(_)))) => trait_path = Some(name),
                Some(_) if diagnostics.is_full() => {}
                Some(_) => {
                    let told = self.undefined(&it.name.text, it.name.span, *module);
                    diagnostics.push(told);
                }
                None => {}
            }
            for method in &it.methods {
                let name = &method.signature.name;
                let own = join(&path, &name.text);
                if let Some(trait_path) = &trait_path {
                    let trait_name = trait_path.rsplit("::").next().unwrap_or(trait_path);
                    let by_trait = join(&join(&path, trait_name), &name.text);
                    self.aliases.insert(by_trait, own.clone());
                }
                self.insert(own, Symbol::Method(method), name, *module, diagnostics);
            }
            if let Some(trait_path) = trait_path {
                self.impls.push((path, trait_path));
            }
        }
        self.bind_trait_defaults();
        for (alias, target) in &self.aliases {
            let list = self.known_as.entry(target.clone()).or_default();
            list.push(alias.clone());
        }
        self.known_as.values_mut().for_each(|list| list.sort());
    }

    fn bind_trait_defaults(&mut self) {
        for (path, trait_path) in self.impls.clone() {
            let Some(Symbol::Trait(it)) = self.table.get(&trait_path).copied() else {
                continue;
            };
            let trait_name = trait_path.rsplit("::").next().unwrap_or(&trait_path);
            for method in it.methods.iter().filter(|it| it.body.is_some()) {
                let name = &method.signature.name.text;
                let own = join(&path, name);
                if !self.table.contains_key(&own) {
                    let default = join(&trait_path, name);
                    self.aliases
                        .insert(join(&join(&path, trait_name), name), default.clone());
                    self.aliases.insert(own, default);
                }
            }
        }
    }

    /// Other paths under which a function is known, in a fixed order.
    pub fn aliases_of(&self, path: &str) -> Vec<String> {
        self.known_as.get(path).cloned().unwrap_or_default()
    }

    /// The module that what has this full path was declared in.
    pub fn home(&self, path: &str) -> usize {
        self.homes.get(path).copied().unwrap_or(0)
    }

    /// What a full path stands for, and its path where it is declared.
    pub fn full(&self, path: &str) -> Option<(String, Symbol<'a>)> {
        self.lookup(path.to_owned(), 8)
    }

    /// What a path means in a module: the full path and what it stands for.
    pub fn resolve(&self, module: usize, path: &Path) -> Option<(String, Symbol<'a>)> {
        match path.segments.as_slice() {
            [name] => self.resolve_name(module, name),
            segments => {
                let segments: Vec<String> = segments.iter().map(|it| it.text.clone()).collect();
                self.resolve_segments(module, &segments)
            }
        }
    }

    /// What a single name means in a module.
    pub fn resolve_name(&self, module: usize, name: &Name) -> Option<(String, Symbol<'a>)> {
        self.resolve_segments(module, std::slice::from_ref(&name.text))
    }

    fn resolve_segments(&self, module: usize, segments: &[String]) -> Option<(String, Symbol<'a>)> {
        let (first, rest) = segments.split_first()?;
        let mut scope = self.modules[module].as_str();
        loop {
            let own = join(scope, first);
            if let Some(target) = self.uses.get(&own) {
                let full = longer(target.clone(), rest);
                return self.lookup(full, 8);
            }
            if self.table.contains_key(&own) {
                let full = longer(own, rest);
                return self.lookup(full, 8);
            }
            if scope.is_empty() {
                break;
            }
            scope = scope.rsplit_once("::").map_or("", |(outer, _)| outer);
        }
        self.lookup(segments.join("::"), 8)
    }

    /// A full path; `steps` bounds how often names lead to other names.
    fn lookup(&self, path: String, steps: usize) -> Option<(String, Symbol<'a>)> {
        if steps == 0 {
            return None;
        }
        if let Some(target) = self.uses.get(&path) {
            return self.lookup(target.clone(), steps - 1);
        }
        if let Some(target) = self.aliases.get(&path) {
            return self.lookup(target.clone(), steps - 1);
        }
        if let Some(symbol) = self.table.get(&path) {
            return Some((path, *symbol));
        }
        if let Some(found) = builtin(&path) {
            return Some((path, Symbol::Builtin(found)));
        }
        if is_std_prefix(&path) {
            return Some((path, Symbol::Std));
        }
        let (outer, last) = path.rsplit_once("::")?;
        match self.lookup(outer.to_owned(), steps - 1)? {
            (full, Symbol::Mcp(_)) => Some((join(&full, last), Symbol::McpTool)),
            (full, Symbol::Alias(alias)) => {
                let TypeKind::Named { path, .. } = &alias.ty.kind else {
                    return None;
                };
                let target = join(&path.text(), last);
                (target != join(&full, last)).then(|| self.lookup(target, steps - 1))?
            }
            (full, _) if full != outer => self.lookup(join(&full, last), steps - 1),
            _ => None,
        }
    }

    /// All names that a module's code may begin a path with, for proposals.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.table.keys().map(String::as_str)
    }

    /// What an alias means in the end, or the type itself. The types of generics stay as they are.
    pub fn expand<'t>(&self, module: usize, ty: &'t Type) -> &'t Type
    where
        'a: 't,
    {
        let mut ty = ty;
        for _ in 0..16 {
            let TypeKind::Named { path, arguments } = &ty.kind else {
                break;
            };
            match self.resolve(module, path) {
                Some((_, Symbol::Alias(alias))) if arguments.is_empty() => ty = &alias.ty,
                _ => break,
            }
        }
        ty
    }
}

/// The function of the standard library that has the last name of this path.
fn standard_by_name(path: &str) -> Option<&'static str> {
    let last = path.rsplit("::").next()?;
    let mut all = STANDARD.iter().map(|it| it.path);
    all.find(|it| it.rsplit("::").next() == Some(last) && last != "new")
}

fn own_symbol(item: &Item) -> Option<(&Name, Symbol<'_>)> {
    Some(match &item.kind {
        ItemKind::Function(it) => {
            let name = &it.signature.name;
            let mut decorators = it.signature.decorators.iter();
            if decorators.any(|it| it.name.text == "test") {
                (name, Symbol::Test(it))
            } else {
                (name, Symbol::Function(it))
            }
        }
        ItemKind::Model(it) => (&it.name, Symbol::Model(it)),
        ItemKind::Agent(it) => (&it.name, Symbol::Agent(it)),
        ItemKind::Tool(it) => (&it.name, Symbol::Tool(it)),
        ItemKind::Mcp(it) => (&it.name, Symbol::Mcp(Some(it))),
        ItemKind::Schema(it) => (&it.name, Symbol::Schema(it)),
        ItemKind::Struct(it) => (&it.name, Symbol::Struct(it)),
        ItemKind::Enum(it) => (&it.name, Symbol::Enum(it)),
        ItemKind::Trait(it) => (&it.name, Symbol::Trait(it)),
        ItemKind::Pipeline(it) => (&it.name, Symbol::Pipeline(it)),
        ItemKind::Const(it) => (&it.name, Symbol::Const(it)),
        ItemKind::TypeAlias(it) => (&it.name, Symbol::Alias(it)),
        ItemKind::Store(it) => (&it.name, Symbol::Store(it)),
        ItemKind::Impl(_) | ItemKind::Use(_) | ItemKind::Mod(_) => return None,
    })
}
