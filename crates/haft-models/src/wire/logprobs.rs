//! How likely each token was, in the form of the Responses API.

use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The entries of a list, each with `token`, `logprob`, `bytes` and `top_logprobs`. What has no token
/// or no number is left out.
pub(crate) fn logprobs(raw: Option<&RawValue>) -> Vec<Value> {
    // What most pieces say.
    if raw.is_none_or(|raw| raw.get() == "[]") {
        return Vec::new();
    }
    let list: Vec<Value> = super::read(raw).unwrap_or_default();
    list.iter().filter_map(entry).collect()
}

fn entry(given: &Value) -> Option<Value> {
    let mut entry = likelihood(given)?;
    let alternatives = given.get("top_logprobs").and_then(Value::as_array);
    let alternatives = alternatives.into_iter().flatten();
    entry["top_logprobs"] = alternatives.filter_map(likelihood).collect();
    Some(entry)
}

fn likelihood(given: &Value) -> Option<Value> {
    let token = given.get("token")?.as_str()?;
    let logprob = given.get("logprob").filter(|number| number.is_number())?;
    // Servers leave the bytes out or say `null`; they are those of the token.
    let bytes = match given.get("bytes") {
        Some(bytes @ Value::Array(_)) => bytes.clone(),
        _ => json!(token.as_bytes()),
    };
    Some(json!({"token": token, "logprob": logprob, "bytes": bytes}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_all_its_members() {
        let raw = RawValue::from_string(
            r#"[{"token":"é","logprob":-0.5,"bytes":null,"top_logprobs":[{"token":"a","logprob":-1,"bytes":[97]},{"x":1}]},
                {"token":"b","logprob":-2},{"token":3,"logprob":-2},{"token":"c","logprob":null}]"#
                .into(),
        )
        .unwrap();
        assert_eq!(
            logprobs(Some(&raw)),
            [
                json!({"token": "é", "logprob": -0.5, "bytes": [195, 169], "top_logprobs": [
                    {"token": "a", "logprob": -1, "bytes": [97]}]}),
                json!({"token": "b", "logprob": -2, "bytes": [98], "top_logprobs": []}),
            ]
        );
        let odd = RawValue::from_string(r#"{"content":3}"#.into()).unwrap();
        assert!(logprobs(Some(&odd)).is_empty() && logprobs(None).is_empty());
    }
}
