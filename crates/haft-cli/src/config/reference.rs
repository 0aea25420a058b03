//! Every table and key of `haft.toml` as Markdown, out of its [`schema`](super::schema).

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::schema::schema;

/// The tables of a configuration, each under a heading of the third level.
pub(crate) fn reference() -> String {
    let mut text = String::new();
    let schema = schema();
    for (key, table) in properties(&schema) {
        match &table["items"] {
            // Beside its own keys it may have sub-tables with names that the user chooses.
            Value::Null if named(table).is_some() && properties(table).next().is_some() => {
                describe(&mut text, key, &format!("[{key}]"), table);
                let path = format!("{key}.NAME");
                describe(
                    &mut text,
                    &path,
                    &format!("[{path}]"),
                    &table["additionalProperties"],
                );
            }
            Value::Null if named(table).is_some() => {
                let path = format!("{key}.NAME");
                describe(&mut text, &path, &format!("[{path}]"), &of_named(table));
            }
            Value::Null => describe(&mut text, key, &format!("[{key}]"), table),
            _ => describe(&mut text, key, &format!("[[{key}]]"), &of_listed(table)),
        }
    }
    text
}

/// Writes a table, and then those within it.
fn describe(text: &mut String, path: &str, heading: &str, table: &Value) {
    let meaning = table["description"].as_str().unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = write!(text, "### `{heading}`\n\n{meaning}\n\n");
    let (inner, keys): (Vec<_>, Vec<_>) = properties(table).partition(|(_, it)| is_table(it));
    if !keys.is_empty() {
        text.push_str("| Key | Type | Default | Meaning |\n|---|---|---|---|\n");
    }
    for (key, schema) in keys {
        let default = match &schema["default"] {
            Value::Null if is_required(table, key) => String::from("must be given"),
            Value::Null => String::from("–"),
            default => format!("`{}`", written(default)),
        };
        let kind = kind(schema);
        let cells = [format!("`{key}`"), kind, default, meaning_of(schema)];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text.push('\n');
    for (key, schema) in inner {
        if named(schema).is_some() {
            let path = format!("{path}.{key}.NAME");
            describe(text, &path, &format!("[{path}]"), &of_named(schema));
        } else if is_listed(schema) {
            let path = format!("{path}.{key}");
            describe(text, &path, &format!("[[{path}]]"), &of_listed(schema));
        } else {
            let path = format!("{path}.{key}");
            describe(text, &path, &format!("[{path}]"), schema);
        }
    }
}

/// The form of its sub-tables, whose names the user chooses.
fn named(schema: &Value) -> Option<&Value> {
    Some(&schema["additionalProperties"]).filter(|it| it["properties"].is_object())
}

/// The same, with the meaning of the whole.
fn of_named(schema: &Value) -> Value {
    let mut table = schema["additionalProperties"].clone();
    if !schema["description"].is_null() {
        table["description"] = schema["description"].clone();
    }
    table
}

/// Whether it is a list of tables.
fn is_listed(schema: &Value) -> bool {
    schema["items"]["properties"].is_object()
}

/// What an entry looks like, with the meaning of the list.
fn of_listed(schema: &Value) -> Value {
    let mut table = schema["items"].clone();
    table["description"] = schema["description"].clone();
    table
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = schema["properties"].as_object();
    properties.into_iter().flat_map(Map::iter)
}

/// Whether it has keys of its own.
fn is_table(schema: &Value) -> bool {
    schema["properties"].is_object() || named(schema).is_some() || is_listed(schema)
}

fn is_required(table: &Value, key: &str) -> bool {
    let required = table["required"].as_array();
    required.is_some_and(|required| required.iter().any(|it| it == key))
}

/// What kind of value it takes, in words.
fn kind(schema: &Value) -> String {
    if let Some(title) = schema["title"].as_str() {
        return title.to_owned();
    }
    let words = words(schema);
    if !words.is_empty() {
        let words: Vec<_> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        return words.join(", ");
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let kinds: Vec<_> = choices.iter().map(kind).collect();
        return kinds.join(" or ");
    }
    match schema["type"].as_str() {
        Some("array") => match &schema["items"] {
            Value::Null => String::from("list"),
            items => format!("list of {}", kind(items)),
        },
        Some("object") => String::from("table"),
        Some(kind) => kind.to_owned(),
        None => String::from("anything"),
    }
}

/// The words that it may be, as TOML writes them, and what each of them means.
fn words(schema: &Value) -> Vec<(String, &str)> {
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    let told = choices.flat_map(|choice| {
        let meaning = choice["description"].as_str().unwrap_or_default();
        let listed = choice["enum"].as_array().into_iter().flatten();
        let word = choice.get("const").into_iter().chain(listed);
        word.map(move |word| (word.to_string(), meaning))
    });
    let listed = schema["enum"].as_array().into_iter().flatten();
    told.chain(listed.map(|word| (word.to_string(), "")))
        .collect()
}

/// What it is for, and what each of its words means.
fn meaning_of(schema: &Value) -> String {
    let mut meaning = schema["description"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let items = &schema["items"];
    for (word, means) in words(schema).into_iter().chain(words(items)) {
        if !means.is_empty() {
            let _ = write!(meaning, " `{word}`: {means}");
        }
    }
    meaning
}

/// The value as TOML writes it.
fn written(value: &Value) -> String {
    match value {
        Value::Array(values) => {
            let values: Vec<_> = values.iter().map(written).collect();
            format!("[{}]", values.join(", "))
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANUAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    const BEGIN: &str = "<!-- begin: haft config reference -->\n";
    const END: &str = "<!-- end: haft config reference -->";

    #[test]
    fn the_manual_tells_what_the_types_say() {
        let manual = std::fs::read_to_string(MANUAL).unwrap();
        let (before, rest) = manual.split_once(BEGIN).expect("where it begins");
        let (told, after) = rest.split_once(END).expect("where it ends");
        let reference = format!("\n{}", reference());
        if told == reference {
            return;
        }
        assert!(
            std::env::var_os("HAFT_RENEW").is_some(),
            "`docs/operations.md` does not tell what the types of the configuration say: renew it with \
             `HAFT_RENEW=1 cargo test -p haft-cli the_manual_tells` and look at the difference"
        );
        std::fs::write(MANUAL, [before, BEGIN, &reference, END, after].concat()).unwrap();
    }

    #[test]
    fn every_key_has_its_line_and_its_meaning() {
        let reference = reference();
        for key in crate::config::keys_of_tables() {
            let is_told = reference.contains(&format!("| `{key}` | "))
                || reference.contains(&format!(".{key}]`\n"))
                || reference.contains(&format!(".{key}]]`\n"));
            assert!(is_told, "`{key}` is missing");
        }
        for line in reference.lines() {
            assert!(!line.ends_with("|  |"), "nothing is said about {line}");
            assert!(!line.contains("[`"), "a link of the sources: {line}");
        }
    }

    #[test]
    fn values_are_told_in_the_words_of_the_file() {
        let reference = reference();
        for line in [
            "| `listen` | address | `\"127.0.0.1:4141\"` |",
            "| `max_age` | duration or `\"none\"` | `\"30d\"` |",
            "| `name` | string | must be given |",
            "| `folders` | list of string or table | – |",
            "| `actions` | list of `\"ignore\"`, `\"warn\"`, `\"terminate\"` | `[\"warn\", \"warn\", \"terminate\"]` |",
            "### `[model.breaker]`",
            "### `[loop.retry]`",
        ] {
            assert!(reference.contains(line), "{line} is not in\n{reference}");
        }
    }
}
