//! What a client carries for the gateway between two rounds of one request.
//!
//! The client cannot change it, cannot use it for another request, for other arguments or as somebody
//! else, and cannot keep it for longer than a quarter of an hour. It is signed, not secret: what a
//! server wants to hide in its state, it hides itself.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haft_core::canonical_json;
use ring::rand::{SecureRandom as _, SystemRandom};
use rmcp::model::{RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::caller::Caller;

/// How long all rounds of one request may take together.
pub(super) const ALL_ROUNDS: Duration = Duration::from_mins(15);
/// How often one request may ask.
pub(super) const MAX_ROUNDS: u32 = 10;
/// How many questions it may ask at once.
pub(super) const MAX_QUESTIONS: usize = 8;

/// What is known of earlier rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// How many rounds there were.
    pub(super) rounds: u32,
    /// When they must be over, in seconds since 1970.
    pub(super) until: u64,
    /// The backend's own state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) backend: Option<String>,
    /// The call that waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parked: Option<String>,
}

impl State {
    /// Before the first round.
    pub(super) fn first() -> Self {
        Self {
            rounds: 0,
            until: now().saturating_add(ALL_ROUNDS.as_secs()),
            backend: None,
            parked: None,
        }
    }

    /// How much time is left for all rounds.
    pub(super) fn left(&self) -> Duration {
        Duration::from_secs(self.until.saturating_sub(now()))
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// The request that a state belongs to.
pub(super) struct Bound(String);

impl Bound {
    pub(super) fn to(
        caller: &Caller,
        subset: Option<&str>,
        method: &str,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Self {
        let all = json!([caller.principal(), subset, method, name, arguments]);
        Self(canonical_json(&all))
    }
}

/// Seals states and opens them.
#[derive(Debug)]
pub(super) struct Sealer(RequestStateCodec);

impl Sealer {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        Self(RequestStateCodec::new_unchecked(key.as_slice()))
    }

    pub(super) fn seal(&self, state: &State, bound: &Bound) -> Option<String> {
        let options = SealOptions::new()
            .associated_data(bound.0.as_bytes())
            .ttl(state.left());
        self.0.seal_json_with(state, &options).ok()
    }

    /// The state, if it is whole, of this request and not too old. Why not is nobody's business.
    pub(super) fn open(&self, sealed: &str, bound: &Bound) -> Option<State> {
        let opened = self.0.open_json_with(sealed, bound.0.as_bytes());
        opened
            .inspect_err(|error| tracing::debug!(%error, "a request state was refused"))
            .ok()
    }
}

/// Random bytes from the system.
pub(super) fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(caller: &str, name: &str, path: &str) -> Bound {
        let arguments = json!({"path": path, "n": 1});
        let arguments = arguments.as_object().unwrap();
        Bound::to(&Caller::new(caller), None, "tools/call", name, arguments)
    }

    #[test]
    fn a_state_opens_only_for_its_caller_tool_and_arguments() {
        let sealer = Sealer::new(&[7; 32]);
        let state = State {
            backend: Some("step 2".into()),
            ..State::first()
        };
        let carried = sealer.seal(&state, &bound("a", "t", "x")).unwrap();
        assert_eq!(sealer.open(&carried, &bound("a", "t", "x")), Some(state));
        for other in [
            bound("b", "t", "x"),
            bound("a", "u", "x"),
            bound("a", "t", "y"),
        ] {
            assert_eq!(sealer.open(&carried, &other), None);
        }
        let same = bound("a", "t", "x");
        assert_eq!(sealer.open(&format!("{carried}x"), &same), None);
        assert_eq!(sealer.open("", &same), None);
        assert_eq!(Sealer::new(&[8; 32]).open(&carried, &same), None);
    }

    #[test]
    fn the_order_of_arguments_does_not_matter() {
        let sealer = Sealer::new(&[7; 32]);
        let to = |arguments: Value| {
            let arguments = arguments.as_object().unwrap();
            Bound::to(&Caller::local(), Some("s"), "m", "t", arguments)
        };
        let carried = sealer.seal(&State::first(), &to(json!({"a": 1, "b": 2})));
        let opened = sealer.open(&carried.unwrap(), &to(json!({"b": 2, "a": 1})));
        assert!(opened.is_some());
    }

    #[test]
    fn an_old_state_is_refused() {
        let sealer = Sealer::new(&[7; 32]);
        let state = State {
            until: 1,
            ..State::first()
        };
        let carried = sealer.seal(&state, &bound("a", "t", "x")).unwrap();
        // Its time is up at once, to the millisecond.
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(sealer.open(&carried, &bound("a", "t", "x")), None);
    }
}
