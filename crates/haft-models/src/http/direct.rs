//! Connections without TLS and proxy, each driven by whoever waits for its answer.
//!
//! A model on this machine or in this network answers in hundreds of small pieces. Where connections
//! are tasks of their own, as in most clients, every piece is handed from task to task; here the one
//! who reads the answer reads the socket, and all that has come is read at once.
//!
//! What comes in: a request for an address that begins with `http://`. What goes out: an answer whose
//! connection is kept for the next request when it was read to its end, and closed when it was not.

mod error;
mod framing;
mod head;
mod pieces;
mod wire;

#[cfg(test)]
mod answers_tests;

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use haft_core::{ModelError, ModelErrorKind};
use hyper::http::uri::InvalidUri;
use hyper_util::client::legacy::connect::HttpConnector;
use reqwest::Url;
use reqwest::header::LOCATION;
use tower_service::Service as _;

use self::head::Head;
use self::pieces::Pieces;
use self::wire::Wire;
use super::answer::Answer;
use super::client::{MAX_REDIRECTS, chained, may_follow};

pub(super) use head::{Letter, TLS_RECORD};

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
    wire: Wire,
    since: Instant,
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
        letter: Letter<'_>,
        body: Bytes,
    ) -> Result<Answer, ModelError> {
        let mut redirects = 0;
        loop {
            let answer = self.ask(&url, &letter, &body).await?;
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
        letter: &Letter<'_>,
        body: &Bytes,
    ) -> Result<Answer, ModelError> {
        let place = place(url);
        let head = || letter.head(url, body.len());
        if let Some(mut wire) = self.take(place) {
            match wire.ask(head(), body.clone()).await {
                Ok(head) => return Ok(self.answer(place, wire, head)),
                Err(error) if error.has_hung_up() => self.forget(place),
                Err(error) => return Err(failed(place, &error)),
            }
        }
        let mut wire = self.connect(place).await?;
        match wire.ask(head(), body.clone()).await {
            Ok(head) => Ok(self.answer(place, wire, head)),
            Err(error) => Err(failed(place, &error)),
        }
    }

    async fn connect(&self, place: &str) -> Result<Wire, ModelError> {
        let to = format!("http://{place}").parse();
        let to = to.map_err(|error: InvalidUri| failed(place, &error))?;
        let connected = self.connector.clone().call(to).await;
        let stream = connected.map_err(|error| failed(place, &error))?;
        Ok(Wire::new(stream.into_inner()))
    }

    fn answer(self: &Arc<Self>, place: &str, wire: Wire, head: Head) -> Answer {
        Answer {
            status: head.status,
            headers: head.headers,
            pieces: Box::pin(Pieces {
                pool: Arc::clone(self),
                place: place.to_owned(),
                wire: Some(wire),
                framing: head.framing,
                keeps_open: head.keeps_open,
            }),
        }
    }

    /// A connection to an address that can be used again.
    fn take(&self, place: &str) -> Option<Wire> {
        let mut kept = self.kept();
        let kept = kept.get_mut(place)?;
        while let Some(Kept { wire, since }) = kept.pop() {
            if since.elapsed() > KEPT {
                // Those before it have waited longer.
                kept.clear();
            } else if wire.is_free() {
                return Some(wire);
            }
        }
        None
    }

    fn keep(self: &Arc<Self>, place: &str, wire: Wire) {
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
                    kept.retain(|it| it.since.elapsed() <= KEPT && it.wire.is_free());
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

/// What went wrong, without the path: it may hold a key.
fn failed(place: &str, error: &(dyn Error + 'static)) -> ModelError {
    let mut cause = Some(error);
    let mut kind = ModelErrorKind::Unreachable;
    while let Some(error) = cause {
        let is_late = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
        if error.downcast_ref().is_some_and(is_late) {
            kind = ModelErrorKind::Timeout;
        }
        cause = error.source();
    }
    ModelError::new(kind, format!("http://{place}: {}", chained(error)))
}
