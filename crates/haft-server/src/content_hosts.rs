//! Addresses of images, files, audio and video in a request: the model's provider fetches them, so they must not
//! lead into a private network.

use std::borrow::Cow;
use std::fmt;

use haft_core::{CallOutput, ContentPart, Item};
use haft_mcp::{HostRules, Url};
use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::error::{ApiError, ErrorCode};
use crate::history::Record;

/// The members whose value is an address, or an object with a `url`, or a list of these.
const ADDRESSES: [&str; 4] = ["audio_url", "file_url", "image_url", "video_url"];

/// The members that hold content, for which some providers take an address instead.
const CONTENTS: [&str; 7] = [
    "audio",
    "data",
    "file_data",
    "image",
    "image_urls",
    "images",
    "video",
];

/// The members of a content part in Chat Completions that some providers take an address in.
const OF_PART: [&str; 3] = ["file_id", "uri", "url"];

/// The members of a message that no provider fetches from.
const NOT_FETCHED: [&str; 3] = ["annotations", "text", "name"];

/// The members that declare or call a function: their JSON is the client's or a tool's own, and no provider fetches from
/// it.
const FUNCTIONS: [&str; 6] = [
    "custom",
    "function",
    "function_call",
    "input_schema",
    "parameters",
    "tool_calls",
];

/// The members of a Chat Completions body that bring content.
const OF_CHAT: [&str; 2] = ["messages", "tools"];

/// Rejects items that name an address which is not allowed; `inherited_by` is the field that brought the items
/// that are not in the request itself.
pub(crate) fn check_items<'r>(
    records: impl IntoIterator<Item = &'r Record>,
    inherited_by: &str,
    hosts: &HostRules,
) -> Result<(), ApiError> {
    for record in records {
        let Some(path) = refused_in(&record.item, hosts) else {
            continue;
        };
        let param = match &record.param {
            Some(param) => format!("{param}{path}"),
            None => inherited_by.to_owned(),
        };
        return Err(refused(&param));
    }
    Ok(())
}

/// Rejects declarations of tools that go to the provider as they are and name an address which is not allowed.
pub(crate) fn check_tools(tools: &[Value], hosts: &HostRules) -> Result<(), ApiError> {
    match tools.iter().find_map(|tool| refused_below(tool, hosts)) {
        Some(path) => Err(refused(&format!("tools{path}"))),
        None => Ok(()),
    }
}

/// Rejects a Chat Completions body that names an address which is not allowed. The body is only read, so that it
/// can be passed on byte for byte. Of members that occur twice each is checked: which of them counts is up to the
/// provider.
pub(crate) fn check_chat_body(body: &[u8], hosts: &HostRules) -> Result<(), ApiError> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let path = json.deserialize_map(ChatBody { hosts });
    match path.map_err(|error| ApiError::of_json(&error))? {
        Some(path) => Err(refused(&path)),
        None => Ok(()),
    }
}

fn refused(param: &str) -> ApiError {
    let message = format!(
        "`{param}` has an address that is not allowed: send a `data:` URL or a public `http:` or `https:` address; the \
         operator of this server allows other hosts in `[server] content_hosts`"
    );
    ApiError::new(ErrorCode::InvalidValue, message).at(param)
}

/// The path below an item to an address that is refused.
fn refused_in(item: &Item, hosts: &HostRules) -> Option<String> {
    let (member, parts) = match item {
        Item::Message(message) => ("content", message.content.as_slice()),
        Item::FunctionCallOutput(output) => match &output.output {
            CallOutput::Parts(parts) => ("output", parts.as_slice()),
            CallOutput::Text(_) => return None,
        },
        Item::Other(members) => return refused_below(members, hosts),
        _ => return None,
    };
    parts.iter().enumerate().find_map(|(at, part)| {
        let path = match part {
            ContentPart::InputImage { image_url, .. } => {
                let is_refused = !is_allowed(image_url, hosts);
                is_refused.then(|| ".image_url".to_owned())
            }
            ContentPart::Other(members) => refused_below(members, hosts),
            _ => None,
        };
        Some(format!(".{member}[{at}]{}", path?))
    })
}

