//! Instructions that only look at the registers of the running function.

use std::cmp::Ordering;
use std::sync::Arc;

use super::machine::{Machine, MockAnswer};
use super::operand::{append, fetch};
use super::{Failure, Fault, Meter, Outcome, place};
use crate::load::{CallSite, Mock, Op, Program, Step, Test};
use crate::value::{
    Binary, Boxed, Closure, Enum, Map, Range, RefKind, Struct, Value, Writer, brief, compare,
    compare_metered, equal, get_field, set_field, set_index, slice_from,
};

/// Performs an instruction.
#[allow(clippy::too_many_lines)] // one arm for each instruction
pub(super) fn operate(
    program: &Program,
    machine: &mut Machine,
    regs: &mut [Value],
    locals: usize,
    op: Op,
) -> Outcome<()> {
    let at = usize::from;
    match op {
        Op::Swap { a, b } => regs.swap(at(a), at(b)),
        Op::LoadGlobal { dst, global } => regs[at(dst)] = machine.globals[global as usize].clone(),
        Op::StoreGlobal { src, global } => {
            machine.globals[global as usize] = fetch(regs, locals, src);
        }
        Op::Neg { dst, src } => regs[at(dst)] = regs[at(src)].negated()?,
        Op::Not { dst, src } => regs[at(dst)] = Value::Bool(!regs[at(src)].is_truthy()),
        Op::Compare { dst, a, b, test } => {
            let (a, b, meter) = (&regs[at(a)], &regs[at(b)], &mut machine.meter);
            let truth = match test {
                Test::Eq => equal(a, b, meter)?,
                Test::Ne => !equal(a, b, meter)?,
                Test::Lt => compare_metered(a, b, meter)? == Some(Ordering::Less),
                Test::Gt => compare_metered(a, b, meter)? == Some(Ordering::Greater),
                Test::Le => matches!(
                    compare_metered(a, b, meter)?,
                    Some(Ordering::Less | Ordering::Equal)
                ),
                Test::Ge => matches!(
                    compare_metered(a, b, meter)?,
                    Some(Ordering::Greater | Ordering::Equal)
                ),
            };
            regs[at(dst)] = Value::Bool(truth);
        }
        Op::And { dst, a, b } => {
            let decides = if regs[at(a)].is_truthy() { b } else { a };
            regs[at(dst)] = regs[at(decides)].clone();
        }
        Op::Or { dst, a, b } => {
            let decides = if regs[at(a)].is_truthy() { a } else { b };
            regs[at(dst)] = regs[at(decides)].clone();
        }
        Op::PlaceSet { base, root, site } => {
            let site = &program.sites[site as usize];
            if let [Step::Index] = site.path.as_slice()
                && let Some(done) = element(regs, (at(root), at(base)), site.operator)
            {
                return done;
            }
            // `a[i] = v`, by far the most frequent.
            if let ([Step::Index], None) = (site.path.as_slice(), site.operator) {
                let (key, value) = (regs[at(base)].take(), regs[at(base) + 1].take());
                // What failed may be done again.
                return match set_index(&mut regs[at(root)], &key, &mut machine.meter) {
                    Ok(slot) => {
                        *slot = value;
                        Ok(())
                    }
                    Err(failure) => {
                        (regs[at(base)], regs[at(base) + 1]) = (key, value);
                        Err(failure)
                    }
                };
            }
            // `a[i] += v` on an array, the next.
            if let ([Step::Index], Some(operator), Value::Array(_)) =
                (site.path.as_slice(), site.operator, &regs[at(root)])
            {
                let (key, value) = (regs[at(base)].take(), regs[at(base) + 1].take());
                let meter = &mut machine.meter;
                let slot = set_index(&mut regs[at(root)], &key, meter);
                let result = slot.and_then(|slot| compute(slot, operator, &value, meter));
                if result.is_err() {
                    (regs[at(base)], regs[at(base) + 1]) = (key, value);
                }
                return result;
            }
            let count = indexes(&site.path);
            let keys: Vec<Value> = regs[at(base)..at(base) + count]
                .iter_mut()
                .map(Value::take)
                .collect();
            let mut value = regs[at(base) + count].take();
            // Taken out, so that nobody else holds it while it changes.
            let mut object = regs[at(root)].take();
            let result = change(machine, &mut object, site, &keys, &mut value);
            regs[at(root)] = object;
            if result.is_err() {
                // What failed may be done again.
                for (offset, key) in keys.into_iter().enumerate() {
                    regs[at(base) + offset] = key;
                }
                regs[at(base) + count] = value;
            }
            return result;
        }
        Op::BuildArray { base, count } => {
            machine.meter.charge(40 + 16 * count as usize)?;
            let items = regs[at(base)..at(base) + count as usize]
                .iter_mut()
                .map(Value::take)
                .collect();
            regs[at(base)] = Value::array(items);
        }
        Op::BuildMap { base, count } => {
            machine.meter.charge(80 + 64 * count as usize)?;
            let mut map = Map::with_capacity(count as usize);
            let row = &mut regs[at(base)..at(base) + 2 * count as usize];
            for pair in row.chunks_exact_mut(2) {
                pair[0] = Value::Text(machine.meter.shown(&pair[0])?);
            }
            for pair in row.chunks_exact_mut(2) {
                let value = pair[1].take();
                if let Value::Text(key) = pair[0].take() {
                    map.insert(key, value);
                }
            }
            regs[at(base)] = Value::map(map);
        }
        Op::BuildString { base, count } => {
            let row = &mut regs[at(base)..at(base) + count as usize];
            // One buffer for all: what is short ends in the value itself.
            let mut text = std::mem::take(&mut machine.scratch);
            text.clear();
            let mut writer = Writer::with(text, &mut machine.meter);
            for part in &*row {
                writer.show(part)?;
            }
            let text = writer.finish()?;
            for part in row {
                part.release();
            }
            if text.len() > 64 << 10 {
                regs[at(base)] = Value::text(text);
            } else {
                machine.meter.charge(text.len())?;
                regs[at(base)] = Value::from(text.as_str());
                if text.capacity() <= 4096 {
                    machine.scratch = text;
                }
            }
        }
        Op::BuildStruct { base, site } => {
            let site = &program.structs[site as usize];
            machine.meter.charge(64 + 16 * site.def.fields.len())?;
            let mut values = vec![Value::Absent; site.def.fields.len()];
            for (offset, place) in site.places.iter().enumerate() {
                values[*place] = regs[at(base) + offset].take();
            }
            regs[at(base)] = Value::Struct(Arc::new(Struct::new(site.def.clone(), values)));
        }
        Op::BuildEnum { base, count, site } => {
            machine.meter.charge(64 + 16 * at(count))?;
            let site = &program.variants[site as usize];
            let row = &mut regs[at(base)..at(base) + at(count)];
            let values = match &site.order {
                None => row.iter_mut().map(Value::take).collect(),
                Some(order) => order.iter().map(|place| row[*place].take()).collect(),
            };
            regs[at(base)] = Value::Enum(Arc::new(Enum::new(site.def.clone(), values)));
        }
        Op::BuildRange { base } => {
            let bound = |value: &Value| match value {
                Value::Int(value) => Ok(Some(*value)),
                Value::Nil => Ok(None),
                other => Err(Fault::type_error(format!(
                    "bounds of a range are Int, got {}",
                    other.type_name()
                ))),
            };
            let range = Range {
                from: bound(&regs[at(base)])?,
                to: bound(&regs[at(base) + 1])?,
                inclusive: regs[at(base) + 2].is_truthy(),
            };
            regs[at(base)] = Value::Range(Arc::new(range));
        }
        Op::MakeClosure {
            base,
            count,
            function,
        } => {
            machine.meter.charge(64 + 16 * at(count))?;
            let captures = regs[at(base)..at(base) + at(count)]
                .iter_mut()
                .map(Value::take)
                .collect();
            let name = program.functions[function as usize].name.clone();
            regs[at(base)] = Value::Function(Arc::new(Closure {
                function,
                name,
                captures,
            }));
        }
        Op::GetField { dst, src, name } => {
            let name = &program.names[name as usize];
            let value = match &regs[at(src)] {
                Value::Ref(reference) if reference.kind == RefKind::Tool => {
                    machine.tool_state(&reference.name, name)?.clone()
                }
                value => get_field(value, name)?,
            };
            regs[at(dst)] = value;
        }
        Op::SetField { base, src, name } => {
            let value = regs[at(src)].take();
            let name = &program.names[name as usize];
            match set_field(&mut regs[at(base)], name, &mut machine.meter) {
                Ok(slot) => *slot = value,
                Err(failure) => {
                    // What failed may be done again.
                    regs[at(src)] = value;
                    return Err(failure);
                }
            }
        }
        Op::SetIndex { base, index, src } => {
            let (key, value) = (regs[at(index)].take(), regs[at(src)].take());
            match set_index(&mut regs[at(base)], &key, &mut machine.meter) {
                Ok(slot) => *slot = value,
                Err(failure) => {
                    (regs[at(index)], regs[at(src)]) = (key, value);
                    return Err(failure);
                }
            }
        }
        Op::Throw { src } => return Err(Box::new(Failure::Raised(fetch(regs, locals, src)))),
        Op::Rethrow { src } => {
            let value = fetch(regs, locals, src);
            return Err(Box::new(match Fault::from_value(&value) {
                Some(fault) => Failure::Fault(fault),
                None => Failure::Raised(value),
            }));
        }
        Op::Mismatch { src } => {
            let shown = match &regs[at(src)] {
                Value::Text(text) => brief(text).into_owned(),
                other => other.to_string(),
            };
            return Err(Fault::type_error(format!("pattern does not match {shown}")));
        }
        Op::WrapOk { dst, src } => {
            machine.meter.charge(32)?;
            regs[at(dst)] = match fetch(regs, locals, src) {
                result @ (Value::Ok(_) | Value::Err(_)) => result,
                value => Value::ok(value),
            };
        }
        Op::WrapErr { dst, src } => {
            machine.meter.charge(32)?;
            regs[at(dst)] = Value::err(fetch(regs, locals, src));
        }
        Op::NilPrep { dst, src } => {
            regs[at(dst)] = match fetch(regs, locals, src) {
                Value::None => Value::Nil,
                Value::Some(inner) => Boxed::unwrap(inner),
                value => value,
            };
        }
        Op::Cast { dst, src, name } => {
            let name = &program.names[name as usize];
            let value = regs[at(src)].cast(name, &mut machine.meter)?;
            if at(src) >= locals {
                regs[at(src)].release();
            }
            regs[at(dst)] = value;
        }
        Op::IsType { dst, src, name } => {
            let truth = regs[at(src)].type_name() == &*program.names[name as usize];
            regs[at(dst)] = Value::Bool(truth);
        }
        Op::IsVariant { dst, src, site } => {
            let def = &program.variants[site as usize].def;
            let truth = match &regs[at(src)] {
                Value::Enum(object) => {
                    object.def().name == def.name && object.def().type_name == def.type_name
                }
                Value::Ok(_) => &*def.name == "Ok",
                Value::Err(_) => &*def.name == "Err",
                Value::Some(_) => &*def.name == "Some",
                Value::None => &*def.name == "None",
                _ => false,
            };
            regs[at(dst)] = Value::Bool(truth);
        }
        Op::Payload { dst, src, place } => {
            let value = match &regs[at(src)] {
                Value::Ok(inner) | Value::Err(inner) | Value::Some(inner) => inner.get().clone(),
                Value::Enum(object) => object
                    .values()
                    .get(place as usize)
                    .cloned()
                    .unwrap_or_default(),
                _ => Value::Nil,
            };
            regs[at(dst)] = value;
        }
        Op::HasLength {
            dst,
            src,
            at_least,
            count,
        } => {
            let truth = match &regs[at(src)] {
                Value::Array(array) => {
                    let length = array.items().len();
                    length == count as usize || at_least && length > count as usize
                }
                _ => false,
            };
            regs[at(dst)] = Value::Bool(truth);
        }
        Op::HasField { dst, src, name } => {
            let name = &program.names[name as usize];
            let truth = match &regs[at(src)] {
                Value::Struct(object) => object.def().place(name).is_some(),
                Value::Map(map) => map.contains(name),
                Value::Enum(object) => object.def().fields.contains(name),
                _ => false,
            };
            regs[at(dst)] = Value::Bool(truth);
        }
        Op::Rest { dst, src, from } => {
            regs[at(dst)] = slice_from(&regs[at(src)], from as usize, &mut machine.meter)?;
        }
        Op::InRange { base, inclusive } => {
            let [value, from, to] = [&regs[at(base)], &regs[at(base) + 1], &regs[at(base) + 2]];
            // A value of another kind is in no range.
            if let Value::Text(text) = value {
                machine.meter.read(text.len())?;
            }
            let truth = matches!(
                (compare(value, from), compare(value, to)),
                (Ok(Some(Ordering::Equal | Ordering::Greater)), Ok(Some(order)))
                    if order == Ordering::Less || inclusive && order == Ordering::Equal
            );
            regs[at(base)] = Value::Bool(truth);
        }
        Op::MockModel { base, site } => {
            let site = &program.sites[site as usize];
            let answer = match &site.mock {
                Some(Mock::Response) => {
                    MockAnswer::Response(machine.meter.shown(&regs[at(base)])?.into())
                }
                Some(Mock::Error) => {
                    MockAnswer::Error(machine.meter.shown(&regs[at(base)])?.into())
                }
                Some(Mock::Fixed {
                    error: Some(error), ..
                }) => MockAnswer::Error(error.to_string()),
                Some(Mock::Fixed {
                    response: Some(text),
                    ..
                }) => MockAnswer::Response(text.to_string()),
                _ => MockAnswer::Response(String::new()),
            };
            machine.mocks.insert(site.name.clone(), answer);
        }
        // All others are the loop's own; so is the jump of `Catch`.
        _ => {}
    }
    Ok(())
}

