//! The form of an answer, as OpenAI's structured output takes it.

use haft_core::{OutputFormat, subschemas_mut};
use serde_json::{Value, json};

use super::schema::{Profile, lower};

/// The schema to send, and whether the provider can be held to it by the letter.
///
/// Strict schemas close every object and require every property. Closing objects changes nothing
/// about an answer; requiring what is optional would make the model write values that the caller's
/// schema may refuse, so such a schema goes out as it is and is not called strict.
pub(crate) fn answer_form(format: &OutputFormat) -> (Value, bool) {
    let plain = || ((*format.schema).clone(), false);
    if !format.strict {
        return plain();
    }
    match lower(&format.schema, Profile::OpenaiStrict) {
        Ok(lowered) if lowered.strict && opened(&lowered.schema) == opened(&format.schema) => {
            (lowered.schema, true)
        }
        _ => plain(),
    }
}

/// The schema with all its objects open again.
fn opened(schema: &Value) -> Value {
    let mut schema = schema.clone();
    open(&mut schema);
    schema
}

fn open(schema: &mut Value) {
    if let Some(members) = schema.as_object_mut()
        && members.get("additionalProperties") == Some(&json!(false))
    {
        members.shift_remove("additionalProperties");
    }
    subschemas_mut(schema, |_, inner| open(inner));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn form(schema: Value) -> (Value, bool) {
        answer_form(&OutputFormat {
            name: "answer".into(),
            schema: Arc::new(schema),
            strict: true,
        })
    }

    #[test]
    fn objects_are_closed_where_that_is_all_that_strictness_asks_for() {
        let schema = json!({
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"]
        });
        let (sent, strict) = form(schema);
        assert!(strict);
        assert_eq!(sent["additionalProperties"], json!(false));
    }

    #[test]
    fn a_schema_with_optional_fields_goes_out_as_it_is() {
        let schema = json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "note": {"type": "string"}},
            "required": ["city"]
        });
        assert_eq!(form(schema.clone()), (schema, false));
    }
}
