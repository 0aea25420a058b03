//! Custom tools as functions: the model writes their free text into the one string argument `input`.

use crate::wire::CustomTool;

/// The JSON schema of the function that stands for a custom tool.
pub(super) fn parameters() -> serde_json::Value {
    serde_json::json!({
        "type": "object",
        "properties": {
            "input": {"type": "string", "description": "The whole input, as plain text."},
        },
        "required": ["input"],
        "additionalProperties": false,
    })
}

/// The description of that function: the custom tool's own, what the argument holds, and the grammar.
pub(super) fn description(custom: &CustomTool) -> String {
    let own = custom.description.as_deref().unwrap_or_default();
    let own = without_json_ban(own);
    let own = own.trim();
    let call = "Put the whole text, unchanged, into the string argument `input`: without quotes, code fences or \
                JSON of its own around it.";
    let mut description = if own.is_empty() {
        call.to_owned()
    } else {
        format!("{own}\n\n{call}")
    };
    if let Some((syntax, definition)) = &custom.grammar {
        description.push_str("\n\nThe text in `input` must follow this grammar (");
        description.push_str(syntax);
        description.push_str("):\n");
        description.push_str(definition);
    }
    description
}

/// Leaves out the sentences that forbid JSON around the input, such as the one of Codex's `apply_patch`: "This is a
/// FREEFORM tool, so do not wrap the patch in JSON." A model that obeyed them could not call the function.
fn without_json_ban(description: &str) -> String {
    let sentences = sentences(description);
    sentences
        .filter(|sentence| !forbids_json(sentence))
        .collect()
}

fn forbids_json(sentence: &str) -> bool {
    const BANS: [&str; 8] = [
        "not json",
        "no json",
        "not as json",
        "not in json",
        "never json",
        "without json",
        "instead of json",
        "rather than json",
    ];
    let sentence = sentence.to_lowercase().replace('`', "");
    let has = |text: &str| sentence.contains(text);
    let is_negated = ["not ", "n't ", "n’t ", "never "].into_iter().any(has);
    let is_about_wrapping = ["wrap", "encode", "escape", "enclose"].into_iter().any(has);
    has("json") && (BANS.into_iter().any(has) || is_negated && is_about_wrapping)
}

/// The sentences of a text, each with the blanks behind it; a line break ends one, too.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut chars = rest.char_indices().peekable();
        let mut end = rest.len();
        while let Some((at, char)) = chars.next() {
            let is_before_blank = chars.peek().is_some_and(|(_, next)| next.is_whitespace());
            if char == '\n' || matches!(char, '.' | '!' | '?') && is_before_blank {
                end = at + char.len_utf8();
                break;
            }
        }
        let behind = &rest[end..];
        end += behind.len() - behind.trim_start().len();
        let (sentence, others) = rest.split_at(end);
        rest = others;
        Some(sentence)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(description: &str, grammar: Option<(&str, &str)>) -> String {
        super::description(&CustomTool {
            name: "apply_patch".into(),
            description: Some(description.into()),
            grammar: grammar.map(|(syntax, text)| (syntax.into(), text.into())),
            defer_loading: false,
        })
    }

    #[test]
    fn ban_on_json_gives_way_to_the_argument_that_holds_the_text() {
        let codex = "Use the `apply_patch` tool to edit files. This is a FREEFORM tool, so do not wrap the patch in JSON.";
        let text = described(codex, Some(("lark", "start: \"*** Begin Patch\"")));
        assert!(
            text.starts_with("Use the `apply_patch` tool to edit files.\n\nPut the whole text")
        );
        assert!(!text.contains("FREEFORM"), "{text}");
        assert!(text.contains("string argument `input`"), "{text}");
        assert!(
            text.ends_with("grammar (lark):\nstart: \"*** Begin Patch\""),
            "{text}"
        );
    }

    #[test]
    fn other_sentences_about_json_stay() {
        for (given, left) in [
            (
                "Sends raw source, not JSON, to the shell.\nOne script per call.",
                "One script per call.",
            ),
            (
                "Don't encode it as `JSON`! It is v1.2 text.",
                "It is v1.2 text.",
            ),
            (
                "Edits JSON files. Do not leave comments in JSON.",
                "Edits JSON files. Do not leave comments in JSON.",
            ),
            ("Reads JSON", "Reads JSON"),
        ] {
            assert_eq!(without_json_ban(given), left);
        }
    }

    #[test]
    fn tool_without_a_description_says_where_the_text_goes() {
        assert!(described("", None).starts_with("Put the whole text"));
    }
}
