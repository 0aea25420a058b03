//! The memory that requests may use together: one budget in bytes for what clients and models make the server hold.
//!
//! It covers request bodies that are being read or wait for their turn, unfinished WebSocket messages, answers that are
//! being collected from models, and responses that are being written. What exceeds the budget is rejected at once:
//! requests that waited for memory would keep what they have, and could wait for each other. The first 64 KiB of
//! everything are free, so that a client with large requests cannot keep out those with small ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::line::overloaded;
use crate::error::ApiError;

/// The part of each body, message, answer and response that is not counted: not more than the buffer of its connection.
pub(crate) const FREE_BYTES: usize = 64 * 1024;

/// How large a part of the budget one answer of a model may take.
const ANSWER_SHARE: usize = 4;

/// Memory that all requests share. Clones share it too.
#[derive(Clone)]
pub(crate) struct MemoryBudget(Arc<Account>);

struct Account {
    limit: usize,
    used: AtomicUsize,
}

/// Bytes of the budget that are in use until this is dropped.
#[derive(Default)]
pub(crate) struct MemoryPermit {
    bytes: usize,
    account: Option<Arc<Account>>,
}

impl MemoryBudget {
    /// A budget of so many bytes, at least enough for the largest body.
    pub(crate) fn new(max_bytes: usize, max_body_bytes: usize) -> Self {
        Self(Arc::new(Account {
            limit: max_bytes.max(max_body_bytes),
            used: AtomicUsize::new(0),
        }))
    }

    /// Lets a permit cover this many bytes in all, if the budget has room for them.
    pub(crate) fn grow(&self, permit: &mut MemoryPermit, bytes: usize) -> Result<(), ApiError> {
        let more = bytes
            .saturating_sub(FREE_BYTES)
            .saturating_sub(permit.bytes);
        if more == 0 {
            return Ok(());
        }
        let limit = self.0.limit;
        let fits = |used: usize| used.checked_add(more).filter(|total| *total <= limit);
        let used = &self.0.used;
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map_err(|_| overloaded())?;
        permit.add(more, &self.0);
        Ok(())
    }

    /// Counts bytes that are there already and cannot be given up, even beyond the limit: the response of a finished run.
    pub(crate) fn force(&self, bytes: usize) -> MemoryPermit {
        let mut permit = MemoryPermit::default();
        let more = bytes.saturating_sub(FREE_BYTES);
        if more > 0 {
            self.0.used.fetch_add(more, Ordering::Relaxed);
            permit.add(more, &self.0);
        }
        permit
    }

    /// How many bytes one answer of a model may have.
    pub(crate) fn max_answer_bytes(&self) -> usize {
        self.0.limit / ANSWER_SHARE
    }

    /// Whether more than half of it is in use.
    pub(crate) fn is_under_pressure(&self) -> bool {
        self.used() > self.0.limit / 2
    }

    /// How many bytes are in use.
    pub(crate) fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }
}

impl MemoryPermit {
    fn add(&mut self, bytes: usize, account: &Arc<Account>) {
        self.bytes += bytes;
        self.account.get_or_insert_with(|| Arc::clone(account));
    }

    /// Bytes that release this permit when the last reference to them is dropped.
    pub(crate) fn with(self, bytes: Bytes) -> Bytes {
        struct MeteredBytes {
            bytes: Bytes,
            _permit: MemoryPermit,
        }
        impl AsRef<[u8]> for MeteredBytes {
            fn as_ref(&self) -> &[u8] {
                &self.bytes
            }
        }
        if self.bytes == 0 {
            return bytes;
        }
        Bytes::from_owner(MeteredBytes {
            bytes,
            _permit: self,
        })
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.used.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

impl std::fmt::Debug for MemoryPermit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryPermit")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    #[test]
    fn large_bodies_share_the_budget_and_small_ones_are_free() {
        let budget = MemoryBudget::new(1000, 0);
        let (mut first, mut second, mut small) = Default::default();
        budget.grow(&mut first, FREE_BYTES + 600).unwrap();
        budget.grow(&mut second, FREE_BYTES + 100).unwrap();
        budget.grow(&mut second, FREE_BYTES + 400).unwrap();
        budget.grow(&mut second, FREE_BYTES + 400).unwrap();
        budget.grow(&mut small, FREE_BYTES).unwrap();
        let error = budget.grow(&mut second, FREE_BYTES + 401).unwrap_err();
        assert_eq!(error.code, ErrorCode::ServerIsOverloaded);
        assert!(error.retry_after.is_some());
        drop(first);
        budget.grow(&mut second, FREE_BYTES + 1000).unwrap();
        drop(second);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn bytes_are_released_with_their_last_reference() {
        let budget = MemoryBudget::new(1000, 0);
        let mut permit = MemoryPermit::default();
        budget.grow(&mut permit, FREE_BYTES + 1000).unwrap();
        let body = permit.with(Bytes::from_static(b"body"));
        let part = body.slice(1..);
        drop(body);
        assert_eq!(budget.used(), 1000);
        assert_eq!(part, "ody");
        drop(part);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_largest_body_always_fits() {
        let budget = MemoryBudget::new(1, 2 * FREE_BYTES);
        budget
            .grow(&mut MemoryPermit::default(), 2 * FREE_BYTES)
            .unwrap();
    }

    #[test]
    fn forced_bytes_count_beyond_the_limit_and_reject_others() {
        let budget = MemoryBudget::new(1000, 0);
        assert!(!budget.is_under_pressure());
        let forced = budget.force(FREE_BYTES + 5000);
        assert!(budget.is_under_pressure());
        let mut permit = MemoryPermit::default();
        budget.grow(&mut permit, FREE_BYTES + 1).unwrap_err();
        drop(forced);
        budget.grow(&mut permit, FREE_BYTES + 1).unwrap();
    }
}
