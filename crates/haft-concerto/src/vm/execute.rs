//! The loop that runs instructions.

use super::fiber::{Fiber, Frame, Return};
use super::machine::Machine;
use super::operand::{fetch, fill, operand, slow_binary};
use super::{Effect, Failure, Fault, FaultKind, Iter, Outcome, Stop};
use crate::load::{Op, Program};
use crate::value::{Binary, Value, compare_metered, equal, get_index};
use std::cmp::Ordering;

/// Why the loop stops.
pub(super) enum Exit {
    /// Another frame is the topmost.
    Frame,
    /// The host is asked.
    Effect(Effect),
    /// Others come to their turn.
    Pause,
}

/// Notes where the frame is, and fails.
macro_rules! attempt {
    ($frames:ident, $pc:ident, $result:expr) => {
        match $result {
            Ok(value) => value,
            Err(failure) => {
                save($frames, $pc);
                return Err(failure);
            }
        }
    };
}

#[inline]
fn save(frames: &mut [Frame], pc: usize) {
    if let Some(frame) = frames.last_mut() {
        frame.pc = pc;
    }
}

impl Fiber {
    /// Runs until the host is asked, the fiber is over, or an instruction fails.
    #[allow(clippy::too_many_lines)] // one arm for each instruction that must be fast
    #[allow(clippy::cast_possible_wrap)] // distances within a function
    pub(super) fn execute(&mut self, program: &Program, machine: &mut Machine) -> Outcome<Exit> {
        'frame: loop {
            let Some(frame) = self.frames.last() else {
                return Ok(Exit::Frame);
            };
            let function = &program.functions[frame.function as usize];
            let code = function.code.as_slice();
            let mut pc = frame.pc;
            let base = frame.base;
            let locals = function.locals;
            let frames = &mut self.frames;
            let regs = &mut self.stack[base..base + function.registers];

            // An operator on two registers: numbers at once, all else by the long way.
            macro_rules! binary {
                ($operator:expr, $dst:ident, $a:ident, $b:ident, $int:path, $float:expr, $fits:expr) => {{
                    match (&regs[usize::from($a)], &regs[usize::from($b)]) {
                        (Value::Int(a), Value::Int(b)) if $fits(*b) => {
                            let value = $int(*a, *b);
                            regs[usize::from($dst)].set_int(value);
                        }
                        (Value::Float(a), Value::Float(b)) => {
                            regs[usize::from($dst)] = Value::Float($float(*a, *b));
                        }
                        _ => {
                            let value = attempt!(
                                frames,
                                pc,
                                slow_binary(machine, $operator, regs, locals, $dst, $a, $b)
                            );
                            regs[usize::from($dst)] = value;
                        }
                    }
                }};
            }
            macro_rules! binary_int {
                ($operator:expr, $dst:ident, $a:ident, $value:ident, $int:expr) => {{
                    if let Value::Int(a) = regs[usize::from($a)] {
                        regs[usize::from($dst)].set_int($int(a, i64::from($value)));
                    } else {
                        let a = operand(regs, $operator, locals, $dst, $a);
                        let value =
                            $operator.apply(a, Value::Int(i64::from($value)), &mut machine.meter);
                        let value = attempt!(frames, pc, value);
                        regs[usize::from($dst)] = value;
                    }
                }};
            }
            macro_rules! jump_less {
                ($a:ident, $b:expr, $expect:ident, $to:ident, $int:expr, $order:pat) => {{
                    let truth = match (&regs[usize::from($a)], $b) {
                        (Value::Int(a), Value::Int(b)) => $int(a, b),
                        (a, b) => {
                            let order = compare_metered(a, b, &mut machine.meter);
                            matches!(attempt!(frames, pc, order), Some($order))
                        }
                    };
                    if truth == $expect {
                        pc = $to as usize;
                    }
                }};
            }

            loop {
                let op = code[pc];
                pc += 1;
                match op {
                    Op::Move { dst, src } => match &regs[usize::from(src)] {
                        Value::Int(value) => {
                            let value = *value;
                            regs[usize::from(dst)].set_int(value);
                        }
                        other => regs[usize::from(dst)] = other.clone(),
                    },
                    Op::Take { dst, src } => {
                        regs[usize::from(dst)] = regs[usize::from(src)].take();
                    }
                    Op::Clear { dst } => regs[usize::from(dst)].release(),
                    Op::Int { dst, value } => {
                        regs[usize::from(dst)].set_int(i64::from(value));
                    }
                    Op::Const { dst, constant } => {
                        regs[usize::from(dst)] = program.constants[constant as usize].clone();
                    }
                    Op::Add { dst, a, b } => binary!(
                        Binary::Add,
                        dst,
                        a,
                        b,
                        i64::wrapping_add,
                        |a: f64, b: f64| a + b,
                        |_| true
                    ),
                    Op::Sub { dst, a, b } => binary!(
                        Binary::Sub,
                        dst,
                        a,
                        b,
                        i64::wrapping_sub,
                        |a: f64, b: f64| a - b,
                        |_| true
                    ),
                    Op::Mul { dst, a, b } => binary!(
                        Binary::Mul,
                        dst,
                        a,
                        b,
                        i64::wrapping_mul,
                        |a: f64, b: f64| a * b,
                        |_| true
                    ),
                    Op::Div { dst, a, b } => binary!(
                        Binary::Div,
                        dst,
                        a,
                        b,
                        i64::wrapping_div,
                        |a: f64, b: f64| a / b,
                        |b| b != 0
                    ),
                    Op::Mod { dst, a, b } => binary!(
                        Binary::Mod,
                        dst,
                        a,
                        b,
                        i64::wrapping_rem,
                        |a: f64, b: f64| a % b,
                        |b| b != 0
                    ),
                    Op::AddInt { dst, a, value } => {
                        binary_int!(Binary::Add, dst, a, value, i64::wrapping_add);
                    }
                    Op::SubInt { dst, a, value } => {
                        binary_int!(Binary::Sub, dst, a, value, i64::wrapping_sub);
                    }
                    Op::MulInt { dst, a, value } => {
                        binary_int!(Binary::Mul, dst, a, value, i64::wrapping_mul);
                    }
                    Op::DivInt { dst, a, value } => match &regs[usize::from(a)] {
                        Value::Int(a) if value != 0 => {
                            let value = a.wrapping_div(i64::from(value));
                            regs[usize::from(dst)].set_int(value);
                        }
                        other => {
                            let value = Value::Int(i64::from(value));
                            let value = Binary::Div.apply(other.clone(), value, &mut machine.meter);
                            regs[usize::from(dst)] = attempt!(frames, pc, value);
                        }
                    },
                    Op::ModInt { dst, a, value } => match &regs[usize::from(a)] {
                        Value::Int(a) if value != 0 => {
                            let value = a.wrapping_rem(i64::from(value));
                            regs[usize::from(dst)].set_int(value);
                        }
                        other => {
                            let value = Value::Int(i64::from(value));
                            let value = Binary::Mod.apply(other.clone(), value, &mut machine.meter);
                            regs[usize::from(dst)] = attempt!(frames, pc, value);
                        }
                    },
                    Op::Jump { to } => pc = to as usize,
                    Op::Loop { to } => {
                        self.fuel -= pc as i64 - i64::from(to);
                        pc = to as usize;
                        if self.fuel < 0 || machine.meter.is_due() {
                            save(frames, pc);
                            self.refuel(machine)?;
                            if self.pauses() {
                                return Ok(Exit::Pause);
                            }
                            continue 'frame;
                        }
                    }
                    Op::JumpTrue { src, to } => {
                        if regs[usize::from(src)].is_truthy() {
                            pc = to as usize;
                        }
                    }
                    Op::JumpFalse { src, to } => {
                        if !regs[usize::from(src)].is_truthy() {
                            pc = to as usize;
                        }
                    }
                    Op::JumpNotNil { src, to } => {
                        if !matches!(regs[usize::from(src)], Value::Nil) {
                            pc = to as usize;
                        }
                    }
                    Op::JumpPassed { src, to } => {
                        if !matches!(regs[usize::from(src)], Value::Absent) {
                            pc = to as usize;
                        }
                    }
                    Op::JumpLess { a, b, expect, to } => {
                        jump_less!(
                            a,
                            &regs[usize::from(b)],
                            expect,
                            to,
                            |a, b| a < b,
                            Ordering::Less
                        );
                    }
                    Op::JumpLessEqual { a, b, expect, to } => {
                        jump_less!(
                            a,
                            &regs[usize::from(b)],
                            expect,
                            to,
                            |a, b| a <= b,
                            Ordering::Less | Ordering::Equal
                        );
                    }
                    Op::JumpLessInt {
                        a,
                        value,
                        expect,
                        to,
                    } => {
                        let b = Value::Int(i64::from(value));
                        jump_less!(a, &b, expect, to, |a, b| a < b, Ordering::Less);
                    }
                    Op::JumpLessEqualInt {
                        a,
                        value,
                        expect,
                        to,
                    } => {
                        let b = Value::Int(i64::from(value));
                        jump_less!(
                            a,
                            &b,
                            expect,
                            to,
                            |a, b| a <= b,
                            Ordering::Less | Ordering::Equal
                        );
                    }
                    Op::JumpGreaterInt {
                        a,
                        value,
                        expect,
                        to,
                    } => {
                        let b = Value::Int(i64::from(value));
                        jump_less!(a, &b, expect, to, |a, b| a > b, Ordering::Greater);
                    }
                    Op::JumpGreaterEqualInt {
                        a,
                        value,
                        expect,
                        to,
                    } => {
                        let b = Value::Int(i64::from(value));
                        jump_less!(
                            a,
                            &b,
                            expect,
                            to,
                            |a, b| a >= b,
                            Ordering::Greater | Ordering::Equal
                        );
                    }
                    Op::JumpEqual { a, b, expect, to } => {
                        let (a, b) = (&regs[usize::from(a)], &regs[usize::from(b)]);
                        let truth = attempt!(frames, pc, equal(a, b, &mut machine.meter));
                        if truth == expect {
                            pc = to as usize;
                        }
                    }
                    Op::JumpEqualInt {
                        a,
                        value,
                        expect,
                        to,
                    } => {
                        let truth = match &regs[usize::from(a)] {
                            Value::Int(a) => *a == i64::from(value),
                            other => *other == Value::Int(i64::from(value)),
                        };
                        if truth == expect {
                            pc = to as usize;
                        }
                    }
                    Op::IterNext { iter, dst, to } => {
                        let item = match &mut regs[usize::from(iter)] {
                            Value::Iter(iter) => {
                                if let Iter::Map(..) = **iter {
                                    // A new pair.
                                    attempt!(frames, pc, machine.meter.charge(72));
                                }
                                iter.next()
                            }
                            _ => None,
                        };
                        if let Some(item) = item {
                            regs[usize::from(dst)] = item;
                        } else {
                            regs[usize::from(iter)] = Value::Nil;
                            pc = to as usize;
                        }
                    }
                    Op::IterBegin { dst, src } => {
                        let subject = fetch(regs, locals, src);
                        regs[usize::from(dst)] = attempt!(frames, pc, Iter::over(subject));
                    }
                    Op::GetIndex { dst, src, index } => {
                        let value = match (&regs[usize::from(src)], &regs[usize::from(index)]) {
                            (Value::Array(array), Value::Int(index)) => usize::try_from(*index)
                                .ok()
                                .and_then(|place| array.items().get(place))
                                .cloned(),
                            _ => None,
                        };
                        regs[usize::from(dst)] = if let Some(value) = value {
                            value
                        } else {
                            let (of, at) = (&regs[usize::from(src)], &regs[usize::from(index)]);
                            attempt!(frames, pc, get_index(of, at, &mut machine.meter))
                        };
                    }
                    Op::CallFunction {
                        base: first,
                        argc,
                        function: number,
                    } => {
                        let callee = &program.functions[number as usize];
                        let argc = usize::from(argc);
                        if argc > callee.arity || argc < callee.required {
                            attempt!(frames, pc, Err(super::calls::wrong_count(callee, argc)));
                        }
                        save(frames, pc);
                        let new = base + usize::from(first);
                        if frames.len() >= machine.limits.depth {
                            return Err(Failure::stop(Stop::Depth(machine.limits.depth)));
                        }
                        let needed = new + callee.registers;
                        if self.stack.len() < needed || frames.len() == frames.capacity() {
                            self.grow(machine, needed)?;
                        }
                        self.frames.push(Frame {
                            function: number,
                            pc: 0,
                            base: new,
                            ret: Return::to(new),
                        });
                        if argc < callee.arity {
                            // Behind the caller's own registers, perhaps.
                            fill(callee, &mut self.stack[new..], argc);
                        }
                        self.fuel -= 4;
                        if self.fuel < 0 || machine.meter.is_due() {
                            self.refuel(machine)?;
                            if self.pauses() {
                                return Ok(Exit::Pause);
                            }
                        }
                        continue 'frame;
                    }
                    Op::Return { src } => {
                        // The plain case: nothing to do with the value but to put it there.
                        if let Some(Frame {
                            ret: Return { dst, then: None },
                            ..
                        }) = frames.last()
                            && *dst != Return::RESULT
                        {
                            let dst = *dst;
                            let value = regs[usize::from(src)].take();
                            for register in regs.iter_mut() {
                                register.release();
                            }
                            frames.pop();
                            match value {
                                Value::Int(value) => self.stack[dst].set_int(value),
                                value => self.stack[dst] = value,
                            }
                            continue 'frame;
                        }
                        // The first register may be a `self` that goes back to its place as well.
                        let value = match src {
                            0 => regs[0].clone(),
                            src => regs[usize::from(src)].take(),
                        };
                        save(frames, pc);
                        return Ok(match self.give_back(program, machine, value)? {
                            Some(effect) => Exit::Effect(effect),
                            None => Exit::Frame,
                        });
                    }
                    Op::ReturnNil => {
                        save(frames, pc);
                        return Ok(match self.give_back(program, machine, Value::Nil)? {
                            Some(effect) => Exit::Effect(effect),
                            None => Exit::Frame,
                        });
                    }
                    Op::CallNative { .. }
                    | Op::CallValue { .. }
                    | Op::CallMethod { .. }
                    | Op::PlaceCall { .. }
                    | Op::CallTool { .. }
                    | Op::Emit { .. }
                    | Op::EmitAwait { .. }
                    | Op::Listen { .. }
                    | Op::Propagate { .. } => {
                        save(frames, pc);
                        let depth = frames.len();
                        match self.call(program, machine, op, base)? {
                            Some(effect) => return Ok(Exit::Effect(effect)),
                            // The registers may lie elsewhere now.
                            None if self.frames.len() == depth => {
                                if machine.meter.is_due() {
                                    self.refuel(machine)?;
                                    if self.pauses() {
                                        return Ok(Exit::Pause);
                                    }
                                }
                                continue 'frame;
                            }
                            None => {}
                        }
                        // Whatever way a function is entered, it counts.
                        self.fuel -= 4;
                        if self.fuel < 0 || machine.meter.is_due() {
                            self.refuel(machine)?;
                        }
                        return Ok(Exit::Frame);
                    }
                    Op::NameError { name } => {
                        let name = program.names[name as usize].to_string();
                        attempt!(frames, pc, Err(Fault::of(FaultKind::Name, name)));
                    }
                    other => {
                        attempt!(
                            frames,
                            pc,
                            super::operate::operate(program, machine, regs, locals, other)
                        );
                        if let Op::Catch { src, name, to } = other
                            && regs[usize::from(src)].type_name() != &*program.names[name as usize]
                        {
                            pc = to as usize;
                        }
                        // It may have taken long.
                        if machine.meter.is_due() {
                            save(frames, pc);
                            self.refuel(machine)?;
                            if self.pauses() {
                                return Ok(Exit::Pause);
                            }
                            continue 'frame;
                        }
                    }
                }
            }
        }
    }
}
