//! Who answered.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::ModelErrorKind;

/// So many failures are remembered until somebody asks for them.
const MAX_FAILURES: usize = 64;

/// Hears which backends answered the requests of one run, and which failed before. Clones hear the
/// same.
///
/// ```
/// use haft_models::pool::Witness;
/// assert_eq!(Witness::default().stand_ins(), None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Witness(Arc<Mutex<Testimony>>);

#[derive(Debug, Default)]
struct Testimony {
    heard: Vec<Heard>,
    failed: Vec<Failover>,
}

/// One backend did not answer, and another did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failover {
    /// Who should have.
    pub from: Arc<str>,
    /// Who answered.
    pub to: Arc<str>,
    /// Why not the first.
    pub why: Absence,
}

/// Why a backend did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absence {
    /// It was asked and failed so.
    Failed(ModelErrorKind),
    /// It had failed before and was not asked.
    LeftAlone,
}

#[derive(Debug)]
struct Heard {
    name: Arc<str>,
    is_stand_in: bool,
}

impl Witness {
    pub(super) fn hear(&self, name: &Arc<str>, is_stand_in: bool) {
        let heard = &mut self.testimony().heard;
        // As many as there are backends, however long the run is.
        if heard.iter().all(|it| it.name != *name) {
            heard.push(Heard {
                name: Arc::clone(name),
                is_stand_in,
            });
        }
    }

    pub(super) fn hear_failure(&self, failover: Failover) {
        let failed = &mut self.testimony().failed;
        if failed.len() < MAX_FAILURES {
            failed.push(failover);
        }
    }

    /// What failed since the last time this was asked, in order.
    pub fn take_failovers(&self) -> Vec<Failover> {
        std::mem::take(&mut self.testimony().failed)
    }

    fn testimony(&self) -> MutexGuard<'_, Testimony> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of all who answered, in the order of their first answers, if another than the one
    /// that was meant is among them.
    pub fn stand_ins(&self) -> Option<String> {
        let heard = &self.testimony().heard;
        if heard.iter().all(|it| !it.is_stand_in) {
            return None;
        }
        let names: Vec<&str> = heard.iter().map(|it| &*it.name).collect();
        Some(names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stand_ins_are_worth_a_word() {
        let witness = Witness::default();
        let (own, other): (Arc<str>, Arc<str>) = ("own".into(), "other".into());
        witness.hear(&own, false);
        assert_eq!(witness.stand_ins(), None);
        witness.hear(&other, true);
        witness.hear(&other, true);
        witness.hear(&own, false);
        assert_eq!(witness.stand_ins().as_deref(), Some("own, other"));
    }
}
