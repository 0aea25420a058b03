//! A program that is written while it runs: what `haft repl` reads, line by line.
//!
//! What comes in: pieces of source, one after the other. What goes out: for each a whole program, made of
//! everything that was declared so far, with one function for the piece. The names that `let` made before
//! are its parameters, and it gives them back with their values at its end. So every piece is checked,
//! compiled and run as any program is, and one that fails leaves everything as it was.
//!
//! Functions in values are numbers of the program, so declarations only ever come behind what is there. If
//! something is declared anew, values that hold functions are forgotten.

mod names;
mod piece;
mod unfinished;

use std::fmt;

use crate::ast::{Item, ItemKind, Part, Program};
use crate::check;
use crate::compile::{Options, known, surroundings, written};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir;
use crate::source::{SourceMap, Sources};
use crate::symbols::Symbols;
use crate::value::Value;
use crate::vm::Legacy;

use self::names::{bound_by, declared_by};
use self::piece::{MARK, Piece};

/// A name that `let` made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    name: String,
    mutable: bool,
}

/// What a session has so far.
pub struct Repl {
    options: Options,
    sources: SourceMap,
    items: Vec<Item>,
    variables: Vec<(Variable, Value)>,
    pieces: usize,
}

impl fmt::Debug for Repl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repl")
            .field("items", &self.items.len())
            .field("variables", &self.names())
            .finish_non_exhaustive()
    }
}

/// What a piece of source is.
#[derive(Debug)]
pub enum Reading {
    /// Nothing but white space and comments.
    Empty,
    /// It goes on in the next line.
    Unfinished,
    /// It cannot be run; the diagnostics say why.
    Wrong(Vec<Diagnostic>),
    /// It can be run.
    Ready(Box<Ready>),
}

/// A piece that can be run.
#[derive(Debug)]
pub struct Ready {
    /// The whole program with it.
    pub ir: ir::Module,
    /// The function to call.
    pub function: String,
    /// Its arguments.
    pub arguments: Vec<Value>,
    /// Warnings about it.
    pub warnings: Vec<Diagnostic>,
    /// Whether what comes before everything else must run: there are new constants or tools.
    pub initialises: bool,
    /// Names that were there before and are declared anew.
    pub anew: Vec<String>,
    shows: bool,
    items: Vec<Item>,
    variables: Vec<Variable>,
}

/// What came of a piece.
#[derive(Debug, Default)]
pub struct Taken {
    /// The value to show, if there is one.
    pub value: Option<Value>,
    /// The names whose values are gone because they held functions.
    pub forgotten: Vec<String>,
}

