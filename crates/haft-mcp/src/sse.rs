//! The older HTTP: one stream of events down, one POST per message up (2024-11-05).

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Response, Url};
use rmcp::model::{RequestId, ServerJsonRpcMessage};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::error::{Cause, TransportKind};
use crate::http::{Event, EventStream, HttpClient, is_of_type, refusal_body, refused};
use crate::settings::ServerSettings;
use crate::traffic::Traffic;
use crate::wired::{Outgoing, SendFailure, Wired, wired};

/// Opens the stream, learns where to send, and gives a transport over both.
pub(crate) async fn over_sse(
    client: HttpClient,
    settings: &ServerSettings,
    traffic: Arc<Traffic>,
) -> Result<Wired, Cause> {
    let limit = settings.limits.message_bytes;
    let probe = settings.timeouts.probe;
    let opened = tokio::time::timeout(probe, open(&client, limit)).await;
    let (events, endpoint) = opened.map_err(|_| no_endpoint())??;
    let (wired, carrier) = wired(traffic, probe);
    let post = Post {
        client,
        endpoint,
        traffic: Arc::clone(&carrier.traffic),
        limit,
        // Nothing but being told that it was accepted is waited for.
        patience: settings.timeouts.idle,
    };
    let concurrent = settings.limits.concurrent_calls(TransportKind::Sse);
    tokio::spawn(write(post, carrier.outgoing, concurrent));
    tokio::spawn(read(events, carrier.incoming, carrier.traffic, limit));
    Ok(wired)
}

fn no_endpoint() -> Cause {
    Cause::Unexpected("the stream does not say where to send: no event `endpoint`".into())
}

async fn open(client: &HttpClient, limit: usize) -> Result<(EventStream, Url), Cause> {
    let request = client
        .home(Method::GET)
        .header(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let response = client.send(request).await?;
    if !response.status().is_success() {
        return Err(refusal(response).await);
    }
    if !is_of_type(&response, "text/event-stream") {
        return Err(Cause::Unexpected(
            "the address gives no event stream".into(),
        ));
    }
    let base = response.url().clone();
    let mut events = EventStream::of(response, limit);
    while let Some(event) = events.next().await {
        if let Event::Whole {
            name,
            data: Some(data),
            ..
        } = event?
            && name == "endpoint"
        {
            let endpoint = base.join(data.trim());
            let endpoint = endpoint
                .map_err(|_| Cause::Unexpected("the event `endpoint` holds no address".into()))?;
            // Refused here already if it leads elsewhere.
            let _ = client.at(Method::POST, endpoint.clone())?;
            return Ok((events, endpoint));
        }
    }
    Err(no_endpoint())
}

async fn refusal(response: Response) -> Cause {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    refused(status, &headers, &refusal_body(response).await)
}

/// How messages are sent.
#[derive(Clone)]
struct Post {
    client: HttpClient,
    endpoint: Url,
    traffic: Arc<Traffic>,
    limit: usize,
    patience: Duration,
}

impl Post {
    async fn send(&self, body: Vec<u8>, id: Option<&RequestId>) -> Result<(), Cause> {
        if body.len() > self.limit {
            return Err(Cause::RequestTooLarge {
                bytes: body.len() as u64,
                limit: self.limit as u64,
            });
        }
        let request = self
            .client
            .at(Method::POST, self.endpoint.clone())?
            .body(body);
        let request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mark = |is_sent| {
            if let Some(id) = id {
                self.traffic.set_sent(id, is_sent);
            }
        };
        mark(true);
        let response = match self.client.send(request).await {
            Ok(response) => response,
            Err(cause) => {
                mark(!matches!(cause, Cause::Unreachable(_)));
                return Err(cause);
            }
        };
        if response.status().is_success() {
            Ok(())
        } else {
            Err(refusal(response).await)
        }
    }
}

/// Sends messages until rmcp lets go; then nothing is left under way.
async fn write(post: Post, mut outgoing: mpsc::Receiver<Outgoing>, concurrent: usize) {
    let mut posts = JoinSet::new();
    while let Some(message) = outgoing.recv().await {
        while posts.len() > concurrent {
            posts.join_next().await;
        }
        let post = post.clone();
        posts.spawn(async move {
            let body = serde_json::to_vec(&message.message);
            let body = body.map_err(|error| Cause::Unexpected(error.to_string()));
            let result = match body {
                Ok(body) => {
                    let sent = tokio::time::timeout(post.patience, post.send(body, message.id()));
                    let silent = Cause::Idle {
                        limit: post.patience,
                    };
                    sent.await.unwrap_or(Err(silent))
                }
                Err(cause) => Err(cause),
            };
            // Whoever sent it may have gone.
            let _ = message.sent.send(result.map_err(SendFailure));
        });
    }
}

/// Reads events until the stream ends or nobody listens.
async fn read(
    mut events: EventStream,
    incoming: mpsc::Sender<ServerJsonRpcMessage>,
    traffic: Arc<Traffic>,
    limit: usize,
) {
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = incoming.closed() => return,
        };
        let message = match event {
            None | Some(Err(_)) => return,
            Some(Ok(Event::Whole {
                name,
                data: Some(data),
                ..
            })) if name.is_empty() || name == "message" => traffic.inbound_text(data.as_bytes()),
            Some(Ok(Event::Whole { .. })) => None,
            Some(Ok(Event::TooLong { id, bytes })) => {
                let id: Option<Value> = id.and_then(|id| serde_json::from_slice(&id).ok());
                id.and_then(|id| {
                    traffic.fail(
                        Some(&id),
                        Cause::TooLarge {
                            bytes,
                            limit: limit as u64,
                        },
                    )
                })
            }
        };
        if let Some(message) = message
            && incoming.send(message).await.is_err()
        {
            return;
        }
    }
}
