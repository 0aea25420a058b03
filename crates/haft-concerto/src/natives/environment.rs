//! `std::env`.

use super::{Context, Native, give, text_of};
use crate::value::{Map, Value};
use crate::vm::{Fault, FaultKind, Outcome};

pub(super) const ALL: &[Native] = &[
    Native::new("std::env::get", (1, 1), |context, a| {
        let name = allowed(context, text_of("get", &a[0])?)?;
        give(Value::option(std::env::var(name).ok().map(Value::text)))
    }),
    Native::new("std::env::require", (1, 1), |context, a| {
        let name = text_of("require", &a[0])?;
        if !context.machine.permissions.env.allows(name) {
            return give(Value::result(Err(format!(
                "permission denied: {}",
                hint(name)
            ))));
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
            return Err(Fault::of(
                FaultKind::Permission,
                "env: allow it with --allow-env",
            ));
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

fn hint(name: &str) -> String {
    format!("env {name}: allow it with --allow-env={name}")
}

fn allowed<'n>(context: &Context<'_>, name: &'n str) -> Outcome<&'n str> {
    if context.machine.permissions.env.allows(name) {
        Ok(name)
    } else {
        Err(Fault::of(FaultKind::Permission, hint(name)))
    }
}
