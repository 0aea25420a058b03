//! The gateway as the protocol library sees it: one handler for each client.

// Logging and subscriptions to single resources are deprecated by the protocol; clients of the older
// revisions still have them.
#![expect(deprecated)]

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
    InitializeResult, InputResponses, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, LoggingMessageNotificationParam, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, Reference, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleServer, SubscriptionContext};
use serde_json::{Map, Value};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

use super::backend::{
    Backend, BackendError, CallRequest, Change, CompletionOf, CompletionRequest, PromptRequest,
    ReadRequest, WatchGuard,
};
use super::caller::Caller;
use super::context::LogLevel;
use super::gateway::Gateway;
use super::input::{Answer, Input};
use super::job::{Finished, ForWhom, Work};
use super::line::{self, Line};
use super::outcome::CallOutcome;
use super::pages::Listable;
use super::rounds::{Request, Round, Rounds};
use super::state::Bound;
use super::target::{self, Target};
use super::watch::{Watch, Watched};
use super::{convert, facade, overview};

/// How many resources one client may watch.
const WATCHED: usize = 1_024;
/// How many listeners may be on their way in at once on one connection.
const LISTENERS: usize = 64;

/// One client's view of the gateway: for a connection or a session in the legacy era and over standard
/// input, for a single request in the modern era over HTTP.
pub(super) struct Handler<B> {
    gateway: Gateway<B>,
    caller: Caller,
    log_level: Mutex<LogLevel>,
    /// Passes on log messages that belong to no call, once the client has set a level.
    logs: Mutex<Option<AbortOnDrop>>,
    watched: Watched,
    /// Opened before the client is told that it is heard, so that no change falls between.
    opened: Mutex<Vec<broadcast::Receiver<Change>>>,
    watch: Mutex<Option<AbortOnDrop>>,
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<B: Backend> Handler<B> {
    pub(super) fn new(gateway: Gateway<B>, caller: Caller) -> Self {
        Self {
            gateway,
            caller,
            log_level: Mutex::new(LogLevel::Info),
            logs: Mutex::default(),
            watched: Watched::default(),
            opened: Mutex::default(),
            watch: Mutex::default(),
        }
    }

    fn backend(&self) -> &B {
        &self.gateway.core.backend
    }

    /// Starts to hear of changes.
    fn open_changes(&self) -> bool {
        let Some(changes) = self.backend().changes() else {
            return false;
        };
        let mut opened = lock(&self.opened);
        if opened.len() < LISTENERS {
            opened.push(changes);
        }
        true
    }

    /// Hears of changes since they were opened. Any of the opened ones will do: none is younger than
    /// the request that asks.
    fn changes(&self) -> Option<broadcast::Receiver<Change>> {
        let opened = lock(&self.opened).pop();
        opened.or_else(|| self.backend().changes())
    }

    /// Subscribes a modern client to the resources that it listens to. What it may not subscribe to was
    /// not acknowledged; a server that fails now is subscribed to by none.
    async fn watch_all(&self, uris: Vec<String>) -> Vec<WatchGuard> {
        let subscribed = uris.iter().take(WATCHED).map(|uri| async move {
            let subscribed = self.backend().subscribe(&self.caller, uri).await;
            subscribed
                .inspect_err(|error| tracing::debug!(%error, "failed to subscribe to a resource"))
                .ok()
        });
        let guards = join_all(subscribed).await;
        guards.into_iter().flatten().collect()
    }

    /// Passes log messages that belong to no call on to a client that has set this level.
    fn pass_on_logs(&self, peer: Peer<RoleServer>, least: LogLevel) {
        let Some(mut logs) = self.backend().logs(&self.caller) else {
            return;
        };
        let task = tokio::spawn(async move {
            loop {
                let log = match logs.recv().await {
                    Ok(log) if log.level >= least => log,
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => continue,
                    Err(broadcast::error::RecvError::Closed) => return,
                };
                let level = line::protocol_level(log.level);
                let mut message = LoggingMessageNotificationParam::new(level, log.data);
                message.logger = log.logger;
                if peer.notify_logging_message(message).await.is_err() {
                    return;
                }
            }
        });
        *lock(&self.logs) = Some(AbortOnDrop(task.abort_handle()));
    }

    /// Runs a request through its rounds.
    async fn run(
        &self,
        context: RequestContext<RoleServer>,
        work: Work,
        label: Option<String>,
        bound: Bound,
        (answers, state): (BTreeMap<String, Answer>, Option<String>),
    ) -> Result<Round, ErrorData> {
        let logging = self.backend().features().logging;
        let log_level = logging.then(|| *lock(&self.log_level));
        let (line, client, trace) = Line::new(context, log_level);
        let request = Request {
            work,
            whom: ForWhom {
                caller: self.caller.clone(),
                client,
                trace,
                log_level: line.log_level(),
            },
            label,
            bound,
            answers,
            state,
        };
        let core = &self.gateway.core;
        let rounds = Rounds {
            backend: &core.backend,
            sealer: &core.sealer,
            parked: &core.parked,
        };
        tokio::select! {
            round = rounds.run(request, line) => round,
            () = core.closing.cancelled() => {
                Err(ErrorData::internal_error("the server is shutting down", None))
            }
        }
    }

    /// One page of a list of this client, and the cursor of the next.
    fn page<T: Listable>(
        &self,
        list: &str,
        items: Vec<T>,
        request: Option<PaginatedRequestParams>,
    ) -> Result<(Vec<T>, Option<String>), ErrorData> {
        let subset = self.gateway.narrowed.as_ref().map(|it| it.name.as_str());
        let owner = format!(
            "{list}/{}/{}",
            subset.unwrap_or_default(),
            self.caller.principal()
        );
        let cursor = request.and_then(|request| request.cursor);
        let pages = &self.gateway.core.pages;
        pages.page(&owner, items, cursor.as_deref())
    }

    fn bound(&self, method: &str, name: &str, arguments: &Map<String, Value>) -> Bound {
        let subset = self.gateway.narrowed.as_ref();
        let subset = subset.map(|narrowed| narrowed.name.as_str());
        Bound::to(&self.caller, subset, method, name, arguments)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The answers, each of which must be an object.
fn answers(responses: Option<InputResponses>) -> Result<BTreeMap<String, Answer>, ErrorData> {
    let responses = responses.unwrap_or_default().into_iter();
    responses
        .map(|(key, value)| {
            if let Value::Object(object) = value {
                return Ok((key, Answer::new(object)));
            }
            let key: String = key.chars().take(100).collect();
            let text = format!("`inputResponses`: the answer `{key}` must be an object");
            Err(ErrorData::invalid_params(text, None))
        })
        .collect()
}

fn unsupported() -> ErrorData {
    convert::error(&BackendError::Unsupported, true)
}

/// A page of a list; older revisions know nothing of keeping it.
macro_rules! page_result {
    ($result:ident, $items:expr, $next:expr, $hints:expr, $modern:expr) => {{
        let mut result = $result::with_all_items($items);
        result.next_cursor = $next;
        if $modern {
            result.ttl_ms = Some(convert::ttl($hints));
            result.cache_scope = Some(convert::scope($hints));
        }
        result
    }};
}

/// A round that ended with something of another kind; it cannot, but nobody should fall over it.
fn mixed_up() -> ErrorData {
    ErrorData::internal_error("the request ended as another one", None)
}

impl<B: Backend> ServerHandler for Handler<B> {
    fn get_info(&self) -> ServerConfig {
        let identity = self.backend().identity();
        let features = self.backend().features();
        let changes = self.backend().changes().is_some().then_some(true);
        let mut capabilities = ServerCapabilities::builder().enable_tools().build();
        if let Some(tools) = &mut capabilities.tools {
            tools.list_changed = changes;
        }
        if features.prompts {
            let prompts = capabilities.prompts.get_or_insert_default();
            prompts.list_changed = changes;
        }
        if features.resources {
            let resources = capabilities.resources.get_or_insert_default();
            resources.list_changed = changes;
            resources.subscribe = changes;
        }
        if features.completion {
            capabilities.completions = Some(Map::new());
        }
        if features.logging {
            capabilities.logging = Some(Map::new());
        }
        let mut program = Implementation::new(identity.name, identity.version);
        program.title = identity.title;
        let mut config = ServerConfig::new(capabilities).with_server_info(program);
        let servers = self.gateway.servers(&self.caller);
        config.instructions = overview::instructions(identity.instructions, &servers);
        config
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.open_changes();
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(changes) = self.changes() else {
            return;
        };
        let watch = Watch::new(self.gateway.clone(), self.caller.clone(), changes);
        let task = tokio::spawn(watch.tell(context.peer, self.watched.clone()));
        // A client that says it twice has one watch all the same.
        *lock(&self.watch) = Some(AbortOnDrop(task.abort_handle()));
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let modern = line::is_modern(&context);
        let visible = self.gateway.visible(&self.caller).await;
        let visible = visible.map_err(|error| convert::error(&error, modern))?;
        let listed = self.gateway.listed(&self.caller, &visible);
        let (tools, next) = self.page("tools", listed, request)?;
        let tools = tools.iter().map(|tool| convert::tool(tool)).collect();
        Ok(page_result!(
            ListToolsResult,
            tools,
            next,
            visible.hints,
            modern
        ))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        if let Some(tool) = self.gateway.find(&self.caller, name) {
            return Some(convert::tool(&tool));
        }
        facade::find(name).map(|tool| convert::tool(tool))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let modern = line::is_modern(&context);
        let arguments = request.arguments.unwrap_or_default();
        let bound = self.bound("tools/call", &request.name, &arguments);
        let input = (answers(request.input_responses)?, request.request_state);
        let target = target::find(&self.gateway, &self.caller, &request.name, arguments).await;
        let (tool, arguments) = match target {
            Ok(Target::Tool(tool, arguments)) => (tool, arguments),
            Ok(Target::Answered(outcome)) => {
                if outcome.is_error {
                    let reason = "invalid_arguments";
                    self.backend()
                        .call_rejected(&self.caller, &request.name, reason);
                }
                return Ok(convert::call_result(outcome).into());
            }
            Err(error) => {
                let reason = match &error {
                    BackendError::UnknownTool(_) => "unknown_tool",
                    _ => "unavailable",
                };
                self.backend()
                    .call_rejected(&self.caller, &request.name, reason);
                return Err(convert::error(&error, modern));
            }
        };
        let label = tool.server.clone();
        let work = Work::Call(CallRequest {
            tool,
            arguments,
            input: Input::default(),
        });
        match self.run(context, work, label, bound, input).await? {
            Round::Complete(Finished::Call(outcome)) => Ok(convert::call_result(outcome).into()),
            Round::Complete(_) => Err(mixed_up()),
            Round::Needs(result) => Ok(result.into()),
            Round::Refused(text) => Ok(convert::call_result(CallOutcome::error(text)).into()),
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        if !self.open_changes() {
            return None;
        }
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| self.backend().watches(&self.caller, uri));
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        if let Some(changes) = self.changes() {
            let uris = context.accepted().resource_subscriptions.clone();
            let watch = Watch::new(self.gateway.clone(), self.caller.clone(), changes);
            let subscribed = async {
                let _guards = self.watch_all(uris.unwrap_or_default()).await;
                std::future::pending::<()>().await;
            };
            // A server that is slow to subscribe delays no notices of the others.
            tokio::select! {
                () = watch.tell_listener(context) => {}
                () = subscribed => {}
            }
        }
        Ok(())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        if !self.backend().features().prompts {
            return Err(unsupported());
        }
        let modern = line::is_modern(&context);
        let listing = self.backend().prompts(&self.caller).await;
        let listing = listing.map_err(|error| convert::error(&error, modern))?;
        let (items, next) = self.page("prompts", listing.items, request)?;
        let items = items.into_iter().map(convert::prompt).collect();
        Ok(page_result!(
            ListPromptsResult,
            items,
            next,
            listing.hints,
            modern
        ))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if !self.backend().features().prompts {
            return Err(unsupported());
        }
        let arguments = request.arguments.unwrap_or_default();
        let bound = self.bound("prompts/get", &request.name, &arguments);
        let input = (answers(request.input_responses)?, request.request_state);
        let work = Work::Prompt(PromptRequest {
            name: request.name,
            arguments,
            input: Input::default(),
        });
        match self.run(context, work, None, bound, input).await? {
            Round::Complete(Finished::Prompt(outcome)) => {
                Ok(convert::prompt_result(outcome).into())
            }
            Round::Complete(_) => Err(mixed_up()),
            Round::Needs(result) => Ok(result.into()),
            Round::Refused(text) => Err(ErrorData::invalid_request(text, None)),
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        if !self.backend().features().resources {
            return Err(unsupported());
        }
        let modern = line::is_modern(&context);
        let listing = self.backend().resources(&self.caller).await;
        let listing = listing.map_err(|error| convert::error(&error, modern))?;
        let (items, next) = self.page("resources", listing.items, request)?;
        let items = items.into_iter().map(convert::resource).collect();
        Ok(page_result!(
            ListResourcesResult,
            items,
            next,
            listing.hints,
            modern
        ))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        if !self.backend().features().resources {
            return Err(unsupported());
        }
        let modern = line::is_modern(&context);
        let listing = self.backend().resource_templates(&self.caller).await;
        let listing = listing.map_err(|error| convert::error(&error, modern))?;
        let (items, next) = self.page("templates", listing.items, request)?;
        let items = items.into_iter().map(convert::template).collect();
        Ok(page_result!(
            ListResourceTemplatesResult,
            items,
            next,
            listing.hints,
            modern
        ))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if !self.backend().features().resources {
            return Err(unsupported());
        }
        let modern = line::is_modern(&context);
        let bound = self.bound("resources/read", &request.uri, &Map::new());
        let input = (answers(request.input_responses)?, request.request_state);
        let work = Work::Read(ReadRequest {
            uri: request.uri,
            input: Input::default(),
        });
        match self.run(context, work, None, bound, input).await? {
            Round::Complete(Finished::Read(outcome)) => {
                let mut result = convert::read_result(outcome);
                if !modern {
                    (result.ttl_ms, result.cache_scope) = (None, None);
                }
                Ok(result.into())
            }
            Round::Complete(_) => Err(mixed_up()),
            Round::Needs(result) => Ok(result.into()),
            Round::Refused(text) => Err(ErrorData::invalid_request(text, None)),
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !self.backend().features().resources {
            return Err(unsupported());
        }
        if lock(&self.watched).len() >= WATCHED {
            let text =
                format!("more than {WATCHED} resources are watched: unsubscribe from some first");
            return Err(ErrorData::invalid_request(text, None));
        }
        let guard = self.backend().subscribe(&self.caller, &request.uri).await;
        let guard = guard.map_err(|error| convert::error(&error, false))?;
        lock(&self.watched).insert(request.uri, guard);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !self.backend().features().resources {
            return Err(unsupported());
        }
        lock(&self.watched).remove(&request.uri);
        Ok(())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        if !self.backend().features().completion {
            return Err(unsupported());
        }
        let of = match request.r#ref {
            Reference::Prompt(prompt) => CompletionOf::Prompt(prompt.name),
            Reference::Resource(resource) => CompletionOf::Resource(resource.uri),
            _ => return Err(ErrorData::invalid_params("unknown kind of `ref`", None)),
        };
        let known = request.context.and_then(|it| it.arguments);
        let known = known.unwrap_or_default();
        let request = CompletionRequest {
            of,
            argument: request.argument.name,
            value: request.argument.value,
            known: known.into_iter().collect(),
        };
        let modern = line::is_modern(&context);
        let completion = self.backend().complete(request, &self.caller).await;
        let completion = completion.map_err(|error| convert::error(&error, modern))?;
        Ok(CompleteResult::new(convert::completion(completion)))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !self.backend().features().logging || line::is_modern(&context) {
            let method = "logging/setLevel";
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None));
        }
        let level = line::level(request.level);
        *lock(&self.log_level) = level;
        self.backend().set_log_level(&self.caller, level);
        self.pass_on_logs(context.peer, level);
        Ok(())
    }
}
