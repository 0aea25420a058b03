//! Names, calls, and whatever takes its operands in a row.

use super::{Done, Sym, Translator, short, text};
use crate::ir::Instruction;
use crate::load::error::LoadErrorKind;
use crate::load::op::{Op, Reg};
use crate::load::sites::{Global, Site};
use crate::natives::Native;
use crate::value::Value;

impl Translator<'_> {
    pub(super) fn load_constant(&mut self, value: Value) {
        let sym = match value {
            Value::Int(value) if i32::try_from(value).is_ok() => {
                Sym::Int(i32::try_from(value).unwrap_or(0)) // just tested
            }
            value => Sym::Const(self.loader.constant(value)),
        };
        self.stack.push(sym);
    }

    pub(super) fn load_name(&mut self, name: &str, local: bool) {
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

    pub(super) fn call(&mut self, instruction: &Instruction, argc: usize) -> Done {
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
                let site = self.loader.site(&Site::new(instruction))?;
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

    pub(super) fn native(
        &mut self,
        native: &'static Native,
        argc: usize,
        instruction: &Instruction,
    ) -> Done {
        if argc == 1 && (native.name == "Ok" || native.name == "Err") {
            let wrap_ok = native.name == "Ok";
            if !wrap_ok {
                self.unary(|dst, src| Op::WrapErr { dst, src });
                return Ok(());
            }
        }
        let base = self.settle_last(argc);
        let site = self.loader.site(&Site {
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
    pub(super) fn row(&mut self, count: usize, op: impl FnOnce(Reg) -> Op) {
        let base = self.settle_last(count);
        self.code.push(op(base));
        self.drop_last(count);
        self.push_result();
    }

    pub(super) fn root(&self, instruction: &Instruction) -> Result<Reg, LoadErrorKind> {
        let name = text(instruction.name.as_deref(), "name")?;
        self.locals
            .get(name)
            .copied()
            .ok_or(LoadErrorKind::Member("name"))
    }

    /// Whatever on the stack is the local that is about to change keeps its old value.
    pub(super) fn settle_root(&mut self, root: Reg) {
        for place in 0..self.stack.len() {
            if matches!(self.stack[place], Sym::Local(reg) if reg == root) {
                self.settle(place);
            }
        }
    }
}
