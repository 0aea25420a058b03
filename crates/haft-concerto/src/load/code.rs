//! What the machine runs: instructions over the registers of a function.
//!
//! A function's registers are its parameters (`self` first), captures and locals, then one for each
//! place of the IR's stack. Most operands are therefore read where they lie, and a call's arguments
//! are the first registers of its callee.

use std::collections::HashMap;
use std::sync::Arc;

use super::method::Method;
use crate::ir;
use crate::natives::Native;
use crate::value::{Binary, StructDef, Value, VariantDef};

/// A register of the running function.
pub(crate) type Reg = u16;

/// One instruction: 12 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Op {
    Move {
        dst: Reg,
        src: Reg,
    },
    /// As `Move`, leaving nothing.
    Take {
        dst: Reg,
        src: Reg,
    },
    Clear {
        dst: Reg,
    },
    Swap {
        a: Reg,
        b: Reg,
    },
    Const {
        dst: Reg,
        constant: u32,
    },
    Int {
        dst: Reg,
        value: i32,
    },
    LoadGlobal {
        dst: Reg,
        global: u32,
    },
    StoreGlobal {
        src: Reg,
        global: u32,
    },
    NameError {
        name: u32,
    },

    Add {
        dst: Reg,
        a: Reg,
        b: Reg,
    },
    Sub {
        dst: Reg,
        a: Reg,
        b: Reg,
    },
    Mul {
        dst: Reg,
        a: Reg,
        b: Reg,
    },
    Div {
        dst: Reg,
        a: Reg,
        b: Reg,
    },
    Mod {
        dst: Reg,
        a: Reg,
        b: Reg,
    },
    AddInt {
        dst: Reg,
        a: Reg,
        value: i32,
    },
    SubInt {
        dst: Reg,
        a: Reg,
        value: i32,
    },
    MulInt {
        dst: Reg,
        a: Reg,
        value: i32,
    },
    DivInt {
        dst: Reg,
        a: Reg,
        value: i32,
    },
    ModInt {
        dst: Reg,
        a: Reg,
        value: i32,
    },
    Neg {
        dst: Reg,
        src: Reg,
    },
    Not {
        dst: Reg,
        src: Reg,
    },
    Compare {
        dst: Reg,
        a: Reg,
        b: Reg,
        test: Test,
    },
    And {
        dst: Reg,
        a: Reg,
        b: Reg,
    },
    Or {
        dst: Reg,
        a: Reg,
        b: Reg,
    },

    Jump {
        to: u32,
    },
    /// Backwards: time is counted and the host may interrupt.
    Loop {
        to: u32,
    },
    JumpTrue {
        src: Reg,
        to: u32,
    },
    JumpFalse {
        src: Reg,
        to: u32,
    },
    JumpNotNil {
        src: Reg,
        to: u32,
    },
    JumpLess {
        a: Reg,
        b: Reg,
        expect: bool,
        to: u32,
    },
    JumpLessEqual {
        a: Reg,
        b: Reg,
        expect: bool,
        to: u32,
    },
    JumpEqual {
        a: Reg,
        b: Reg,
        expect: bool,
        to: u32,
    },
    JumpLessInt {
        a: Reg,
        value: i32,
        expect: bool,
        to: u32,
    },
    JumpLessEqualInt {
        a: Reg,
        value: i32,
        expect: bool,
        to: u32,
    },
    JumpGreaterInt {
        a: Reg,
        value: i32,
        expect: bool,
        to: u32,
    },
    JumpGreaterEqualInt {
        a: Reg,
        value: i32,
        expect: bool,
        to: u32,
    },
    JumpEqualInt {
        a: Reg,
        value: i32,
        expect: bool,
        to: u32,
    },
    JumpPassed {
        src: Reg,
        to: u32,
    },
    Return {
        src: Reg,
    },
    ReturnNil,

    CallFunction {
        base: Reg,
        argc: u16,
        function: u32,
    },
    CallNative {
        base: Reg,
        argc: u16,
        site: u32,
    },
    /// The callee lies behind the arguments.
    CallValue {
        base: Reg,
        argc: u16,
        site: u32,
    },
    CallMethod {
        base: Reg,
        argc: u16,
        site: u32,
    },
    PlaceCall {
        base: Reg,
        argc: u16,
        root: Reg,
        site: u32,
    },
    PlaceSet {
        base: Reg,
        root: Reg,
        site: u32,
    },
    CallTool {
        base: Reg,
        argc: u16,
        site: u32,
    },

    BuildArray {
        base: Reg,
        count: u32,
    },
    BuildMap {
        base: Reg,
        count: u32,
    },
    BuildString {
        base: Reg,
        count: u32,
    },
    BuildStruct {
        base: Reg,
        site: u32,
    },
    BuildEnum {
        base: Reg,
        count: u16,
        site: u32,
    },
    BuildRange {
        base: Reg,
    },
    MakeClosure {
        base: Reg,
        count: u16,
        function: u32,
    },
    GetField {
        dst: Reg,
        src: Reg,
        name: u32,
    },
    /// Changes the aggregate in `base`.
    SetField {
        base: Reg,
        src: Reg,
        name: u32,
    },
    GetIndex {
        dst: Reg,
        src: Reg,
        index: Reg,
    },
    SetIndex {
        base: Reg,
        index: Reg,
        src: Reg,
    },
    IterBegin {
        dst: Reg,
        src: Reg,
    },
    IterNext {
        iter: Reg,
        dst: Reg,
        to: u32,
    },

    Throw {
        src: Reg,
    },
    Rethrow {
        src: Reg,
    },
    Mismatch {
        src: Reg,
    },
    Propagate {
        dst: Reg,
        src: Reg,
    },
    Catch {
        src: Reg,
        name: u32,
        to: u32,
    },
    WrapOk {
        dst: Reg,
        src: Reg,
    },
    WrapErr {
        dst: Reg,
        src: Reg,
    },
    NilPrep {
        dst: Reg,
        src: Reg,
    },
    Cast {
        dst: Reg,
        src: Reg,
        name: u32,
    },
    IsType {
        dst: Reg,
        src: Reg,
        name: u32,
    },
    IsVariant {
        dst: Reg,
        src: Reg,
        site: u32,
    },
    Payload {
        dst: Reg,
        src: Reg,
        place: u32,
    },
    HasLength {
        dst: Reg,
        src: Reg,
        at_least: bool,
        count: u32,
    },
    HasField {
        dst: Reg,
        src: Reg,
        name: u32,
    },
    Rest {
        dst: Reg,
        src: Reg,
        from: u32,
    },
    InRange {
        base: Reg,
        inclusive: bool,
    },

    Emit {
        base: Reg,
    },
    EmitAwait {
        base: Reg,
    },
    Listen {
        base: Reg,
        count: u16,
        site: u32,
    },
    MockModel {
        base: Reg,
        site: u32,
    },
}

/// A comparison that leaves a Bool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Test {
    Eq,
    Ne,
    Lt,
    Gt,
    Le,
    Ge,
}

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
    pub(crate) variants: Vec<Arc<VariantDef>>,
    /// Shapes of structs by name.
    pub(crate) types: HashMap<Arc<str>, Arc<StructDef>>,
    /// Methods of tools.
    pub(crate) tools: HashMap<Arc<str>, HashMap<Arc<str>, u32>>,
    pub(crate) pipelines: HashMap<Arc<str>, Vec<Stage>>,
    /// For each `listen`: message type, function, how many captures.
    pub(crate) listens: HashMap<Arc<str>, Vec<(Arc<str>, u32, usize)>>,
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
