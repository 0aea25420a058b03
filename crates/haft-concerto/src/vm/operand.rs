//! Operands out of registers, for what the loop does not do itself.

use super::machine::Machine;
use super::{Meter, Outcome};
use crate::load::Reg;
use crate::value::{Binary, Text, Value};

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
    let meter = &mut machine.meter;
    if operator == Binary::Add {
        // What is shown is made before anything is moved: it may be refused, and done again.
        let is_text = |reg: Reg| matches!(regs[usize::from(reg)], Value::Text(_));
        match (is_text(a), is_text(b)) {
            (true, true) => {}
            (true, false) => {
                let more = meter.shown(&regs[usize::from(b)])?;
                return add(regs, locals, (dst, a), &more, meter);
            }
            (false, true) => {
                let mut text = meter.shown(&regs[usize::from(a)])?;
                if let Value::Text(more) = &regs[usize::from(b)] {
                    append(&mut text, more, meter)?;
                }
                return Ok(Value::Text(text));
            }
            (false, false) => {
                let [left, right] = [a, b].map(|reg| regs[usize::from(reg)].clone());
                return operator.apply(left, right, meter);
            }
        }
        if a != b
            && dst == a
            && let [left, right] = pair(regs, a, b)
            && let (Value::Text(left), Value::Text(right)) = (&mut *left, &*right)
        {
            // `s += t`, in place.
            append(left, right, meter)?;
            return Ok(regs[usize::from(a)].take());
        }
        if let Value::Text(more) = regs[usize::from(b)].clone() {
            return add(regs, locals, (dst, a), &more, meter);
        }
    }
    let [left, right] = [a, b].map(|reg| regs[usize::from(reg)].clone());
    operator.apply(left, right, meter)
}

/// Text with more behind it: in place if the text is a temporary, or is overwritten anyway.
fn add(
    regs: &mut [Value],
    locals: usize,
    (dst, src): (Reg, Reg),
    more: &str,
    meter: &mut Meter,
) -> Outcome<Value> {
    let slot = &mut regs[usize::from(src)];
    let is_free = dst == src || usize::from(src) >= locals;
    let mut text = match slot {
        Value::Text(text) if is_free => {
            append(text, more, meter)?;
            return Ok(slot.take());
        }
        Value::Text(text) => text.clone(),
        // Only called with text.
        other => return Ok(other.clone()),
    };
    append(&mut text, more, meter)?;
    Ok(Value::Text(text))
}

/// Appends to a text, which is copied if somebody else sees it.
pub(super) fn append(text: &mut Text, more: &str, meter: &mut Meter) -> Outcome<()> {
    let copied = text.growth(more.len());
    meter.work((copied + more.len()) / 64)?;
    meter.ask(copied.saturating_add(more.len()))?;
    meter.room(text.len().saturating_add(more.len()))?;
    text.push_str(more);
    Ok(())
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
