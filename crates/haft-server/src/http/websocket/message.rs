//! What clients write into a WebSocket, and what stands in for a response that does not come.

use serde_json::{Map, Value, json};

use crate::error::{ApiError, ErrorCode};
use crate::http::body;

/// What a client wants.
#[derive(Debug)]
pub(super) enum Wish {
    /// A response.
    Create(Map<String, Value>),
    /// To change one that is under way.
    Steer(Map<String, Value>),
}

impl Wish {
    pub(super) fn read(text: &[u8]) -> Result<Self, ApiError> {
        let Value::Object(mut members) = body::parse(text)? else {
            let message = "a message must be a JSON object";
            return Err(ApiError::new(ErrorCode::InvalidType, message));
        };
        match members.shift_remove("type") {
            Some(Value::String(kind)) if kind == "response.create" => Ok(Self::Create(members)),
            Some(Value::String(kind)) if kind == "response.steer" => Ok(Self::Steer(members)),
            Some(other) => {
                let message = format!(
                    "messages of type {} are not known here: send `response.create`",
                    haft_core::cut(&other.to_string())
                );
                Err(ApiError::new(ErrorCode::InvalidValue, message).at("type"))
            }
            None => {
                let message = "`type` is missing: send `response.create`";
                Err(ApiError::new(ErrorCode::MissingRequiredParameter, message).at("type"))
            }
        }
    }
}

/// Stands in for a response that does not come. Nested in both dialects.
pub(super) fn envelope(error: &ApiError) -> String {
    let mut json = json!({
        "type": "error",
        "status": error.status().as_u16(),
        "error": error.body(),
    });
    if let Some(seconds) = error.retry_seconds() {
        json["headers"]["Retry-After"] = seconds.to_string().into();
    }
    if error.must_not_retry {
        json["headers"]["x-should-retry"] = "false".into();
    }
    json.to_string()
}

/// What is said to a wish to steer.
pub(super) fn steer_failed(wish: &Map<String, Value>) -> String {
    let error = json!({
        "type": "invalid_request",
        "code": "steering_not_supported",
        "message": "a response that is under way cannot be steered here: cancel it and send another",
        "param": null,
    });
    let mut json = json!({"type": "response.steer.failed", "error": error});
    for key in ["event_id", "response_id", "stream_id"] {
        if let Some(value) = wish.get(key) {
            json[key] = value.clone();
        }
    }
    json.to_string()
}

/// An event with the client's name for its stream.
pub(super) fn with_stream_id(json: &str, stream_id: Option<&str>) -> String {
    match (stream_id, json.strip_prefix('{')) {
        (Some(id), Some(members)) => format!("{{\"stream_id\":{},{members}", json!(id)),
        _ => json.to_owned(),
    }
}
