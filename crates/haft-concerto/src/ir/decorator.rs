//! What `@retry` and `@timeout` say (§8, §18): of models and of stages alike.

use std::time::Duration;

use serde_json::Value as Json;

use super::Decorator;

/// The shortest wait of `@retry`.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// `@retry(max: 3, backoff: "exponential")`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// How many attempts there are in all, at least one.
    pub max: u32,
    /// How the waits between them grow.
    pub backoff: Backoff,
}

/// How waits between attempts grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// There are none.
    None,
    /// By the same time each.
    Linear,
    /// To twice the time each.
    Exponential,
}

impl Backoff {
    /// The one of this word, else the usual one.
    pub fn of(word: Option<&str>, usual: Self) -> Self {
        match word {
            Some("none") => Self::None,
            Some("linear") => Self::Linear,
            Some("exponential") => Self::Exponential,
            _ => usual,
        }
    }

    /// How long to wait after so many attempts.
    pub fn delay(self, first: Duration, attempts: u32) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Linear => first.saturating_mul(attempts),
            Self::Exponential => first.saturating_mul(1_u32 << attempts.saturating_sub(1).min(20)),
        }
    }
}

impl Retry {
    /// What the decorators of a model or a stage say, if they say anything.
    pub fn of(decorators: &[Decorator]) -> Option<Self> {
        let decorator = decorators.iter().find(|it| it.name == "retry")?;
        let max = decorator.argument("max", Json::as_u64).unwrap_or(3);
        let backoff = decorator.argument("backoff", |it| it.as_str());
        Some(Self {
            max: u32::try_from(max).unwrap_or(u32::MAX).max(1),
            backoff: Backoff::of(backoff, Backoff::Exponential),
        })
    }

    /// How long to wait before the next attempt, if there is one.
    pub fn wait(self, attempts: u32) -> Option<Duration> {
        (attempts < self.max).then(|| self.backoff.delay(FIRST_WAIT, attempts))
    }
}

impl Decorator {
    /// An argument, by its name or as the first that reads so.
    fn argument<'d, T>(&'d self, name: &str, read: impl Fn(&'d Json) -> Option<T>) -> Option<T> {
        let value = |arg: &'d Json| read(arg.get(name).unwrap_or(arg));
        self.args.iter().find_map(value)
    }

    /// `@timeout(seconds: 30)` of these decorators, if there is one.
    pub fn timeout(decorators: &[Self]) -> Option<Duration> {
        let decorator = decorators.iter().find(|it| it.name == "timeout")?;
        let seconds = decorator.argument("seconds", Json::as_f64).unwrap_or(30.0);
        Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|time| !time.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decorated(name: &str, args: &Json) -> Vec<Decorator> {
        let args = args.as_array().cloned().unwrap_or_default();
        let name = name.to_owned();
        vec![Decorator { name, args }]
    }

    #[test]
    fn arguments_have_names_or_not_and_defaults() {
        let usual = Retry {
            max: 3,
            backoff: Backoff::Exponential,
        };
        assert_eq!(Retry::of(&decorated("retry", &json!([]))), Some(usual));
        let named = json!([{"backoff": "none"}, {"max": 5}]);
        let said = Some(Retry {
            max: 5,
            backoff: Backoff::None,
        });
        assert_eq!(Retry::of(&decorated("retry", &named)), said);
        assert_eq!(Retry::of(&decorated("retry", &json!([5, "none"]))), said);
        assert_eq!(Retry::of(&decorated("log", &json!([]))), None);
        let seconds = |args: Json| {
            let timeout = Decorator::timeout(&decorated("timeout", &args));
            timeout.map(|it| it.as_secs())
        };
        assert_eq!(seconds(json!([])), Some(30));
        assert_eq!(seconds(json!([{"seconds": 5}])), Some(5));
        assert_eq!(seconds(json!([7])), Some(7));
        assert_eq!(seconds(json!([-1])), None);
    }

    #[test]
    fn waits_grow_as_they_are_told_to() {
        let waits =
            |backoff| [1, 2, 3].map(|n| Retry { max: 3, backoff }.wait(n).map(|it| it.as_secs()));
        assert_eq!(waits(Backoff::None), [Some(0), Some(0), None]);
        assert_eq!(waits(Backoff::Linear), [Some(1), Some(2), None]);
        assert_eq!(waits(Backoff::Exponential), [Some(1), Some(2), None]);
        let third = Backoff::Exponential.delay(Duration::from_secs(1), 3);
        assert_eq!(third.as_secs(), 4);
    }
}
