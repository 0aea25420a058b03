//! Operands out of registers, for what the loop does not do itself.

use super::Outcome;
use super::machine::Machine;
use crate::load::Reg;
use crate::value::{Binary, Value};

/// The operand: moved out if it is a temporary, or is overwritten by the result anyway. Only text
/// that is appended to is moved: nothing else would gain, and a failed operator must leave its
/// operands.
pub(super) fn operand(
    regs: &mut [Value],
    operator: Binary,
    locals: usize,
    dst: Reg,
    src: Reg,
) -> Value {
    let slot = &mut regs[usize::from(src)];
    let free = dst == src || usize::from(src) >= locals;
    if free && operator == Binary::Add && matches!(slot, Value::Text(_)) {
        slot.take()
    } else {
        slot.clone()
    }
}

#[cold]
pub(super) fn slow_binary(
    machine: &mut Machine,
    operator: Binary,
    regs: &mut [Value],
    locals: usize,
    dst: Reg,
    a: Reg,
    b: Reg,
) -> Outcome<Value> {
    // Before it is made: one text may be as large as memory goes.
    if operator == Binary::Add {
        let length = |reg: Reg| match &regs[usize::from(reg)] {
            Value::Text(text) => text.len(),
            _ => 0,
        };
        let grows = if dst == a { 0 } else { length(a) };
        machine.heap.charge(grows.saturating_add(length(b)))?;
        machine.heap.room(length(a).saturating_add(length(b)))?;
    }
    if a == b {
        return operator.apply(regs[usize::from(a)].clone(), regs[usize::from(b)].clone());
    }
    // `s += t` where both are text, in place.
    if operator == Binary::Add
        && dst == a
        && let [left, right] = pair(regs, a, b)
        && let (Value::Text(left), Value::Text(right)) = (&mut *left, &*right)
    {
        left.push_str(right);
        let value = std::mem::take(&mut regs[usize::from(a)]);
        return Ok(value);
    }
    let left = operand(regs, operator, locals, dst, a);
    let right = regs[usize::from(b)].clone();
    operator.apply(left, right)
}

/// Two different registers at once.
fn pair(regs: &mut [Value], a: Reg, b: Reg) -> [&mut Value; 2] {
    let (a, b) = (usize::from(a), usize::from(b));
    if a < b {
        let (low, high) = regs.split_at_mut(b);
        [&mut low[a], &mut high[0]]
    } else {
        let (low, high) = regs.split_at_mut(a);
        [&mut high[0], &mut low[b]]
    }
}

/// A value out of a register: moved if it is a temporary.
pub(super) fn fetch(regs: &mut [Value], locals: usize, src: Reg) -> Value {
    let slot = &mut regs[usize::from(src)];
    if usize::from(src) >= locals {
        slot.take()
    } else {
        slot.clone()
    }
}

/// Marks the parameters that were left out, at the beginning of a callee's registers.
pub(super) fn fill(callee: &crate::load::Function, window: &mut [Value], argc: usize) {
    for register in window.iter_mut().take(callee.arity).skip(argc) {
        *register = Value::Absent;
    }
}
