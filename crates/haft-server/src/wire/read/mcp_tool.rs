//! A tool of type `mcp`: what a request may say about a server, and what of it may be shown.
//!
//! `authorization`, `headers` and parts of `server_url` are secrets (`open-responses.md` D8). They
//! stay in [`McpEntry`] alone.

use std::collections::BTreeMap;

use axum::http::{HeaderName, HeaderValue, Uri};
use haft_mcp::{Secret, Url};
use serde_json::{Map, Value, json};

use super::Read;
use super::fields::{Fields, invalid, wrong_type};
use super::forms::{Flag, Form as _, ListOf, Name, Object, Text, Word};
use crate::error::{ApiError, ErrorCode};
use crate::wire::mcp::{ApprovalWish, McpAddress, McpEntry, OWN_LABEL, ToolFilter};

/// Reads an entry of type `mcp`. Gives what the response echoes of it, too.
pub(super) fn read_mcp(config: Map<String, Value>, path: &str) -> Read<(McpEntry, Value)> {
    let mut fields = Fields::of(Value::Object(config), path)?;
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
    let url = fields.get("server_url", server_url)?;
    if label == OWN_LABEL && url.is_some() {
        let at = fields.at("server_label");
        let message = format!(
            "`{at}` is `{OWN_LABEL}`, which means this server itself: leave `server_url` out, or use another label"
        );
        return Err(invalid(&at, message));
    }
    let bearer = fields.get("authorization", token)?;
    let headers = fields.get("headers", headers)?.unwrap_or_default();
    check_credentials(&fields, url.is_some(), bearer.is_some(), &headers)?;
    let (allowed, allowed_echo) = fields.get("allowed_tools", filter)?.unzip();
    let (approval, approval_echo) = fields.get("require_approval", approval)?.unzip();
    let defer_loading = fields.get("defer_loading", Flag)?.unwrap_or(false);
    // What a client does not say about a server of its own, is `always`.
    let approval_echo = approval_echo.or_else(|| url.is_some().then(|| json!("always")));
    let (url, origin) = url.unzip();
    let echo = json!({
        "type": "mcp",
        "server_label": label,
        "server_description": description,
        "server_url": origin,
        "allowed_tools": allowed_echo,
        "require_approval": approval_echo,
        "defer_loading": defer_loading,
        "headers": null,
        "authorization": null,
    });
    let entry = McpEntry {
        label,
        description,
        address: url.map(|url| McpAddress {
            url,
            headers,
            bearer,
        }),
        allowed,
        approval,
        defer_loading,
        is_found: false,
    };
    Ok((entry, echo))
}

/// Credentials are for a server that the request brings along, and each is said once.
fn check_credentials(
    fields: &Fields,
    has_url: bool,
    has_token: bool,
    headers: &BTreeMap<String, Secret>,
) -> Read<()> {
    let is_authorization = |name: &String| name.eq_ignore_ascii_case("authorization");
    if has_token && headers.keys().any(is_authorization) {
        let at = fields.at("authorization");
        return Err(invalid(
            &at,
            format!("`{at}` is given, and `headers` has an `Authorization` too: keep one of them"),
        ));
    }
    let unused = match (has_token, headers.is_empty()) {
        _ if has_url => None,
        (true, _) => Some("authorization"),
        (false, false) => Some("headers"),
        (false, true) => None,
    };
    let Some(key) = unused else {
        return Ok(());
    };
    // Sent to a server of the operator's, they would replace credentials that are not the client's.
    let at = fields.at(key);
    let message = format!(
        "`{at}` is given without `server_url`: a server of the configuration has its own; add \
         `server_url`, or leave it out"
    );
    Err(invalid(&at, message))
}

fn token(value: Value, path: &str) -> Read<Secret> {
    let token = Text.read(value, path)?;
    if token.is_empty() || HeaderValue::try_from(format!("Bearer {token}")).is_err() {
        let message = format!("`{path}` cannot be sent as a bearer token: check it");
        return Err(invalid(path, message));
    }
    Ok(Secret::new(token))
}