/// The path below a value to an address that is refused.
fn refused_below<'v>(value: impl Deserializer<'v>, hosts: &HostRules) -> Option<String> {
    let search = Search {
        hosts,
        meaning: Meaning::Other,
    };
    // A value that is in memory already can be walked to its end.
    search.deserialize(value).ok().flatten()
}

/// The members of a Chat Completions body.
struct ChatBody<'h> {
    hosts: &'h HostRules,
}

impl<'de> Visitor<'de> for ChatBody<'_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = members.next_key_seed(Key)? {
            if found.is_some() || !OF_CHAT.contains(&&*key) {
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            let search = Search {
                hosts: self.hosts,
                meaning: if key == "messages" {
                    Meaning::Part
                } else {
                    Meaning::Other
                },
            };
            let path = members.next_value_seed(search)?;
            found = path.map(|path| format!("{key}{path}"));
        }
        Ok(found)
    }
}

/// Finds the first refused address in a JSON value, and gives the path to it.
#[derive(Clone, Copy)]
struct Search<'h> {
    hosts: &'h HostRules,
    meaning: Meaning,
}

/// What a string is, by the member that holds it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// Something that is not fetched.
    Other,
    /// Something that is not fetched by itself, in a message of Chat Completions.
    Part,
    /// An address.
    Address,
    /// Content or an address.
    Content,
}

