//! How large a schema may be. Bounds are counted, not timed: the same schema must always fare the
//! same.

use serde_json::Value;

use super::Dropped;

pub(super) const MAX_BYTES: usize = 256 * 1024;
pub(super) const MAX_DEPTH: usize = 64;
pub(super) const MAX_SUBSCHEMAS: usize = 5_000;
const MAX_VALUE_DEPTH: usize = 128;

pub(super) fn check(schema: &Value) -> Result<(), Dropped> {
    if !matches!(schema, Value::Object(_) | Value::Bool(true) | Value::Null) {
        return Err(Dropped::because("it is neither an object nor `true`"));
    }
    if haft_core::value_depth_exceeds(schema, MAX_VALUE_DEPTH) {
        return Err(too_deep());
    }
    if schema.to_string().len() > MAX_BYTES {
        return Err(too_long());
    }
    let mut open = vec![(schema, 1)];
    let mut count = 0;
    while let Some((schema, depth)) = open.pop() {
        count += 1;
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        if count > MAX_SUBSCHEMAS {
            return Err(too_many());
        }
        well_formed(schema)?;
        haft_core::subschemas(schema, |keyword, sub| {
            // Here lists of names stand beside schemas.
            if !(keyword == "dependencies" && sub.is_array()) {
                open.push((sub, depth + 1));
            }
        });
    }
    Ok(())
}

/// Refuses what no provider takes for a schema, and what would be misread here.
fn well_formed(schema: &Value) -> Result<(), Dropped> {
    let Some(members) = schema.as_object() else {
        return match schema {
            Value::Bool(_) | Value::Null => Ok(()),
            _ => Err(Dropped::because("it holds a schema that is no object")),
        };
    };
    for (keyword, value) in members {
        let is_right = match keyword.as_str() {
            "$ref" | "$dynamicRef" | "$recursiveRef" => value.is_string(),
            "properties" | "patternProperties" | "$defs" | "definitions" => value.is_object(),
            "allOf" | "anyOf" | "oneOf" | "prefixItems" | "enum" => value.is_array(),
            "type" => value.is_string() || value.is_array(),
            _ => true,
        };
        if !is_right {
            return Err(Dropped::because(format_args!(
                "`{keyword}` is of a wrong type"
            )));
        }
    }
    Ok(())
}

pub(super) fn too_deep() -> Dropped {
    Dropped::because(format_args!("it is nested deeper than {MAX_DEPTH}"))
}

pub(super) fn too_many() -> Dropped {
    Dropped::because(format_args!("it has more than {MAX_SUBSCHEMAS} subschemas"))
}

pub(super) fn too_long() -> Dropped {
    Dropped::because(format_args!("it has more than {MAX_BYTES} bytes"))
}
