//! Log messages that servers send to their client.

use serde_json::Value;

use crate::text::visible;

/// The largest log message that is passed on, in bytes of its JSON.
const MAX_DATA_BYTES: usize = 64 * 1024;

/// The severity of a log message, as in RFC 5424.
///
/// ```
/// use haft_mcp::LogLevel;
/// assert!(LogLevel::Error > LogLevel::Debug);
/// assert_eq!(LogLevel::parse("warning"), Some(LogLevel::Warning));
/// assert_eq!(LogLevel::Warning.as_str(), "warning");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Detailed debugging information.
    Debug,
    /// General information.
    Info,
    /// Normal but significant events.
    Notice,
    /// Warning conditions.
    Warning,
    /// Error conditions.
    Error,
    /// Critical conditions, such as the failure of a component.
    Critical,
    /// Action must be taken immediately.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LogLevel {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    /// The level with this name of the protocol.
    pub fn parse(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find_map(|(level, known)| (known == name).then_some(level))
    }

    /// The protocol's name of the level.
    pub fn as_str(self) -> &'static str {
        let mut all = Self::ALL.into_iter();
        all.find_map(|(level, name)| (level == self).then_some(name))
            .unwrap_or("info")
    }
}

/// A log message of a server (`notifications/message`).
#[derive(Debug, Clone, PartialEq)]
pub struct LogMessage {
    /// Its severity.
    pub level: LogLevel,
    /// The part of the server that wrote it, where the server says so.
    pub logger: Option<String>,
    /// The message: a text or any other JSON value.
    pub data: Value,
    /// Whether a request was in flight at the server when it arrived. Then those who made the requests get
    /// it too ([`CallOptions::on_log`](crate::CallOptions::on_log)).
    pub is_during_request: bool,
}

impl LogMessage {
    /// Reads the `params` of a `notifications/message`. An unknown level counts as `info`.
    pub(crate) fn from_params(params: &Value) -> Option<Self> {
        let data = params.get("data")?;
        let data = match data {
            Value::String(text) if text.len() > MAX_DATA_BYTES => {
                let end = text.floor_char_boundary(MAX_DATA_BYTES);
                format!("{}…", &text[..end]).into()
            }
            Value::String(_) => data.clone(),
            other if other.to_string().len() > MAX_DATA_BYTES => {
                format!("[log message larger than {MAX_DATA_BYTES} bytes]").into()
            }
            other => other.clone(),
        };
        let level = params.get("level").and_then(Value::as_str);
        let logger = params.get("logger").and_then(Value::as_str);
        Some(Self {
            level: level.and_then(LogLevel::parse).unwrap_or(LogLevel::Info),
            logger: logger.map(|logger| haft_core::cut(&visible(logger))),
            data,
            is_during_request: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_levels_are_info_and_large_messages_are_cut() {
        let read = |params: Value| LogMessage::from_params(&params);
        assert_eq!(read(json!({"level": "info"})), None);
        let message = read(json!({"level": "loud", "logger": "a\u{200b}b", "data": {"x": 1}}));
        let message = message.unwrap();
        assert_eq!(message.level, LogLevel::Info);
        assert_eq!(message.logger.as_deref(), Some("ab"));
        assert_eq!(message.data, json!({"x": 1}));
        let long = read(json!({"level": "error", "data": "x".repeat(100_000)})).unwrap();
        assert!(long.data.as_str().unwrap().len() < 70_000);
        let large = read(json!({"level": "error", "data": ["x".repeat(100_000)]})).unwrap();
        assert_eq!(large.data, "[log message larger than 65536 bytes]");
    }
}