impl Meaning {
    /// What the member `key` of an object of this meaning is.
    fn of_member(self, key: &str) -> Self {
        match key {
            key if ADDRESSES.contains(&key) => Self::Address,
            key if CONTENTS.contains(&key) => Self::Content,
            key if self == Self::Part && OF_PART.contains(&key) => Self::Content,
            key if self == Self::Part && !NOT_FETCHED.contains(&key) => Self::Part,
            "uri" | "url" => self,
            _ => Self::Other,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Search<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        let is_refused = match self.meaning {
            Meaning::Other | Meaning::Part => false,
            Meaning::Address => !is_allowed(text, self.hosts),
            Meaning::Content => is_address(text) && !is_allowed(text, self.hosts),
        };
        Ok(is_refused.then(String::new))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut at = 0;
        while let Some(path) = list.next_element_seed(self)? {
            if let Some(path) = path {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(Some(format!("[{at}]{path}")));
            }
            at += 1;
        }
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        while let Some(key) = members.next_key_seed(Key)? {
            if FUNCTIONS.contains(&&*key) {
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            let search = Self {
                meaning: self.meaning.of_member(&key),
                ..self
            };
            if let Some(path) = members.next_value_seed(search)? {
                while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Ok(Some(format!(".{key}{path}")));
            }
        }
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// The name of a member, borrowed where it has no escapes.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Self::Value, D::Error> {
        key.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

/// Whether a text that may be content is an address. Base64 has no colon, and most text that has one is no address.
fn is_address(text: &str) -> bool {
    text.contains(':') && Url::parse(text).is_ok_and(|url| !url.cannot_be_a_base())
}

fn is_allowed(url: &str, hosts: &HostRules) -> bool {
    // Programs disagree about the host of such an address, so what is checked here may not be what is fetched.
    if url.contains(|it: char| it == '\\' || it.is_whitespace() || it.is_control()) {
        return false;
    }
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
            "https://example.com\\@10.0.0.1/a",
            "https://example.com/\ta",
            "a.pdf",
        ] {
            assert_eq!(
                place(file(url)).as_deref(),
                Some(".content[1].file_url"),
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
                ".output[0].image_url",
            ),
            (
                json!({"type": "custom_tool_call_output", "call_id": "c", "output": image}),
                ".output[0].image_url",
            ),
            (
                json!({"type": "computer_call_output", "call_id": "c",
                    "output": {"type": "computer_screenshot", "image_url": private}}),
                ".output.image_url",
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

    fn place_in_chat(body: &str) -> Option<String> {
        let checked = check_chat_body(body.as_bytes(), &HostRules::default());
        checked.err().map(|error| error.param.unwrap_or_default())
    }

    #[test]
    fn addresses_are_found_in_every_form_of_chat() {
        for (part, path) in [
            (
                json!({"image_url": {"url": "http://10.0.0.1/a"}}),
                ".image_url.url",
            ),
            (json!({"image_url": "a.png"}), ".image_url"),
            (
                json!({"video_url": {"url": "http://[::1]/a"}}),
                ".video_url.url",
            ),
            (
                json!({"audio_url": {"url": "file:///etc/passwd"}}),
                ".audio_url.url",
            ),
            (
                json!({"input_audio": {"data": "http://10.0.0.1/a"}}),
                ".input_audio.data",
            ),
            (
                json!({"file": {"file_data": "http://localhost/a"}}),
                ".file.file_data",
            ),
            (
                json!({"file": {"file_url": "http://localhost/a"}}),
                ".file.file_url",
            ),
            (
                json!({"video": ["https://example.com/a", "http://localhost/a"]}),
                ".video[1]",
            ),
        ] {
            let body = json!({"messages": [{"role": "user", "content": [{"text": "x"}, part]}]});
            let expected = format!("messages[0].content[1]{path}");
            assert_eq!(place_in_chat(&body.to_string()), Some(expected), "{body}");
        }
        let tool = r#"{"tools":[{"type":"draw","mask":{"image_url":"http://localhost"}}]}"#;
        let expected = Some("tools[0].mask.image_url".to_owned());
        assert_eq!(place_in_chat(tool), expected);
    }

    #[test]
    fn escapes_and_repeated_members_hide_no_address() {
        let escaped = r#"{"\u006dessages":[{"content":[{"image\u005furl":{"\u0075rl":"http://10.\u0030.0.1"}}]}]}"#;
        assert!(place_in_chat(escaped).is_some());
        let part = r#"{"image_url":"http://10.0.0.1","image_url":"https://example.com"}"#;
        assert!(place_in_chat(&format!(r#"{{"messages":[{{"content":[{part}]}}]}}"#)).is_some());
        let twice = r#"{"messages":[{"image_url":"http://10.0.0.1"}],"messages":[]}"#;
        assert!(place_in_chat(twice).is_some());
    }

    #[test]
    fn what_no_provider_fetches_passes_in_chat() {
        let body = json!({
            "messages": [
                {"role": "user", "content": "http://localhost"},
                {"role": "user", "content": [
                    {"type": "text", "text": "http://localhost", "n": [1, -1, 1.5, true, null]},
                    {"type": "file", "file": {"file_data": "AAAA", "file_id": "f"}},
                    {"type": "file", "file": {"file_data": "note: no address"}},
                    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}},
                    {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                ]},
                {"role": "assistant", "tool_calls": [{"function": {"arguments": {"image_url": "a.png"}}}]},
            ],
            "tools": [{"type": "function", "function": {"parameters": {"examples": [{"image_url": "a.png"}]}}}],
            "metadata": {"image_url": "http://localhost"},
        });
        assert_eq!(place_in_chat(&body.to_string()), None);
    }

    #[test]
    fn definitions_of_tools_are_not_content() {
        let schema = json!({"examples": [{"image_url": "photo.png"}],
            "dependentRequired": {"image_url": ["alt"]},
            "default": {"image": "http://localhost:8080/x.png"}});
        let list = json!({"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s",
            "tools": [{"name": "show", "input_schema": schema}]});
        assert_eq!(place(list), None);
        let found = json!({"type": "tool_search_output", "tools": [
            {"type": "function", "name": "show", "parameters": schema}]});
        assert_eq!(place(found), None);
    }

    #[test]
    fn addresses_in_every_form_of_a_chat_part_are_found() {
        let private = "http://10.0.0.1/a.png";
        for part in [
            json!({"type": "image", "url": private}),
            json!({"type": "image", "source": {"type": "url", "url": private}}),
            json!({"type": "file", "file": {"file_id": private}}),
            json!({"type": "input_audio", "input_audio": {"url": private}}),
            json!({"type": "image_url", "image_url": {"uri": private}}),
            json!({"type": "images", "images": [private]}),
        ] {
            let body = json!({"messages": [{"role": "user", "content": [part]}]}).to_string();
            let error = check_chat_body(body.as_bytes(), &HostRules::default());
            assert!(error.is_err(), "{body}");
        }
        for part in [
            json!({"type": "text", "text": private}),
            json!({"type": "file", "file": {"file_id": "file-123"}}),
            json!({"type": "text", "text": "x", "annotations": [{"url": private}]}),
        ] {
            let body = json!({"messages": [{"role": "user", "content": [part]}]}).to_string();
            check_chat_body(body.as_bytes(), &HostRules::default()).unwrap();
        }
    }
}
