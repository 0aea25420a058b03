//! What haft writes into its log while these tests run.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

static WRITTEN: OnceLock<Mutex<Vec<u8>>> = OnceLock::new();

struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        written().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        Self
    }
}

fn written() -> MutexGuard<'static, Vec<u8>> {
    let written = WRITTEN.get_or_init(Mutex::default);
    written.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes everything down from now on, however unimportant.
pub(crate) fn start() {
    // Another test of the same process may have done it.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new("haft=trace"))
        .with_writer(Log)
        .with_ansi(false)
        .try_init();
}

/// Everything so far.
pub(crate) fn text() -> String {
    String::from_utf8_lossy(&written()).into_owned()
}
