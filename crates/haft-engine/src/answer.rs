//! Typed answers: a schema that the final text must follow.

use std::sync::Arc;

use haft_core::{
    ErrorCode, FinishReason, HydrationError, OutputFormat, RawArguments, SchemaError, Stage,
    Validator, ValidatorFactory, schema_of,
};
use haft_hydrate::{Contract, JsonSchemaFactory, Root, check_arguments};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What becomes of an answer that does not have the demanded form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMismatch {
    /// The model is told and tries again, until it has tried so often; then the run fails.
    Retry {
        /// How often in all; at least once.
        tries: u32,
    },
    /// It is taken as it is; the outcome then has no `output`.
    Accept,
}

impl Default for OnMismatch {
    fn default() -> Self {
        Self::Retry { tries: 3 }
    }
}

/// The form that an answer must have.
#[derive(Clone)]
pub(crate) struct AnswerContract {
    format: OutputFormat,
    validator: Arc<dyn Validator>,
    pub(crate) on_mismatch: OnMismatch,
    /// Whether the type takes what the schema admits.
    instantiate: fn(&Value) -> Result<(), String>,
}

impl AnswerContract {
    /// Compiles the schema.
    pub(crate) fn new(name: impl Into<String>, schema: Value) -> Result<Self, SchemaError> {
        Ok(Self {
            validator: JsonSchemaFactory.compile(&schema)?,
            format: OutputFormat {
                name: name.into(),
                schema: Arc::new(schema),
                strict: true,
            },
            on_mismatch: OnMismatch::default(),
            instantiate: |_| Ok(()),
        })
    }

    /// The form of a type.
    pub(crate) fn of<T: DeserializeOwned + JsonSchema>() -> Result<Self, SchemaError> {
        let schema = schema_of::<T>();
        let mut contract = Self::new("answer", schema)?;
        contract.instantiate = |value| match T::deserialize(value) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        Ok(contract)
    }

    /// Says what becomes of an answer that does not fit.
    pub(crate) fn on_mismatch(mut self, then: OnMismatch) -> Self {
        self.format.strict = then != OnMismatch::Accept;
        self.on_mismatch = then;
        self
    }

    pub(crate) fn format(&self) -> &OutputFormat {
        &self.format
    }

    /// The demand in words, for models that take no schema.
    pub(crate) fn instruction(&self) -> String {
        format!(
            "Answer with JSON only, without any other text. It must match this JSON schema:\n{}",
            self.format.schema
        )
    }

    /// Reads an answer like arguments, without repair. A Markdown code fence around all of it is
    /// taken off: many models write one around every JSON text.
    pub(crate) fn read(&self, text: &str) -> Result<ReadAnswer, Vec<HydrationError>> {
        let Some(inner) = inside_fence(text) else {
            let value = self.check(text)?;
            return Ok(ReadAnswer {
                value,
                unfenced: None,
            });
        };
        Ok(ReadAnswer {
            value: self.check(inner)?,
            unfenced: Some(inner.to_owned()),
        })
    }

    fn check(&self, text: &str) -> Result<Value, Vec<HydrationError>> {
        let contract = Contract {
            schema: &self.format.schema,
            validator: &*self.validator,
            factory: &JsonSchemaFactory,
            tool: &self.format.name,
            root: Root::Any,
        };
        let raw = RawArguments::Text(text.to_owned());
        if text.trim().is_empty() {
            return Err(vec![error(
                Stage::Parse,
                "the answer is empty",
                ErrorCode::Truncated,
            )]);
        }
        let checked = check_arguments(&raw, FinishReason::Normal, &contract, None);
        let value = checked.validated.ok_or(checked.errors)?;
        match (self.instantiate)(&value) {
            Ok(()) => Ok(value),
            Err(reason) => {
                let detail = ErrorCode::TypeMismatch { path: ".".into() };
                Err(vec![error(Stage::Instantiate, &reason, detail)])
            }
        }
    }

    /// What is wrong with an answer that does not fit.
    pub(crate) fn complaint(errors: &[HydrationError]) -> String {
        let told: Vec<_> = errors
            .iter()
            .take(8)
            // The words of hydration, which knows only arguments.
            .map(|error| error.message.replace("arguments are", "it is"))
            .map(|told| told.replace("the arguments were", "it was"))
            .collect();
        let told = told.join("; ");
        format!("The answer does not match the required JSON schema: {told}.")
    }
}

/// An answer that has the demanded form.
pub(crate) struct ReadAnswer {
    pub(crate) value: Value,
    /// The answer's text without its fence, if it had one.
    pub(crate) unfenced: Option<String>,
}

/// What a Markdown code fence encloses, if it encloses the whole text.
fn inside_fence(text: &str) -> Option<&str> {
    let text = text.trim();
    let rest = text.trim_start_matches('`');
    let ticks = text.len() - rest.len();
    if ticks < 3 {
        return None;
    }
    let rest = rest.strip_suffix(&text[..ticks])?;
    // The language stands on the line of the opening fence, `json` also directly before the value.
    let inner = match rest.split_once('\n') {
        Some((language, inner)) if language.trim().chars().all(char::is_alphanumeric) => inner,
        _ => rest.trim_start().trim_start_matches("json"),
    };
    let is_closed_before = inner
        .lines()
        .any(|line| line.trim_start().starts_with("```"));
    (!is_closed_before).then(|| inner.trim())
}

fn error(stage: Stage, message: &str, detail: ErrorCode) -> HydrationError {
    HydrationError {
        stage,
        message: message.to_owned(),
        detail,
    }
}

impl std::fmt::Debug for AnswerContract {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerContract")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fence_around_the_whole_text_is_taken_off() {
        for (text, inner) in [
            ("```json\n{\"a\":1}\n```", Some("{\"a\":1}")),
            (" ```\n[1]\n```\n", Some("[1]")),
            ("````JSON\r\n{}\r\n````", Some("{}")),
            ("```json {} ```", Some("{}")),
            ("```{\"a\":\n1}```", Some("{\"a\":\n1}")),
            ("{\"a\":1}", None),
            ("Here it is:\n```json\n{}\n```", None),
            ("```json\n{}\n```\nThat is it.", None),
            ("```json\n{}\n```\n```json\n{}\n```", None),
            ("```json\n{}", None),
            ("``{}``", None),
            ("```", None),
            ("", None),
        ] {
            assert_eq!(inside_fence(text), inner, "{text}");
        }
    }
}
