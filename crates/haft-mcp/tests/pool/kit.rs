//! What the tests share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft_mcp::{
    CallOptions, Label, McpError, Pool, RenderOptions, Server, ServerSettings, ServerTools,
};
use serde_json::{Map, Value, json};

/// A wait that a test never reaches unless something hangs.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// A folder for the pool, and one for what the servers write.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        Self { folder }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A pool as the next process would set it up.
    pub(crate) fn pool(&self) -> Pool {
        Pool::builder().data_dir(self.data()).build()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// How often servers that were told to note it down have started.
    pub(crate) fn starts(&self) -> usize {
        std::fs::read_to_string(self.file("starts")).map_or(0, |starts| starts.lines().count())
    }

    /// The hostile server, told these words and to note down its starts.
    pub(crate) fn fake(&self, label: &str, words: &[&str]) -> ServerSettings {
        let starts = format!("starts-in={}", self.file("starts").display());
        let words = words.iter().map(|word| (*word).to_owned()).chain([starts]);
        let label = Label::new(label).unwrap();
        let program = env!("CARGO_BIN_EXE_haft-mcp-fake");
        let mut settings = ServerSettings::stdio(label, program).args(words);
        settings.timeouts.probe = Duration::from_secs(1);
        settings
    }

    /// The hostile server with the tools of a file that can be changed.
    pub(crate) fn listing(&self, label: &str, tools: &Value) -> ServerSettings {
        self.list(tools);
        let word = format!("tools-in={}", self.file("tools.json").display());
        self.fake(label, &["modern", "tells-no-changes", &word])
    }

    pub(crate) fn list(&self, tools: &Value) {
        write(&self.file("tools.json"), &tools.to_string());
    }
}

pub(crate) fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

pub(crate) fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

pub(crate) async fn tools(server: &Arc<Server>) -> Arc<ServerTools> {
    let tools = tokio::time::timeout(LONG, server.tools());
    tools.await.expect("the list hangs").unwrap()
}

pub(crate) fn names(tools: &ServerTools) -> Vec<&str> {
    tools.tools.iter().map(|tool| tool.name.as_str()).collect()
}

pub(crate) async fn call(
    server: &Arc<Server>,
    tool: &str,
    arguments: Value,
) -> Result<String, McpError> {
    let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap();
    let called = server.call(tool, arguments, CallOptions::default());
    let outcome = tokio::time::timeout(LONG, called)
        .await
        .expect("the call hangs")?;
    let rendered = outcome.render(&RenderOptions::default());
    Ok(rendered.output.text_for_model())
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(LONG, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("never: {what}"));
}
