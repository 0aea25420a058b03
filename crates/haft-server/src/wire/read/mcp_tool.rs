//! A tool of type `mcp`: what a request may say about a server, and what of it may be shown.
//!
//! `authorization`, `headers` and parts of `server_url` are secrets (`open-responses.md` D8). They
//! stay in [`RequestToolKind::Mcp`](crate::wire::request::RequestToolKind) alone.

use axum::http::Uri;
use serde_json::{Map, Value, json};

use super::Read;
use super::fields::{Fields, invalid, wrong_type};
use super::forms::{Flag, Form as _, ListOf, Name, Object, Text, Word};
use crate::error::{ApiError, ErrorCode};

/// Checks an entry of type `mcp` and gives what the response echoes of it.
pub(super) fn read_mcp(config: &Map<String, Value>, path: &str) -> Read<Value> {
    let mut fields = Fields::of(Value::Object(config.clone()), path)?;
    for key in ["connector_id", "tunnel_id"] {
        if fields.has(key) {
            let at = fields.at(key);
            return Err(ApiError::new(
                ErrorCode::UnsupportedValue,
                format!("`{at}` is not supported: name the server by `server_url`, or one of this server's own by `server_label`"),
            )
            .at(at));
        }
    }
    let label = fields.need("server_label", Name)?;
    let description = fields.get("server_description", Text)?;
    let origin = fields.get("server_url", server_url)?;
    let has_token = fields.get("authorization", Text)?.is_some();
    let headers = fields.get("headers", headers)?.unwrap_or_default();
    if has_token
        && headers
            .iter()
            .any(|name| name.eq_ignore_ascii_case("authorization"))
    {
        let at = fields.at("authorization");
        return Err(invalid(
            &at,
            format!("`{at}` is given, and `headers` has an `Authorization` too: keep one of them"),
        ));
    }
    let allowed = fields.get("allowed_tools", filter)?;
    let approval = fields.get("require_approval", approval)?;
    let is_deferred = fields.get("defer_loading", Flag)?.unwrap_or(false);
    // What a client does not say about a server of its own, is `always`.
    let approval = approval.or_else(|| origin.is_some().then(|| json!("always")));
    Ok(json!({
        "type": "mcp",
        "server_label": label,
        "server_description": description,
        "server_url": origin,
        "allowed_tools": allowed,
        "require_approval": approval,
        "defer_loading": is_deferred,
        "headers": null,
        "authorization": null,
    }))
}

/// Leaves of the `mcp` entries in a list of definitions only what may be stored.
pub(super) fn cut_secrets(definitions: &mut Value) {
    for definition in definitions.as_array_mut().into_iter().flatten() {
        let Some(members) = definition.as_object_mut() else {
            continue;
        };
        if members.get("type").and_then(Value::as_str) != Some("mcp") {
            continue;
        }
        for key in ["authorization", "headers"] {
            if let Some(secret) = members.get_mut(key) {
                *secret = Value::Null;
            }
        }
        if let Some(Value::String(url)) = members.get_mut("server_url") {
            *url = match url.parse::<Uri>() {
                Ok(uri) => origin(&uri).unwrap_or_default() + uri.path(),
                Err(_) => String::new(),
            };
        }
    }
}

/// An address that could be a server's, cut to its origin. Whether it may be reached is not
/// decided here.
fn server_url(value: Value, path: &str) -> Read<String> {
    let text = Text.read(value, path)?;
    let uri: Option<Uri> = text.parse().ok();
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    if !is_web && !scheme.is_empty() {
        return Err(ApiError::new(
            ErrorCode::McpServerNotAllowed,
            format!("`{path}` is no `https:` address, and no other server can be reached"),
        )
        .at(path));
    }
    uri.as_ref().and_then(origin).ok_or_else(|| {
        invalid(
            path,
            format!("`{path}` is no address of a server: write it as `https://host/path`"),
        )
    })
}

fn origin(uri: &Uri) -> Option<String> {
    let scheme = uri.scheme_str()?;
    let host = uri.host().filter(|host| !host.is_empty())?;
    let port = uri.port().map(|port| format!(":{port}"));
    Some(format!("{scheme}://{host}{}", port.unwrap_or_default()))
}

/// The names of the headers.
fn headers(value: Value, path: &str) -> Read<Vec<String>> {
    let headers = Object.read(value, path)?.rest();
    headers
        .into_iter()
        .map(|(name, value)| {
            Text.read(value, &format!("{path}.{}", haft_core::cut(&name)))?;
            Ok(name)
        })
        .collect()
}

/// Some of the server's tools: by their names, or by what they do.
fn filter(value: Value, path: &str) -> Read<Value> {
    match &value {
        Value::Array(_) => {
            ListOf(Text).read(value.clone(), path)?;
        }
        Value::Object(_) => {
            let mut fields = Object.read(value.clone(), path)?;
            fields.get("tool_names", ListOf(Text))?;
            fields.get("read_only", Flag)?;
        }
        _ => {
            return Err(wrong_type(
                path,
                "a list of names or an object with `tool_names` and `read_only`",
                &value,
            ));
        }
    }
    Ok(value)
}

/// Which calls need a person's word.
fn approval(value: Value, path: &str) -> Read<Value> {
    match &value {
        Value::String(_) => {
            Word(&["always", "never"]).read(value.clone(), path)?;
        }
        Value::Object(_) => {
            let mut fields = Object.read(value.clone(), path)?;
            fields.get("always", filter)?;
            fields.get("never", filter)?;
        }
        _ => {
            return Err(wrong_type(
                path,
                "`always`, `never` or an object with those two",
                &value,
            ));
        }
    }
    Ok(value)
}
