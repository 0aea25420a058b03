//! What search reads of a tool.

use std::hash::{DefaultHasher, Hash as _, Hasher};
use std::sync::Arc;

use haft_core::ToolDefinition;
use serde_json::{Map, Value};

/// A group of tools, as search knows it: an MCP server, a namespace or a declared section.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SearchSection {
    /// What requests call it.
    pub key: String,
    /// For people; found by, with little weight.
    pub title: String,
    /// One sentence; found by, with little weight.
    pub summary: String,
}

/// A tool that can be searched for.
///
/// Implemented for [`ToolDefinition`]; [`PlacedTool`] adds a server and a section to one.
pub trait Searchable: Send + Sync + 'static {
    /// The name by which it is called.
    fn name(&self) -> &str;

    /// The name by which its server knows it.
    fn raw_name(&self) -> Option<&str> {
        None
    }

    /// For people.
    fn title(&self) -> Option<&str> {
        None
    }

    /// For the model.
    fn description(&self) -> Option<&str>;

    /// One line.
    fn brief(&self) -> String;

    /// The JSON Schema object of what it takes.
    fn parameters(&self) -> Option<&Map<String, Value>>;

    /// Words to find it by.
    fn tags(&self) -> &[String] {
        &[]
    }

    /// The label of its server: to filter by and to show, never to find by.
    fn server(&self) -> Option<&str> {
        None
    }

    /// The section that it belongs to.
    fn section(&self) -> Option<&SearchSection> {
        None
    }

    /// The names of the tools whose results it needs.
    fn depends_on(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Why it is there and must not be found: disabled, denied, held back. A search for its very name
    /// says so; it is never returned.
    fn withheld(&self) -> Option<&str> {
        None
    }

    /// The full definition, as a model reads it.
    fn definition(&self) -> Value;

    /// A number that changes when anything that is searched by changes.
    fn content_key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.name().hash(&mut hasher);
        self.raw_name().hash(&mut hasher);
        self.title().hash(&mut hasher);
        self.description().hash(&mut hasher);
        self.tags().hash(&mut hasher);
        self.section().hash(&mut hasher);
        if let Some(parameters) = self.parameters() {
            hash_object(parameters, &mut hasher);
        }
        hasher.finish()
    }
}

fn hash_object(object: &Map<String, Value>, hasher: &mut impl Hasher) {
    object.len().hash(hasher);
    for (key, value) in object {
        key.hash(hasher);
        hash_value(value, hasher);
    }
}

fn hash_value(value: &Value, hasher: &mut impl Hasher) {
    match value {
        Value::String(text) => text.hash(hasher),
        Value::Array(items) => {
            items.len().hash(hasher);
            for item in items {
                hash_value(item, hasher);
            }
        }
        Value::Object(object) => hash_object(object, hasher),
        // Whatever else there is in a schema, nobody finds a tool by it.
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Searchable for ToolDefinition {
    fn name(&self) -> &str {
        ToolDefinition::name(self).as_str()
    }

    fn raw_name(&self) -> Option<&str> {
        self.annotations().origin.as_deref()
    }

    fn title(&self) -> Option<&str> {
        self.annotations().title.as_deref()
    }

    fn description(&self) -> Option<&str> {
        ToolDefinition::description(self)
    }

    fn brief(&self) -> String {
        ToolDefinition::brief(self).to_owned()
    }

    fn parameters(&self) -> Option<&Map<String, Value>> {
        ToolDefinition::parameters(self).and_then(Value::as_object)
    }

    fn tags(&self) -> &[String] {
        &self.annotations().tags
    }

    fn depends_on(&self) -> Vec<&str> {
        let names = self.annotations().depends_on.iter();
        names.map(haft_core::ToolName::as_str).collect()
    }

    fn definition(&self) -> Value {
        self.to_json()
    }
}

/// A definition with its place: server, section, and the name that it has there.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedTool {
    definition: Arc<ToolDefinition>,
    raw_name: Option<String>,
    server: Option<String>,
    section: Option<Arc<SearchSection>>,
    withheld: Option<String>,
}

impl PlacedTool {
    /// A tool without a place.
    pub fn new(definition: Arc<ToolDefinition>) -> Self {
        Self {
            definition,
            raw_name: None,
            server: None,
            section: None,
            withheld: None,
        }
    }

    /// As a tool of the server with this label, which calls it `raw_name`.
    #[must_use]
    pub fn of_server(mut self, label: impl Into<String>, raw_name: impl Into<String>) -> Self {
        self.server = Some(label.into());
        self.raw_name = Some(raw_name.into());
        self
    }

    /// As a tool of this section.
    #[must_use]
    pub fn in_section(mut self, section: impl Into<Arc<SearchSection>>) -> Self {
        self.section = Some(section.into());
        self
    }

    /// Never to be found, and why.
    #[must_use]
    pub fn withheld_because(mut self, why: impl Into<String>) -> Self {
        self.withheld = Some(why.into());
        self
    }
}

impl Searchable for PlacedTool {
    fn name(&self) -> &str {
        self.definition.name().as_str()
    }

    fn raw_name(&self) -> Option<&str> {
        let own = self.raw_name.as_deref();
        own.or_else(|| Searchable::raw_name(&*self.definition))
    }

    fn title(&self) -> Option<&str> {
        Searchable::title(&*self.definition)
    }

    fn description(&self) -> Option<&str> {
        self.definition.description()
    }

    fn brief(&self) -> String {
        self.definition.brief().to_owned()
    }

    fn parameters(&self) -> Option<&Map<String, Value>> {
        Searchable::parameters(&*self.definition)
    }

    fn tags(&self) -> &[String] {
        Searchable::tags(&*self.definition)
    }

    fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    fn section(&self) -> Option<&SearchSection> {
        self.section.as_deref()
    }

    fn depends_on(&self) -> Vec<&str> {
        Searchable::depends_on(&*self.definition)
    }

    fn withheld(&self) -> Option<&str> {
        self.withheld.as_deref()
    }

    fn definition(&self) -> Value {
        self.definition.to_json()
    }
}
