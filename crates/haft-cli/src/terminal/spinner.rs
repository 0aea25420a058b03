//! Signs of life while something takes long.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
pub(crate) struct Spinner {
    bar: ProgressBar,
    /// Whether nothing may move now.
    is_paused: Arc<AtomicBool>,
}

impl Spinner {
    /// One that says this, once it is shown.
    pub(crate) fn new(words: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        // The template is ours and right; if it were not, the usual one would do.
        if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        let spinner = Self {
            bar,
            is_paused: Arc::default(),
        };
        spinner.say(words);
        spinner
    }

    /// Says something else from now on.
    pub(crate) fn say(&self, words: &str) {
        self.bar.set_message(one_line(words, SHOWN_CHARS));
    }

    /// Waits for the work, and shows that it does if it takes long.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        let in_time = tokio::time::timeout(PATIENCE, &mut work).await;
        let done = if let Ok(done) = in_time {
            done
        } else {
            self.show();
            work.await
        };
        // Somebody who was asked may have brought it up.
        self.hide();
        done
    }

    /// Makes room for a question.
    pub(crate) fn pause(&self) {
        self.is_paused.store(true, Ordering::Release);
        self.hide();
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }

    /// The question is answered, and it is waited for the rest.
    pub(crate) fn resume(&self) {
        self.is_paused.store(false, Ordering::Release);
        self.bar.reset();
        self.show();
    }

    fn show(&self) {
        if self.is_paused.load(Ordering::Acquire) {
            return;
        }
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.enable_steady_tick(TICK);
    }

    fn hide(&self) {
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
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
