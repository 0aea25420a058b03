//! rmcp's failures in haft's words.

use rmcp::model::{ErrorData, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::DynamicTransportError;

use crate::error::Cause;
use crate::text::visible;
use crate::wired::SendFailure;

/// How much of a server's words an error shows.
const SHOWN_BYTES: usize = 1000;

/// Why a request failed. `is_sent`: whether it may have reached the server.
pub(super) fn cause_of(error: ServiceError, is_sent: bool) -> Cause {
    match error {
        ServiceError::McpError(error) => protocol(&error),
        ServiceError::TransportSend(error) => transport(&error),
        ServiceError::TransportClosed => Cause::ConnectionLost {
            sent: is_sent,
            detail: String::new(),
        },
        ServiceError::Cancelled { .. } => Cause::Cancelled,
        other => Cause::Unexpected(shown(&other.to_string())),
    }
}

/// Why a connection could not be opened.
pub(super) fn opening_cause(error: &ClientInitializeError) -> Cause {
    match error {
        ClientInitializeError::JsonRpcError(error) => protocol(error),
        ClientInitializeError::TransportError { error, .. } => transport(error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => opening_cause(fallback),
        ClientInitializeError::NoCompatibleProtocolVersion {
            server_supported, ..
        } => {
            let server = server_supported
                .iter()
                .map(|version| shown(version.as_str()));
            Cause::NoSharedVersion {
                server: server.take(10).collect(),
            }
        }
        ClientInitializeError::ConnectionClosed(_) => Cause::ConnectionLost {
            sent: false,
            detail: String::new(),
        },
        ClientInitializeError::Cancelled => Cause::Cancelled,
        other => Cause::Unexpected(shown(&other.to_string())),
    }
}

/// The code of the error that ended an opening, if the server gave one.
pub(super) fn opening_code(error: &ClientInitializeError) -> Option<i32> {
    match error {
        ClientInitializeError::JsonRpcError(error) => Some(error.code.0),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => opening_code(fallback),
        _ => None,
    }
}

/// The versions that a server knows, if it named them and haft knows none of the modern ones.
pub(super) fn opening_versions(error: &ClientInitializeError) -> &[ProtocolVersion] {
    match error {
        ClientInitializeError::NoCompatibleProtocolVersion {
            server_supported, ..
        } => server_supported,
        _ => &[],
    }
}

fn protocol(error: &ErrorData) -> Cause {
    Cause::Protocol {
        code: error.code.0.into(),
        message: shown(&error.message),
    }
}

fn transport(error: &DynamicTransportError) -> Cause {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error.error.as_ref());
    while let Some(error) = source {
        if let Some(SendFailure(cause)) = error.downcast_ref() {
            return cause.clone();
        }
        if let Some(cause) = crate::http::cause_of(error) {
            return cause;
        }
        source = error.source();
    }
    Cause::Unexpected(shown(&error.error.to_string()))
}

/// A foreign text, made visible and cut.
fn shown(text: &str) -> String {
    let text = visible(text);
    if text.len() <= SHOWN_BYTES {
        return text;
    }
    format!("{}…", &text[..text.floor_char_boundary(SHOWN_BYTES)])
}
