//! The IR: what a compiled program is, as JSON that other tools can read (`.conc-ir`).
//!
//! It is the only contract between the front half, which writes it, and [`load`](crate::load), which
//! turns it into what the machine runs. Its shape is upstream's: files of version 0.1.x from either
//! load. What haft adds are further opcodes and further members, marked **haft** below.
//!
//! # Functions and names
//!
//! - A function is named by its full path from the root of the program: `main`, `units::double`,
//!   `Counter::bump`, `Shape::Area::area`. A closure's function is called `$closure_N`; defaults,
//!   computed prompts and the like have names that begin with `$` too. `$init`, if there is one, runs
//!   before the entry, a test or a tool: it stores constants ([`StoreGlobal`](Opcode::StoreGlobal)
//!   under the constant's path) and the initial state of tools (under `Tool.field`).
//! - `aliases` **haft**: other paths under which the same function is known. An `impl Trait for T`
//!   puts `T::Trait::m` there; a default body `Trait::m` also has `T::m` and `T::Trait::m` for each
//!   `T` that does not write its own.
//! - `self` is not in `params`. `receiver` **haft** says that there is one: it is then the first
//!   argument of the function and the local `self`. With `mut` the changed `self` is written back by
//!   [`PlaceCall`](Opcode::PlaceCall).
//! - Locals are named. **Each binding of a function has a name of its own**, so that a name is a slot:
//!   the first `x` is `x`, those that shadow it `x$1`, `x$2`; temporaries of the emitter begin with
//!   `$`. Parameters keep their names. A name that is neither a parameter, a capture, `self`, nor
//!   stored anywhere in the function is a global.
//! - Globals are, in this order: constants, functions, models, schemas, tools, MCP servers, stores,
//!   pipelines, agents of the module by their paths; built-ins (`println`, `Ok`, `None`, `len`,
//!   `ToolError::new`, …); `std::…`. An unknown one is a fault when it is reached, not before.
//! - Type names are the paths that `typeof` gives and `type_name` names: simple names at the root.
//!   Methods of a type are the functions `{type name}::{method}`. Aliases of types are expanded by
//!   the emitter, everywhere (`return_type` too: whether it begins with `Result` or `Option` decides
//!   what a raise does).
//!
//! # The stack
//!
//! Every instruction takes its operands from the top of the function's stack and leaves its results
//! there; see [`Opcode`]. Wherever ways join, the stack has the same height on each. A function
//! ends with [`Return`](Opcode::Return) (running off the end returns nil). An expression leaves
//! exactly one value, a statement none. `return`, `break`, `continue` and `throw` as expressions leave
//! nothing: what follows cannot be reached, and the loader does not look at it.
//!
//! # Default arguments
//!
//! The callee fills in its defaults: its first instructions are, for each parameter with a default
//! (`optional: true` **haft**), in order,
//!
//! ```text
//! PARAM_DEFAULT name=p offset=L    // jumps to L if an argument was passed
//! …default expression…
//! STORE_LOCAL p
//! L:
//! ```
//!
//! A call may leave out optional parameters at the end. Named arguments of known callees are put in
//! order by the emitter; a parameter left out in the middle is passed as [`Absent`](Opcode::Absent).
//! Where the callee is not known (methods of values, function values), the arguments follow in the
//! order of the source and `arg` of the call is `{"names": ["auto"]}`: the names of the last ones.
//!
//! # Places
//!
//! A place is a local and a path: `grid[i].name`. `arg` of the place instructions is the path: a
//! string is a field, `null` an index whose value is on the stack. Indexes are evaluated from left to
//! right before the arguments or the value:
//!
//! ```text
//! grid[i].name = v          i, v, PLACE_SET name=grid arg=[null,"name"]
//! total += v                LOAD_LOCAL total, v, ADD, STORE_LOCAL total
//! grid[i][0] += v           i, 0, v, PLACE_SET name=grid arg=[null,null] method="ADD"
//! grid[i].push(v)           i, v, PLACE_CALL name=grid arg=[null] method=push argc=1
//! xs.push(v)                v, PLACE_CALL name=xs method=push argc=1
//! ```
//!
//! `PLACE_CALL` is for receivers that are places with a `mut` root (a `mut` local, `self` of a `mut
//! self` method) and methods that may change them: `push pop insert remove set reverse sort clear`,
//! and every method that some `impl` of the program declares with `mut self`. Any other call is
//! `CALL_METHOD`, which works on a copy. State of a tool is a place with the root `self`.
//!
//! # Loops
//!
//! ```text
//! …subject…, ITER_BEGIN              // the iterator takes the place of the subject
//! L: ITER_NEXT offset=END            // leaves iterator, item; at the end leaves nothing and jumps
//! …bind the item (STORE_LOCAL or pattern), body, one POP if it left a value…
//! JUMP L
//! END: LOAD_CONST nil                // value of the loop
//! OUT:
//! break v:   …v…, SWAP, POP, JUMP OUT     (the iterator is dropped)
//! continue:  JUMP L
//! ```
//!
//! `break` and `continue` first drop whatever else is on the stack above the iterator (they may stand
//! in the middle of an expression), and leave `try` blocks by one `TRY_END` each. Maps give pairs:
//! arrays of key and value.
//!
//! # Patterns
//!
//! The subject is stored in a temporary; each part of a pattern is a test that leaves a Bool, followed by
//! `JUMP_IF_FALSE` to the next arm. Tests are `EQ` with a literal, [`IsVariant`](Opcode::IsVariant),
//! [`CheckType`](Opcode::CheckType) for structs, [`InRange`](Opcode::InRange),
//! [`HasLength`](Opcode::HasLength), [`HasField`](Opcode::HasField); parts are taken by
//! [`Payload`](Opcode::Payload), `FIELD_GET`, `INDEX_GET`, [`Rest`](Opcode::Rest). A `let` pattern
//! that does not match is a fault: [`Mismatch`](Opcode::Mismatch).
//!
//! # Raising and catching
//!
//! ```text
//! TRY_BEGIN offset=C, …body…, TRY_END, JUMP OUT
//! C: CATCH type_name=String offset=D   // the raised value is on the stack and stays there
//!    STORE_LOCAL m  (or POP), …body…, JUMP OUT
//! D: CATCH offset=…                    // without type: takes everything
//!    …
//! R: RETHROW                           // where the last CATCH with a type goes if it does not fit
//! ```
//!
//! At `C` the stack is as high as it was at `TRY_BEGIN`, plus the raised value. `try` without `catch`
//! ends its body with [`WrapOk`](Opcode::WrapOk) and has, at `C`, [`WrapErr`](Opcode::WrapErr). A
//! `CATCH` of upstream has no `offset`; the loader finds the next one as upstream's machine does.

mod decorator;
mod instruction;
mod module;
mod opcode;
mod read;

pub use decorator::{Backoff, Retry};
pub use instruction::Instruction;
pub use module::{
    Agent, Connection, Constant, ConstantKind, Decorator, Field, Function, HandlerIr, HashMapStore,
    Ledger, Listen, Memory, Metadata, Model, ModelConfig, Module, Param, Pipeline, Receiver,
    Schema, Stage, Test, Tool, ToolSchema, TypeDef, TypeKind, Variant,
};
pub use opcode::Opcode;
pub use read::ReadError;

/// The version that haft writes. Every 0.1.x is read.
pub const VERSION: &str = "0.1.0";
