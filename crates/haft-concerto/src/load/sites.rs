//! What instructions refer to by number: names, constants, calls, shapes.

use std::sync::Arc;

use serde_json::Value as Json;

use super::code::{CallSite, Mock, Step, StructSite, VariantSite};
use super::error::LoadErrorKind;
use super::method::Method;
use super::module::Loader;
use super::translate::text;
use crate::ir::{ConstantKind, Instruction, Opcode};
use crate::natives::{self, Native};
use crate::value::{Binary, Closure, RefKind, Reference, StructDef, Value, VariantDef};

/// What a global name is.
pub(super) enum Global {
    Variable(u32),
    Function(u32),
    Native(&'static Native),
    Value(Value),
    Unknown,
}

/// A call as the IR has it.
pub(super) struct Site<'a> {
    pub(super) instruction: &'a Instruction,
    pub(super) native: Option<&'static Native>,
}

impl<'a> Site<'a> {
    pub(super) fn new(instruction: &'a Instruction) -> Self {
        Self {
            instruction,
            native: None,
        }
    }
}

/// A number for the next entry of a list.
fn number<T>(list: &[T]) -> u32 {
    // Each entry comes from an instruction; files of 4 G instructions are not read.
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

impl Loader {
    pub(super) fn shared(&mut self, name: &str) -> Arc<str> {
        let place = self.name(name) as usize;
        self.program.names[place].clone()
    }

    pub(super) fn name(&mut self, name: &str) -> u32 {
        if let Some(place) = self.name_places.get(name) {
            return *place;
        }
        let place = number(&self.program.names);
        let shared: Arc<str> = Arc::from(name);
        self.program.names.push(shared.clone());
        self.name_places.insert(shared, place);
        place
    }

    pub(super) fn constant(&mut self, value: Value) -> u32 {
        self.program.constants.push(value);
        number(&self.program.constants) - 1
    }

    pub(super) fn function_constant(&mut self, function: u32) -> u32 {
        let name = self.function_names[function as usize].clone();
        let closure = Closure {
            function,
            name,
            captures: Vec::new(),
        };
        self.constant(Value::Function(Arc::new(closure)))
    }

    pub(super) fn global(&mut self, name: &str) -> u32 {
        let next = u32::try_from(self.program.globals.len()).unwrap_or(u32::MAX);
        let name = self.shared(name);
        *self.program.globals.entry(name).or_insert(next)
    }

    /// Constants, functions, what the module declares, built-ins.
    pub(super) fn resolve(&mut self, name: &str) -> Global {
        if let Some(global) = self.program.globals.get(name) {
            return Global::Variable(*global);
        }
        if let Some(function) = self.program.by_name.get(name) {
            return Global::Function(*function);
        }
        if let Some(kind) = self.declared.get(name) {
            let kind = *kind;
            let name = self.shared(name);
            return Global::Value(Value::Ref(Arc::new(Reference { kind, name })));
        }
        let name = name.strip_prefix("$builtin_").unwrap_or(name);
        match name {
            "None" => Global::Value(Value::None),
            "nil" => Global::Value(Value::Nil),
            _ => natives::find(name).map_or(Global::Unknown, Global::Native),
        }
    }

    /// A declared name as a value.
    pub(super) fn value_of(&mut self, name: &str) -> Value {
        match self.resolve(name) {
            Global::Value(value) => value,
            _ => Value::Nil,
        }
    }

    pub(super) fn ir_constant(&self, arg: Option<&Json>) -> Result<Value, LoadErrorKind> {
        let index = arg
            .and_then(Json::as_u64)
            .ok_or(LoadErrorKind::Missing("arg"))?;
        let constant = usize::try_from(index)
            .ok()
            .and_then(|index| self.program.ir.constants.get(index))
            .ok_or(LoadErrorKind::Constant(index))?;
        let wrong = LoadErrorKind::Constant(index);
        Ok(match constant.kind {
            ConstantKind::Nil => Value::Nil,
            ConstantKind::Bool => Value::Bool(constant.value.as_bool().ok_or(wrong)?),
            ConstantKind::Int => Value::Int(constant.value.as_i64().ok_or(wrong)?),
            ConstantKind::Float => match constant.value.as_f64() {
                Some(value) => Value::Float(value),
                None => Value::Float(
                    constant
                        .value
                        .as_str()
                        .and_then(|text| text.parse().ok())
                        .ok_or(wrong)?,
                ),
            },
            ConstantKind::String => Value::from(constant.value.as_str().ok_or(wrong)?),
        })
    }

    pub(super) fn site(&mut self, site: &Site<'_>) -> Result<u32, LoadErrorKind> {
        let instruction = site.instruction;
        // Where `name` is a place or a model, the method has a member of its own.
        let method = instruction
            .method
            .as_deref()
            .or(instruction.name.as_deref())
            .unwrap_or("");
        let arg = instruction.arg.as_ref();
        let names = match arg
            .and_then(|arg| arg.get("names"))
            .and_then(Json::as_array)
        {
            Some(names) => names
                .iter()
                .map(|name| name.as_str().map(|name| self.shared(name)))
                .collect::<Option<Vec<_>>>()
                .ok_or(LoadErrorKind::Member("arg"))?,
            None => Vec::new(),
        };
        if names.len() > instruction.argc.unwrap_or(0) as usize {
            return Err(LoadErrorKind::Member("arg"));
        }
        let is_place = matches!(instruction.op, Opcode::PlaceSet | Opcode::PlaceCall);
        let path = match arg {
            Some(Json::Array(steps)) if is_place => steps
                .iter()
                .map(|step| match step {
                    Json::Null => Ok(Step::Index),
                    Json::String(name) => Ok(Step::Field(self.shared(name))),
                    _ => Err(LoadErrorKind::Member("arg")),
                })
                .collect::<Result<_, _>>()?,
            _ => Vec::new(),
        };
        let operator = match (&instruction.op, &instruction.method) {
            (Opcode::PlaceSet, Some(name)) => {
                Some(Binary::from_opcode(name).ok_or(LoadErrorKind::Member("method"))?)
            }
            _ => None,
        };
        let mock = (instruction.op == Opcode::MockModel)
            .then(|| match (instruction.method.as_deref(), arg) {
                (Some("response"), _) => Ok(Mock::Response),
                (Some("error"), _) => Ok(Mock::Error),
                (Some(_), _) => Err(LoadErrorKind::Member("method")),
                (None, arg) => {
                    let member = |name: &str| {
                        arg.and_then(|arg| arg.get(name))
                            .and_then(Json::as_str)
                            .map(Arc::from)
                    };
                    Ok(Mock::Fixed {
                        response: member("response"),
                        error: member("error"),
                    })
                }
            })
            .transpose()?;
        let name = match instruction.op {
            Opcode::MockModel | Opcode::ListenBegin => text(instruction.name.as_deref(), "name")?,
            _ => method,
        };
        let entry = CallSite {
            name: self.shared(name),
            method: Method::from_name(method),
            functions: self.methods.get(method).cloned().unwrap_or_default(),
            schema: instruction.schema.as_deref().map(Arc::from),
            names,
            path,
            operator,
            native: site.native,
            tool: instruction.tool.as_deref().map(Arc::from),
            mock,
        };
        self.program.sites.push(entry);
        Ok(number(&self.program.sites) - 1)
    }

    pub(super) fn struct_site(&mut self, instruction: &Instruction) -> Result<u32, LoadErrorKind> {
        let type_name = text(instruction.type_name.as_deref(), "type_name")?;
        let names = field_names(instruction)?;
        if names.len() != instruction.count.unwrap_or(0) as usize {
            return Err(LoadErrorKind::Member("count"));
        }
        let def = match self.program.types.get(type_name) {
            Some(def) if names.iter().all(|name| def.place_of(name).is_some()) => def.clone(),
            _ => {
                let fields = names.iter().map(|name| self.shared(name)).collect();
                Arc::new(StructDef::new(type_name, fields))
            }
        };
        let places = names.iter().filter_map(|name| def.place_of(name)).collect();
        self.program.structs.push(StructSite { def, places });
        Ok(number(&self.program.structs) - 1)
    }

    pub(super) fn variant(&mut self, instruction: &Instruction) -> Result<u32, LoadErrorKind> {
        let name = text(instruction.name.as_deref(), "name")?;
        let type_name = instruction.type_name.as_deref().unwrap_or("");
        let fields = match instruction.op {
            Opcode::BuildEnum => field_names(instruction)?,
            _ => Vec::new(),
        };
        if !fields.is_empty() && fields.len() != instruction.count.unwrap_or(0) as usize {
            return Err(LoadErrorKind::Member("count"));
        }
        let order = self.declared_order(type_name, name, &fields);
        let fields = match &order {
            Some(order) => order.iter().map(|place| fields[*place]).collect(),
            None => fields,
        };
        let def = Arc::new(VariantDef {
            type_name: self.shared(type_name),
            name: self.shared(name),
            fields: fields.iter().map(|name| self.shared(name)).collect(),
        });
        self.program.variants.push(VariantSite { def, order });
        Ok(number(&self.program.variants) - 1)
    }

    /// Where the fields of a variant stand among those given, in the order of its declaration; `None`
    /// if they are in that order, or are others.
    fn declared_order(&self, type_name: &str, name: &str, given: &[&str]) -> Option<Vec<usize>> {
        // One value has no order; most variants end here, without a look at all the others.
        if given.len() < 2 {
            return None;
        }
        let mut types = self.program.ir.types.iter();
        let declared = types.find(|it| it.name == type_name)?;
        let variant = declared.variants.iter().find(|it| it.name == name)?;
        let place = |field: &Json| {
            let field = field.get("name")?.as_str()?;
            given.iter().position(|name| *name == field)
        };
        let order: Vec<usize> = variant.data.iter().filter_map(place).collect();
        let complete = order.len() == given.len() && !order.is_sorted();
        complete.then_some(order)
    }
}

fn field_names(instruction: &Instruction) -> Result<Vec<&str>, LoadErrorKind> {
    match &instruction.arg {
        None => Ok(Vec::new()),
        Some(Json::Array(names)) => names
            .iter()
            .map(|name| name.as_str().ok_or(LoadErrorKind::Member("arg")))
            .collect(),
        Some(_) => Err(LoadErrorKind::Member("arg")),
    }
}

/// Names that a module declares, with what they are.
pub(super) fn declared(ir: &crate::ir::Module) -> impl Iterator<Item = (&str, RefKind)> {
    let of = |kind| move |name| (name, kind);
    let servers = ir
        .connections
        .iter()
        .filter(|connection| connection.config.get("type").and_then(Json::as_str) == Some("mcp"));
    servers
        .map(|server| server.name.as_str())
        .map(of(RefKind::Mcp))
        .chain(
            ir.agents
                .iter()
                .map(|agent| agent.name.as_str())
                .map(of(RefKind::Agent)),
        )
        .chain(
            ir.pipelines
                .iter()
                .map(|pipeline| pipeline.name.as_str())
                .map(of(RefKind::Pipeline)),
        )
        .chain(
            ir.memories
                .iter()
                .map(|memory| memory.name.as_str())
                .map(of(RefKind::Memory)),
        )
        .chain(
            ir.ledgers
                .iter()
                .map(|ledger| ledger.name.as_str())
                .map(of(RefKind::Ledger)),
        )
        .chain(
            ir.hashmaps
                .iter()
                .map(|store| store.name.as_str())
                .map(of(RefKind::HashMap)),
        )
        .chain(
            ir.schemas
                .iter()
                .map(|schema| schema.name.as_str())
                .map(of(RefKind::Schema)),
        )
        .chain(
            ir.tools
                .iter()
                .map(|tool| tool.name.as_str())
                .map(of(RefKind::Tool)),
        )
        .chain(
            ir.models
                .iter()
                .map(|model| model.name.as_str())
                .map(of(RefKind::Model)),
        )
}
