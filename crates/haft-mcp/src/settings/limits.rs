//! How long and how much.

use std::time::Duration;

use crate::error::TransportKind;

/// How long each thing may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From nothing to a connection that can be used.
    pub connect: Duration,
    /// The question for the era, before the older one is assumed. Servers that start slowly need
    /// the ten seconds, of which the last half second is never waited for.
    pub probe: Duration,
    /// The whole list of tools.
    pub list: Duration,
    /// A call without answer or progress.
    pub idle: Duration,
    /// A call in all.
    pub call: Duration,
    /// Telling the server that a call was given up.
    pub control: Duration,
    /// A child process that was asked to stop, before it is asked more firmly.
    pub stop: Duration,
    /// All questions of a call to a person together. A call's own time does not pass meanwhile.
    pub asking: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            probe: Duration::from_secs(10),
            list: Duration::from_mins(1),
            idle: Duration::from_mins(1),
            call: Duration::from_mins(10),
            control: Duration::from_secs(5),
            stop: Duration::from_secs(2),
            asking: Duration::from_mins(15),
        }
    }
}

/// How much of each thing there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// One message, event or body, in bytes.
    pub message_bytes: usize,
    /// All pages of a list together, in bytes.
    pub list_bytes: usize,
    /// Pages of a list.
    pub pages: usize,
    /// Tools.
    pub tools: usize,
    /// Text of a result that the model reads, in bytes.
    pub result_text_bytes: usize,
    /// Images of a result that the model sees, in bytes of their base64.
    pub result_image_bytes: usize,
    /// Calls at the same time; 8 for a child process and 16 otherwise if not set.
    pub concurrent_calls: Option<usize>,
    /// Rounds of a call in which the server asks for more.
    pub rounds: usize,
    /// Questions of one such round.
    pub inputs: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 16 * 1024 * 1024,
            list_bytes: 32 * 1024 * 1024,
            pages: 200,
            tools: 5_000,
            result_text_bytes: 100_000,
            result_image_bytes: 16 * 1024 * 1024,
            concurrent_calls: None,
            rounds: 10,
            inputs: 8,
        }
    }
}

impl Limits {
    pub(crate) fn concurrent_calls(&self, transport: TransportKind) -> usize {
        let usual = if transport == TransportKind::Stdio {
            8
        } else {
            16
        };
        self.concurrent_calls.unwrap_or(usual).max(1)
    }
}
