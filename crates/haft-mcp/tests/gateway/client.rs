//! Real clients of both eras.

use std::time::Duration;

use haft_mcp::gateway::{Backend, Caller, Gateway};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ContentBlock,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, Implementation,
    ProgressNotificationParam, ProtocolVersion, ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient, RunningService};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, ErrorData};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

use crate::toolbox::object;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

pub(crate) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

impl Era {
    pub(crate) fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::Legacy => ClientLifecycleMode::Initialize,
            Self::Modern => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        }
    }
}

/// What a client hears.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Heard {
    Asked(String),
    Progress(f64),
    ToolsChanged,
    Updated(String),
}

/// The program, and the person in front of it.
pub(crate) struct Person {
    /// What is filled in; without it the program has no forms.
    answer: Option<(ElicitationAction, Value)>,
    heard: mpsc::UnboundedSender<Heard>,
    era: Era,
}

pub(crate) type Connection = RunningService<RoleClient, Person>;

impl Person {
    /// Answers every form with a name.
    pub(crate) fn helpful(era: Era) -> (Self, mpsc::UnboundedReceiver<Heard>) {
        Self::answering(era, ElicitationAction::Accept, json!({"name": "Ada"}))
    }

    pub(crate) fn answering(
        era: Era,
        action: ElicitationAction,
        content: Value,
    ) -> (Self, mpsc::UnboundedReceiver<Heard>) {
        let (heard, ears) = mpsc::unbounded_channel();
        let answer = Some((action, content));
        (Self { answer, heard, era }, ears)
    }

    /// Has no forms.
    pub(crate) fn mute(era: Era) -> (Self, mpsc::UnboundedReceiver<Heard>) {
        let (heard, ears) = mpsc::unbounded_channel();
        let answer = None;
        (Self { answer, heard, era }, ears)
    }
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = self.answer.is_some().then(ElicitationCapability::new);
        let mut config = ClientConfig::new(capabilities, Implementation::new("test", "1"));
        if self.era == Era::Legacy {
            config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        }
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if let ElicitRequestParams::FormElicitationParams { message, .. } = request {
            let _ = self.heard.send(Heard::Asked(message));
        }
        let (action, content) = self.answer.clone().expect("only who has forms is asked");
        let mut result = ElicitResult::new(action);
        result.content = Some(content);
        Ok(result)
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.heard.send(Heard::Progress(progress.progress));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.heard.send(Heard::ToolsChanged);
    }

    async fn on_resource_updated(
        &self,
        update: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.heard.send(Heard::Updated(update.uri));
    }
}

/// Connects over two byte streams, as standard input and output are.
pub(crate) async fn connect<B: Backend>(
    gateway: &Gateway<B>,
    caller: &str,
    person: Person,
) -> Connection {
    let lifecycle = person.era.lifecycle();
    let client = serve(gateway, caller);
    person
        .serve_with_lifecycle(tokio::io::split(client), lifecycle)
        .await
        .unwrap()
}

/// Serves one client, whose end comes back.
pub(crate) fn serve<B: Backend>(gateway: &Gateway<B>, caller: &str) -> DuplexStream {
    let (client, server) = tokio::io::duplex(64 * 1024);
    let (gateway, caller) = (gateway.clone(), Caller::new(caller));
    tokio::spawn(async move {
        let (read, write) = tokio::io::split(server);
        gateway.serve_stdio(read, write, caller).await.unwrap();
    });
    client
}

pub(crate) fn params(name: &str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(name.to_owned()).with_arguments(object(arguments))
}

/// What must happen, so that a test that fails does not hang.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    let limit = Duration::from_secs(30);
    let done = tokio::time::timeout(limit, future).await;
    done.expect("it should have happened by now")
}

/// The text of a result.
pub(crate) fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(ContentBlock::as_text);
    texts.map(|text| text.text.clone()).collect()
}

/// Calls a tool and waits until it is done, whatever it asks.
pub(crate) async fn call(client: &Connection, name: &str, arguments: Value) -> CallToolResult {
    let call = client.call_tool(params(name, arguments));
    soon(call).await.unwrap()
}
