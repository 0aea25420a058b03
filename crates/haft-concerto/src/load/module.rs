//! A whole program: every body becomes a function, every name a number.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::code::{Function, Handler, Program, Returns, Stage};
use super::error::{LoadError, LoadErrorKind};
use super::flow::{self, Flow};
use super::op::{Op, Reg};
use super::sites::declared;
use super::translate::{ABSOLUTE, Translator};
use crate::ir::{self, Instruction, Opcode, Receiver, TypeKind};
use crate::value::{RefKind, StructDef};

/// Loads a program.
pub fn load(ir: ir::Module) -> Result<Arc<Program>, LoadError> {
    let mut ir = ir;
    super::schema::normalise(&mut ir);
    let mut loader = Loader::new(ir);
    let bodies = loader.declare()?;
    for body in bodies {
        let function = loader.body(body)?;
        loader.program.functions.push(function);
    }
    Ok(Arc::new(loader.program))
}

/// A program that is being loaded.
pub(super) struct Loader {
    pub(super) program: Program,
    pub(super) name_places: HashMap<Arc<str>, u32>,
    pub(super) function_names: Vec<Arc<str>>,
    pub(super) declared: HashMap<String, RefKind>,
    /// By the last part of their names: the type before it, and the function.
    pub(super) methods: HashMap<String, Vec<(Arc<str>, u32)>>,
}

/// Code with its parameters.
struct Body {
    name: Arc<str>,
    params: Vec<ir::Param>,
    captures: Vec<String>,
    receiver: Option<Receiver>,
    return_type: Json,
    code: Vec<Instruction>,
}

impl Loader {
    fn new(ir: ir::Module) -> Self {
        Self {
            program: Program {
                functions: Vec::new(),
                by_name: HashMap::new(),
                constants: Vec::new(),
                names: Vec::new(),
                globals: HashMap::new(),
                sites: Vec::new(),
                structs: Vec::new(),
                variants: Vec::new(),
                types: HashMap::new(),
                tools: HashMap::new(),
                pipelines: HashMap::new(),
                listens: HashMap::new(),
                tests: Vec::new(),
                ir,
            },
            name_places: HashMap::new(),
            function_names: Vec::new(),
            declared: HashMap::new(),
            methods: HashMap::new(),
        }
    }

    /// Gives every function its number before any code is looked at.
    fn declare(&mut self) -> Result<Vec<Body>, LoadError> {
        let mut ir = std::mem::replace(&mut self.program.ir, ir::Module::new("", ""));
        self.declared = declared(&ir)
            .map(|(name, kind)| (name.to_owned(), kind))
            .collect();
        let mut bodies = Vec::new();
        for function in &mut ir.functions {
            let name = function.name.clone();
            let aliases = std::mem::take(&mut function.aliases);
            let number = self.add(&mut bodies, function_body(function, name.clone()));
            for name in std::iter::once(&name).chain(&aliases) {
                let shared = self.shared(name);
                if self.program.by_name.insert(shared, number).is_some() && *name == function.name {
                    return Err(LoadError {
                        function: name.clone(),
                        place: None,
                        kind: LoadErrorKind::Twice(name.clone()),
                    });
                }
                if let Some((type_name, method)) = name.rsplit_once("::") {
                    let type_name = self.shared(type_name);
                    self.methods
                        .entry(method.to_owned())
                        .or_default()
                        .push((type_name, number));
                }
            }
            function.aliases = aliases;
        }
        for tool in &mut ir.tools {
            let mut methods = HashMap::new();
            for method in &mut tool.methods {
                let name = method
                    .name
                    .rsplit("::")
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                let number = self.add(
                    &mut bodies,
                    function_body(method, format!("{}::{name}", tool.name)),
                );
                methods.insert(self.shared(&name), number);
            }
            for field in &tool.state {
                self.global(&format!("{}.{field}", tool.name));
            }
            let name = self.shared(&tool.name);
            self.program.tools.insert(name, methods);
        }
        self.declare_others(&mut ir, &mut bodies);
        for def in ir.types.iter().filter(|def| def.kind == TypeKind::Struct) {
            self.shape(&def.name, &def.fields);
        }
        for schema in &ir.schemas {
            self.shape(&schema.name, &schema.fields);
        }
        for body in &bodies {
            for instruction in &body.code {
                if instruction.op == Opcode::StoreGlobal
                    && let Some(name) = &instruction.name
                {
                    self.global(name);
                }
            }
        }
        self.program.ir = ir;
        Ok(bodies)
    }

