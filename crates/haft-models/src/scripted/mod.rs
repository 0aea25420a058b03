//! A model that answers from a script.
//!
//! What comes in: a [`Script`], steps written in Rust or one JSON object per line. Each [`Step`] says
//! what must have been received ([`Expect`]), what to answer, in which pieces, and with which
//! [`Fault`]. What goes out: [`ScriptedModel`], a [`Model`](haft_core::Model) without a network; with
//! the feature `testing` the same script also plays as a server on loopback.
//!
//! A request that the script does not foresee is an error for the caller and is remembered, so that
//! [`ScriptedModel::assert_finished`] fails the test even if the caller got over it. The same script
//! and the same requests give the same answers, ids included. A script must never answer by chance
//! or by the time of day.

mod dsl;
mod expect;
mod fault;
mod model;
mod pieces;
mod playback;
mod player;
mod script;
mod step;
mod step_usage;
mod view;

pub use dsl::{
    call, calls, fail, fault, offers, output_contains, output_says, refuse, say, sum_up, think,
    user_contains, user_says,
};
pub use expect::{Expect, ExpectedOutput, NamesMatch, TextMatch};
pub use fault::Fault;
pub use model::ScriptedModel;
pub use pieces::{Chunks, Pieces, Repeat};
pub use player::ScriptFailure;
pub use script::{Script, ScriptError};
pub use step::{ScriptedCall, Step};
pub use step_usage::StepUsage;
pub use view::{OutputView, RequestView};

#[cfg(feature = "testing")]
pub(crate) use player::{Answer, Player};
