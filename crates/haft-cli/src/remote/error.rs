//! What went wrong with a server, in words that say what to do.

use std::fmt;

use haft::models::frame::FrameError;
use haft::{ModelError, ModelErrorKind};

use super::address::{Address, Origin};
use super::path::NoStep;
use crate::failure::Failure;
use crate::text::{one_line, spoken};

/// How much of what a server says is shown.
const SHOWN_CHARS: usize = 500;

/// A question to a server that was not answered.
#[derive(Debug, Clone)]
pub(crate) struct RemoteError {
    /// The HTTP status, if it came to that.
    pub(crate) status: Option<u16>,
    /// The API's code, if the server gave one.
    pub(crate) code: Option<String>,
    failure: Failure,
}

impl RemoteError {
    /// Whether the server gave this code of the API.
    pub(crate) fn has_code(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    pub(super) fn of(error: ModelError, address: &Address) -> Self {
        let failure = failure(&error, address);
        Self {
            status: error.status,
            code: error.code,
            failure,
        }
    }

    pub(super) fn of_path(NoStep(step): NoStep) -> Self {
        let shown = one_line(&step, SHOWN_CHARS);
        Self::plain(
            Failure::new(format!("`{shown}` is no id"))
                .remedy("copy it from `haft responses list`, such as `resp_…`"),
        )
    }

    pub(super) fn no_json(address: &Address) -> Self {
        let base = &address.base;
        Self::plain(
            Failure::new(format!("what answers at {base} does not speak JSON"))
                .remedy("is it a haft server? its address is in the first line of `haft serve`"),
        )
    }

    pub(super) fn no_stream(address: &Address) -> Self {
        let base = &address.base;
        Self::plain(Failure::new(format!(
            "the server at {base} does not stream its answers"
        )))
    }

    pub(super) fn broken_off(address: &Address) -> Self {
        let base = &address.base;
        Self::plain(
            Failure::new(format!("the answer of {base} broke off"))
                .remedy("the server may have been stopped: ask again"),
        )
    }

    /// A stream that came to its end without saying how the response ended.
    pub(crate) fn without_end() -> Self {
        Self::plain(Failure::new(
            "the server ended its answer without saying how it went",
        ))
    }

    pub(super) fn bad_frame(error: FrameError, address: &Address) -> Self {
        let base = &address.base;
        Self::plain(Failure::new(format!(
            "the answer of {base} cannot be read: {error}"
        )))
    }

    fn plain(failure: Failure) -> Self {
        Self {
            status: None,
            code: None,
            failure,
        }
    }
}

impl From<Failure> for RemoteError {
    fn from(failure: Failure) -> Self {
        Self::plain(failure)
    }
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(f)
    }
}

impl std::error::Error for RemoteError {}

fn failure(error: &ModelError, address: &Address) -> Failure {
    let base = &address.base;
    let said = one_line(&error.message, SHOWN_CHARS);
    match (error.status, error.kind) {
        (None, ModelErrorKind::Unreachable) => {
            let refused = said.contains("refused");
            let message = if refused {
                format!("nobody listens at {base}")
            } else {
                format!("the server cannot be reached: {said}")
            };
            Failure::new(message).remedy(match address.origin {
                Origin::Configuration => {
                    "start it with `haft serve` in another terminal, or name another one with \
                     `--server URL`"
                }
                Origin::Named => {
                    "check the address, and whether `haft serve` runs there; without `--server` and \
                     `HAFT_SERVER` it is this folder's own"
                }
            })
        }
        (None, ModelErrorKind::Timeout) => {
            Failure::new(format!("the server at {base} does not answer: {said}"))
                .remedy("try again, or look at what it logs")
        }
        (None, _) => Failure::new(format!("the answer of {base} cannot be used: {said}")),
        (Some(401), _) if address.has_key => {
            Failure::new(format!("the server at {base} refuses the key: {said}")).remedy(
                "put another one into `HAFT_API_KEY` or the file of `--key-file`; `haft keys add` \
                 on the server's machine makes one",
            )
        }
        (Some(401), _) => Failure::new(format!("the server at {base} wants a key: {said}")).remedy(
            "put it into `HAFT_API_KEY`, or name the file that holds it with `--key-file`; `haft \
             keys add` on the server's machine makes one",
        ),
        (Some(403), _) => Failure::new(format!("the key does not reach so far: {said}")),
        (Some(404), _) if error.code.is_none() => {
            Failure::new(format!("there is nothing of the kind at {base}: {said}"))
                .remedy("is it a haft server, and as new as this command?")
        }
        (Some(404), _) => Failure::new(said),
        (Some(status @ (429 | 503)), _) => {
            let wait = match error.retry_after {
                Some(wait) => format!("try again in {}", spoken(wait)),
                None => String::from("try again in a while"),
            };
            let what = if status == 429 {
                "the server limits requests"
            } else {
                "the server is not ready"
            };
            Failure::new(format!("{what}: {said}")).remedy(wait)
        }
        (Some(status @ 500..), _) => {
            Failure::new(format!("the server failed (HTTP {status}): {said}"))
                .remedy("look at what it logs")
        }
        (Some(status), _) => Failure::new(format!("the server refuses (HTTP {status}): {said}")),
    }
}