/// Leaves of the `mcp` entries in a list of definitions only what may be stored.
pub(crate) fn cut_secrets(definitions: &mut Value) {
    for definition in definitions.as_array_mut().into_iter().flatten() {
        let Some(members) = definition.as_object_mut() else {
            continue;
        };
        if members.get("type").and_then(Value::as_str) != Some("mcp") {
            cut_domain_secrets(members);
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

/// Removes what containers of a provider's tools are given to authenticate with.
pub(super) fn cut_domain_secrets(tool: &mut Map<String, Value>) {
    for key in ["container", "environment"] {
        let secrets = tool
            .get_mut(key)
            .and_then(|place| place.pointer_mut("/network_policy/domain_secrets"));
        let secrets = secrets.and_then(Value::as_array_mut);
        for secret in secrets.into_iter().flatten() {
            if let Some(value) = secret.get_mut("value") {
                *value = Value::Null;
            }
        }
    }
}

/// An address that could be a server's, and its origin. Whether it may be reached is not decided
/// here.
fn server_url(value: Value, path: &str) -> Read<(Url, String)> {
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
    let origin = uri.as_ref().and_then(origin);
    Url::parse(&text).ok().zip(origin).ok_or_else(|| {
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

fn headers(value: Value, path: &str) -> Read<BTreeMap<String, Secret>> {
    let headers = Object.read(value, path)?.rest();
    let headers = headers.into_iter().map(|(name, value)| {
        let at = format!("{path}.{}", haft_core::cut(&name));
        let value = Text.read(value, &at)?;
        if HeaderName::try_from(&name).is_err() || HeaderValue::try_from(&value).is_err() {
            return Err(invalid(
                &at,
                format!("`{at}` is no header that can be sent: check it"),
            ));
        }
        if is_of_the_protocol(&name) {
            let message = format!("`{at}` is not the client's to set: leave it out");
            return Err(invalid(&at, message));
        }
        Ok((name, Secret::new(value)))
    });
    headers.collect()
}

/// Headers by which messages and connections are told apart, and those of the protocol itself.
fn is_of_the_protocol(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "last-event-id",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    let name = name.to_ascii_lowercase();
    NAMES.contains(&name.as_str()) || name.starts_with("mcp-")
}

/// Some of the server's tools: by their names, or by what they do. Gives the value back.
fn filter(value: Value, path: &str) -> Read<(ToolFilter, Value)> {
    let filter = match &value {
        Value::Array(_) => ToolFilter {
            names: Some(ListOf(Text).read(value.clone(), path)?),
            read_only: None,
        },
        Value::Object(_) => {
            let mut fields = Object.read(value.clone(), path)?;
            ToolFilter {
                names: fields.get("tool_names", ListOf(Text))?,
                read_only: fields.get("read_only", Flag)?,
            }
        }
        _ => {
            return Err(wrong_type(
                path,
                "a list of names or an object with `tool_names` and `read_only`",
                &value,
            ));
        }
    };
    Ok((filter, value))
}

/// Which calls need a person's word. Gives the value back.
fn approval(value: Value, path: &str) -> Read<(ApprovalWish, Value)> {
    let wish = match &value {
        Value::String(_) => match Word(&["always", "never"]).read(value.clone(), path)? {
            "never" => ApprovalWish::Never,
            _ => ApprovalWish::Always,
        },
        Value::Object(_) => {
            let mut fields = Object.read(value.clone(), path)?;
            let only = |(filter, _): (ToolFilter, Value)| filter;
            ApprovalWish::By {
                always: fields.get("always", filter)?.map(only),
                never: fields.get("never", filter)?.map(only),
            }
        }
        _ => {
            return Err(wrong_type(
                path,
                "`always`, `never` or an object with those two",
                &value,
            ));
        }
    };
    Ok((wish, value))
}
