//! Tool types that a Responses server turned out not to support.
//!
//! Nothing in the protocol lists what a server supports, and a request of our own to find out would cost the
//! operator money. So haft learns from the errors of the requests that clients send anyway.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use haft_core::{ModelError, ModelErrorKind, PROVIDER_TOOL_TYPES, ProviderOptions, ProviderTools};
use serde_json::Value;

/// The code of an error about a tool type that the server does not support.
const UNSUPPORTED_TOOL: &str = "unsupported_tool";

/// The types that a server rejected, shared by all requests to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RejectedTools(Arc<RwLock<BTreeSet<&'static str>>>);

impl RejectedTools {
    /// These types without the rejected ones.
    pub(crate) fn remove_from(&self, types: ProviderTools) -> ProviderTools {
        let rejected = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if rejected.is_empty() {
            return types;
        }
        types.difference(&rejected.iter().copied().collect())
    }

    /// Marks an error that rejects tool types and remembers them. Returns those that were not known yet.
    pub(crate) fn learn(
        &self,
        error: &mut ModelError,
        options: &ProviderOptions,
        body: &[u8],
    ) -> Vec<&'static str> {
        let is_rejection =
            error.kind == ModelErrorKind::InvalidRequest && matches!(error.status, Some(400 | 422));
        if !is_rejection {
            return Vec::new();
        }
        let types = rejected_types(&error.message, options, body);
        if types.is_empty() {
            return types;
        }
        error.code = Some(UNSUPPORTED_TOOL.to_owned());
        let mut rejected = self.0.write().unwrap_or_else(PoisonError::into_inner);
        types.into_iter().filter(|it| rejected.insert(it)).collect()
    }
}

/// The types of a request that a server's message says it does not support. Only what it says in its own words
/// counts: one that quotes the request must not let a client switch a tool off for others.
fn rejected_types(message: &str, options: &ProviderOptions, body: &[u8]) -> Vec<&'static str> {
    let message = plain(message);
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let model = plain(request["model"].as_str().unwrap_or_default());
    let own_phrase = |phrase: &str| {
        let is_quoted = || letters(&String::from_utf8_lossy(body)).contains(&letters(phrase));
        behind_phrase(&message, phrase).any(|after| !is_conditional(after, &model)) && !is_quoted()
    };
    // llama.cpp, about everything that is not a function.
    let rejects_all = || own_phrase("type of tool must be function");
    let declared = || {
        PROVIDER_TOOL_TYPES
            .into_iter()
            .filter(|it| is_declared(it, options))
    };
    let is_named = |tool_type: &&str| phrases(tool_type, &message).iter().any(|it| own_phrase(it));
    let named: Vec<_> = declared().filter(is_named).collect();
    if named.is_empty() && rejects_all() {
        return declared().collect();
    }
    named
}

/// What servers say about a type that they do not support, in plain form.
fn phrases(tool_type: &str, message: &str) -> Vec<String> {
    let mut phrases = vec![
        format!("tool {tool_type} is not supported"),
        format!("tool type {tool_type} is not supported"),
        format!("unsupported tool {tool_type}"),
        format!("unsupported tool type {tool_type}"),
        format!("unsupported responses tool type {tool_type}"),
        format!("unknown tool type {tool_type}"),
        format!("invalid tool type {tool_type}"),
    ];
    // OpenAI lists the values that are possible: types of tools have this one among them, and those of `tool_choice`
    // `allowed_tools` too. A choice that is not possible says nothing about the tool.
    let is_about_types = message.split_once("supported values are");
    if is_about_types.is_some_and(|(_, values)| {
        has_phrase(values, "function") && !has_phrase(values, "allowed_tools")
    }) {
        phrases.push(format!("invalid value {tool_type}"));
    }
    phrases
}

/// Whether a request declares a tool of this type, without a date: what is learnt of a dated version would say
/// too much about the others.
fn is_declared(tool_type: &str, options: &ProviderOptions) -> bool {
    let mut forms = options.forms.values();
    match tool_type {
        "custom" => forms.any(|form| form.custom.is_some()),
        "namespace" => forms.any(|form| form.namespace.is_some()),
        _ => options.tools.iter().any(|tool| tool["type"] == tool_type),
    }
}

