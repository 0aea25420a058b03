//! What a running call tells those who watch.

use serde::{Deserialize, Serialize};

/// The longest piece of output that is shown at once, in bytes.
pub const MAX_CHUNK_BYTES: usize = 16 * 1024;

/// How far a call is, or a piece of what it writes.
///
/// ```
/// use haft_core::ToolProgress;
/// let progress = ToolProgress::at(3.0).of(10.0).saying("third file");
/// assert_eq!(progress.total, Some(10.0));
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolProgress {
    /// How far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// Of how much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A piece of output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<String>,
}

impl ToolProgress {
    /// So far.
    pub fn at(progress: f64) -> Self {
        Self {
            progress: Some(progress),
            ..Self::default()
        }
    }

    /// A piece of output; what is longer than [`MAX_CHUNK_BYTES`] is cut.
    pub fn chunk(text: impl Into<String>) -> Self {
        let mut text = text.into();
        text.truncate(text.floor_char_boundary(MAX_CHUNK_BYTES));
        Self {
            chunk: Some(text),
            ..Self::default()
        }
    }

    /// Of how much.
    #[must_use]
    pub fn of(mut self, total: f64) -> Self {
        self.total = Some(total);
        self
    }

    /// In words.
    #[must_use]
    pub fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// This and a later one as one: the later figures, all the output as far as it fits.
    #[must_use]
    pub fn merged(mut self, later: Self) -> Self {
        self.progress = later.progress.or(self.progress);
        self.total = later.total.or(self.total);
        self.message = later.message.or(self.message);
        if let Some(chunk) = later.chunk {
            let so_far = self.chunk.get_or_insert_default();
            let room = MAX_CHUNK_BYTES.saturating_sub(so_far.len());
            so_far.push_str(&chunk[..chunk.floor_char_boundary(room)]);
        }
        self
    }
}

/// Whoever watches running calls.
pub trait ProgressSink: Send + Sync + 'static {
    /// Hears of one call's progress. It must not block.
    fn report(&self, call_id: &str, progress: ToolProgress);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_the_later_figures_and_all_the_output() {
        let merged = ToolProgress::at(1.0)
            .of(9.0)
            .merged(ToolProgress::chunk("a"))
            .merged(ToolProgress::chunk("b"))
            .merged(ToolProgress::at(2.0));
        let expected = ToolProgress {
            chunk: Some("ab".into()),
            ..ToolProgress::at(2.0).of(9.0)
        };
        assert_eq!(merged, expected);
    }

    #[test]
    fn a_chunk_is_bounded_on_a_character() {
        let chunk = ToolProgress::chunk("é".repeat(MAX_CHUNK_BYTES))
            .chunk
            .unwrap();
        assert_eq!(chunk.len(), MAX_CHUNK_BYTES);
        let full = ToolProgress::chunk(chunk).merged(ToolProgress::chunk("x"));
        assert_eq!(full.chunk.unwrap().len(), MAX_CHUNK_BYTES);
    }
}
