//! The code of one function while it is written: instructions, names, what is open.

use std::collections::{HashMap, HashSet};

use crate::ir::{Instruction, Opcode};

/// A loop that `break` and `continue` may leave.
pub(super) struct Loop {
    /// Where the next round begins.
    pub(super) start: usize,
    /// How high the stack is without anything of the loop.
    pub(super) height: usize,
    /// Whether an iterator lies above that.
    pub(super) iterator: bool,
    /// How many `try` are open around it.
    pub(super) tries: usize,
    /// Jumps to behind the loop.
    pub(super) breaks: Vec<usize>,
}

/// A variable.
#[derive(Clone)]
pub(super) struct Local {
    /// What it is called in the IR.
    pub(super) slot: String,
    /// Whether it is a place that methods may change.
    pub(super) mutable: bool,
}

/// A value of the function around a closure that the closure uses.
pub(super) struct Capture {
    /// What it is called in the closure.
    pub(super) inner: String,
    /// What it is called outside.
    pub(super) outer: Local,
}

/// The code of one function.
#[derive(Default)]
pub(super) struct Body {
    pub(super) code: Vec<Instruction>,
    pub(super) scopes: Vec<HashMap<String, Local>>,
    pub(super) loops: Vec<Loop>,
    pub(super) tries: usize,
    pub(super) captures: Vec<Capture>,
    /// How many values lie on the stack.
    pub(super) height: usize,
    /// Names that the pattern at hand has bound: alternatives share them.
    pub(super) pattern: Option<HashMap<String, String>>,
    slots: HashSet<String>,
    next: HashMap<String, u32>,
    pub(super) locals: Vec<String>,
}

impl Body {
    pub(super) fn new() -> Self {
        Self {
            scopes: vec![HashMap::new()],
            ..Self::default()
        }
    }

    pub(super) fn lookup(&self, name: &str) -> Option<&Local> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// A name that no other binding of the function has.
    fn fresh(&mut self, name: &str) -> String {
        if self.slots.insert(name.to_owned()) {
            return name.to_owned();
        }
        let next = self.next.entry(name.to_owned()).or_insert(0);
        loop {
            *next += 1;
            let slot = format!("{name}${next}");
            if self.slots.insert(slot.clone()) {
                return slot;
            }
        }
    }

    /// Binds a name from here to the end of its scope.
    pub(super) fn declare(&mut self, name: &str, mutable: bool) -> String {
        let bound = self.pattern.as_ref().and_then(|it| it.get(name).cloned());
        if let Some(slot) = bound {
            return slot;
        }
        let slot = self.fresh(name);
        self.locals.push(slot.clone());
        if let Some(pattern) = &mut self.pattern {
            pattern.insert(name.to_owned(), slot.clone());
        }
        let local = Local {
            slot: slot.clone(),
            mutable,
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), local);
        }
        slot
    }

    /// A parameter: it keeps its name and is no further local.
    pub(super) fn parameter(&mut self, name: &str, mutable: bool) {
        let slot = self.fresh(name);
        let local = Local { slot, mutable };
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), local);
        }
    }

    /// A value of the function around, which is known in all of this one.
    pub(super) fn capture(&mut self, name: &str, outer: Local) -> Local {
        let inner = self.fresh(name);
        let local = Local {
            slot: inner.clone(),
            mutable: outer.mutable,
        };
        self.captures.push(Capture { inner, outer });
        self.scopes[0].insert(name.to_owned(), local.clone());
        local
    }

    /// A place for a value that nobody named.
    pub(super) fn temporary(&mut self, kind: &str) -> String {
        let slot = self.fresh(&format!("${kind}"));
        self.locals.push(slot.clone());
        slot
    }

    pub(super) fn here(&self) -> usize {
        self.code.len()
    }

    pub(super) fn push(&mut self, instruction: Instruction) -> usize {
        let (takes, leaves) = effect(&instruction);
        self.height = self.height.saturating_sub(takes) + leaves;
        self.code.push(instruction);
        self.code.len() - 1
    }

    /// Lets these jumps lead to here.
    pub(super) fn patch(&mut self, jumps: impl IntoIterator<Item = usize>) {
        let here = self.here();
        self.patch_to(jumps, here);
    }

    pub(super) fn patch_to(&mut self, jumps: impl IntoIterator<Item = usize>, target: usize) {
        for jump in jumps {
            self.code[jump].offset = Some(u32::try_from(target).unwrap_or(u32::MAX));
        }
    }
}

/// How many values an instruction takes from the stack and leaves there when it goes on.
fn effect(instruction: &Instruction) -> (usize, usize) {
    let argc = instruction.argc.unwrap_or(0) as usize;
    let count = instruction.count.unwrap_or(0) as usize;
    let indexes = || {
        let path = instruction.arg.as_ref().and_then(|arg| arg.as_array());
        path.map_or(0, |path| path.iter().filter(|it| it.is_null()).count())
    };
    match instruction.op {
        Opcode::Push
        | Opcode::LoadConst
        | Opcode::LoadLocal
        | Opcode::LoadGlobal
        | Opcode::Absent => (0, 1),
        Opcode::Pop
        | Opcode::StoreLocal
        | Opcode::StoreGlobal
        | Opcode::JumpIfTrue
        | Opcode::JumpIfFalse
        | Opcode::Return
        | Opcode::Throw
        | Opcode::Rethrow
        | Opcode::Mismatch
        | Opcode::JumpIfFalseOrPop
        | Opcode::JumpIfTrueOrPop
        | Opcode::JumpIfNotNilOrPop => (1, 0),
        Opcode::Dup | Opcode::IterNext => (1, 2),
        Opcode::Swap => (2, 2),
        Opcode::Add
        | Opcode::Sub
        | Opcode::Mul
        | Opcode::Div
        | Opcode::Mod
        | Opcode::Eq
        | Opcode::Neq
        | Opcode::Lt
        | Opcode::Gt
        | Opcode::Lte
        | Opcode::Gte
        | Opcode::And
        | Opcode::Or
        | Opcode::IndexGet
        | Opcode::FieldSet
        | Opcode::EmitAwait => (2, 1),
        Opcode::Emit => (2, 0),
        Opcode::BuildRange | Opcode::IndexSet | Opcode::InRange => (3, 1),
        Opcode::Call | Opcode::CallMethod => (argc + 1, 1),
        Opcode::CallNative | Opcode::CallTool => (argc, 1),
        Opcode::BuildArray
        | Opcode::BuildStruct
        | Opcode::BuildEnum
        | Opcode::BuildString
        | Opcode::AwaitAll
        | Opcode::MakeClosure => (count, 1),
        Opcode::BuildMap => (count * 2, 1),
        Opcode::ListenBegin => (count + 2, 1),
        Opcode::PlaceSet => (indexes() + 1, 0),
        Opcode::PlaceCall => (indexes() + argc, 1),
        Opcode::MockModel => (usize::from(instruction.method.is_some()), 0),
        Opcode::Jump | Opcode::TryBegin | Opcode::TryEnd | Opcode::ParamDefault => (0, 0),
        // Everything else looks at one value and leaves one.
        _ => (1, 1),
    }
}
