//! `std::http`: the host sends, this decides what and whether.

use super::{Context, Native, give, text_of};
use crate::value::Value;
use crate::vm::{Effect, Failure, HttpRequest, Outcome, Reply};

pub(super) const ALL: &[Native] = &[
    Native::new("std::http::get", (1, 2), |context, a| {
        request(context, "GET", &a[0], None, a.get(1))
    }),
    Native::new("std::http::post", (1, 3), |context, a| {
        request(context, "POST", &a[0], a.get(1), a.get(2))
    }),
    Native::new("std::http::put", (1, 3), |context, a| {
        request(context, "PUT", &a[0], a.get(1), a.get(2))
    }),
    Native::new("std::http::delete", (1, 2), |context, a| {
        request(context, "DELETE", &a[0], None, a.get(1))
    }),
    Native::new("std::http::request", (2, 4), |context, a| {
        let method = text_of("request", &a[0])?.to_uppercase();
        request(context, &method, &a[1], a.get(2), a.get(3))
    }),
];

fn request(
    context: &mut Context<'_>,
    method: &str,
    url: &Value,
    body: Option<&Value>,
    headers: Option<&Value>,
) -> Outcome<Reply> {
    let url = text_of("http", url)?;
    let Some(host) = host(url) else {
        let text = match url.rsplit_once('@') {
            Some((_, rest)) => format!("'…@{rest}' is not an http or https address"),
            None => format!("'{url}' is not an http or https address"),
        };
        return give(Value::result(Err(text)));
    };
    if let Err(denied) = context.machine.permissions.may_ask(host) {
        return give(Value::result(Err(denied)));
    }
    let body = match body {
        None | Some(Value::Nil | Value::None) => None,
        Some(value) => match value.write_json(false, context.meter()) {
            Ok(json) => Some(json),
            Err(failure) => {
                return match *failure {
                    // One that is nested too deep.
                    Failure::Fault(fault) => give(Value::result(Err(fault.text))),
                    other => Err(Box::new(other)),
                };
            }
        },
    };
    let headers = match headers {
        Some(Value::Map(map)) => {
            let mut headers = Vec::new();
            for (name, value) in map.iter() {
                headers.push((name.to_string(), context.meter().shown(value)?.into()));
            }
            headers
        }
        _ => Vec::new(),
    };
    Ok(Reply::Effect(Effect::Http(HttpRequest {
        method: method.to_owned(),
        url: url.to_owned(),
        body,
        headers,
    })))
}

/// The host of an address, without port and without what stands before an `@`.
fn host(url: &str) -> Option<&str> {
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"))?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = rest[..end].rsplit('@').next()?;
    let host = match authority.strip_prefix('[') {
        Some(literal) => literal.split(']').next()?,
        None => authority.split(':').next()?,
    };
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn the_host_is_the_one_that_would_be_asked() {
        assert_eq!(host("https://a.example:8080/x"), Some("a.example"));
        assert_eq!(
            host("http://good.example@evil.example/"),
            Some("evil.example")
        );
        assert_eq!(host("http://[::1]:80/"), Some("::1"));
        assert_eq!(host("file:///etc/passwd"), None);
        assert_eq!(
            host("http://evil.example\\@good.example"),
            Some("evil.example")
        );
    }
}
