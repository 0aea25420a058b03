//! The items of an answer, and which of them a server speaks of.

use std::collections::HashMap;

use haft_core::{Item, ItemKind, ModelError, ModelEvent, ProviderOptions};
use serde_json::Value;
use serde_json::value::RawValue;

use super::seen::{Channel, Head, Seen, ids_of, is_call, kind_of, namespace_of, texts_of};
use crate::lift::{Events, remove_private};
use crate::wire::responses::read_item;

/// The items of an answer, in the order in which they began.
#[derive(Default)]
pub(super) struct Items {
    seen: Vec<Seen>,
    /// Item ids and call ids to places in `seen`.
    by_id: HashMap<String, usize>,
    /// The server's `output_index` to places in `seen`.
    by_place: HashMap<u64, usize>,
    /// The provider's own tools that the request declares, and what it calls tools that the provider
    /// has names of its own for.
    provider: ProviderOptions,
    /// Whether an item was ignored because the request declares no tool that it belongs to.
    has_ignored: bool,
}

impl Items {
    /// No items yet, of an answer to a request with these options.
    pub(super) fn new(provider: ProviderOptions) -> Self {
        Self {
            provider,
            ..Self::default()
        }
    }

    /// As much of an item as says what it is, calls under the names of the request.
    pub(super) fn head(&self, raw: &RawValue) -> Result<Head, ModelError> {
        let mut head = Head::of(raw)?;
        if let ItemKind::Provider { item } = &mut head.kind {
            remove_private(item);
        }
        if let ItemKind::FunctionCall { name, .. } = &mut head.kind
            && let Some(known) = self.provider.name_of(head.namespace.as_deref(), name)
        {
            known.clone_into(name);
        }
        Ok(head)
    }

    /// A whole item, calls under the names of the request.
    pub(super) fn read(&self, raw: &RawValue) -> Result<Item, ModelError> {
        let mut item = read_item(raw)?;
        match &mut item {
            Item::Message(message) => remove_private(&mut message.extra),
            Item::Reasoning(reasoning) => remove_private(&mut reasoning.extra),
            Item::FunctionCall(call) => remove_private(&mut call.extra),
            Item::Other(members) => remove_private(members),
            _ => {}
        }
        let namespace = namespace_of(&item).map(str::to_owned);
        if let Item::FunctionCall(call) = &mut item
            && let Some(known) = self.provider.name_of(namespace.as_deref(), &call.name)
        {
            known.clone_into(&mut call.name);
            call.extra.shift_remove("namespace");
        }
        Ok(item)
    }

    /// Whether an item belongs to a provider's own tool that the request does not declare. Such items
    /// are ignored: their calls may be the client's to execute, and it did not ask for them.
    pub(super) fn is_undeclared(&mut self, kind: &ItemKind) -> bool {
        let ItemKind::Provider { item } = kind else {
            return false;
        };
        let item_type = item.get("type").and_then(Value::as_str).unwrap_or_default();
        if self.provider.declares_item(item_type) {
            return false;
        }
        if !std::mem::replace(&mut self.has_ignored, true) {
            tracing::warn!(
                item_type,
                "ignoring an item of a hosted tool that the request does not declare"
            );
        }
        true
    }

    /// The open item that `item` is the end of.
    pub(super) fn open_one(&self, item: &Item, place: Option<u64>) -> Option<usize> {
        let kind = kind_of(item);
        ids_of(item)
            .find_map(|id| self.by_id.get(id))
            .or_else(|| place.and_then(|place| self.by_place.get(&place)))
            .copied()
            .filter(|&index| self.is_open(index, &kind))
            .or_else(|| self.last_open(&kind))
    }

    /// The open item that a piece belongs to: by its id, by its place, or the last one that takes
    /// such pieces.
    pub(super) fn taking(
        &self,
        channel: Channel,
        id: Option<&str>,
        place: Option<u64>,
    ) -> Option<usize> {
        let fits = |index: &usize| self.seen[*index].takes(channel);
        let by_id = id.and_then(|id| self.by_id.get(id).copied());
        let by_place = || place.and_then(|place| self.by_place.get(&place).copied());
        by_id
            .filter(fits)
            .or_else(|| by_place().filter(fits))
            .or_else(|| (0..self.seen.len()).rfind(fits))
    }

    /// The open item of one of the provider's own tools that an event is about.
    pub(super) fn of_provider(&self, id: Option<&str>, place: Option<u64>) -> Option<usize> {
        let by_id = id.and_then(|id| self.by_id.get(id));
        let found = by_id.or_else(|| place.and_then(|place| self.by_place.get(&place)));
        found.copied().filter(|&index| {
            let seen = &self.seen[index];
            !seen.is_done && matches!(seen.kind, ItemKind::Provider { .. })
        })
    }

    /// Whether nothing was said of the item in this way.
    pub(super) fn is_silent(&self, index: usize, channel: Channel) -> bool {
        self.seen[index].said(channel).is_empty()
    }

    /// Which part of the item's summary the server's `place` is.
    pub(super) fn summary_part(&mut self, index: usize, place: Option<u64>) -> usize {
        self.seen[index].summary_part(place)
    }

