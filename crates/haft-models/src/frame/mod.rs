//! From bytes to frames: where one message of a streamed answer ends and the next begins.
//!
//! What comes in: bytes as the network cuts them. What goes out: whole frames, the same for every
//! cutting. A frame has a limit; what is longer is an error, and the parser stays with that error.
//! Nothing here knows what a frame says.

mod lines;
mod sse;

pub use lines::Lines;
pub use sse::{SseEvent, SseParser};

/// How long one frame may be, in bytes.
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

/// A stream that cannot be cut into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A frame that does not end in time.
    #[error("one event of the stream is longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
}

/// A parser that is fed as bytes come.
pub trait Frames: Send + 'static {
    /// What it finds.
    type Frame: Send;

    /// Takes the next bytes in.
    fn feed(&mut self, bytes: &[u8]);

    /// The next whole frame, if there is one by now.
    fn next_frame(&mut self) -> Option<Result<Self::Frame, FrameError>>;

    /// What was left when the stream ended; to be asked for once, after the last frame.
    fn rest(&mut self) -> Option<Result<Self::Frame, FrameError>>;
}
