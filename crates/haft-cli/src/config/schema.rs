//! The JSON Schema of `haft.toml`, as the types say that read it.
//!
//! What comes in: the types with their documentation, and the template, which has the defaults of what
//! is filled in only later; a test keeps it true. What goes out: one schema, for editors and for
//! [`reference`](super::reference). TOML has no `null`, so the schema has none.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use toml::Table;

use super::bare_numbers::is_duration;
use super::file::FileConfig;
use crate::init::TEMPLATE;

/// Where defaults end in the template and examples of models begin.
const MODELS: &str = "# ---- Models ----";

/// The schema of a whole configuration.
pub(crate) fn schema() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<FileConfig>()
        .to_value();
    if let Some(schema) = schema.as_object_mut() {
        tidy(schema);
        for (table, keys) in defaults() {
            fill_in(schema, &table, &keys);
        }
        schema.insert("title".into(), "haft.toml".into());
        schema.insert(
            "description".into(),
            "The configuration of `haft serve`.".into(),
        );
    }
    schema
}

/// What holds where nobody says anything, as the template shows it.
fn defaults() -> Table {
    let lines = TEMPLATE.lines().take_while(|line| *line != MODELS);
    let lines = lines.filter(|line| !line.ends_with("# example"));
    let said = lines.map(|line| match line.strip_prefix('#') {
        Some(key) if !key.starts_with([' ', '#']) => key,
        _ => line,
    });
    let said: String = said.flat_map(|line| [line, "\n"]).collect();
    // The template is part of the program, and read in a test.
    toml::from_str(&said).unwrap_or_default()
}

/// Fills in a default, unless the types have said it.
fn fill_in(schema: &mut Map<String, Value>, key: &str, default: &toml::Value) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    let Some(Value::Object(property)) = properties.get_mut(key) else {
        return;
    };
    match default {
        toml::Value::Table(keys) => {
            for (key, default) in keys {
                fill_in(property, key, default);
            }
        }
        default if !property.contains_key("default") => {
            let default = serde_json::to_value(default).unwrap_or_default();
            property.insert("default".into(), default);
        }
        _ => {}
    }
}

/// Leaves out what says nothing to whoever writes TOML: `null`, defaults that are tables of defaults,
/// sizes of integers, and all but the first paragraph of a description.
fn tidy(schema: &mut Map<String, Value>) {
    schema.remove("format");
    if is_duration(schema) {
        // A number without a unit is refused.
        schema.insert("type".into(), "string".into());
    }
    if schema
        .get("default")
        .is_some_and(|it| it.is_null() || it.is_object())
    {
        schema.remove("default");
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        let first = description.split("\n\n").next().unwrap_or_default();
        let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
        // A name, which stands in the sources as if it were code.
        *description = first.replace("`OpenAI`", "OpenAI");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [kind] = types.as_slice() {
            let kind = kind.clone();
            schema.insert("type".into(), kind);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            for (key, value) in only {
                schema.entry(key).or_insert(value);
            }
        }
    }
    let below = ["items", "additionalProperties"];
    let lists = ["anyOf", "oneOf", "prefixItems"];
    for (key, value) in schema.iter_mut() {
        match value {
            Value::Object(schema) if below.contains(&key.as_str()) => tidy(schema),
            Value::Object(schemas) if key == "properties" => {
                schemas
                    .values_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(tidy);
            }
            Value::Array(schemas) if lists.contains(&key.as_str()) => {
                schemas
                    .iter_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(tidy);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_come_from_the_types_and_else_from_the_template() {
        let schema = schema();
        let at = |path: &str| {
            let path = path.replace('.', "/properties/");
            schema.pointer(&format!("/properties/{path}/default"))
        };
        assert_eq!(at("loop.retry.base"), Some(&"500ms".into()));
        assert_eq!(at("server.max_runs"), Some(&256.into()));
        assert_eq!(at("search_files.refresh_seconds"), Some(&10.into()));
        assert_eq!(at("server.default_model"), None);
        assert_eq!(at("loop"), None);
        let model = &schema["properties"]["model"]["items"]["properties"];
        assert_eq!(model["connect_timeout"]["default"], "10s");
        assert_eq!(model["breaker"]["properties"]["longest"]["default"], "2m");
    }

    #[test]
    fn nothing_that_toml_cannot_say_is_in_it() {
        let text = schema().to_string();
        assert!(!text.contains("null") && !text.contains("$ref"), "{text}");
    }
}
