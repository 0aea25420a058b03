//! A program as it is run: functions, and what their instructions refer to by number.

use std::collections::HashMap;
use std::sync::Arc;

use super::method::Method;
use super::op::{Op, Reg};
use crate::ir;
use crate::natives::Native;
use crate::value::{Binary, StructDef, Value, VariantDef};

/// What a raise does at the end of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Returns {
    Plain,
    Result,
    Option,
}

/// Where raises in a stretch of code go.
#[derive(Debug, Clone)]
pub(crate) struct Handler {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) target: u32,
    /// Where the raised value is put.
    pub(crate) register: Reg,
}

/// A function as it is run.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    pub(crate) code: Vec<Op>,
    /// How many registers it needs.
    pub(crate) registers: usize,
    /// How many of them are named: those behind are the stack.
    pub(crate) locals: usize,
    /// Arguments, `self` included.
    pub(crate) arity: usize,
    /// How many of them must be there.
    pub(crate) required: usize,
    /// Names of the arguments.
    pub(crate) params: Vec<Arc<str>>,
    /// How many captures follow the arguments.
    pub(crate) captures: usize,
    pub(crate) has_self: bool,
    pub(crate) mut_self: bool,
    pub(crate) returns: Returns,
    /// Innermost first.
    pub(crate) handlers: Vec<Handler>,
    /// Line and column from an instruction on.
    pub(crate) spans: Vec<(u32, [u32; 2])>,
}

impl Function {
    /// Where in the source an instruction comes from.
    pub(crate) fn span(&self, pc: usize) -> Option<[u32; 2]> {
        let after = self.spans.partition_point(|(from, _)| *from as usize <= pc);
        self.spans.get(after.checked_sub(1)?).map(|(_, span)| *span)
    }

    /// The innermost handler of an instruction.
    pub(crate) fn handler(&self, pc: usize) -> Option<&Handler> {
        self.handlers
            .iter()
            .find(|handler| (handler.from as usize..handler.to as usize).contains(&pc))
    }
}

/// A call of a method or of a function that is not known before.
#[derive(Debug)]
pub(crate) struct CallSite {
    pub(crate) name: Arc<str>,
    /// The built-in method of that name.
    pub(crate) method: Option<Method>,
    /// Functions of the program with that method's name, by type.
    pub(crate) functions: Vec<(Arc<str>, u32)>,
    pub(crate) schema: Option<Arc<str>>,
    /// Names of the last arguments.
    pub(crate) names: Vec<Arc<str>>,
    /// The steps of a place.
    pub(crate) path: Vec<Step>,
    pub(crate) operator: Option<Binary>,
    pub(crate) native: Option<&'static Native>,
    /// The tool of a call.
    pub(crate) tool: Option<Arc<str>>,
    /// Whether `response` (else `error`) of a mock is on the stack, or what is fixed.
    pub(crate) mock: Option<Mock>,
}

/// What a model is replaced by.
#[derive(Debug, Clone)]
pub(crate) enum Mock {
    Fixed {
        response: Option<Arc<str>>,
        error: Option<Arc<str>>,
    },
    Response,
    Error,
}

/// A step of a place.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Field(Arc<str>),
    Index,
}

/// How a struct is built.
#[derive(Debug)]
pub(crate) struct StructSite {
    pub(crate) def: Arc<StructDef>,
    /// The place of each value; none for one that the type does not have.
    pub(crate) places: Vec<usize>,
}

/// How a variant of an enum is built.
#[derive(Debug)]
pub(crate) struct VariantSite {
    pub(crate) def: Arc<VariantDef>,
    /// The place of each of its values among those given, if they are not in its order.
    pub(crate) order: Option<Vec<usize>>,
}

/// What a `listen` does with a type of message: the type, the function, how many captures it has.
pub(crate) type ListenHandler = (Arc<str>, u32, usize);

/// A stage of a pipeline.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) name: Arc<str>,
    pub(crate) function: u32,
    pub(crate) decorators: Vec<ir::Decorator>,
}

/// A program as it is run.
#[derive(Debug)]
pub struct Program {
    pub(crate) functions: Vec<Function>,
    pub(crate) by_name: HashMap<Arc<str>, u32>,
    pub(crate) constants: Vec<Value>,
    pub(crate) names: Vec<Arc<str>>,
    /// Names of the constants and of the state of tools.
    pub(crate) globals: HashMap<Arc<str>, u32>,
    pub(crate) sites: Vec<CallSite>,
    pub(crate) structs: Vec<StructSite>,
    pub(crate) variants: Vec<VariantSite>,
    /// Shapes of structs by name.
    pub(crate) types: HashMap<Arc<str>, Arc<StructDef>>,
    /// Methods of tools.
    pub(crate) tools: HashMap<Arc<str>, HashMap<Arc<str>, u32>>,
    pub(crate) pipelines: HashMap<Arc<str>, Vec<Stage>>,
    pub(crate) listens: HashMap<Arc<str>, Vec<ListenHandler>>,
    pub(crate) tests: Vec<u32>,
    pub(crate) ir: ir::Module,
}

impl Program {
    /// The IR that it was loaded from.
    pub fn ir(&self) -> &ir::Module {
        &self.ir
    }

    pub(crate) fn function(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }
}
