//! How long a provider asks to wait.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Longer waits are not waits: a wrong clock, or a quota that comes back next month.
const MAX_WAIT: Duration = Duration::from_hours(24);

/// Reads `retry-after-ms`, then `Retry-After` in seconds or as a date.
pub(super) fn read(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let by_milliseconds = text("retry-after-ms")
        .and_then(number)
        .map(|ms| ms / 1_000.0);
    let after = text(RETRY_AFTER.as_str());
    let wait = match by_milliseconds.or_else(|| after.and_then(number)) {
        Some(seconds) => Duration::try_from_secs_f64(seconds.max(0.0)).ok()?,
        None => httpdate::parse_http_date(after?)
            .ok()?
            .duration_since(now)
            .unwrap_or_default(),
    };
    Some(wait.min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(name: &'static str, value: &str) -> Option<Duration> {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        read(&headers, now)
    }

    #[test]
    fn every_form_is_read() {
        let after = |value| wait("retry-after", value);
        assert_eq!(after("7"), Some(Duration::from_secs(7)));
        assert_eq!(after("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(
            after("Sun, 06 Nov 1994 08:49:47 GMT"),
            Some(Duration::from_secs(10))
        );
        assert_eq!(after("Sun, 06 Nov 1994 08:49:27 GMT"), Some(Duration::ZERO));
        assert_eq!(
            wait("retry-after-ms", "250"),
            Some(Duration::from_millis(250))
        );
    }

    #[test]
    fn nonsense_is_no_wait_and_no_wait_is_endless() {
        for value in ["soon", "NaN", "inf", ""] {
            assert_eq!(wait("retry-after", value), None, "{value}");
        }
        assert_eq!(wait("retry-after", "-3"), Some(Duration::ZERO));
        assert_eq!(wait("retry-after", "9999999"), Some(MAX_WAIT));
    }
}
