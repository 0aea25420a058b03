//! The meters of one model, looked up once when the server is put together.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use haft_core::{ModelErrorKind, Usage};
use haft_models::pool::{Absence, Failover};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use super::labels::{ErrorLabels, FailoverLabels, ModelLabels, Name, TokenLabels, Word};
use super::list::Meters;

/// What is counted for one model.
pub(crate) struct ModelMeters {
    pub(crate) name: Name,
    pub(crate) turns: Counter,
    pub(crate) requests: Counter,
    pub(crate) first_token: Histogram,
    pub(crate) run: Histogram,
    tokens: [Counter; 5],
    retries: Family<ErrorLabels, Counter>,
    failures: Family<ErrorLabels, Counter>,
    failovers: Family<FailoverLabels, Counter>,
}

/// The kinds of tokens, in the order of the counters.
const KINDS: [Word; 5] = ["input", "cached", "cache_write", "output", "reasoning"];

impl ModelMeters {
    pub(super) fn of(name: &str, meters: &Meters) -> Self {
        let name = Name::from(name);
        let labels = ModelLabels {
            model: name.clone(),
        };
        let tokens = KINDS.map(|kind| {
            let model = name.clone();
            let labels = TokenLabels { model, kind };
            meters.tokens.get_or_create_owned(&labels)
        });
        Self {
            turns: meters.turns.get_or_create_owned(&labels),
            requests: meters.backend_requests.get_or_create_owned(&labels),
            first_token: meters.first_token_seconds.get_or_create_owned(&labels),
            run: meters.run_seconds.get_or_create_owned(&labels),
            tokens,
            retries: meters.backend_retries.clone(),
            failures: meters.backend_failures.clone(),
            failovers: meters.backend_failovers.clone(),
            name,
        }
    }

    /// Counts what an answer cost.
    pub(crate) fn used(&self, usage: &Usage) {
        let counts = [
            usage.input_tokens,
            usage.cached_input_tokens,
            usage.cache_write_tokens,
            usage.output_tokens,
            usage.reasoning_tokens,
        ];
        for (counter, count) in self.tokens.iter().zip(counts) {
            add_tokens(counter, count);
        }
    }

    /// Counts a request that failed and is repeated.
    pub(crate) fn retried(&self, kind: ModelErrorKind) {
        self.retries.get_or_create(&self.labels(kind)).inc();
    }

    /// Counts a request that failed for good.
    pub(crate) fn failed(&self, kind: ModelErrorKind) {
        self.failures.get_or_create(&self.labels(kind)).inc();
    }

    /// Counts a request that another backend answered.
    pub(crate) fn failed_over(&self, failover: &Failover) {
        let labels = FailoverLabels {
            model: self.name.clone(),
            backend: Name(Arc::clone(&failover.from)),
            error: absence_word(failover.why),
            by: Name(Arc::clone(&failover.to)),
        };
        self.failovers.get_or_create(&labels).inc();
    }

    fn labels(&self, kind: ModelErrorKind) -> ErrorLabels {
        ErrorLabels {
            model: self.name.clone(),
            error: error_word(kind),
        }
    }
}

/// The most tokens that one answer counts for. A backend that reports more is wrong, and must not spoil the sum of all.
const MAX_TOKENS: u64 = u32::MAX as u64;

/// Adds the tokens of one answer. A counter only grows: it stops at its limit instead of starting again at zero.
fn add_tokens(counter: &Counter, count: u64) {
    let count = count.min(MAX_TOKENS);
    let add = |sum: u64| Some(sum.saturating_add(count));
    // It never fails: there is always a next value.
    let _ = counter
        .inner()
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
}

/// Why a backend did not answer, in one word.
pub(crate) fn absence_word(why: Absence) -> Word {
    match why {
        Absence::Failed(kind) => error_word(kind),
        _ => "left_alone",
    }
}

/// A kind of failure in one word.
pub(crate) fn error_word(kind: ModelErrorKind) -> Word {
    match kind {
        ModelErrorKind::RateLimit => "rate_limit",
        ModelErrorKind::QuotaExhausted => "quota_exhausted",
        ModelErrorKind::Timeout => "timeout",
        ModelErrorKind::ServerError => "server_error",
        ModelErrorKind::Unreachable => "unreachable",
        ModelErrorKind::Unauthorized => "unauthorized",
        ModelErrorKind::NotFound => "not_found",
        ModelErrorKind::ContextLength => "context_length",
        ModelErrorKind::PromptRefused => "prompt_refused",
        ModelErrorKind::InvalidRequest => "invalid_request",
        ModelErrorKind::Misconfigured => "misconfigured",
        ModelErrorKind::Protocol => "protocol",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_counters_never_start_again_at_zero() {
        let counter = Counter::default();
        add_tokens(&counter, u64::MAX);
        assert_eq!(counter.get(), MAX_TOKENS);
        counter.inc_by(u64::MAX - MAX_TOKENS - 1);
        add_tokens(&counter, 5);
        add_tokens(&counter, 5);
        assert_eq!(counter.get(), u64::MAX);
    }
}
