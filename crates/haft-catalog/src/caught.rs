//! Foreign code must not take the catalogue down with it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs plugged-in code; its panic becomes a text.
///
/// Whatever the code left half-done is its own: nothing of ours is behind the borrow.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| panic_text(&*panic))
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".to_owned()
    }
}
