//! From a request and its context to a run.

use std::sync::Arc;

use haft_core::{Cancel, Capabilities, ContentPart, Conversation, Item, Model, ModelOptions};
use haft_engine::{LoopOptions, OnMismatch, Run};

use crate::app::{App, Caller, now};
use crate::context::Context;
use crate::error::{ApiError, ErrorCode};
use crate::estimate::{tokens_of, tokens_of_conversation, tokens_of_tools};
use crate::history::{Record, expand, verify};
use crate::stream::{Translation, Translator};
use crate::toolkit::{Ingredients, Toolkit};
use crate::wire::{CreateRequest, ResponseResource, TextFormat, Truncation, new_id};

/// Everything that is needed to run a request, once or again with less of its context.
pub(crate) struct Plan {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) conversation: Conversation,
    pub(crate) truncation: Truncation,
    pub(crate) cancel: Cancel,
    instructions: Option<String>,
    toolkit: Toolkit,
    options: LoopOptions,
    model_options: ModelOptions,
    is_parallel: bool,
    format: TextFormat,
    on_mismatch: OnMismatch,
    request_id: String,
}

impl Plan {
    /// A plan, and the one who will tell the client of it. Everything is checked by now.
    pub(crate) fn make(
        app: &App,
        caller: &Caller,
        request: &CreateRequest,
        context: &Context,
    ) -> Result<(Self, Translator), ApiError> {
        let entry = app.models.find(request.model.as_deref())?;
        let toolkit = Toolkit::build(&Ingredients {
            tools: &request.tools,
            loaded: &context.loaded,
            choice: &request.tool_choice,
            snapshot: &app.catalog.snapshot(),
            unsupported: app.options.unsupported_tools,
        })?;
        let records: Vec<Record> = context
            .inherited
            .iter()
            .chain(&context.input)
            .cloned()
            .collect();
        let items = expand(&records, &|item_type| toolkit.hosted_name(item_type));
        let conversation = Conversation::from(items);
        verify(&conversation, &records)?;
        if conversation.is_empty() && request.generate {
            // An empty conversation gives no context either.
            let message = "there is nothing to answer: send an `input`";
            let error = ApiError::new(ErrorCode::MissingRequiredParameter, message);
            return Err(error.at("input"));
        }
        check_content(&entry.model.capabilities(), &records)?;
        // What was streamed cannot be taken back, so there is no second try.
        let is_streamed = request.stream || request.background;
        let on_mismatch = match &request.text.format {
            TextFormat::JsonSchema { strict: true, .. } if is_streamed => {
                OnMismatch::Retry { tries: 1 }
            }
            TextFormat::JsonSchema { strict: true, .. } => OnMismatch::default(),
            _ => OnMismatch::Accept,
        };
        let translation = Translation {
            tools: toolkit.shown.clone(),
            include: request.include,
            is_parallel: request.parallel_tool_calls,
            holds_text: matches!(on_mismatch, OnMismatch::Retry { tries } if tries > 1),
            has_vendor_events: caller.wants_vendor_events || toolkit.wants_events,
            is_agentic: toolkit.is_agentic,
        };
        let resource = ResponseResource::begun(&new_id("resp"), now(), &entry.name, request);
        let translator = Translator::new(resource, translation);
        let plan = Self {
            model: Arc::clone(&entry.model),
            conversation,
            truncation: request.truncation,
            cancel: Cancel::new(),
            instructions: request.instructions.clone(),
            toolkit,
            options: bounded(&app.options.loop_options, request),
            model_options: model_options(request),
            is_parallel: request.parallel_tool_calls,
            format: request.text.format.clone(),
            on_mismatch,
            request_id: caller.request_id.clone(),
        };
        Ok((plan, translator))
    }

    /// The tool types that were left out.
    pub(crate) fn ignored(&self) -> &[String] {
        &self.toolkit.ignored
    }

    /// How many tokens the first request has, roughly.
    pub(crate) fn input_tokens(&self) -> u64 {
        let instructions = self.instructions.as_deref().map_or(0, tokens_of);
        let tools = tokens_of_tools(self.toolkit.binding.specs());
        instructions + tools + tokens_of_conversation(&self.conversation)
    }

    /// A run of it with this conversation.
    pub(crate) fn run(&self, conversation: Conversation) -> Run {
        let mut run = Run::new(Arc::clone(&self.model))
            .session(conversation)
            .binding(self.toolkit.binding.clone())
            .options(self.options.clone())
            .model_options(self.model_options.clone())
            .cancel(self.cancel.clone())
            .request_id(&*self.request_id);
        if let Some(instructions) = &self.instructions {
            run = run.instructions(instructions.as_str());
        }
        if !self.is_parallel {
            run = run.parallel_tool_calls(false);
        }
        if let TextFormat::JsonSchema { name, schema, .. } = &self.format {
            run = run
                .answer_schema(name, schema.clone())
                .on_mismatch(self.on_mismatch);
        }
        run
    }
}

/// The operator's limits, lowered where the request wants less.
fn bounded(limits: &LoopOptions, request: &CreateRequest) -> LoopOptions {
    let mut options = limits.clone();
    options.max_tool_calls = [options.max_tool_calls, request.max_tool_calls]
        .into_iter()
        .flatten()
        .min();
    options
}

fn model_options(request: &CreateRequest) -> ModelOptions {
    let reasoning = request.reasoning.as_ref();
    ModelOptions {
        max_output_tokens: request.max_output_tokens,
        temperature: request.temperature,
        top_p: request.top_p,
        presence_penalty: request.presence_penalty,
        frequency_penalty: request.frequency_penalty,
        top_logprobs: request
            .top_logprobs
            .filter(|count| *count > 0)
            .or(request.include.logprobs.then_some(0)),
        reasoning_effort: reasoning.and_then(|reasoning| reasoning.effort.clone()),
        reasoning_summary: reasoning.and_then(|reasoning| reasoning.summary.clone()),
        verbosity: request.text.verbosity.clone(),
        json_object: request.text.format == TextFormat::JsonObject,
        safety_identifier: request.safety_identifier.clone(),
        prompt_cache_key: request.prompt_cache_key.clone(),
        service_tier: request.service_tier.clone(),
        ..ModelOptions::default()
    }
}

/// Refuses content that the model cannot take: nothing is left out in silence.
fn check_content(capabilities: &Capabilities, input: &[Record]) -> Result<(), ApiError> {
    for record in input {
        let (parts, member) = match &record.item {
            Item::Message(message) => (&message.content, "content"),
            Item::FunctionCallOutput(output) => match &output.output {
                haft_core::CallOutput::Parts(parts) => (parts, "output"),
                haft_core::CallOutput::Text(_) => continue,
            },
            _ => continue,
        };
        for (at, part) in parts.iter().enumerate() {
            let (kind, is_taken) = match part {
                ContentPart::InputImage { .. } => ("input_image", capabilities.image_input),
                ContentPart::Other(members) => {
                    match members.get("type").and_then(serde_json::Value::as_str) {
                        Some("input_image") => ("input_image", capabilities.image_input),
                        Some("input_file") => ("input_file", capabilities.file_input),
                        Some("input_video") => ("input_video", capabilities.video_input),
                        _ => continue,
                    }
                }
                _ => continue,
            };
            if !is_taken {
                let place = record.param.as_deref().unwrap_or("input");
                let message = format!(
                    "the model cannot take `{kind}`: leave it out, or use a model that can"
                );
                return Err(ApiError::new(ErrorCode::UnsupportedContent, message)
                    .at(format!("{place}.{member}[{at}]")));
            }
        }
    }
    Ok(())
}
