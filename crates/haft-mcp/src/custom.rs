//! Servers over a transport of the library's user.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use haft_core::BoxFuture;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, RequestId, ServerJsonRpcMessage};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::error::Cause;
use crate::traffic::Traffic;
use crate::wired::{Carrier, Outgoing, Wired, wired};

/// A way to a server that haft does not know. [`call`](Self::call) and [`close`](Self::close) are
/// enough; everything else is done as for any other server.
pub trait McpTransport: Send + Sync + 'static {
    /// Sends a request and waits for its result. A call that is given up is dropped.
    fn call<'a>(
        &'a self,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, TransportError>>;

    /// Sends a notification. By default it goes nowhere.
    fn notify<'a>(&'a self, method: &'a str, params: Value) -> BoxFuture<'a, ()> {
        let _ = (method, params);
        Box::pin(async {})
    }

    /// What the server tells unasked, if it can. By default it cannot.
    fn notifications(&self) -> Option<BoxStream<'static, Notice>> {
        None
    }

    /// Takes leave.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Something that a server tells unasked.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// For example `notifications/tools/list_changed`.
    pub method: String,
    /// What belongs to it.
    pub params: Value,
}

/// Why a request over a custom transport failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The server answered with an error.
    #[error("{message} (code {code})")]
    Refused {
        /// The number.
        code: i64,
        /// The words.
        message: String,
        /// What belongs to it.
        data: Option<Value>,
    },
    /// The connection is gone. `sent`: whether the request may have reached the server.
    #[error("connection lost: {reason}")]
    Lost {
        /// Whether the request may have reached the server.
        sent: bool,
        /// Why.
        reason: String,
    },
}

/// A transport for rmcp over one of the user's.
pub(crate) fn over_custom(
    custom: Arc<dyn McpTransport>,
    traffic: Arc<Traffic>,
    probe: Duration,
) -> Wired {
    let (wired, carrier) = wired(traffic, probe);
    tokio::spawn(carry(custom, carrier));
    wired
}

/// Carries messages until rmcp lets go. Calls under way are dropped then.
async fn carry(custom: Arc<dyn McpTransport>, carrier: Carrier) {
    let Carrier {
        traffic,
        mut outgoing,
        incoming,
    } = carrier;
    let mut tasks = JoinSet::new();
    let mut calls: HashMap<RequestId, AbortHandle> = HashMap::new();
    if let Some(notices) = custom.notifications() {
        tasks.spawn(pass_on(notices, Arc::clone(&traffic), incoming.clone()));
    }
    while let Some(Outgoing { message, sent }) = outgoing.recv().await {
        while tasks.try_join_next().is_some() {}
        calls.retain(|_, call| !call.is_finished());
        let (method, params) = words(&message);
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let call = call(Arc::clone(&custom), method, params, request.id.clone());
                let answer = answer(
                    call,
                    Arc::clone(&traffic),
                    incoming.clone(),
                    request.id.clone(),
                );
                calls.insert(request.id, tasks.spawn(answer));
            }
            ClientJsonRpcMessage::Notification(notification) => {
                let given_up = match notification.notification {
                    ClientNotification::CancelledNotification(it) => {
                        it.params.request_id.and_then(|id| calls.remove(&id))
                    }
                    _ => None,
                };
                let custom = Arc::clone(&custom);
                tasks.spawn(async move {
                    custom.notify(&method, params).await;
                    // The server has been told; now its answer is of no use.
                    if let Some(call) = given_up {
                        call.abort();
                    }
                });
            }
            // There are no questions to answer.
            _ => {}
        }
        let _ = sent.send(Ok(()));
    }
    tasks.shutdown().await;
    custom.close().await;
}

fn words(message: &ClientJsonRpcMessage) -> (String, Value) {
    let mut message = serde_json::to_value(message).unwrap_or_default();
    let method = message
        .get("method")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let params = message.get_mut("params");
    let params = params.map_or_else(|| json!({}), Value::take);
    (method, params)
}

async fn call(
    custom: Arc<dyn McpTransport>,
    method: String,
    params: Value,
    id: RequestId,
) -> Result<Value, Cause> {
    let id = id.into_json_value();
    match custom.call(&method, params).await {
        Ok(result) => Ok(json!({"jsonrpc": "2.0", "id": id, "result": result})),
        Err(TransportError::Refused {
            code,
            message,
            data,
        }) => {
            let error = json!({"code": code, "message": message, "data": data});
            Ok(json!({"jsonrpc": "2.0", "id": id, "error": error}))
        }
        Err(TransportError::Lost { sent, reason }) => Err(Cause::ConnectionLost {
            sent,
            detail: format!(": {reason}"),
        }),
    }
}

async fn answer(
    call: impl Future<Output = Result<Value, Cause>>,
    traffic: Arc<Traffic>,
    incoming: mpsc::Sender<ServerJsonRpcMessage>,
    id: RequestId,
) {
    traffic.set_sent(&id, true);
    let message = match call.await {
        Ok(answer) => {
            let bytes = answer.to_string().len();
            traffic.inbound(answer, bytes)
        }
        Err(cause) => traffic.fail(Some(&id.into_json_value()), cause),
    };
    if let Some(message) = message {
        // Nobody listens any more: nobody misses it.
        let _ = incoming.send(message).await;
    }
}

async fn pass_on(
    mut notices: BoxStream<'static, Notice>,
    traffic: Arc<Traffic>,
    incoming: mpsc::Sender<ServerJsonRpcMessage>,
) {
    while let Some(Notice { method, params }) = notices.next().await {
        let notice = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if let Some(message) = traffic.inbound(notice, 0)
            && incoming.send(message).await.is_err()
        {
            return;
        }
    }
}
