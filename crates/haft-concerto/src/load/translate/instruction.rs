//! One instruction of the IR.

use serde_json::Value as Json;

use super::{Done, Sym, Translator, short, text};
use crate::ir::{Instruction, Opcode};
use crate::load::error::LoadErrorKind;
use crate::load::flow::indexes;
use crate::load::op::{Op, Test};
use crate::load::sites::{Global, Site};
use crate::value::Value;

impl Translator<'_> {
    #[allow(clippy::too_many_lines)] // one arm for each opcode
    pub(super) fn one(&mut self, instruction: &Instruction, place: usize) -> Done {
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
            Opcode::LoadLocal => self.load_name(text(instruction.name.as_deref(), "name")?, true),
            Opcode::LoadGlobal => self.load_name(text(instruction.name.as_deref(), "name")?, false),
            Opcode::StoreLocal => {
                let name = text(instruction.name.as_deref(), "name")?;
                let local = *self.locals.get(name).ok_or(LoadErrorKind::Member("name"))?;
                self.store(local);
            }
            Opcode::StoreGlobal => {
                let global = self
                    .loader
                    .global(text(instruction.name.as_deref(), "name")?);
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
                let name = self
                    .loader
                    .name(text(instruction.type_name.as_deref(), "type_name")?);
                self.unary(|dst, src| Op::IsType { dst, src, name });
            }
            Opcode::Cast => {
                let name = self
                    .loader
                    .name(text(instruction.type_name.as_deref(), "type_name")?);
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
                let site = self.loader.site(&Site::new(instruction))?;
                let argc = short(argc)?;
                self.row(usize::from(argc) + 1, |base| Op::CallMethod {
                    base,
                    argc,
                    site,
                });
            }
            Opcode::CallNative => {
                let name = text(instruction.name.as_deref(), "name")?;
                match self.loader.resolve(name) {
                    Global::Native(native) => self.native(native, argc, instruction)?,
                    _ => return Err(LoadErrorKind::Function(name.to_owned())),
                }
            }
            Opcode::CallTool => {
                let site = self.loader.site(&Site::new(instruction))?;
                let argc = short(argc)?;
                self.row(usize::from(argc), |base| Op::CallTool { base, argc, site });
            }
            Opcode::CallModel
            | Opcode::CallModelSchema
            | Opcode::CallModelStream
            | Opcode::CallModelChat => {
                // The model is put below its arguments.
                let site = self.loader.site(&Site::new(instruction))?;
                let model = text(instruction.model.as_deref(), "model")?;
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
                let site = self.loader.site(&Site::new(instruction))?;
                let values = indexes(instruction) + 1;
                self.settle_root(root);
                let base = self.settle_last(values);
                self.code.push(Op::PlaceSet { base, root, site });
                self.drop_last(values);
            }
            Opcode::PlaceCall => {
                let root = self.root(instruction)?;
                let site = self.loader.site(&Site::new(instruction))?;
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
                let name = text(instruction.name.as_deref(), "name")?;
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
                let name = self.loader.name(text(instruction.name.as_deref(), "name")?);
                self.unary(|dst, src| Op::GetField { dst, src, name });
            }
            Opcode::FieldSet => {
                let name = self.loader.name(text(instruction.name.as_deref(), "name")?);
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
                call.model =
                    Some(text(instruction.hashmap_name.as_deref(), "hashmap_name")?.to_owned());
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
                let site = self.loader.site(&Site::new(instruction))?;
                let count = short(count as usize)?;
                self.row(usize::from(count) + 2, |base| Op::Listen {
                    base,
                    count,
                    site,
                });
            }
            Opcode::MockModel => {
                let site = self.loader.site(&Site::new(instruction))?;
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
                let name = text(instruction.name.as_deref(), "name")?;
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
                let name = self.loader.name(text(instruction.name.as_deref(), "name")?);
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
}
