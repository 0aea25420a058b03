//! `POST /responses`: plain, streamed or in the background.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::response::Response;
use bytes::Bytes;
use haft_core::Item;
use serde_json::{Value, json};

use super::{background, body, counts, reply, sse, warning};
use crate::access::RunPermit;
use crate::app::{App, Caller, ConversationLock};
use crate::compaction::Compaction;
use crate::context::{Context, Remembered};
use crate::drive::{Ended, Follower, Job, Place, Signal};
use crate::durable::RunSoFar;
use crate::error::{ApiError, ErrorCode};
use crate::history::Record;
use crate::mcp::Patience;
use crate::plan::Plan;
use crate::stream::{Dialect, Translator};
use crate::watch::RunWatch;
use crate::wire::{BoundedSchemas, CreateRequest, Door, ResponseResource, Vocabulary};

pub(super) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let (request, body) = receive(&app, request, Door::Http).await?;
    let request = Arc::new(request);
    let job = prepare(&app, &caller, &request, None).await?;
    // Only what runs on by itself needs its body again.
    let body = request.background.then_some(body);
    let deferred = job.plan.deferred_tools();
    let (tool_types, parameters) = (
        job.plan.ignored().to_vec(),
        job.plan.ignored_parameters.clone(),
    );
    let witness = job.plan.witness.clone();
    let mut response = if let Some(body) = body {
        Box::pin(background::start(app, &caller, &request, &body, job)).await?
    } else if request.stream {
        let wait = app.options.answer_wait;
        let keep_alive = app.options.keep_alive;
        let follower = job.follow(&app, true);
        sse::answer(follower, caller.dialect, wait, keep_alive).await?
    } else {
        let ended = finish(job.follow(&app, false)).await?;
        reply::ok(&dialected(ended.resource, caller.dialect))
    };
    warning::report(&mut response, &tool_types, &parameters);
    if let Some(deferred) = deferred.and_then(|it| HeaderValue::try_from(it).ok()) {
        response
            .headers_mut()
            .insert("haft-deferred-tools", deferred);
    }
    reply::name_stand_ins(&mut response, &witness);
    Ok(response)
}

/// Takes a request in. Gives its body, too.
pub(super) async fn receive(
    app: &Arc<App>,
    request: Request,
    door: Door,
) -> Result<(CreateRequest, Bytes), ApiError> {
    let body = body::read_json_bytes(request, app).await?;
    let app = Arc::clone(app);
    let digested = body::digest(body.clone(), move |body| {
        read(&app, body::parse(body)?, door)
    });
    Ok((digested.await?, body))
}

/// Reads a body by the words that this server knows.
pub(crate) fn read(app: &App, body: Value, door: Door) -> Result<CreateRequest, ApiError> {
    counts::check_request(&body, &app.options.limits)?;
    let is_vendor_type = |tool_type: &str| app.is_vendor_type(tool_type);
    let words = Vocabulary {
        is_vendor_type: &is_vendor_type,
        schemas: &BoundedSchemas::default(),
    };
    CreateRequest::read(body, door, &words)
}

/// Everything up to the first request to the model: checked, looked up, admitted.
pub(crate) async fn prepare(
    app: &Arc<App>,
    caller: &Caller,
    request: &Arc<CreateRequest>,
    memory: Option<&Remembered>,
) -> Result<Box<Job>, ApiError> {
    // A model that does not exist is told before anybody waits for it.
    app.models.find(request.model.as_deref())?;
    // Those who wait for their turn hold nothing but what they sent.
    let permit = app.admit(caller).await?;
    let unadmitted = arrange(app, caller, request, memory, Patience::OfRequest).await?;
    take_answers(app, caller, &unadmitted).await?;
    if let Some(tools) = unadmitted.plan.deferred_tools() {
        let request_id = &*caller.request_id;
        tracing::info!(
            request_id,
            tools,
            "deferred tools that the model has to search for"
        );
    }
    warning::log(&unadmitted.plan.ignored_parameters);
    Ok(unadmitted.admitted(permit))
}

/// Claims the approval requests that this request answers, so that no call is executed twice or after a
/// refusal.
async fn take_answers(app: &App, caller: &Caller, job: &Unadmitted) -> Result<(), ApiError> {
    let owner = &caller.owner;
    for id in job.context.iter().filter_map(refused_now) {
        app.claim_refusal(owner, id).await?;
    }
    let response_id = &job.translator.resource().id;
    for (id, _) in &job.plan.opening.allowed {
        app.claim_approval(owner, id, response_id).await?;
    }
    Ok(())
}

/// A job that nobody has let in yet.
pub(crate) struct Unadmitted {
    pub(crate) plan: Box<Plan>,
    pub(crate) translator: Box<Translator>,
    pub(crate) place: Place,
    pub(crate) compaction: Option<Compaction>,
    context: Vec<Record>,
    lock: Option<ConversationLock>,
    pub(crate) so_far: Option<Box<RunSoFar>>,
    pub(crate) watch: RunWatch,
}

