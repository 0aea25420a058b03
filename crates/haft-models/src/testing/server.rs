//! The script as a model server on loopback.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use super::delivery::{Delivery, End, Reply, deliver};
use super::protocol::Protocol;
use super::read;
use super::received::{ReceivedRequest, shown};
use super::render::Rendered;
use crate::scripted::{Player, RequestView, Script, ScriptFailure};

/// The largest body that is read.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;
/// The most connections at once.
const MAX_CONNECTIONS: usize = 256;
/// The longest that a request's headers may take.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// A model server on a free port of `127.0.0.1`, which answers from a script in the wire form of the
/// path that is asked: see [`Protocol`]. `GET /v1/models` and `GET /api/tags` list one model and take
/// no step. Each connection serves one request. Dropping the server stops it.
///
/// A request that the script does not foresee gets HTTP 400 with the code `script_mismatch`, and is
/// remembered for [`verify`](Self::verify).
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use haft_models::testing::{Fault, ScriptedServer, fault, say};
///
/// let server = ScriptedServer::start([fault(Fault::status(503)), say("hello")]).await?;
/// let base_url = server.base_url(); // for an adapter of the `OpenAI` kind
/// # assert!(base_url.ends_with("/v1"));
/// assert_eq!(server.verify().unwrap_err().problems.len(), 2); // nobody asked yet
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    player: Player,
    received: Mutex<Vec<ReceivedRequest>>,
}

impl ScriptedServer {
    /// Binds a free port and begins to listen, on the runtime of the caller.
    pub async fn start(script: impl Into<Script>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            player: Player::new(script.into()),
            received: Mutex::default(),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&state)));
        Ok(Self {
            address,
            state,
            task,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its root, for adapters of Anthropic and Ollama: `http://127.0.0.1:1234`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its base for adapters of the `OpenAI` kind: `http://127.0.0.1:1234/v1`.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// Every request so far that spoke one of the protocols, in order.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.state.received().clone()
    }

    /// Whether every request was as the script says and every step was taken.
    pub fn verify(&self) -> Result<(), ScriptFailure> {
        self.state.player.verify()
    }

    /// Fails the test unless every request was as the script says and every step was taken.
    ///
    /// # Panics
    ///
    /// When [`verify`](Self::verify) has something to say, with its words.
    #[track_caller]
    pub fn assert_finished(&self) {
        if let Err(failure) = self.verify() {
            panic!("{failure}");
        }
    }

    /// Stops listening, hangs up everywhere, and waits until that is done: from then on connections
    /// are refused.
    pub async fn stop(mut self) {
        self.task.abort();
        // The only end that an aborted task has is a cancelled one.
        let _cancelled = (&mut self.task).await;
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        // The connections are the task's own and end with it.
        self.task.abort();
    }
}

