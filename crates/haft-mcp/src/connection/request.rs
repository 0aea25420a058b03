//! One request: its answer as it was written, its limits, and its end when nobody waits any more.

use std::sync::Arc;
use std::time::Duration;

use haft_core::{Cancel, ToolProgress};
use rmcp::model::ClientRequest;
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::failure::cause_of;
use crate::error::Cause;
use crate::traffic::{Answer, Traffic};

/// How often progress is passed on at most.
const PROGRESS_PACE: Duration = Duration::from_millis(200);

/// A point in time that exists, however long the wait is said to be.
pub(super) fn later(from: Instant, wait: Duration) -> Instant {
    const YEAR: Duration = Duration::from_hours(24 * 365);
    from + wait.min(YEAR)
}

/// How long is waited for what.
pub(super) struct Waits<'a> {
    /// Without answer or progress.
    pub(super) idle: Duration,
    /// In all, until then.
    pub(super) until: Instant,
    /// How long that is from the beginning, and the setting that says so.
    pub(super) total: (Duration, &'static str),
    /// Until the caller gives up.
    pub(super) cancel: &'a Cancel,
    /// How many questions of the server are being asked. While there are some, no time passes.
    pub(super) asking: Option<watch::Receiver<usize>>,
}

/// Whoever hears of progress.
pub(super) type OnProgress<'a> = &'a mut (dyn FnMut(ToolProgress) + Send);

/// Where requests go.
pub(super) struct Line<'a> {
    pub(super) peer: &'a Peer<RoleClient>,
    pub(super) traffic: &'a Arc<Traffic>,
    /// How long telling the server that a request was given up may take.
    pub(super) control: Duration,
}

impl Line<'_> {
    /// Sends a request and waits for its answer: the result and its size.
    ///
    /// When it is given up, by a limit, the caller or by being dropped, the server is told.
    pub(super) async fn request(
        &self,
        request: ClientRequest,
        options: PeerRequestOptions,
        waits: &Waits<'_>,
        on_progress: Option<OnProgress<'_>>,
    ) -> Result<(Value, usize), Cause> {
        let timed_out = || Cause::TimedOut {
            limit: waits.total.0,
            setting: waits.total.1,
        };
        let handle = tokio::select! {
            biased;
            () = waits.cancel.cancelled() => return Err(Cause::Cancelled),
            () = sleep_until(waits.until) => return Err(timed_out()),
            sent = self.peer.send_request_with_option(request, options) => sent.map_err(|error| cause_of(error, false))?,
        };
        let mut progress = self.traffic.progress(&handle.id);
        let mut under_way = UnderWay {
            handle: Some(handle),
            traffic: Arc::clone(self.traffic),
            control: self.control,
        };
        let mut pace = Pace {
            on_progress,
            last: f64::NEG_INFINITY,
            held: None,
            next: Instant::now(),
        };
        let mut clock = Clock::new(waits);
        loop {
            let Some(handle) = under_way.handle.as_mut() else {
                return Err(Cause::Cancelled);
            };
            let pass_on_at = pace.due();
            let (until, idle_until) = (clock.until, clock.idle_until);
            let is_running = !clock.is_stopped();
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    // What came before the answer is told before it.
                    if let Some(progress) = progress.borrow_and_update().clone() {
                        pace.take(progress);
                    }
                    pace.pass_on();
                    let answer = answer.unwrap_or(Err(rmcp::ServiceError::TransportClosed));
                    return self.answered(under_way, answer.err());
                }
                () = waits.cancel.cancelled() => return Err(Cause::Cancelled),
                () = sleep_until(until), if is_running => return Err(timed_out()),
                Ok(()) = progress.changed() => {
                    clock.progressed();
                    if let Some(progress) = progress.borrow_and_update().clone() {
                        pace.take(progress);
                    }
                }
                () = clock.stopped_or_started() => {}
                () = sleep_until(pass_on_at.unwrap_or(idle_until)), if pass_on_at.is_some() => pace.pass_on(),
                () = sleep_until(idle_until), if is_running => return Err(Cause::Idle { limit: waits.idle }),
            }
        }
    }

    fn answered(
        &self,
        mut under_way: UnderWay,
        error: Option<rmcp::ServiceError>,
    ) -> Result<(Value, usize), Cause> {
        // Nothing is left to be given up.
        let Some(handle) = under_way.handle.take() else {
            return Err(Cause::Cancelled);
        };
        let is_sent = self.traffic.is_sent(&handle.id);
        let answer = self.traffic.take_answer(&handle.id);
        self.traffic.forget(&handle.id);
        match (answer, error) {
            (Some(Answer::Failed(cause)), _) => Err(cause),
            (_, Some(error)) => Err(cause_of(error, is_sent)),
            (Some(Answer::Raw(result, bytes)), None) => Ok((result, bytes)),
            (None, None) => Err(Cause::Unexpected("an answer without a result".into())),
        }
    }
}

