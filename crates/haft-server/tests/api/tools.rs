//! Tools that the server runs by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft_core::{
    Annotations, CustomKind, ToolDefinition, ToolError, ToolKind, ToolObject, dynamic_tool,
};
use serde_json::json;
use tokio::sync::Notify;

fn definition(name: &str) -> haft_core::ToolDefinitionBuilder {
    ToolDefinition::builder(name)
        .description("A tool of the server.")
        .parameters(json!({"type": "object", "properties": {
            "text": {"type": "string"}, "fail": {"type": "boolean"},
        }}))
}

/// Gives back its `text`; fails if it is told to. Counts its runs.
pub(crate) fn echo(name: &str) -> (Arc<dyn ToolObject>, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let definition = definition(name).build().unwrap();
    let name = name.to_owned();
    let tool = dynamic_tool(definition, move |arguments, _context| {
        counted.fetch_add(1, Ordering::SeqCst);
        let name = name.clone();
        async move {
            if arguments["fail"] == true {
                return Err(ToolError::new("the tool is broken today"));
            }
            let text = arguments["text"].as_str().unwrap_or("nothing");
            Ok(format!("{name}: {text}"))
        }
    });
    (tool, runs)
}

/// Gives back its `text`, under a description of its own.
pub(crate) fn described(name: &str, description: &str) -> Arc<dyn ToolObject> {
    let definition = definition(name).description(description).build().unwrap();
    dynamic_tool(definition, |arguments, _context| async move {
        Ok(arguments["text"].as_str().unwrap_or("nothing").to_owned())
    })
}

/// A tool under a slug of the application's own.
pub(crate) fn of_kind(name: &str, kind: &str) -> Arc<dyn ToolObject> {
    let kind = ToolKind::Custom(CustomKind::new(kind).unwrap());
    let definition = definition(name).kind(kind).build().unwrap();
    dynamic_tool(definition, |arguments, _context| async move {
        Ok(format!(
            "booked {}",
            arguments["text"].as_str().unwrap_or_default()
        ))
    })
}

/// A tool that gives so many bytes.
pub(crate) fn flood(bytes: usize) -> Arc<dyn ToolObject> {
    let definition = definition("flood").build().unwrap();
    dynamic_tool(definition, move |_, _| async move { Ok("x".repeat(bytes)) })
}

/// What a tool that never ends went through.
#[derive(Debug, Default)]
pub(crate) struct Endless {
    pub(crate) started: Notify,
    pub(crate) stopped: Notify,
    /// How many run now, and how many did at most.
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Endless {
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

/// Ends only when it is told to, by its signal or by being dropped.
struct Running(Arc<Endless>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
        self.0.stopped.notify_one();
    }
}

/// A tool that runs until it is stopped; its own time limit is what is given.
pub(crate) fn endless(timeout: Option<Duration>) -> (Arc<dyn ToolObject>, Arc<Endless>) {
    let seen = Arc::new(Endless::default());
    let watched = Arc::clone(&seen);
    let timeout_ms = timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap());
    let definition = definition("endless")
        .annotations(Annotations {
            timeout_ms,
            ..Annotations::default()
        })
        .build()
        .unwrap();
    let tool = dynamic_tool(definition, move |_, context| {
        let seen = Arc::clone(&watched);
        async move {
            let now = seen.now.fetch_add(1, Ordering::SeqCst) + 1;
            seen.most.fetch_max(now, Ordering::SeqCst);
            let running = Running(Arc::clone(&seen));
            seen.started.notify_one();
            context.cancel().cancelled().await;
            drop(running);
            Ok("stopped")
        }
    });
    (tool, seen)
}

/// Waits for something that must happen soon.
pub(crate) async fn soon(what: &Notify, limit: Duration) {
    let waited = tokio::time::timeout(limit, what.notified()).await;
    waited.expect("it did not happen in time");
}
