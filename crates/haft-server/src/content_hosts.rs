//! Addresses of images, files and videos in a request: the model's provider fetches them, so they must not lead
//! into anybody's private network.

use haft_core::{CallOutput, ContentPart, Item};
use haft_mcp::{HostRules, Url};
use serde_json::{Map, Value};

use crate::error::{ApiError, ErrorCode};
use crate::history::Record;

/// The members that hold such an address.
const MEMBERS: [&str; 3] = ["file_url", "image_url", "video_url"];

/// Refuses items, and declarations of tools that go to the provider as they are, that name an address which
/// nobody may have fetched.
pub(crate) fn check_addresses(
    records: &[Record],
    tools: &[Value],
    hosts: &HostRules,
) -> Result<(), ApiError> {
    check_items(records, hosts)?;
    check_tools(tools, hosts)
}

fn check_items(records: &[Record], hosts: &HostRules) -> Result<(), ApiError> {
    for record in records {
        let Some(at) = refused_in(&record.item, hosts) else {
            continue;
        };
        let param = match &record.param {
            Some(param) => format!("{param}.{at}"),
            None => "previous_response_id".to_owned(),
        };
        return Err(refused(&param));
    }
    Ok(())
}

fn check_tools(tools: &[Value], hosts: &HostRules) -> Result<(), ApiError> {
    for tool in tools {
        if let Some(at) = refused_below(tool, hosts, "") {
            return Err(refused(&format!("tools.{at}")));
        }
    }
    Ok(())
}

fn refused(param: &str) -> ApiError {
    let message = format!(
        "`{param}` is not an allowed address: send a `data:` URL or a public `http:` or `https:` address; the \
         operator of this server allows other hosts in `[server] content_hosts`"
    );
    ApiError::new(ErrorCode::InvalidValue, message).at(param)
}

/// Where in an item an address stands that is refused.
fn refused_in(item: &Item, hosts: &HostRules) -> Option<String> {
    let (member, parts) = match item {
        Item::Message(message) => ("content", message.content.as_slice()),
        Item::FunctionCallOutput(output) => match &output.output {
            CallOutput::Parts(parts) => ("output", parts.as_slice()),
            CallOutput::Text(_) => return None,
        },
        Item::Other(members) => return refused_member(members, hosts, ""),
        _ => return None,
    };
    parts.iter().enumerate().find_map(|(at, part)| {
        let place = format!("{member}[{at}]");
        match part {
            ContentPart::InputImage { image_url, .. } => {
                let is_refused = !is_allowed(image_url, hosts);
                is_refused.then(|| format!("{place}.image_url"))
            }
            ContentPart::Other(members) => refused_member(members, hosts, &place),
            _ => None,
        }
    })
}

fn refused_member(members: &Map<String, Value>, hosts: &HostRules, path: &str) -> Option<String> {
    members.iter().find_map(|(key, value)| {
        let place = match path {
            "" => key.clone(),
            path => format!("{path}.{key}"),
        };
        match value {
            Value::String(url) if MEMBERS.contains(&key.as_str()) => {
                (!is_allowed(url, hosts)).then_some(place)
            }
            value => refused_below(value, hosts, &place),
        }
    })
}

fn refused_below(value: &Value, hosts: &HostRules, path: &str) -> Option<String> {
    match value {
        Value::Object(members) => refused_member(members, hosts, path),
        Value::Array(values) => values.iter().enumerate().find_map(|(at, value)| {
            let place = format!("{path}[{at}]");
            refused_below(value, hosts, &place)
        }),
        _ => None,
    }
}

fn is_allowed(url: &str, hosts: &HostRules) -> bool {
    let is_data = url
        .get(..5)
        .is_some_and(|it| it.eq_ignore_ascii_case("data:"));
    is_data || Url::parse(url).is_ok_and(|url| hosts.admits_unresolved(&url))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn place(item: Value) -> Option<String> {
        let item = serde_json::from_value(item).unwrap();
        refused_in(&item, &HostRules::default())
    }

    fn file(url: &str) -> Value {
        json!({"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "read this"},
            {"type": "input_file", "file_url": url},
        ]})
    }

    #[test]
    fn only_public_addresses_and_data_pass() {
        for url in [
            "https://example.com/a.pdf",
            "http://8.8.8.8/a.pdf",
            "HTTPS://Example.com:8443/a.pdf",
            "data:application/pdf;base64,AAAA",
        ] {
            assert_eq!(place(file(url)), None, "{url}");
        }
        for url in [
            "file:///etc/passwd",
            "ftp://example.com/a",
            "http://127.0.0.1/a",
            "http://2130706433/a",
            "http://[::1]/a",
            "http://169.254.169.254/latest/meta-data",
            "https://10.0.0.7/a",
            "https://localhost/a",
            "https://printer.local/a",
            "http://metadata.google.internal/a",
            "http://intranet/a",
            "https://user:password@example.com/a",
            "a.pdf",
        ] {
            assert_eq!(
                place(file(url)).as_deref(),
                Some("content[1].file_url"),
                "{url}"
            );
        }
    }

    #[test]
    fn addresses_are_found_in_every_kind_of_item() {
        let private = "http://192.168.1.1/screen.png";
        let image = json!([{"type": "input_image", "image_url": private}]);
        for (item, expected) in [
            (
                json!({"type": "function_call_output", "call_id": "c", "output": image}),
                "output[0].image_url",
            ),
            (
                json!({"type": "custom_tool_call_output", "call_id": "c", "output": image}),
                "output[0].image_url",
            ),
            (
                json!({"type": "computer_call_output", "call_id": "c",
                    "output": {"type": "computer_screenshot", "image_url": private}}),
                "output.image_url",
            ),
        ] {
            assert_eq!(place(item).as_deref(), Some(expected));
        }
        let mask = json!({"type": "image_generation", "input_image_mask": {"image_url": private}});
        let error = check_tools(&[mask], &HostRules::default()).unwrap_err();
        assert_eq!(
            error.param.as_deref(),
            Some("tools.input_image_mask.image_url")
        );
    }

    #[test]
    fn an_origin_that_the_operator_lists_passes() {
        let hosts = HostRules::new(["http://192.168.1.1"]).unwrap();
        assert!(is_allowed("http://192.168.1.1/a.png", &hosts));
        assert!(!is_allowed("https://example.com/a.png", &hosts));
    }
}
