//! `[connections.NAME.rate_limit]`: how often a connection is used.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value as Json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_mins(1);

/// What a connection allows; nothing said is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rate {
    requests: Option<u64>,
    tokens: Option<u64>,
    concurrent: Option<usize>,
}

impl Rate {
    pub(super) fn read(config: &Json) -> Option<Self> {
        let number = |key: &str| config.get(key).and_then(Json::as_u64).filter(|it| *it > 0);
        let rate = Self {
            requests: number("requests_per_minute"),
            tokens: number("tokens_per_minute"),
            concurrent: number("concurrent_requests").and_then(|it| usize::try_from(it).ok()),
        };
        let limits = rate.requests.is_some() || rate.tokens.is_some() || rate.concurrent.is_some();
        limits.then_some(rate)
    }
}

/// Who uses a connection, and what was used in the last minute.
pub(super) struct RateLimit {
    rate: Rate,
    places: Option<Arc<Semaphore>>,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    requests: VecDeque<Instant>,
    tokens: VecDeque<(Instant, u64)>,
}

/// A place at a connection, held as long as a request lasts.
pub(super) struct Place {
    limit: Arc<RateLimit>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Place {
    /// Notes what the request cost.
    pub(super) fn spend(&self, tokens: u64) {
        let mut used = self.limit.used();
        used.tokens.push_back((Instant::now(), tokens));
    }
}

impl RateLimit {
    pub(super) fn new(rate: Rate) -> Self {
        let places = rate.concurrent.map(|count| {
            let count = count.min(Semaphore::MAX_PERMITS);
            Arc::new(Semaphore::new(count))
        });
        Self {
            rate,
            places,
            used: Mutex::default(),
        }
    }

    fn used(&self) -> std::sync::MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request may be made.
    pub(super) async fn place(self: &Arc<Self>) -> Place {
        let permit = match &self.places {
            // Never closed.
            Some(places) => Arc::clone(places).acquire_owned().await.ok(),
            None => None,
        };
        while let Some(until) = self.take() {
            tokio::time::sleep_until(until).await;
        }
        Place {
            limit: Arc::clone(self),
            _permit: permit,
        }
    }

    /// Takes a request, or says when it is worth to ask again.
    fn take(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut used = self.used();
        used.requests.retain(|at| now.duration_since(*at) < MINUTE);
        used.tokens
            .retain(|(at, _)| now.duration_since(*at) < MINUTE);
        let tokens: u64 = used.tokens.iter().map(|(_, tokens)| tokens).sum();
        let requests = u64::try_from(used.requests.len()).unwrap_or(u64::MAX);
        if self.rate.requests.is_some_and(|limit| requests >= limit) {
            return used.requests.front().map(|at| *at + MINUTE);
        }
        if self.rate.tokens.is_some_and(|limit| tokens >= limit) {
            return used.tokens.front().map(|(at, _)| *at + MINUTE);
        }
        used.requests.push_back(now);
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn limit(config: &Json) -> Arc<RateLimit> {
        Arc::new(RateLimit::new(Rate::read(config).expect("it limits")))
    }

    #[tokio::test(start_paused = true)]
    async fn the_request_after_the_last_allowed_one_waits_for_its_minute() {
        let limit = limit(&json!({"requests_per_minute": 2}));
        let began = Instant::now();
        drop(limit.place().await);
        drop(limit.place().await);
        assert_eq!(began.elapsed(), Duration::ZERO);
        drop(limit.place().await);
        assert_eq!(began.elapsed().as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_of_the_last_minute_count() {
        let limit = limit(&json!({"tokens_per_minute": 100}));
        let began = Instant::now();
        limit.place().await.spend(99);
        limit.place().await.spend(1);
        assert_eq!(began.elapsed(), Duration::ZERO);
        drop(limit.place().await);
        assert_eq!(began.elapsed().as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_requests_are_under_way() {
        let limit = limit(&json!({"concurrent_requests": 1}));
        let first = limit.place().await;
        let second = tokio::time::timeout(Duration::from_secs(5), limit.place()).await;
        assert!(second.is_err());
        drop(first);
        drop(limit.place().await);
        assert!(Rate::read(&json!({})).is_none());
    }
}
