//! Operators, jumps and stores: where instructions of the IR become fewer.

use super::{ABSOLUTE, Sym, Translator};
use crate::ir::Opcode;
use crate::load::op::{Op, Reg, Test};
use crate::value::Value;

impl Translator<'_> {
    pub(super) fn arithmetic(&mut self, opcode: Opcode) {
        let place = self.stack.len() - 1;
        if let Sym::Int(value) = self.stack[place] {
            self.stack.pop();
            let a = self.pop();
            let dst = self.top();
            self.code.push(match opcode {
                Opcode::Add => Op::AddInt { dst, a, value },
                Opcode::Sub => Op::SubInt { dst, a, value },
                Opcode::Mul => Op::MulInt { dst, a, value },
                Opcode::Div => Op::DivInt { dst, a, value },
                _ => Op::ModInt { dst, a, value },
            });
            self.push_result();
            return;
        }
        let (a, b) = self.pop_two();
        let dst = self.top();
        self.code.push(match opcode {
            Opcode::Add => Op::Add { dst, a, b },
            Opcode::Sub => Op::Sub { dst, a, b },
            Opcode::Mul => Op::Mul { dst, a, b },
            Opcode::Div => Op::Div { dst, a, b },
            _ => Op::Mod { dst, a, b },
        });
        self.push_result();
    }

    /// Takes two operands, the upper one last.
    pub(super) fn pop_two(&mut self) -> (Reg, Reg) {
        let b = self.pop();
        let a = self.pop();
        (a, b)
    }

    pub(super) fn comparison(&mut self, test: Test) {
        let (a, b) = self.pop_two();
        let dst = self.top();
        self.code.push(Op::Compare { dst, a, b, test });
        self.push_result();
    }

    /// A jump on the truth of the top, fused with the comparison that made it.
    pub(super) fn branch(&mut self, when: bool, to: u32, place: usize) {
        let backward = to as usize <= place;
        let is_reg = matches!(self.stack.last(), Some(Sym::Reg));
        let fused = (is_reg && self.code.len() > self.barrier && !backward)
            .then(|| self.fuse(when, to))
            .flatten();
        let op = if let Some(op) = fused {
            self.stack.pop();
            op
        } else {
            let src = self.pop();
            match (when != backward, backward) {
                (true, false) => Op::JumpTrue { src, to },
                (false, false) => Op::JumpFalse { src, to },
                // Backward: around a counted jump.
                (skip_if_true, true) => {
                    self.flush();
                    // Resolved as a place in the new code, not in the IR's.
                    let next = self.here() + 2;
                    self.code.push(if skip_if_true {
                        Op::JumpTrue {
                            src,
                            to: next | ABSOLUTE,
                        }
                    } else {
                        Op::JumpFalse {
                            src,
                            to: next | ABSOLUTE,
                        }
                    });
                    self.code.push(Op::Loop { to });
                    self.barrier = self.code.len();
                    return;
                }
            }
        };
        // What stays on the stack must be in its registers on both ways; the operands of the jump
        // are not touched by that.
        self.flush();
        self.code.push(op);
        self.barrier = self.code.len();
    }

    /// Replaces the comparison before by a jump.
    pub(super) fn fuse(&mut self, when: bool, to: u32) -> Option<Op> {
        let result = self.reg(self.stack.len() - 1);
        let Some(Op::Compare { dst, a, b, test }) = self.code.last().copied() else {
            return None;
        };
        if dst != result {
            return None;
        }
        self.code.pop();
        // `x < 10`: the constant was put into a register just before. Not if that is a local's own
        // (`let y = 10; if x < y`): the local would be without its value.
        let operand = self.reg(self.stack.len());
        if let Some(Op::Int { dst, value }) = self.code.last().copied()
            && dst == b
            && dst == operand
            && self.code.len() > self.barrier
        {
            self.code.pop();
            return Some(match test {
                Test::Lt => Op::JumpLessInt {
                    a,
                    value,
                    expect: when,
                    to,
                },
                Test::Le => Op::JumpLessEqualInt {
                    a,
                    value,
                    expect: when,
                    to,
                },
                Test::Gt => Op::JumpGreaterInt {
                    a,
                    value,
                    expect: when,
                    to,
                },
                Test::Ge => Op::JumpGreaterEqualInt {
                    a,
                    value,
                    expect: when,
                    to,
                },
                Test::Eq => Op::JumpEqualInt {
                    a,
                    value,
                    expect: when,
                    to,
                },
                Test::Ne => Op::JumpEqualInt {
                    a,
                    value,
                    expect: !when,
                    to,
                },
            });
        }
        Some(match test {
            Test::Lt => Op::JumpLess {
                a,
                b,
                expect: when,
                to,
            },
            Test::Gt => Op::JumpLess {
                a: b,
                b: a,
                expect: when,
                to,
            },
            Test::Le => Op::JumpLessEqual {
                a,
                b,
                expect: when,
                to,
            },
            Test::Ge => Op::JumpLessEqual {
                a: b,
                b: a,
                expect: when,
                to,
            },
            Test::Eq => Op::JumpEqual {
                a,
                b,
                expect: when,
                to,
            },
            Test::Ne => Op::JumpEqual {
                a,
                b,
                expect: !when,
                to,
            },
        })
    }

    /// Stores the top in a local: the instruction that made it writes there if it can.
    pub(super) fn store(&mut self, local: Reg) {
        for place in 0..self.stack.len() - 1 {
            if matches!(self.stack[place], Sym::Local(reg) if reg == local) {
                self.settle(place);
            }
        }
        let place = self.stack.len() - 1;
        let top = self.reg(place);
        let sym = self.stack.pop();
        let op = match sym {
            Some(Sym::Reg) => {
                if self.code.len() > self.barrier
                    && let Some(last) = self.code.last_mut()
                    && let Some(dst) = destination(last)
                    && *dst == top
                {
                    *dst = local;
                    return;
                }
                Op::Take {
                    dst: local,
                    src: top,
                }
            }
            Some(Sym::Local(src)) if src == local => return,
            Some(Sym::Local(src)) => Op::Move { dst: local, src },
            Some(Sym::Const(constant)) => Op::Const {
                dst: local,
                constant,
            },
            Some(Sym::Int(value)) => Op::Int { dst: local, value },
            Some(Sym::Function(function)) => Op::Const {
                dst: local,
                constant: self.loader.function_constant(function),
            },
            Some(Sym::Native(native)) => Op::Const {
                dst: local,
                constant: self.loader.constant(Value::Native(native)),
            },
            None => return,
        };
        self.code.push(op);
    }
}

/// Where an instruction writes its one result, if that may be any register.
fn destination(op: &mut Op) -> Option<&mut Reg> {
    match op {
        Op::Move { dst, .. }
        | Op::Const { dst, .. }
        | Op::Int { dst, .. }
        | Op::LoadGlobal { dst, .. }
        | Op::Add { dst, .. }
        | Op::Sub { dst, .. }
        | Op::Mul { dst, .. }
        | Op::Div { dst, .. }
        | Op::Mod { dst, .. }
        | Op::AddInt { dst, .. }
        | Op::SubInt { dst, .. }
        | Op::MulInt { dst, .. }
        | Op::DivInt { dst, .. }
        | Op::ModInt { dst, .. }
        | Op::Neg { dst, .. }
        | Op::Not { dst, .. }
        | Op::Compare { dst, .. }
        | Op::GetField { dst, .. }
        | Op::GetIndex { dst, .. }
        | Op::Payload { dst, .. }
        | Op::NilPrep { dst, .. }
        | Op::Rest { dst, .. }
        | Op::IterNext { dst, .. } => Some(dst),
        _ => None,
    }
}
