//! Language models behind their wire protocols.

pub mod offline;
pub mod scripted;
pub mod testing;

pub use offline::OfflineModel;
pub use scripted::ScriptedModel;
