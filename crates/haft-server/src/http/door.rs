//! What is looked at before anybody is asked who he is: how much he says, and whom he asks for.

use std::net::IpAddr;

use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING, HOST};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Uri};

use crate::access::Limits;
use crate::app::App;
use crate::error::{ApiError, ErrorCode};

/// Refuses headers that are too many or too long. What is far too much never comes so far.
pub(super) fn check_headers(
    limits: &Limits,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), ApiError> {
    let too_large = |message: String| {
        let error = ApiError::new(ErrorCode::RequestHeadersTooLarge, message);
        Err(error)
    };
    if headers.len() > limits.max_headers {
        return too_large(format!(
            "the request has {} headers: send at most {}",
            headers.len(),
            limits.max_headers
        ));
    }
    let line = uri.path_and_query().map_or(0, |it| it.as_str().len());
    let names = headers.keys().map(|name| name.as_str().len());
    let values = headers.values().map(axum::http::HeaderValue::len);
    let bytes = line + names.sum::<usize>() + values.sum::<usize>();
    if bytes > limits.max_header_bytes {
        return too_large(format!(
            "the path and the headers have {bytes} bytes: send at most {}",
            limits.max_header_bytes
        ));
    }
    Ok(())
}

/// The headers that a request has at most once, by the names that messages use: a proxy in front may go by another
/// of two than this server. A second `Host` is forbidden by RFC 9112 §3.2.
const SINGLE_HEADERS: [(HeaderName, &str); 3] = [
    (HOST, "Host"),
    (AUTHORIZATION, "Authorization"),
    (HeaderName::from_static("haft-dialect"), "Haft-Dialect"),
];

/// Refuses what two readers of the same request could understand differently: a second header where there can only be
/// one, and a body in an encoding that is not decoded here.
pub(super) fn check_ambiguity(headers: &HeaderMap) -> Result<(), ApiError> {
    for (header, name) in SINGLE_HEADERS {
        if headers.get_all(header).iter().count() > 1 {
            let message = format!("the request has more than one `{name}` header: send one");
            return Err(ApiError::new(ErrorCode::InvalidValue, message));
        }
    }
    let is_encoded = |value: &axum::http::HeaderValue| {
        let codings = value.as_bytes().split(|byte| *byte == b',');
        let mut codings = codings.map(<[u8]>::trim_ascii);
        codings.any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
    };
    if headers.get_all(CONTENT_ENCODING).iter().any(is_encoded) {
        let message = "the body has a `Content-Encoding`, which is not supported: send it without compression";
        return Err(ApiError::new(ErrorCode::UnsupportedContentType, message));
    }
    Ok(())
}

/// Where no key is needed and only this machine is listened to, refuses whoever asks for another name
/// than the loopback's: that is a browser that some page has led here by a name of its own.
pub(super) fn check_host(app: &App, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    let is_local = app.is_local.get().copied().unwrap_or_default();
    if !is_local || app.options.allow_anonymous || app.keyring.needs_key() {
        return Ok(());
    }
    if means_this_machine(uri, headers) {
        return Ok(());
    }
    let message = format!(
        "this server is for its own machine and answers to `localhost` and loopback addresses, not \
         to `{}`: its operator can make a key with `haft keys add`, or set `allow_anonymous` of \
         `[server]`",
        haft_core::cut(host_of(uri, headers).unwrap_or_default())
    );
    Err(ApiError::new(ErrorCode::PermissionDenied, message))
}

/// Whether the server is asked for by a name of the loopback.
pub(super) fn means_this_machine(uri: &Uri, headers: &HeaderMap) -> bool {
    let host = host_of(uri, headers).and_then(|host| host.parse::<Authority>().ok());
    host.is_some_and(|host| is_loopback(host.host()))
}

fn host_of<'r>(uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
    let given = headers.get(HOST).and_then(|host| host.to_str().ok());
    uri.authority().map(Authority::as_str).or(given)
}

fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let address = bare.unwrap_or(host).parse::<IpAddr>();
    address.map_or_else(
        |_| host.trim_end_matches('.').eq_ignore_ascii_case("localhost"),
        |address| address.to_canonical().is_loopback(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_loopback_are_known() {
        for host in [
            "localhost",
            "LocalHost",
            "localhost.",
            "127.0.0.1",
            "127.1.2.3",
            "[::1]",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "0.0.0.0",
            "192.168.0.1",
            "[::]",
            "[::2]",
            "evil.localhost",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
