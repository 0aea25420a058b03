//! One connection: its queue, its memory of the last response, its age.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::message::{Wish, envelope, steer_failed, with_stream_id};
use super::metered_io::MeteredIo;
use crate::access::{MemoryPermit, RateReport, overloaded};
use crate::app::{App, Caller};
use crate::context::Remembered;
use crate::drive::{Ended, Follower, Job, MAX_STALL, Signal};
use crate::error::{ApiError, ErrorCode};
use crate::http::{body, responses};
use crate::stream::WireEvent;
use crate::watch::RequestWatch;
use crate::wire::{CreateRequest, Door, ResponseStatus};

/// How many responses may wait for the one under way.
const MAX_QUEUE: usize = 16;

/// How long nothing may be heard before the other end is asked for a sign.
const PING_PAUSE: Duration = Duration::from_secs(30);

/// How long a farewell may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// How long a connection stays open after the close frame for a message that cannot be read.
const CLOSE_PAUSE: Duration = Duration::from_millis(250);

/// The other end has gone.
struct Gone;

/// The close frame for an error of a connection (RFC 6455, section 7.4.1). None where the connection itself is broken.
fn close_of(error: &Error) -> Option<(CloseCode, &'static str)> {
    match error {
        Error::Capacity(_) => Some((CloseCode::Size, "message too large")),
        Error::Utf8(_) => Some((CloseCode::Invalid, "text is not UTF-8")),
        // Reported as a protocol error, but the client has gone.
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
        Error::Protocol(_) => Some((CloseCode::Protocol, "protocol error")),
        Error::Io(error) => match error.kind() {
            ErrorKind::OutOfMemory => Some((CloseCode::Again, "server overloaded; retry later")),
            ErrorKind::TimedOut => Some((CloseCode::Policy, "timed out receiving a message")),
            _ => None,
        },
        _ => None,
    }
}

/// What a client wants, until it is its turn.
struct Waiting {
    wish: Result<Map<String, Value>, ApiError>,
    /// How long the message was.
    size: usize,
    permit: MemoryPermit,
}

pub(super) type Socket = WebSocketStream<MeteredIo<TokioIo<Upgraded>>>;

pub(super) struct Connection {
    socket: Socket,
    app: Arc<App>,
    caller: Caller,
    /// The request that opened it.
    opening: RequestWatch,
    /// What is to be done, in order; mistakes are answered in their turn too.
    queue: VecDeque<Waiting>,
    memory: Option<Remembered>,
    old_at: Instant,
    ping_at: Instant,
}

impl Connection {
    pub(super) fn new(socket: Socket, app: Arc<App>, caller: Caller) -> Self {
        let now = Instant::now();
        Self {
            socket,
            old_at: now + app.options.websocket_age,
            ping_at: now + PING_PAUSE,
            app,
            opening: caller.watch.clone(),
            caller,
            queue: VecDeque::new(),
            memory: None,
        }
    }

    /// Serves it until it is closed or too old, or the server stops.
    pub(super) async fn run(mut self) {
        let app = Arc::clone(&self.app);
        let _token = app.lifetime.token();
        let _open = app.watch.websocket();
        while self.step().await.is_ok() {}
    }

    async fn step(&mut self) -> Result<(), Gone> {
        if Instant::now() >= self.old_at {
            return self.retire().await;
        }
        if self.app.lifetime.is_stopping() {
            return self.close(CloseCode::Away, "server is shutting down").await;
        }
        match self.queue.pop_front() {
            Some(Waiting {
                wish: Ok(body),
                size,
                permit,
            }) => Box::pin(self.turn(body, size, permit)).await,
            Some(Waiting {
                wish: Err(error), ..
            }) => self.refuse(&error, None).await,
            None => {
                tokio::select! {
                    message = self.socket.next() => self.hear(message).await,
                    () = sleep_until(self.ping_at) => self.ping().await,
                    () = sleep_until(self.old_at) => Ok(()),
                    () = self.app.lifetime.stopping() => Ok(()),
                }
            }
        }
    }

    /// Says that the connection is too old, and closes it.
    async fn retire(&mut self) -> Result<(), Gone> {
        let error = ApiError::new(
            ErrorCode::ConnectionLimitReached,
            "maximum connection age reached; open another connection",
        );
        self.refuse(&error, None).await?;
        self.close(CloseCode::Normal, "maximum connection age reached")
            .await
    }

    async fn close(&mut self, code: CloseCode, reason: &'static str) -> Result<(), Gone> {
        let close = CloseFrame {
            code,
            reason: reason.into(),
        };
        // It is over, whether the other end hears of it or not.
        let _ = timeout(FAREWELL, self.socket.send(Message::Close(Some(close)))).await;
        Err(Gone)
    }

