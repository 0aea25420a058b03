//! Follows a function's instructions: how high the stack is at each, and which `try` blocks are open.

use crate::ir::{Instruction, Opcode};

use super::error::LoadErrorKind;

/// What is known before an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    /// How many values the stack has.
    pub(super) height: usize,
    /// The `TRY_BEGIN`s that are open, outermost first.
    pub(super) tries: Vec<usize>,
}

/// The state before each instruction; `None` for those that are never reached.
pub(super) type Flow = Vec<Option<State>>;

/// No function needs more; what does is no program.
const HIGHEST: usize = 20_000;

/// Values that an instruction takes and leaves.
fn effect(instruction: &Instruction) -> (usize, usize) {
    let argc = instruction.argc.unwrap_or(0) as usize;
    let count = instruction.count.unwrap_or(0) as usize;
    match instruction.op {
        Opcode::Push
        | Opcode::LoadConst
        | Opcode::LoadLocal
        | Opcode::LoadGlobal
        | Opcode::Absent => (0, 1),
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
        | Opcode::HashMapSet
        | Opcode::EmitAwait => (2, 1),
        Opcode::Neg
        | Opcode::Not
        | Opcode::NilCoalescePrep
        | Opcode::CheckType
        | Opcode::Cast
        | Opcode::Catch
        | Opcode::Propagate
        | Opcode::FieldGet
        | Opcode::HashMapGet
        | Opcode::HashMapDelete
        | Opcode::HashMapHas
        | Opcode::HashMapQuery
        | Opcode::Await
        | Opcode::SpawnAsync
        | Opcode::IterBegin
        | Opcode::IsVariant
        | Opcode::Payload
        | Opcode::HasLength
        | Opcode::HasField
        | Opcode::Rest
        | Opcode::WrapOk
        | Opcode::WrapErr => (1, 1),
        Opcode::Jump
        | Opcode::TryBegin
        | Opcode::TryEnd
        | Opcode::ParamDefault
        | Opcode::Unknown => (0, 0),
        Opcode::Pop
        | Opcode::StoreLocal
        | Opcode::StoreGlobal
        | Opcode::JumpIfTrue
        | Opcode::JumpIfFalse
        | Opcode::Return
        | Opcode::Throw
        | Opcode::Mismatch
        | Opcode::Rethrow
        | Opcode::JumpIfFalseOrPop
        | Opcode::JumpIfTrueOrPop
        | Opcode::JumpIfNotNilOrPop => (1, 0),
        Opcode::Call | Opcode::CallMethod => (argc + 1, 1),
        Opcode::CallNative
        | Opcode::CallTool
        | Opcode::CallModel
        | Opcode::CallModelSchema
        | Opcode::CallModelStream
        | Opcode::CallModelChat => (argc, 1),
        Opcode::BuildArray
        | Opcode::BuildStruct
        | Opcode::BuildEnum
        | Opcode::BuildString
        | Opcode::AwaitAll
        | Opcode::MakeClosure => (count, 1),
        Opcode::BuildMap => (2 * count, 1),
        Opcode::BuildRange | Opcode::IndexSet | Opcode::InRange => (3, 1),
        Opcode::Emit => (2, 0),
        Opcode::ListenBegin => (2 + count, 1),
        Opcode::MockModel => (usize::from(instruction.method.is_some()), 0),
        Opcode::PlaceSet => (indexes(instruction) + 1, 0),
        Opcode::PlaceCall => (indexes(instruction) + argc, 1),
    }
}

/// How many indexes of a place are on the stack.
pub(super) fn indexes(instruction: &Instruction) -> usize {
    match &instruction.arg {
        Some(serde_json::Value::Array(path)) => path.iter().filter(|step| step.is_null()).count(),
        _ => 0,
    }
}

/// Where an instruction may go on: whether at the next one, and where else with how many values more
/// than at the next one.
fn ways(instruction: &Instruction) -> (bool, Option<isize>) {
    match instruction.op {
        Opcode::Jump => (false, Some(0)),
        Opcode::JumpIfTrue | Opcode::JumpIfFalse | Opcode::ParamDefault => (true, Some(0)),
        Opcode::JumpIfFalseOrPop
        | Opcode::JumpIfTrueOrPop
        | Opcode::JumpIfNotNilOrPop
        | Opcode::TryBegin => (true, Some(1)),
        Opcode::IterNext => (true, Some(-2)),
        Opcode::Catch if instruction.offset.is_some() => (true, Some(0)),
        Opcode::Return | Opcode::Throw | Opcode::Mismatch | Opcode::Rethrow => (false, None),
        _ => (true, None),
    }
}

