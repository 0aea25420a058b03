//! The spans of a run: the run itself, each request to the model, each call that ran here.

use std::collections::HashMap;
use std::sync::Arc;

use haft_core::{CallOutput, Item, RawArguments, ToolCall, Usage};
use serde_json::Value;

use super::context::SpanContext;
use super::names::{
    CACHE_WRITE_TOKENS, CACHED_TOKENS, CHAT, CONVERSATION, ERROR_TYPE, EXECUTE_TOOL,
    FINISH_REASONS, FIRST_CHUNK, INPUT_MESSAGES, INPUT_TOKENS, INSTRUCTIONS, INVOKE_AGENT, MODEL,
    OPERATION, OUTCOME, OUTPUT_MESSAGES, OUTPUT_TOKENS, PROVIDER, REASONING_TOKENS, REQUEST,
    REQUEST_MODEL, RESPONSE_ID, RESPONSE_MODEL, TENANT, TOOL_ARGUMENTS, TOOL_CALL_ID, TOOL_KIND,
    TOOL_NAME, TOOL_RESULT, TOOL_TYPE,
};
use super::span::{Attributes, Span, SpanKind};
use super::{Place, Tracer, Tracing, content};
use crate::watch::epoch_seconds;
use crate::watch::record::{CallTrace, RunTrace, TurnTrace};
use crate::watch::run::Commission;

/// The spans of a run, if anybody records them.
pub(crate) struct RunSpans(Option<Box<Open>>);

struct Open {
    tracing: Arc<Tracing>,
    context: SpanContext,
    parent: Option<[u8; 8]>,
    start: f64,
    provider: String,
    /// As the provider calls it.
    model: String,
    conversation: Option<String>,
    attributes: Attributes,
    response_id: String,
    /// The provider's id of the answer that is just finished.
    answer_id: Option<String>,
    content: Option<Content>,
}

/// What was said, where that is wanted.
#[derive(Default)]
struct Content {
    /// The parts of the answer that is being given.
    said: Vec<Value>,
    /// The arguments of calls that have not ended.
    arguments: HashMap<String, String>,
    /// What the run ended with.
    last: Option<String>,
}

impl RunSpans {
    pub(in crate::watch) fn new(tracer: &Tracer, place: Place, run: &Commission<'_>) -> Self {
        let Some(tracing) = &tracer.0 else {
            return Self(None);
        };
        let (context, parent) = match place {
            Place::Nowhere => return Self(None),
            Place::First(context) => (context, None),
            Place::Below(parent) => (parent.child(), Some(parent.span_id)),
        };
        let mut attributes = Attributes::default();
        attributes.text(MODEL, run.model_name.to_owned());
        attributes.text(TENANT, run.owner.to_string());
        attributes.text(REQUEST, run.request_id.to_owned());
        // What is not to be stored here is not to be stored elsewhere either.
        let captures = tracing.captures_content && run.is_stored;
        if captures {
            attributes.text(INPUT_MESSAGES, content::messages(run.conversation));
            if let Some(text) = run.instructions {
                attributes.text(INSTRUCTIONS, content::instructions(text));
            }
        }
        Self(Some(Box::new(Open {
            tracing: Arc::clone(tracing),
            context,
            parent,
            start: epoch_seconds(),
            // The conventions call those that they know the same.
            provider: run.model.provider().to_owned(),
            model: run.model.name().to_owned(),
            conversation: run.conversation_id.map(str::to_owned),
            attributes,
            response_id: run.response_id.to_owned(),
            answer_id: None,
            content: captures.then(Content::default),
        })))
    }

    pub(in crate::watch) fn resumed(&mut self, response_id: &str) {
        if let Some(open) = &mut self.0 {
            response_id.clone_into(&mut open.response_id);
        }
    }

    /// The model has finished an item.
    pub(in crate::watch) fn said(&mut self, item: &Item) {
        if let Some(content) = self.content() {
            content.said.extend(content::parts(item));
        }
    }

    /// What the provider calls the answer that is finished.
    pub(in crate::watch) fn answer_is(&mut self, id: Option<&str>) {
        if let Some(open) = &mut self.0 {
            open.answer_id = id.map(haft_core::cut);
        }
    }

    /// A request to the model is over; it is the only attempt of the turn that is given.
    pub(in crate::watch) fn asked(&mut self, turn: &TurnTrace, at: f64) {
        let Some(open) = &mut self.0 else { return };
        let Some(attempt) = turn.attempts.last() else {
            return;
        };
        let answer_id = open.answer_id.take();
        let mut attributes = open.common(CHAT);
        attributes.text(REQUEST_MODEL, open.model.clone());
        attributes.maybe(RESPONSE_MODEL, turn.model.as_deref());
        attributes.maybe(RESPONSE_ID, answer_id.as_deref());
        if let Some(finish) = &turn.finish {
            attributes.texts(FINISH_REASONS, vec![finish.clone()]);
        }
        if let Some(first) = turn.first_token_ms {
            attributes.number(FIRST_CHUNK, ((first - attempt.start_ms) / 1000.0).max(0.0));
        }
        if let Some(usage) = &turn.usage {
            add_usage(&mut attributes, usage);
        }
        attributes.maybe(ERROR_TYPE, attempt.error.as_deref());
        if let Some(content) = &mut open.content {
            let said = std::mem::take(&mut content.said);
            let said = content::answer(&said, turn.finish.as_deref());
            attributes.text(OUTPUT_MESSAGES, said.clone());
            content.last = Some(said);
        }
        let took = attempt.end_ms.unwrap_or(attempt.start_ms) - attempt.start_ms;
        let name = format!("{CHAT} {}", open.model);
        let start = at - took / 1000.0;
        open.child(
            name,
            SpanKind::Client,
            start,
            at,
            attributes,
            attempt.error.is_some(),
        );
    }

