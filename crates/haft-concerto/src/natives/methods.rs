//! Methods of values (§11): to whom which call goes.

use super::{Context, array, collections, ledger, map, models, option, stores, text};
use crate::load::CallSite;
use crate::value::{RefKind, Value};
use crate::vm::{Fault, Outcome, Reply};

/// Calls a built-in method. The receiver is the method's to change; whoever called it on a place puts
/// it back there.
pub(crate) fn call_method(
    context: &mut Context<'_>,
    receiver: &mut Value,
    site: &CallSite,
    arguments: &mut [Value],
) -> Outcome<Reply> {
    let Some(method) = site.method else {
        return Err(unknown(receiver, site));
    };
    let reply = match receiver {
        Value::Text(value) => text::call(context, value, method, arguments)?,
        Value::Array(_) => array::call(context, receiver, method, arguments)?,
        Value::Map(_) => map::call(context, receiver, method, arguments)?,
        Value::Range(range) => match method {
            crate::load::Method::Len => Some(Value::Int(range.len()).into()),
            crate::load::Method::IsEmpty => Some(Value::Bool(range.is_empty()).into()),
            _ => None,
        },
        Value::Some(_) | Value::None => option::call_option(receiver, method, arguments)?,
        Value::Ok(_) | Value::Err(_) => option::call_result(receiver, method, arguments)?,
        Value::Struct(_) => collections::call(context, receiver, method, arguments)?,
        Value::Ref(reference) => match reference.kind {
            RefKind::HashMap => {
                stores::call_hashmap(context, &reference.name.clone(), method, arguments)?
            }
            RefKind::Memory => {
                stores::call_memory(context, &reference.name.clone(), method, arguments)?
            }
            RefKind::Ledger => ledger::call(context, &reference.clone(), method, arguments)?,
            RefKind::Model | RefKind::Agent => {
                models::call(context, &reference.clone(), None, site, method, arguments)?
            }
            RefKind::Pipeline => models::run_pipeline(context, &reference.name, method, arguments),
            RefKind::Schema | RefKind::Tool | RefKind::Mcp => None,
        },
        Value::Builder(builder) => models::call(
            context,
            &builder.target.clone(),
            Some(builder),
            site,
            method,
            arguments,
        )?,
        _ => None,
    };
    reply.ok_or_else(|| unknown(receiver, site))
}

fn unknown(receiver: &Value, site: &CallSite) -> Box<crate::vm::Failure> {
    Fault::type_error(format!(
        "no method '{}' on {}",
        site.name,
        receiver.type_name()
    ))
}

/// The argument at a place; a missing one is a fault.
pub(super) fn argument<'v>(
    arguments: &'v [Value],
    place: usize,
    method: &str,
) -> Outcome<&'v Value> {
    arguments.get(place).ok_or_else(|| {
        Fault::type_error(format!(
            "{method} expects at least {} arguments, got {place}",
            place + 1
        ))
    })
}
