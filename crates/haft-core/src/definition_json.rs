//! Definitions from JSON.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::annotations::Annotations;
use crate::cut::cut;
use crate::definition::NoSchemaMode;
use crate::definition_builder::ToolDefinitionBuilder;
use crate::definition_error::DefinitionError;
use crate::kind::ToolKind;
use crate::schema;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DefinitionJson {
    r#type: Option<String>,
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
    output_schema: Option<Value>,
    strict: Option<bool>,
    #[serde(default)]
    allow_no_schema: bool,
    no_schema_mode: Option<NoSchemaMode>,
    #[serde(default)]
    annotations: Annotations,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

/// Reads the parts of a definition.
pub(crate) fn read(json: Value) -> Result<ToolDefinitionBuilder, DefinitionError> {
    let malformed = |reason: String| DefinitionError::Malformed { reason };
    if schema::value_depth_exceeds(&json, 2 * 128) {
        return Err(malformed("it is nested too deeply".into()));
    }
    if json.get("function").is_some_and(Value::is_object) {
        return Err(malformed(
            "it is wrapped: give what stands under `function`, with `parameters`".into(),
        ));
    }
    let json: DefinitionJson = serde_path_to_error::deserialize(json)
        .map_err(|error| malformed(cut(&error.to_string())))?;
    if let Some(key) = json.unknown.keys().next() {
        return Err(DefinitionError::UnknownKey {
            place: "the definition",
            key: cut(key),
        });
    }
    if json
        .r#type
        .as_deref()
        .is_some_and(|kind| kind != "function")
    {
        return Err(malformed("`type` must be `function`".into()));
    }
    let tool = cut(&json.name);
    let no_schema = match (json.allow_no_schema, json.no_schema_mode) {
        (true, None) => return Err(DefinitionError::NoSchemaModeMissing { tool }),
        (true, mode) => mode,
        (false, None) => None,
        (false, Some(_)) => {
            return Err(malformed(format!(
                "tool `{tool}` has a noSchemaMode without `\"allowNoSchema\": true`"
            )));
        }
    };
    let parameters = json.parameters.map(|schema| {
        schema::expand_shorthand(&schema).map_or(schema, |expanded| {
            tracing::warn!(
                tool,
                "`parameters` lists properties directly; read as an object schema"
            );
            expanded
        })
    });
    Ok(ToolDefinitionBuilder {
        name: json.name,
        description: json.description,
        parameters,
        no_schema,
        output_schema: json.output_schema,
        kind: ToolKind::Function,
        strict: json.strict,
        annotations: json.annotations,
        has_foreign_text: false,
    })
}
