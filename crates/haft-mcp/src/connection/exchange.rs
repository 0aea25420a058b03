//! Requests for prompts, resources and completions, and what the log of a server is to hold.

// Logging and subscriptions to single resources are deprecated by the protocol; servers of the older
// revisions still have them.
#![expect(deprecated)]

use std::collections::BTreeMap;

use rmcp::model::{
    ArgumentInfo, ClientRequest, CompleteRequest, CompleteRequestParams, CompletionContext,
    GetPromptRequest, GetPromptRequestParams, LoggingLevel, PromptReference, ReadResourceRequest,
    ReadResourceRequestParams, Reference, RequestMetaObject, ResourceTemplateReference,
    SetLevelRequest, SetLevelRequestParams, SubscribeRequest, SubscribeRequestParams,
    UnsubscribeRequest, UnsubscribeRequestParams,
};
use rmcp::service::PeerRequestOptions;
use serde_json::{Map, Value};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::Instant;

use super::call::{CallOptions, OnLog};
use super::request::{Waits, later};
use super::rounds::{NextRound, Rounds};
use super::{Connection, LOGINS};
use crate::error::{Cause, Era, McpError, Phase};
use crate::log_message::LogLevel;
use crate::traffic::ServerEvent;

/// What an argument that is to be completed belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completed {
    /// The prompt with this name.
    Prompt(String),
    /// The resource template with this text.
    Template(String),
}

/// One kind of request that a server may answer with questions (`input_required`).
trait InRounds {
    fn request(&self) -> ClientRequest;
    fn set_input(&mut self, responses: Option<BTreeMap<String, Value>>, state: Option<String>);
}

impl InRounds for GetPromptRequestParams {
    fn request(&self) -> ClientRequest {
        ClientRequest::GetPromptRequest(GetPromptRequest::new(self.clone()))
    }

    fn set_input(&mut self, responses: Option<BTreeMap<String, Value>>, state: Option<String>) {
        self.input_responses = responses;
        self.request_state = state;
    }
}

impl InRounds for ReadResourceRequestParams {
    fn request(&self) -> ClientRequest {
        ClientRequest::ReadResourceRequest(ReadResourceRequest::new(self.clone()))
    }

    fn set_input(&mut self, responses: Option<BTreeMap<String, Value>>, state: Option<String>) {
        self.input_responses = responses;
        self.request_state = state;
    }
}

impl Connection {
    /// Reads a resource; the result is as the server wrote it.
    pub async fn read_resource(
        &self,
        uri: &str,
        options: CallOptions<'_>,
    ) -> Result<Value, McpError> {
        let params = ReadResourceRequestParams::new(uri);
        self.in_rounds(Phase::Read, uri, params, options).await
    }

