//! `as` (§4).

use super::Value;

impl Value {
    /// `value as target`, or the text that is raised.
    pub fn cast(self, target: &str) -> Result<Value, String> {
        match (target, self) {
            ("Int", value @ Value::Int(_))
            | ("Float", value @ Value::Float(_))
            | ("String", value @ Value::Text(_)) => Ok(value),
            #[allow(clippy::cast_possible_truncation)] // saturates, which is what `as` means
            ("Int", Value::Float(value)) => Ok(Value::Int(value as i64)),
            ("Int", Value::Bool(value)) => Ok(Value::Int(i64::from(value))),
            ("Int", Value::Text(text)) => text
                .trim()
                .parse()
                .map(Value::Int)
                .map_err(|_| format!("cannot cast String \"{text}\" to Int")),
            #[allow(clippy::cast_precision_loss)] // the nearest double
            ("Float", Value::Int(value)) => Ok(Value::Float(value as f64)),
            ("Float", Value::Text(text)) => text
                .trim()
                .parse()
                .map(Value::Float)
                .map_err(|_| format!("cannot cast String \"{text}\" to Float")),
            ("String", value) => Ok(Value::text(value.to_string())),
            ("Bool", value) => Ok(Value::Bool(value.is_truthy())),
            (target, value) => Err(format!("cannot cast {} to {target}", value.type_name())),
        }
    }
}
