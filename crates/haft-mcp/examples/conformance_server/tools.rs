//! The tools that answer at once, or ask in the midst of their work.

use std::time::Duration;

use haft_core::ToolProgress;
use haft_mcp::gateway::{
    Answer, BackendError, CallContext, CallOutcome, InputKind, InputRequest, ListedTool, LogLevel,
};
use serde_json::{Map, Value, json};

/// One red pixel.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// No sound at all.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/// What the suite calls, with what it is for.
const TOOLS: [(&str, &str); 26] = [
    ("test_simple_text", "Returns a text"),
    ("test_image_content", "Returns an image"),
    ("test_audio_content", "Returns a sound"),
    ("test_embedded_resource", "Returns a resource"),
    (
        "test_multiple_content_types",
        "Returns a text, an image and a resource",
    ),
    ("test_tool_with_logging", "Logs three times"),
    ("test_error_handling", "Fails"),
    (
        "test_tool_with_progress",
        "Reports its progress three times",
    ),
    ("test_sampling", "Asks the client's model"),
    ("test_elicitation", "Asks the person"),
    ("test_elicitation_sep1034_defaults", "Asks with defaults"),
    ("test_elicitation_sep1330_enums", "Asks for choices"),
    ("test_reconnection", "Takes a while"),
    ("test_trigger_tool_change", "Changes the tools"),
    ("test_trigger_prompt_change", "Changes the prompts"),
    ("test_missing_capability", "Needs sampling"),
    ("test_streaming_elicitation", "Reports progress, then asks"),
    ("test_logging_tool", "Logs once"),
    ("test_input_required_result_elicitation", "Needs a name"),
    ("test_input_required_result_sampling", "Needs a completion"),
    ("test_input_required_result_list_roots", "Needs the folders"),
    (
        "test_input_required_result_request_state",
        "Needs its state again",
    ),
    (
        "test_input_required_result_multiple_inputs",
        "Needs three answers",
    ),
    ("test_input_required_result_multi_round", "Needs two rounds"),
    (
        "test_input_required_result_tampered_state",
        "Needs its state unharmed",
    ),
    (
        "test_input_required_result_capabilities",
        "Needs what the client offers",
    ),
];

/// All tools.
pub(crate) fn all() -> Vec<ListedTool> {
    let tool = |(name, description): (&str, &str)| {
        let required = match name {
            "test_sampling" => Some("prompt"),
            "test_elicitation" => Some("message"),
            _ => None,
        };
        let schema = match required {
            None => json!({"type": "object", "properties": {}}),
            Some(key) => json!({
                "type": "object",
                "properties": {key: {"type": "string"}},
                "required": [key]
            }),
        };
        ListedTool::new(name, object(schema)).described(description)
    };
    let mut tools: Vec<ListedTool> = TOOLS.into_iter().map(tool).collect();
    let headers = json!({
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}
    });
    tools.push(
        ListedTool::new("test_header", object(headers)).described("Is told its region in a header"),
    );
    let schema = object(dialect());
    tools.push(
        ListedTool::new("json_schema_2020_12_tool", schema)
            .described("Tool with JSON Schema 2020-12 features"),
    );
    tools
}

/// The words of JSON Schema that must arrive as they are.
fn dialect() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"}
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false
    })
}

/// Calls one.
pub(crate) async fn call(
    name: &str,
    arguments: &Map<String, Value>,
    context: &CallContext,
) -> Result<CallOutcome, BackendError> {
    let blocks = |content: Vec<Value>| CallOutcome {
        content,
        ..CallOutcome::default()
    };
    let image = || json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    Ok(match name {
        "test_simple_text" => CallOutcome::text("This is a simple text response for testing."),
        "test_image_content" => blocks(vec![image()]),
        "test_audio_content" => blocks(vec![
            json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"}),
        ]),
        "test_embedded_resource" => blocks(vec![json!({"type": "resource", "resource": {
            "uri": "test://embedded-resource",
            "mimeType": "text/plain",
            "text": "This is an embedded resource content."
        }})]),
        "test_multiple_content_types" => blocks(vec![
            json!({"type": "text", "text": "Multiple content types test:"}),
            image(),
            json!({"type": "resource", "resource": {
                "uri": "test://mixed-content-resource",
                "mimeType": "application/json",
                "text": r#"{"test":"data","value":123}"#
            }}),
        ]),
        "test_error_handling" => {
            CallOutcome::error("This tool intentionally returns an error for testing")
        }
        _ => return busy(name, arguments, context).await,
    })
}

