//! One function: from instructions over a stack to instructions over registers.
//!
//! The stack is followed symbolically: a loaded local or constant stays what it is until somebody needs
//! it in a register, and a result is written straight to the local that it is stored in. Where ways
//! join, every place of the stack is in its own register.

mod branch;
mod calls;
mod instruction;

use super::error::LoadErrorKind;
use super::flow::Flow;
use super::module::Loader;
use super::op::{Op, Reg};
use crate::ir::{Instruction, Opcode};
use crate::natives::Native;
use crate::value::Value;

/// What a place of the stack is.
#[derive(Debug, Clone, Copy)]
enum Sym {
    /// In the register of the place.
    Reg,
    Local(Reg),
    Const(u32),
    Int(i32),
    Function(u32),
    Native(&'static Native),
}

pub(super) struct Translator<'a> {
    pub(super) loader: &'a mut Loader,
    pub(super) locals: std::collections::HashMap<String, Reg>,
    pub(super) code: Vec<Op>,
    pub(super) spans: Vec<(u32, [u32; 2])>,
    /// The first register of the stack.
    pub(super) base: usize,
    pub(super) highest: usize,
    stack: Vec<Sym>,
    /// No instruction before this one may be changed any more: something jumps here.
    barrier: usize,
}

type Done = Result<(), LoadErrorKind>;

impl<'a> Translator<'a> {
    pub(super) fn new(
        loader: &'a mut Loader,
        locals: std::collections::HashMap<String, Reg>,
    ) -> Self {
        let base = locals.len();
        Self {
            loader,
            locals,
            code: Vec::new(),
            spans: Vec::new(),
            base,
            highest: 0,
            stack: Vec::new(),
            barrier: 0,
        }
    }

    /// Translates all instructions; gives where each began.
    pub(super) fn run(
        &mut self,
        code: &[Instruction],
        flow: &Flow,
    ) -> Result<Vec<u32>, (usize, LoadErrorKind)> {
        let mut target = vec![false; code.len() + 1];
        for (place, instruction) in code.iter().enumerate() {
            // Instructions that do not jump may say anything.
            if let (Some(offset), Some(_)) = (instruction.offset, &flow[place])
                && let Some(target) = target.get_mut(offset as usize)
            {
                *target = true;
            }
        }
        let mut starts = vec![0; code.len() + 1];
        let mut falls_in = true;
        for place in 0..=code.len() {
            let Some(state) = &flow[place] else {
                starts[place] = self.here();
                continue;
            };
            if target[place] || !falls_in {
                if falls_in {
                    self.flush();
                }
                self.stack = vec![Sym::Reg; state.height];
                self.highest = self.highest.max(state.height);
                self.barrier = self.code.len();
            }
            starts[place] = self.here();
            let Some(instruction) = code.get(place) else {
                self.code.push(Op::ReturnNil);
                break;
            };
            if let Some(span) = instruction.span
                && self.spans.last().is_none_or(|(_, last)| *last != span)
            {
                self.spans.push((self.here(), span));
            }
            let swallow = instruction.op == Opcode::Swap
                && code
                    .get(place + 1)
                    .is_some_and(|next| next.op == Opcode::Pop)
                && !target[place + 1];
            if swallow {
                self.drop_second();
            } else if instruction.op == Opcode::Pop
                && place > 0
                && code[place - 1].op == Opcode::Swap
                && !target[place]
            {
                // Done together with the swap.
            } else {
                self.one(instruction, place).map_err(|kind| (place, kind))?;
            }
            self.highest = self.highest.max(self.stack.len());
            falls_in = !matches!(
                instruction.op,
                Opcode::Jump | Opcode::Return | Opcode::Throw | Opcode::Mismatch | Opcode::Rethrow
            );
        }
        Ok(starts)
    }

    #[allow(clippy::cast_possible_truncation)] // functions of 4 G instructions are not read
    fn here(&self) -> u32 {
        self.code.len() as u32
    }

    fn reg(&self, place: usize) -> Reg {
        // The height was checked when the function was followed.
        Reg::try_from(self.base + place).unwrap_or(Reg::MAX)
    }

    fn top(&self) -> Reg {
        self.reg(self.stack.len())
    }

    /// Brings a place of the stack into its register.
    fn settle(&mut self, place: usize) {
        let dst = self.reg(place);
        let op = match self.stack[place] {
            Sym::Reg => return,
            Sym::Local(src) => Op::Move { dst, src },
            Sym::Const(constant) => Op::Const { dst, constant },
            Sym::Int(value) => Op::Int { dst, value },
            Sym::Function(function) => Op::Const {
                dst,
                constant: self.loader.function_constant(function),
            },
            Sym::Native(native) => Op::Const {
                dst,
                constant: self.loader.constant(Value::Native(native)),
            },
        };
        self.code.push(op);
        self.stack[place] = Sym::Reg;
    }

    fn flush(&mut self) {
        for place in 0..self.stack.len() {
            self.settle(place);
        }
    }

    /// Brings the last places into their registers; gives the first.
    fn settle_last(&mut self, count: usize) -> Reg {
        let from = self.stack.len() - count;
        for place in from..self.stack.len() {
            self.settle(place);
        }
        self.reg(from)
    }

    /// Takes the top; gives a register that holds it.
    fn pop(&mut self) -> Reg {
        let place = self.stack.len() - 1;
        if let Sym::Local(src) = self.stack[place] {
            self.stack.pop();
            return src;
        }
        self.settle(place);
        self.stack.pop();
        self.reg(place)
    }

    /// Takes some from the stack and leaves one in a register.
    fn drop_last(&mut self, count: usize) {
        self.stack.truncate(self.stack.len() - count);
    }

    fn push_result(&mut self) {
        self.stack.push(Sym::Reg);
    }

    /// Takes one, leaves one.
    fn unary(&mut self, op: impl FnOnce(Reg, Reg) -> Op) {
        let src = self.pop();
        let dst = self.top();
        self.code.push(op(dst, src));
        self.push_result();
    }

    /// `a b → b`: drops what is below the top.
    fn drop_second(&mut self) {
        let Some(value) = self.stack.pop() else {
            return;
        };
        let above = self.top();
        self.stack.pop();
        let dst = self.top();
        match value {
            Sym::Reg => {
                self.code.push(Op::Take { dst, src: above });
                self.stack.push(Sym::Reg);
            }
            symbolic => {
                self.code.push(Op::Clear { dst });
                self.stack.push(symbolic);
            }
        }
    }
}

/// Marks a target that is already one of the new code.
pub(super) const ABSOLUTE: u32 = 1 << 31;

fn short(count: usize) -> Result<u16, LoadErrorKind> {
    u16::try_from(count).map_err(|_| LoadErrorKind::TooHigh)
}

pub(super) fn text<'t>(
    member: Option<&'t str>,
    name: &'static str,
) -> Result<&'t str, LoadErrorKind> {
    member.ok_or(LoadErrorKind::Missing(name))
}