/// The `CATCH` or jump that upstream's machine goes to when a `CATCH` does not fit.
fn next_catch(code: &[Instruction], from: usize) -> usize {
    let mut depth = 0;
    for (place, instruction) in code.iter().enumerate().skip(from + 1) {
        match instruction.op {
            Opcode::TryBegin => depth += 1,
            Opcode::TryEnd if depth > 0 => depth -= 1,
            Opcode::Catch | Opcode::Jump if depth == 0 => return place,
            _ => {}
        }
    }
    code.len()
}

/// Gives each `CATCH` of upstream the place it goes to, and whether that is another `CATCH`.
pub(super) fn complete_catches(code: &mut Vec<Instruction>) {
    let missing: Vec<usize> = (0..code.len())
        .filter(|place| {
            let instruction = &code[*place];
            instruction.op == Opcode::Catch
                && instruction.offset.is_none()
                && instruction.type_name.is_some()
        })
        .collect();
    let mut rethrow = None;
    for place in missing {
        let mut target = next_catch(code, place);
        if code.get(target).is_none_or(|next| next.op != Opcode::Catch) {
            // Nothing else fits: it is raised again.
            target = *rethrow.get_or_insert_with(|| {
                // The end of the function must not run into it.
                let mut end = Instruction::new(Opcode::Push);
                end.arg = Some(serde_json::Value::Null);
                code.push(end);
                code.push(Instruction::new(Opcode::Return));
                code.push(Instruction::new(Opcode::Rethrow));
                code.len() - 1
            });
        }
        code[place].offset = u32::try_from(target).ok();
    }
}

/// Follows all ways through a function.
pub(super) fn follow(code: &[Instruction]) -> Result<Flow, (usize, LoadErrorKind)> {
    let mut flow: Flow = vec![None; code.len() + 1];
    let mut open = vec![(
        0_usize,
        State {
            height: 0,
            tries: Vec::new(),
        },
    )];
    while let Some((place, state)) = open.pop() {
        let state = match &mut flow[place] {
            slot @ None => {
                *slot = Some(state.clone());
                state
            }
            Some(known) if known.height != state.height => {
                return Err((
                    place,
                    LoadErrorKind::Imbalance {
                        one: known.height,
                        other: state.height,
                    },
                ));
            }
            Some(known) => {
                // Files of upstream leave `try` blocks without a word: only what is open on every
                // way counts.
                let common = known
                    .tries
                    .iter()
                    .zip(&state.tries)
                    .take_while(|(a, b)| a == b)
                    .count();
                if common == known.tries.len() {
                    continue;
                }
                known.tries.truncate(common);
                known.clone()
            }
        };
        let Some(instruction) = code.get(place) else {
            continue;
        };
        let (takes, leaves) = effect(instruction);
        let Some(rest) = state.height.checked_sub(takes) else {
            return Err((
                place,
                LoadErrorKind::Underflow {
                    takes,
                    height: state.height,
                },
            ));
        };
        let height = rest + leaves;
        if height > HIGHEST {
            return Err((place, LoadErrorKind::TooHigh));
        }
        let mut tries = state.tries.clone();
        let (next, other) = ways(instruction);
        if let Some(more) = other {
            let target = instruction
                .offset
                .ok_or((place, LoadErrorKind::Missing("offset")))?
                as usize;
            if target > code.len() {
                return Err((place, LoadErrorKind::Jump(target)));
            }
            // `IterNext` takes one and leaves two; at the end it leaves none.
            let height = height.checked_add_signed(more).unwrap_or(0);
            open.push((
                target,
                State {
                    height,
                    tries: tries.clone(),
                },
            ));
        }
        match instruction.op {
            Opcode::TryBegin => tries.push(place),
            Opcode::TryEnd => {
                tries.pop();
            }
            _ => {}
        }
        if next {
            open.push((place + 1, State { height, tries }));
        }
    }
    Ok(flow)
}
