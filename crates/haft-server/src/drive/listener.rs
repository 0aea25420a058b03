//! Who hears of a run: somebody who is there, or whoever comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use haft_core::Cancel;

use super::Ended;
use super::unheard::Unheard;
use crate::durable::Durable;
use crate::error::ApiError;
use crate::stream::WireEvent;

/// How long somebody who does not read may hold up a run.
pub(crate) const MAX_STALL: Duration = Duration::from_mins(2);

/// What a follower hears.
pub(crate) enum Signal {
    Events(Vec<WireEvent>),
    /// The model has begun to answer: whatever comes now is part of the response.
    Answering,
    /// There will be no response.
    Refused(Box<ApiError>),
    /// The response is stored and told.
    Ended(Box<Ended>),
}

/// Whether a response has begun or was refused: it is one or the other.
#[derive(Debug, Default)]
pub(crate) struct Commitment(AtomicU8);

impl Commitment {
    const OPEN: u8 = 0;
    const BEGUN: u8 = 1;
    const REFUSED: u8 = 2;

    /// Says that the response has begun; false if it was refused.
    pub(crate) fn begin(&self) -> bool {
        self.decide(Self::BEGUN)
    }

    /// Says that there will be none; false if it has begun.
    pub(super) fn refuse(&self) -> bool {
        self.decide(Self::REFUSED)
    }

    fn decide(&self, for_what: u8) -> bool {
        let decided =
            self.0
                .compare_exchange(Self::OPEN, for_what, Ordering::AcqRel, Ordering::Acquire);
        decided.map_or_else(|now| now == for_what, |_| true)
    }
}

/// Who hears of a run.
pub(super) enum Listener {
    /// Somebody who is there.
    Follower {
        unheard: Unheard,
        commitment: Arc<Commitment>,
        wants_events: bool,
        /// Whether he has gone, or has not read for so long that it comes to the same.
        is_gone: bool,
    },
    /// Whoever comes.
    Live(Durable),
}

impl Listener {
    pub(super) async fn tell(&mut self, events: Vec<WireEvent>, cancel: &Cancel) {
        match self {
            Self::Follower {
                wants_events: true, ..
            } => self.send(Signal::Events(events), cancel).await,
            Self::Follower { .. } => {}
            Self::Live(durable) => durable.tell(events),
        }
    }

    /// Whether nobody hears anything before the response is over.
    pub(super) fn hears_only_the_end(&self) -> bool {
        matches!(
            self,
            Self::Follower {
                wants_events: false,
                ..
            }
        )
    }

    pub(super) fn durable(&self) -> Option<&Durable> {
        match self {
            Self::Live(durable) => Some(durable),
            Self::Follower { .. } => None,
        }
    }

    /// Whether the run is one that another process can go on with, and nobody wants it to stop.
    pub(super) fn may_be_put_away(&self) -> bool {
        self.durable()
            .is_some_and(|durable| !durable.live.is_unwanted())
    }

    /// Leaves the run to another process.
    pub(super) async fn put_away(&self) {
        if let Self::Live(durable) = self {
            durable.live.end().await;
        }
    }

    pub(super) async fn answering(&mut self, cancel: &Cancel) {
        if let Self::Follower {
            commitment,
            wants_events: true,
            ..
        } = self
        {
            // Decided here and not where it is read: a run that breaks off at once must not be
            // refused to somebody who was already told of its beginning.
            commitment.begin();
            self.send(Signal::Answering, cancel).await;
        }
    }

    /// Decides that there will be no response; false if one has begun.
    pub(super) fn may_refuse(&self) -> bool {
        match self {
            Self::Follower { commitment, .. } => commitment.refuse(),
            Self::Live(_) => false,
        }
    }

    pub(super) async fn refuse(&mut self, error: ApiError) {
        self.send(Signal::Refused(Box::new(error)), &Cancel::new())
            .await;
    }

    pub(super) async fn end(&mut self, events: Vec<WireEvent>, ended: Box<Ended>, cancel: &Cancel) {
        match self {
            Self::Follower { .. } => {
                self.tell(events, cancel).await;
                self.send(Signal::Ended(ended), cancel).await;
            }
            Self::Live(durable) => durable.end(events, false).await,
        }
    }

    /// Hands a signal on. Who does not read for too long has gone, and is not waited for again.
    async fn send(&mut self, signal: Signal, cancel: &Cancel) {
        let Self::Follower {
            unheard, is_gone, ..
        } = self
        else {
            return;
        };
        if !*is_gone && unheard.say(signal).await.is_err() {
            *is_gone = true;
            cancel.cancel();
        }
    }
}
