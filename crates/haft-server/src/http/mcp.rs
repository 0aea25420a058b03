//! `GET /haft/mcp` and `GET /haft/mcp/calls`: the MCP servers and the calls of their tools. Extensions of haft's
//! own. Every key sees the servers; figures and calls are those of the caller's own tenant.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use haft_mcp::{Era, ServerState, ServerStatus, TransportKind};
use serde_json::{Value, json};

use super::reply;
use crate::app::{App, Caller};
use crate::error::{ApiError, ErrorCode};
use crate::gateway::{CallJournal, CallQuery};
use crate::watch::McpFigures;
use crate::wire::Parameters;

/// How many calls a list has, and at most.
const LIMIT: usize = 20;
const MAX_LIMIT: usize = 100;

pub(super) async fn servers(State(app): State<Arc<App>>, caller: Caller) -> Response {
    let servers = app.mcp.servers();
    let statuses = servers.iter().map(|server| server.status());
    let statuses = statuses.chain(app.mcp_unusable.iter().cloned());
    let data: Vec<Value> = statuses
        .map(|status| {
            let figures = app.watch.mcp_figures(caller.owner.as_str(), &status.label);
            server(&status, &figures)
        })
        .collect();
    reply::ok(&json!({"object": "list", "data": data}))
}

fn server(status: &ServerStatus, figures: &McpFigures) -> Value {
    let (reason, retry_in) = match &status.state {
        ServerState::Unavailable {
            reason, retry_in, ..
        } => (Some(reason), *retry_in),
        _ => (None, None),
    };
    let seconds = |time: std::time::Duration| (time.as_secs_f64() * 10.0).round() / 10.0;
    json!({
        "object": "mcp_server",
        "name": status.label,
        "description": status.description,
        "transport": status.transport.map(|transport| match transport {
            TransportKind::Stdio => "stdio",
            TransportKind::Http => "http",
            TransportKind::Sse => "sse",
            _ => "custom",
        }),
        "era": status.era.map(|era| match era {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        }),
        "state": status.state.as_str(),
        "reason": reason,
        "retry_in_seconds": retry_in.map(seconds),
        "tools": status.tools,
        "held": status.held,
        "list_age_seconds": status.list_age.map(seconds),
        "connections": status.connections,
        "calls": figures.calls,
        "errors": figures.errors,
        "p50_ms": figures.p50_ms(),
        "last_used_at": (figures.calls > 0).then_some(figures.last_used_at),
    })
}

pub(super) async fn calls(
    State(app): State<Arc<App>>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::read(query.as_deref())?;
    let text = |name: &str| parameters.last(name).map(str::to_owned);
    let limit = match parameters.last("limit") {
        None => LIMIT,
        Some(text) => match text.parse() {
            Ok(limit) if (1..=MAX_LIMIT).contains(&limit) => limit,
            _ => {
                let message = format!("`limit` must be a number from 1 to {MAX_LIMIT}");
                return Err(ApiError::new(ErrorCode::InvalidValue, message).at("limit"));
            }
        },
    };
    let query = CallQuery {
        caller: Some(caller.owner.as_str().to_owned()),
        server: text("server"),
        tool: text("tool"),
        only_errors: parameters.last("errors") == Some("true"),
        limit,
    };
    let Some(journal) = &app.call_journal else {
        return Ok(reply::ok(&json!({"object": "list", "data": []})));
    };
    let folder = journal.folder().to_owned();
    let _load = app.begin_load().await;
    let read = tokio::task::spawn_blocking(move || CallJournal::read(&folder, &query)).await;
    match read {
        Ok(Ok(entries)) => Ok(reply::ok(&json!({"object": "list", "data": entries}))),
        failed => {
            tracing::error!(?failed, "the record of calls cannot be read");
            let message = "internal server error: the record of calls cannot be read";
            Err(ApiError::new(ErrorCode::ServerError, message))
        }
    }
}
