//! Bytes that are made once and shared from then on.

use std::sync::{Arc, Mutex, PoisonError};

use haft_core::ViewFormat;

/// What something looks like in each format, rendered when first asked for.
#[derive(Default)]
pub(crate) struct Renderings(Mutex<Vec<(ViewFormat, Arc<str>)>>);

impl Renderings {
    /// The text in `format`; `render` runs at most once per format.
    pub(crate) fn get(&self, format: ViewFormat, render: impl FnOnce() -> String) -> Arc<str> {
        // A panic in `render` leaves the list as it was.
        let mut rendered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = rendered.iter().find(|(known, _)| *known == format) {
            return Arc::clone(text);
        }
        let text: Arc<str> = render().into();
        rendered.push((format, Arc::clone(&text)));
        text
    }
}
