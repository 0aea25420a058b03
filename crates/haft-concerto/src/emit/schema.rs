//! JSON Schema of schemas (§8) and of the parameters of tools (§9).

use serde_json::{Map, Value as Json, json};

use super::Emitter;
use super::item::decorator_text;
use crate::ast::{Field, Function, Param, Tool, Type, TypeKind};
use crate::ir::ToolSchema;
use crate::symbols::Symbol;

/// How deep schemas of schemas are written out. One that contains itself is an object from there on.
const MAX_NESTING: usize = 16;

/// How many schemas within it a schema may have. No provider takes so many.
const MAX_OBJECTS: usize = 1000;

impl Emitter<'_> {
    /// The schema of these fields; none if it would be written out without end.
    pub(super) fn schema_object(&self, fields: &[Field]) -> Option<Json> {
        self.objects.set(0);
        let schema = self.object(fields, 0);
        (self.objects.get() <= MAX_OBJECTS).then_some(schema)
    }

    fn expanded<'t>(&'t self, ty: &'t Type) -> &'t Type {
        self.symbols.expand(self.module, ty)
    }

    fn object(&self, fields: &[Field], depth: usize) -> Json {
        self.objects.set(self.objects.get() + 1);
        if self.objects.get() > MAX_OBJECTS {
            return Json::Null;
        }
        let mut properties = Map::new();
        let mut required = Vec::new();
        for field in fields {
            let schema = self.value_schema(&field.ty, depth);
            properties.insert(field.name.text.clone(), schema);
            let missing_is_fine = field.optional || field.default.is_some();
            if !missing_is_fine && option_of(self.expanded(&field.ty)).is_none() {
                required.push(Json::from(field.name.text.as_str()));
            }
        }
        json!({"type": "object", "properties": properties, "required": required})
    }

    /// The schema of a field's type: declared types are written out.
    fn value_schema(&self, ty: &Type, depth: usize) -> Json {
        if let Some(inner) = option_of(self.expanded(ty)) {
            let inner = self.value_schema(inner, depth);
            return json!({"anyOf": [inner, {"type": "null"}]});
        }
        let expanded = self.symbols.expand(self.module, ty);
        let TypeKind::Named { path, arguments } = &expanded.kind else {
            return self.parameter_schema(ty);
        };
        if let (Some("Array"), [item]) = (
            path.single().map(|it| it.text.as_str()),
            arguments.as_slice(),
        ) {
            return json!({"type": "array", "items": self.value_schema(item, depth)});
        }
        match self.symbols.resolve(self.module, path) {
            Some((_, Symbol::Schema(it) | Symbol::Struct(it))) if depth < MAX_NESTING => {
                self.object(&it.fields, depth + 1)
            }
            Some((_, Symbol::Enum(it))) => {
                let names: Vec<&str> = it.variants.iter().map(|it| it.name.text.as_str()).collect();
                json!({"type": "string", "enum": names})
            }
            _ if path.text() == "Any" => json!({}),
            _ => self.parameter_schema(ty),
        }
    }

    /// The schema of a tool's parameter, by the table of the reference.
    fn parameter_schema(&self, ty: &Type) -> Json {
        if let Some(inner) = option_of(self.expanded(ty)) {
            return self.parameter_schema(inner);
        }
        match &self.symbols.expand(self.module, ty).kind {
            TypeKind::Union(options) => json!({"type": "string", "enum": options}),
            TypeKind::Named { path, arguments } => match path.text().as_str() {
                "Int" => json!({"type": "integer"}),
                "Float" => json!({"type": "number"}),
                "String" => json!({"type": "string"}),
                "Bool" => json!({"type": "boolean"}),
                "Array" => match arguments.first() {
                    Some(item) => json!({"type": "array", "items": self.parameter_schema(item)}),
                    None => json!({"type": "array"}),
                },
                "Option" => match arguments.first() {
                    Some(inner) => self.parameter_schema(inner),
                    None => json!({}),
                },
                _ => json!({"type": "object"}),
            },
            TypeKind::Tuple(_) => json!({"type": "array"}),
            TypeKind::Function { .. } => json!({"type": "object"}),
        }
    }

    /// What the model sees of a tool: each `pub fn`, in source order.
    pub(super) fn tool_schemas(&self, tool: &Tool) -> Vec<ToolSchema> {
        let public = tool.methods.iter().filter(|it| it.signature.public);
        public
            .map(|method| self.tool_schema(tool, method))
            .collect()
    }

    fn tool_schema(&self, tool: &Tool, method: &Function) -> ToolSchema {
        let signature = &method.signature;
        let mut properties = Map::new();
        let mut required = Vec::new();
        for param in &signature.params {
            let mut schema = match &param.ty {
                Some(ty) => self.parameter_schema(ty),
                None => json!({}),
            };
            if let (Some(text), Some(members)) = (param_text(method, param), schema.as_object_mut())
            {
                members.insert("description".to_owned(), Json::from(text));
            }
            properties.insert(param.name.text.clone(), schema);
            let is_option = param.ty.as_ref();
            let is_option = is_option.is_some_and(|ty| option_of(self.expanded(ty)).is_some());
            if !is_option && param.default.is_none() {
                required.push(Json::from(param.name.text.as_str()));
            }
        }
        ToolSchema {
            method_name: format!("{}::{}", tool.name.text, signature.name.text),
            description: decorator_text(&signature.decorators, "describe").unwrap_or_default(),
            parameters: json!({"type": "object", "properties": properties, "required": required}),
        }
    }
}

/// What `@param` says about a parameter, in it or above the method.
fn param_text(method: &Function, param: &Param) -> Option<String> {
    if let Some(text) = decorator_text(&param.decorators, "param") {
        return Some(text);
    }
    let above = method
        .signature
        .decorators
        .iter()
        .filter(|it| it.name.text == "param");
    let mut pairs = above.filter_map(|it| match it.arguments.as_deref() {
        Some([(None, name), (None, text)]) => Some((name.as_text()?, text.as_text()?)),
        _ => None,
    });
    let found = pairs.find(|(name, _)| *name == param.name.text);
    found.map(|(_, text)| text.to_owned())
}

/// What is in an `Option`.
pub(super) fn option_of(ty: &Type) -> Option<&Type> {
    match &ty.kind {
        TypeKind::Named { path, arguments } if arguments.len() == 1 => {
            let name = path.single()?;
            (name.text == "Option").then(|| &arguments[0])
        }
        _ => None,
    }
}
