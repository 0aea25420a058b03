//! Servers over streamable HTTP and over HTTP with an event stream.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use haft_mcp::{HttpKind, Label, ServerSettings, TransportKind, TransportSettings, Url};
use serde_json::json;

use crate::installed::{node, python, toy};
use crate::trial::{Call, Trial};

/// A server that somebody else runs, at the same port each time.
struct Running {
    command: Box<dyn Fn(u16) -> Command>,
    port: u16,
    child: Child,
}

impl Running {
    async fn start(command: impl Fn(u16) -> Command + 'static) -> Self {
        let port = free_port();
        let child = spawn(&command, port).await;
        Self {
            command: Box::new(command),
            port,
            child,
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    async fn revive(&mut self) {
        self.child = spawn(&self.command, self.port).await;
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn spawn(command: &dyn Fn(u16) -> Command, port: u16) -> Child {
    let mut command = command(port);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    for _ in 0..600 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return child;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("the server does not listen");
}

async fn goes_through(
    mut running: Running,
    path: &str,
    kind: HttpKind,
    spoken: TransportKind,
    calls: [Call; 2],
) {
    let url = format!("http://127.0.0.1:{}{path}", running.port);
    let url = Url::parse(&url).unwrap();
    let mut settings = ServerSettings::http(Label::new("remote").unwrap(), url);
    if let TransportSettings::Http(http) = &mut settings.transport {
        http.kind = kind;
    }
    let [call, slow] = calls;
    let trial = Trial::new(settings);
    trial.lists(2).await;
    let transport = trial.server.connected().map(|it| it.transport());
    assert_eq!(transport, Some(spoken));
    trial.answers(&call).await;
    trial.cancels(slow.tool, &slow.arguments).await;
    trial.answers(&call).await;
    running.kill();
    // Whether or not anybody has noticed yet, this is told.
    trial.call(call.tool, &call.arguments).await.unwrap_err();
    running.revive().await;
    trial.answers(&call).await;
    trial.lists(2).await;
    trial.ends().await;
}

fn everything(mode: &'static str) -> impl Fn(u16) -> Command {
    move |port| {
        let mut command = Command::new(node("mcp-server-everything"));
        command.arg(mode).env("PORT", port.to_string());
        command
    }
}

fn everything_calls() -> [Call; 2] {
    [
        Call {
            tool: "get-sum",
            arguments: json!({"a": 19, "b": 23}),
            answer: "42",
        },
        Call {
            tool: "trigger-long-running-operation",
            arguments: json!({"duration": 30, "steps": 100}),
            answer: "",
        },
    ]
}

fn fastmcp(mode: &'static str) -> impl Fn(u16) -> Command {
    move |port| {
        let mut command = Command::new(python("python"));
        command.args([toy(), mode.into(), port.to_string()]);
        command
    }
}

fn fastmcp_calls() -> [Call; 2] {
    [
        Call {
            tool: "add",
            arguments: json!({"a": 19, "b": 23}),
            answer: "42",
        },
        Call {
            tool: "slow",
            arguments: json!({"seconds": 30}),
            answer: "",
        },
    ]
}

#[tokio::test]
#[ignore = "needs scripts/mcp-servers"]
async fn everything_over_streamable_http() {
    let running = Running::start(everything("streamableHttp")).await;
    let (kind, spoken) = (HttpKind::Auto, TransportKind::Http);
    goes_through(running, "/mcp", kind, spoken, everything_calls()).await;
}

#[tokio::test]
#[ignore = "needs scripts/mcp-servers"]
async fn everything_over_the_older_event_stream_which_is_found_out() {
    let running = Running::start(everything("sse")).await;
    let (kind, spoken) = (HttpKind::Auto, TransportKind::Sse);
    goes_through(running, "/sse", kind, spoken, everything_calls()).await;
}

#[tokio::test]
#[ignore = "needs scripts/mcp-servers"]
async fn fastmcp_over_streamable_http() {
    let running = Running::start(fastmcp("http")).await;
    let (kind, spoken) = (HttpKind::Streamable, TransportKind::Http);
    goes_through(running, "/mcp", kind, spoken, fastmcp_calls()).await;
}

#[tokio::test]
#[ignore = "needs scripts/mcp-servers"]
async fn fastmcp_over_the_older_event_stream() {
    let running = Running::start(fastmcp("sse")).await;
    let (kind, spoken) = (HttpKind::Sse, TransportKind::Sse);
    goes_through(running, "/sse", kind, spoken, fastmcp_calls()).await;
}
