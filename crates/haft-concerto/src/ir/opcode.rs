//! The opcodes, each with what it takes and leaves: `before → after`, top of the stack at the right.

use serde::{Deserialize, Serialize};

/// What an instruction does. `a b → c` takes `a` and `b` (on top) and leaves `c`.
///
/// An opcode that no version knows reads as [`Unknown`](Opcode::Unknown) and is refused by the loader,
/// which can then say where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Opcode {
    /// `→ v`: the JSON value `arg`.
    Push,
    /// `v →`.
    Pop,
    /// `v → v v`.
    Dup,
    /// `a b → b a`.
    Swap,
    /// `→ v`: constant number `arg`.
    LoadConst,
    /// `→ v`: local `name`; if the function has none of that name, the global.
    LoadLocal,
    /// `v →`: into local `name`.
    StoreLocal,
    /// `→ v`: global `name`.
    LoadGlobal,
    /// `v →`: into global `name` (only in `$init`).
    StoreGlobal,

    /// `a b → a+b`.
    Add,
    /// `a b → a-b`.
    Sub,
    /// `a b → a*b`.
    Mul,
    /// `a b → a/b`.
    Div,
    /// `a b → a%b`.
    Mod,
    /// `a → -a`.
    Neg,
    /// `a b → Bool`.
    Eq,
    /// `a b → Bool`.
    Neq,
    /// `a b → Bool`.
    Lt,
    /// `a b → Bool`.
    Gt,
    /// `a b → Bool`.
    Lte,
    /// `a b → Bool`.
    Gte,
    /// `a b → a or b`: the deciding operand, both evaluated (upstream's; haft jumps).
    And,
    /// `a b → a or b`: as [`And`](Opcode::And).
    Or,
    /// `a → Bool`.
    Not,
    /// `v → v`: None becomes nil, `Some(v)` becomes v.
    NilCoalescePrep,
    /// `v → Bool`: whether `typeof` is `type_name`.
    CheckType,
    /// `v → w`: `as type_name`; raises a String if it cannot.
    Cast,

    /// `→`: to `offset`.
    Jump,
    /// `c →`: to `offset` if truthy.
    JumpIfTrue,
    /// `c →`: to `offset` unless truthy.
    JumpIfFalse,
    /// `v →`: leaves the function.
    Return,
    /// `→`: raises up to the matching `TRY_END` go to `offset`, with the value on the stack.
    TryBegin,
    /// `→`: ends the innermost `TRY_BEGIN`.
    TryEnd,
    /// `e → e`: goes on if `typeof e` is `type_name` or there is none, else to `offset`.
    Catch,
    /// `v →`: raises.
    Throw,
    /// `r → v`: `?`.
    Propagate,

    /// `args… f → v`: calls a function value. `argc`, `arg {"names"}`.
    Call,
    /// `receiver args… → v`: method `name`, `argc`, `schema` for `execute_with_schema`, `arg {"names"}`.
    CallMethod,
    /// `args… → v`: built-in or `std` function `name`, `argc`, `schema` for `parse_as`.
    CallNative,
    /// `args… → v`: method `method` of `tool` (a tool or an MCP server), `argc`, `arg {"names"}`.
    /// `self` is not among the arguments.
    CallTool,
    /// `args… → Result`: method `method` of `model`, `argc`.
    CallModel,
    /// As [`CallModel`](Opcode::CallModel), with `schema`.
    CallModelSchema,
    /// As [`CallModel`](Opcode::CallModel).
    CallModelStream,
    /// As [`CallModel`](Opcode::CallModel).
    CallModelChat,

    /// `v… → array`: `count` elements.
    BuildArray,
    /// `k v … → map`: `count` pairs; keys by display form; a key that comes again replaces.
    BuildMap,
    /// `v… → struct`: `type_name`, `count`, field names in `arg`, in the order of the values.
    BuildStruct,
    /// `from to inclusive → range`: Int or nil (open), Int or nil, Bool.
    BuildRange,
    /// `o → v`: field `name` of a struct, map, enum, tool.
    FieldGet,
    /// `o v → o`: the changed aggregate.
    FieldSet,
    /// `o i → v`.
    IndexGet,
    /// `o i v → o`: the changed aggregate.
    IndexSet,
    /// `k → Option`: of `hashmap_name`.
    HashMapGet,
    /// `k v → nil`.
    HashMapSet,
    /// `k → nil`.
    HashMapDelete,
    /// `k → Bool`.
    HashMapHas,
    /// `f → map`: entries for which `f(key, value)` is truthy.
    HashMapQuery,

    /// `channel payload →`: nothing is left; an expression pushes nil after it.
    Emit,
    /// `channel payload → v`: the handler's answer, or nil.
    EmitAwait,
    /// `v → v`.
    Await,
    /// `v… → array`: `count` values.
    AwaitAll,
    /// `f → v`: calls `f` without arguments (upstream's).
    SpawnAsync,
    /// `receiver prompt captures… → Result`: listen `name`; `receiver` is an agent or a builder. `count`
    /// captured values, those of the first handler first, each in the order of its `captures`.
    ListenBegin,
    /// `→`: replaces model `name` by the fixed `arg {response|error}`; or `v →` with `method`
    /// `"response"` or `"error"` **haft**: by the display form of v.
    MockModel,

    /// `captures… → closure`: function `name` with `count` captured values, in the order of the
    /// function's `captures`. **haft**, as all that follow.
    MakeClosure,
    /// `v… → enum`: variant `name` of `type_name`, `count` values; field names in `arg` if it has any.
    BuildEnum,
    /// `v… → String`: the display forms of `count` values, one after the other.
    BuildString,
    /// `subject → iterator`.
    IterBegin,
    /// `iterator → iterator item`, or `iterator →` and to `offset`.
    IterNext,
    /// `→`: to `offset` if parameter `name` was passed.
    ParamDefault,
    /// `→ absent`: only as an argument.
    Absent,
    /// `indexes… v →`: see the module's text on places. `name`, `arg`, `method` (an operator) for
    /// compound assignment.
    PlaceSet,
    /// `indexes… args… → v`: `name`, `arg`, `method`, `argc`.
    PlaceCall,
    /// `c → c` and to `offset` if c is falsy, else `c →`.
    JumpIfFalseOrPop,
    /// `c → c` and to `offset` if c is truthy, else `c →`.
    JumpIfTrueOrPop,
    /// `v → v` and to `offset` unless v is nil, else `v →`. For `??`.
    JumpIfNotNilOrPop,
    /// `v → Bool`: whether it is variant `name` of enum `type_name`; without `type_name` one of
    /// `Ok Err Some None`.
    IsVariant,
    /// `v → w`: payload number `arg` of a variant; 0 for `Ok`, `Err`, `Some`.
    Payload,
    /// `v → Bool`: an array of `count` elements, with `arg` true of at least that many.
    HasLength,
    /// `v → Bool`: a struct, enum or map that has field `name`.
    HasField,
    /// `array → array`: its elements from number `count` on.
    Rest,
    /// `v from to → Bool`: a number or String between constants; `arg` true: `to` included.
    InRange,
    /// `v →`: fault, a `let` pattern does not match v.
    Mismatch,
    /// `e →`: raises a caught value again as what it was (a fault stays one).
    Rethrow,
    /// `v → Ok(v)`, a Result stays as it is.
    WrapOk,
    /// `v → Err(v)`.
    WrapErr,

    /// Anything else.
    #[serde(other, skip_serializing)]
    Unknown,
}
