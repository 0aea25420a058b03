//! What the tests share.

use std::sync::Arc;
use std::time::Duration;

use haft_mcp::{
    CallOptions, ConnectOptions, Connection, Label, McpError, RenderOptions, ServerSettings,
    ToolOutcome,
};
use serde_json::{Map, Value};

/// A wait that a test never reaches unless something hangs.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// The hostile server, told these words.
pub(crate) fn fake(words: &[&str]) -> ServerSettings {
    let label = Label::new("fake").unwrap();
    let mut settings = ServerSettings::stdio(label, env!("CARGO_BIN_EXE_haft-mcp-fake"))
        .args(words.iter().copied());
    settings.timeouts.probe = Duration::from_secs(1);
    settings
}

pub(crate) async fn open(settings: ServerSettings) -> Result<Connection, McpError> {
    open_with(settings, &ConnectOptions::default()).await
}

pub(crate) async fn open_with(
    settings: ServerSettings,
    options: &ConnectOptions,
) -> Result<Connection, McpError> {
    let opened = Connection::open(Arc::new(settings), options);
    tokio::time::timeout(LONG, opened)
        .await
        .expect("the opening hangs")
}

pub(crate) async fn connected(words: &[&str]) -> Connection {
    open(fake(words)).await.unwrap()
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

pub(crate) async fn call(
    connection: &Connection,
    tool: &str,
    arguments: Value,
) -> Result<ToolOutcome, McpError> {
    let called = connection.call_tool(tool, object(arguments), CallOptions::default());
    tokio::time::timeout(LONG, called)
        .await
        .expect("the call hangs")
}

pub(crate) fn text(outcome: &ToolOutcome) -> String {
    outcome
        .render(&RenderOptions::default())
        .output
        .text_for_model()
}

pub(crate) async fn call_text(connection: &Connection, tool: &str, arguments: Value) -> String {
    text(&call(connection, tool, arguments).await.unwrap())
}

pub(crate) fn names(list: &haft_mcp::ToolList) -> Vec<&str> {
    list.tools.iter().map(|tool| tool.name.as_str()).collect()
}
