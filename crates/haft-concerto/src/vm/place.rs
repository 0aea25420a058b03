//! Places: a local and a path into it, changed where it lies.

use std::sync::Arc;

use super::machine::Machine;
use super::{Fault, Meter, Outcome};
use crate::load::Step;
use crate::value::{RefKind, Value, set_field, set_index};

/// Where a changed `self` goes.
#[derive(Debug)]
pub(crate) struct WriteBack {
    /// The register, counted from the bottom of the stack.
    pub(crate) root: usize,
    /// The call's number, which has the path.
    pub(crate) site: u32,
    /// The path's indexes.
    pub(crate) keys: Vec<Value>,
}

/// The value at a path, to change, and the meter for that.
pub(crate) fn find<'a>(
    machine: &'a mut Machine,
    root: &'a mut Value,
    path: &[Step],
    keys: &[Value],
) -> Outcome<(&'a mut Value, &'a mut Meter)> {
    let (mut value, meter, path) = match (&*root, path) {
        // State of a tool is the machine's.
        (Value::Ref(reference), [Step::Field(name), rest @ ..])
            if matches!(reference.kind, RefKind::Tool) =>
        {
            let (value, meter) = machine.tool_place(&reference.name, name)?;
            (value, meter, rest)
        }
        _ => (root, &mut machine.meter, path),
    };
    let mut keys = keys.iter();
    for (place, step) in path.iter().enumerate() {
        let last = place + 1 == path.len();
        value = match step {
            Step::Field(name) => {
                existing(value, name, last)?;
                set_field(value, name, meter)?
            }
            Step::Index => {
                // There is one key for each such step: the loader counted them.
                let key = keys.next().unwrap_or(&Value::Nil);
                if let Value::Text(text) = key {
                    existing(value, text, last)?;
                }
                set_index(value, key, meter)?
            }
        };
    }
    Ok((value, meter))
}

/// Puts a value to its place, from where it was taken out: it must not be lost, whatever the limits are.
pub(crate) fn put_back(
    machine: &mut Machine,
    root: &mut Value,
    path: &[Step],
    keys: &[Value],
    value: Value,
) -> Outcome<()> {
    machine.meter.forgiving(true);
    let put = find(machine, root, path, keys).map(|(slot, _)| *slot = value);
    machine.meter.forgiving(false);
    put
}

/// Whether a path leads to a key that a map does not have yet.
pub(crate) fn is_new(
    machine: &mut Machine,
    root: &mut Value,
    path: &[Step],
    keys: &[Value],
) -> Outcome<bool> {
    let Some((last, way)) = path.split_last() else {
        return Ok(false);
    };
    let (holder, _) = find(machine, root, way, keys)?;
    Ok(match (holder, key_of(last, keys)) {
        (Value::Map(map), Some(key)) => !map.contains(key),
        _ => false,
    })
}

/// Takes a key out of its map again that was made for nothing.
pub(crate) fn forget(
    machine: &mut Machine,
    root: &mut Value,
    path: &[Step],
    keys: &[Value],
) -> Outcome<()> {
    let Some((last, way)) = path.split_last() else {
        return Ok(());
    };
    if let (Value::Map(map), Some(key)) = (find(machine, root, way, keys)?.0, key_of(last, keys)) {
        Arc::make_mut(map).remove(key);
    }
    Ok(())
}

/// The key of the last step of a path, if it is text.
fn key_of<'k>(last: &'k Step, keys: &'k [Value]) -> Option<&'k str> {
    match last {
        Step::Field(name) => Some(name),
        Step::Index => keys.last()?.as_text(),
    }
}

/// On the way to a place nothing is made.
fn existing(value: &Value, key: &str, last: bool) -> Outcome<()> {
    match value {
        Value::Map(map) if !last && !map.contains(key) => Err(Fault::type_error(format!(
            "cannot change a part of Nil: there is no key '{key}'"
        ))),
        _ => Ok(()),
    }
}
