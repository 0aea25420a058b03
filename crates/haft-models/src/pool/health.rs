//! Asking backends how they are, without a request at hand.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{LONGEST, Member};

/// How often a backend is asked how it is, and how long it may take to answer.
///
/// In configuration, durations are texts such as `"30s"`, or whole milliseconds.
///
/// ```
/// use haft_models::pool::HealthSettings;
/// let settings: HealthSettings = serde_json::from_str(r#"{"every": "1m"}"#)?;
/// assert_eq!((settings.every.as_secs(), settings.timeout.as_secs()), (60, 5));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HealthSettings {
    /// The pause between two questions.
    #[serde(with = "crate::config::duration")]
    #[schemars(with = "crate::config::duration::Written")]
    pub every: Duration,
    /// How long an answer may take.
    #[serde(with = "crate::config::duration")]
    #[schemars(with = "crate::config::duration::Written")]
    pub timeout: Duration,
}

impl Default for HealthSettings {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(30),
            timeout: Duration::from_secs(5),
        }
    }
}

impl HealthSettings {
    /// The member that makes no sense, and why.
    pub fn fault(&self) -> Option<(&'static str, &'static str)> {
        let too_short = Duration::from_millis(100);
        if self.every < too_short {
            Some(("every", "it must be at least `100ms`"))
        } else if self.every > LONGEST {
            Some(("every", "it must not be longer than a day"))
        } else if self.timeout.is_zero() || self.timeout > LONGEST {
            Some(("timeout", "it must be more than nothing and at most a day"))
        } else {
            None
        }
    }
}

/// Asks those of the backends that are to be asked, again and again, and tells their breakers. It
/// ends only if there is nobody to ask; dropping it ends it at once.
pub async fn watch(members: impl IntoIterator<Item = Arc<Member>>) {
    let watched = members.into_iter().filter_map(|member| {
        let settings = member.health_settings()?;
        Some(observe(member, settings))
    });
    join_all(watched).await;
}

async fn observe(member: Arc<Member>, settings: HealthSettings) {
    // Longer than until the next question: as long as these fail, no request has to find out.
    let again = settings.every * 2 + settings.timeout;
    while let Some(asked) = member.backend().ping(settings.timeout).await {
        if let Err(error) = &asked {
            let (backend, kind) = (&**member.name(), error.kind);
            tracing::debug!(
                backend,
                ?kind,
                status = error.status,
                "a backend is not well"
            );
        }
        member.found(&asked, again);
        tokio::time::sleep(settings.every).await;
    }
}
