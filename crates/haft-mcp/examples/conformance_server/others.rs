//! Prompts, resources and completion.

use haft_mcp::gateway::{
    BackendError, Completion, CompletionRequest, ListedPrompt, ListedResource, Listing,
    PromptArgument, PromptMessage, PromptOutcome, PromptRequest, ReadOutcome, Reply,
};
use serde_json::{Value, json};

use crate::inputs::{field, needs, text};
use crate::tools::PNG;

/// All prompts.
pub(crate) fn prompts() -> Listing<ListedPrompt> {
    let prompt = |name: &str, description: &str, arguments: &[&str]| ListedPrompt {
        name: name.to_owned(),
        title: None,
        description: Some(description.to_owned()),
        arguments: arguments
            .iter()
            .map(|name| PromptArgument {
                name: (*name).to_owned(),
                description: Some("A text".to_owned()),
                required: true,
                ..PromptArgument::default()
            })
            .collect(),
        ..ListedPrompt::default()
    };
    Listing {
        items: vec![
            prompt("test_simple_prompt", "A text", &[]),
            prompt(
                "test_prompt_with_arguments",
                "A text with two arguments",
                &["arg1", "arg2"],
            ),
            prompt(
                "test_prompt_with_embedded_resource",
                "A resource",
                &["resourceUri"],
            ),
            prompt("test_prompt_with_image", "An image", &[]),
            prompt("test_input_required_result_prompt", "Needs a context", &[]),
        ],
        ..Listing::default()
    }
}

/// One prompt.
pub(crate) fn prompt(request: &PromptRequest) -> Result<Reply<PromptOutcome>, BackendError> {
    let argument = |key: &str| {
        let value = request.arguments.get(key).and_then(Value::as_str);
        value.ok_or_else(|| BackendError::Invalid(format!("the argument `{key}` is missing")))
    };
    let said = |text: String| json!({"type": "text", "text": text});
    let blocks = match request.name.as_str() {
        "test_simple_prompt" => vec![said("This is a simple prompt for testing.".into())],
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1")?, argument("arg2")?);
            vec![said(format!(
                "Prompt with arguments: arg1='{one}', arg2='{two}'"
            ))]
        }
        "test_prompt_with_embedded_resource" => vec![
            json!({"type": "resource", "resource": {
                "uri": argument("resourceUri")?,
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing."
            }}),
            said("Please process the embedded resource above.".into()),
        ],
        "test_prompt_with_image" => vec![
            json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
            said("Please analyze the image above.".into()),
        ],
        "test_input_required_result_prompt" => {
            let Some(context) = text(&request.input, "user_context", "context") else {
                let question = field("What context should the prompt use?", "context", "string");
                return Ok(needs([("user_context", question)], None));
            };
            vec![said(format!("In this context: {context}"))]
        }
        name => return Err(BackendError::UnknownPrompt(name.to_owned())),
    };
    let message = |content| PromptMessage {
        from_model: false,
        content,
    };
    Ok(Reply::Complete(PromptOutcome {
        description: None,
        messages: blocks.into_iter().map(message).collect(),
        ..PromptOutcome::default()
    }))
}

fn resource(uri: &str, description: &str, mime_type: &str) -> ListedResource {
    ListedResource {
        uri: uri.to_owned(),
        name: description.to_owned(),
        title: None,
        description: Some(description.to_owned()),
        mime_type: Some(mime_type.to_owned()),
        ..ListedResource::default()
    }
}

/// All resources.
pub(crate) fn resources() -> Listing<ListedResource> {
    Listing {
        items: vec![
            resource("test://static-text", "A text", "text/plain"),
            resource("test://static-binary", "An image", "image/png"),
            resource(
                "test://watched-resource",
                "A text that may change",
                "text/plain",
            ),
        ],
        ..Listing::default()
    }
}

/// All families of resources.
pub(crate) fn templates() -> Listing<ListedResource> {
    Listing {
        items: vec![resource(
            "test://template/{id}/data",
            "A datum",
            "application/json",
        )],
        ..Listing::default()
    }
}

/// What a resource holds.
pub(crate) fn read(uri: &str) -> Result<ReadOutcome, BackendError> {
    let content = match uri {
        "test://static-text" => json!({
            "uri": uri,
            "mimeType": "text/plain",
            "text": "This is the content of the static text resource."
        }),
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        "test://watched-resource" => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "It has not changed yet."})
        }
        _ => {
            let id = uri.strip_prefix("test://template/");
            let id = id.and_then(|rest| rest.strip_suffix("/data"));
            let id = id.ok_or_else(|| BackendError::UnknownResource(uri.to_owned()))?;
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
        }
    };
    Ok(ReadOutcome {
        contents: vec![content],
        ..ReadOutcome::default()
    })
}

/// Cities and the like.
pub(crate) fn complete(request: &CompletionRequest) -> Completion {
    let words = ["paris", "park", "party", "test"].into_iter();
    let values: Vec<String> = words
        .filter(|word| word.starts_with(&request.value))
        .map(ToOwned::to_owned)
        .collect();
    Completion {
        total: u32::try_from(values.len()).ok(),
        values,
        has_more: false,
    }
}
