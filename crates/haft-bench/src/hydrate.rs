//! Hydration over a file of cases.

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;
use haft::{
    AuditedRepairer, CheckedArguments, Contract, FinishReason, JsonSchemaFactory, RawArguments,
    Root, ValidatorFactory, check_arguments, preview,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::jsonl;

/// What a repair may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    /// Only what may be executed.
    Arguments,
    /// Whatever helps to show something.
    Preview,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    input: Option<String>,
    arguments: Option<Value>,
    schema: Option<Value>,
    tool: Option<String>,
}

#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Repaired,
    Error,
}

pub(crate) fn run(cases: &Path, policy: Policy) -> Result<()> {
    let mut out = jsonl::Writer::new();
    for case in jsonl::read::<Case>(cases)? {
        let (status, value) = match policy {
            Policy::Arguments => outcome(check(&case)),
            Policy::Preview => shown(&case),
        };
        out.row(&Row {
            id: &case.id,
            status,
            value,
        })?;
    }
    out.finish()
}

impl Case {
    fn text(&self) -> String {
        match (&self.input, &self.arguments) {
            (Some(text), _) => text.clone(),
            (None, Some(arguments)) => arguments.to_string(),
            (None, None) => String::new(),
        }
    }
}

/// The whole check with repair on, as if the provider had reported a normal stop.
fn check(case: &Case) -> Option<CheckedArguments> {
    let schema = case.schema.clone().unwrap_or(Value::Bool(true));
    let validator = JsonSchemaFactory.compile(&schema).ok()?;
    let wants_object = schema.get("type").and_then(Value::as_str) == Some("object");
    let contract = Contract {
        schema: &schema,
        validator: &*validator,
        factory: &JsonSchemaFactory,
        tool: case.tool.as_deref().unwrap_or_default(),
        root: if wants_object {
            Root::Object
        } else {
            Root::Any
        },
    };
    let raw = RawArguments::Text(case.text());
    Some(check_arguments(
        &raw,
        FinishReason::Normal,
        &contract,
        Some(&AuditedRepairer),
    ))
}

fn outcome(checked: Option<CheckedArguments>) -> (Status, Option<Value>) {
    match checked {
        Some(checked) if checked.is_repaired() => (Status::Repaired, checked.validated),
        Some(checked) if checked.validated.is_some() => (Status::Ok, checked.validated),
        _ => (Status::Error, None),
    }
}

fn shown(case: &Case) -> (Status, Option<Value>) {
    let text = case.text();
    match (serde_json::from_str(&text), preview(&text)) {
        (Ok(value), _) => (Status::Ok, Some(value)),
        (Err(_), Some(value)) => (Status::Repaired, Some(value)),
        (Err(_), None) => (Status::Error, None),
    }
}

#[derive(Deserialize)]
struct SchemaCase {
    id: Option<Value>,
    schema: Value,
    data: Value,
}

/// The validator seam alone, for the JSON Schema test suite.
pub(crate) fn validate(cases: &Path, dialect: Option<&str>) -> Result<()> {
    let mut out = jsonl::Writer::new();
    for (at, mut case) in jsonl::read::<SchemaCase>(cases)?.into_iter().enumerate() {
        if let (Value::Object(schema), Some(dialect)) = (&mut case.schema, dialect) {
            schema.entry("$schema").or_insert_with(|| dialect.into());
        }
        let id = case.id.unwrap_or_else(|| (at + 1).into());
        let validator = JsonSchemaFactory.compile(&case.schema);
        let valid = validator.is_ok_and(|validator| validator.is_valid(&case.data));
        out.row(&serde_json::json!({"id": id, "valid": valid}))?;
    }
    out.finish()
}