impl Unadmitted {
    pub(crate) fn admitted(self, permit: RunPermit) -> Box<Job> {
        Box::new(Job {
            plan: self.plan,
            translator: self.translator,
            place: self.place,
            compaction: self.compaction,
            context: self.context,
            so_far: self.so_far,
            lock: self.lock,
            permit,
            watch: self.watch,
        })
    }
}

/// The question that this request says no to, if it does.
fn refused_now(record: &Record) -> Option<&str> {
    let is_said_now = record.param.is_some() && record.item.kind() == "mcp_approval_response";
    let Item::Other(members) = &record.item else {
        return None;
    };
    let is_no = members.get("approve") != Some(&Value::Bool(true));
    let id = members.get("approval_request_id")?.as_str()?;
    (is_said_now && is_no).then_some(id)
}

/// Everything but the admission.
pub(crate) async fn arrange(
    app: &Arc<App>,
    caller: &Caller,
    request: &Arc<CreateRequest>,
    memory: Option<&Remembered>,
    patience: Patience,
) -> Result<Unadmitted, ApiError> {
    let context = app.context(caller, request, memory).await?;
    let planned = plan(app, caller, request, context, patience).await?;
    let (mut plan, translator, mut context) = planned;
    let compaction = compaction(&plan, request, &context)?;
    if compaction.is_none() {
        plan.conversation = plan.fit(plan.conversation.clone())?;
    }
    let watch = plan.watched(app, caller, request, &translator);
    let mut input = Vec::new();
    if request.store {
        for record in &context.input {
            input.push(record.to_stored()?);
        }
    }
    Ok(Unadmitted {
        plan,
        translator,
        place: Place {
            owner: caller.owner.clone(),
            previous: request.previous_response_id.clone(),
            conversation: request.conversation.clone(),
            input,
            is_stored: request.store,
        },
        compaction,
        context: context.inherited.into_iter().chain(context.input).collect(),
        lock: context.lock.take(),
        so_far: None,
        watch,
    })
}

/// From how many tools and items on a request is not planned between others.
const LARGE: usize = 256;

/// Plans a request, beside the others if it is large. Gives the context back.
async fn plan(
    app: &Arc<App>,
    caller: &Caller,
    request: &Arc<CreateRequest>,
    context: Context,
    patience: Patience,
) -> Result<(Box<Plan>, Box<Translator>, Context), ApiError> {
    let servers = app.mcp_servers(caller, request, &context, patience).await?;
    if request.tools.len() + context.pieces.len() < LARGE {
        let (plan, translator) = Plan::make(app, caller, request, &context, &servers)?;
        return Ok((plan, translator, context));
    }
    let (app, caller, request) = (Arc::clone(app), caller.clone(), Arc::clone(request));
    body::aside(move || {
        let (plan, translator) = Plan::make(&app, &caller, &request, &context, &servers)?;
        Ok((plan, translator, context))
    })
    .await
}

/// The compaction that a request asks for, or that its context is long enough for.
fn compaction(
    plan: &Plan,
    request: &CreateRequest,
    context: &Context,
) -> Result<Option<Compaction>, ApiError> {
    if context.compacts_now {
        if context.pieces.is_empty() {
            let message =
                "there is nothing to compact: send items in front of `compaction_trigger`";
            return Err(ApiError::new(ErrorCode::InvalidValue, message).at("input"));
        }
        return Ok(Some(Compaction::now(context.pieces.clone())));
    }
    // What was allowed is to be carried out, and the question with it: compacted is the next time.
    let is_free = plan.opening.allowed.is_empty();
    let threshold = request.compact_threshold.filter(|_| is_free);
    let threshold = threshold.filter(|threshold| plan.input_tokens() > *threshold);
    Ok(threshold.and_then(|threshold| Compaction::beyond(threshold, context.pieces.clone())))
}

/// Waits for the end of a run that nobody watches.
async fn finish(mut follower: Follower) -> Result<Box<Ended>, ApiError> {
    while let Some(signal) = follower.next().await {
        match signal {
            Signal::Refused(error) => return Err(*error),
            Signal::Ended(ended) => return Ok(ended),
            Signal::Events(_) | Signal::Answering => {}
        }
    }
    Err(ApiError::new(
        ErrorCode::ServerError,
        "the run broke off without saying why",
    ))
}

/// The resource in the caller's dialect.
pub(crate) fn dialected(
    mut resource: Box<ResponseResource>,
    dialect: Dialect,
) -> Box<ResponseResource> {
    resource.status = dialect.status(resource.status);
    resource
}

/// `POST /responses/input_tokens`: how much a request would send.
pub(super) async fn input_tokens(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let (request, _) = receive(&app, request, Door::InputTokens).await?;
    let request = Arc::new(request);
    let context = app.context(&caller, &request, None).await?;
    let (plan, _, _) = plan(&app, &caller, &request, context, Patience::OfRequest).await?;
    let tokens = plan.input_tokens();
    let mut response = reply::ok(&json!({
        "object": "response.input_tokens",
        "input_tokens": tokens,
    }));
    warning::log(&request.ignored);
    warning::report(&mut response, plan.ignored(), &request.ignored);
    Ok(response)
}