    /// The model asks for calls.
    pub(in crate::watch) fn requested(&mut self, calls: &[ToolCall]) {
        let Some(content) = self.content() else {
            return;
        };
        for call in calls {
            let arguments = match &call.arguments {
                RawArguments::Text(text) => content::cut(text).to_owned(),
                RawArguments::Json(value) => content::cut(&value.to_string()).to_owned(),
            };
            let id = call.call_id.clone().unwrap_or_default();
            content.arguments.insert(id, arguments);
        }
    }

    /// A call that ran here is over.
    pub(in crate::watch) fn executed(&mut self, call: &CallTrace, at: f64, output: &CallOutput) {
        let Some(open) = &mut self.0 else { return };
        let mut attributes = open.common(EXECUTE_TOOL);
        attributes.text(TOOL_NAME, call.name.clone());
        attributes.text(TOOL_CALL_ID, call.call_id.clone());
        attributes.text(TOOL_TYPE, "extension");
        attributes.text(TOOL_KIND, call.kind.clone());
        let outcome = call.outcome.as_deref().unwrap_or_default();
        let is_error = outcome != "succeeded";
        if is_error {
            attributes.text(ERROR_TYPE, outcome.to_owned());
        }
        if let Some(content) = &mut open.content {
            let arguments = content.arguments.remove(&call.call_id);
            attributes.maybe(TOOL_ARGUMENTS, arguments.as_deref());
            attributes.text(TOOL_RESULT, content::output(output));
        }
        let took = call.duration_ms.unwrap_or(0.0);
        let name = format!("{EXECUTE_TOOL} {}", call.name);
        let start = at - took / 1000.0;
        open.child(name, SpanKind::Internal, start, at, attributes, is_error);
    }

    /// The run is over.
    pub(in crate::watch) fn ended(&mut self, trace: &RunTrace) {
        let Some(mut open) = self.0.take() else {
            return;
        };
        let mut attributes = open.common(INVOKE_AGENT);
        attributes.text(REQUEST_MODEL, open.model.clone());
        attributes.text(RESPONSE_ID, open.response_id.clone());
        attributes.0.append(&mut open.attributes.0);
        add_usage(&mut attributes, &trace.usage);
        attributes.maybe(OUTCOME, trace.outcome.as_deref());
        let finish = trace
            .turns
            .iter()
            .rev()
            .find_map(|turn| turn.finish.clone());
        if let Some(finish) = finish {
            attributes.texts(FINISH_REASONS, vec![finish]);
        }
        let is_error = trace.outcome.as_deref() == Some("failed");
        if is_error {
            let reason = trace.reason.as_deref().unwrap_or("_OTHER");
            attributes.text(ERROR_TYPE, reason.to_owned());
        }
        if let Some(last) = open.content.take().and_then(|content| content.last) {
            attributes.text(OUTPUT_MESSAGES, last);
        }
        open.tracing.exporter.send(Span {
            context: open.context,
            parent: open.parent,
            name: INVOKE_AGENT.to_owned(),
            kind: SpanKind::Internal,
            start: open.start,
            end: epoch_seconds(),
            attributes,
            is_error,
        });
    }

    fn content(&mut self) -> Option<&mut Content> {
        self.0.as_mut()?.content.as_mut()
    }
}

impl Open {
    fn common(&self, operation: &'static str) -> Attributes {
        let mut attributes = Attributes::default();
        attributes.text(OPERATION, operation);
        attributes.text(PROVIDER, self.provider.clone());
        attributes.maybe(CONVERSATION, self.conversation.as_deref());
        attributes
    }

    fn child(
        &self,
        name: String,
        kind: SpanKind,
        start: f64,
        end: f64,
        attributes: Attributes,
        is_error: bool,
    ) {
        self.tracing.exporter.send(Span {
            context: self.context.child(),
            parent: Some(self.context.span_id),
            name,
            kind,
            start: start.max(self.start),
            end,
            attributes,
            is_error,
        });
    }
}

fn add_usage(attributes: &mut Attributes, usage: &Usage) {
    attributes.count(INPUT_TOKENS, usage.input_tokens);
    attributes.count(OUTPUT_TOKENS, usage.output_tokens);
    for (name, count) in [
        (CACHED_TOKENS, usage.cached_input_tokens),
        (CACHE_WRITE_TOKENS, usage.cache_write_tokens),
        (REASONING_TOKENS, usage.reasoning_tokens),
    ] {
        if count > 0 {
            attributes.count(name, count);
        }
    }
}
