//! Where an assistant message of Chat Completions carries the model's reasoning.
//!
//! The protocol has no member for it, and servers differ: `DeepSeek`, Kimi, GLM, `SGLang` and llama.cpp
//! call it `reasoning_content`; vLLM since 0.12, Groq, Cerebras, `OpenRouter` and Ollama `reasoning`.
//! Some read only their own name and some reject every other, so reasoning goes back under the name
//! that the server itself uses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;

/// The member of assistant messages in which a chat server takes reasoning back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningField {
    /// As llama.cpp and most servers call it.
    ReasoningContent,
    /// As vLLM, Groq and Ollama call it.
    Reasoning,
    /// Reasoning is not sent back.
    None,
}

impl ReasoningField {
    /// The names of the members that are known.
    pub(crate) const MEMBERS: [&'static str; 2] = ["reasoning_content", "reasoning"];

    /// The member's name; none for [`None`](Self::None).
    pub(crate) fn member(self) -> Option<&'static str> {
        match self {
            Self::ReasoningContent => Some("reasoning_content"),
            Self::Reasoning => Some("reasoning"),
            Self::None => None,
        }
    }

    /// As it is written in a configuration file.
    pub(crate) fn as_str(self) -> &'static str {
        self.member().unwrap_or("none")
    }
}

/// Which member one request uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReasoningMember {
    /// What counts for every item: configured, or seen in the server's answers.
    known: Option<ReasoningField>,
    /// What counts for items that do not say which member they came in.
    fallback: ReasoningField,
}

impl Default for ReasoningMember {
    fn default() -> Self {
        Self {
            known: None,
            fallback: ReasoningField::ReasoningContent,
        }
    }
}

impl ReasoningMember {
    pub(crate) fn new(known: Option<ReasoningField>, fallback: ReasoningField) -> Self {
        Self { known, fallback }
    }

    /// Nothing is sent back.
    pub(crate) fn none() -> Self {
        Self::new(Some(ReasoningField::None), ReasoningField::None)
    }

    /// The member for reasoning that came in `given`.
    pub(crate) fn resolve(self, given: Option<&'static str>) -> Option<&'static str> {
        match self.known {
            Some(field) => field.member(),
            None => given.or(self.fallback.member()),
        }
    }
}

/// What a server's answers say about the member that it uses, shared by all requests to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObservedField(Arc<Observations>);

#[derive(Debug, Default)]
struct Observations {
    /// 0: no reasoning yet; else the place in [`ReasoningField::MEMBERS`] plus one.
    member: AtomicU8,
    is_rejected: AtomicBool,
}

impl ObservedField {
    /// The server gave reasoning in this member.
    pub(crate) fn record(&self, field: ReasoningField) {
        let number = match field {
            ReasoningField::ReasoningContent => 1,
            ReasoningField::Reasoning => 2,
            ReasoningField::None => return,
        };
        self.0.member.store(number, Ordering::Relaxed);
    }

    /// The server rejected a request for its reasoning, and took the same one without.
    pub(crate) fn reject(&self) {
        self.0.is_rejected.store(true, Ordering::Relaxed);
    }

    /// What is known by now.
    pub(crate) fn get(&self) -> Option<ReasoningField> {
        if self.0.is_rejected.load(Ordering::Relaxed) {
            return Some(ReasoningField::None);
        }
        match self.0.member.load(Ordering::Relaxed) {
            1 => Some(ReasoningField::ReasoningContent),
            2 => Some(ReasoningField::Reasoning),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_uses_counts_more_than_what_an_item_says() {
        let observed = ObservedField::default();
        let fallback = ReasoningField::ReasoningContent;
        let member = |given| ReasoningMember::new(observed.get(), fallback).resolve(given);
        assert_eq!(member(None), Some("reasoning_content"));
        assert_eq!(member(Some("reasoning")), Some("reasoning"));
        observed.record(ReasoningField::Reasoning);
        assert_eq!(member(Some("reasoning_content")), Some("reasoning"));
        observed.reject();
        observed.record(ReasoningField::Reasoning);
        assert_eq!(member(Some("reasoning")), None);
    }
}
