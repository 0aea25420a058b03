//! Values of flags, with words for those that are none.

use std::num::NonZeroU32;
use std::time::Duration;

/// How many, at least one.
pub(super) fn at_least_one(text: &str) -> Result<NonZeroU32, String> {
    match text.trim().parse::<u32>().map(NonZeroU32::new) {
        Ok(Some(number)) => Ok(number),
        Ok(None) => Err(String::from("it must be at least 1")),
        Err(_) => Err(format!("it must be a whole number from 1 to {}", u32::MAX)),
    }
}

/// A time with its unit.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && text != "0" {
        return Err(format!("it has no unit: write `{text}s` or `{text}m`"));
    }
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write a time such as `90s` or `10m`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_none_is_told_with_what_to_write() {
        assert_eq!(at_least_one("60").map(NonZeroU32::get), Ok(60));
        assert_eq!(at_least_one("0"), Err("it must be at least 1".into()));
        assert!(at_least_one("-1").unwrap_err().contains("whole number"));
        assert_eq!(time("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("5"), Err("it has no unit: write `5s` or `5m`".into()));
        assert!(time("soon").unwrap_err().contains("such as `90s`"));
    }
}
