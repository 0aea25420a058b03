//! From a request and its context to a run.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use haft_core::{
    Cancel, Conversation, Item, Model, ModelOptions, ModelRequest, Owner, ProviderOptions,
    Streaming, SuspendAlways, ToolContext,
};
use haft_engine::{LoopOptions, OnMismatch, Run, Session, may_ask_once};
use haft_mcp::CallLog;
use haft_models::pool::Witness;

use crate::app::{App, Caller, now};
use crate::compaction::{Carried, Compaction, Halt, Piece, Writing};
use crate::content_hosts::check_tools;
use crate::context::Context;
use crate::error::{ApiError, ErrorCode};
use crate::estimate::{tokens_of, tokens_of_conversation, tokens_of_item, tokens_of_tools};
use crate::history::{Claims, Expanded, Record, expand, not_found, verify};
use crate::mcp::{ListedServer, Listing, QuestionIds};
use crate::metered_model::metered;
use crate::stream::{HostedCall, Translation, Translator};
use crate::toolkit::{Deferred, Ingredients, Search, Toolkit, includes_for};
use crate::truncate::fitted;
use crate::watch::{Commission, RunWatch, Tools};
use crate::wire::{
    CreateRequest, RequestTool, RequestToolKind, ResponseResource, TextFormat, Truncation, new_id,
};

/// Everything that is needed to run a request, once or again with less of its context.
pub(crate) struct Plan {
    pub(crate) model: Arc<dyn Model>,
    /// Without output for the calls that somebody has allowed.
    pub(crate) conversation: Conversation,
    /// What the response begins with.
    pub(crate) opening: Opening,
    /// What is said behind the outputs of those calls.
    queued: Vec<Item>,
    /// Hears what MCP servers say to calls.
    calls: Arc<CallLog>,
    takes_images: bool,
    /// Approvals that earlier requests have used up.
    claims: Claims,
    pub(crate) truncation: Truncation,
    pub(crate) cancel: Cancel,
    instructions: Option<String>,
    toolkit: Arc<Toolkit>,
    options: LoopOptions,
    model_options: ModelOptions,
    is_parallel: bool,
    format: TextFormat,
    on_mismatch: OnMismatch,
    request_id: String,
    /// The parameters of the request that have no effect, as paths.
    pub(crate) ignored_parameters: Vec<String>,
    /// Hears which backends answer.
    pub(crate) witness: Witness,
}

/// What a response begins with, before the model says anything.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    pub(crate) listings: Vec<Listing>,
    /// Calls that somebody has allowed, by the ids of the questions.
    pub(crate) allowed: Vec<(String, HostedCall)>,
}

impl Opening {
    pub(crate) fn is_empty(&self) -> bool {
        self.listings.is_empty() && self.allowed.is_empty()
    }
}

/// The names of all functions that a conversation calls.
fn called_functions(conversation: &Conversation) -> HashSet<String> {
    let names = conversation.items().filter_map(|item| match item {
        Item::FunctionCall(call) => Some(call.name.clone()),
        _ => None,
    });
    names.collect()
}

