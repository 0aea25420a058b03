//! `as` (§4).

use super::{Value, brief};
use crate::vm::{Failure, Meter, Outcome};

impl Value {
    /// `value as target`, or the text that is raised.
    pub(crate) fn cast(&self, target: &str, meter: &mut Meter) -> Outcome<Value> {
        if let Value::Text(text) = self {
            meter.read(text.len())?;
        }
        match (target, self) {
            ("Int", value @ Value::Int(_))
            | ("Float", value @ Value::Float(_))
            | ("String", value @ Value::Text(_)) => Ok(value.clone()),
            #[allow(clippy::cast_possible_truncation)] // saturates, which is what `as` means
            ("Int", Value::Float(value)) => Ok(Value::Int(*value as i64)),
            ("Int", Value::Bool(value)) => Ok(Value::Int(i64::from(*value))),
            ("Int", Value::Text(text)) => text
                .trim()
                .parse()
                .map(Value::Int)
                .map_err(|_| refused(text, "Int")),
            #[allow(clippy::cast_precision_loss)] // the nearest double
            ("Float", Value::Int(value)) => Ok(Value::Float(*value as f64)),
            ("Float", Value::Text(text)) => text
                .trim()
                .parse()
                .map(Value::Float)
                .map_err(|_| refused(text, "Float")),
            ("String", value) => meter.shown(value).map(Value::Text),
            ("Bool", value) => Ok(Value::Bool(value.is_truthy())),
            (target, value) => Err(Failure::raised(format!(
                "cannot cast {} to {target}",
                value.type_name()
            ))),
        }
    }
}

fn refused(text: &str, target: &str) -> Box<Failure> {
    let text = brief(text);
    Failure::raised(format!("cannot cast String \"{text}\" to {target}"))
}
