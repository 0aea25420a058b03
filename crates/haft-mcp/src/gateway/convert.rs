//! haft's words into the library's. The only place besides the handler where the two meet.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    Annotations, CacheScope, CallToolResult, ClientCapabilities, CompletionInfo, ContentBlock,
    ErrorCode, GetPromptResult, Icon, MetaObject, Prompt, PromptMessage as ProtocolMessage,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role, Tool, ToolAnnotations,
};
use serde_json::{Map, Value, json};

use super::backend::BackendError;
use super::input::InputKind;
use super::outcome::{
    CallOutcome, Completion, ListedPrompt, ListedResource, PromptMessage, PromptOutcome,
    ReadOutcome,
};
use super::tool::{CacheHints, ListedTool};

/// A tool; annotations and icons that do not fit the protocol are left out, one by one.
pub(super) fn tool(listed: &ListedTool) -> Tool {
    let description = listed.description.clone().map(Into::into);
    let input_schema = legal_schema(&listed.input_schema);
    let mut tool = Tool::new_with_raw(listed.name.clone(), description, input_schema);
    tool.title.clone_from(&listed.title);
    // Clients before 2026-07-28 take results that are objects only.
    let output_schema = listed.output_schema.as_ref();
    let output_schema = output_schema.filter(|it| it.get("type") == Some(&"object".into()));
    tool.output_schema = output_schema.map(legal_schema);
    tool.annotations = listed.annotations.clone().and_then(|mut annotations| {
        annotations.retain(|key, value| match key.as_str() {
            "title" => value.is_string(),
            _ => value.is_boolean(),
        });
        serde_json::from_value::<ToolAnnotations>(Value::Object(annotations)).ok()
    });
    tool.icons = listed
        .icons
        .clone()
        .and_then(|icons| serde_json::from_value::<Vec<Icon>>(icons).ok());
    tool.meta = listed.meta.clone().map(MetaObject);
    tool
}

/// An object schema that every client of the protocol accepts: `type` is `"object"`, `properties` an object of
/// objects and `required` a list of strings. The official clients reject a whole list over one schema that is
/// not.
fn legal_schema(schema: &Arc<Map<String, Value>>) -> Arc<Map<String, Value>> {
    let has_properties = schema.get("properties").is_none_or(|it| {
        let properties = it.as_object();
        properties.is_some_and(|it| it.values().all(Value::is_object))
    });
    let has_required = schema.get("required").is_none_or(|it| {
        let required = it.as_array();
        required.is_some_and(|it| it.iter().all(Value::is_string))
    });
    if schema.get("type") == Some(&"object".into()) && has_properties && has_required {
        return Arc::clone(schema);
    }
    let mut legal = Map::clone(schema);
    legal.insert("type".into(), "object".into());
    if !has_required {
        legal.shift_remove("required");
    }
    match legal.get_mut("properties") {
        Some(Value::Object(properties)) => {
            for property in properties.values_mut().filter(|it| !it.is_object()) {
                let forbids = *property == Value::Bool(false);
                *property = if forbids {
                    json!({"not": {}})
                } else {
                    json!({})
                };
            }
        }
        Some(_) => {
            legal.shift_remove("properties");
        }
        None => {}
    }
    Arc::new(legal)
}

/// A content block. One that the protocol does not know becomes a text that says so: one bad block
/// costs that block.
fn block(value: Value) -> ContentBlock {
    let kind = value["type"].as_str().unwrap_or("none").to_owned();
    serde_json::from_value(value)
        .unwrap_or_else(|_| ContentBlock::text(format!("[unsupported content: {kind}]")))
}

pub(super) fn call_result(outcome: CallOutcome) -> CallToolResult {
    let content = outcome.content.into_iter().map(block).collect();
    let mut result = if outcome.is_error {
        CallToolResult::error(content)
    } else {
        // Absent means the same; a server that said nothing is passed on as it was.
        let mut result = CallToolResult::success(content);
        result.is_error = None;
        result
    };
    result.structured_content = outcome.structured;
    result.meta = outcome.meta.map(MetaObject);
    result
}

