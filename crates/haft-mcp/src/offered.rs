//! Prompts, resources and resource templates as a server lists them.

use serde_json::{Map, Value};

use crate::text::visible;

/// The longest URI or name that is read from a list, in bytes.
const MAX_KEY_BYTES: usize = 8 * 1024;

/// How many arguments of a prompt are read.
const MAX_ARGUMENTS: usize = 200;

/// A prompt that a server offers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PromptDef {
    /// The name by which the server knows it.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The arguments that it takes.
    pub arguments: Vec<PromptArgumentDef>,
    /// Icons, as the server wrote them.
    pub icons: Option<Value>,
    /// The server's `_meta`.
    pub meta: Option<Map<String, Value>>,
}

/// An argument of a [`PromptDef`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptArgumentDef {
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it means.
    pub description: Option<String>,
    /// Whether it must be given.
    pub required: bool,
}

/// A resource that a server offers, or a template of resources.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResourceDef {
    /// Its URI; of a template the URI template (RFC 6570).
    pub uri: String,
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it holds.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its size in bytes, where the server says so.
    pub size: Option<u64>,
    /// `audience`, `priority` and `lastModified`, as the server wrote them.
    pub annotations: Option<Value>,
    /// Icons, as the server wrote them.
    pub icons: Option<Value>,
    /// The server's `_meta`.
    pub meta: Option<Map<String, Value>>,
}

/// An item of a list that is read one by one.
pub(crate) trait ListItem: Sized + PartialEq {
    /// The member of a page that holds the items.
    const MEMBER: &'static str;

    /// Reads one item, or says why it cannot be used.
    fn read(value: &Value) -> Result<Self, String>;

    /// What makes it different from the other items of the list.
    fn key(&self) -> &str;
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(visible)
}

/// A name or URI, which is sent back to the server as it was written.
fn key_text(value: &Value, key: &str) -> Result<String, String> {
    match value.get(key).and_then(Value::as_str) {
        None | Some("") => Err(format!("it has no `{key}`")),
        Some(text) if text.len() > MAX_KEY_BYTES => {
            Err(format!("`{key}` is longer than {MAX_KEY_BYTES} bytes"))
        }
        Some(text) if text != visible(text) => Err(format!("`{key}` has invisible characters")),
        Some(text) => Ok(text.to_owned()),
    }
}

fn meta(value: &Value) -> Option<Map<String, Value>> {
    value.get("_meta").and_then(Value::as_object).cloned()
}

fn icons(value: &Value) -> Option<Value> {
    value.get("icons").filter(|icons| icons.is_array()).cloned()
}

impl ListItem for PromptDef {
    const MEMBER: &'static str = "prompts";

    fn read(value: &Value) -> Result<Self, String> {
        let arguments = value.get("arguments").and_then(Value::as_array);
        let arguments = arguments.map(Vec::as_slice).unwrap_or_default().iter();
        let arguments = arguments.take(MAX_ARGUMENTS).filter_map(|argument| {
            Some(PromptArgumentDef {
                name: key_text(argument, "name").ok()?,
                title: text(argument, "title"),
                description: text(argument, "description"),
                required: argument.get("required") == Some(&Value::Bool(true)),
            })
        });
        Ok(Self {
            name: key_text(value, "name")?,
            title: text(value, "title"),
            description: text(value, "description"),
            arguments: arguments.collect(),
            icons: icons(value),
            meta: meta(value),
        })
    }

    fn key(&self) -> &str {
        &self.name
    }
}

/// Reads what a resource and a template have in common.
fn resource(value: &Value, key: &str) -> Result<ResourceDef, String> {
    let uri = key_text(value, key)?;
    // Servers that forget the name lose nothing by it.
    let name = text(value, "name").filter(|name| !name.is_empty());
    let annotations = value.get("annotations").filter(|it| it.is_object());
    Ok(ResourceDef {
        name: name.unwrap_or_else(|| uri.clone()),
        uri,
        title: text(value, "title"),
        description: text(value, "description"),
        mime_type: text(value, "mimeType"),
        size: value.get("size").and_then(Value::as_u64),
        annotations: annotations.cloned(),
        icons: icons(value),
        meta: meta(value),
    })
}

impl ListItem for ResourceDef {
    const MEMBER: &'static str = "resources";

    fn read(value: &Value) -> Result<Self, String> {
        resource(value, "uri")
    }

    fn key(&self) -> &str {
        &self.uri
    }
}

/// A resource template on its way through a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TemplateItem(pub(crate) ResourceDef);

impl ListItem for TemplateItem {
    const MEMBER: &'static str = "resourceTemplates";

    fn read(value: &Value) -> Result<Self, String> {
        resource(value, "uriTemplate").map(Self)
    }

    fn key(&self) -> &str {
        &self.0.uri
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_harmless_is_repaired_and_what_is_not_is_refused() {
        let prompt = PromptDef::read(&json!({
            "name": "greet", "title": 7, "description": "Says\u{200b} hello.",
            "arguments": [{"name": "who", "required": true}, {"required": true}, "x"],
            "icons": "none",
        }));
        let prompt = prompt.unwrap();
        assert_eq!(prompt.description.as_deref(), Some("Says hello."));
        assert_eq!((prompt.title, prompt.icons), (None, None));
        assert_eq!(prompt.arguments.len(), 1);
        assert!(prompt.arguments[0].required);
        let refused = |value: Value| PromptDef::read(&value).unwrap_err();
        assert_eq!(refused(json!({"title": "x"})), "it has no `name`");
        assert_eq!(refused(json!("x")), "it has no `name`");
        assert_eq!(
            refused(json!({"name": "a\u{202e}b"})),
            "`name` has invisible characters"
        );
        let resource = ResourceDef::read(&json!({"uri": "a://b", "size": "big"})).unwrap();
        assert_eq!((resource.name.as_str(), resource.size), ("a://b", None));
        assert!(TemplateItem::read(&json!({"uri": "a://b"})).is_err());
    }
}
