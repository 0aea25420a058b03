//! The doors of the server, and what comes out of each.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{Served, events, kinds};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Plain,
    Streamed,
    Background,
    BackgroundStreamed,
    WebSocket,
}

impl Door {
    pub(crate) const ALL: [Self; 5] = [
        Self::Plain,
        Self::Streamed,
        Self::Background,
        Self::BackgroundStreamed,
        Self::WebSocket,
    ];

    /// Whether an answer that never began is told by its status, not inside of a response.
    pub(crate) fn refuses(self) -> bool {
        !matches!(self, Self::Background | Self::BackgroundStreamed)
    }
}

/// What a client was told.
#[derive(Debug)]
pub(crate) enum Told {
    /// There is no response: status, type, code, and how long to wait.
    Refused {
        status: u64,
        kind: String,
        code: String,
        retry_after: Option<u64>,
        /// What `x-should-retry` says.
        should_retry: Option<String>,
        /// Everything that was said.
        text: String,
    },
    /// There is one, and it failed: code, and the types of the events, if there were any.
    Failed {
        code: String,
        events: Vec<String>,
        text: String,
    },
}

impl Told {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Refused { text, .. } | Self::Failed { text, .. } => text,
        }
    }
}

/// Sends a request of this conversation through a door, and says what came of it.
pub(crate) async fn ask(served: &Served, door: Door, conversation: &str) -> Told {
    let mut body = json!({"input": "hi", "conversation": conversation});
    match door {
        Door::Plain => {}
        Door::Streamed => body["stream"] = true.into(),
        Door::Background => body["background"] = true.into(),
        Door::BackgroundStreamed => {
            body["background"] = true.into();
            body["stream"] = true.into();
        }
        Door::WebSocket => return ask_socket(served, body).await,
    }
    let response = served.posting("/responses", &body).send().await.unwrap();
    let status = response.status().as_u16();
    let headers = format!("{:?}", response.headers());
    let retry_after = response.headers().get("retry-after");
    let retry_after = retry_after.map(|it| it.to_str().unwrap().parse().unwrap());
    let should_retry = response.headers().get("x-should-retry");
    let should_retry = should_retry.map(|it| it.to_str().unwrap().to_owned());
    let is_stream = response.headers()["content-type"] == "text/event-stream";
    let text = response.text().await.unwrap();
    let all = format!("{headers}\n{text}");
    if is_stream {
        assert_eq!(status, 200, "{text}");
        let events = events(&text);
        let last = &events.last().unwrap()["response"];
        assert_eq!(last["status"], "failed", "{last:#}");
        let told = &events[events.len() - 2];
        assert_eq!(told["type"], "error");
        assert_eq!(error_of(told)["code"], last["error"]["code"]);
        let stored = served.stored(&last["id"]).await;
        assert_eq!(stored["error"], last["error"]);
        return Told::Failed {
            code: last["error"]["code"].as_str().unwrap().to_owned(),
            events: kinds(&events).into_iter().map(str::to_owned).collect(),
            text: all,
        };
    }
    let value: Value = serde_json::from_str(&text).expect(&text);
    if door == Door::Background {
        assert_eq!((status, &value["status"]), (200, &json!("queued")));
        let ended = served.settled(&value["id"]).await;
        assert_eq!(ended["status"], "failed", "{ended:#}");
        return Told::Failed {
            code: ended["error"]["code"].as_str().unwrap().to_owned(),
            events: Vec::new(),
            text: format!("{all}\n{ended}"),
        };
    }
    refused(
        status.into(),
        &value["error"],
        (retry_after, should_retry),
        all,
    )
}

/// The members of an `error` event, nested or flat.
fn error_of(event: &Value) -> &Value {
    match &event["error"] {
        Value::Null => event,
        nested => nested,
    }
}

/// An error with its four members.
fn refused(
    status: u64,
    error: &Value,
    (retry_after, should_retry): (Option<u64>, Option<String>),
    text: String,
) -> Told {
    let members: Vec<_> = error.as_object().expect(&text).keys().collect();
    assert_eq!(members, ["message", "type", "param", "code"], "{text}");
    Told::Refused {
        status,
        kind: error["type"].as_str().unwrap().to_owned(),
        code: error["code"].as_str().unwrap().to_owned(),
        retry_after,
        should_retry,
        text,
    }
}

async fn ask_socket(served: &Served, mut body: Value) -> Told {
    body["type"] = "response.create".into();
    let address = served.base.replacen("http", "ws", 1);
    let (mut socket, _) = connect_async(format!("{address}/responses")).await.unwrap();
    let message = Message::Text(body.to_string().into());
    socket.send(message).await.unwrap();
    let mut told = Vec::new();
    let told = loop {
        let next = tokio::time::timeout(Duration::from_secs(10), socket.next()).await;
        let Message::Text(text) = next.expect("nothing comes").unwrap().unwrap() else {
            continue;
        };
        let message: Value = serde_json::from_str(&text).unwrap();
        let kind = message["type"].as_str().unwrap().to_owned();
        told.push(kind.clone());
        if kind == "error" {
            assert_eq!(told.len(), 1, "an error and a response: {told:?}");
            let status = message["status"].as_u64().unwrap();
            let header = |name: &str| message["headers"][name].as_str().map(str::to_owned);
            let retry_after = header("Retry-After").map(|it| it.parse().unwrap());
            let headers = (retry_after, header("x-should-retry"));
            break refused(status, &message["error"], headers, text.to_string());
        }
        if kind == "response.failed" {
            let code = &message["response"]["error"]["code"];
            break Told::Failed {
                code: code.as_str().unwrap().to_owned(),
                events: told,
                text: text.to_string(),
            };
        }
        assert_ne!(kind, "response.completed", "{text}");
    };
    socket.close(None).await.unwrap();
    told
}
