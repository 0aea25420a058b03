//! Requests as they arrived, taken apart without touching a byte.

use std::collections::HashMap;

use haft_models::testing::{Protocol, ReceivedRequest, ScriptedServer};
use serde_json::value::RawValue;

/// What tells Anthropic how far to cache. It is no part of what is cached, and moves on with every turn.
pub const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// The parts of a request that a provider's prompt is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// The list of tools; empty if there is none.
    pub tools: String,
    /// What the host says before everything else, where it is no message.
    pub instructions: String,
    /// The conversation.
    pub conversation: String,
}

impl Sent {
    pub fn of(request: &ReceivedRequest) -> Self {
        let members: HashMap<String, &RawValue> = serde_json::from_slice(&request.raw).unwrap();
        let member = |name: &str| members.get(name).map_or("", |raw| raw.get()).to_owned();
        let (instructions, conversation) = match request.protocol {
            Protocol::Responses => ("instructions", "input"),
            Protocol::Messages => ("system", "messages"),
            Protocol::ChatCompletions | Protocol::Ollama => ("", "messages"),
        };
        Self {
            tools: member("tools"),
            instructions: member(instructions),
            conversation: member(conversation),
        }
    }

    /// The same without the marks of the cache.
    pub fn unmarked(mut self) -> Self {
        for part in [
            &mut self.tools,
            &mut self.instructions,
            &mut self.conversation,
        ] {
            *part = part.replace(MARK, "");
        }
        self
    }
}

/// All requests of a server, in order.
pub fn all(server: &ScriptedServer) -> Vec<Sent> {
    server.received().iter().map(Sent::of).collect()
}

/// A JSON list begins with another one, up to its closing bracket.
pub fn goes_on(later: &str, earlier: &str) -> bool {
    let open = earlier.strip_suffix(']').unwrap_or(earlier);
    match later.strip_prefix(open) {
        Some(rest) => rest == "]" || rest.starts_with(',') || (open == "[" && rest.ends_with(']')),
        None => false,
    }
}

/// Every conversation goes on with the one before, and the host's words stay.
#[track_caller]
pub fn assert_grows(requests: &[Sent]) {
    for (turn, pair) in requests.windows(2).enumerate() {
        let [earlier, later] = pair else {
            unreachable!()
        };
        assert!(
            goes_on(&later.conversation, &earlier.conversation),
            "turn {turn}\n{}\n{}",
            earlier.conversation,
            later.conversation
        );
        assert_eq!(later.instructions, earlier.instructions, "turn {turn}");
        assert!(later.conversation.len() > earlier.conversation.len());
    }
}
