//! What requests to a model cost.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// Tokens, as the provider counts them; zero where it says nothing.
///
/// ```
/// use haft_core::Usage;
/// let one = Usage { input_tokens: 10, output_tokens: 5, requests: 1, ..Usage::default() };
/// assert_eq!((one + one).total_tokens(), 30);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// All tokens of the request, cached ones included.
    pub input_tokens: u64,
    /// Those of them that came from the provider's cache.
    pub cached_input_tokens: u64,
    /// Those of them that were written to it.
    pub cache_write_tokens: u64,
    /// All tokens that the model wrote, reasoning included.
    pub output_tokens: u64,
    /// Those of them that it thought with.
    pub reasoning_tokens: u64,
    /// How many requests this is the sum of.
    pub requests: u64,
}

impl Usage {
    /// Input and output together.
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_input_tokens: self
                .cached_input_tokens
                .saturating_add(other.cached_input_tokens),
            cache_write_tokens: self
                .cache_write_tokens
                .saturating_add(other.cache_write_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            requests: self.requests.saturating_add(other.requests),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