impl Plan {
    /// A plan, and the one who will tell the client of it. Everything is checked by now.
    pub(crate) fn make(
        app: &App,
        caller: &Caller,
        request: &CreateRequest,
        context: &Context,
        servers: &[ListedServer],
    ) -> Result<(Box<Self>, Box<Translator>), ApiError> {
        let entry = app.models.find(request.model.as_deref())?;
        let loaded = context.loaded();
        let capabilities = entry.model.capabilities();
        let ingredients = Ingredients {
            tools: &request.tools,
            loaded: &loaded,
            choice: &request.tool_choice,
            snapshot: &app.catalog.snapshot(),
            owner: &caller.owner,
            unsupported: app.options.unsupported_tools,
            provider_tools: &capabilities.provider_tools,
            mcp: servers,
            options: &app.options.loop_options,
            context_tokens: capabilities.context_tokens,
            unsaid: context.unsaid(),
        };
        check_count(&ingredients, app.options.limits.max_tools, request)?;
        let mut toolkit = Toolkit::of(&ingredients)?;
        let records = context.pieces.iter().map(|piece| piece.record.clone());
        let records: Vec<Record> = records.collect();
        let takes_images = capabilities.image_input;
        let expanded = expand(&records, &*toolkit, takes_images, &context.claims)?;
        verify(&expanded.answered(), &records)?;
        // Where it is shared, there is nothing to load.
        if let Some(toolkit) = Arc::get_mut(&mut toolkit) {
            toolkit.load_called(calls(&expanded));
        }
        let questions = app.keys.question_ids(caller.owner.as_str());
        let questions = questions.at(request.tools.iter().chain(&loaded).filter_map(place_of));
        let allowed = allowed(&expanded, &toolkit, &questions)?;
        let is_asked = request.generate && !context.compacts_now;
        if let Some(id) = expanded.unanswered.first().filter(|_| is_asked) {
            return Err(unanswered(id));
        }
        let conversation = Conversation::from(expanded.items);
        check_content(&*entry.model, &records)?;
        check_tools(&toolkit.provider.tools, &app.content_hosts)?;
        if conversation.is_empty() && is_asked {
            let message = "there is nothing to answer: send a text or items in `input`";
            let error = ApiError::new(ErrorCode::MissingRequiredParameter, message);
            return Err(error.at("input"));
        }
        let on_mismatch = match &request.text.format {
            TextFormat::JsonSchema { strict: true, .. } => OnMismatch::default(),
            _ => OnMismatch::Accept,
        };
        let calls = Arc::new(CallLog::default());
        let is_native = capabilities.native_deferred_loading;
        let translation = Translation {
            tools: toolkit.shown.clone(),
            asking: toolkit.asking.clone(),
            declared: Arc::clone(&toolkit.declared),
            held: match toolkit.search {
                // Whether the model has seen a tool is its provider's to know.
                Search::Client | Search::Unsaid if is_native => HashSet::new(),
                _ => toolkit.held_at_first(),
            },
            called: may_repeat(&app.options.loop_options, &*entry.model)
                .then(|| called_functions(&conversation)),
            unsaid: toolkit.unsaid.clone(),
            questions: Some(questions),
            calls: Arc::clone(&calls),
            view: app.view(&caller.owner, request.include),
            raw_as_summary: request.asks_for_summary(),
            is_parallel: request.parallel_tool_calls,
            // What was streamed cannot be taken back, and an answer that misses its schema is asked
            // for again.
            holds_text: on_mismatch != OnMismatch::Accept,
            has_vendor_events: caller.wants_vendor_events || toolkit.wants_events,
            is_agentic: toolkit.is_agentic,
            provider: toolkit.provider.clone(),
        };
        let resource = ResponseResource::begun(&new_id("resp"), now(), &entry.name, request);
        let translator = Translator::new(Box::new(resource), translation);
        let witness = Witness::default();
        let mut model_options = model_options(request);
        model_options.provider = provider_options(&toolkit, request);
        let plan = Box::new(Self {
            model: metered(entry.pool.heard_by(witness.clone()), &app.memory),
            conversation,
            opening: Opening {
                listings: listings(servers, context),
                allowed,
            },
            queued: expanded.queued,
            calls,
            takes_images,
            claims: context.claims.clone(),
            truncation: request.truncation,
            cancel: app.lifetime.run_signal(),
            instructions: request.instructions.clone(),
            options: bounded(&app.options.loop_options, request),
            ignored_parameters: ignored_parameters(request, &*entry.model, &model_options),
            model_options,
            toolkit,
            is_parallel: request.parallel_tool_calls,
            format: request.text.format.clone(),
            on_mismatch,
            request_id: caller.request_id.clone(),
            witness,
        });
        Ok((plan, translator))
    }

    /// The run of it under watch.
    pub(crate) fn watched(
        &self,
        app: &App,
        caller: &Caller,
        request: &CreateRequest,
        translator: &Translator,
    ) -> RunWatch {
        let resource = translator.resource();
        let commission = Commission {
            owner: &caller.owner,
            response_id: &resource.id,
            request_id: &self.request_id,
            model_name: &resource.model,
            model: &*self.model,
            witness: &self.witness,
            conversation_id: request.conversation.as_deref(),
            instructions: self.instructions.as_deref(),
            conversation: &self.conversation,
            is_background: request.background,
            is_stored: request.store,
        };
        app.watch.run(caller, &commission)
    }

