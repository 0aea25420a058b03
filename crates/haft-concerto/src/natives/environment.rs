//! `std::env`.

use super::{Context, Native, give, refused, text_of};
use crate::value::{Map, Value};
use crate::vm::Outcome;

pub(super) const ALL: &[Native] = &[
    Native::new("std::env::get", (1, 1), |context, a| {
        let name = allowed(context, text_of("get", &a[0])?)?;
        give(Value::option(std::env::var(name).ok().map(Value::text)))
    }),
    Native::new("std::env::require", (1, 1), |context, a| {
        let name = text_of("require", &a[0])?;
        if let Err(denied) = context.machine.permissions.may_read_variable(name) {
            return give(Value::result(Err(denied)));
        }
        give(Value::result(std::env::var(name).map(Value::text).map_err(
            |_| format!("missing environment variable: {name}"),
        )))
    }),
    Native::new("std::env::has", (1, 1), |context, a| {
        let name = allowed(context, text_of("has", &a[0])?)?;
        give(std::env::var_os(name).is_some())
    }),
    Native::new("std::env::all", (0, 0), |context, _| {
        if matches!(context.machine.permissions.env, super::Grant::Nothing) {
            return Err(refused(&context.machine.permissions.denied(
                "env",
                "env",
                Some("NAME"),
            )));
        }
        let mut all: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| context.machine.permissions.env.allows(name))
            .collect();
        all.sort();
        give(Value::map(
            all.into_iter()
                .map(|(name, value)| (name, Value::text(value)))
                .collect::<Map>(),
        ))
    }),
];

/// The name of a variable that the program may read.
pub(super) fn allowed<'n>(context: &Context<'_>, name: &'n str) -> Outcome<&'n str> {
    let permissions = &context.machine.permissions;
    permissions
        .may_read_variable(name)
        .map_err(|denied| refused(&denied))?;
    Ok(name)
}
