//! Calls to a server of a pool, over whichever connection there is.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value};

use super::{Server, is_gone};
use crate::connection::CallOptions;
use crate::error::{Cause, McpError};
use crate::outcome::ToolOutcome;

const UNKNOWN_TOOL: i64 = -32602;

impl Server {
    /// Calls a tool by its raw name.
    ///
    /// A call that never reached the server is sent once more over a new connection. One that may have
    /// reached it is sent again only if the server is trusted and says that this tool reads only, or
    /// does no more when it is called twice.
    pub async fn call(
        self: &Arc<Self>,
        raw: &str,
        arguments: Map<String, Value>,
        mut options: CallOptions<'_>,
    ) -> Result<ToolOutcome, McpError> {
        let _using = Using::new(self);
        let mut connection = self.connection_unless(&options.cancel).await?;
        tokio::select! {
            biased;
            () = options.cancel.cancelled() => return Err(self.failure(Cause::Cancelled)),
            checked = self.check_tool(raw) => checked?,
        }
        // Reading the list may have taken another one.
        connection = self.connected().unwrap_or(connection);
        let first = connection
            .call_tool(raw, arguments.clone(), again(&mut options))
            .await;
        let error = match first {
            Ok(outcome) => return Ok(outcome),
            Err(error) => error,
        };
        if matches!(&*error.cause, Cause::Protocol { code, .. } if *code == UNKNOWN_TOOL) {
            // Perhaps it is called something else now.
            self.expire();
        }
        if !is_gone(&error) {
            return Err(error);
        }
        self.discard(&connection);
        if error.may_have_happened() && !self.may_repeat(raw) {
            return Err(error);
        }
        let reason = error.for_log();
        tracing::info!(server = %self.label(), tool = raw, reason, "retrying call");
        connection = self.connection_unless(&options.cancel).await?;
        self.check_tool(raw).await?;
        connection.call_tool(raw, arguments, options).await
    }

    fn may_repeat(&self, raw: &str) -> bool {
        let tools = self.known_tools();
        let tool = tools.as_ref().and_then(|tools| tools.get(raw));
        let is_harmless = tool.is_some_and(|tool| {
            tool.hints.read_only == Some(true) || tool.hints.idempotent == Some(true)
        });
        self.settings().trusted && is_harmless
    }
}

/// The options for one more attempt, with the same listeners.
pub(super) fn again<'a>(options: &'a mut CallOptions<'_>) -> CallOptions<'a> {
    CallOptions {
        cancel: options.cancel.clone(),
        on_progress: match &mut options.on_progress {
            Some(listener) => Some(&mut **listener),
            None => None,
        },
        trace: options.trace.clone(),
        idle_timeout: options.idle_timeout,
        call_timeout: options.call_timeout,
        output_schema: options.output_schema.clone(),
        asker: options.asker.clone(),
        log_level: options.log_level,
        on_log: options.on_log.clone(),
    }
}

/// Counts a call while it lasts.
pub(super) struct Using<'a>(&'a Server);

impl<'a> Using<'a> {
    pub(super) fn new(server: &'a Server) -> Self {
        server.calls.fetch_add(1, Ordering::AcqRel);
        Self(server)
    }
}

impl Drop for Using<'_> {
    fn drop(&mut self) {
        self.0.touch();
        self.0.calls.fetch_sub(1, Ordering::AcqRel);
    }
}
