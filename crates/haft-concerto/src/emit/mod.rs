//! A checked program to IR (concerto.md §13, §14). What each instruction takes and leaves, and how
//! names, places, loops and patterns are written, is told in [`crate::ir`].

mod body;
mod call;
mod constant;
mod control;
mod expr;
mod function;
mod item;
mod pattern;
mod schema;
mod types;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use body::{Body, Local};

use crate::ast::{ItemKind, Receiver};
use crate::diagnostic::Diagnostic;
use crate::ir::{self, Instruction, Opcode};
use crate::source::{SourceMap, Span};
use crate::symbols::Symbols;

/// What a program is written with beside its source.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The connections and MCP servers of the manifest, in its order.
    pub connections: Vec<ir::Connection>,
    /// The agents of the manifest: their names and settings.
    pub agents: Vec<(String, serde_json::Map<String, serde_json::Value>)>,
}

/// Writes a program that was checked.
///
/// What cannot be written is told; then the program cannot be used.
pub fn emit(
    symbols: &Symbols<'_>,
    sources: &SourceMap,
    around: &Surroundings,
) -> (ir::Module, Vec<Diagnostic>) {
    let path = sources
        .files()
        .first()
        .map_or("main.conc", |file| file.path.as_str());
    let stem = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = stem.strip_suffix(".conc").unwrap_or(stem);
    let mut emitter = Emitter {
        symbols,
        sources,
        around,
        out: ir::Module::new(stem, path),
        constants: HashMap::new(),
        bodies: Vec::new(),
        module: 0,
        closures: 0,
        mutators: mutators(symbols),
        source: None,
        problems: Vec::new(),
        objects: Cell::new(0),
    };
    emitter.program();
    (emitter.out, emitter.problems)
}

/// Methods that change what they are called on, of arrays and maps and of this program.
fn mutators(symbols: &Symbols<'_>) -> HashSet<String> {
    let built_in = [
        "push", "pop", "insert", "remove", "set", "reverse", "sort", "clear",
    ];
    let mut names: HashSet<String> = built_in.map(str::to_owned).into();
    for declared in &symbols.items {
        let methods = match &declared.item.kind {
            ItemKind::Impl(it) => &it.methods,
            ItemKind::Trait(it) => &it.methods,
            _ => continue,
        };
        let changing = methods
            .iter()
            .filter(|it| it.signature.receiver == Some(Receiver::Mut));
        names.extend(changing.map(|it| it.signature.name.text.clone()));
    }
    names
}

struct Emitter<'a> {
    symbols: &'a Symbols<'a>,
    sources: &'a SourceMap,
    around: &'a Surroundings,
    out: ir::Module,
    constants: HashMap<constant::Key, u32>,
    /// The function that is written, the last, and those around it.
    bodies: Vec<Body>,
    /// The module that the code stands in.
    module: usize,
    closures: u32,
    mutators: HashSet<String>,
    /// The file that the code stands in, if it is not the first.
    source: Option<String>,
    problems: Vec<Diagnostic>,
    /// How many schemas the one at hand has.
    objects: Cell<usize>,
}

impl Emitter<'_> {
    /// Code of this place follows.
    fn in_file_of(&mut self, span: Span) {
        let first = self.sources.files().first().map(|it| &it.path);
        let file = self.sources.file(span.start).map(|it| &it.path);
        self.source = file.filter(|it| Some(*it) != first).cloned();
    }

    fn body(&mut self) -> &mut Body {
        let last = self.bodies.len() - 1;
        // Code is only written between `open` and `close`, which push and pop a body.
        &mut self.bodies[last]
    }

    fn push(&mut self, instruction: Instruction) -> usize {
        self.body().push(instruction)
    }

    fn op(&mut self, op: Opcode) -> usize {
        self.push(Instruction::new(op))
    }

    /// An instruction that may fail, with its place.
    fn push_at(&mut self, span: Span, instruction: Instruction) -> usize {
        let position = self.sources.position(span);
        self.push(instruction.span(position.line, position.column))
    }

    fn op_at(&mut self, span: Span, op: Opcode) -> usize {
        self.push_at(span, Instruction::new(op))
    }

    fn load(&mut self, slot: &str) {
        self.push(Instruction::new(Opcode::LoadLocal).name(slot));
    }

    fn store(&mut self, slot: &str) {
        self.push(Instruction::new(Opcode::StoreLocal).name(slot));
    }

    fn global(&mut self, path: &str, span: Span) {
        self.push_at(span, Instruction::new(Opcode::LoadGlobal).name(path));
    }

    fn in_scope<T>(&mut self, inner: impl FnOnce(&mut Self) -> T) -> T {
        self.body().scopes.push(HashMap::new());
        let result = inner(self);
        self.body().scopes.pop();
        result
    }

    /// A variable of this function or, captured, of one around it.
    fn local(&mut self, name: &str) -> Option<Local> {
        self.local_in(self.bodies.len().checked_sub(1)?, name)
    }

    fn local_in(&mut self, index: usize, name: &str) -> Option<Local> {
        if let Some(local) = self.bodies[index].lookup(name) {
            return Some(local.clone());
        }
        let outer = self.local_in(index.checked_sub(1)?, name)?;
        Some(self.bodies[index].capture(name, outer))
    }
}

#[cfg(test)]
mod tests;
