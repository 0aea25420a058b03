//! Declarations.

use serde_json::{Map, Value as Json, json};

use super::Emitter;
use super::constant::literal;
use crate::ast::{
    Block, Config, Decorator, Enum, Expr, Field, Fields, Function, Item, ItemKind, Mcp, Pipeline,
    Store, StoreKind, Tool, TypeKind, VariantData,
};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, Instruction, Opcode};
use crate::symbols::{Symbol, join};

/// The only argument of a decorator, if it is a text.
pub(super) fn decorator_text(decorators: &[Decorator], name: &str) -> Option<String> {
    let decorator = decorators.iter().find(|it| it.name.text == name)?;
    match decorator.arguments.as_deref() {
        Some([(_, text)]) => text.as_text().map(str::to_owned),
        _ => None,
    }
}

fn entry<'e>(config: &'e [crate::ast::ConfigEntry], name: &str) -> Option<&'e Expr> {
    let mut entries = config.iter();
    entries.find(|it| it.name.text == name).map(|it| &it.value)
}

fn text_entry(config: &[crate::ast::ConfigEntry], name: &str) -> Option<String> {
    match entry(config, name).and_then(literal)? {
        Json::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

/// The function that gives the default of a field.
pub(super) fn default_name(of: &str, field: &str) -> String {
    format!("$default_{of}.{field}")
}

impl Emitter<'_> {
    pub(super) fn program(&mut self) {
        self.out.connections.clone_from(&self.around.connections);
        let symbols = self.symbols;
        for declared in &symbols.items {
            self.module = declared.module;
            self.in_file_of(declared.item.span);
            self.item(declared.item);
        }
        self.module = 0;
        self.source = None;
        self.init();
        if !symbols.script.is_empty() {
            let written = self.written(|emitter| {
                for stmt in &symbols.script {
                    emitter.stmt(stmt);
                }
                emitter.nil();
                emitter.op(Opcode::Return);
            });
            let main = self.plain_function("main", written);
            self.out.functions.push(main);
        }
    }

    fn full(&self, name: &str) -> String {
        join(&self.symbols.modules[self.module], name)
    }

    fn item(&mut self, item: &Item) {
        match &item.kind {
            ItemKind::Function(it) => self.function_item(it),
            ItemKind::Model(it) => self.model(it, &item.decorators),
            ItemKind::Agent(it) => self.agent(it),
            ItemKind::Tool(it) => self.tool(it),
            ItemKind::Mcp(it) => self.mcp(it),
            ItemKind::Schema(it) => self.schema(it),
            ItemKind::Struct(it) => self.struct_type(it),
            ItemKind::Enum(it) => self.enum_type(it),
            ItemKind::Trait(it) => self.methods(&self.full(&it.name.text), &it.methods),
            ItemKind::Impl(it) => {
                let receiver = self.symbols.resolve_name(self.module, it.receiver_type());
                if let Some((path, _)) = receiver {
                    self.methods(&path, &it.methods);
                }
            }
            ItemKind::Pipeline(it) => self.pipeline(it),
            ItemKind::Store(it) => self.store_item(it),
            ItemKind::Const(_) | ItemKind::TypeAlias(_) | ItemKind::Use(_) | ItemKind::Mod(_) => {}
        }
    }

    fn methods(&mut self, path: &str, methods: &[Function]) {
        for method in methods.iter().filter(|it| it.body.is_some()) {
            let name = join(path, &method.signature.name.text);
            let function = self.function(name, method);
            self.out.functions.push(function);
        }
    }

    fn function_item(&mut self, it: &Function) {
        let signature = &it.signature;
        let decorators = &signature.decorators;
        if !decorators.iter().any(|it| it.name.text == "test") {
            let function = self.function(self.full(&signature.name.text), it);
            self.out.functions.push(function);
            return;
        }
        let described = decorator_text(decorators, "test");
        let expected = decorators.iter().any(|it| it.name.text == "expect_fail");
        let instructions = match &it.body {
            Some(body) => self.body_code(body, &[]),
            None => Vec::new(),
        };
        self.out.tests.push(ir::Test {
            description: described.unwrap_or_else(|| signature.name.text.clone()),
            instructions,
            expect_fail: expected,
            expect_fail_message: decorator_text(decorators, "expect_fail"),
            source: self.source.clone(),
        });
    }

    /// The code of a test or a stage.
    fn body_code(&mut self, block: &Block, params: &[crate::ast::Param]) -> Vec<Instruction> {
        let written = self.written(|emitter| {
            emitter.parameters(None, params);
            emitter.returning(block, None);
        });
        written.code
    }

    /// Constants and the state of tools, before anything else runs.
    fn init(&mut self) {
        let symbols = self.symbols;
        let written = self.written(|emitter| {
            for declared in &symbols.items {
                emitter.module = declared.module;
                emitter.in_file_of(declared.item.span);
                match &declared.item.kind {
                    ItemKind::Const(it) => {
                        let path = emitter.full(&it.name.text);
                        emitter.first_value(&path, &it.value, &it.ty);
                        emitter.push(Instruction::new(Opcode::StoreGlobal).name(path));
                    }
                    ItemKind::Tool(it) => {
                        let tool = emitter.full(&it.name.text);
                        for state in &it.state {
                            let path = format!("{tool}.{}", state.name.text);
                            emitter.first_value(&path, &state.value, &state.ty);
                            emitter.push(Instruction::new(Opcode::StoreGlobal).name(path));
                        }
                    }
                    _ => {}
                }
            }
            emitter.module = 0;
            emitter.source = None;
            if !emitter.body().code.is_empty() {
                emitter.nil();
                emitter.op(Opcode::Return);
            }
        });
        if !written.code.is_empty() {
            let init = self.plain_function("$init", written);
            self.out.functions.push(init);
        }
    }

    /// The value of a constant. A function is of one file, so those of other files have their own.
    fn first_value(&mut self, path: &str, value: &Expr, ty: &crate::ast::Type) {
        if self.source.is_none() {
            return self.value_of(value, Some(ty));
        }
        let thunk = self.thunk(format!("$const_{path}"), value, Some(ty));
        self.global(&thunk, value.span);
        self.push_at(value.span, Instruction::new(Opcode::Call).argc(0));
    }

    fn model(&mut self, it: &Config, decorators: &[Decorator]) {
        let name = self.full(&it.name.text);
        let mut config = ir::ModelConfig::default();
        let mut tools = Vec::new();
        for entry in &it.entries {
            let value = self.fixed(&entry.value, 0);
            let number = value.as_ref().and_then(Json::as_f64);
            match entry.name.text.as_str() {
                "provider" => {}
                "base" => config.base = value.as_ref().and_then(Json::as_str).map(str::to_owned),
                "temperature" => config.temperature = number,
                "max_tokens" => config.max_tokens = value.as_ref().and_then(Json::as_u64),
                "timeout" => config.timeout = number,
                "max_tool_rounds" => {
                    let rounds = value.as_ref().and_then(Json::as_u64);
                    config.max_tool_rounds = rounds.and_then(|it| u32::try_from(it).ok());
                }
                "system_prompt" => {
                    if let Some(text) = entry.value.as_text() {
                        config.system_prompt = Some(text.to_owned());
                    } else {
                        let thunk = self.thunk(format!("$prompt_{name}"), &entry.value, None);
                        config.system_prompt_fn = Some(thunk);
                    }
                }
                "tools" => tools = self.tool_names(&entry.value),
                other => {
                    config
                        .other
                        .insert(other.to_owned(), value.unwrap_or_default());
                }
            }
        }
        let connection = text_entry(&it.entries, "provider").unwrap_or_default();
        self.out.models.push(ir::Model {
            name,
            module: self.module_name(),
            connection,
            config,
            tools,
            decorators: decorators_ir(decorators),
        });
    }

    /// What a setting is: a literal, or that of a constant.
    fn fixed(&self, value: &Expr, depth: usize) -> Option<Json> {
        let path = value.unwrapped().as_path();
        match path.and_then(|path| self.symbols.resolve(self.module, path)) {
            Some((_, Symbol::Const(it))) if depth < 8 => self.fixed(&it.value, depth + 1),
            _ => literal(value),
        }
    }

    fn tool_names(&self, value: &Expr) -> Vec<String> {
        let crate::ast::ExprKind::Array(list) = &value.unwrapped().kind else {
            return Vec::new();
        };
        let paths = list.iter().filter_map(Expr::as_path);
        let name = |path: &crate::ast::Path| {
            let found = self.symbols.resolve(self.module, path);
            found.map_or_else(|| path.text(), |(name, _)| name)
        };
        paths.map(name).collect()
    }

    fn agent(&mut self, it: &Config) {
        let connector = text_entry(&it.entries, "connector").unwrap_or_default();
        let known = self
            .around
            .agents
            .iter()
            .find(|(name, _)| *name == connector);
        let mut settings = known.map(|(_, it)| it.clone()).unwrap_or_default();
        for entry in &it.entries {
            let name = entry.name.text.as_str();
            if !matches!(
                name,
                "connector" | "input_format" | "output_format" | "tools"
            ) {
                let value = self.fixed(&entry.value, 0).unwrap_or_default();
                settings.insert(name.to_owned(), value);
            }
        }
        let format = |name| text_entry(&it.entries, name).unwrap_or_else(|| "text".to_owned());
        self.out.agents.push(ir::Agent {
            name: self.full(&it.name.text),
            input_format: format("input_format"),
            output_format: format("output_format"),
            connector,
            settings,
        });
    }

    fn tool(&mut self, it: &Tool) {
        let methods = it.methods.iter();
        let methods =
            methods.map(|method| self.function(method.signature.name.text.clone(), method));
        let methods: Vec<_> = methods.collect();
        self.out.tools.push(ir::Tool {
            name: self.full(&it.name.text),
            module: self.module_name(),
            description: text_entry(&it.entries, "description"),
            methods,
            tool_schemas: self.tool_schemas(it),
            state: it.state.iter().map(|it| it.name.text.clone()).collect(),
        });
    }

    /// A server of the source is a connection, unless the manifest says something about it too.
    fn mcp(&mut self, it: &Mcp) {
        let mut config = Map::new();
        config.insert("type".to_owned(), "mcp".into());
        for entry in &it.entries {
            config.insert(
                entry.name.text.clone(),
                self.fixed(&entry.value, 0).unwrap_or_default(),
            );
        }
        let declared: Vec<&str> = it
            .signatures
            .iter()
            .map(|it| it.signature.name.text.as_str())
            .collect();
        if !declared.is_empty() {
            config.insert("declared".to_owned(), json!(declared));
        }
        let name = self.full(&it.name.text);
        let known = self.out.connections.iter_mut().find(|it| it.name == name);
        match known {
            Some(ir::Connection {
                config: Json::Object(known),
                ..
            }) => {
                for (key, value) in config {
                    known.entry(key).or_insert(value);
                }
            }
            _ => self.out.connections.push(ir::Connection {
                name,
                config: Json::Object(config),
            }),
        }
    }

    fn fields(&mut self, of: &str, fields: &[Field]) -> Vec<ir::Field> {
        let mut list = Vec::new();
        for field in fields {
            let default = field.default.as_ref().map(|value| {
                let name = default_name(of, &field.name.text);
                self.thunk(name, value, Some(&field.ty))
            });
            let optional = field.optional || default.is_some();
            list.push(ir::Field {
                name: field.name.text.clone(),
                kind: self.type_text(&field.ty),
                required: optional.then_some(false),
                default_fn: default,
            });
        }
        list
    }

    fn schema(&mut self, it: &Fields) {
        let name = self.full(&it.name.text);
        let fields = self.fields(&name, &it.fields);
        let json_schema = self.schema_object(&it.fields).unwrap_or_else(|| {
            let text =
                format!("the schema `{name}` is too large: it has thousands of others in it");
            let help = "give it fewer fields that are schemas themselves";
            let told = Diagnostic::new(Code::E036, it.name.span, text).help(help);
            self.problems.push(told);
            Json::Null
        });
        self.out.schemas.push(ir::Schema {
            json_schema,
            name,
            validation_mode: "strict".to_owned(),
            fields,
        });
    }

    fn struct_type(&mut self, it: &Fields) {
        let name = self.full(&it.name.text);
        let fields = self.fields(&name, &it.fields);
        self.out.types.push(ir::TypeDef {
            name,
            kind: ir::TypeKind::Struct,
            fields,
            variants: Vec::new(),
        });
    }

    fn enum_type(&mut self, it: &Enum) {
        for variant in &it.variants {
            if let VariantData::Fields(fields, _) = &variant.data {
                let path = join(&self.full(&it.name.text), &variant.name.text);
                self.fields(&path, fields);
            }
        }
        let data = |data: &VariantData| match data {
            VariantData::None => Vec::new(),
            VariantData::Tuple(types) => types.iter().map(|it| self.type_text(it).into()).collect(),
            VariantData::Fields(fields, _) => {
                let field =
                    |it: &Field| json!({"name": it.name.text, "type": self.type_text(&it.ty)});
                fields.iter().map(field).collect()
            }
        };
        let variant = |it: &crate::ast::Variant| ir::Variant {
            name: it.name.text.clone(),
            data: data(&it.data),
        };
        let variants = it.variants.iter().map(variant).collect();
        self.out.types.push(ir::TypeDef {
            name: self.full(&it.name.text),
            kind: ir::TypeKind::Enum,
            fields: Vec::new(),
            variants,
        });
    }

    fn pipeline(&mut self, it: &Pipeline) {
        let mut stages = Vec::new();
        for stage in &it.stages {
            let signature = &stage.signature;
            let input = signature.params.first().and_then(|it| it.ty.as_ref());
            stages.push(ir::Stage {
                name: signature.name.text.clone(),
                params: self.params_ir(&signature.params),
                input_type: self.optional_type(input, "Any").into(),
                output_type: self.optional_type(signature.result.as_ref(), "nil").into(),
                decorators: decorators_ir(&signature.decorators),
                instructions: self.body_code(&stage.body, &signature.params),
                source: self.source.clone(),
            });
        }
        let input = it.param.as_ref().and_then(|it| it.ty.as_ref());
        let text = |ty: Option<&crate::ast::Type>| ty.map(|ty| self.type_text(ty).into());
        self.out.pipelines.push(ir::Pipeline {
            name: self.full(&it.name.text),
            input_type: text(input),
            output_type: text(it.result.as_ref()),
            stages,
        });
    }

    fn store_item(&mut self, it: &Store) {
        let name = self.full(&it.name.text);
        match it.kind {
            StoreKind::HashMap => {
                let arguments = match &self.symbols.expand(self.module, &it.ty).kind {
                    TypeKind::Named { arguments, .. } => arguments.as_slice(),
                    _ => &[],
                };
                let text = |index: usize| self.optional_type(arguments.get(index), "Any");
                let (key_type, value_type) = (text(0), text(1));
                self.out.hashmaps.push(ir::HashMapStore {
                    name,
                    key_type,
                    value_type,
                });
            }
            StoreKind::Memory => {
                let max_messages = first_argument(&it.value).and_then(literal);
                let max_messages = max_messages.and_then(|it| it.as_u64());
                self.out.memories.push(ir::Memory { name, max_messages });
            }
            StoreKind::Ledger => self.out.ledgers.push(ir::Ledger { name }),
        }
    }
}

fn first_argument(expr: &Expr) -> Option<&Expr> {
    let crate::ast::ExprKind::Postfix(it) = &expr.kind else {
        return None;
    };
    match it.steps.first()? {
        crate::ast::PostfixOp::Call(call) => call.arguments.first().map(|it| &it.value),
        _ => None,
    }
}

/// Decorators as data: values, and objects of one member for named arguments.
fn decorators_ir(decorators: &[Decorator]) -> Vec<ir::Decorator> {
    let one = |decorator: &Decorator| {
        let arguments = decorator.arguments.iter().flatten();
        let args = arguments.map(|(name, value)| {
            let value = literal(value).unwrap_or_default();
            match name {
                Some(name) => json!({ name.text.as_str(): value }),
                None => value,
            }
        });
        ir::Decorator {
            name: decorator.name.text.clone(),
            args: args.collect(),
        }
    };
    decorators.iter().map(one).collect()
}
