//! A signal to stop.

use tokio_util::sync::CancellationToken;

/// Tells a run, and everything in it, to stop. Clones share one signal.
///
/// ```
/// use haft_core::Cancel;
/// let cancel = Cancel::new();
/// let tool = cancel.child();
/// cancel.cancel();
/// assert!(tool.is_cancelled());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancel(CancellationToken);

impl Cancel {
    /// A signal that nobody has given yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the signal. It cannot be taken back.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it was given.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until it is given.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }

    /// A signal that is given with this one, and can be given alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(self.0.child_token())
    }
}
