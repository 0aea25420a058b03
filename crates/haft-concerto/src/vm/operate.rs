//! Instructions that only look at the registers of the running function.

use std::cmp::Ordering;
use std::sync::Arc;

use super::machine::{Machine, MockAnswer};
use super::operand::fetch;
use super::{Failure, Fault, Outcome, place};
use crate::load::{Mock, Op, Program, Step, Test};
use crate::value::{
    Boxed, Closure, Enum, Map, Range, RefKind, Struct, Text, Value, compare, get_field, set_field,
    set_index, slice_from,
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
            let (a, b) = (&regs[at(a)], &regs[at(b)]);
            let truth = match test {
                Test::Eq => a == b,
                Test::Ne => a != b,
                Test::Lt => compare(a, b)? == Some(Ordering::Less),
                Test::Gt => compare(a, b)? == Some(Ordering::Greater),
                Test::Le => matches!(compare(a, b)?, Some(Ordering::Less | Ordering::Equal)),
                Test::Ge => matches!(compare(a, b)?, Some(Ordering::Greater | Ordering::Equal)),
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
            // `a[i] = v`, by far the most frequent.
            if let ([Step::Index], None) = (site.path.as_slice(), site.operator) {
                let (key, value) = (regs[at(base)].take(), regs[at(base) + 1].take());
                if matches!(regs[at(root)], Value::Map(_)) {
                    machine.heap.charge(32 + key_size(&key))?;
                }
                *set_index(&mut regs[at(root)], key)? = value;
                return Ok(());
            }
            // `a[i] += v` on an array, the next.
            if let ([Step::Index], Some(operator), Value::Array(_)) =
                (site.path.as_slice(), site.operator, &regs[at(root)])
            {
                let (key, value) = (regs[at(base)].take(), regs[at(base) + 1].take());
                machine.heap.charge(48)?;
                return compute(set_index(&mut regs[at(root)], key)?, operator, value);
            }
            let count = indexes(&site.path);
            let keys: Vec<Value> = regs[at(base)..at(base) + count]
                .iter_mut()
                .map(Value::take)
                .collect();
            let value = regs[at(base) + count].take();
            machine.heap.charge(48)?;
            // Taken out, so that nobody else holds it while it changes.
            let mut object = regs[at(root)].take();
            let result = match place::find(machine, &mut object, &site.path, &keys) {
                Ok(slot) => match site.operator {
                    None => {
                        *slot = value;
                        Ok(())
                    }
                    Some(operator) => compute(slot, operator, value),
                },
                Err(failure) => Err(failure),
            };
            regs[at(root)] = object;
            result?;
        }
        Op::BuildArray { base, count } => {
            machine.heap.charge(40 + 16 * count as usize)?;
            let items = regs[at(base)..at(base) + count as usize]
                .iter_mut()
                .map(Value::take)
                .collect();
            regs[at(base)] = Value::array(items);
        }
        Op::BuildMap { base, count } => {
            machine.heap.charge(80 + 64 * count as usize)?;
            let mut map = Map::with_capacity(count as usize);
            let row = &mut regs[at(base)..at(base) + 2 * count as usize];
            for pair in row.chunks_exact_mut(2) {
                let value = pair[1].take();
                map.insert(key(pair[0].take()), value);
            }
            regs[at(base)] = Value::map(map);
        }
        Op::BuildString { base, count } => {
            let row = &mut regs[at(base)..at(base) + count as usize];
            // One buffer for all: what is short ends in the value itself.
            let mut text = std::mem::take(&mut machine.scratch);
            text.clear();
            for part in row {
                part.display_into(&mut text);
                *part = Value::Nil;
            }
            machine.heap.charge(text.len())?;
            regs[at(base)] = Value::from(text.as_str());
            if text.capacity() <= 4096 {
                machine.scratch = text;
            }
        }
        Op::BuildStruct { base, site } => {
            let site = &program.structs[site as usize];
            machine.heap.charge(64 + 16 * site.def.fields.len())?;
            let mut values = vec![Value::Absent; site.def.fields.len()];
            for (offset, place) in site.places.iter().enumerate() {
                values[*place] = regs[at(base) + offset].take();
            }
            regs[at(base)] = Value::Struct(Arc::new(Struct::new(site.def.clone(), values)));
        }
        Op::BuildEnum { base, count, site } => {
            machine.heap.charge(64 + 16 * at(count))?;
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
            *set_field(&mut regs[at(base)], &program.names[name as usize])? = value;
        }
        Op::SetIndex { base, index, src } => {
            let (index, value) = (regs[at(index)].take(), regs[at(src)].take());
            *set_index(&mut regs[at(base)], index)? = value;
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
            return Err(Fault::type_error(format!(
                "pattern does not match {}",
                regs[at(src)]
            )));
        }
        Op::WrapOk { dst, src } => {
            regs[at(dst)] = match fetch(regs, locals, src) {
                result @ (Value::Ok(_) | Value::Err(_)) => result,
                value => Value::ok(value),
            };
        }
        Op::WrapErr { dst, src } => regs[at(dst)] = Value::err(fetch(regs, locals, src)),
        Op::NilPrep { dst, src } => {
            regs[at(dst)] = match fetch(regs, locals, src) {
                Value::None => Value::Nil,
                Value::Some(inner) => Boxed::unwrap(inner),
                value => value,
            };
        }
        Op::Cast { dst, src, name } => {
            let value = fetch(regs, locals, src);
            regs[at(dst)] = value
                .cast(&program.names[name as usize])
                .map_err(Failure::raised)?;
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
            let rest = slice_from(&regs[at(src)], from as usize)?;
            machine.heap.note(&rest);
            regs[at(dst)] = rest;
        }
        Op::InRange { base, inclusive } => {
            let [value, from, to] = [&regs[at(base)], &regs[at(base) + 1], &regs[at(base) + 2]];
            // A value of another kind is in no range.
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
                Some(Mock::Response) => MockAnswer::Response(regs[at(base)].to_string()),
                Some(Mock::Error) => MockAnswer::Error(regs[at(base)].to_string()),
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

/// Changes what lies at a place: `slot op= value`.
fn compute(slot: &mut Value, operator: crate::value::Binary, value: Value) -> Outcome<()> {
    let appends = matches!(slot, Value::Text(_)) && operator == crate::value::Binary::Add;
    let old = if appends { slot.take() } else { slot.clone() };
    *slot = operator.apply(old, value)?;
    Ok(())
}

/// How many indexes a path has.
pub(super) fn indexes(path: &[Step]) -> usize {
    path.iter()
        .filter(|step| matches!(step, Step::Index))
        .count()
}

fn key(value: Value) -> Text {
    match value {
        Value::Text(text) => text,
        other => Text::from(other.to_string()),
    }
}

/// What a key holds beside the map.
fn key_size(key: &Value) -> usize {
    match key {
        Value::Text(text) => text.len(),
        _ => 0,
    }
}
