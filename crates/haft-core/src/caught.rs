//! Foreign code must not take haft down with it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs plugged-in code (a validator, a scorer, a tool's constructor); its panic becomes a text.
///
/// Whatever the code left half-done is its own: hand it nothing of yours that must stay whole.
///
/// ```
/// assert_eq!(haft_core::caught(|| 7), Ok(7));
/// ```
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| panic_text(&*panic))
}

/// What a panic said.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".to_owned()
    }
}
