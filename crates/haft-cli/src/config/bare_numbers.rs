//! Durations without a unit: nobody can tell whether `10` means seconds or milliseconds.
//!
//! Which keys are durations the schema says, so that a new one is looked at, too.

use serde_json::{Map, Value};

use super::complaint::Complaint;
use super::document::{Document, Step};
use super::schema::schema;

/// Refuses durations that are bare numbers, wherever they stand. Zero is zero in every unit.
pub(super) fn refuse(document: &Document<'_>) -> Result<(), Complaint> {
    below(document, &schema(), &mut Vec::new())
}

/// Whether a key is a duration.
pub(super) fn is_duration(schema: &Map<String, Value>) -> bool {
    let title = schema.get("title").and_then(Value::as_str);
    title.is_some_and(|title| title.starts_with("duration"))
}

fn below<'s>(
    document: &Document<'_>,
    schema: &'s Value,
    path: &mut Vec<Step<'s>>,
) -> Result<(), Complaint> {
    let properties = schema["properties"].as_object();
    for (key, schema) in properties.into_iter().flatten() {
        path.push(Step::Key(key));
        if schema.as_object().is_some_and(is_duration) {
            if let Some(number) = document.number_at(path).filter(|it| it != "0") {
                let message = format!("`{key}` has no unit");
                let remedy = format!("write `\"{number}s\"` or `\"{number}ms\"`");
                return Err(document.complain(path, message).remedy(remedy));
            }
        } else if schema["items"].is_object() {
            for at in 0..document.entries_at(path) {
                path.push(Step::Entry(at));
                below(document, &schema["items"], path)?;
                path.pop();
            }
        } else {
            below(document, schema, path)?;
        }
        path.pop();
    }
    Ok(())
}
