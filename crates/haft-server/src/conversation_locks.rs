//! One run at a time for each conversation (`open-responses.md` §9.3).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_core::{Cancel, Owner};

use crate::error::{ApiError, ErrorCode};

/// How long a run that is being written down is waited for.
const WRITING_WAIT: Duration = Duration::from_secs(10);

type Key = (Owner, String);

/// The conversations that a run is using.
#[derive(Default)]
pub(crate) struct ConversationLocks(Arc<Mutex<HashMap<Key, Arc<Hold>>>>);

/// Who uses a conversation.
#[derive(Default)]
struct Hold {
    /// Whether it is over and only being written down: from then on its end may be seen.
    is_ending: AtomicBool,
    /// Given when the conversation is free.
    released: Cancel,
}

/// Holds a conversation for one run.
pub(crate) struct ConversationLock {
    locks: Arc<Mutex<HashMap<Key, Arc<Hold>>>>,
    key: Key,
    hold: Arc<Hold>,
}

impl ConversationLocks {
    /// Holds a conversation, or says that somebody else does. Whoever has seen the end of a response
    /// can go on from it at once, so one that is being written down is waited for.
    pub(crate) async fn lock(&self, owner: &Owner, id: &str) -> Result<ConversationLock, ApiError> {
        let key = (owner.clone(), id.to_owned());
        let waiting = async {
            loop {
                let released = match self.take(&key) {
                    Ok(lock) => return Some(lock),
                    Err(hold) if !hold.is_ending.load(Ordering::Acquire) => return None,
                    Err(hold) => hold.released.clone(),
                };
                released.cancelled().await;
            }
        };
        let taken = tokio::time::timeout(WRITING_WAIT, waiting).await;
        taken.ok().flatten().ok_or_else(|| {
            let message =
                format!("another response is using the conversation `{id}`: wait until it is done");
            ApiError::new(ErrorCode::ConversationLocked, message).at("conversation")
        })
    }

    /// Holds a conversation, or gives who does.
    fn take(&self, key: &Key) -> Result<ConversationLock, Arc<Hold>> {
        let mut all = held(&self.0);
        if let Some(hold) = all.get(key) {
            return Err(Arc::clone(hold));
        }
        let hold = Arc::new(Hold::default());
        all.insert(key.clone(), Arc::clone(&hold));
        Ok(ConversationLock {
            locks: Arc::clone(&self.0),
            key: key.clone(),
            hold,
        })
    }
}

impl ConversationLock {
    /// Says that the run is over but for its being written down.
    pub(crate) fn ends(&self) {
        self.hold.is_ending.store(true, Ordering::Release);
    }
}

impl Drop for ConversationLock {
    fn drop(&mut self) {
        held(&self.locks).remove(&self.key);
        self.hold.released.cancel();
    }
}

fn held(locks: &Mutex<HashMap<Key, Arc<Hold>>>) -> MutexGuard<'_, HashMap<Key, Arc<Hold>>> {
    // Nothing is half-inserted if somebody panicked.
    locks.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_conversation_is_held_by_one_and_free_afterwards() {
        let locks = ConversationLocks::default();
        let owner = Owner::default();
        let lock = locks.lock(&owner, "conv_1").await.ok().unwrap();
        let refused = locks.lock(&owner, "conv_1").await.err().unwrap();
        assert_eq!(refused.code, ErrorCode::ConversationLocked);
        assert!(locks.lock(&owner, "conv_2").await.is_ok());
        drop(lock);
        assert!(locks.lock(&owner, "conv_1").await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_being_written_down_is_waited_for_but_not_endlessly() {
        let locks = Arc::new(ConversationLocks::default());
        let owner = Owner::default();
        let lock = locks.lock(&owner, "conv_1").await.ok().unwrap();
        lock.ends();
        assert!(locks.lock(&owner, "conv_1").await.is_err(), "too long");
        let waiting = {
            let locks = Arc::clone(&locks);
            tokio::spawn(async move { locks.lock(&Owner::default(), "conv_1").await.is_ok() })
        };
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!waiting.is_finished());
        drop(lock);
        assert!(waiting.await.unwrap());
    }
}
