//! Which conversation stays where: a backend that stood in once has the prompt in its cache, and can
//! read the sealed thoughts that it gave.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_core::{Item, ModelRequest, Role};

/// How long a conversation stays after its last request.
const STAY: Duration = Duration::from_mins(10);

/// How many conversations are remembered.
const MAX_KEPT: usize = 1024;

/// Remembers the conversations that are not at the first backend. Empty as long as that one works.
#[derive(Debug, Default)]
pub(super) struct Affinity(Mutex<HashMap<u64, Place>>);

#[derive(Debug, Clone, Copy)]
struct Place {
    member: usize,
    last: Instant,
}

impl Affinity {
    /// Where the conversation of this request was answered last, if not by the first backend.
    pub(super) fn place(&self, request: &ModelRequest, now: Instant) -> Option<usize> {
        let mut kept = self.kept();
        if kept.is_empty() || !is_continued(request) {
            return None;
        }
        let place = kept.get_mut(&key(request))?;
        if now.duration_since(place.last) > STAY {
            return None;
        }
        place.last = now;
        Some(place.member)
    }

    /// Notes who answered.
    pub(super) fn keep(&self, key: u64, member: usize, now: Instant) {
        let mut kept = self.kept();
        if member == 0 {
            kept.remove(&key);
            return;
        }
        if kept.len() >= MAX_KEPT && !kept.contains_key(&key) {
            kept.retain(|_, place| now.duration_since(place.last) <= STAY);
            let stalest = kept.iter().min_by_key(|(_, place)| place.last);
            let stalest = stalest.map(|(key, _)| *key);
            if let Some(stalest) = stalest.filter(|_| kept.len() >= MAX_KEPT) {
                kept.remove(&stalest);
            }
        }
        kept.insert(key, Place { member, last: now });
    }

    /// Whether there is anything to change for an answer of this one.
    pub(super) fn concerns(&self, member: usize) -> bool {
        member != 0 || !self.kept().is_empty()
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<u64, Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a conversation keeps from its first request to its last: its beginning, up to the first
/// words of the user.
pub(super) fn key(request: &ModelRequest) -> u64 {
    let mut hasher = DefaultHasher::new();
    request.options.prompt_cache_key.hash(&mut hasher);
    for item in beginning(request) {
        item.kind().hash(&mut hasher);
        item.text().hash(&mut hasher);
    }
    hasher.finish()
}

/// Whether something follows the beginning: a first request has nowhere to stay yet.
fn is_continued(request: &ModelRequest) -> bool {
    beginning(request).count() < request.conversation.len()
}

fn beginning(request: &ModelRequest) -> impl Iterator<Item = &Item> {
    let is_user = |item: &&Item| matches!(item, Item::Message(it) if it.role == Role::User);
    let first = request.conversation.items().position(|it| is_user(&it));
    let length = first.map_or(0, |at| at + 1);
    request.conversation.items().take(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::Conversation;

    fn asked(items: impl IntoIterator<Item = Item>) -> ModelRequest {
        ModelRequest {
            conversation: Conversation::from(items.into_iter().collect::<Vec<_>>()),
            ..ModelRequest::default()
        }
    }

    fn first(words: &str) -> Vec<Item> {
        vec![Item::developer("be kind"), Item::user(words)]
    }

    fn second(words: &str) -> Vec<Item> {
        let mut items = first(words);
        items.extend([Item::assistant("well"), Item::user("and?")]);
        items
    }

    #[test]
    fn a_conversation_stays_and_another_goes_its_own_way() {
        let now = Instant::now();
        let affinity = Affinity::default();
        affinity.keep(key(&asked(first("a"))), 1, now);
        assert_eq!(affinity.place(&asked(second("a")), now), Some(1));
        assert_eq!(affinity.place(&asked(second("b")), now), None);
        let begun_again = affinity.place(&asked(first("a")), now);
        assert_eq!(
            begun_again, None,
            "the same question is another conversation"
        );
    }

    #[test]
    fn it_stays_as_long_as_it_goes_on() {
        let now = Instant::now();
        let affinity = Affinity::default();
        affinity.keep(key(&asked(first("a"))), 1, now);
        let later = now + STAY;
        assert_eq!(affinity.place(&asked(second("a")), later), Some(1));
        assert_eq!(affinity.place(&asked(second("a")), later + STAY), Some(1));
        let much_later = later + 3 * STAY;
        assert_eq!(affinity.place(&asked(second("a")), much_later), None);
    }

    #[test]
    fn it_forgets_who_is_back_where_he_belongs() {
        let now = Instant::now();
        let affinity = Affinity::default();
        let key = key(&asked(first("a")));
        affinity.keep(key, 1, now);
        assert!(affinity.concerns(0));
        affinity.keep(key, 0, now);
        assert_eq!(affinity.place(&asked(second("a")), now), None);
        assert!(!affinity.concerns(0) && affinity.concerns(1));
    }

    #[test]
    fn its_memory_is_bounded_and_keeps_the_newest() {
        let now = Instant::now();
        let affinity = Affinity::default();
        for at in 0..3000_u64 {
            affinity.keep(at, 1, now + Duration::from_millis(at));
        }
        let kept = affinity.kept();
        assert_eq!(kept.len(), MAX_KEPT);
        assert!(kept.contains_key(&2999) && !kept.contains_key(&0));
    }
}
