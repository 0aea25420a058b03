//! One function: from instructions over a stack to instructions over registers.
//!
//! The stack is followed symbolically: a loaded local or constant stays what it is until somebody needs
//! it in a register, and a result is written straight to the local that it is stored in. Where ways
//! join, every place of the stack is in its own register.

use serde_json::Value as Json;

use super::code::{Op, Reg, Test};
use super::error::LoadErrorKind;
use super::flow::{Flow, indexes};
use super::module::Loader;
use super::sites::{Global, Site};
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
            if let (Some(offset), Some(_)) = (instruction.offset, &flow[place]) {
                target[offset as usize] = true;
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

    fn arithmetic(&mut self, opcode: Opcode) {
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
    fn pop_two(&mut self) -> (Reg, Reg) {
        let b = self.pop();
        let a = self.pop();
        (a, b)
    }

    fn comparison(&mut self, test: Test) {
        let (a, b) = self.pop_two();
        let dst = self.top();
        self.code.push(Op::Compare { dst, a, b, test });
        self.push_result();
    }

    /// A jump on the truth of the top, fused with the comparison that made it.
    fn branch(&mut self, when: bool, to: u32, place: usize) {
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
    fn fuse(&mut self, when: bool, to: u32) -> Option<Op> {
        let result = self.reg(self.stack.len() - 1);
        let Some(Op::Compare { dst, a, b, test }) = self.code.last().copied() else {
            return None;
        };
        if dst != result {
            return None;
        }
        self.code.pop();
        // `x < 10`: the constant was put into a register just before.
        if let Some(Op::Int { dst, value }) = self.code.last().copied()
            && dst == b
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
    fn store(&mut self, local: Reg) {
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

    fn load_constant(&mut self, value: Value) {
        let sym = match value {
            Value::Int(value) if i32::try_from(value).is_ok() => {
                Sym::Int(i32::try_from(value).unwrap_or(0)) // just tested
            }
            value => Sym::Const(self.loader.constant(value)),
        };
        self.stack.push(sym);
    }

    fn load_name(&mut self, name: &str, local: bool) {
        if local && let Some(reg) = self.locals.get(name) {
            self.stack.push(Sym::Local(*reg));
            return;
        }
        match self.loader.resolve(name) {
            Global::Variable(global) => {
                let dst = self.top();
                self.code.push(Op::LoadGlobal { dst, global });
                self.push_result();
            }
            Global::Function(function) => self.stack.push(Sym::Function(function)),
            Global::Native(native) => self.stack.push(Sym::Native(native)),
            Global::Value(value) => self.load_constant(value),
            Global::Unknown => {
                let name = self.loader.name(name);
                self.code.push(Op::NameError { name });
                self.push_result();
            }
        }
    }

    fn call(&mut self, instruction: &Instruction, argc: usize) -> Done {
        let direct = instruction.arg.is_none();
        match self.stack[self.stack.len() - 1] {
            Sym::Function(function) if direct => {
                self.stack.pop();
                let base = self.settle_last(argc);
                self.code.push(Op::CallFunction {
                    base,
                    argc: short(argc)?,
                    function,
                });
            }
            Sym::Native(native) if direct => {
                self.stack.pop();
                self.native(native, argc, instruction)?;
                return Ok(());
            }
            _ => {
                let site = self.loader.site(Site {
                    instruction,
                    ..Site::new(instruction)
                })?;
                let base = self.settle_last(argc + 1);
                self.code.push(Op::CallValue {
                    base,
                    argc: short(argc)?,
                    site,
                });
                self.stack.pop();
            }
        }
        self.drop_last(argc);
        self.push_result();
        Ok(())
    }

    fn native(&mut self, native: &'static Native, argc: usize, instruction: &Instruction) -> Done {
        if argc == 1 && (native.name == "Ok" || native.name == "Err") {
            let wrap_ok = native.name == "Ok";
            if !wrap_ok {
                self.unary(|dst, src| Op::WrapErr { dst, src });
                return Ok(());
            }
        }
        let base = self.settle_last(argc);
        let site = self.loader.site(Site {
            native: Some(native),
            ..Site::new(instruction)
        })?;
        self.code.push(Op::CallNative {
            base,
            argc: short(argc)?,
            site,
        });
        self.drop_last(argc);
        self.push_result();
        Ok(())
    }

    /// An instruction whose operands lie in a row and whose result takes their place.
    fn row(&mut self, count: usize, op: impl FnOnce(Reg) -> Op) {
        let base = self.settle_last(count);
        self.code.push(op(base));
        self.drop_last(count);
        self.push_result();
    }

    #[allow(clippy::too_many_lines)] // one arm for each opcode
    fn one(&mut self, instruction: &Instruction, place: usize) -> Done {
        let argc = instruction.argc.unwrap_or(0) as usize;
        let count = instruction.count.unwrap_or(0);
        let to = instruction.offset.unwrap_or(0);
        match instruction.op {
            Opcode::Push => {
                let value = instruction
                    .arg
                    .as_ref()
                    .map_or(Value::Nil, Value::from_json);
                self.load_constant(value);
            }
            Opcode::Pop => {
                let place = self.stack.len() - 1;
                if matches!(self.stack[place], Sym::Reg) {
                    self.code.push(Op::Clear {
                        dst: self.reg(place),
                    });
                }
                self.stack.pop();
            }
            Opcode::Dup => {
                let place = self.stack.len() - 1;
                match self.stack[place] {
                    Sym::Reg => {
                        let (src, dst) = (self.reg(place), self.top());
                        self.code.push(Op::Move { dst, src });
                        self.push_result();
                    }
                    symbolic => self.stack.push(symbolic),
                }
            }
            Opcode::Swap => {
                let b = self.settle_last(2) + 1;
                self.code.push(Op::Swap { a: b - 1, b });
            }
            Opcode::LoadConst => {
                let value = self.loader.ir_constant(instruction.arg.as_ref())?;
                self.load_constant(value);
            }
            Opcode::LoadLocal => self.load_name(text(&instruction.name, "name")?, true),
            Opcode::LoadGlobal => self.load_name(text(&instruction.name, "name")?, false),
            Opcode::StoreLocal => {
                let name = text(&instruction.name, "name")?;
                let local = *self.locals.get(name).ok_or(LoadErrorKind::Member("name"))?;
                self.store(local);
            }
            Opcode::StoreGlobal => {
                let global = self.loader.global(text(&instruction.name, "name")?);
                let src = self.pop();
                self.code.push(Op::StoreGlobal { src, global });
            }
            op @ (Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Div | Opcode::Mod) => {
                self.arithmetic(op);
            }
            Opcode::Neg => self.unary(|dst, src| Op::Neg { dst, src }),
            Opcode::Not => self.unary(|dst, src| Op::Not { dst, src }),
            Opcode::Eq => self.comparison(Test::Eq),
            Opcode::Neq => self.comparison(Test::Ne),
            Opcode::Lt => self.comparison(Test::Lt),
            Opcode::Gt => self.comparison(Test::Gt),
            Opcode::Lte => self.comparison(Test::Le),
            Opcode::Gte => self.comparison(Test::Ge),
            op @ (Opcode::And | Opcode::Or) => {
                let (a, b) = self.pop_two();
                let dst = self.top();
                self.code.push(if op == Opcode::And {
                    Op::And { dst, a, b }
                } else {
                    Op::Or { dst, a, b }
                });
                self.push_result();
            }
            Opcode::NilCoalescePrep => self.unary(|dst, src| Op::NilPrep { dst, src }),
            Opcode::CheckType => {
                let name = self.loader.name(text(&instruction.type_name, "type_name")?);
                self.unary(|dst, src| Op::IsType { dst, src, name });
            }
            Opcode::Cast => {
                let name = self.loader.name(text(&instruction.type_name, "type_name")?);
                self.unary(|dst, src| Op::Cast { dst, src, name });
            }
            Opcode::Jump => {
                self.flush();
                self.code.push(if to as usize <= place {
                    Op::Loop { to }
                } else {
                    Op::Jump { to }
                });
                self.barrier = self.code.len();
            }
            Opcode::JumpIfTrue => self.branch(true, to, place),
            Opcode::JumpIfFalse => self.branch(false, to, place),
            op @ (Opcode::JumpIfFalseOrPop
            | Opcode::JumpIfTrueOrPop
            | Opcode::JumpIfNotNilOrPop) => {
                self.flush();
                self.stack.pop();
                let src = self.top();
                self.code.push(match op {
                    Opcode::JumpIfFalseOrPop => Op::JumpFalse { src, to },
                    Opcode::JumpIfTrueOrPop => Op::JumpTrue { src, to },
                    _ => Op::JumpNotNil { src, to },
                });
                self.barrier = self.code.len();
            }
            Opcode::Return => {
                let src = self.pop();
                self.code.push(Op::Return { src });
            }
            Opcode::TryBegin | Opcode::TryEnd => {
                self.flush();
                self.barrier = self.code.len();
            }
            Opcode::Catch => {
                if let Some(name) = &instruction.type_name {
                    self.flush();
                    let name = self.loader.name(name);
                    let src = self.reg(self.stack.len() - 1);
                    self.code.push(Op::Catch { src, name, to });
                    self.barrier = self.code.len();
                }
            }
            Opcode::Throw => {
                let src = self.pop();
                self.code.push(Op::Throw { src });
            }
            Opcode::Rethrow => {
                let src = self.pop();
                self.code.push(Op::Rethrow { src });
            }
            Opcode::Mismatch => {
                let src = self.pop();
                self.code.push(Op::Mismatch { src });
            }
            Opcode::Propagate => self.unary(|dst, src| Op::Propagate { dst, src }),
            Opcode::Call => self.call(instruction, argc)?,
            Opcode::SpawnAsync => self.call(instruction, 0)?,
            Opcode::CallMethod => {
                let site = self.loader.site(Site::new(instruction))?;
                let argc = short(argc)?;
                self.row(usize::from(argc) + 1, |base| Op::CallMethod {
                    base,
                    argc,
                    site,
                });
            }
            Opcode::CallNative => {
                let name = text(&instruction.name, "name")?;
                match self.loader.resolve(name) {
                    Global::Native(native) => self.native(native, argc, instruction)?,
                    _ => return Err(LoadErrorKind::Function(name.to_owned())),
                }
            }
            Opcode::CallTool => {
                let site = self.loader.site(Site::new(instruction))?;
                let argc = short(argc)?;
                self.row(usize::from(argc), |base| Op::CallTool { base, argc, site });
            }
            Opcode::CallModel
            | Opcode::CallModelSchema
            | Opcode::CallModelStream
            | Opcode::CallModelChat => {
                // The model is put below its arguments.
                let site = self.loader.site(Site::new(instruction))?;
                let model = text(&instruction.model, "model")?;
                let value = self.loader.value_of(model);
                self.settle_last(argc);
                self.push_result();
                let top = self.stack.len() - 1;
                for up in (self.stack.len() - argc..=top).rev() {
                    self.code.push(Op::Take {
                        dst: self.reg(up),
                        src: self.reg(up - 1),
                    });
                }
                let constant = self.loader.constant(value);
                self.code.push(Op::Const {
                    dst: self.reg(top - argc),
                    constant,
                });
                let argc = short(argc)?;
                self.row(usize::from(argc) + 1, |base| Op::CallMethod {
                    base,
                    argc,
                    site,
                });
            }
            Opcode::PlaceSet => {
                let root = self.root(instruction)?;
                let site = self.loader.site(Site::new(instruction))?;
                let values = indexes(instruction) + 1;
                self.settle_root(root);
                let base = self.settle_last(values);
                self.code.push(Op::PlaceSet { base, root, site });
                self.drop_last(values);
            }
            Opcode::PlaceCall => {
                let root = self.root(instruction)?;
                let site = self.loader.site(Site::new(instruction))?;
                self.settle_root(root);
                let argc = short(argc)?;
                self.row(indexes(instruction) + usize::from(argc), |base| {
                    Op::PlaceCall {
                        base,
                        argc,
                        root,
                        site,
                    }
                });
            }
            Opcode::BuildArray | Opcode::AwaitAll => {
                self.row(count as usize, |base| Op::BuildArray { base, count });
            }
            Opcode::BuildMap => {
                self.row(2 * count as usize, |base| Op::BuildMap { base, count });
            }
            Opcode::BuildString => {
                self.row(count as usize, |base| Op::BuildString { base, count });
            }
            Opcode::BuildStruct => {
                let site = self.loader.struct_site(instruction)?;
                self.row(count as usize, |base| Op::BuildStruct { base, site });
            }
            Opcode::BuildEnum => {
                let site = self.loader.variant(instruction)?;
                let count = short(count as usize)?;
                self.row(usize::from(count), |base| Op::BuildEnum {
                    base,
                    count,
                    site,
                });
            }
            Opcode::BuildRange => self.row(3, |base| Op::BuildRange { base }),
            Opcode::MakeClosure => {
                let name = text(&instruction.name, "name")?;
                let Global::Function(function) = self.loader.resolve(name) else {
                    return Err(LoadErrorKind::Function(name.to_owned()));
                };
                let count = short(count as usize)?;
                self.row(usize::from(count), |base| Op::MakeClosure {
                    base,
                    count,
                    function,
                });
            }
            Opcode::FieldGet => {
                let name = self.loader.name(text(&instruction.name, "name")?);
                self.unary(|dst, src| Op::GetField { dst, src, name });
            }
            Opcode::FieldSet => {
                let name = self.loader.name(text(&instruction.name, "name")?);
                self.row(2, |base| Op::SetField {
                    base,
                    src: base + 1,
                    name,
                });
            }
            Opcode::IndexGet => {
                let (src, index) = self.pop_two();
                let dst = self.top();
                self.code.push(Op::GetIndex { dst, src, index });
                self.push_result();
            }
            Opcode::IndexSet => {
                self.row(3, |base| Op::SetIndex {
                    base,
                    index: base + 1,
                    src: base + 2,
                });
            }
            Opcode::HashMapGet
            | Opcode::HashMapDelete
            | Opcode::HashMapHas
            | Opcode::HashMapQuery
            | Opcode::HashMapSet => {
                let (method, argc) = match instruction.op {
                    Opcode::HashMapGet => ("get", 1),
                    Opcode::HashMapDelete => ("delete", 1),
                    Opcode::HashMapHas => ("has", 1),
                    Opcode::HashMapQuery => ("query", 1),
                    _ => ("set", 2),
                };
                let mut call = Instruction::new(Opcode::CallModel)
                    .method(method)
                    .argc(argc);
                call.model = Some(text(&instruction.hashmap_name, "hashmap_name")?.to_owned());
                self.one(&call, place)?;
            }
            Opcode::Emit => {
                let base = self.settle_last(2);
                self.code.push(Op::Emit { base });
                self.drop_last(2);
            }
            Opcode::EmitAwait => self.row(2, |base| Op::EmitAwait { base }),
            Opcode::Await => {}
            Opcode::ListenBegin => {
                let site = self.loader.site(Site::new(instruction))?;
                let count = short(count as usize)?;
                self.row(usize::from(count) + 2, |base| Op::Listen {
                    base,
                    count,
                    site,
                });
            }
            Opcode::MockModel => {
                let site = self.loader.site(Site::new(instruction))?;
                let values = usize::from(instruction.method.is_some());
                let base = self.settle_last(values);
                self.code.push(Op::MockModel { base, site });
                self.drop_last(values);
            }
            Opcode::IterBegin => self.unary(|dst, src| Op::IterBegin { dst, src }),
            Opcode::IterNext => {
                self.flush();
                let iter = self.reg(self.stack.len() - 1);
                self.code.push(Op::IterNext {
                    iter,
                    dst: iter + 1,
                    to,
                });
                // Its result may go to a local at once: it is the last instruction, and where the
                // loop ends nothing is written.
                self.barrier = self.code.len() - 1;
                self.push_result();
            }
            Opcode::ParamDefault => {
                let name = text(&instruction.name, "name")?;
                let src = *self.locals.get(name).ok_or(LoadErrorKind::Member("name"))?;
                self.flush();
                self.code.push(Op::JumpPassed { src, to });
                self.barrier = self.code.len();
            }
            Opcode::Absent => self.load_constant(Value::Absent),
            Opcode::IsVariant => {
                let site = self.loader.variant(instruction)?;
                self.unary(|dst, src| Op::IsVariant { dst, src, site });
            }
            Opcode::Payload => {
                let place = instruction.arg.as_ref().and_then(Json::as_u64).unwrap_or(0);
                let place = u32::try_from(place).map_err(|_| LoadErrorKind::Member("arg"))?;
                self.unary(|dst, src| Op::Payload { dst, src, place });
            }
            Opcode::HasLength => {
                let at_least = instruction.arg == Some(Json::Bool(true));
                self.unary(|dst, src| Op::HasLength {
                    dst,
                    src,
                    at_least,
                    count,
                });
            }
            Opcode::HasField => {
                let name = self.loader.name(text(&instruction.name, "name")?);
                self.unary(|dst, src| Op::HasField { dst, src, name });
            }
            Opcode::Rest => self.unary(|dst, src| Op::Rest {
                dst,
                src,
                from: count,
            }),
            Opcode::InRange => {
                let inclusive = instruction.arg == Some(Json::Bool(true));
                self.row(3, |base| Op::InRange { base, inclusive });
            }
            Opcode::WrapOk => self.unary(|dst, src| Op::WrapOk { dst, src }),
            Opcode::WrapErr => self.unary(|dst, src| Op::WrapErr { dst, src }),
            Opcode::Unknown => return Err(LoadErrorKind::Opcode),
        }
        Ok(())
    }

    fn root(&self, instruction: &Instruction) -> Result<Reg, LoadErrorKind> {
        let name = text(&instruction.name, "name")?;
        self.locals
            .get(name)
            .copied()
            .ok_or(LoadErrorKind::Member("name"))
    }

    /// Whatever on the stack is the local that is about to change keeps its old value.
    fn settle_root(&mut self, root: Reg) {
        for place in 0..self.stack.len() {
            if matches!(self.stack[place], Sym::Local(reg) if reg == root) {
                self.settle(place);
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
    member: &'t Option<String>,
    name: &'static str,
) -> Result<&'t str, LoadErrorKind> {
    member.as_deref().ok_or(LoadErrorKind::Missing(name))
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
