//! Responses: writing them, deleting them, and what is left of them then.
//!
//! **Invariant:** as in the file, a deleted response is here only while a living one continues it.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_core::{Alongside, StoreError, StoredEvent, StoredItem, StoredResponse};
use serde_json::value::RawValue;

use super::records::{Kept, Records, ResponseRecord};
use crate::refusals::{self, LONGEST_CHAIN};

impl Records {
    /// A response that was not deleted.
    pub(super) fn living(&self, id: &str) -> Option<&ResponseRecord> {
        self.responses
            .get(id)
            .filter(|response| !response.is_deleted())
    }

    /// Writes a response and what goes along with it. `seq` counts what is written. Says whether the
    /// conversation was there that its items were to be added to.
    pub(super) fn put_response(
        &mut self,
        response: StoredResponse,
        alongside: Alongside,
        seq: &mut u64,
    ) -> Result<bool, StoreError> {
        let items: Vec<StoredItem> = match &alongside.append_to {
            Some(_) => response
                .input
                .iter()
                .chain(&response.output)
                .cloned()
                .collect(),
            None => Vec::new(),
        };
        let append_to = alongside.append_to.clone();
        self.put_record(response, alongside, seq)?;
        Ok(append_to.is_none_or(|conversation| self.append_items(&conversation, items, seq)))
    }

    fn put_record(
        &mut self,
        response: StoredResponse,
        alongside: Alongside,
        seq: &mut u64,
    ) -> Result<(), StoreError> {
        let id = response.id;
        let earlier = self.responses.get(&id);
        let moves = earlier.is_none_or(|earlier| earlier.previous != response.previous);
        if moves && let Some(previous) = &response.previous {
            self.refuse_circle(&id, previous)?;
        }
        let no_events = BTreeMap::new();
        let log = earlier.map_or(&no_events, |earlier| &earlier.events);
        // The last thing that can be refused.
        let events = new_events(&id, log, alongside.events)?;
        let earlier = self.responses.remove(&id);
        let mut items = Vec::new();
        let mut record = ResponseRecord {
            seq: next(seq),
            previous: response.previous,
            created_at: response.created_at,
            is_finished: response.is_finished,
            resource: Some(response.resource),
            items: Vec::new(),
            events: BTreeMap::new(),
            checkpoint: None,
            trace: None,
        };
        let mut earlier_previous = None;
        if let Some(earlier) = earlier {
            Self::hide(&mut self.visible, &earlier.items);
            record.seq = earlier.seq;
            record.events = earlier.events;
            record.checkpoint = earlier.checkpoint;
            record.trace = earlier.trace;
            items = earlier.items;
            earlier_previous = earlier.previous;
            if moves && let Some(previous) = &earlier_previous {
                self.release(previous);
            }
        }
        record.events.extend(events);
        record.checkpoint = alongside
            .checkpoint
            .or(record.checkpoint)
            .filter(|_| !record.is_finished);
        record.trace = alongside.trace.or(record.trace);
        put_items(&mut items, response.input, response.output, seq);
        Self::show(&mut self.visible, &items);
        record.items = items;
        if moves && let Some(previous) = &record.previous {
            *self.continuations.entry(previous.clone()).or_default() += 1;
        }
        self.responses.insert(id, record);
        if moves {
            self.prune(earlier_previous);
        }
        Ok(())
    }

    /// A response and what it continues, the oldest first.
    pub(super) fn chain(&self, id: &str) -> Result<Option<Vec<StoredResponse>>, StoreError> {
        if self.living(id).is_none() {
            return Ok(None);
        }
        let mut chain: Vec<_> = self
            .ancestry(id)
            .take(LONGEST_CHAIN as usize + 1)
            .map(|(id, response)| response.stored(id))
            .collect();
        refusals::check_length(id, chain.len())?;
        chain.reverse();
        Ok(Some(chain))
    }

