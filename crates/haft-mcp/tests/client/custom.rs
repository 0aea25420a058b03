//! Servers over a transport that haft does not know.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use haft_core::BoxFuture;
use haft_mcp::{
    CallOptions, Cause, ConnectOptions, Connection, Era, Label, McpTransport, Notice,
    ServerSettings, TransportError, TransportKind, TransportSettings,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::brain::{Brain, Sink};
use crate::kit::{LONG, call, call_text, names, object};

/// The hostile server in the same process, with nothing but `call` and `close`.
struct Bare {
    brain: Brain,
    said: Mutex<Vec<String>>,
}

impl Bare {
    fn new(words: &[&str]) -> Arc<Self> {
        Arc::new(Self {
            brain: Brain::new(words.iter().copied()),
            said: Mutex::default(),
        })
    }
}

impl McpTransport for Bare {
    fn call<'a>(
        &'a self,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, TransportError>> {
        Box::pin(async move {
            if params["arguments"]["lose"] == true {
                return Err(TransportError::Lost {
                    sent: false,
                    reason: "the wire was cut".into(),
                });
            }
            let (to, mut from) = mpsc::unbounded_channel();
            let sink: Sink = Arc::new(move |message| {
                let _ = to.send(message);
            });
            self.brain
                .hear(&json!({"id": 1, "method": method, "params": params}), &sink);
            let dropped = Noted(&self.said, method);
            let message: Value = loop {
                let message = from.recv().await;
                let Some(message) = message else {
                    std::future::pending().await
                };
                let message: Value = serde_json::from_slice(&message).unwrap_or_default();
                if message.get("method").is_none() {
                    break message;
                }
            };
            std::mem::forget(dropped);
            match message.get("error") {
                Some(error) => Err(TransportError::Refused {
                    code: error["code"].as_i64().unwrap(),
                    message: error["message"].as_str().unwrap().into(),
                    data: error.get("data").cloned(),
                }),
                None => Ok(message["result"].clone()),
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.said.lock().unwrap().push("close".into());
        Box::pin(async {})
    }
}

/// Notes that a call was dropped before its end.
struct Noted<'a>(&'a Mutex<Vec<String>>, &'a str);

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(format!("dropped {}", self.1));
    }
}

async fn connect(transport: Arc<dyn McpTransport>) -> Connection {
    let mut settings = ServerSettings::new(Label::new("own").unwrap(), TransportSettings::Custom);
    settings.timeouts.probe = Duration::from_millis(300);
    let options = ConnectOptions {
        custom: Some(transport),
        ..ConnectOptions::default()
    };
    let opened = Connection::open(Arc::new(settings), &options);
    tokio::time::timeout(LONG, opened)
        .await
        .expect("the opening hangs")
        .unwrap()
}

async fn says(bare: &Bare, expected: &str) {
    let heard = async {
        while !bare
            .said
            .lock()
            .unwrap()
            .iter()
            .any(|said| said == expected)
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, heard)
        .await
        .unwrap_or_else(|_| panic!("no `{expected}`"));
}

#[tokio::test]
async fn call_and_close_are_enough_in_both_eras() {
    for (words, era) in [
        (&["modern"][..], Era::Modern),
        (&["legacy"], Era::Legacy),
        (&["legacy", "silent-on-discover"], Era::Legacy),
    ] {
        let bare = Bare::new(words);
        let connection = connect(bare.clone()).await;
        assert_eq!(
            (connection.era(), connection.transport()),
            (era, TransportKind::Custom)
        );
        assert_eq!(
            names(&connection.list_tools().await.unwrap())[..2],
            ["echo", "raw"]
        );
        assert_eq!(
            call_text(&connection, "echo", json!({"a": 1})).await,
            r#"{"a":1}"#
        );
        let error = call(&connection, "refuse", json!({"code": -5}))
            .await
            .unwrap_err();
        assert!(
            matches!(*error.cause, Cause::Protocol { code: -5, .. }),
            "{error}"
        );
        let error = call(&connection, "echo", json!({"lose": true}))
            .await
            .unwrap_err();
        assert_eq!(error.cause.to_string(), "connection lost: the wire was cut");
        assert!(!error.may_have_happened());
        let options = CallOptions {
            call_timeout: Some(Duration::from_millis(100)),
            ..CallOptions::default()
        };
        let error = connection
            .call_tool("silent", object(json!({})), options)
            .await
            .unwrap_err();
        assert!(matches!(*error.cause, Cause::TimedOut { .. }), "{error}");
        says(&bare, "dropped tools/call").await;
        connection.close().await;
        says(&bare, "close").await;
    }
}

/// One that also tells and hears.
struct Full {
    bare: Arc<Bare>,
    notices: Mutex<Option<mpsc::UnboundedReceiver<Notice>>>,
    heard: Mutex<Vec<String>>,
}

impl McpTransport for Full {
    fn call<'a>(
        &'a self,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, TransportError>> {
        self.bare.call(method, params)
    }

    fn notify<'a>(&'a self, method: &'a str, _: Value) -> BoxFuture<'a, ()> {
        self.heard.lock().unwrap().push(method.to_owned());
        Box::pin(async {})
    }

    fn notifications(&self) -> Option<BoxStream<'static, Notice>> {
        let notices = self.notices.lock().unwrap().take()?;
        let next = |mut notices: mpsc::UnboundedReceiver<Notice>| async move {
            Some((notices.recv().await?, notices))
        };
        Some(stream::unfold(notices, next).boxed())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.bare.close()
    }
}

#[tokio::test]
async fn what_the_server_tells_and_what_it_is_told_go_their_way() {
    let (tell, notices) = mpsc::unbounded_channel();
    let full = Arc::new(Full {
        bare: Bare::new(&["legacy", "silent-on-discover"]),
        notices: Mutex::new(Some(notices)),
        heard: Mutex::default(),
    });
    let connection = connect(full.clone()).await;
    let mut changes = connection.changes();
    tell.send(Notice {
        method: "notifications/tools/list_changed".into(),
        params: Value::Null,
    })
    .unwrap();
    assert!(
        tokio::time::timeout(LONG, changes.next())
            .await
            .expect("nothing was told")
    );
    let options = CallOptions {
        call_timeout: Some(Duration::from_millis(100)),
        ..CallOptions::default()
    };
    connection
        .call_tool("silent", object(json!({})), options)
        .await
        .unwrap_err();
    says(&full.bare, "dropped tools/call").await;
    let heard = full.heard.lock().unwrap().clone();
    assert_eq!(
        heard,
        ["notifications/initialized", "notifications/cancelled"]
    );
}

#[tokio::test]
async fn a_custom_server_without_its_transport_is_told_at_once() {
    let settings = ServerSettings::new(Label::new("own").unwrap(), TransportSettings::Custom);
    let error = Connection::open(Arc::new(settings), &ConnectOptions::default())
        .await
        .unwrap_err();
    assert_eq!(
        error.cause.to_string(),
        "a custom server needs a transport: give one"
    );
}