pub(super) fn prompt(listed: ListedPrompt) -> Prompt {
    let arguments = listed.arguments.into_iter().map(|argument| {
        let mut converted =
            rmcp::model::PromptArgument::new(argument.name).with_required(argument.required);
        converted.title = argument.title;
        converted.description = argument.description;
        converted
    });
    let mut prompt = Prompt::new(listed.name, listed.description, Some(arguments.collect()));
    prompt.title = listed.title;
    prompt.icons = icons(listed.icons);
    prompt.meta = listed.meta.map(MetaObject);
    prompt
}

pub(super) fn prompt_result(outcome: PromptOutcome) -> GetPromptResult {
    let messages = outcome.messages.into_iter().map(
        |PromptMessage {
             from_model,
             content,
         }| {
            let role = if from_model {
                Role::Assistant
            } else {
                Role::User
            };
            ProtocolMessage::new(role, block(content))
        },
    );
    let mut result = GetPromptResult::new(messages.collect());
    result.description = outcome.description;
    result.meta = outcome.meta.map(MetaObject);
    result
}

pub(super) fn resource(listed: ListedResource) -> Resource {
    let mut resource = Resource::new(listed.uri, listed.name);
    resource.title = listed.title;
    resource.description = listed.description;
    resource.mime_type = listed.mime_type;
    resource.size = listed.size;
    resource.annotations = annotations(listed.annotations);
    resource.icons = icons(listed.icons);
    resource.meta = listed.meta.map(MetaObject);
    resource
}

pub(super) fn template(listed: ListedResource) -> ResourceTemplate {
    let mut template = ResourceTemplate::new(listed.uri, listed.name);
    template.title = listed.title;
    template.description = listed.description;
    template.mime_type = listed.mime_type;
    template.annotations = annotations(listed.annotations);
    template.icons = icons(listed.icons);
    template.meta = listed.meta.map(MetaObject);
    template
}

/// Icons that do not fit the protocol are left out.
fn icons(icons: Option<Value>) -> Option<Vec<Icon>> {
    icons.and_then(|icons| serde_json::from_value(icons).ok())
}

/// Annotations that do not fit the protocol are left out.
fn annotations(annotations: Option<Value>) -> Option<Annotations> {
    annotations.and_then(|annotations| serde_json::from_value(annotations).ok())
}

/// Contents that do not fit the protocol become a text that says so: one of them costs only itself.
fn contents(value: Value) -> ResourceContents {
    let uri = value["uri"].as_str().unwrap_or_default().to_owned();
    serde_json::from_value(value)
        .unwrap_or_else(|_| ResourceContents::text("[unsupported resource contents]", uri))
}

pub(super) fn read_result(outcome: ReadOutcome) -> ReadResourceResult {
    let all = outcome.contents.into_iter().map(contents);
    let mut result = ReadResourceResult::new(all.collect());
    result.ttl_ms = Some(ttl(outcome.hints));
    result.cache_scope = Some(scope(outcome.hints));
    result.meta = outcome.meta.map(MetaObject);
    result
}

pub(super) fn completion(mut completion: Completion) -> CompletionInfo {
    let cut = completion.values.len() > CompletionInfo::MAX_VALUES;
    completion.values.truncate(CompletionInfo::MAX_VALUES);
    let mut info = CompletionInfo::default();
    info.values = completion.values;
    info.total = completion.total;
    info.has_more = Some(completion.has_more || cut);
    info
}

