//! A conversation cut into what protocols with roles want: what the model said in one go, followed
//! by all that came of it.

use std::collections::HashSet;

use haft_core::{Conversation, Entry, Item, RenderKey, Role};

/// One step of a conversation.
#[derive(Debug)]
pub(crate) enum Step<'c> {
    /// A message of anybody but the model.
    Said(&'c Entry),
    /// What the model thought, said and called, and the outputs in the order of the calls.
    Turn(Turn<'c>),
}

/// What the model did in one go.
#[derive(Debug, Default)]
pub(crate) struct Turn<'c> {
    /// Thoughts, messages and calls, in order.
    pub(crate) items: Vec<&'c Entry>,
    /// One for each call, in the order of the calls.
    pub(crate) outputs: Vec<&'c Entry>,
}

/// The steps of a conversation. Outputs stand right behind their calls, wherever they were; those
/// without a call are left out, as every server refuses them. So are items that only other
/// protocols know.
pub(crate) fn steps(conversation: &Conversation) -> Vec<Step<'_>> {
    let entries = conversation.entries();
    let mut steps = Vec::new();
    let mut taken = HashSet::new();
    let mut at = 0;
    while at < entries.len() {
        let entry = &*entries[at];
        if is_models(entry.item()) {
            let start = at;
            while at < entries.len() && is_models(entries[at].item()) {
                at += 1;
            }
            let items: Vec<_> = entries[start..at].iter().map(|entry| &**entry).collect();
            let outputs = outputs_of(&items, conversation, at, &mut taken);
            steps.push(Step::Turn(Turn { items, outputs }));
            continue;
        }
        match entry.item() {
            Item::Message(_) => steps.push(Step::Said(entry)),
            Item::FunctionCallOutput(_) if taken.contains(&at) => {}
            _ => leave_out(entry),
        }
        at += 1;
    }
    steps
}

fn is_models(item: &Item) -> bool {
    match item {
        Item::Message(message) => message.role == Role::Assistant,
        Item::FunctionCall(_) | Item::Reasoning(_) => true,
        _ => false,
    }
}

/// The outputs of a turn's calls. They follow it; where they do not, they are looked for.
fn outputs_of<'c>(
    items: &[&'c Entry],
    conversation: &'c Conversation,
    from: usize,
    taken: &mut HashSet<usize>,
) -> Vec<&'c Entry> {
    let mut open: Vec<_> = items
        .iter()
        .filter_map(|entry| match entry.item() {
            Item::FunctionCall(call) => Some((call.call_id.as_str(), None)),
            _ => None,
        })
        .collect();
    let mut missing = open.len();
    for (at, entry) in conversation.entries().iter().enumerate().skip(from) {
        if missing == 0 {
            break;
        }
        let Item::FunctionCallOutput(output) = entry.item() else {
            continue;
        };
        let call = open
            .iter_mut()
            .find(|(id, found)| found.is_none() && *id == output.call_id);
        if let Some((_, found)) = call
            && taken.insert(at)
        {
            *found = Some(&**entry);
            missing -= 1;
        }
    }
    open.into_iter().filter_map(|(_, output)| output).collect()
}

/// Leaves an item out, and says so once.
pub(crate) fn leave_out(entry: &Entry) {
    entry.rendered().get(RenderKey::new("left out"), || {
        let kind = entry.item().kind();
        tracing::warn!(
            kind,
            "an item is left out: this provider has no place for it"
        );
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(items: Vec<Item>) -> Vec<String> {
        let name = |entry: &&Entry| match entry.item() {
            Item::FunctionCall(call) => format!("call {}", call.call_id),
            Item::FunctionCallOutput(output) => format!("output {}", output.call_id),
            other => format!("{} {}", other.kind(), other.text()),
        };
        let conversation = Conversation::from(items);
        let names = |entries: &[&Entry]| entries.iter().map(name).collect::<Vec<_>>().join(", ");
        steps(&conversation)
            .iter()
            .map(|step| match step {
                Step::Said(entry) => name(entry),
                Step::Turn(turn) => format!("{} | {}", names(&turn.items), names(&turn.outputs)),
            })
            .collect()
    }

    fn call(id: &str) -> Item {
        Item::function_call(id, "ping", "{}")
    }

    fn output(id: &str) -> Item {
        Item::function_call_output(id, "pong")
    }

    #[test]
    fn a_turn_is_one_step_with_its_outputs_in_call_order() {
        assert_eq!(
            shape(vec![
                Item::user("hi"),
                Item::assistant("wait"),
                call("a"),
                call("b"),
                output("b"),
                output("a"),
                call("c"),
                output("c"),
                Item::assistant("done"),
            ]),
            [
                "message hi",
                "message wait, call a, call b | output a, output b",
                "call c | output c",
                "message done | ",
            ]
        );
    }

    #[test]
    fn outputs_follow_their_calls_wherever_they_were() {
        assert_eq!(
            shape(vec![
                call("a"),
                call("b"),
                output("a"),
                Item::user("quick"),
                output("b")
            ]),
            ["call a, call b | output a, output b", "message quick"]
        );
    }

    #[test]
    fn repeated_ids_are_answered_in_turn_and_orphans_left_out() {
        assert_eq!(
            shape(vec![
                call("a"),
                output("a"),
                call("a"),
                output("a"),
                output("z")
            ]),
            ["call a | output a", "call a | output a"]
        );
    }
}