/// A text in lower case, without quotes and colons, and with single blanks.
fn plain(text: &str) -> String {
    let text = text.to_lowercase().replace(['\'', '"', '`', '\\', ':'], "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The letters, digits and underscores of a JSON text, in lower case. However a server quotes a request, these
/// stay in their order.
fn letters(json: &str) -> String {
    let mut letters = String::new();
    let mut chars = json.chars();
    while let Some(char) = chars.next() {
        if char == '\\' {
            // An escape is no letter: a quote, a backslash, a line break or another control character.
            let digits = if chars.next() == Some('u') { 4 } else { 0 };
            chars.by_ref().take(digits).for_each(drop);
        } else if char.is_alphanumeric() || char == '_' {
            letters.extend(char.to_lowercase());
        }
    }
    letters
}

/// Whether a text has these words, and not as parts of longer ones.
fn has_phrase(text: &str, phrase: &str) -> bool {
    behind_phrase(text, phrase).next().is_some()
}

/// What follows each occurrence of these words.
fn behind_phrase<'t>(text: &'t str, phrase: &'t str) -> impl Iterator<Item = &'t str> {
    let in_word = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    text.match_indices(phrase).filter_map(move |(at, _)| {
        let (before, after) = (&text[..at], &text[at + phrase.len()..]);
        let is_whole = !in_word(before.chars().next_back()) && !in_word(after.chars().next());
        is_whole.then_some(after)
    })
}

/// Whether what follows a rejection limits it to some requests, such as those with a certain `reasoning.effort`. The model
/// of the request is no such limit: each entry has one.
fn is_conditional(after: &str, model: &str) -> bool {
    let mut words = after.split_whitespace();
    match words.next() {
        Some("with") => words
            .next()
            .is_none_or(|word| word.trim_end_matches(['.', ',']) != model),
        Some(word) => ["when", "if", "in", "together", "unless", "while"].contains(&word),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn options() -> ProviderOptions {
        ProviderOptions {
            tools: Arc::new([
                json!({"type": "web_search"}),
                json!({"type": "local_shell"}),
            ]),
            ..ProviderOptions::default()
        }
    }

    fn learned(message: &str, body: &str) -> Vec<&'static str> {
        let mut error = ModelError::new(ModelErrorKind::InvalidRequest, message).with_status(400);
        let learned = RejectedTools::default().learn(&mut error, &options(), body.as_bytes());
        let is_marked = error.code.as_deref() == Some(UNSUPPORTED_TOOL);
        assert_eq!(is_marked, !learned.is_empty(), "{message}");
        learned
    }

    #[test]
    fn rejections_of_known_servers_name_their_tool_type() {
        for message in [
            "Hosted tool 'web_search' is not supported with gpt-x.",
            "Unsupported tool type: web_search",
            "Unsupported Responses tool type: 'web_search'",
            "Invalid value: 'web_search'. Supported values are: 'function' and 'mcp'.",
        ] {
            let body = r#"{"model": "gpt-x"}"#;
            assert_eq!(learned(message, body), ["web_search"], "{message}");
        }
        for message in [
            "Tool 'web_search' is not supported with reasoning.effort 'minimal'.",
            "Tool 'web_search' is not supported when streaming.",
            "Invalid value: 'web_search'. Supported values are: 'allowed_tools', 'function'.",
        ] {
            let body = r#"{"model": "gpt-x"}"#;
            assert!(learned(message, body).is_empty(), "{message}");
        }
        let all = learned("'type' of tool must be 'function'", "{}");
        assert_eq!(all, ["local_shell", "web_search"]);
    }

    #[test]
    fn other_errors_teach_nothing() {
        for message in [
            "Invalid `user_location` of `web_search`",
            "Unsupported tool type: web_search_preview",
            "Unsupported tool type: shell",
            "Unsupported tool type: code_interpreter",
            "Invalid value: 'web_search'. Supported values are: 'auto'.",
            "Parameter `filters` of web_search is not supported",
        ] {
            assert!(learned(message, "{}").is_empty(), "{message}");
        }
    }

    #[test]
    fn words_of_the_request_teach_nothing() {
        let message = "cannot parse `Unsupported tool type: web_search`";
        assert_eq!(learned(message, "{}"), ["web_search"]);
        for body in [
            json!({"input": "unsupported tool type: \"web_search\""}),
            json!({"input": "Unsupported\ntool\u{1} type \t web_search"}),
            json!({"input": "u\\nsupported tool type web_search"}),
            json!({"unsupported tool type": "web_search"}),
        ] {
            let body = body.to_string();
            assert!(learned(message, &body).is_empty(), "{body}");
        }
    }

    #[test]
    fn types_are_reported_once_and_removed() {
        let rejected = RejectedTools::default();
        let mut error = ModelError::new(
            ModelErrorKind::InvalidRequest,
            "unsupported tool web_search",
        )
        .with_status(422);
        assert_eq!(
            rejected.learn(&mut error, &options(), b"{}"),
            ["web_search"]
        );
        assert!(rejected.learn(&mut error, &options(), b"{}").is_empty());
        let left = rejected.clone().remove_from(ProviderTools::all());
        assert!(!left.contains("web_search") && left.contains("web_search_preview"));
        error.status = Some(500);
        let other = RejectedTools::default();
        assert!(other.learn(&mut error, &options(), b"{}").is_empty());
    }
}
