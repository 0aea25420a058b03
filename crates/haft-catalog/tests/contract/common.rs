//! Tools to test with.

use std::sync::Arc;

use haft_catalog::{Binding, Snapshot};
use haft_core::{
    Annotations, Namespace, SchemaError, ToolDefinition, ToolName, ToolObject, ToolSource,
    ValidationError, Validator, ValidatorFactory, dynamic_tool,
};
use haft_hydrate::{JsonSchemaFactory, PreparedTool};
use serde_json::{Value, json};

pub(crate) fn namespace(name: &str) -> Namespace {
    Namespace::new(name).unwrap()
}

pub(crate) fn name(name: &str) -> ToolName {
    ToolName::new(name).unwrap()
}

/// A definition with one optional integer `n`.
pub(crate) fn definition(name: &str) -> Arc<ToolDefinition> {
    described(name, &format!("Does {name}."))
}

pub(crate) fn described(name: &str, description: &str) -> Arc<ToolDefinition> {
    ToolDefinition::builder(name)
        .description(description)
        .parameters(json!({"type": "object", "properties": {"n": {"type": "integer"}}}))
        .build()
        .unwrap()
}

/// A tool of a foreign server, whose name may be anything.
pub(crate) fn foreign(raw: &str) -> Arc<ToolDefinition> {
    ToolDefinition::builder(ToolName::import(raw))
        .description(format!("Serves {raw}."))
        .parameters(json!({"type": "object"}))
        .annotations(Annotations {
            origin: Some(raw.to_owned()),
            ..Annotations::default()
        })
        .build()
        .unwrap()
}

/// A tool that runs here and answers with `answer`.
pub(crate) fn answering(name: &str, answer: &'static str) -> Arc<dyn ToolObject> {
    dynamic_tool(definition(name), move |_, _| async move { Ok(answer) })
}

/// A schema that `ToolDefinition` admits and no validator compiles.
pub(crate) fn broken(name: &str) -> Arc<ToolDefinition> {
    ToolDefinition::builder(name)
        .parameters(json!({
            "type": "object",
            "properties": {"n": {"type": "no such type"}}
        }))
        .build()
        .unwrap()
}

/// A source that is no tool at all.
pub(crate) fn no_tool() -> ToolSource {
    struct NoTool;
    impl haft_core::Tool for NoTool {
        type Arguments = Value;
        fn try_definition()
        -> Result<&'static Arc<ToolDefinition>, &'static haft_core::DefinitionError> {
            static ERROR: haft_core::DefinitionError = haft_core::DefinitionError::BriefNotOneLine;
            Err(&ERROR)
        }
        async fn execute(
            _: Value,
            _: &haft_core::ToolContext,
        ) -> Result<haft_core::ToolOutput, haft_core::ToolError> {
            Ok(haft_core::ToolOutput::empty())
        }
    }
    ToolSource::of::<NoTool>()
}

/// A typed tool, as `#[tool]` would write it.
pub(crate) struct Typed;

impl haft_core::Tool for Typed {
    type Arguments = Value;
    fn try_definition() -> Result<&'static Arc<ToolDefinition>, &'static haft_core::DefinitionError>
    {
        static DEFINITION: std::sync::LazyLock<Arc<ToolDefinition>> =
            std::sync::LazyLock::new(|| definition("typed"));
        Ok(&DEFINITION)
    }
    async fn execute(
        _: Value,
        _: &haft_core::ToolContext,
    ) -> Result<haft_core::ToolOutput, haft_core::ToolError> {
        Ok(haft_core::ToolOutput::text("typed"))
    }
}

pub(crate) fn names(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.names().map(ToolName::as_str).collect()
}

pub(crate) fn offered(binding: &Binding) -> Vec<&str> {
    of(binding.visible())
}

pub(crate) fn of<'t>(tools: impl Iterator<Item = &'t PreparedTool>) -> Vec<&'t str> {
    tools
        .map(|tool| tool.definition().name().as_str())
        .collect()
}

/// The bundled validator, counting how often it compiles.
#[derive(Default)]
pub(crate) struct Counting(pub(crate) std::sync::atomic::AtomicUsize);

impl Counting {
    pub(crate) fn compiled(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl ValidatorFactory for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn compile(&self, schema: &Value) -> Result<Arc<dyn Validator>, SchemaError> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        JsonSchemaFactory.compile(schema)
    }
}

/// Admits nothing.
pub(crate) struct Nothing;

impl Validator for Nothing {
    fn name(&self) -> Option<&str> {
        Some("nothing")
    }

    fn validate(&self, _: &Value) -> Vec<ValidationError> {
        vec![ValidationError::new("", "nothing", "nothing fits")]
    }
}
