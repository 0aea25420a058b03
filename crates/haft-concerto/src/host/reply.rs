//! What a model's answer is for a program (§8), whoever gave it.

use super::{Unfit, read_answer};
use crate::ir;
use crate::load::Program;
use crate::value::{Map, Value};
use crate::vm::{Machine, ModelCall};

/// What a model answered, all requests of the call together.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) tokens_in: i64,
    pub(super) tokens_out: i64,
    /// What the model calls itself.
    pub(super) model: String,
}

/// A model as the program declares it.
pub(super) fn declared<'p>(program: &'p Program, name: &str) -> Option<&'p ir::Model> {
    program.ir().models.iter().find(|model| model.name == name)
}

/// Whether calls of a model are told.
pub(super) fn logs(model: &ir::Model) -> bool {
    model.decorators.iter().any(|it| it.name == "log")
}

/// What a test put in the place of a model.
pub(super) fn mocked(machine: &Machine, call: &ModelCall) -> Option<Result<Answer, String>> {
    Some(match machine.mock(&call.model)? {
        Ok(text) => Ok(Answer {
            text: text.to_owned(),
            tokens_in: 0,
            tokens_out: 0,
            model: "mock".to_owned(),
        }),
        Err(error) => Err(error.to_owned()),
    })
}

/// The value of an answer: a `Response`, or the struct of the demanded schema.
pub(super) fn value(
    machine: &mut Machine,
    call: &ModelCall,
    answer: &Answer,
) -> Result<Value, Unfit> {
    match &call.schema {
        Some(schema) => read_answer(machine, schema, &answer.text),
        None => Ok(Value::record(
            "Response",
            vec![
                ("text", Value::from(answer.text.as_str())),
                ("tokens_in", Value::Int(answer.tokens_in)),
                ("tokens_out", Value::Int(answer.tokens_out)),
                ("model", Value::from(answer.model.as_str())),
            ],
        )),
    }
}

/// That an answer never had its schema.
pub(super) fn invalid(validations: u32, errors: &[String]) -> String {
    format!(
        "schema validation failed after {validations} attempts: {}",
        errors.join("; ")
    )
}

/// Appends prompt and answer to the memory of a call, if it has one that takes them.
pub(super) fn remember(machine: &mut Machine, call: &ModelCall, text: &str) {
    let memory = call.builder.as_ref().and_then(|it| it.memory.as_ref());
    if let Some((memory, true)) = memory {
        machine.stores().append(memory, "user", &call.prompt);
        machine.stores().append(memory, "assistant", text);
    }
}

/// What `model:log` tells.
pub(super) fn log_entry(
    call: &ModelCall,
    answer: &Answer,
    attempt: u32,
    schema_attempt: u32,
) -> Value {
    let mut map = Map::default();
    map.insert("model", Value::from(&*call.model));
    map.insert("method", Value::from(&*call.method));
    map.insert("attempt", Value::Int(i64::from(attempt)));
    if call.schema.is_some() {
        map.insert("schema_attempt", Value::Int(i64::from(schema_attempt)));
    }
    map.insert("tokens_in", Value::Int(answer.tokens_in));
    map.insert("tokens_out", Value::Int(answer.tokens_out));
    Value::map(map)
}
