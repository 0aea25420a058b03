//! The header `haft-warning`: what of a request has no effect, by name.

use axum::http::HeaderValue;
use axum::response::Response;

/// The name of the header.
const HEADER: &str = "haft-warning";

/// How many names are listed.
const MAX_NAMES: usize = 20;

/// How long a name may be.
const MAX_LENGTH: usize = 64;

/// Reports tool types and parameters without effect in a response.
pub(super) fn report(response: &mut Response, tool_types: &[String], parameters: &[String]) {
    let lists = [
        ("ignored tool type", tool_types),
        ("ignored parameter", parameters),
    ];
    let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
    let lists = lists.map(|(heading, names)| format!("{heading} {}", listed(names)));
    let text = lists.collect::<Vec<_>>().join("; ");
    if let Ok(value) = HeaderValue::from_str(&text)
        && !text.is_empty()
    {
        response.headers_mut().insert(HEADER, value);
    }
}

/// Logs the parameters without effect, once per request.
pub(super) fn log(parameters: &[String]) {
    if !parameters.is_empty() {
        let parameters = listed(parameters);
        tracing::info!(parameters, "ignoring request parameters");
    }
}

/// Names as a header and a log can hold them: they come from the client.
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(MAX_NAMES).map(|name| {
        if name.is_empty() {
            return "\"\"".to_owned();
        }
        let chars = name.chars().take(MAX_LENGTH);
        chars
            .map(|char| match char {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '.' | ':' | '[' | ']' => char,
                _ => '?',
            })
            .collect()
    });
    let mut shown: Vec<String> = shown.collect();
    if names.len() > MAX_NAMES {
        shown.push(format!("{} more", names.len() - MAX_NAMES));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_clients_cannot_break_the_header() {
        let names = ["a\r\nb: c", "é,", &"x".repeat(100)].map(str::to_owned);
        assert_eq!(
            listed(&names),
            format!("a??b:?c, ??, {}", "x".repeat(MAX_LENGTH))
        );
        let names = ["", "a"].map(str::to_owned);
        assert_eq!(listed(&names), "\"\", a");
        let many: Vec<_> = (0..25).map(|number| format!("p{number}")).collect();
        assert!(listed(&many).ends_with("p19, 5 more"));
    }
}