    /// Deletes a response. How many records that took away or emptied, and how many bytes.
    pub(super) fn delete_response(&mut self, id: &str) -> Option<(usize, u64)> {
        let response = self
            .responses
            .get_mut(id)
            .filter(|response| !response.is_deleted())?;
        let before = response.bytes();
        Self::hide(&mut self.visible, &response.items);
        response.resource = None;
        response.events = BTreeMap::new();
        response.checkpoint = None;
        response.trace = None;
        if self.continuations.contains_key(id) {
            return Some((1, before - response.bytes()));
        }
        let left = response.bytes();
        let (pruned, freed) = self.prune(Some(id.to_owned()));
        Some((pruned, before - left + freed))
    }

    /// Removes a deleted response that nothing continues any more, then the one that it continued,
    /// and so on. How many, and how many bytes.
    fn prune(&mut self, id: Option<String>) -> (usize, u64) {
        let mut next = id;
        let (mut pruned, mut freed) = (0, 0);
        while let Some(id) = next.take() {
            let is_deleted = self
                .responses
                .get(&id)
                .is_some_and(ResponseRecord::is_deleted);
            if is_deleted
                && !self.continuations.contains_key(&id)
                && let Some(gone) = self.responses.remove(&id)
            {
                pruned += 1;
                freed += gone.bytes();
                if let Some(previous) = &gone.previous {
                    self.release(previous);
                }
                next = gone.previous;
            }
        }
        (pruned, freed)
    }

    /// One fewer continues this.
    fn release(&mut self, id: &str) {
        if let Some(count) = self.continuations.get_mut(id) {
            *count -= 1;
            if *count == 0 {
                self.continuations.remove(id);
            }
        }
    }

    fn refuse_circle(&self, id: &str, previous: &str) -> Result<(), StoreError> {
        let is_circle = previous == id
            || self.continuations.contains_key(id)
                && self
                    .ancestry(previous)
                    .any(|(_, response)| response.previous.as_deref() == Some(id));
        if is_circle {
            return Err(refusals::circle(id, previous));
        }
        Ok(())
    }

    /// A response, the one that it continues, and so on.
    fn ancestry<'a>(&'a self, id: &'a str) -> impl Iterator<Item = (&'a str, &'a ResponseRecord)> {
        let find = |id: &'a str| self.responses.get(id).map(|response| (id, response));
        std::iter::successors(find(id), move |(_, response)| {
            response.previous.as_deref().and_then(find)
        })
    }
}

impl ResponseRecord {
    /// Adds events to the log.
    pub(super) fn append_events(
        &mut self,
        id: &str,
        events: Vec<StoredEvent>,
    ) -> Result<(), StoreError> {
        let events = new_events(id, &self.events, events)?;
        self.events.extend(events);
        Ok(())
    }
}

/// The events by their numbers, if the log can take all of them: what is in it stays as it is.
fn new_events(
    id: &str,
    log: &BTreeMap<i64, Box<RawValue>>,
    events: Vec<StoredEvent>,
) -> Result<BTreeMap<i64, Box<RawValue>>, StoreError> {
    let mut new: BTreeMap<i64, Box<RawValue>> = BTreeMap::new();
    for event in events {
        let number = refusals::storable_number(event.sequence_number)?;
        match log.get(&number).or_else(|| new.get(&number)) {
            Some(there) if there.get() != event.json.get() => {
                return Err(refusals::other_event(id, event.sequence_number));
            }
            Some(_) => {}
            None => {
                new.insert(number, event.json);
            }
        }
    }
    Ok(new)
}

/// Puts these items in place of the earlier ones; those that stand unchanged at the beginning stay as
/// old as they are.
fn put_items(
    items: &mut Vec<Kept>,
    input: Vec<StoredItem>,
    output: Vec<StoredItem>,
    seq: &mut u64,
) {
    let wanted: Vec<(bool, StoredItem)> = input
        .into_iter()
        .map(|item| (false, item))
        .chain(output.into_iter().map(|item| (true, item)))
        .collect();
    let same = items
        .iter()
        .zip(&wanted)
        .take_while(|(kept, (is_output, item))| kept.is_same(*is_output, item))
        .count();
    items.truncate(same);
    items.extend(wanted.into_iter().skip(same).map(|(is_output, item)| Kept {
        seq: next(seq),
        is_output,
        item: Arc::new(item),
    }));
}

/// The next number.
pub(super) fn next(seq: &mut u64) -> u64 {
    *seq += 1;
    *seq
}