/// Sets what lies at a path, or computes it anew. What failed has changed nothing.
fn change(
    machine: &mut Machine,
    object: &mut Value,
    site: &CallSite,
    keys: &[Value],
    value: &mut Value,
) -> Outcome<()> {
    let Some(operator) = site.operator else {
        let (slot, _) = place::find(machine, object, &site.path, keys)?;
        *slot = value.take();
        return Ok(());
    };
    let is_new = place::is_new(machine, object, &site.path, keys)?;
    let (slot, meter) = place::find(machine, object, &site.path, keys)?;
    let result = compute(slot, operator, value, meter);
    if result.is_err() && is_new {
        place::forget(machine, object, &site.path, keys)?;
    }
    result
}

/// Changes what lies at a place: `slot op= value`. What failed has changed nothing.
fn compute(slot: &mut Value, operator: Binary, value: &Value, meter: &mut Meter) -> Outcome<()> {
    if let (Value::Text(text), Binary::Add) = (&mut *slot, operator) {
        let more = meter.shown(value)?;
        append(text, &more, meter)?;
        return Ok(());
    }
    *slot = operator.apply(slot.clone(), value.clone(), meter)?;
    Ok(())
}

/// `a[i] = v` and `a[i] += n` where nothing stands in the way: an array that nobody else sees, and for an
/// operator Ints. Nothing has changed where it is none of that.
#[inline]
fn element(
    regs: &mut [Value],
    (root, base): (usize, usize),
    operator: Option<Binary>,
) -> Option<Outcome<()>> {
    let Value::Int(place) = regs[base] else {
        return None;
    };
    let place = usize::try_from(place).ok()?;
    match (operator, &regs[base + 1]) {
        (None, _) => {
            let value = regs[base + 1].take();
            let Some(slot) = own_element(&mut regs[root], place) else {
                regs[base + 1] = value;
                return None;
            };
            *slot = value;
        }
        (Some(operator), Value::Int(by)) => {
            let by = *by;
            let Some(Value::Int(slot)) = own_element(&mut regs[root], place) else {
                return None;
            };
            match operator.ints(*slot, by) {
                Ok(value) => *slot = value,
                Err(failure) => return Some(Err(failure)),
            }
        }
        _ => return None,
    }
    Some(Ok(()))
}

/// An element of an array that nobody else sees.
#[inline]
fn own_element(value: &mut Value, place: usize) -> Option<&mut Value> {
    match value {
        Value::Array(array) => Arc::get_mut(array)?.items_mut().get_mut(place),
        _ => None,
    }
}

/// How many indexes a path has.
pub(super) fn indexes(path: &[Step]) -> usize {
    path.iter()
        .filter(|step| matches!(step, Step::Index))
        .count()
}
