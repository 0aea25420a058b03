//! Leaving out the oldest items of a context that is too long (`open-responses.md` §1.2).

use haft_core::{Conversation, Item, Role};

/// The conversation without the older half of what may go: messages of the host stay, the latest
/// turn stays, and calls stay with their outputs. None if nothing may go.
pub(crate) fn shorter(conversation: &Conversation) -> Option<Conversation> {
    let items: Vec<&Item> = conversation.items().collect();
    let latest = items.iter().rposition(|item| is_from(item, Role::User))?;
    let turns = turn_starts(&items[..latest]);
    // Whole turns go, so that no call loses its output.
    let cut = match turns.len() {
        0 => return None,
        1 => latest,
        count => *turns.get(count.div_ceil(2)).unwrap_or(&latest),
    };
    let is_host = |item: &Item| is_from(item, Role::System) || is_from(item, Role::Developer);
    let kept = items[..cut].iter().filter(|item| is_host(item));
    let kept: Vec<Item> = kept
        .chain(&items[cut..])
        .map(|&item| item.clone())
        .collect();
    (kept.len() < items.len()).then(|| kept.into())
}

/// Where turns of the user begin.
fn turn_starts(items: &[&Item]) -> Vec<usize> {
    let starts = items.iter().enumerate();
    starts
        .filter(|(_, item)| is_from(item, Role::User))
        .map(|(at, _)| at)
        .collect()
}

fn is_from(item: &Item, role: Role) -> bool {
    matches!(item, Item::Message(message) if message.role == role)
}