    /// Gets a prompt, filled in with arguments; the result is as the server wrote it.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        options: CallOptions<'_>,
    ) -> Result<Value, McpError> {
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        self.in_rounds(Phase::Prompt, name, params, options).await
    }

    /// Completes an argument; `known` are the arguments that are decided already. The result is as the
    /// server wrote it. A server that declares no completions is not asked.
    pub async fn complete(
        &self,
        of: &Completed,
        argument: &str,
        value: &str,
        known: BTreeMap<String, String>,
        options: CallOptions<'_>,
    ) -> Result<Value, McpError> {
        if !self.identity.capabilities.completions {
            return Ok(Value::Null);
        }
        let reference = match of {
            Completed::Prompt(name) => Reference::Prompt(PromptReference::new(name)),
            Completed::Template(uri) => Reference::Resource(ResourceTemplateReference::new(uri)),
        };
        let argument = ArgumentInfo::new(argument, value);
        let mut params = CompleteRequestParams::new(reference, argument);
        if !known.is_empty() {
            let known = known.into_iter().collect();
            params.context = Some(CompletionContext::with_arguments(known));
        }
        let request = ClientRequest::CompleteRequest(CompleteRequest::new(params));
        self.once(Phase::Complete, request, options).await
    }

    /// Subscribes to a resource of a legacy server. Modern ones are subscribed to by
    /// [`watch_resources`](Self::watch_resources).
    pub(crate) async fn subscribe(
        &self,
        uri: &str,
        options: CallOptions<'_>,
    ) -> Result<(), McpError> {
        let params = SubscribeRequestParams::new(uri);
        let request = ClientRequest::SubscribeRequest(SubscribeRequest::new(params));
        self.once(Phase::Subscribe, request, options).await?;
        Ok(())
    }

    pub(crate) async fn unsubscribe(&self, uri: &str) -> Result<(), McpError> {
        let params = UnsubscribeRequestParams::new(uri);
        let request = ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(params));
        let options = CallOptions::default();
        self.once(Phase::Subscribe, request, options).await?;
        Ok(())
    }

    /// Tells a legacy server which log messages to send. Nothing is sent to a server that declares no
    /// logging, and to modern ones: they are told with each request.
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), McpError> {
        if self.era == Era::Modern || !self.identity.capabilities.logging {
            return Ok(());
        }
        let params = SetLevelRequestParams::new(protocol_level(level));
        let request = ClientRequest::SetLevelRequest(SetLevelRequest::new(params));
        let options = CallOptions {
            call_timeout: Some(self.settings.timeouts.control),
            ..CallOptions::default()
        };
        self.once(Phase::SetLevel, request, options).await?;
        Ok(())
    }

    /// Waits for an answer, and passes on the log messages that arrive before it.
    pub(super) async fn with_logs<T>(
        &self,
        on_log: Option<&OnLog>,
        answer: impl Future<Output = T>,
    ) -> T {
        let Some(on_log) = on_log else {
            return answer.await;
        };
        let mut events = self.traffic.events();
        let pass_on = |event: ServerEvent| match event {
            ServerEvent::Log(message) if message.is_during_request => on_log(&message),
            _ => {}
        };
        let mut answer = std::pin::pin!(answer);
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut answer => break answer,
                event = events.recv() => match event {
                    Ok(event) => pass_on(event),
                    Err(RecvError::Lagged(_)) => {}
                    // The connection has ended, which the answer will say.
                    Err(RecvError::Closed) => return answer.await,
                },
            }
        };
        loop {
            match events.try_recv() {
                Ok(event) => pass_on(event),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return answer,
            }
        }
    }

    /// Sends a request that is answered at once, without questions.
    async fn once(
        &self,
        phase: Phase,
        request: ClientRequest,
        options: CallOptions<'_>,
    ) -> Result<Value, McpError> {
        let started = Instant::now();
        let total = options.call_timeout.unwrap_or(self.settings.timeouts.call);
        let waits = Waits {
            idle: options.idle_timeout.unwrap_or(self.settings.timeouts.idle),
            until: later(started, total),
            total: (total, "call_timeout"),
            cancel: &options.cancel,
            asking: None,
        };
        let mut request_options = PeerRequestOptions::no_options();
        request_options.meta = self.meta(options.trace, None, options.log_level);
        let line = self.line();
        match line.request(request, request_options, &waits, None).await {
            Ok((result, _)) => Ok(result),
            Err(cause) => Err(self.failed(phase, started, cause).await),
        }
    }

    async fn in_rounds(
        &self,
        phase: Phase,
        subject: &str,
        params: impl InRounds,
        options: CallOptions<'_>,
    ) -> Result<Value, McpError> {
        let started = Instant::now();
        let answer = self.rounds(subject, params, options, started).await;
        match answer {
            Ok(result) => Ok(result),
            Err(cause) => Err(self.failed(phase, started, cause).await),
        }
    }

    /// The limits, questions and logins are those of a call.
    async fn rounds(
        &self,
        subject: &str,
        mut params: impl InRounds,
        mut options: CallOptions<'_>,
        started: Instant,
    ) -> Result<Value, Cause> {
        let total = options.call_timeout.unwrap_or(self.settings.timeouts.call);
        let asks = self.era == Era::Legacy && self.desk.is_open();
        let mut waits = Waits {
            idle: options.idle_timeout.unwrap_or(self.settings.timeouts.idle),
            until: later(started, total),
            total: (total, "call_timeout"),
            cancel: &options.cancel,
            asking: asks.then(|| self.desk.asking()),
        };
        let _permit = tokio::select! {
            biased;
            () = options.cancel.cancelled() => return Err(Cause::Cancelled),
            permit = self.permits.acquire() => permit,
            () = tokio::time::sleep_until(waits.until) => {
                return Err(Cause::TimedOut { limit: total, setting: "call_timeout" });
            }
        };
        let asker = self.desk.asker(options.asker.take());
        let mut under_way = self.desk.call(asker.clone());
        let meta = self.meta(options.trace, asker.as_deref(), options.log_level);
        let mut logins = 0;
        let mut rounds = Rounds::new(&self.desk, asker, &self.settings, subject);
        loop {
            let mut request_options = PeerRequestOptions::no_options();
            request_options.meta.clone_from(&meta);
            let on_progress = options.on_progress.as_mut().map(|it| &mut **it as _);
            let line = self.line();
            let request = params.request();
            let answer = Box::pin(line.request(request, request_options, &waits, on_progress));
            let answer = self.with_logs(options.on_log.as_ref(), answer).await;
            if matches!(answer, Ok(_) | Err(Cause::Protocol { .. })) {
                under_way.answered();
            }
            let result = match answer {
                Err(cause @ Cause::LoginRequired { .. }) if logins < LOGINS => {
                    logins += 1;
                    let began = Instant::now();
                    tokio::select! {
                        biased;
                        () = options.cancel.cancelled() => return Err(Cause::Cancelled),
                        logged_in = self.log_in(cause) => logged_in?,
                    }
                    // The time of a person is not counted.
                    waits.until = later(waits.until, began.elapsed());
                    continue;
                }
                answer => answer?.0,
            };
            if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
                return Ok(result);
            }
            let next = tokio::select! {
                biased;
                () = options.cancel.cancelled() => return Err(Cause::Cancelled),
                next = rounds.next(&result) => next?,
            };
            let NextRound {
                responses,
                state,
                asked,
            } = next;
            params.set_input(responses, state);
            waits.until = later(waits.until, asked);
        }
    }
}

pub(super) fn with_log_level(meta: &mut RequestMetaObject, level: LogLevel) {
    meta.set_log_level(protocol_level(level));
}

fn protocol_level(level: LogLevel) -> LoggingLevel {
    match level {
        LogLevel::Debug => LoggingLevel::Debug,
        LogLevel::Info => LoggingLevel::Info,
        LogLevel::Notice => LoggingLevel::Notice,
        LogLevel::Warning => LoggingLevel::Warning,
        LogLevel::Error => LoggingLevel::Error,
        LogLevel::Critical => LoggingLevel::Critical,
        LogLevel::Alert => LoggingLevel::Alert,
        LogLevel::Emergency => LoggingLevel::Emergency,
    }
}
