//! `clock`: what time it is, here or elsewhere.
//!
//! What comes in: the name of a time zone, or nothing for UTC. What goes out: the time there, as a
//! person and as a program reads it. The server's own zone is never a default: a model does not
//! learn where the server stands.

use std::cmp::Reverse;
use std::sync::LazyLock;
use std::time::SystemTime;

use haft_core::{ToolDefinition, ToolError, cut};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::tool::{HostedTool, hosted_tool};

/// How many names are suggested for one that does not exist.
const SUGGESTIONS: usize = 3;

/// The names of time zones that may be asked for. A system's own files know others, such as
/// `localtime`, which would tell where the server stands.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let bundled = TimeZoneDatabase::bundled();
    let names = bundled.available().map(|name| name.as_str().to_owned());
    names.collect()
});

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The IANA name of a time zone, for example `Europe/Vienna` or `America/New_York`; UTC if not
    /// given.
    #[schemars(length(min = 1, max = 64))]
    timezone: Option<String>,
}

/// A moment in a time zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
struct Moment {
    /// The date and time with the offset from UTC, as RFC 3339 writes it.
    time: String,
    /// The time zone.
    timezone: String,
    /// The day of the week there.
    weekday: String,
    /// Seconds since 1970-01-01T00:00:00Z.
    unix_seconds: i64,
}

/// The tool `clock`: the current date and time in UTC or in a given time zone.
///
/// ```
/// let clock = haft_hosted::clock()?;
/// assert_eq!(clock.definition().name().as_str(), "clock");
/// assert!(clock.definition().annotations().read_only);
/// # Ok::<(), haft_core::DefinitionError>(())
/// ```
pub fn clock() -> HostedTool {
    clock_with(SystemTime::now)
}

/// The tool `clock`, which reads the time from `now`: for tests and replays.
pub fn clock_with(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> HostedTool {
    let definition = ToolDefinition::builder("clock")
        .description(
            "Get the current date and time, in UTC or in a given time zone.\n\n\
             Use it whenever an answer depends on today's date or the time of day.",
        )
        .tags(["time", "date"])
        .read_only()
        .idempotent()
        .polling()
        .example(
            json!({"timezone": "Asia/Tokyo"}),
            Some(json!({
                "time": "2026-07-01T19:00:00+09:00",
                "timezone": "Asia/Tokyo",
                "weekday": "Wednesday",
                "unix_seconds": 1_782_900_000
            })),
        );
    hosted_tool(definition, move |arguments: Arguments, _| {
        moment(now(), arguments.timezone.as_deref().unwrap_or("UTC"))
    })
}

fn moment(now: SystemTime, timezone: &str) -> Result<Moment, ToolError> {
    let name = known_name(timezone.trim())?;
    let now = Timestamp::try_from(now)?;
    let there = now.to_zoned(zone(name)?);
    Ok(Moment {
        time: there.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        timezone: name.to_owned(),
        weekday: there.strftime("%A").to_string(),
        unix_seconds: now.as_second(),
    })
}

/// The rules of a zone: the system's, which are kept up to date, else those that came with haft.
fn zone(name: &str) -> Result<TimeZone, jiff::Error> {
    jiff::tz::db()
        .get(name)
        .or_else(|_| TimeZoneDatabase::bundled().get(name))
}

fn known_name(wanted: &str) -> Result<&'static str, ToolError> {
    let mut names = NAMES.iter().map(String::as_str);
    if let Some(name) = names.find(|name| name.eq_ignore_ascii_case(wanted)) {
        return Ok(name);
    }
    let near = near(wanted);
    let advice = if near.is_empty() {
        "use an IANA name such as `Europe/Vienna`".to_owned()
    } else {
        let quoted: Vec<_> = near.iter().map(|name| format!("`{name}`")).collect();
        format!("did you mean {}?", quoted.join(" or "))
    };
    let wanted = cut(wanted);
    Err(ToolError::new(format!(
        "there is no time zone `{wanted}`: {advice}"
    )))
}

/// The names most like the wanted one, or whose city is; best first.
fn near(wanted: &str) -> Vec<&'static str> {
    let wanted = cut(wanted).to_lowercase().replace(' ', "_");
    let tolerance = (wanted.chars().count() / 3).max(1);
    let mut found: Vec<_> = NAMES
        .iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let city = lower.rsplit('/').next().unwrap_or(&lower);
            // A misspelt region is no reason to miss the city, and the other way round.
            let wanted_city = wanted.rsplit('/').next().unwrap_or(&wanted);
            let whole = strsim::osa_distance(&wanted, &lower);
            let cities = strsim::osa_distance(wanted_city, city);
            let city_tolerance = (wanted_city.chars().count() / 4).max(1);
            let distance = match (whole <= tolerance, cities <= city_tolerance) {
                (true, true) => whole.min(cities),
                (true, false) => whole,
                (false, true) => cities,
                (false, false) => return None,
            };
            Some((distance, Reverse(name.contains('/')), name.as_str()))
        })
        .collect();
    found.sort_unstable();
    // What is clearly further off than the best one would only distract from it.
    let best = found.first().map_or(0, |(distance, ..)| *distance);
    found.retain(|(distance, ..)| *distance <= best + 1);
    found.truncate(SUGGESTIONS);
    found.into_iter().map(|(.., name)| name).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64, timezone: &str) -> Result<Moment, String> {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        moment(now, timezone).map_err(|error| error.to_string())
    }

    #[test]
    fn the_time_is_given_with_offset_zone_weekday_and_seconds() {
        assert_eq!(
            at(1_782_900_000, "Europe/Vienna"),
            Ok(Moment {
                time: "2026-07-01T12:00:00+02:00".into(),
                timezone: "Europe/Vienna".into(),
                weekday: "Wednesday".into(),
                unix_seconds: 1_782_900_000,
            })
        );
    }

    #[test]
    fn the_weekday_is_that_of_the_zone() {
        // 23:30 on Wednesday in UTC.
        let late = 1_782_948_600;
        assert_eq!(at(late, "UTC").unwrap().weekday, "Wednesday");
        assert_eq!(at(late, "Asia/Tokyo").unwrap().weekday, "Thursday");
    }

    #[test]
    fn names_are_found_without_regard_to_case() {
        assert_eq!(at(0, "europe/VIENNA").unwrap().timezone, "Europe/Vienna");
        assert_eq!(at(0, " utc ").unwrap().time, "1970-01-01T00:00:00+00:00");
    }

    #[test]
    fn an_unknown_zone_suggests_names_that_are_like_it() {
        let error = |name| at(0, name).unwrap_err();
        assert_eq!(
            error("Europe/Viena"),
            "there is no time zone `Europe/Viena`: did you mean `Europe/Vienna`?"
        );
        assert!(error("Vienna").contains("`Europe/Vienna`"));
        assert!(error("new york").contains("`America/New_York`"));
        assert!(error("US/Tokyo").contains("`Asia/Tokyo`"));
        assert_eq!(
            error("middle earth"),
            "there is no time zone `middle earth`: use an IANA name such as `Europe/Vienna`"
        );
    }

    #[test]
    fn names_that_are_none_give_nothing_away() {
        for name in [
            "localtime",
            "Local",
            "../../etc/passwd",
            "/etc/localtime",
            "",
            "posixrules",
        ] {
            assert!(at(0, name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_time_out_of_range_is_an_error() {
        assert!(at(1 << 60, "UTC").is_err());
    }
}
