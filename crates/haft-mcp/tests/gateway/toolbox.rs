//! A backend whose tools do what a test needs, and remember what was asked of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use haft_core::ToolProgress;
use haft_mcp::gateway::{
    Backend, BackendError, CacheHints, CallContext, CallOutcome, CallRequest, Caller, Change,
    Confirmation, Features, Identity, InputNeeded, InputRequest, ListedTool, Reply, ToolList,
};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, broadcast};

use crate::client::soon;

/// Clones share everything.
#[derive(Clone)]
pub(crate) struct Toolbox(Arc<Inner>);

struct Inner {
    list: RwLock<Arc<ToolList>>,
    changes: broadcast::Sender<Change>,
    calls: Mutex<Vec<(String, Value)>>,
    started: Notify,
    stopped: Notify,
    resources: AtomicBool,
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

/// A tool of the server `box`, which does what its raw name says.
pub(crate) fn tool(raw: &str) -> ListedTool {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    ListedTool::new(format!("box__{raw}"), object(schema))
        .described(format!("Does {raw}. And nothing else."))
        .of_server("box", raw)
}

/// A form with one field.
pub(crate) fn form(message: &str) -> InputRequest {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"]
    });
    InputRequest::Form {
        message: message.to_owned(),
        schema: object(schema),
    }
}

impl Toolbox {
    pub(crate) fn new(tools: impl IntoIterator<Item = ListedTool>) -> Self {
        let list = ToolList {
            tools: tools.into_iter().map(Arc::new).collect(),
            hints: CacheHints::default(),
        };
        Self(Arc::new(Inner {
            list: RwLock::new(Arc::new(list)),
            changes: broadcast::channel(16).0,
            calls: Mutex::default(),
            started: Notify::new(),
            stopped: Notify::new(),
            resources: AtomicBool::new(false),
        }))
    }

    /// With tools that do these things.
    pub(crate) fn of(raws: &[&str]) -> Self {
        Self::new(raws.iter().map(|raw| tool(raw)))
    }

    pub(crate) fn set_hints(&self, ttl: Duration, public: bool) {
        let mut list = self.0.list.write().unwrap();
        Arc::make_mut(&mut list).hints = CacheHints { ttl, public };
    }

    pub(crate) fn add(&self, tool: ListedTool) {
        let mut list = self.0.list.write().unwrap();
        Arc::make_mut(&mut list).tools.push(Arc::new(tool));
        drop(list);
        self.announce(Change::Tools);
    }

    /// Has resources from now on, one of which may be watched.
    pub(crate) fn offer_resources(&self) {
        self.0.resources.store(true, Ordering::Relaxed);
    }

    pub(crate) fn announce(&self, change: Change) {
        let _ = self.0.changes.send(change);
    }

    /// What was called so far, and with what.
    pub(crate) fn calls(&self) -> Vec<(String, Value)> {
        self.0.calls.lock().unwrap().clone()
    }

    /// Until a tool that waits has started.
    pub(crate) async fn started(&self) {
        soon(self.0.started.notified()).await;
    }

    /// Until a tool that waits was told to stop.
    pub(crate) async fn stopped(&self) {
        soon(self.0.stopped.notified()).await;
    }

    async fn ask(&self, context: &CallContext) -> CallOutcome {
        self.0.started.notify_one();
        match context.ask(form("What is your name?")).await {
            Ok(answer) => match answer.content() {
                Some(form) => CallOutcome::text(format!("Hello, {}!", form["name"])),
                None => CallOutcome::error("No name was given."),
            },
            Err(error) => {
                self.0.stopped.notify_one();
                CallOutcome::error(error.to_string())
            }
        }
    }
}

/// Ends with a question until it has its answer and its state.
fn needs(request: &CallRequest) -> Reply<CallOutcome> {
    let input = &request.input;
    let answer = input.answers.get("who").and_then(|answer| answer.content());
    match (answer, input.state.as_deref()) {
        (Some(content), Some("asked")) => {
            Reply::Complete(CallOutcome::text(format!("Hello, {}!", content["name"])))
        }
        _ => Reply::InputRequired(InputNeeded {
            requests: [("who".to_owned(), form("What is your name?"))].into(),
            state: Some("asked".into()),
        }),
    }
}

impl Backend for Toolbox {
    fn identity(&self) -> Identity {
        Identity::new("toolbox", "1.2.3")
    }

    fn features(&self) -> Features {
        Features {
            resources: self.0.resources.load(Ordering::Relaxed),
            ..Features::default()
        }
    }

    fn watches(&self, _: &Caller, uri: &str) -> bool {
        uri == "file:///open"
    }

    async fn tools(&self, _: &Caller) -> Result<Arc<ToolList>, BackendError> {
        Ok(self.0.list.read().unwrap().clone())
    }

    fn find_tool(&self, _: &Caller, name: &str) -> Option<Arc<ListedTool>> {
        let list = self.0.list.read().unwrap();
        list.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call(
        &self,
        request: CallRequest,
        context: CallContext,
    ) -> Result<Reply<CallOutcome>, BackendError> {
        let name = request.tool.name.clone();
        let arguments = Value::Object(request.arguments.clone());
        let call = (name, arguments.clone());
        self.0.calls.lock().unwrap().push(call);
        Ok(Reply::Complete(
            match request.tool.raw_name.as_deref().unwrap_or_default() {
                "echo" => CallOutcome {
                    meta: Some(object(json!({"from": "echo"}))),
                    ..CallOutcome::text(arguments.to_string()).with_structured(arguments)
                },
                "fail" => CallOutcome::error("It did not work.").with_structured(Value::Null),
                "who" => CallOutcome::text(context.caller().id()),
                "trace" => CallOutcome::text(format!("{:?}", context.trace())),
                "steps" => {
                    for at in [1.0, 2.0, 2.0, 1.5, 3.0] {
                        context.progress(ToolProgress::at(at).of(3.0));
                    }
                    CallOutcome::text("done")
                }
                "wait" => {
                    self.0.started.notify_one();
                    context.cancel().cancelled().await;
                    self.0.stopped.notify_one();
                    return Err(BackendError::Cancelled);
                }
                "ask" => self.ask(&context).await,
                "confirm" => match context.confirm("May I?").await {
                    Confirmation::Yes => CallOutcome::text("Done."),
                    Confirmation::No => CallOutcome::error("It was not allowed."),
                    Confirmation::NotAsked(error) => {
                        CallOutcome::error(format!("Nobody could be asked: {error}"))
                    }
                },
                "needs" => return Ok(needs(&request)),
                "nag" => {
                    return Ok(Reply::InputRequired(InputNeeded {
                        requests: [("who".to_owned(), form("Who?"))].into(),
                        state: None,
                    }));
                }
                "panic" => panic!("as the test wants it"),
                other => return Err(BackendError::UnknownTool(other.to_owned())),
            },
        ))
    }

    fn changes(&self) -> Option<broadcast::Receiver<Change>> {
        Some(self.0.changes.subscribe())
    }
}