/// Those that take a while, talk, or ask.
async fn busy(
    name: &str,
    arguments: &Map<String, Value>,
    context: &CallContext,
) -> Result<CallOutcome, BackendError> {
    let argument = |key: &str| {
        let value = arguments.get(key).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    Ok(match name {
        "test_tool_with_logging" => {
            let said = [
                "Tool execution started",
                "Tool processing data",
                "Tool execution completed",
            ];
            for text in said {
                context.log(LogLevel::Info, Some("fixture"), json!(text));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            CallOutcome::text("logged")
        }
        "test_logging_tool" => {
            context.log(LogLevel::Info, Some("fixture"), json!("logged"));
            CallOutcome::text("logged, if that was wanted")
        }
        "test_tool_with_progress" => {
            for at in [0.0, 50.0, 100.0] {
                context.progress(ToolProgress::at(at).of(100.0));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            CallOutcome::text("done")
        }
        "test_reconnection" => {
            tokio::time::sleep(Duration::from_millis(100)).await;
            CallOutcome::text("Reconnection test completed successfully.")
        }
        "test_missing_capability" if !context.client().can_answer(InputKind::Sampling) => {
            return Err(BackendError::MissingCapability(InputKind::Sampling));
        }
        "test_missing_capability" => CallOutcome::text("The client offers sampling."),
        "test_sampling" => {
            let answer = ask(context, sampling(argument("prompt"), 100)).await?;
            let text = answer.as_object().get("content").map(|it| &it["text"]);
            let text = text.and_then(Value::as_str).unwrap_or("nothing");
            CallOutcome::text(format!("LLM response: {text}"))
        }
        "test_elicitation" => {
            let schema = json!({
                "type": "object",
                "properties": {
                    "username": {"type": "string", "description": "User's response"},
                    "email": {"type": "string", "description": "User's email address"}
                },
                "required": ["username", "email"]
            });
            elicit(context, argument("message"), schema, "User response").await?
        }
        "test_streaming_elicitation" => {
            context.progress(ToolProgress::at(1.0));
            let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
            elicit(context, "Go on?", schema, "User response").await?
        }
        "test_elicitation_sep1034_defaults" => {
            let text = "Please check the defaults";
            elicit(context, text, defaults(), "Elicitation completed").await?
        }
        "test_elicitation_sep1330_enums" => {
            elicit(context, "Please choose", choices(), "Elicitation completed").await?
        }
        "test_header" => CallOutcome::text(format!("region: {}", argument("region"))),
        "json_schema_2020_12_tool" => {
            CallOutcome::text(Value::Object(arguments.clone()).to_string())
        }
        _ => return Err(BackendError::UnknownTool(name.to_owned())),
    })
}

async fn ask(context: &CallContext, request: InputRequest) -> Result<Answer, BackendError> {
    let answer = context.ask(request).await;
    answer.map_err(|error| BackendError::Failed(error.to_string()))
}

async fn elicit(
    context: &CallContext,
    message: &str,
    schema: Value,
    said: &str,
) -> Result<CallOutcome, BackendError> {
    let answer = ask(context, form(message, schema)).await?;
    let answer = answer.as_object();
    let action = answer
        .get("action")
        .and_then(Value::as_str)
        .unwrap_or("none");
    let filled_in = answer.get("content").cloned().unwrap_or_default();
    Ok(CallOutcome::text(format!(
        "{said}: action={action}, content={filled_in}"
    )))
}

/// A form.
pub(crate) fn form(message: &str, schema: Value) -> InputRequest {
    InputRequest::Form {
        message: message.to_owned(),
        schema: object(schema),
    }
}

/// A question to the client's model.
pub(crate) fn sampling(prompt: &str, max_tokens: u32) -> InputRequest {
    InputRequest::Sampling(object(json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
        "maxTokens": max_tokens
    })))
}

fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true}
        }
    })
}

fn choices() -> Value {
    let options = json!(["option1", "option2", "option3"]);
    let titled = |word: &str| {
        json!([
            {"const": "value1", "title": format!("First {word}")},
            {"const": "value2", "title": format!("Second {word}")},
            {"const": "value3", "title": format!("Third {word}")}
        ])
    };
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled("Option")},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"]
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}}
        }
    })
}

/// The object that a value is.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
