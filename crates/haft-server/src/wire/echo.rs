//! The response at its beginning: what the request asked for, every default shown.

use serde_json::{Value, json};

use super::request::{CreateRequest, ReasoningOptions, TextFormat, TextOptions, Truncation};
use super::resource::{ResponseResource, ResponseStatus};
use super::shown_items::ShownItems;

impl ResponseResource {
    /// A response that has just been accepted: queued if it runs in the background, else in
    /// progress.
    ///
    /// `model` is the public name of the model that answers. What is echoed is the effective value
    /// (`open-responses.md` §4); nothing of it comes from the provider.
    pub(crate) fn begun(id: &str, created_at: i64, model: &str, request: &CreateRequest) -> Self {
        Self {
            id: id.to_owned(),
            object: String::from("response"),
            created_at,
            completed_at: None,
            status: if request.background {
                ResponseStatus::Queued
            } else {
                ResponseStatus::InProgress
            },
            incomplete_details: None,
            model: model.to_owned(),
            previous_response_id: request.previous_response_id.clone(),
            instructions: request.instructions.clone(),
            output: ShownItems::default(),
            error: None,
            tools: request.tools.iter().map(|tool| tool.echo.clone()).collect(),
            tool_choice: request.echo.tool_choice.clone(),
            truncation: String::from(match request.truncation {
                Truncation::Auto => "auto",
                Truncation::Disabled => "disabled",
            }),
            parallel_tool_calls: request.parallel_tool_calls,
            text: text(&request.text),
            top_p: request.echo.top_p.clone(),
            presence_penalty: request.echo.presence_penalty.clone(),
            frequency_penalty: request.echo.frequency_penalty.clone(),
            top_logprobs: request.top_logprobs.unwrap_or(0),
            temperature: request.echo.temperature.clone(),
            reasoning: request.reasoning.as_ref().map(reasoning),
            usage: None,
            max_output_tokens: request.max_output_tokens,
            max_tool_calls: request.max_tool_calls,
            store: request.store,
            background: request.background,
            service_tier: match request.service_tier.as_deref() {
                None | Some("auto") => String::from("default"),
                Some(tier) => tier.to_owned(),
            },
            metadata: request.metadata.clone(),
            safety_identifier: request.safety_identifier.clone(),
            prompt_cache_key: request.prompt_cache_key.clone(),
            conversation: request.conversation.as_ref().map(|id| json!({"id": id})),
        }
    }
}

fn text(options: &TextOptions) -> Value {
    let format = match &options.format {
        TextFormat::Text => json!({"type": "text"}),
        TextFormat::JsonObject => json!({"type": "json_object"}),
        TextFormat::JsonSchema {
            name,
            description,
            schema,
            strict,
        } => json!({
            "type": "json_schema",
            "name": name,
            "description": description,
            "schema": schema,
            "strict": strict,
        }),
    };
    match &options.verbosity {
        None => json!({"format": format}),
        Some(verbosity) => json!({"format": format, "verbosity": verbosity}),
    }
}

fn reasoning(options: &ReasoningOptions) -> Value {
    let mut members = options.extra.clone();
    members.insert(String::from("effort"), options.effort.clone().into());
    members.insert(String::from("summary"), options.summary.clone().into());
    Value::Object(members)
}

#[cfg(test)]
#[path = "echo_tests.rs"]
mod tests;
