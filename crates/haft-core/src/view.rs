//! How a definition looks to a provider: new JSON, never the definition itself.
//!
//! These are the plain shapes. Lowering a schema to what one provider accepts is the model
//! adapter's work, on its copy.

use serde_json::{Map, Value, json};

use crate::definition::ToolDefinition;
use crate::render_cache::RenderKey;

/// The wire shapes in which tools are announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ViewFormat {
    /// `OpenAI` Responses: flat.
    Responses,
    /// `OpenAI` Chat Completions: nested under `function`.
    Chat,
    /// Ollama's own chat: nested, without `strict`.
    Ollama,
    /// Anthropic Messages: `input_schema`.
    Anthropic,
    /// MCP `tools/list`.
    Mcp,
}

impl ViewFormat {
    /// Under which renderings of this shape are kept.
    pub fn key(self) -> RenderKey {
        RenderKey::new(match self {
            Self::Responses => "view:responses",
            Self::Chat => "view:chat",
            Self::Ollama => "view:ollama",
            Self::Anthropic => "view:anthropic",
            Self::Mcp => "view:mcp",
        })
    }
}

impl ToolDefinition {
    /// The tool as `format` announces it.
    ///
    /// ```
    /// use haft_core::{ToolDefinition, ViewFormat};
    /// let ping = ToolDefinition::builder("ping")
    ///     .description("Check that it is alive.")
    ///     .parameters(serde_json::json!({"type": "object"}))
    ///     .build()?;
    /// assert_eq!(
    ///     ping.view(ViewFormat::Anthropic),
    ///     serde_json::json!({
    ///         "name": "ping",
    ///         "description": "Check that it is alive.",
    ///         "input_schema": {"type": "object"}
    ///     })
    /// );
    /// # Ok::<(), haft_core::DefinitionError>(())
    /// ```
    pub fn view(&self, format: ViewFormat) -> Value {
        match format {
            ViewFormat::Responses => {
                let mut view = Map::new();
                view.insert("type".into(), "function".into());
                self.insert_function(&mut view);
                // Always said: this API takes silence for `true`.
                view.insert("strict".into(), self.strict().unwrap_or(false).into());
                Value::Object(view)
            }
            ViewFormat::Chat | ViewFormat::Ollama => {
                let mut function = Map::new();
                self.insert_function(&mut function);
                if let (ViewFormat::Chat, Some(strict)) = (format, self.strict()) {
                    function.insert("strict".into(), strict.into());
                }
                json!({"type": "function", "function": function})
            }
            ViewFormat::Anthropic => {
                let mut view = Map::new();
                self.insert_name(&mut view);
                view.insert("input_schema".into(), self.offered_parameters());
                Value::Object(view)
            }
            ViewFormat::Mcp => self.mcp_view(),
        }
    }

    /// The schema that a model is shown: any object, for a tool without schema.
    pub fn offered_parameters(&self) -> Value {
        self.parameters()
            .cloned()
            .unwrap_or_else(|| json!({"type": "object"}))
    }

    fn insert_name(&self, view: &mut Map<String, Value>) {
        view.insert("name".into(), self.name().as_str().into());
        if let Some(description) = self.description() {
            view.insert("description".into(), description.into());
        }
    }

    fn insert_function(&self, view: &mut Map<String, Value>) {
        self.insert_name(view);
        view.insert("parameters".into(), self.offered_parameters());
    }

    fn mcp_view(&self) -> Value {
        let annotations = self.annotations();
        let mut view = Map::new();
        view.insert("name".into(), self.name().as_str().into());
        if let Some(title) = &annotations.title {
            view.insert("title".into(), title.as_str().into());
        }
        if let Some(description) = self.description() {
            view.insert("description".into(), description.into());
        }
        view.insert("inputSchema".into(), self.offered_parameters());
        if let Some(schema) = self.output_schema() {
            view.insert("outputSchema".into(), schema.clone());
        }
        view.insert(
            "annotations".into(),
            json!({
                "readOnlyHint": annotations.read_only,
                "destructiveHint": annotations.destructive,
                "idempotentHint": annotations.idempotent,
                "openWorldHint": annotations.open_world,
            }),
        );
        Value::Object(view)
    }
}
