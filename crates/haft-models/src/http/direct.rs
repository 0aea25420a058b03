//! Connections without TLS and proxy, each driven by whoever waits for its answer.
//!
//! A model on this machine or in this network answers in hundreds of small pieces. Where connections
//! are tasks of their own, as in most clients, every piece is handed from task to task; here the one
//! who reads the answer reads the socket, and all that has come is read at once.
//!
//! What comes in: a request for an address that begins with `http://`. What goes out: an answer whose
//! connection is kept for the next request when it was read to its end, and closed when it was not.

use std::collections::HashMap;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_core::Stream;
use haft_core::{ModelError, ModelErrorKind};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper::header::{HOST, HeaderMap, HeaderValue, LOCATION};
use hyper::{Method, Request, Response, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use reqwest::Url;
use tokio::net::TcpStream;
use tower_service::Service as _;

use super::answer::Answer;
use super::client::{MAX_REDIRECTS, chained, may_follow};

/// How long a connection is kept for the next request.
const KEPT: Duration = Duration::from_secs(90);

/// How many are kept for one address.
const MAX_KEPT: usize = 512;

/// How long nothing may be heard before the system asks for a sign of the other end.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Connections by the address that they go to.
pub(super) struct Direct {
    connector: HttpConnector,
    kept: Mutex<HashMap<String, Vec<Kept>>>,
}

/// A connection that waits for the next request. The one that came last is used first.
struct Kept {
    wire: Box<Wire>,
    since: Instant,
}

/// One connection.
struct Wire {
    requests: SendRequest<Full<Bytes>>,
    connection: Connection<TokioIo<TcpStream>, Full<Bytes>>,
    is_over: bool,
}

impl Direct {
    /// Connections that are given so long to come about.
    pub(super) fn new(connect: Duration) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(connect));
        connector.set_nodelay(true);
        connector.set_keepalive(Some(KEEP_ALIVE));
        connector.set_keepalive_interval(Some(KEEP_ALIVE));
        Self {
            connector,
            kept: Mutex::default(),
        }
    }

    /// Sends a body to an address, and waits until an answer begins.
    pub(super) async fn post(
        self: &Arc<Self>,
        mut url: Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, ModelError> {
        let mut redirects = 0;
        loop {
            let answer = self.ask(&url, &headers, &body).await?;
            let target = answer.header(LOCATION).and_then(|to| url.join(to).ok());
            match target.filter(|to| may_follow(answer.status, &url, to)) {
                Some(to) if redirects < MAX_REDIRECTS => url = to,
                _ => return Ok(answer),
            }
            redirects += 1;
        }
    }

    /// Sends a request over a connection that is there, or a new one.
    ///
    /// Servers hang up on connections that nobody used for a while, perhaps in the moment in which the
    /// next request is on its way. That says nothing about the server: the request is sent once more
    /// over a new connection, and the others that were kept are not trusted any more.
    async fn ask(
        self: &Arc<Self>,
        url: &Url,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Answer, ModelError> {
        let new =
            || request(url, headers.clone(), body.clone()).map_err(|error| failed(url, &error));
        if let Some(mut wire) = self.take(place(url)) {
            match wire.ask(new()?).await {
                Ok(response) => return Ok(self.answer(url, wire, response)),
                Err(error) if has_hung_up(error.error()) => self.forget(place(url)),
                Err(error) => return Err(failed(url, error.error())),
            }
        }
        let mut wire = self.connect(url).await?;
        match wire.ask(new()?).await {
            Ok(response) => Ok(self.answer(url, wire, response)),
            Err(error) => Err(failed(url, error.error())),
        }
    }

    async fn connect(&self, url: &Url) -> Result<Box<Wire>, ModelError> {
        let to = Uri::try_from(format!("http://{}", place(url)));
        let to = to.map_err(|error| failed(url, &error))?;
        let connected = self.connector.clone().call(to).await;
        let stream = connected.map_err(|error| failed(url, &error))?;
        let shaken = handshake(stream).await;
        let (requests, connection) = shaken.map_err(|error| failed(url, &error))?;
        Ok(Box::new(Wire {
            requests,
            connection,
            is_over: false,
        }))
    }

    fn answer(
        self: &Arc<Self>,
        url: &Url,
        wire: Box<Wire>,
        response: Response<Incoming>,
    ) -> Answer {
        let (head, body) = response.into_parts();
        Answer {
            status: head.status,
            headers: head.headers,
            pieces: Box::pin(Pieces {
                pool: Arc::clone(self),
                url: url.clone(),
                wire: Some(wire),
                body,
            }),
        }
    }

    /// A connection to an address that can be used again.
    fn take(&self, place: &str) -> Option<Box<Wire>> {
        let mut kept = self.kept();
        let kept = kept.get_mut(place)?;
        while let Some(Kept { mut wire, since }) = kept.pop() {
            if since.elapsed() > KEPT {
                // Those before it have waited longer.
                kept.clear();
            } else if wire.is_free() {
                return Some(wire);
            }
        }
        None
    }

    fn keep(self: &Arc<Self>, place: &str, wire: Box<Wire>) {
        let since = Instant::now();
        let mut all = self.kept();
        if all.is_empty() {
            self.clean_up_later();
        }
        let kept = match all.get_mut(place) {
            Some(kept) => kept,
            None => all.entry(place.to_owned()).or_default(),
        };
        if kept.len() < MAX_KEPT {
            kept.push(Kept { wire, since });
        }
    }

    fn forget(&self, place: &str) {
        // The place itself stays for whoever cleans up: there is one as long as there are places.
        if let Some(kept) = self.kept().get_mut(place) {
            kept.clear();
        }
    }

    /// Closes connections that nobody has used for too long, until there are none.
    fn clean_up_later(self: &Arc<Self>) {
        let pool = Arc::downgrade(self);
        // Whoever reads an answer does so in a runtime.
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(KEPT / 3).await;
                let Some(pool) = pool.upgrade() else { return };
                let mut all = pool.kept();
                all.retain(|_, kept| {
                    kept.retain_mut(|it| it.since.elapsed() <= KEPT && it.wire.is_free());
                    !kept.is_empty()
                });
                if all.is_empty() {
                    return;
                }
            }
        });
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<String, Vec<Kept>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Host and port, which say where a connection goes.
fn place(url: &Url) -> &str {
    let authority = url.authority();
    let place = authority.rsplit_once('@').map(|(_, place)| place);
    place.unwrap_or(authority)
}