impl State {
    fn received(&self) -> MutexGuard<'_, Vec<ReceivedRequest>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connection breaks.
#[derive(Debug, thiserror::Error)]
#[error("the script breaks the connection")]
struct Broken;

type Body = UnsyncBoxBody<Bytes, Broken>;

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= MAX_CONNECTIONS {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((socket, _)) => {
                connections.spawn(serve(socket, Arc::clone(&state)));
            }
            // Too many open files, for example: it may pass.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(socket: TcpStream, state: Arc<State>) {
    // Without it chunks of a few bytes would be sent together; a failure changes nothing else.
    let _unchanged = socket.set_nodelay(true);
    let service = service_fn(|request| answer(request, &state));
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .keep_alive(false);
    // A connection that broke is what some scripts want, and the client's own affair otherwise.
    let _broken = http.serve_connection(TokioIo::new(socket), service).await;
}

async fn answer(request: Request<Incoming>, state: &State) -> Result<Response<Body>, Broken> {
    let path = request.uri().path().trim_end_matches('/').to_owned();
    let Some(protocol) = Protocol::at(&path) else {
        return Ok(send(beside(&request, &path)));
    };
    if request.method() != Method::POST {
        let error = protocol.error_body(405, None, "use POST");
        return Ok(send(Reply::json(405, &error)));
    }
    let headers = shown(request.headers());
    let Ok(raw) = Limited::new(request.into_body(), MAX_BODY_BYTES)
        .collect()
        .await
    else {
        let problem = format!("a body was not whole, or larger than {MAX_BODY_BYTES} bytes");
        let error = state.player.fail(problem);
        let body = protocol.error_body(413, error.code.as_deref(), &error.message);
        return Ok(send(Reply::json(413, &body)));
    };
    match play(protocol, headers, raw.to_bytes(), state) {
        Delivery::Close => Err(Broken),
        Delivery::Hang => std::future::pending().await,
        Delivery::Send(reply) => Ok(send(reply)),
    }
}

fn play(protocol: Protocol, headers: Vec<(String, String)>, raw: Bytes, state: &State) -> Delivery {
    let parsed = serde_json::from_slice::<Value>(&raw);
    let body = parsed.as_ref().map_or(Value::Null, Value::clone);
    let view = match parsed {
        Ok(body) => read::view(protocol, &body),
        Err(error) => Err(format!("the body is not JSON: {error}")),
    };
    state.received().push(ReceivedRequest {
        protocol,
        headers,
        raw,
        body: body.clone(),
        view: view
            .as_ref()
            .map_or_else(|_| RequestView::default(), Clone::clone),
    });
    let fail = |problem: String| {
        let title = protocol.title();
        state
            .player
            .fail(format!("a request of {title}: {problem}"))
    };
    let delivered = view
        .map_err(fail)
        .and_then(|view| state.player.play(&view))
        .and_then(|answer| {
            let rendered = Rendered {
                protocol,
                answer: &answer,
                request: &body,
            };
            deliver(&rendered).map_err(fail)
        });
    delivered.unwrap_or_else(|error| {
        let body = protocol.error_body(400, error.code.as_deref(), &error.message);
        Delivery::Send(Reply::json(400, &body))
    })
}

/// What is asked for beside the protocols: which models there are.
fn beside(request: &Request<Incoming>, path: &str) -> Reply {
    if request.method() != Method::GET {
        let error = format!("no script is played at `{path}`");
        let error = Protocol::ChatCompletions.error_body(404, Some("not_found"), &error);
        return Reply::json(404, &error);
    }
    let created_at = "2026-01-01T00:00:00Z";
    match path {
        "/v1/models" if request.headers().contains_key("anthropic-version") => Reply::json(
            200,
            &json!({
                "data": [{"type": "model", "id": "scripted", "display_name": "Scripted",
                    "created_at": created_at}],
                "has_more": false, "first_id": "scripted", "last_id": "scripted",
            }),
        ),
        "/v1/models" => Reply::json(
            200,
            &json!({
                "object": "list",
                "data": [{"id": "scripted", "object": "model", "created": 0, "owned_by": "script"}],
            }),
        ),
        "/api/tags" => Reply::json(
            200,
            &json!({"models": [{"name": "scripted", "model": "scripted",
                "modified_at": created_at, "size": 0, "digest": ""}]}),
        ),
        _ => {
            let error = format!("nothing is at `{path}`");
            Reply::json(
                404,
                &Protocol::ChatCompletions.error_body(404, Some("not_found"), &error),
            )
        }
    }
}

fn send(reply: Reply) -> Response<Body> {
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    let chunks: VecDeque<_> = reply.chunks.into();
    let (delay, end) = (reply.delay, reply.end);
    let frames = stream::unfold(Some(chunks), move |chunks| next(chunks, delay, end));
    let body = BodyExt::boxed_unsync(StreamBody::new(frames));
    response.body(body).unwrap_or_else(|error| {
        // A status or header of the script that HTTP does not have.
        let text = format!("the script's answer is no HTTP: {error}");
        let body = http_body_util::Full::from(text).map_err(|never: Infallible| match never {});
        let mut response = Response::new(body.boxed_unsync());
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response
    })
}

type Left = Option<VecDeque<Bytes>>;

/// The next chunk, or the end.
async fn next(
    left: Left,
    delay: Duration,
    end: End,
) -> Option<(Result<Frame<Bytes>, Broken>, Left)> {
    let mut chunks = left?;
    // What is ready at once would be written together: this lets the last chunk out first.
    tokio::task::yield_now().await;
    let Some(chunk) = chunks.pop_front() else {
        return match end {
            End::Whole => None,
            End::Break => Some((Err(Broken), None)),
            End::Hang => std::future::pending().await,
        };
    };
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    Some((Ok(Frame::data(chunk)), Some(chunks)))
}