/// In milliseconds.
pub(super) fn ttl(hints: CacheHints) -> u64 {
    u64::try_from(hints.ttl.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn scope(hints: CacheHints) -> CacheScope {
    if hints.public {
        CacheScope::Public
    } else {
        CacheScope::Private
    }
}

/// The questions that a client with these capabilities can answer.
pub(super) fn answers(capabilities: &ClientCapabilities) -> Vec<InputKind> {
    let mut kinds = Vec::new();
    if let Some(elicitation) = &capabilities.elicitation {
        // A bare capability means forms, as it did before there were pages.
        if elicitation.form.is_some() || elicitation.url.is_none() {
            kinds.push(InputKind::Form);
        }
        if elicitation.url.is_some() {
            kinds.push(InputKind::Url);
        }
    }
    if capabilities.sampling.is_some() {
        kinds.push(InputKind::Sampling);
    }
    if capabilities.roots.is_some() {
        kinds.push(InputKind::Roots);
    }
    kinds
}

/// The error that a client of either era understands.
pub(super) fn error(error: &BackendError, modern: bool) -> ErrorData {
    let text = error.to_string();
    match error {
        BackendError::UnknownTool(_)
        | BackendError::UnknownPrompt(_)
        | BackendError::Invalid(_) => ErrorData::invalid_params(text, None),
        // Older revisions have a code of their own, newer ones have not; the library knows.
        BackendError::UnknownResource(uri) => {
            ErrorData::resource_not_found(text, Some(json!({"uri": uri})))
        }
        BackendError::MissingCapability(kind) if modern => {
            let required = match kind {
                InputKind::Form => json!({"elicitation": {"form": {}}}),
                InputKind::Url => json!({"elicitation": {"url": {}}}),
                InputKind::Sampling => json!({"sampling": {}}),
                InputKind::Roots => json!({"roots": {}}),
            };
            let data = json!({"requiredCapabilities": required});
            ErrorData::new(
                ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
                text,
                Some(data),
            )
        }
        BackendError::MissingCapability(_) => ErrorData::invalid_request(text, None),
        BackendError::Unsupported => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None),
        BackendError::Refused { code, .. } => ErrorData::new(ErrorCode(*code), text, None),
        BackendError::Cancelled
        | BackendError::ServerUnavailable { .. }
        | BackendError::Failed(_) => ErrorData::internal_error(text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_block_costs_only_itself() {
        let outcome = CallOutcome {
            content: vec![
                json!({"type": "text", "text": "a"}),
                json!({"type": "hologram", "beam": 1}),
                json!({"type": "image", "data": "AA=="}),
            ],
            ..CallOutcome::default()
        };
        let result = serde_json::to_value(call_result(outcome)).unwrap();
        assert_eq!(
            result["content"],
            json!([
                {"type": "text", "text": "a"},
                {"type": "text", "text": "[unsupported content: hologram]"},
                {"type": "text", "text": "[unsupported content: image]"},
            ])
        );
    }

    #[test]
    fn a_structured_null_is_not_nothing() {
        let outcome = CallOutcome::text("a").with_structured(Value::Null);
        let result = serde_json::to_value(call_result(outcome)).unwrap();
        assert_eq!(result.get("structuredContent"), Some(&Value::Null));
        let result = serde_json::to_value(call_result(CallOutcome::text("a"))).unwrap();
        assert_eq!(result.get("structuredContent"), None);
    }

    #[test]
    fn schemas_are_legal_for_every_client() {
        let object = |value: Value| value.as_object().cloned().unwrap();
        for (schema, legal) in [
            (json!({}), json!({"type": "object"})),
            (
                json!({"type": ["object", "null"]}),
                json!({"type": "object"}),
            ),
            (
                json!({"type": "object", "properties": []}),
                json!({"type": "object"}),
            ),
            (
                json!({"type": "object", "required": true}),
                json!({"type": "object"}),
            ),
            (
                json!({"type": "object", "properties": {"a": true, "b": false}}),
                json!({"type": "object", "properties": {"a": {}, "b": {"not": {}}}}),
            ),
        ] {
            let mut listed = ListedTool::new("t", object(schema.clone()));
            listed.output_schema = Some(Arc::new(object(schema)));
            let tool = serde_json::to_value(tool(&listed)).unwrap();
            assert_eq!(tool["inputSchema"], legal);
            let output = tool
                .get("outputSchema")
                .is_none_or(|it| it["type"] == "object");
            assert!(output, "{tool}");
        }
    }

    #[test]
    fn bad_annotations_cost_only_themselves() {
        let mut listed = ListedTool::new("t", serde_json::Map::new()).described("d");
        listed.annotations = json!({"readOnlyHint": "yes"}).as_object().cloned();
        listed.icons = Some(json!("x"));
        let tool = tool(&listed);
        let annotations = serde_json::to_value(tool.annotations).unwrap();
        assert_eq!((annotations, tool.icons), (json!({}), None));
        assert_eq!(tool.description.as_deref(), Some("d"));
    }
}
