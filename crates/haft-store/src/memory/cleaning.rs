//! Letting go what the retention lets go.

use haft_core::{Cleaned, Owner, Retention};

use super::State;
use crate::cutoff::cutoff;

/// A record that may have to go: when it was made, its place in the order of writing, whose it is.
type Candidate = (i64, u64, Owner, String);

impl State {
    /// Removes at most `batch` records, the oldest first.
    pub(super) fn clean(&mut self, retention: Retention, now: i64, batch: usize) -> Cleaned {
        let cutoff = retention.max_age.map(|max_age| cutoff(now, max_age));
        let mut finished = self.finished().into_iter().peekable();
        let mut untouched = self.untouched(cutoff).into_iter();
        let mut surplus = retention
            .max_bytes
            .map_or(0, |max_bytes| self.bytes().saturating_sub(max_bytes));
        let mut cleaned = Cleaned::default();
        let mut taken = 0;
        loop {
            let is_old = finished
                .peek()
                .is_some_and(|(created_at, ..)| cutoff.is_some_and(|cutoff| *created_at < cutoff));
            let is_response =
                is_old || untouched.len() == 0 && surplus > 0 && finished.peek().is_some();
            if !is_response && untouched.len() == 0 {
                break;
            }
            if taken >= batch {
                cleaned.has_more = true;
                break;
            }
            let (records, freed) = if is_response {
                cleaned.responses += 1;
                finished
                    .next()
                    .and_then(|(_, _, owner, id)| self.owners.get_mut(&owner)?.delete_response(&id))
            } else {
                cleaned.conversations += 1;
                untouched.next().and_then(|(owner, id)| {
                    let freed = self.owners.get_mut(&owner)?.delete_conversation(&id)?;
                    Some((1, freed))
                })
            }
            .unwrap_or_default();
            taken += records.max(1);
            surplus = surplus.saturating_sub(freed);
        }
        self.owners.retain(|_, records| !records.is_empty());
        cleaned
    }

    /// Finished responses that were not deleted, the oldest first.
    fn finished(&self) -> Vec<Candidate> {
        let mut finished: Vec<Candidate> = self
            .owners
            .iter()
            .flat_map(|(owner, records)| {
                let living = records
                    .responses
                    .iter()
                    .filter(|(_, response)| response.is_finished && !response.is_deleted());
                living.map(|(id, response)| {
                    (response.created_at, response.seq, owner.clone(), id.clone())
                })
            })
            .collect();
        finished.sort_unstable();
        finished
    }

    /// Conversations that nobody touched since.
    fn untouched(&self, cutoff: Option<i64>) -> Vec<(Owner, String)> {
        let Some(cutoff) = cutoff else {
            return Vec::new();
        };
        self.owners
            .iter()
            .flat_map(|(owner, records)| {
                let old = records
                    .conversations
                    .iter()
                    .filter(|(_, conversation)| conversation.touched_at < cutoff);
                old.map(|(id, _)| (owner.clone(), id.clone()))
            })
            .collect()
    }

    fn bytes(&self) -> u64 {
        self.owners
            .values()
            .map(super::records::Records::bytes)
            .sum()
    }
}
