//! What a child says beside the protocol: read at once, kept a little, never understood.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinHandle;

use crate::text::visible;

/// How much is kept.
const KEPT_BYTES: usize = 64 * 1024;

/// How much of it an error shows: lines, and bytes.
const SHOWN_LINES: usize = 10;
const SHOWN_BYTES: usize = 2 * 1024;

/// The last that a child wrote to its standard error.
#[derive(Debug)]
pub(super) struct LastWords {
    kept: Arc<Mutex<VecDeque<u8>>>,
    reader: JoinHandle<()>,
}

impl LastWords {
    pub(super) fn of(mut pipe: impl AsyncRead + Send + Unpin + 'static) -> Self {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let ring = Arc::clone(&kept);
        let reader = tokio::spawn(async move {
            let mut buffer = vec![0; 8 * 1024];
            while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
                let mut ring = ring.lock().unwrap_or_else(PoisonError::into_inner);
                ring.extend(&buffer[..count]);
                let excess = ring.len().saturating_sub(KEPT_BYTES);
                ring.drain(..excess);
            }
        });
        Self { kept, reader }
    }

    /// Waits until nothing more can come.
    pub(super) async fn finished(&mut self) {
        if !self.reader.is_finished() {
            // A reader that panicked is finished too.
            let _ = (&mut self.reader).await;
        }
    }

    /// The last lines.
    pub(super) fn shown(&self) -> String {
        let bytes: Vec<u8> = {
            let ring = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let from = ring.len().saturating_sub(SHOWN_BYTES);
            ring.range(from..).copied().collect()
        };
        let text = visible(&String::from_utf8_lossy(&bytes));
        let lines: Vec<&str> = text.trim().lines().collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
    }
}

impl Drop for LastWords {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_is_read_and_only_its_end_is_kept() {
        let mut flood = vec![b'x'; 1024 * 1024];
        flood.extend_from_slice(b"\nthe \x1b[31mend\n");
        let mut words = LastWords::of(std::io::Cursor::new(flood));
        words.finished().await;
        words.finished().await;
        assert_eq!(words.kept.lock().unwrap().len(), KEPT_BYTES);
        let shown = words.shown();
        assert!(shown.ends_with("\nthe [31mend"), "{shown}");
        assert!(shown.len() <= SHOWN_BYTES);
    }
}