    /// Keeps how likely the tokens of a piece were.
    pub(super) fn weigh(&mut self, index: usize, logprobs: Vec<Value>) {
        self.seen[index].logprobs.extend(logprobs);
    }

    /// Adds the items of an answer that came in one piece.
    fn add_whole(&mut self, output: &[&RawValue], out: &mut Events) -> Result<(), ModelError> {
        for raw in output {
            let item = self.read(raw)?;
            let kind = kind_of(&item);
            if self.is_undeclared(&kind) {
                continue;
            }
            let id = item.id().map(str::to_owned);
            let index = self.open(kind, id, None, out);
            self.close(index, item, out);
        }
        Ok(())
    }

    /// Finishes what is open and adds what was never announced, by the final list of items.
    ///
    /// An item is known by its id. Some servers give new ids in the final list; where it has the
    /// same kinds in the same order as the stream had, the place decides.
    pub(super) fn settle(
        &mut self,
        output: &[&RawValue],
        out: &mut Events,
    ) -> Result<(), ModelError> {
        if self.seen.is_empty() {
            return self.add_whole(output, out);
        }
        let mut heads = Vec::new();
        let mut declared = Vec::new();
        for raw in output {
            let head = self.head(raw)?;
            if !self.is_undeclared(&head.kind) {
                heads.push(head);
                declared.push(raw);
            }
        }
        let streamed = self.seen.len();
        let is_aligned = heads.len() == streamed
            && heads
                .iter()
                .zip(&self.seen)
                .all(|(head, seen)| seen.is(&head.kind));
        let mut matched = vec![false; streamed];
        for (position, (head, raw)) in heads.into_iter().zip(declared).enumerate() {
            let at_place = |index: &usize| {
                let seen = &self.seen[*index];
                !matched[*index] && seen.is(&head.kind) && (is_aligned || !seen.is_named)
            };
            let known = head
                .ids()
                .find_map(|id| self.by_id.get(id).copied())
                .filter(|&index| {
                    index < streamed && !matched[index] && self.seen[index].is(&head.kind)
                })
                .or_else(|| {
                    Some(position)
                        .filter(|index| *index < streamed)
                        .filter(at_place)
                });
            if let Some(index) = known {
                matched[index] = true;
            }
            match known {
                Some(index) if self.seen[index].is_done => {}
                Some(index) => {
                    let item = self.read(raw)?;
                    self.close(index, item, out);
                }
                None => {
                    let index = self.open(head.kind, head.id, None, out);
                    let item = self.read(raw)?;
                    self.close(index, item, out);
                }
            }
        }
        for index in 0..streamed {
            if !self.seen[index].is_done {
                let item = self.seen[index].assembled();
                self.close(index, item, out);
            }
        }
        Ok(())
    }

    pub(super) fn open(
        &mut self,
        kind: ItemKind,
        id: Option<String>,
        place: Option<u64>,
        out: &mut Events,
    ) -> usize {
        let index = self.seen.len();
        if let Some(place) = place {
            self.by_place.insert(place, index);
        }
        if let Some(id) = &id {
            self.by_id.insert(id.clone(), index);
        }
        out.push_back(ModelEvent::ItemStarted {
            index,
            id: id.clone(),
            kind: kind.clone(),
        });
        self.seen.push(Seen::new(kind, id));
        index
    }

    /// Gives the item names to be found by.
    pub(super) fn name<'i>(&mut self, index: usize, ids: impl IntoIterator<Item = &'i str>) {
        for id in ids {
            self.seen[index].is_named = true;
            self.by_id.insert(id.to_owned(), index);
        }
    }

    pub(super) fn say(&mut self, index: usize, channel: Channel, text: &str, out: &mut Events) {
        if text.is_empty() {
            return;
        }
        self.seen[index].said_mut(channel).push_str(text);
        let text = text.to_owned();
        out.push_back(match channel {
            Channel::Text => ModelEvent::TextDelta { index, text },
            Channel::Refusal => ModelEvent::RefusalDelta { index, text },
            Channel::Summary(part) => ModelEvent::SummaryDelta { index, part, text },
            Channel::Thoughts => ModelEvent::ReasoningDelta { index, text },
            Channel::Arguments | Channel::Input => ModelEvent::ArgumentsDelta { index, text },
        });
    }

    /// Finishes an item. What the deltas did not say is said first, so that they add up to it.
    pub(super) fn close(&mut self, index: usize, mut item: Item, out: &mut Events) {
        self.name(index, ids_of(&item));
        self.seen[index].complete(&mut item);
        for (channel, text) in texts_of(&item) {
            if let Some(rest) = text.strip_prefix(self.seen[index].said(channel)) {
                self.say(index, channel, rest, out);
            }
        }
        self.seen[index].finish();
        out.push_back(ModelEvent::ItemDone { index, item });
    }

    fn is_open(&self, index: usize, kind: &ItemKind) -> bool {
        !self.seen[index].is_done && self.seen[index].is(kind)
    }

    fn last_open(&self, kind: &ItemKind) -> Option<usize> {
        // A call that bears another id or name is another call.
        let fits = |index: &usize| {
            self.is_open(*index, kind) && (self.seen[*index].kind == *kind || !is_call(kind))
        };
        (0..self.seen.len()).rfind(fits)
    }
}