    fn declare_others(&mut self, ir: &mut ir::Module, bodies: &mut Vec<Body>) {
        for pipeline in &mut ir.pipelines {
            let mut stages = Vec::new();
            for stage in &mut pipeline.stages {
                let body = Body {
                    name: Arc::from(format!("{}::{}", pipeline.name, stage.name)),
                    params: stage.params.clone(),
                    captures: Vec::new(),
                    receiver: None,
                    return_type: stage.output_type.clone(),
                    code: std::mem::take(&mut stage.instructions),
                };
                let function = self.add(bodies, body);
                stages.push(Stage {
                    name: self.shared(&stage.name),
                    function,
                    decorators: stage.decorators.clone(),
                });
            }
            let name = self.shared(&pipeline.name);
            self.program.pipelines.insert(name, stages);
        }
        for listen in &mut ir.listens {
            let mut handlers = Vec::new();
            for handler in &mut listen.handlers {
                let param = handler
                    .param
                    .as_str()
                    .or_else(|| handler.param.get("name")?.as_str());
                let param = ir::Param {
                    name: param.unwrap_or("_").to_owned(),
                    kind: Json::Null,
                    optional: false,
                };
                let body = Body {
                    name: Arc::from(format!("{} {}", listen.name, handler.message_type)),
                    params: vec![param],
                    captures: handler.captures.clone(),
                    receiver: None,
                    return_type: Json::Null,
                    code: std::mem::take(&mut handler.instructions),
                };
                let function = self.add(bodies, body);
                let kind = self.shared(&handler.message_type);
                handlers.push((kind, function, handler.captures.len()));
            }
            let name = self.shared(&listen.name);
            self.program.listens.insert(name, handlers);
        }
        for test in &mut ir.tests {
            let body = Body {
                name: Arc::from(test.description.as_str()),
                params: Vec::new(),
                captures: Vec::new(),
                receiver: None,
                return_type: Json::Null,
                code: std::mem::take(&mut test.instructions),
            };
            let function = self.add(bodies, body);
            self.program.tests.push(function);
        }
    }

    fn add(&mut self, bodies: &mut Vec<Body>, body: Body) -> u32 {
        self.function_names.push(body.name.clone());
        bodies.push(body);
        u32::try_from(bodies.len() - 1).unwrap_or(u32::MAX)
    }

    fn shape(&mut self, name: &str, fields: &[ir::Field]) {
        let mut def = StructDef::new(
            name,
            fields
                .iter()
                .map(|field| self.shared(&field.name))
                .collect(),
        );
        def.optional = fields
            .iter()
            .map(|field| field.required == Some(false))
            .collect();
        let name = self.shared(name);
        self.program.types.insert(name, Arc::new(def));
    }

