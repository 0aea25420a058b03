//! One field of a form: what is shown of it, and what a line means for it.

use serde_json::{Map, Value, json};

use crate::text::one_line;

/// How much of a name, a value or a description is shown.
const SHOWN_CHARS: usize = 400;

/// A field.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    /// What stands there if nothing is said.
    pub(super) default: Option<Value>,
    about: Vec<String>,
    is_required: bool,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Text,
    Number,
    Integer,
    YesNo,
    OneOf(Vec<Choice>),
    SomeOf(Vec<Choice>),
}

/// Something to choose, and what it is called.
#[derive(Debug, Clone, PartialEq)]
struct Choice {
    value: Value,
    label: Option<String>,
}

/// What a line means.
#[derive(Debug, PartialEq)]
pub(super) enum Read {
    Value(Value),
    /// Nothing was said, which is fine.
    Nothing,
    /// Nothing was said, and there must be something.
    Missing,
    /// Not this, because.
    Wrong(String),
}

/// The fields of a form, in its order.
pub(super) fn read_all(schema: &Map<String, Value>) -> Vec<Field> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|it| it.iter().any(|it| it == name));
    let fields = schema.get("properties").and_then(Value::as_object);
    let fields = fields.into_iter().flatten();
    fields
        .map(|(name, field)| Field {
            name: name.clone(),
            default: field.get("default").cloned(),
            about: ["title", "description"]
                .into_iter()
                .filter_map(|key| field.get(key)?.as_str().map(str::to_owned))
                .collect(),
            is_required: is_required(name),
            kind: kind(field),
        })
        .collect()
}

fn kind(field: &Value) -> Kind {
    if let Some(choices) = choices(field) {
        return Kind::OneOf(choices);
    }
    match field.get("type").and_then(Value::as_str) {
        Some("boolean") => Kind::YesNo,
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Number,
        Some("array") => match field.get("items").and_then(choices) {
            Some(choices) => Kind::SomeOf(choices),
            None => Kind::Text,
        },
        _ => Kind::Text,
    }
}

/// What can be chosen, as the revisions of the protocol write it.
fn choices(field: &Value) -> Option<Vec<Choice>> {
    let list = |key: &str| field.get(key).and_then(Value::as_array);
    if let Some(values) = list("enum") {
        let labels = list("enumNames");
        let label = |at: usize| labels?.get(at)?.as_str().map(str::to_owned);
        let choices = values.iter().enumerate().map(|(at, value)| Choice {
            value: value.clone(),
            label: label(at),
        });
        return Some(choices.collect());
    }
    let titled = list("oneOf").or_else(|| list("anyOf"))?;
    let choice = |it: &Value| {
        Some(Choice {
            value: it.get("const")?.clone(),
            label: it.get("title").and_then(Value::as_str).map(str::to_owned),
        })
    };
    titled.iter().map(choice).collect()
}

impl Choice {
    fn shown(&self) -> String {
        match &self.label {
            Some(label) => format!("{} ({label})", plain(&self.value)),
            None => plain(&self.value),
        }
    }

    fn is_called(&self, word: &str) -> bool {
        plain(&self.value) == word || self.label.as_deref() == Some(word)
    }
}

/// A value as somebody would type it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => String::from("yes"),
        Value::Bool(false) => String::from("no"),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

impl Field {
    /// What its server says about it, and what can be chosen.
    pub(super) fn told(&self) -> Vec<String> {
        let mut told = Vec::new();
        if !self.about.is_empty() {
            let about = one_line(&self.about.join(": "), SHOWN_CHARS);
            told.push(format!("  {}: {about}", one_line(&self.name, 64)));
        }
        if let Kind::OneOf(choices) | Kind::SomeOf(choices) = &self.kind {
            let choices = choices
                .iter()
                .map(|it| format!("    {}", one_line(&it.shown(), SHOWN_CHARS)));
            told.extend(choices);
        }
        told
    }

    pub(super) fn prompt(&self) -> String {
        let name = one_line(&self.name, 64);
        let kind = match &self.kind {
            Kind::Text => "text",
            Kind::Number => "a number",
            Kind::Integer => "a whole number",
            Kind::YesNo => "yes or no",
            Kind::OneOf(_) => "one of these",
            Kind::SomeOf(_) => "some of these, with commas",
        };
        let nothing = match (&self.default, self.is_required) {
            (Some(default), _) => format!(" [{}]", one_line(&plain(default), 64)),
            (None, true) => String::new(),
            (None, false) => String::from(" [may be empty]"),
        };
        format!("  {name} ({kind}){nothing}: ")
    }

    pub(super) fn read(&self, line: &str) -> Read {
        if line.is_empty() {
            return if self.is_required && self.default.is_none() {
                Read::Missing
            } else {
                Read::Nothing
            };
        }
        let read = match &self.kind {
            Kind::Text => Ok(json!(line)),
            Kind::Integer => match (line.parse::<i64>(), line.parse::<u64>()) {
                (Ok(number), _) => Ok(json!(number)),
                (_, Ok(number)) => Ok(json!(number)),
                _ => Err("that is no whole number".to_owned()),
            },
            Kind::Number => match line.parse::<serde_json::Number>() {
                Ok(number) => Ok(Value::Number(number)),
                Err(_) => Err("that is no number".to_owned()),
            },
            Kind::YesNo => match line.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(json!(true)),
                "n" | "no" | "false" => Ok(json!(false)),
                _ => Err("say `y` or `n`".to_owned()),
            },
            Kind::OneOf(choices) => chosen(choices, line),
            Kind::SomeOf(choices) => {
                let words = line.split(',').map(str::trim).filter(|it| !it.is_empty());
                words.map(|word| chosen(choices, word)).collect()
            }
        };
        match read {
            Ok(value) => Read::Value(value),
            Err(reason) => Read::Wrong(reason),
        }
    }
}

fn chosen(choices: &[Choice], word: &str) -> Result<Value, String> {
    let found = choices.iter().find(|it| it.is_called(word));
    let found = found.map(|it| it.value.clone());
    found.ok_or_else(|| format!("`{}` is none of these", one_line(word, 64)))
}
