//! Language models behind their wire protocols.

pub mod scripted;
pub mod testing;

pub use scripted::ScriptedModel;
