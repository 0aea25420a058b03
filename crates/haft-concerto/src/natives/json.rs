//! `std::json`.

use super::{Context, Native, give, text_of};
use crate::host::{self, Unfit};
use crate::value::Value;
use crate::vm::{Fault, Outcome, Reply};

pub(super) const ALL: &[Native] = &[
    Native::new("std::json::parse", (1, 1), |context, a| {
        let text = text_of("parse", &a[0])?;
        give(Value::result(context.meter().parse_json(text)?))
    }),
    Native::new("std::json::stringify", (1, 1), |context, a| {
        give(a[0].write_json(false, context.meter())?)
    }),
    Native::new("std::json::stringify_pretty", (1, 1), |context, a| {
        give(a[0].write_json(true, context.meter())?)
    }),
    Native::new("std::json::is_valid", (1, 1), |context, a| {
        let text = text_of("is_valid", &a[0])?;
        context.meter().work(text.len() / 4)?;
        give(serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
    }),
    Native::new("std::json::parse_as", (1, 1), |context, a| {
        parse_as(context, &a[0])
    }),
];

fn parse_as(context: &mut Context<'_>, text: &Value) -> Outcome<Reply> {
    let text = text_of("parse_as", text)?;
    // The tree that it becomes first: each value of it ends with one of these, or is alone.
    let ends = text
        .bytes()
        .filter(|byte| matches!(byte, b',' | b':' | b']' | b'}'));
    let values = ends.count();
    context.meter().work(text.len() / 2)?;
    let tree = values.saturating_mul(160).saturating_add(text.len());
    context.meter().ask(tree)?;
    let Some(schema) = context.schema else {
        return Err(Fault::type_error(
            "parse_as needs a schema: `parse_as<S>(text)`",
        ));
    };
    match host::read_answer(context.machine, schema, text) {
        Ok(value) => give(Value::ok(value)),
        Err(Unfit::Invalid(errors)) => give(Value::result(Err(errors.join("; ")))),
        Err(Unfit::Failed(failure)) => Err(failure),
    }
}
