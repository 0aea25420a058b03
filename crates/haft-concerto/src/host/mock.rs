//! The mock provider (§15): answers offline, always the same.

use serde_json::{Map, Value as Json, json};

/// What the mock provider answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MockReply {
    /// The text.
    pub text: String,
    /// The bytes of the prompt.
    pub tokens_in: i64,
    /// Always 42.
    pub tokens_out: i64,
}

/// The answer to the last user message, with a JSON Schema if the answer must have one.
pub fn mock_reply(prompt: &str, schema: Option<&Json>) -> MockReply {
    let text = match schema {
        None => {
            let start: String = prompt.chars().take(50).collect();
            format!("[mock response to: {start}]")
        }
        Some(schema) => example(schema, "value", 0).to_string(),
    };
    MockReply {
        text,
        tokens_in: i64::try_from(prompt.len()).unwrap_or(i64::MAX),
        tokens_out: 42,
    }
}

/// A value that has a schema. `name` is the field that it is for.
fn example(schema: &Json, name: &str, depth: usize) -> Json {
    if let Some(first) = schema
        .get("enum")
        .and_then(Json::as_array)
        .and_then(|all| all.first())
    {
        return first.clone();
    }
    if let Some(options) = schema
        .get("anyOf")
        .or_else(|| schema.get("oneOf"))
        .and_then(Json::as_array)
    {
        let not_null = options
            .iter()
            .find(|option| option.get("type") != Some(&json!("null")));
        return not_null.map_or(Json::Null, |option| example(option, name, depth));
    }
    let kind = match schema.get("type") {
        Some(Json::String(kind)) => kind.as_str(),
        Some(Json::Array(kinds)) => kinds
            .iter()
            .filter_map(Json::as_str)
            .find(|kind| *kind != "null")
            .unwrap_or("null"),
        _ => "object",
    };
    match kind {
        "string" => json!(format!("[mock {name}]")),
        "integer" => json!(0),
        "number" => json!(0.0),
        "boolean" => json!(false),
        "array" if depth < 32 => {
            let items = schema
                .get("items")
                .cloned()
                .unwrap_or_else(|| json!({"type": "string"}));
            json!([example(&items, &format!("{name} item"), depth + 1)])
        }
        "object" if depth < 32 => {
            let mut members = Map::new();
            if let Some(Json::Object(properties)) = schema.get("properties") {
                for (name, property) in properties {
                    members.insert(name.clone(), example(property, name, depth + 1));
                }
            }
            Json::Object(members)
        }
        _ => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_cut_after_fifty_characters_not_bytes() {
        let prompt = "ä".repeat(60);
        let reply = mock_reply(&prompt, None);
        assert_eq!(
            reply.text,
            format!("[mock response to: {}]", "ä".repeat(50))
        );
        assert_eq!(reply.tokens_in, 120);
        assert_eq!(reply.tokens_out, 42);
    }

    #[test]
    fn a_schema_is_answered_field_by_field() {
        let schema = json!({"type": "object", "properties": {
            "title": {"type": "string"}, "urgency": {"type": "string", "enum": ["low", "high"]},
            "points": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}},
            "extra": {"type": "object"}}});
        let text = mock_reply("x", Some(&schema)).text;
        let expected = json!({"title": "[mock title]", "urgency": "low", "points": 0,
            "tags": ["[mock tags item]"], "extra": {}});
        assert_eq!(serde_json::from_str::<Json>(&text).ok(), Some(expected));
    }
}
