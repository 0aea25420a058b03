//! What every server goes through.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::Cancel;
use haft_mcp::{CallOptions, McpError, Pool, RenderOptions, Server, ServerSettings};
use serde_json::{Map, Value};

/// A wait that a test never reaches unless something hangs.
const LONG: Duration = Duration::from_mins(1);

/// A call and what its answer must contain.
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
    pub(crate) answer: &'static str,
}

/// A server in a pool of its own.
pub(crate) struct Trial {
    pool: Pool,
    pub(crate) server: Arc<Server>,
    _data: tempfile::TempDir,
}

impl Trial {
    pub(crate) fn new(settings: ServerSettings) -> Self {
        let data = tempfile::tempdir().unwrap();
        let pool = Pool::builder().data_dir(data.path()).build();
        let server = pool.add(settings).unwrap();
        Self {
            pool,
            server,
            _data: data,
        }
    }

    /// The tools are listed, none is left out, and this many at least are there.
    pub(crate) async fn lists(&self, at_least: usize) {
        let tools = tokio::time::timeout(LONG, self.server.tools());
        let tools = tools.await.expect("the list hangs").unwrap();
        assert!(tools.tools.len() >= at_least, "{:?}", tools.tools);
        let left_out: Vec<_> = tools
            .diagnostics
            .iter()
            .filter(|it| it.is_left_out)
            .collect();
        assert!(left_out.is_empty(), "{left_out:?}");
    }

    pub(crate) async fn answers(&self, call: &Call) {
        let answer = self.call(call.tool, &call.arguments).await.unwrap();
        assert!(answer.contains(call.answer), "{}: {answer}", call.tool);
    }

    pub(crate) async fn call(&self, tool: &str, arguments: &Value) -> Result<String, McpError> {
        let called = self
            .server
            .call(tool, object(arguments), CallOptions::default());
        let outcome = tokio::time::timeout(LONG, called)
            .await
            .expect("the call hangs")?;
        assert!(!outcome.is_error, "{outcome:?}");
        let shown = outcome.render(&RenderOptions::default());
        Ok(shown.output.text_for_model())
    }

    /// A call that would take long tells how far it is, and ends at once when it is cancelled.
    pub(crate) async fn cancels(&self, tool: &str, arguments: &Value) {
        let cancel = Cancel::new();
        let mut heard = 0;
        let mut on_progress = |_| {
            heard += 1;
            cancel.cancel();
        };
        let options = CallOptions {
            cancel: cancel.clone(),
            on_progress: Some(&mut on_progress),
            ..CallOptions::default()
        };
        let started = Instant::now();
        let called = self.server.call(tool, object(arguments), options);
        let error = tokio::time::timeout(LONG, called)
            .await
            .expect("the call hangs")
            .unwrap_err();
        assert!(error.to_string().contains("cancelled"), "{error}");
        assert!(heard > 0);
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    /// Waits until the server is known to be gone.
    pub(crate) async fn loses_it(&self) {
        let gone = tokio::time::timeout(LONG, async {
            while self.server.connected().is_some() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        gone.await.expect("nobody notices that the server died");
    }

    pub(crate) async fn ends(self) {
        let closed = tokio::time::timeout(Duration::from_secs(6), self.pool.close());
        closed.await.expect("the pool does not close");
    }
}

fn object(arguments: &Value) -> Map<String, Value> {
    serde_json::from_value(arguments.clone()).unwrap()
}
