//! Signs of life while something takes long.

use std::future::Future;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::text::one_line;

/// What takes less is not worth a line that comes and goes.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often it moves.
const TICK: Duration = Duration::from_millis(100);

/// How much of what is said is shown.
const SHOWN_CHARS: usize = 100;

/// One line on standard error that moves while something is waited for; nothing where that is no
/// terminal. Clones are the same line.
#[derive(Clone)]
pub(crate) struct Spinner(ProgressBar);

impl Spinner {
    /// One that says this, once it is shown.
    pub(crate) fn new(words: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        // The template is ours and right; if it were not, the usual one would do.
        if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        let spinner = Self(bar);
        spinner.say(words);
        spinner
    }

    /// Says something else from now on.
    pub(crate) fn say(&self, words: &str) {
        self.0.set_message(one_line(words, SHOWN_CHARS));
    }

    /// Waits for the work, and shows that it does if it takes long.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        if let Ok(done) = tokio::time::timeout(PATIENCE, &mut work).await {
            return done;
        }
        self.0.set_draw_target(ProgressDrawTarget::stderr());
        self.0.enable_steady_tick(TICK);
        let done = work.await;
        self.0.finish_and_clear();
        done
    }
}