/// Whether the other end closed the connection before it said anything.
fn has_hung_up(error: &hyper::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    let mut is_broken = false;
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        is_broken |= matches!(
            kind,
            Some(
                io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::NotConnected
            )
        );
        cause = error.source();
    }
    is_broken || error.is_incomplete_message() || error.is_canceled() || error.is_closed()
}

fn request(
    url: &Url,
    mut headers: HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    headers.insert(HOST, HeaderValue::from_str(place(url))?);
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = match url.query() {
        Some(query) => format!("{}?{query}", url.path()).parse()?,
        None => url.path().parse()?,
    };
    *request.headers_mut() = headers;
    Ok(request)
}

impl Wire {
    /// Lets the connection read and write what it can.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if !self.is_over {
            // Why it is over is told to whoever waits for an answer.
            self.is_over = Pin::new(&mut self.connection).poll(cx).is_ready();
        }
    }

    /// Whether it can take a request.
    fn is_free(&mut self) -> bool {
        self.drive(&mut nobody());
        !self.is_over && self.requests.is_ready()
    }

    /// Sends a request and waits until its answer begins.
    async fn ask(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        let mut answer = pin!(self.requests.try_send_request(request));
        poll_fn(|cx| {
            self.drive(cx);
            // Nobody but the connection makes it ready, and that was asked just now.
            answer.as_mut().poll(&mut nobody())
        })
        .await
    }
}

/// For those who are asked again anyway: nobody has to be woken.
fn nobody() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// The body of an answer, with its connection.
struct Pieces {
    pool: Arc<Direct>,
    url: Url,
    /// None when the answer is over.
    wire: Option<Box<Wire>>,
    body: Incoming,
}

impl Stream for Pieces {
    type Item = Result<Bytes, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        // What has come is taken without anybody being woken for it; only when there is nothing does
        // the connection learn whom to wake.
        let mut asked = 0;
        loop {
            match Pin::new(&mut this.body).poll_frame(&mut nobody()) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(piece) = frame.into_data() {
                        return Poll::Ready(Some(Ok(piece)));
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    this.wire = None;
                    return Poll::Ready(Some(Err(failed(&this.url, &error))));
                }
                Poll::Ready(None) => {
                    if let Some(mut wire) = this.wire.take()
                        && wire.is_free()
                    {
                        this.pool.keep(place(&this.url), wire);
                    }
                    return Poll::Ready(None);
                }
                Poll::Pending => {
                    let Some(wire) = this.wire.as_mut().filter(|wire| !wire.is_over) else {
                        this.wire = None;
                        let error = io::Error::from(io::ErrorKind::UnexpectedEof);
                        return Poll::Ready(Some(Err(failed(&this.url, &error))));
                    };
                    match asked {
                        0 => wire.drive(&mut nobody()),
                        1 => wire.drive(cx),
                        _ => return Poll::Pending,
                    }
                    asked += 1;
                }
            }
        }
    }
}

/// What went wrong, without the path: it may hold a key.
fn failed(url: &Url, error: &(dyn Error + 'static)) -> ModelError {
    let mut cause = Some(error);
    let mut kind = ModelErrorKind::Unreachable;
    while let Some(error) = cause {
        let is_late = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
        if error.downcast_ref().is_some_and(is_late) {
            kind = ModelErrorKind::Timeout;
        }
        cause = error.source();
    }
    let origin = url.origin().ascii_serialization();
    ModelError::new(kind, format!("{origin}: {}", chained(error)))
}
