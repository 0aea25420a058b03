//! The last request of a run without anything that looks like a tool call.
//!
//! A small model that reads calls in its conversation writes another one as text, also if it is offered no tools. For
//! such models the last request says the results in plain words and asks for the answer.

use std::collections::HashMap;

use haft_core::{CallOutput, ContentPart, Conversation, FunctionCall, Item, Message, Role};

/// What the last request of a run ends with.
const ANSWER_NOW: &str =
    "No tools are available any more. Answer the question with the results above.";

/// A conversation with the results of its calls as text, and a demand for the answer at its end.
pub(super) fn without_calls(conversation: &Conversation) -> Conversation {
    let mut items: Vec<Item> = Vec::new();
    let mut calls: HashMap<&str, &FunctionCall> = HashMap::new();
    let mut told: Vec<String> = Vec::new();
    for item in conversation.items() {
        match item {
            Item::FunctionCall(call) => {
                calls.insert(&call.call_id, call);
            }
            Item::FunctionCallOutput(output) => {
                let Some(call) = calls.get(output.call_id.as_str()) else {
                    continue;
                };
                let text = result(call, &output.output);
                // What was called twice with the same result is said once.
                if !told.contains(&text) {
                    say(&mut items, &text);
                    told.push(text);
                }
            }
            Item::Reasoning(_) => {}
            item => items.push(item.clone()),
        }
    }
    say(&mut items, ANSWER_NOW);
    items.into()
}

fn result(call: &FunctionCall, output: &CallOutput) -> String {
    let (name, arguments) = (&call.name, call.arguments.trim());
    let text = output.to_text();
    match arguments {
        "" | "{}" => format!("Result of {name}:\n{text}"),
        _ => format!("Result of {name} with {arguments}:\n{text}"),
    }
}

/// Adds a text of the user. Some chat templates refuse two messages of one role in a row, so it becomes part of the
/// last message if that is the user's.
fn say(items: &mut Vec<Item>, text: &str) {
    if let Some(Item::Message(Message {
        role: Role::User,
        content,
        ..
    })) = items.last_mut()
    {
        match content.last_mut() {
            Some(ContentPart::InputText { text: said }) => {
                said.push_str("\n\n");
                said.push_str(text);
            }
            _ => content.push(ContentPart::InputText {
                text: text.to_owned(),
            }),
        }
        return;
    }
    items.push(Item::user(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_plain_text_and_said_once() {
        let call = |id: &str| Item::function_call(id, "read", r#"{"path":"a"}"#);
        let conversation: Conversation = vec![
            Item::user("What is in a?"),
            call("1"),
            Item::function_call_output("1", "apples"),
            call("2"),
            Item::function_call_output("2", "apples"),
            Item::assistant("Hm."),
        ]
        .into();
        let plain = without_calls(&conversation);
        let texts: Vec<_> = plain.items().map(Item::text).collect();
        assert_eq!(
            texts,
            [
                "What is in a?\n\nResult of read with {\"path\":\"a\"}:\napples",
                "Hm.",
                ANSWER_NOW,
            ]
        );
    }
}
