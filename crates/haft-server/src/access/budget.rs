//! What requests may hold together before they are under way: bytes of their bodies.
//!
//! Whoever asks for more than is left is sent away at once. Waiting would not help: those who wait hold
//! what they have, and could wait for each other. Small bodies are free, so that nobody who sends much
//! keeps those from asking who send little.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::line::overloaded;
use crate::error::ApiError;

/// So much of each body is free: not more than the buffer of its connection may have anyway.
const FREE: usize = 64 * 1024;

/// The bytes that there are.
pub(crate) struct BodyBudget(Arc<Semaphore>);

/// What one body has of them.
#[derive(Debug, Default)]
pub(crate) struct Held(Option<OwnedSemaphorePermit>);

impl BodyBudget {
    /// A budget of so many bytes, enough for the largest body at least.
    pub(crate) fn new(max_bytes: usize, max_body_bytes: usize) -> Self {
        let bytes = max_bytes.max(max_body_bytes).min(Semaphore::MAX_PERMITS);
        Self(Arc::new(Semaphore::new(bytes)))
    }

    /// Lets a body have this many bytes in all, unless others have them.
    pub(crate) fn grow(&self, held: &mut Held, bytes: usize) -> Result<(), ApiError> {
        let has = held.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = bytes.saturating_sub(FREE).saturating_sub(has);
        if more == 0 {
            return Ok(());
        }
        let more = u32::try_from(more).map_err(|_| overloaded())?;
        let more = Arc::clone(&self.0).try_acquire_many_owned(more);
        let more = more.map_err(|_| overloaded())?;
        match &mut held.0 {
            Some(held) => held.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }
}

impl Held {
    /// A body that gives back what it has when nobody holds it any more.
    pub(crate) fn with(self, bytes: Bytes) -> Bytes {
        struct Weighed {
            bytes: Bytes,
            _permit: OwnedSemaphorePermit,
        }
        impl AsRef<[u8]> for Weighed {
            fn as_ref(&self) -> &[u8] {
                &self.bytes
            }
        }
        match self.0 {
            Some(permit) => Bytes::from_owner(Weighed {
                bytes,
                _permit: permit,
            }),
            None => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    #[test]
    fn large_bodies_share_what_there_is_and_small_ones_are_free() {
        let budget = BodyBudget::new(1000, 0);
        let (mut first, mut second, mut small) = Default::default();
        budget.grow(&mut first, FREE + 600).unwrap();
        budget.grow(&mut second, FREE + 100).unwrap();
        budget.grow(&mut second, FREE + 400).unwrap();
        budget.grow(&mut second, FREE + 400).unwrap();
        budget.grow(&mut small, FREE).unwrap();
        let error = budget.grow(&mut second, FREE + 401).unwrap_err();
        assert_eq!(error.code, ErrorCode::ServerIsOverloaded);
        assert!(error.retry_after.is_some());
        drop(first);
        budget.grow(&mut second, FREE + 1000).unwrap();
        drop(second);
        assert_eq!(budget.0.available_permits(), 1000);
    }

    #[test]
    fn a_body_holds_its_bytes_as_long_as_a_part_of_it_is_there() {
        let budget = BodyBudget::new(1000, 0);
        let mut held = Held::default();
        budget.grow(&mut held, FREE + 1000).unwrap();
        let body = held.with(Bytes::from_static(b"body"));
        let part = body.slice(1..);
        drop(body);
        assert_eq!(budget.0.available_permits(), 0);
        assert_eq!(part, "ody");
        drop(part);
        assert_eq!(budget.0.available_permits(), 1000);
    }

    #[test]
    fn the_largest_body_always_fits() {
        let budget = BodyBudget::new(1, 2 * FREE);
        budget.grow(&mut Held::default(), 2 * FREE).unwrap();
    }
}
