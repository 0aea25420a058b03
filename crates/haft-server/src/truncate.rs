//! Leaving out the oldest turns of a context that is too long (`open-responses.md` §1.2).
//!
//! What goes is always a beginning: whole turns, each from a message of the user to the next. The
//! messages of the host stay, the latest turn stays, and no call is parted from its output.

use std::collections::HashSet;

use haft_core::{Conversation, Item, Role};

use crate::estimate::tokens_of_item;
use crate::history::call_of;

/// The conversation without the older half of what may go. None if nothing may go.
pub(crate) fn shorter(conversation: &Conversation) -> Option<Conversation> {
    let items: Vec<&Item> = conversation.items().collect();
    let cuts = cuts(&items);
    let cut = *cuts.get(cuts.len() / 2)?;
    Some(without(&items, cut))
}

/// The conversation with as many of its latest turns as fit into so many tokens; none if it fits as
/// it is, or if nothing may go.
pub(crate) fn fitted(conversation: &Conversation, room: u64) -> Option<Conversation> {
    let items: Vec<&Item> = conversation.items().collect();
    let cuts = cuts(&items);
    let mut tokens: u64 = items.iter().copied().map(tokens_of_item).sum();
    if tokens <= room {
        return None;
    }
    let mut from = 0;
    for &cut in &cuts {
        let gone = items[from..cut].iter().filter(|item| !is_host(item));
        tokens -= gone.copied().map(tokens_of_item).sum::<u64>();
        from = cut;
        if tokens <= room {
            break;
        }
    }
    (from > 0).then(|| without(&items, from))
}

/// The items from a place on, and those of the host in front of it.
fn without(items: &[&Item], cut: usize) -> Conversation {
    let host = items[..cut].iter().filter(|item| is_host(item));
    let kept = host.chain(&items[cut..]).map(|&item| item.clone());
    kept.collect()
}

/// Where the context may begin, from the least that goes to the most.
fn cuts(items: &[&Item]) -> Vec<usize> {
    let mut cuts = Vec::new();
    // Calls in front of a place whose outputs are behind it.
    let mut open = HashSet::new();
    let mut has_something = false;
    let mut is_in_users_turn = false;
    for (at, item) in items.iter().enumerate() {
        let is_users = is_from(item, Role::User);
        if is_users && !is_in_users_turn && has_something && open.is_empty() {
            cuts.push(at);
        }
        match call_of(item) {
            Some((id, false)) => {
                open.insert(id);
            }
            Some((id, true)) => {
                open.remove(id);
            }
            None => {}
        }
        if !is_host(item) {
            has_something = true;
            is_in_users_turn = is_users;
        }
    }
    cuts
}

fn is_host(item: &Item) -> bool {
    is_from(item, Role::System) || is_from(item, Role::Developer)
}

fn is_from(item: &Item, role: Role) -> bool {
    matches!(item, Item::Message(message) if message.role == role)
}

#[cfg(test)]
#[path = "truncate_tests.rs"]
mod tests;
