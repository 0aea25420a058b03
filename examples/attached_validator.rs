//! A validator from elsewhere, attached to one tool: here the `jsonschema` crate with `format`
//! checked, which haft's own validator takes as an annotation.
//!
//! `cargo run -p haft-examples --example attached_validator`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::sync::Arc;

use haft::{
    CallIds, Catalog, Hydrator, ToolCall, ToolDefinition, ToolError, ValidationError, Validator,
    Value, dynamic_tool, json,
};

/// Wraps what the other library compiled.
struct WithFormats(jsonschema::Validator);

impl WithFormats {
    fn compile(schema: &Value) -> Result<Self, ToolError> {
        let options = jsonschema::options().should_validate_formats(true);
        let validator = options.build(schema);
        Ok(Self(
            validator.map_err(|error| ToolError::new(error.to_string()))?,
        ))
    }
}

impl Validator for WithFormats {
    fn name(&self) -> Option<&str> {
        Some("jsonschema with formats")
    }

    fn validate(&self, arguments: &Value) -> Vec<ValidationError> {
        self.0
            .iter_errors(arguments)
            .map(|error| {
                let path = error.instance_path().to_string();
                ValidationError::new(path, error.kind().keyword(), error.to_string())
            })
            .collect()
    }
}

fn main() -> Result<(), ToolError> {
    let schema = json!({
        "type": "object",
        "properties": {"to": {"type": "string", "format": "email"}},
        "required": ["to"]
    });
    let definition = ToolDefinition::builder("send_greeting")
        .description("Send a greeting.")
        .parameters(schema.clone())
        .build()?;
    let tool = dynamic_tool(definition, |_, _| async { Ok("sent") });

    let catalog = Catalog::new();
    catalog.register(tool)?;
    show(&catalog)?;
    catalog.attach_validator("send_greeting", Arc::new(WithFormats::compile(&schema)?))?;
    show(&catalog)?;
    Ok(())
}

fn show(catalog: &Catalog) -> Result<(), ToolError> {
    let binding = catalog.snapshot().bind().build()?;
    let mut ids = CallIds::default();
    for written in [r#"{"to": "ada@example.org"}"#, r#"{"to": "somewhere"}"#] {
        let call = ToolCall::new("send_greeting", written);
        let result = Hydrator::new().hydrate(&call, &binding, &mut ids);
        let verdict = result
            .text_for_model()
            .unwrap_or_else(|| "valid".to_owned());
        let validator = result.provenance.validator.map(|record| record.name);
        println!("{:<24} {written}: {verdict}", validator.unwrap_or_default());
    }
    println!();
    Ok(())
}
