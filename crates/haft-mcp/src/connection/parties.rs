//! Whose calls are under way on one connection.
//!
//! A server of the legacy era asks without saying for which call. Its question may be put to somebody only
//! if there is no doubt: nobody ever sees what another one's call is asked.

use std::sync::{Arc, Weak};

use tokio::time::Instant;

use crate::question::Asker;

/// Somebody a call was made for.
struct Party {
    caller: Option<String>,
    /// Weak, and yet enough to tell it from all others: its place is not given to another one.
    asker: Option<Weak<dyn Asker>>,
}

impl Party {
    fn of(asker: Option<&Arc<dyn Asker>>) -> Self {
        Self {
            caller: asker.and_then(|it| it.caller()).map(str::to_owned),
            asker: asker.map(Arc::downgrade),
        }
    }

    fn is_unknown(&self) -> bool {
        self.asker.is_none()
    }

    fn is(&self, other: &Self) -> bool {
        match (&self.caller, &other.caller) {
            (Some(one), Some(other)) => return one == other,
            (None, None) => {}
            _ => return false,
        }
        match (&self.asker, &other.asker) {
            (Some(one), Some(other)) => std::ptr::addr_eq(one.as_ptr(), other.as_ptr()),
            // Somebody who cannot be asked could be anybody.
            _ => false,
        }
    }
}

/// A call that the server may still ask about.
struct Entry {
    id: u64,
    party: Party,
    stage: Stage,
}

enum Stage {
    /// Somebody waits for its answer, and this one can be asked.
    UnderWay(Option<Arc<dyn Asker>>),
    /// It was given up, which the server may not have heard or heeded. Until then it may still ask.
    GivenUp(Instant),
}

/// The calls of one connection, in the order in which they began.
#[derive(Default)]
pub(super) struct Parties {
    entries: Vec<Entry>,
    next: u64,
}

/// Why there is no one to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoOne {
    /// No call is under way.
    Idle,
    /// Whoever made the call answers no questions.
    Silent,
    /// There are several, and it is not known which of them is meant.
    Doubt,
}

impl Parties {
    /// A call begins; its number.
    pub(super) fn begin(&mut self, asker: Option<Arc<dyn Asker>>) -> u64 {
        let now = Instant::now();
        self.entries
            .retain(|it| !matches!(it.stage, Stage::GivenUp(until) if until <= now));
        self.next += 1;
        self.entries.push(Entry {
            id: self.next,
            party: Party::of(asker.as_ref()),
            stage: Stage::UnderWay(asker),
        });
        self.next
    }

    /// The server has answered it.
    pub(super) fn answered(&mut self, id: u64) {
        self.entries.retain(|it| it.id != id);
    }

    /// Nobody waits for its answer any more; the server may ask about it until then.
    pub(super) fn given_up(&mut self, id: u64, until: Instant) {
        let Some(at) = self.entries.iter().position(|it| it.id == id) else {
            return;
        };
        let mut entry = self.entries.remove(at);
        // One of each is enough to know about, however many are given up.
        self.entries.retain(|it| {
            let is_same =
                it.party.is(&entry.party) || (it.party.is_unknown() && entry.party.is_unknown());
            !(is_same && matches!(it.stage, Stage::GivenUp(_)))
        });
        entry.stage = Stage::GivenUp(until);
        self.entries.push(entry);
    }

    /// How many are under way.
    pub(super) fn under_way(&self) -> usize {
        let is_under_way = |it: &&Entry| matches!(it.stage, Stage::UnderWay(_));
        self.entries.iter().filter(is_under_way).count()
    }

    /// Whoever is meant by a question that does not say so: the oldest call of the only caller.
    pub(super) fn meant(&self) -> Result<Arc<dyn Asker>, NoOne> {
        self.oldest().map(|(asker, _)| Arc::clone(asker))
    }

    fn oldest(&self) -> Result<(&Arc<dyn Asker>, u64), NoOne> {
        let now = Instant::now();
        if self.under_way() == 0 {
            return Err(NoOne::Idle);
        }
        let found = self.entries.iter().find_map(|it| match &it.stage {
            Stage::UnderWay(Some(asker)) => Some((it, asker)),
            _ => None,
        });
        let (oldest, asker) = found.ok_or(NoOne::Silent)?;
        let may_ask = |it: &Entry| !matches!(it.stage, Stage::GivenUp(until) if until <= now);
        let mut all = self.entries.iter().filter(|it| may_ask(it));
        if all.all(|it| it.party.is(&oldest.party)) {
            Ok((asker, oldest.id))
        } else {
            Err(NoOne::Doubt)
        }
    }

    /// Whether a call of whoever made this one is still under way.
    pub(super) fn is_waited_for(&self, asker: &Arc<dyn Asker>) -> bool {
        let party = Party::of(Some(asker));
        self.entries
            .iter()
            .any(|it| matches!(it.stage, Stage::UnderWay(_)) && it.party.is(&party))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use haft_core::BoxFuture;

    use super::*;
    use crate::question::{Answer, Question};

    struct Named(&'static str);

    impl Asker for Named {
        fn ask(&self, _: Question) -> BoxFuture<'_, Answer> {
            Box::pin(async { Answer::Cancel })
        }

        fn caller(&self) -> Option<&str> {
            Some(self.0)
        }
    }

    fn named(name: &'static str) -> Arc<dyn Asker> {
        Arc::new(Named(name))
    }

    fn meant(parties: &Parties) -> Result<u64, NoOne> {
        parties.oldest().map(|(_, id)| id)
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_call_of_the_only_caller_is_meant() {
        let mut parties = Parties::default();
        assert_eq!(meant(&parties), Err(NoOne::Idle));
        let first = parties.begin(Some(named("a")));
        let second = parties.begin(Some(named("a")));
        assert_eq!(meant(&parties), Ok(first));
        parties.answered(first);
        assert_eq!(meant(&parties), Ok(second));
        let other = parties.begin(Some(named("b")));
        assert_eq!(meant(&parties), Err(NoOne::Doubt));
        parties.answered(second);
        assert_eq!(meant(&parties), Ok(other));
    }

    #[tokio::test(start_paused = true)]
    async fn askers_without_a_name_are_themselves_only() {
        let nameless = || -> Arc<dyn Asker> { Arc::new(|_: Question| Answer::Cancel) };
        let (one, other) = (nameless(), nameless());
        let mut parties = Parties::default();
        let first = parties.begin(Some(Arc::clone(&one)));
        parties.begin(Some(one));
        assert_eq!(meant(&parties), Ok(first));
        parties.begin(Some(other));
        assert_eq!(meant(&parties), Err(NoOne::Doubt));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_nobody_answers_for_could_be_the_one_that_is_asked_about() {
        let mut parties = Parties::default();
        let silent = parties.begin(None);
        assert_eq!(meant(&parties), Err(NoOne::Silent));
        let first = parties.begin(Some(named("a")));
        assert_eq!(meant(&parties), Err(NoOne::Doubt));
        parties.answered(silent);
        assert_eq!(meant(&parties), Ok(first));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_given_up_may_still_be_the_one_that_is_asked_about() {
        let mut parties = Parties::default();
        let given_up = parties.begin(Some(named("a")));
        let until = Instant::now() + Duration::from_mins(1);
        parties.given_up(given_up, until);
        assert_eq!(
            (meant(&parties), parties.under_way()),
            (Err(NoOne::Idle), 0)
        );
        let other = parties.begin(Some(named("b")));
        assert_eq!(meant(&parties), Err(NoOne::Doubt));
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(meant(&parties), Ok(other));
    }
}
