//! The words with which a script is written in Rust.

use haft_core::RawArguments;

use super::expect::Expect;
use super::fault::Fault;
use super::step::{ScriptedCall, Step};

/// A step that says this.
pub fn say(text: impl Into<String>) -> Step {
    Step::default().say(text)
}

/// A step that calls a tool.
pub fn call(name: impl Into<String>, arguments: impl Into<RawArguments>) -> Step {
    Step::default().call(name, arguments)
}

/// A step that makes several calls at once.
pub fn calls(calls: impl IntoIterator<Item = ScriptedCall>) -> Step {
    Step {
        calls: calls.into_iter().collect(),
        ..Step::default()
    }
}

/// A step that thinks this, and then goes on.
pub fn think(text: impl Into<String>) -> Step {
    Step::default().think(text)
}

/// A step that sums its thoughts up like this, and then goes on.
pub fn sum_up(text: impl Into<String>) -> Step {
    Step::default().sum_up(text)
}

/// A step that declines in these words.
pub fn refuse(text: impl Into<String>) -> Step {
    Step::default().refuse(text)
}

/// A step that is an HTTP error with this status.
pub fn fail(status: u16) -> Step {
    Step::default().fault(Fault::status(status))
}

/// A step that goes wrong like this.
pub fn fault(fault: Fault) -> Step {
    Step::default().fault(fault)
}

/// Expects that the user's last message is this.
pub fn user_says(text: impl Into<String>) -> Expect {
    Expect::default().user_says(text)
}

/// Expects that the user's last message has this in it.
pub fn user_contains(text: impl Into<String>) -> Expect {
    Expect::default().user_contains(text)
}

/// Expects that these tools are offered, in this order, and no others.
pub fn offers<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Expect {
    Expect::default().offers(names)
}

/// Expects that the first output of the latest round is this.
pub fn output_says(text: impl Into<String>) -> Expect {
    Expect::default().output_says(text)
}

/// Expects that the first output of the latest round has this in it.
pub fn output_contains(text: impl Into<String>) -> Expect {
    Expect::default().output_contains(text)
}