    /// What each tool is for the client, by the name that the model calls it by.
    pub(crate) fn tools(&self) -> &Tools {
        &self.toolkit.shown
    }

    /// The tool types that were left out.
    pub(crate) fn ignored(&self) -> &[String] {
        &self.toolkit.ignored
    }

    /// The tools that are deferred although the request does not ask for it, as a header and the log report them:
    /// how many of how many, and what finds them.
    pub(crate) fn deferred_tools(&self) -> Option<String> {
        let Deferred { count, of, search } = self.toolkit.deferred_automatically()?;
        let search = if self.is_native() {
            "provider"
        } else {
            search.as_str()
        };
        Some(format!("{count} of {of}; {search}"))
    }

    /// Whether the model's provider has a search of its own.
    fn is_native(&self) -> bool {
        self.model.capabilities().native_deferred_loading
    }

    /// How many tokens the first request has, roughly.
    pub(crate) fn input_tokens(&self) -> u64 {
        self.fixed_tokens() + tokens_of_conversation(&self.conversation)
    }

    /// The tokens that go along with every conversation.
    fn fixed_tokens(&self) -> u64 {
        let instructions = self.instructions.as_deref().map_or(0, tokens_of);
        let queued: u64 = self.queued.iter().map(tokens_of_item).sum();
        let search = match self.toolkit.search {
            Search::Client | Search::Unsaid if self.is_native() => None,
            _ => self.toolkit.search_definition(),
        };
        let tools = self.toolkit.shown_at_first().chain(&search);
        let provider = self.model_options.provider.tools.iter();
        let provider: u64 = provider.map(|tool| tokens_of(&tool.to_string())).sum();
        instructions + queued + provider + tokens_of_tools(tools)
    }

    /// As much of a conversation as fits into the model: the oldest turns go if the request lets
    /// them, and what is clearly too long all the same is refused before anything is sent.
    pub(crate) fn fit(&self, conversation: Conversation) -> Result<Conversation, ApiError> {
        let Some(window) = self.model.capabilities().context_tokens else {
            return Ok(conversation);
        };
        let fixed = self.fixed_tokens();
        let answer = self.model_options.max_output_tokens.unwrap_or(0);
        let room = window.saturating_sub(fixed + answer.min(window / 2));
        let shortened = match self.truncation {
            Truncation::Auto => fitted(&conversation, room),
            Truncation::Disabled => None,
        };
        let conversation = shortened.unwrap_or(conversation);
        let tokens = fixed + tokens_of_conversation(&conversation);
        // The count is rough: whatever may fit is left to the provider to judge.
        if tokens <= window + window / 4 {
            return Ok(conversation);
        }
        let message = format!(
            "the context has about {tokens} tokens, and the model takes {window}: send less, compact \
             it, or set `truncation` to `auto`"
        );
        Err(ApiError::new(ErrorCode::ContextLengthExceeded, message).at("input"))
    }

    /// Compacts a context as the request wishes to be answered.
    pub(crate) async fn compact(
        &self,
        compaction: Compaction,
        app: &App,
        owner: &Owner,
    ) -> Result<Carried, Halt> {
        let writing = Writing {
            model: &self.model,
            instructions: self.instructions.as_deref(),
            options: &self.options,
            model_options: summary_options(&self.model_options),
            cancel: &self.cancel,
            request_id: &self.request_id,
        };
        compaction.carry_out(&app.keys, owner, &writing).await
    }

    /// What the model reads of a context that no call is to be carried out in.
    pub(crate) fn conversation_of(&self, pieces: &[Piece]) -> Result<Conversation, ApiError> {
        let records = pieces.iter().map(|piece| piece.record.clone());
        let records: Vec<Record> = records.collect();
        let expanded = expand(&records, &*self.toolkit, self.takes_images, &self.claims)?;
        Ok(expanded.items.into())
    }