    fn body(&mut self, mut body: Body) -> Result<Function, LoadError> {
        let name = body.name.clone();
        let error = |(place, kind)| LoadError {
            function: name.to_string(),
            place,
            kind,
        };
        flow::complete_catches(&mut body.code);
        let flow = flow::follow(&body.code).map_err(|(place, kind)| error((Some(place), kind)))?;

        let uses_self = body.code.iter().any(|instruction| {
            instruction.name.as_deref() == Some("self")
                && matches!(
                    instruction.op,
                    Opcode::LoadLocal | Opcode::PlaceSet | Opcode::PlaceCall
                )
        });
        let captured = body.captures.iter().any(|name| name == "self");
        let listed = body.params.iter().any(|param| param.name == "self");
        let has_self = !captured && !listed && (body.receiver.is_some() || uses_self);
        let mut locals: HashMap<String, Reg> = HashMap::new();
        let names = has_self
            .then_some("self")
            .into_iter()
            .chain(body.params.iter().map(|param| param.name.as_str()))
            .chain(body.captures.iter().map(String::as_str))
            .chain(
                body.code
                    .iter()
                    .filter(|instruction| instruction.op == Opcode::StoreLocal)
                    .filter_map(|instruction| instruction.name.as_deref()),
            );
        let fixed = usize::from(has_self) + body.params.len() + body.captures.len();
        for (place, local) in names.enumerate() {
            let next = Reg::try_from(locals.len())
                .map_err(|_| error((None, LoadErrorKind::TooManyLocals)))?;
            let known = locals.contains_key(local);
            if known && place < fixed {
                return Err(error((None, LoadErrorKind::Twice(local.to_owned()))));
            }
            if !known {
                locals.insert(local.to_owned(), next);
            }
        }

        let mut translator = Translator::new(self, locals);
        let starts = translator
            .run(&body.code, &flow)
            .map_err(|(place, kind)| error((Some(place), kind)))?;
        let (base, highest) = (translator.base, translator.highest);
        let (mut code, spans) = (translator.code, translator.spans);
        if base + highest + 8 > usize::from(Reg::MAX) {
            return Err(error((None, LoadErrorKind::TooManyLocals)));
        }
        if !matches!(code.last(), Some(Op::ReturnNil)) {
            code.push(Op::ReturnNil);
        }
        for op in &mut code {
            patch(op, &starts);
        }
        let params: Vec<Arc<str>> = has_self
            .then_some("self")
            .into_iter()
            .chain(body.params.iter().map(|param| param.name.as_str()))
            .map(|param| self.shared(param))
            .collect();
        let last_required = body
            .params
            .iter()
            .rposition(|param| !param.optional)
            .map_or(0, |place| place + 1);
        let declared = body.return_type.as_str().unwrap_or_default();
        Ok(Function {
            name: body.name,
            handlers: handlers(&body.code, &flow, &starts, base),
            code,
            registers: base + highest + 2,
            locals: base,
            arity: params.len(),
            required: usize::from(has_self) + last_required,
            params,
            captures: body.captures.len(),
            has_self,
            mut_self: has_self && body.receiver == Some(Receiver::Mut),
            returns: if declared == "Result" || declared.starts_with("Result<") {
                Returns::Result
            } else if declared == "Option" || declared.starts_with("Option<") {
                Returns::Option
            } else {
                Returns::Plain
            },
            spans,
        })
    }
}

fn function_body(function: &mut ir::Function, name: String) -> Body {
    Body {
        name: Arc::from(name),
        params: function.params.clone(),
        captures: function.captures.clone(),
        receiver: function.receiver,
        return_type: function.return_type.clone(),
        // The code lives on in its new form only.
        code: std::mem::take(&mut function.instructions),
    }
}

/// Jumps go to where the instruction that they name begins.
fn patch(op: &mut Op, starts: &[u32]) {
    let (Op::Jump { to }
    | Op::Loop { to }
    | Op::JumpTrue { to, .. }
    | Op::JumpFalse { to, .. }
    | Op::JumpNotNil { to, .. }
    | Op::JumpLess { to, .. }
    | Op::JumpLessEqual { to, .. }
    | Op::JumpEqual { to, .. }
    | Op::JumpLessInt { to, .. }
    | Op::JumpLessEqualInt { to, .. }
    | Op::JumpGreaterInt { to, .. }
    | Op::JumpGreaterEqualInt { to, .. }
    | Op::JumpEqualInt { to, .. }
    | Op::JumpPassed { to, .. }
    | Op::Catch { to, .. }
    | Op::IterNext { to, .. }) = op
    else {
        return;
    };
    *to = if *to & ABSOLUTE == 0 {
        starts[*to as usize]
    } else {
        *to & !ABSOLUTE
    };
}

/// The stretches of code that a `try` covers, innermost first.
fn handlers(code: &[Instruction], flow: &Flow, starts: &[u32], base: usize) -> Vec<Handler> {
    let mut handlers: Vec<(usize, Handler)> = Vec::new();
    // The last stretch of each target.
    let mut last: HashMap<u32, usize> = HashMap::new();
    for (place, state) in flow.iter().enumerate().take(code.len()) {
        let Some(state) = state else { continue };
        let (from, to) = (starts[place], starts[place + 1]);
        if from == to {
            continue;
        }
        for (depth, begin) in state.tries.iter().enumerate() {
            let target = starts[code[*begin].offset.unwrap_or(0) as usize];
            let height = flow[*begin].as_ref().map_or(0, |state| state.height);
            let register = Reg::try_from(base + height).unwrap_or(Reg::MAX);
            let known = last.get(&target).and_then(|at| handlers.get_mut(*at));
            if let Some((_, handler)) = known.filter(|(_, handler)| handler.to == from) {
                handler.to = to;
                continue;
            }
            last.insert(target, handlers.len());
            let handler = Handler {
                from,
                to,
                target,
                register,
            };
            handlers.push((depth, handler));
        }
    }
    handlers.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
    handlers.into_iter().map(|(_, handler)| handler).collect()
}