impl Repl {
    /// A session without anything.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            sources: SourceMap::new(),
            items: Vec::new(),
            variables: Vec::new(),
            pieces: 0,
        }
    }

    /// Whether what was written so far goes on in the next line.
    pub fn is_unfinished(text: &str) -> bool {
        unfinished::is_unfinished(text)
    }

    /// The files of the session, for showing diagnostics.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// The names that can be used: declarations, then variables.
    pub fn names(&self) -> Vec<String> {
        let items = self.items.iter().flat_map(declared_by);
        let variables = self.variables.iter().map(|(it, _)| it.name.clone());
        let all = items.chain(variables);
        all.filter(|name| !name.starts_with(['$', ' '])).collect()
    }

    /// Reads a piece. Nothing is kept of it before it is [taken](Self::take).
    pub fn read(&mut self, text: &str, more: &dyn Sources) -> Reading {
        let number = self.pieces + 1;
        let path = format!("repl-{number}.conc");
        let base = self.sources.files().last().map_or(0, |file| file.end() + 1);
        let mut diagnostics = Diagnostics::default();
        let read = piece::read(&path, text, more, &mut self.sources, &mut diagnostics);
        self.pieces = number;
        let Some(piece) = read else {
            return Reading::Wrong(diagnostics.into_sorted());
        };
        if piece.items.is_empty() && piece.stmts.is_empty() {
            return Reading::Empty;
        }
        self.compiled(piece, number, base, diagnostics)
    }

    fn compiled(
        &self,
        piece: Piece,
        number: usize,
        base: u32,
        mut diagnostics: Diagnostics,
    ) -> Reading {
        let declared: Vec<String> = piece.items.iter().flat_map(declared_by).collect();
        let is_anew = |item: &&Item| declared_by(item).iter().any(|it| declared.contains(it));
        let anew: Vec<String> = self
            .items
            .iter()
            .filter(is_anew)
            .flat_map(declared_by)
            .collect();
        // Closures of earlier pieces are gone with what is declared anew, and so are the pieces.
        let stays = |item: &&Item| anew.is_empty() || !(is_anew(item) || is_piece(item));
        let mut items: Vec<Item> = self.items.iter().filter(stays).cloned().collect();
        let mut old: Vec<&(Variable, Value)> = self.variables.iter().collect();
        old.retain(|(it, value)| {
            !declared.contains(&it.name) && (anew.is_empty() || !value.holds_function())
        });
        let mut variables: Vec<Variable> = old.iter().map(|(it, _)| it.clone()).collect();
        let parameter = |(it, value): &&(Variable, Value)| (it.clone(), type_of(it, value));
        let parameters: Vec<_> = old.iter().map(parameter).collect();
        let arguments = old.iter().map(|(_, value)| value.clone()).collect();
        for stmt in &piece.stmts {
            for made in bound_by(stmt) {
                variables.retain(|it| it.name != made.name);
                variables.push(made);
            }
        }
        let initialises = piece.items.iter().any(needs_init);
        items.extend(piece.items.iter().cloned());
        let shows = piece.shows;
        let function = format!("$piece_{number}");
        items.push(piece.function(&function, &parameters, &variables));
        let program = Program {
            parts: items.iter().cloned().map(Part::Item).collect(),
        };
        let known = known(&self.options);
        let symbols = Symbols::new(&program, &known.servers, &mut diagnostics);
        check::check(&symbols, &known, &mut diagnostics);
        let mut ir = None;
        if !diagnostics.has_errors() {
            let around = surroundings(&self.options);
            ir = written(&symbols, &self.sources, &around, &mut diagnostics);
        }
        drop(symbols);
        let Some(ir) = ir else {
            let mut wrong = diagnostics.into_sorted();
            wrong.retain(|it| !it.is_warning());
            return Reading::Wrong(wrong);
        };
        if !makes_closures(&ir, &function) {
            // Nobody can call what it made.
            items.pop();
        }
        let mut warnings = diagnostics.into_sorted();
        warnings.retain(|it| it.span.start >= base);
        Reading::Ready(Box::new(Ready {
            ir,
            function,
            arguments,
            warnings,
            initialises,
            anew,
            shows,
            items,
            variables,
        }))
    }

    /// Keeps what a piece declared and made: it came to this end.
    pub fn take(&mut self, ready: Ready, result: &Value) -> Taken {
        let before = self.variables.iter().map(|(it, _)| it.name.clone());
        let declared: Vec<String> = ready.items.iter().flat_map(declared_by).collect();
        let mut forgotten: Vec<String> = before.collect();
        forgotten.retain(|name| {
            !ready.variables.iter().any(|it| it.name == *name) && !declared.contains(name)
        });
        self.items = ready.items;
        let given = match result {
            Value::Array(array) => array.items(),
            _ => &[],
        };
        let (value, values) = match given {
            [Value::Text(mark), value, values @ ..]
                if mark.as_str() == MARK && values.len() == ready.variables.len() =>
            {
                (value.clone(), values)
            }
            // It was left by `return`: what it made is gone.
            _ => {
                let value = Some(result.clone()).filter(|it| !matches!(it, Value::Nil));
                return Taken { value, forgotten };
            }
        };
        let variables = ready.variables.into_iter().zip(values.iter().cloned());
        self.variables = variables.collect();
        let is_shown = ready.shows && !matches!(value, Value::Nil);
        Taken {
            value: is_shown.then_some(value),
            forgotten,
        }
    }
}

impl Ready {
    /// What the machine before left, without what this piece declares anew.
    pub fn legacy(&self, mut legacy: Legacy) -> Legacy {
        for name in &self.anew {
            legacy.forget(name);
        }
        if !self.anew.is_empty() {
            legacy.forget_functions();
        }
        legacy
    }
}

fn is_piece(item: &Item) -> bool {
    matches!(&item.kind, ItemKind::Function(it) if it.signature.name.text.starts_with('$'))
}

/// Whether something of it runs before everything else.
fn needs_init(item: &Item) -> bool {
    match &item.kind {
        ItemKind::Const(_) => true,
        ItemKind::Tool(tool) => !tool.state.is_empty(),
        ItemKind::Mod(module) => module.items.iter().flatten().any(needs_init),
        _ => false,
    }
}

fn makes_closures(ir: &ir::Module, function: &str) -> bool {
    let function = ir.functions.iter().find(|it| it.name == function);
    function.is_some_and(|function| {
        let mut code = function.instructions.iter();
        code.any(|it| it.op == ir::Opcode::MakeClosure)
    })
}

/// What a parameter for a variable is declared as: a list or a map that must not change, so that whoever
/// changes it is told; of anything else nothing is known.
fn type_of(variable: &Variable, value: &Value) -> &'static str {
    match value {
        Value::Array(_) if !variable.mutable => "Array",
        Value::Map(_) if !variable.mutable => "Map",
        _ => "Any",
    }
}

#[cfg(test)]
mod tests;
