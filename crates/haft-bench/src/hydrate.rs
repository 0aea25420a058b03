//! Hydration over a file of cases.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::ValueEnum;
use haft::{
    AuditedRepairer, CheckedArguments, Contract, FinishReason, JsonSchemaFactory, RawArguments,
    Root, Validator, ValidatorFactory, check_arguments, preview,
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
    /// Whatever identifies it; written back as it came.
    id: Value,
    /// Text as a model wrote it; anything else is taken as its JSON.
    input: Option<Value>,
    arguments: Option<Value>,
    schema: Option<Value>,
    tool: Option<String>,
}

#[derive(Serialize)]
struct Row<'a> {
    id: &'a Value,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
}

#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Repaired,
    Error,
}

/// Hydrates every case; prints what came out.
pub(crate) fn run(cases: &Path, policy: Policy) -> Result<()> {
    let mut out = jsonl::Writer::new();
    for case in jsonl::read::<Case>(cases)? {
        let (status, value) = match policy {
            Policy::Arguments => outcome(Prepared::new(&case).map(|case| case.check())),
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

/// Times every case; prints median and 99th percentile by outcome.
pub(crate) fn time(cases: &Path, rounds: usize) -> Result<()> {
    let mut times = Vec::new();
    for case in jsonl::read::<Case>(cases)? {
        if let Some(case) = Prepared::new(&case) {
            let (status, _) = outcome(Some(case.check()));
            times.push((status, case.fastest(rounds)));
        }
    }
    let mut out = jsonl::Writer::new();
    for status in [Status::Ok, Status::Repaired, Status::Error] {
        let mut times: Vec<_> = times
            .iter()
            .filter(|(other, _)| *other == status)
            .map(|(_, time)| time.as_secs_f64() * 1e6)
            .collect();
        times.sort_by(f64::total_cmp);
        let at = |share: usize| times.get(times.len() * share / 100);
        out.row(&serde_json::json!({
            "status": status, "cases": times.len(), "median_us": at(50), "p99_us": at(99)
        }))?;
    }
    out.finish()
}

impl Case {
    fn text(&self) -> String {
        match (&self.input, &self.arguments) {
            (Some(Value::String(text)), _) => text.clone(),
            (Some(other), _) => other.to_string(),
            (None, Some(arguments)) => arguments.to_string(),
            (None, None) => String::new(),
        }
    }
}

/// A case with its schema compiled.
struct Prepared {
    raw: RawArguments,
    schema: Value,
    validator: Arc<dyn Validator>,
    tool: String,
}

impl Prepared {
    fn new(case: &Case) -> Option<Self> {
        let schema = case.schema.clone().unwrap_or(Value::Bool(true));
        Some(Self {
            raw: RawArguments::Text(case.text()),
            validator: JsonSchemaFactory.compile(&schema).ok()?,
            schema,
            tool: case.tool.clone().unwrap_or_default(),
        })
    }

    /// The whole check with repair on, as if the provider had reported a normal stop.
    fn check(&self) -> CheckedArguments {
        let wants_object = self.schema.get("type").and_then(Value::as_str) == Some("object");
        let contract = Contract {
            schema: &self.schema,
            validator: &*self.validator,
            factory: &JsonSchemaFactory,
            tool: &self.tool,
            root: if wants_object {
                Root::Object
            } else {
                Root::Any
            },
        };
        let finish = FinishReason::Normal;
        check_arguments(&self.raw, finish, &contract, Some(&AuditedRepairer))
    }

    fn fastest(&self, rounds: usize) -> Duration {
        let once = || {
            let started = Instant::now();
            std::hint::black_box(self.check());
            started.elapsed()
        };
        (0..rounds).map(|_| once()).fold(once(), Duration::min)
    }
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
