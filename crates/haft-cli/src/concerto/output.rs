//! Standard output of a program: buffered, in order, and never kept back for long.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use haft_concerto::vm::Output;

use crate::text::printable;

/// So much is collected before it is written.
const FULL: usize = 64 * 1024;

/// So long what was printed waits for more, whatever the program does meanwhile.
const WAIT: Duration = Duration::from_millis(20);

/// What a program prints and logs. Clones write to the same place.
#[derive(Clone)]
pub(crate) struct Printer(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    /// Something was printed after nothing was.
    begun: Condvar,
    /// At a terminal lines are shown at once, and nothing in them steers it.
    is_terminal: bool,
    has_terminal_beside: bool,
    /// Called once, when nothing can be written any more.
    on_end: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct State {
    buffer: Vec<u8>,
    /// Why nothing can be written any more.
    failed: Option<io::Error>,
    has_thread: bool,
}

impl Printer {
    /// Standard output; `on_end` is called when nobody reads it any more.
    pub(crate) fn new(on_end: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            state: Mutex::default(),
            begun: Condvar::new(),
            is_terminal: io::stdout().is_terminal(),
            has_terminal_beside: io::stderr().is_terminal(),
            on_end: Box::new(on_end),
        }))
    }

    /// For a program.
    pub(crate) fn boxed(&self) -> Box<dyn Output> {
        Box::new(self.clone())
    }

    /// Writes what was printed, and goes on.
    pub(crate) fn flush(&self) {
        self.0.flush(&mut self.0.lock());
    }

    /// Writes what is left, and tells whether all of it could be written.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        self.0.flush(&mut state);
        match state.failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flush(&self, state: &mut State) {
        if state.buffer.is_empty() {
            return;
        }
        let mut out = io::stdout().lock();
        let written = out.write_all(&state.buffer).and_then(|()| out.flush());
        state.buffer.clear();
        if let Err(error) = written
            && state.failed.is_none()
        {
            state.failed = Some(error);
            (self.on_end)();
        }
    }

    /// Writes what was printed some moments ago, as long as the program runs.
    fn keep_writing(&self) {
        loop {
            let state = self.lock();
            let waited = self
                .begun
                .wait_while(state, |state| state.buffer.is_empty());
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            thread::sleep(WAIT);
            self.flush(&mut self.lock());
        }
    }
}

impl Output for Printer {
    fn print(&mut self, text: &str) {
        let inner = &self.0;
        let mut state = inner.lock();
        if state.failed.is_some() {
            return;
        }
        let was_empty = state.buffer.is_empty();
        if inner.is_terminal {
            // What models and tools wrote must not steer it.
            state.buffer.extend_from_slice(printable(text).as_bytes());
        } else {
            state.buffer.extend_from_slice(text.as_bytes());
        }
        if state.buffer.len() >= FULL || (inner.is_terminal && text.contains('\n')) {
            inner.flush(&mut state);
        } else if was_empty && !state.buffer.is_empty() {
            if !state.has_thread {
                let inner = Arc::clone(inner);
                let name = thread::Builder::new().name(String::from("output"));
                // Without it, the output comes later.
                state.has_thread = name.spawn(move || inner.keep_writing()).is_ok();
            }
            inner.begun.notify_one();
        }
    }

    fn log(&mut self, line: &str) {
        // What was printed before stands before it.
        self.0.flush(&mut self.0.lock());
        let line = if self.0.has_terminal_beside {
            printable(line)
        } else {
            line.to_owned()
        };
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// Whether whoever read has seen enough.
pub(crate) fn is_closed(error: &io::Error) -> bool {
    error.kind() == ErrorKind::BrokenPipe
}

/// Nothing of it is shown.
pub(crate) struct Silent;

impl Output for Silent {
    fn print(&mut self, _: &str) {}
    fn log(&mut self, _: &str) {}
}
