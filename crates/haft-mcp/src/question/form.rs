//! A form: which fields it has, what stands in them if nobody says anything, and what fits.

use std::sync::Arc;

use haft_core::{Validator, ValidatorFactory, cut};
use serde_json::{Map, Value};

use crate::schema_text::clean_schema;

/// How large a form may be.
const MAX_FORM_BYTES: usize = 64 * 1024;

/// The schema in the `params` of a question.
pub(super) fn read(params: &Value) -> Result<Map<String, Value>, String> {
    let schema = params.get("requestedSchema").filter(|it| it.is_object());
    let mut schema = schema.ok_or("the question has no form")?.clone();
    if schema.to_string().len() > MAX_FORM_BYTES {
        return Err(format!("the form has more than {MAX_FORM_BYTES} bytes"));
    }
    let mut deceptive = Vec::new();
    let cleaned = clean_schema(&mut schema, &mut deceptive);
    // A person chooses among these values by their looks.
    let problem = cleaned.err().or_else(|| deceptive.pop());
    if let Some(problem) = problem {
        return Err(format!("the form cannot be used: {problem}"));
    }
    match schema {
        Value::Object(schema) if schema.get("properties").is_some_and(Value::is_object) => {
            Ok(schema)
        }
        _ => Err("the form has no fields".into()),
    }
}

/// A form that is ready to be filled in.
pub(crate) struct Form<'a> {
    schema: &'a Map<String, Value>,
    validator: Arc<dyn Validator>,
}

impl<'a> Form<'a> {
    pub(crate) fn new(
        schema: &'a Map<String, Value>,
        validators: &dyn ValidatorFactory,
    ) -> Result<Self, String> {
        let validator = validators.compile(&Value::Object(schema.clone()));
        let validator = validator.map_err(|error| format!("the form is of no use: {error}"))?;
        Ok(Self { schema, validator })
    }

    fn fields(&self) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        let fields = self.schema.get("properties").and_then(Value::as_object);
        fields.into_iter().flatten()
    }

    /// What leaves for the server, or what is wrong with it. What the form proposes stands wherever
    /// nothing was said.
    pub(crate) fn filled(
        &self,
        mut said: Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        let is_field = |key: &String| self.fields().any(|(name, _)| name == key);
        if let Some(stranger) = said.keys().find(|key| !is_field(key)) {
            return Err(format!("`{}` is no field of the form", cut(stranger)));
        }
        for (name, field) in self.fields() {
            if let Some(proposed) = field.get("default")
                && !said.contains_key(name)
            {
                said.insert(name.clone(), proposed.clone());
            }
        }
        let said = Value::Object(said);
        let problems = self.validator.validate(&said);
        match said {
            Value::Object(said) if problems.is_empty() => Ok(said),
            _ => {
                let texts: Vec<_> = problems.into_iter().map(|error| error.message).collect();
                Err(texts.join("; "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) => object,
            other => panic!("{other} is no object"),
        }
    }

    #[test]
    fn proposals_stand_where_nothing_was_said_and_nothing_else_is_made_up() {
        let schema = object(json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "default": "Ann"},
                "age": {"type": "integer", "minimum": 18},
                "ok": {"type": "boolean", "default": false},
                "note": {"type": "string"},
            },
            "required": ["name", "age"],
        }));
        let form = Form::new(&schema, &haft_hydrate::JsonSchemaFactory).unwrap();
        assert_eq!(
            form.filled(object(json!({"age": 20, "ok": true}))),
            Ok(object(json!({"age": 20, "ok": true, "name": "Ann"})))
        );
        for wrong in [
            json!({}),
            json!({"age": 3}),
            json!({"age": "20"}),
            json!({"age": null}),
        ] {
            assert!(form.filled(object(wrong.clone())).is_err(), "{wrong}");
        }
        assert_eq!(
            form.filled(object(json!({"age": 20, "password": "x"}))),
            Err("`password` is no field of the form".into())
        );
    }
}
