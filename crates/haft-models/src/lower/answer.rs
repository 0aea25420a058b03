//! The schema of an answer, for servers of the `OpenAI` kind.

use std::borrow::Cow;

use haft_core::OutputFormat;
use serde_json::Value;

use super::schema::{Profile, lower};

/// A schema, and whether the provider can hold the model to it by the letter.
#[derive(Debug, PartialEq)]
pub(crate) struct AnswerSchema<'f> {
    pub(crate) schema: Cow<'f, Value>,
    pub(crate) is_strict: bool,
}

/// The strict form of a schema where there is one that means the same, else the schema as it is.
///
/// The provider refuses a request that calls a schema strict which is not. A form in which `null`
/// stands for a missing member does not do: the answer is text, in which nothing can be undone.
pub(crate) fn answer_schema(format: &OutputFormat, can_be_strict: bool) -> AnswerSchema<'_> {
    let strict = (format.strict && can_be_strict)
        .then(|| lower(&format.schema, Profile::OpenaiStrict).ok())
        .flatten()
        .filter(|lowered| lowered.strict && lowered.is_faithful());
    match strict {
        Some(lowered) => AnswerSchema {
            schema: Cow::Owned(lowered.schema),
            is_strict: true,
        },
        None => AnswerSchema {
            schema: Cow::Borrowed(&format.schema),
            is_strict: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn lowered(schema: &Value) -> (Value, bool) {
        let format = OutputFormat {
            name: "answer".into(),
            schema: Arc::new(schema.clone()),
            strict: true,
        };
        let answer = answer_schema(&format, true);
        (answer.schema.into_owned(), answer.is_strict)
    }

    #[test]
    fn only_what_means_the_same_is_called_strict() {
        let nullable = json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}},
            "additionalProperties": false});
        let (schema, is_strict) = lowered(&nullable);
        assert!(is_strict);
        assert_eq!(schema["required"], json!(["a"]));
        for loose in [
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"]}),
            json!({"type": "array", "items": {"type": "string"}}),
        ] {
            assert_eq!(lowered(&loose), (loose, false));
        }
    }

    #[test]
    fn a_server_that_knows_no_strict_schemas_is_given_the_schema_as_it_is() {
        let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let format = OutputFormat {
            name: "answer".into(),
            schema: Arc::new(schema.clone()),
            strict: true,
        };
        let answer = answer_schema(&format, false);
        assert_eq!((&*answer.schema, answer.is_strict), (&schema, false));
    }
}
