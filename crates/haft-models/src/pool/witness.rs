//! Who answered.

use std::sync::{Arc, Mutex, PoisonError};

/// Hears which backends answered the requests of one run. Clones hear the same.
///
/// ```
/// use haft_models::pool::Witness;
/// assert_eq!(Witness::default().stand_ins(), None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Witness(Arc<Mutex<Vec<Heard>>>);

#[derive(Debug)]
struct Heard {
    name: Arc<str>,
    is_stand_in: bool,
}

impl Witness {
    pub(super) fn hear(&self, name: &Arc<str>, is_stand_in: bool) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // As many as there are backends, however long the run is.
        if heard.iter().all(|it| it.name != *name) {
            heard.push(Heard {
                name: Arc::clone(name),
                is_stand_in,
            });
        }
    }

    /// The names of all who answered, in the order of their first answers, if another than the one
    /// that was meant is among them.
    pub fn stand_ins(&self) -> Option<String> {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
