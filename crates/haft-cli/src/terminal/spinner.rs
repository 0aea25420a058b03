//! Signs of life while something takes long.

use std::future::Future;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

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
        self.show();
        let done = work.await;
        self.hide();
        done
    }

    fn show(&self) {
        self.0.set_draw_target(ProgressDrawTarget::stderr());
        self.0.enable_steady_tick(TICK);
    }

    fn hide(&self) {
        self.0.disable_steady_tick();
        self.0.finish_and_clear();
    }
}

/// The same for somebody who waits for several things at once and prints in between.
#[derive(Default)]
pub(crate) struct Vigil {
    /// What is waited for, and from when on that is worth a line.
    waits: Option<(Instant, String)>,
    shown: Option<Spinner>,
}

impl Vigil {
    /// From now on this is waited for.
    pub(crate) fn begin(&mut self, words: impl Into<String>) {
        self.end();
        self.waits = Some((Instant::now() + PATIENCE, words.into()));
    }

    /// Nothing is waited for any more, and nothing of it is left on the screen.
    pub(crate) fn end(&mut self) {
        self.waits = None;
        if let Some(spinner) = self.shown.take() {
            spinner.hide();
        }
    }

    /// Done when it is time to [`show`](Self::show) something; never, if it is shown or nothing is
    /// waited for.
    pub(crate) async fn due(&self) {
        match &self.waits {
            Some((at, _)) if self.shown.is_none() => tokio::time::sleep_until(*at).await,
            _ => std::future::pending().await,
        }
    }

    /// Shows that something is waited for.
    pub(crate) fn show(&mut self) {
        if let Some((_, words)) = &self.waits {
            let spinner = Spinner::new(words);
            spinner.show();
            self.shown = Some(spinner);
        }
    }
}

impl Drop for Vigil {
    fn drop(&mut self) {
        self.end();
    }
}