/// The limits of one request. They stand still while a person is asked.
struct Clock {
    idle: Duration,
    idle_until: Instant,
    until: Instant,
    asking: Option<watch::Receiver<usize>>,
    stopped_at: Option<Instant>,
}

impl Clock {
    fn new(waits: &Waits<'_>) -> Self {
        let now = Instant::now();
        let mut clock = Self {
            idle: waits.idle,
            idle_until: later(now, waits.idle),
            until: waits.until,
            asking: waits.asking.clone(),
            stopped_at: None,
        };
        clock.look();
        clock
    }

    fn is_stopped(&self) -> bool {
        self.stopped_at.is_some()
    }

    fn progressed(&mut self) {
        self.idle_until = later(Instant::now(), self.idle);
    }

    /// Notes whether somebody is being asked.
    fn look(&mut self) {
        let Some(asking) = &mut self.asking else {
            return;
        };
        let is_asking = *asking.borrow_and_update() > 0;
        match (is_asking, self.stopped_at) {
            (true, None) => self.stopped_at = Some(Instant::now()),
            (false, Some(since)) => {
                self.stopped_at = None;
                self.until = later(self.until, since.elapsed());
                self.progressed();
            }
            _ => {}
        }
    }

    /// Waits until somebody is asked, or has answered.
    async fn stopped_or_started(&mut self) {
        let changed = match &mut self.asking {
            Some(asking) => asking.changed().await.is_ok(),
            None => false,
        };
        if !changed {
            return std::future::pending().await;
        }
        self.look();
    }
}

/// A request that is told to be given up when it is dropped.
struct UnderWay {
    handle: Option<RequestHandle<RoleClient>>,
    traffic: Arc<Traffic>,
    control: Duration,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else {
            return;
        };
        self.traffic.forget(&handle.id);
        let control = self.control;
        // Without a runtime the connection has ended as well.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let told = handle.cancel(Some("nobody waits for the answer any more".into()));
                // A server that cannot be told will find out.
                let _ = tokio::time::timeout(control, told).await;
            });
        }
    }
}

/// Passes progress on, never backwards and not too often.
struct Pace<'a> {
    on_progress: Option<OnProgress<'a>>,
    last: f64,
    held: Option<ToolProgress>,
    next: Instant,
}

impl Pace<'_> {
    fn take(&mut self, progress: ToolProgress) {
        let now = progress.progress.unwrap_or(self.last);
        if self.on_progress.is_none() || now < self.last {
            return;
        }
        self.last = now;
        self.held = Some(progress);
        if Instant::now() >= self.next {
            self.pass_on();
        }
    }

    /// When what is held may be passed on.
    fn due(&self) -> Option<Instant> {
        self.held.as_ref().map(|_| self.next)
    }

    fn pass_on(&mut self) {
        if let (Some(progress), Some(on_progress)) = (self.held.take(), self.on_progress.as_mut()) {
            on_progress(progress);
            self.next = Instant::now() + PROGRESS_PACE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn progress_is_passed_on_forwards_and_five_times_a_second() {
        let mut heard = Vec::new();
        let mut on_progress = |progress: ToolProgress| heard.push(progress.progress.unwrap());
        let mut pace = Pace {
            on_progress: Some(&mut on_progress),
            last: f64::NEG_INFINITY,
            held: None,
            next: Instant::now(),
        };
        for step in 0..1000_u32 {
            pace.take(ToolProgress::at(f64::from(step)));
            pace.take(ToolProgress::at(-1.0));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        pace.pass_on();
        assert_eq!(heard, [0.0, 200.0, 400.0, 600.0, 800.0, 999.0]);
    }
}
