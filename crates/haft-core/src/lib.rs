//! placeholder
mod call;
mod repair;
pub use call::{FinishReason, RawArguments};
pub use repair::{RepairClass, RepairEvent, RepairKind};