    /// Closes the connection after a message that cannot be read, with the code that says why.
    async fn fail(&mut self, error: &Error) -> Result<(), Gone> {
        if let Some((code, reason)) = close_of(error) {
            if code == CloseCode::Again {
                // Clients look for errors in messages first; the rest of the message cannot be skipped.
                self.send(envelope(&overloaded())).await?;
            }
            let _ = self.close(code, reason).await;
            // A connection that is closed with unread bytes is reset, and the other end may lose what was sent last.
            tokio::time::sleep(CLOSE_PAUSE).await;
        }
        Err(Gone)
    }

    /// Lets the answer to the other end's farewell leave: it is written by the next look.
    async fn part(&mut self) -> Result<(), Gone> {
        let _ = timeout(FAREWELL, self.socket.next()).await;
        Err(Gone)
    }

    async fn ping(&mut self) -> Result<(), Gone> {
        if self.socket.get_ref().is_overdue() {
            let error = Error::Io(ErrorKind::TimedOut.into());
            return self.fail(&error).await;
        }
        self.ping_at = Instant::now() + PING_PAUSE;
        self.write(Message::Ping(bytes::Bytes::new())).await
    }

    /// Writes a message. Who does not read for too long has gone.
    async fn write(&mut self, message: Message) -> Result<(), Gone> {
        match timeout(MAX_STALL, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Gone),
        }
    }

    /// Takes a message in.
    async fn hear(&mut self, message: Option<Result<Message, Error>>) -> Result<(), Gone> {
        self.ping_at = Instant::now() + PING_PAUSE;
        let bytes = match message {
            Some(Ok(Message::Text(text))) => text.into(),
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Ping(content) | Message::Pong(content))) => {
                self.socket.get_mut().finish_control(content.len());
                return Ok(());
            }
            Some(Ok(Message::Close(_))) => return self.part().await,
            // Only for reading single frames, which is not done here.
            Some(Ok(Message::Frame(_))) => return Ok(()),
            Some(Err(error)) => return self.fail(&error).await,
            None => return Err(Gone),
        };
        let size = bytes.len();
        let permit = self.socket.get_mut().finish_message();
        let wish = match body::digest(bytes, Wish::read).await {
            Ok(Wish::Create(body)) => Ok(body),
            Ok(Wish::Steer(wish)) => return self.send(steer_failed(&wish)).await,
            Err(error) => Err(error),
        };
        // As much may wait as may come at once.
        let waiting = self.queue.iter().map(|waiting| waiting.size);
        let is_full = waiting.sum::<usize>() + size > self.app.options.max_body_bytes;
        if self.queue.len() >= MAX_QUEUE || (is_full && !self.queue.is_empty()) {
            let message = format!(
                "{} responses are waiting on this connection: wait for one of them, try again in 1s",
                self.queue.len()
            );
            let error = ApiError::new(ErrorCode::RateLimitExceeded, message);
            let error = error.retry_after(Duration::from_secs(1));
            return self.send(envelope(&error)).await;
        }
        self.queue.push_back(Waiting { wish, size, permit });
        Ok(())
    }

    async fn send(&mut self, text: String) -> Result<(), Gone> {
        // Counted until it has left; the connection is closed sooner where the budget is nearly used up.
        let _permit = self.app.memory.force(text.len());
        self.ping_at = Instant::now() + PING_PAUSE;
        self.write(Message::Text(text.into())).await
    }

    /// Answers a turn with an error. What it went on from is forgotten.
    async fn refuse(&mut self, error: &ApiError, previous: Option<&str>) -> Result<(), Gone> {
        self.forget(previous);
        self.send(envelope(error)).await
    }

    fn forget(&mut self, previous: Option<&str>) {
        let is_it = |memory: &mut Remembered| Some(memory.response_id.as_str()) == previous;
        self.memory.take_if(is_it);
    }

    async fn turn(
        &mut self,
        body: Map<String, Value>,
        size: usize,
        permit: MemoryPermit,
    ) -> Result<(), Gone> {
        let watched = self.app.watch.message(&self.caller, &self.opening);
        self.caller.watch = watched.notes();
        let refused = self.answer(body, size, permit).await?;
        watched.answered(refused.unwrap_or(StatusCode::OK));
        Ok(())
    }

    /// Answers a turn; with which status it was refused, if it was.
    async fn answer(
        &mut self,
        body: Map<String, Value>,
        size: usize,
        permit: MemoryPermit,
    ) -> Result<Option<StatusCode>, Gone> {
        let previous = body.get("previous_response_id").and_then(Value::as_str);
        let previous = previous.map(str::to_owned);
        if let Err(error) = self.admit_again().await {
            self.refuse(&error, previous.as_deref()).await?;
            return Ok(Some(error.status()));
        }
        let app = Arc::clone(&self.app);
        let read = move || responses::read(&app, Value::Object(body), Door::WebSocket);
        let mut request = match body::sized(size, read).await {
            Ok(request) => request,
            Err(error) => {
                self.refuse(&error, previous.as_deref()).await?;
                return Ok(Some(error.status()));
            }
        };
        request.stream = true;
        let request = Arc::new(request);
        let job = match self.prepare(&request).await? {
            Ok(job) => job,
            Err(error) => {
                self.refuse(&error, previous.as_deref()).await?;
                return Ok(Some(error.status()));
            }
        };
        // It is under way.
        drop(permit);
        let stream_id = request.stream_id.as_deref();
        if !request.generate {
            let (events, ended) = job.warm_up(&self.app).await;
            self.tell(&events, stream_id).await?;
            self.remember(ended, previous.as_deref());
            return Ok(None);
        }
        let follower = job.follow(&self.app, true);
        match self.follow(follower, stream_id).await? {
            Ok(ended) => self.remember(ended, previous.as_deref()),
            Err(error) => {
                self.refuse(&error, previous.as_deref()).await?;
                return Ok(Some(error.status()));
            }
        }
        Ok(None)
    }

    /// Whether its client may still come in, and may ask again.
    async fn admit_again(&mut self) -> Result<(), ApiError> {
        self.app.keyring.refresh().await;
        let pass = self.app.keyring.recognise_again(&self.caller.pass)?;
        if *pass.owner() != self.caller.owner {
            // What was said is still somebody else's.
            self.memory = None;
            self.caller.owner = pass.owner().clone();
        }
        self.caller.pass = pass;
        let report = self.caller.pass.count();
        report.and_then(RateReport::refusal).map_or(Ok(()), Err)
    }

    /// Prepares a turn, and hears meanwhile what else the client says: it may have to wait.
    async fn prepare(
        &mut self,
        request: &Arc<CreateRequest>,
    ) -> Result<Result<Box<Job>, ApiError>, Gone> {
        let (app, caller) = (Arc::clone(&self.app), self.caller.clone());
        let memory = self.memory.take();
        let prepared = {
            let preparing = responses::prepare(&app, &caller, request, memory.as_ref());
            let mut preparing = pin!(preparing);
            loop {
                tokio::select! {
                    prepared = preparing.as_mut() => break prepared,
                    message = self.socket.next() => self.hear(message).await?,
                    () = sleep_until(self.ping_at) => self.ping().await?,
                }
            }
        };
        self.memory = memory;
        Ok(prepared)
    }

    /// Passes a run's events on. What fails before the model shows a sign is told by an envelope.
    async fn follow(
        &mut self,
        mut follower: Follower,
        stream_id: Option<&str>,
    ) -> Result<Result<Ended, ApiError>, Gone> {
        let mut first = Vec::new();
        let mut has_begun = false;
        let revoked = self.app.keyring.revoked(&self.caller.pass);
        let mut revoked = revoked.unwrap_or_else(|| Box::pin(std::future::pending()));
        let begin_at = Instant::now() + self.app.options.answer_wait;
        loop {
            tokio::select! {
                signal = follower.next() => match signal {
                    Some(Signal::Events(events)) if has_begun => {
                        self.tell(&events, stream_id).await?;
                    }
                    Some(Signal::Events(events)) => first.extend(events),
                    // If the run was refused in this very moment, that is what comes next.
                    Some(Signal::Answering) if follower.commitment.begin() => {
                        has_begun = true;
                        self.tell(&std::mem::take(&mut first), stream_id).await?;
                    }
                    Some(Signal::Answering) => {}
                    Some(Signal::Refused(error)) => return Ok(Err(*error)),
                    Some(Signal::Ended(ended)) => {
                        self.tell(&first, stream_id).await?;
                        return Ok(Ok(*ended));
                    }
                    None => {
                        let message = "the run broke off without saying why";
                        return Ok(Err(ApiError::new(ErrorCode::ServerError, message)));
                    }
                },
                message = self.socket.next() => self.hear(message).await?,
                // Dropping the follower cancels the run.
                error = &mut revoked => {
                    if has_begun {
                        return self.close(CloseCode::Policy, "API key revoked").await.map(|()| Err(error));
                    }
                    return Ok(Err(error));
                }
                () = sleep_until(begin_at), if !has_begun => {
                    if follower.commitment.begin() {
                        has_begun = true;
                        self.tell(&std::mem::take(&mut first), stream_id).await?;
                    } else {
                        tokio::task::yield_now().await;
                    }
                }
                () = sleep_until(self.ping_at) => self.ping().await?,
            }
        }
    }

    async fn tell(&mut self, events: &[WireEvent], stream_id: Option<&str>) -> Result<(), Gone> {
        for event in events {
            // One end per turn: the response itself says that it failed.
            if &*event.kind == "error" {
                continue;
            }
            let (_, json) = self.caller.dialect.render(&event.kind, &event.json);
            self.send(with_stream_id(&json, stream_id)).await?;
        }
        Ok(())
    }

    /// Keeps what the next turn may go on from.
    fn remember(&mut self, ended: Ended, previous: Option<&str>) {
        let status = ended.resource.status;
        if matches!(status, ResponseStatus::Failed | ResponseStatus::Cancelled) {
            return self.forget(previous);
        }
        self.memory = Some(Remembered {
            response_id: ended.resource.id.clone(),
            records: ended.into_records(),
        });
    }
}