    /// The one request of a run without tools; none where there may be more to it.
    pub(crate) fn plain_request(&self, conversation: &Conversation) -> Option<ModelRequest> {
        let is_plain = self.toolkit.is_empty()
            && self.opening.is_empty()
            && self.queued.is_empty()
            && !matches!(self.format, TextFormat::JsonSchema { .. })
            && may_ask_once(&self.options, conversation);
        is_plain.then(|| ModelRequest {
            instructions: self.instructions.as_deref().map(Into::into),
            conversation: conversation.clone(),
            options: self.model_options.clone(),
            ..ModelRequest::default()
        })
    }

    /// How long one request to the model may take.
    pub(crate) fn request_timeout(&self) -> Duration {
        self.options.request_timeout
    }

    /// A run of it that goes on from here.
    pub(crate) fn run(&self, session: Session) -> Run {
        let mut run = Run::new(Arc::clone(&self.model));
        // One that goes on knows how far it has come.
        if !session.is_unfinished() {
            for (call_id, _) in &self.opening.allowed {
                run = run.carry_out(call_id.as_str());
            }
            run = run.input(self.queued.iter().cloned());
        }
        let context = ToolContext::builder().shared(Arc::clone(&self.calls));
        let mut run = run
            .session(session)
            .context(context.build())
            // Whoever is asked answers by another request.
            .approver(SuspendAlways)
            .binding(self.toolkit.binding.clone())
            .options(self.options.clone())
            .defer(self.toolkit.defer)
            .loaded(self.toolkit.loaded.iter().cloned())
            .model_options(self.model_options.clone())
            .cancel(self.cancel.clone())
            // A client's calls are its own to judge (`open-responses.md` §5.4).
            .hand_over_refused(true)
            .request_id(&*self.request_id);
        if let Some(instructions) = &self.instructions {
            run = run.instructions(instructions.as_str());
        }
        if self.toolkit.search == Search::Server {
            // The client is told of each search, and of what it found.
            run = run.search_here();
        }
        if let Some(note) = &self.toolkit.search_note {
            run = run.search_note(note.as_str());
        }
        if let Some(choice) = &self.toolkit.first_choice {
            run = run.first_choice(choice.clone());
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

/// Refuses more tools than a request may have, also if they came one after the other.
fn check_count(
    ingredients: &Ingredients<'_>,
    most: usize,
    request: &CreateRequest,
) -> Result<(), ApiError> {
    let count = ingredients.count();
    if count <= most {
        return Ok(());
    }
    let param = match (&request.conversation, &request.previous_response_id) {
        (Some(_), _) => "conversation",
        (None, Some(_)) => "previous_response_id",
        (None, None) => "input",
    };
    let message = format!(
        "the tools of this request and those that its conversation has loaded are {count} together, and may be \
         {most}: send fewer, or begin anew without the items that load them"
    );
    Err(ApiError::new(ErrorCode::InvalidValue, message).at(param))
}

/// The names of tools that were called, as far as the client knows, in order.
fn calls(expanded: &Expanded) -> impl Iterator<Item = &str> {
    let is_seen = |call_id: &String| !expanded.unseen.contains(call_id);
    expanded.items.iter().filter_map(move |item| match item {
        Item::FunctionCall(call) if is_seen(&call.call_id) => Some(call.name.as_str()),
        _ => None,
    })
}

/// The lists of tools that the history does not know yet.
fn listings(servers: &[ListedServer], context: &Context) -> Vec<Listing> {
    let listings = servers.iter().map(Listing::of);
    let is_new = |listing: &Listing| {
        let records = context.pieces.iter().map(|piece| &piece.record);
        !listing.is_known_in(records)
    };
    listings.filter(is_new).collect()
}

/// Where a server is that a request brings along, by its label.
fn place_of(tool: &RequestTool) -> Option<(String, String)> {
    let RequestToolKind::Mcp(entry) = &tool.kind else {
        return None;
    };
    let address = entry.address.as_ref()?;
    let origin = address.url.origin().ascii_serialization();
    Some((entry.label.clone(), origin))
}

/// The calls that somebody has allowed, as they run here.
fn allowed(
    expanded: &Expanded,
    toolkit: &Toolkit,
    questions: &QuestionIds,
) -> Result<Vec<(String, HostedCall)>, ApiError> {
    let allowed = expanded.carried.iter().map(|asked| {
        let (label, name) = (&asked.label, &asked.name);
        // A yes is a yes to what was asked here, and to nothing else.
        if !questions.is_ours(&asked.id, label, name, &asked.arguments) {
            return Err(not_found(&asked.id, &asked.param));
        }
        let call = toolkit.asked_about(label, name, &asked.arguments);
        let Some(mut call) = call else {
            let message = format!(
                "the approved call is one of `{name}` of `{label}`, which is not among the tools of \
                 this request: send it in `tools` again"
            );
            let param = format!("{}.approval_request_id", asked.param);
            return Err(ApiError::new(ErrorCode::ToolNotFound, message).at(param));
        };
        if !questions.is_about(&asked.id, label) {
            return Err(not_found(&asked.id, &asked.param));
        }
        call.approval_request_id = Some(asked.id.clone());
        Ok((asked.id.clone(), call))
    });
    allowed.collect()
}

fn unanswered(id: &str) -> ApiError {
    let message = format!(
        "the approval request `{id}` is unanswered: send an `mcp_approval_response` for it, or a new \
         message, which counts as a refusal"
    );
    ApiError::new(ErrorCode::MissingToolOutput, message).at("input")
}

/// What is asked of the provider's own tools.
fn provider_options(toolkit: &Toolkit, request: &CreateRequest) -> ProviderOptions {
    let provider = toolkit.provider.clone();
    ProviderOptions {
        include: includes_for(&provider, &request.include.provider_values()),
        max_calls: request
            .max_tool_calls
            .filter(|_| !provider.tools.is_empty()),
        ..provider
    }
}

/// Whether repeated calls may be left out of a run.
fn may_repeat(options: &LoopOptions, model: &dyn Model) -> bool {
    options.loop_detection.nudges(&model.capabilities())
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

/// What of a request's wishes is for the summary of its context too.
pub(crate) fn summary_options(options: &ModelOptions) -> ModelOptions {
    ModelOptions {
        reasoning_effort: options.reasoning_effort.clone(),
        safety_identifier: options.safety_identifier.clone(),
        prompt_cache_key: options.prompt_cache_key.clone(),
        service_tier: options.service_tier.clone(),
        ..ModelOptions::default()
    }
}

pub(crate) fn model_options(request: &CreateRequest) -> ModelOptions {
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
        stream: if request.stream || request.background {
            Streaming::Pieces
        } else {
            Streaming::Either
        },
        ..ModelOptions::default()
    }
}

/// The parameters that have no effect: those that no model has, and those that this one does not have.
fn ignored_parameters(
    request: &CreateRequest,
    model: &dyn Model,
    options: &ModelOptions,
) -> Vec<String> {
    let has_count = request.top_logprobs.is_some_and(|count| count > 0);
    let is_usual_tier = matches!(request.service_tier.as_deref(), Some("auto" | "default"));
    let of_model = model.ignored_options(options).into_iter();
    let of_model = of_model
        .filter(|option| !(*option == "service_tier" && is_usual_tier))
        // A model that writes no summary has its raw reasoning presented as one.
        .filter(|option| *option != "reasoning_summary")
        .map(|option| match option {
            "reasoning_effort" => "reasoning.effort",
            "top_logprobs" if !has_count => "include[message.output_text.logprobs]",
            "verbosity" => "text.verbosity",
            option => option,
        });
    let of_model = of_model.map(str::to_owned);
    let included = options.provider.include.iter();
    let included: Vec<_> = included.map(|value| format!("include[{value}]")).collect();
    let of_request = request.ignored.iter().filter(|it| !included.contains(it));
    of_request.cloned().chain(of_model).collect()
}

/// Refuses content that the model cannot take: nothing is left out in silence.
fn check_content(model: &dyn Model, records: &[Record]) -> Result<(), ApiError> {
    for record in records {
        let Some(unsupported) = model.unsupported(&record.item) else {
            continue;
        };
        let place = match &record.param {
            Some(param) => format!("{param}.{}", unsupported.place),
            None => "previous_response_id".to_owned(),
        };
        return Err(
            ApiError::new(ErrorCode::UnsupportedContent, unsupported.to_string()).at(place),
        );
    }
    Ok(())
}
