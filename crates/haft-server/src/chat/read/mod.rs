//! A body of Chat Completions as a request to a model of any protocol.
//!
//! Unknown fields are let through; a value that means nothing here, or that no model behind an
//! adapter could be told, is refused with the path to it.

mod choice;
mod messages;
mod options;
mod parts;
mod tools;

#[cfg(test)]
mod tests;

use haft_core::{Conversation, Item, Model, ModelRequest, OutputFormat, Streaming};
use serde_json::Value;

use crate::error::{ApiError, ErrorCode};
use crate::wire::TextFormat;
use crate::wire::read::fields::Fields;
use crate::wire::read::forms::{Flag, Object};
use crate::wire::read::{BoundedSchemas, Read, Vocabulary};

/// A body that was read.
#[derive(Debug)]
pub(crate) struct ChatRequest {
    /// What the model is asked.
    pub(crate) request: ModelRequest,
    /// Whether the cost is told at the end of a stream.
    pub(crate) with_usage: bool,
    /// The names of members that have no effect whichever model answers.
    pub(crate) ignored: Vec<String>,
    /// The message that each item of the conversation comes from, as a path.
    places: Vec<String>,
}

impl ChatRequest {
    /// Reads a body for a model of this provider.
    pub(crate) fn read(body: Value, provider: &str) -> Read<Self> {
        let mut fields = Fields::of(body, "")?;
        options::refuse(&mut fields)?;
        let messages = fields.need("messages", messages::messages)?;
        let words = Vocabulary {
            schemas: &BoundedSchemas::default(),
            ..Vocabulary::default()
        };
        let tools = |value: Value, path: &str| tools::tools(value, path, &words);
        let tools = fields.get("tools", tools)?.unwrap_or_default();
        let offer = choice::offer(fields.take("tool_choice"), tools)?;
        let is_parallel = fields.get("parallel_tool_calls", Flag)?;
        // Read with the options, and sent only to a provider that has it.
        let ignores_seed = fields.has("seed") && provider != "ollama";
        let mut options = options::options(&mut fields, provider)?;
        let format = fields.get("response_format", |value: Value, path: &str| {
            options::response_format(value, path, &words)
        })?;
        options.json_object = format == Some(TextFormat::JsonObject);
        let output_format = match format {
            Some(TextFormat::JsonSchema {
                name,
                schema,
                strict,
                ..
            }) => Some(OutputFormat {
                name,
                schema: schema.into(),
                strict,
            }),
            _ => None,
        };
        if fields.get("stream", Flag)? != Some(true) {
            options.stream = Streaming::Whole;
        }
        let with_usage = match fields.get("stream_options", Object)? {
            Some(mut wishes) => wishes.get("include_usage", Flag)? == Some(true),
            None => false,
        };
        fields.take("model");
        let seed = ignores_seed.then_some("seed");
        let ignored = fields.names_left().chain(seed);
        let ignored = ignored.map(str::to_owned).collect();
        Ok(Self {
            request: ModelRequest {
                instructions: None,
                conversation: Conversation::from(messages.items),
                parallel_tool_calls: is_parallel.filter(|_| !offer.tools.is_empty()),
                tools: offer.tools,
                tool_choice: offer.choice,
                structured_output: output_format.is_some(),
                output_format,
                options,
            },
            with_usage,
            ignored,
            places: messages.places,
        })
    }

    /// Refuses content that the model cannot be sent, before anything is.
    pub(crate) fn check_content(&self, model: &dyn Model) -> Read<()> {
        let items = self.request.conversation.items().zip(&self.places);
        for (item, place) in items {
            let Some(refused) = model.unsupported(item) else {
                continue;
            };
            let place = match item {
                // What a tool gave is the content of its message.
                Item::FunctionCallOutput(_) => {
                    format!("{place}.{}", refused.place.replacen("output", "content", 1))
                }
                _ => format!("{place}.{}", refused.place),
            };
            let message = format!("`{place}` cannot be sent to this model: {}", refused.reason);
            return Err(ApiError::new(ErrorCode::UnsupportedContent, message).at(place));
        }
        Ok(())
    }
}
