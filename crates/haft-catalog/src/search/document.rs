//! The text of a tool, part by part, each with its weight (`tool-selection.md` §5).

use serde_json::{Map, Value};

use super::searchable::Searchable;

/// How often a part counts, in quarters: what is of little weight counts less than once.
pub(super) const UNIT: u32 = 4;
const NAME: u32 = 3 * UNIT;
const TEXT: u32 = UNIT;
const LITTLE: u32 = 1;

/// How much of a description and of all parameters together is read, in characters.
const MAX_DESCRIPTION: usize = 600;
const MAX_PARAMETERS: usize = 2_000;
/// How deep schemas are followed; what lies deeper is never what a tool is about.
const MAX_DEPTH: usize = 16;

/// Hands out each part of a tool's text with its weight.
pub(super) fn each_part(tool: &dyn Searchable, mut take: impl FnMut(&str, u32)) {
    take(tool.name(), NAME);
    if let Some(raw) = tool.raw_name()
        && !tool.name().ends_with(raw)
    {
        take(raw, TEXT);
    }
    if let Some(title) = tool.title() {
        take(title, TEXT);
    }
    if let Some(description) = tool.description() {
        take(beginning(description, MAX_DESCRIPTION), TEXT);
    }
    for tag in tool.tags() {
        take(tag, LITTLE);
    }
    if let Some(section) = tool.section() {
        take(&section.title, LITTLE);
        take(beginning(&section.summary, MAX_DESCRIPTION), LITTLE);
    }
    if let Some(parameters) = tool.parameters() {
        let mut left = MAX_PARAMETERS;
        each_parameter(parameters, MAX_DEPTH, &mut |text| {
            let text = beginning(text, left);
            left -= text.chars().count();
            take(text, TEXT);
        });
    }
}

/// The first so many characters.
pub(super) fn beginning(text: &str, chars: usize) -> &str {
    if text.len() <= chars {
        return text;
    }
    text.char_indices()
        .nth(chars)
        .map_or(text, |(end, _)| &text[..end])
}

/// Names, descriptions and permitted words of parameters, through `properties` and `items`.
fn each_parameter(schema: &Map<String, Value>, depth: usize, take: &mut impl FnMut(&str)) {
    if depth == 0 {
        return;
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, property) in properties {
            take(name);
            each_described(property, depth, take);
        }
    }
    if let Some(items) = schema.get("items") {
        each_described(items, depth, take);
    }
}

fn each_described(value: &Value, depth: usize, take: &mut impl FnMut(&str)) {
    let Value::Object(schema) = value else {
        return;
    };
    if let Some(Value::String(description)) = schema.get("description") {
        take(description);
    }
    if let Some(Value::Array(members)) = schema.get("enum") {
        members
            .iter()
            .filter_map(Value::as_str)
            .for_each(&mut *take);
    }
    each_parameter(schema, depth - 1, take);
}

#[cfg(test)]
mod tests {
    use haft_core::ToolDefinition;
    use serde_json::json;

    use super::*;
    use crate::search::searchable::{PlacedTool, SearchSection};

    fn parts(tool: &dyn Searchable) -> Vec<(String, u32)> {
        let mut parts = Vec::new();
        each_part(tool, |text, weight| parts.push((text.to_owned(), weight)));
        parts
    }

    #[test]
    fn a_tool_is_its_name_its_texts_and_its_parameters_all_the_way_down() {
        let definition = ToolDefinition::from_json(json!({
            "type": "function",
            "name": "book",
            "description": "Books seats.",
            "parameters": {"type": "object", "properties": {
                "class": {"type": "string", "enum": ["economy", "business"]},
                "guests": {"type": "array", "items": {
                    "type": "object", "description": "one guest",
                    "properties": {"meal": {"type": "string", "description": "what to eat"}}
                }}
            }},
            "annotations": {"title": "Booking", "tags": ["travel"]}
        }))
        .unwrap();
        let section = SearchSection {
            key: "air".into(),
            title: "Flights".into(),
            summary: "All about flying".into(),
        };
        let tool = PlacedTool::new(definition).in_section(section);
        let expected = [
            ("book", 12),
            ("Booking", 4),
            ("Books seats.", 4),
            ("travel", 1),
            ("Flights", 1),
            ("All about flying", 1),
            ("class", 4),
            ("economy", 4),
            ("business", 4),
            ("guests", 4),
            ("one guest", 4),
            ("meal", 4),
            ("what to eat", 4),
        ];
        let expected: Vec<_> = expected
            .map(|(text, weight)| (text.to_owned(), weight))
            .into();
        assert_eq!(parts(&tool), expected);
    }

    #[test]
    fn nobody_drowns_others_in_text() {
        let long = "wörd ".repeat(500);
        let definition = ToolDefinition::builder("t")
            .description(&long)
            .parameters(json!({"type": "object", "properties": {
                "a": {"description": long}, "b": {"description": long}
            }}))
            .build()
            .unwrap();
        let lengths: Vec<_> = parts(&*definition)
            .into_iter()
            .map(|(text, _)| text.chars().count())
            .collect();
        assert_eq!(lengths, [1, 600, 1, 1999, 0, 0]);
    }
}
