//! What the machine runs: instructions over the registers of a function.
//!
//! A function's registers are its parameters (`self` first), captures and locals, then one for each
//! place of the IR's stack. Most operands are therefore read where they lie, and a call's arguments
//! are the first registers of its callee.

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
