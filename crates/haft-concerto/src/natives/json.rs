//! `std::json`.

use super::{Context, Native, give, text_of};
use crate::host;
use crate::value::Value;
use crate::vm::{Fault, Outcome, Reply};

pub(super) const ALL: &[Native] = &[
    Native::new("std::json::parse", (1, 1), |_, a| {
        give(Value::result(Value::parse_json(text_of("parse", &a[0])?)))
    }),
    Native::new("std::json::stringify", (1, 1), |_, a| {
        give(
            a[0].to_json()
                .map_err(|error| Fault::type_error(error.to_string()))?,
        )
    }),
    Native::new("std::json::stringify_pretty", (1, 1), |_, a| {
        give(
            a[0].to_json_pretty()
                .map_err(|error| Fault::type_error(error.to_string()))?,
        )
    }),
    Native::new("std::json::is_valid", (1, 1), |_, a| {
        let text = text_of("is_valid", &a[0])?;
        give(serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
    }),
    Native::new("std::json::parse_as", (1, 1), |context, a| {
        parse_as(context, &a[0])
    }),
];

fn parse_as(context: &mut Context<'_>, text: &Value) -> Outcome<Reply> {
    let text = text_of("parse_as", text)?;
    let Some(schema) = context.schema else {
        return Err(Fault::type_error(
            "parse_as needs a schema: `parse_as<S>(text)`",
        ));
    };
    give(Value::result(
        host::read_answer(context.machine, schema, text).map_err(|errors| errors.join("; ")),
    ))
}
