//! Takes spans in and sends them in batches. Nobody waits for it, and nothing depends on it.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use haft_core::{Cancel, ModelError};
use haft_models::http::{Endpoint, Http, Timeouts};
use prometheus_client::metrics::counter::Counter;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::names::{SERVICE_INSTANCE, SERVICE_NAME, SERVICE_VERSION};
use super::options::OtlpOptions;
use super::protobuf;
use super::span::{Attributes, Span};
use crate::watch::metrics::{Metrics, OutcomeLabels};

/// So many spans wait to be sent; more are dropped.
const MAX_WAITING: usize = 4096;

/// So many are sent at once.
const MAX_BATCH: usize = 512;

/// How long the first of a batch waits for others.
const GATHERING: Duration = Duration::from_secs(1);

/// The pauses before a batch is sent again.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

/// How often a collector that cannot be reached is complained about.
const COMPLAINT_PAUSE: Duration = Duration::from_mins(1);

const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(3),
    header: Duration::from_secs(10),
    idle: Duration::from_secs(10),
    max_body_bytes: 64 * 1024,
};

enum Letter {
    Span(Box<Span>),
    /// Whoever wants to know when everything before it is sent.
    Flush(oneshot::Sender<()>),
}

/// The way to a collector.
pub(super) struct Exporter {
    letters: mpsc::Sender<Letter>,
    /// The other end, until the first span needs somebody who reads.
    idle: Mutex<Option<Courier>>,
    started: OnceLock<()>,
    closing: Cancel,
    dropped: Counter,
}

/// Reads the spans and sends them.
struct Courier {
    letters: mpsc::Receiver<Letter>,
    endpoint: Endpoint,
    http: Http,
    resource: Attributes,
    closing: Cancel,
    sent: Counter,
    dropped: Counter,
    complained: Option<Instant>,
}

impl Exporter {
    pub(super) fn new(options: &OtlpOptions, metrics: &Metrics) -> Self {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let counter = |outcome| {
            let labels = OutcomeLabels { outcome };
            metrics.meters.spans.get_or_create_owned(&labels)
        };
        let closing = Cancel::new();
        let mut resource = Attributes::default();
        resource.text(SERVICE_NAME, options.service_name.clone());
        resource.text(SERVICE_VERSION, env!("CARGO_PKG_VERSION"));
        resource.text(SERVICE_INSTANCE, format!("{:032x}", fastrand::u128(..)));
        let dropped = counter("dropped");
        let courier = Courier {
            letters: receiver,
            endpoint: options.endpoint.clone(),
            http: Http::new(TIMEOUTS.connect),
            resource,
            closing: closing.clone(),
            sent: counter("exported"),
            dropped: dropped.clone(),
            complained: None,
        };
        Self {
            letters: sender,
            idle: Mutex::new(Some(courier)),
            started: OnceLock::new(),
            closing,
            dropped,
        }
    }

    /// Sends a span some time, or never.
    pub(super) fn send(&self, span: Span) {
        self.started.get_or_init(|| self.start());
        if self.letters.try_send(Letter::Span(Box::new(span))).is_err() {
            self.dropped.inc();
        }
    }

    /// Begins to read what is sent.
    fn start(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Ok(runtime), Some(courier)) = (Handle::try_current(), idle.take()) {
            runtime.spawn(courier.work());
        }
    }

    /// Waits until everything so far is sent or dropped, but not for longer than this.
    pub(super) async fn close(&self, patience: Duration) {
        if self.started.get().is_none() {
            return;
        }
        self.closing.cancel();
        let (done, is_done) = oneshot::channel();
        let flushed = async {
            if self.letters.send(Letter::Flush(done)).await.is_ok() {
                // It answers, or has gone: there is nothing more to wait for.
                let _ = is_done.await;
            }
        };
        if timeout(patience, flushed).await.is_err() {
            tracing::warn!("the last spans could not be exported in time");
        }
    }
}

impl Courier {
    async fn work(mut self) {
        let mut batch = Vec::new();
        while let Some(letter) = self.letters.recv().await {
            let mut flush = take(letter, &mut batch);
            let deadline = Instant::now() + GATHERING;
            while flush.is_none() && batch.len() < MAX_BATCH {
                match timeout_at(deadline, self.letters.recv()).await {
                    Ok(Some(letter)) => flush = take(letter, &mut batch),
                    Ok(None) | Err(_) => break,
                }
            }
            if !batch.is_empty() {
                self.export(&batch).await;
                batch.clear();
            }
            if let Some(flushed) = flush {
                // Whoever asked may not be there any more.
                let _ = flushed.send(());
            }
        }
    }

    /// Sends a batch, some times if need be.
    async fn export(&mut self, batch: &[Span]) {
        let body = bytes::Bytes::from(protobuf::export(&self.resource, batch));
        let mut pauses = PAUSES.into_iter();
        loop {
            let Err(error) = self.post(body.clone()).await else {
                self.sent.inc_by(batch.len() as u64);
                return;
            };
            let pause = pauses.next().filter(|_| error.kind.is_retryable());
            let pause = pause.filter(|_| !self.closing.is_cancelled());
            let Some(pause) = pause else {
                self.dropped.inc_by(batch.len() as u64);
                return self.complain(&error, batch.len());
            };
            tokio::select! {
                () = sleep(error.retry_after.unwrap_or(pause).min(PAUSES[2])) => {}
                () = self.closing.cancelled() => {}
            }
        }
    }

    async fn post(&self, body: bytes::Bytes) -> Result<(), ModelError> {
        let accept = "application/x-protobuf";
        let posted = self
            .http
            .post(&self.endpoint, "v1/traces", body, accept, &TIMEOUTS);
        let mut answer = posted.await?;
        // Read to its end, so that the connection can be used again.
        while answer.chunk().await?.is_some() {}
        Ok(())
    }

    /// Says that spans are lost, once a minute.
    fn complain(&mut self, error: &ModelError, lost: usize) {
        let now = Instant::now();
        let is_due = |last: Instant| now - last >= COMPLAINT_PAUSE;
        if self.complained.is_none_or(is_due) {
            self.complained = Some(now);
            tracing::warn!(
                lost,
                collector = self.endpoint.base(),
                status = error.status,
                reason = error.message,
                "spans cannot be exported"
            );
        }
    }
}

/// Puts a span into the batch; gives whoever wants to hear of its end.
fn take(letter: Letter, batch: &mut Vec<Span>) -> Option<oneshot::Sender<()>> {
    match letter {
        Letter::Span(span) => {
            batch.push(*span);
            None
        }
        Letter::Flush(done) => Some(done),
    }
}
