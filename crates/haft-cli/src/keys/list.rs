//! The keys that there are, as a table or as JSON.

use std::error::Error;
use std::io::{self, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haft_server::access::{Key, KeyFile};
use serde_json::{Value, json};

use crate::text::printable;

pub(super) fn list(file: &KeyFile, as_json: bool) -> Result<(), Box<dyn Error>> {
    let keys = file.read()?.unwrap_or_default();
    let mut out = io::stdout();
    if as_json {
        let keys: Vec<_> = keys.iter().map(|key| shown(key, now())).collect();
        writeln!(out, "{:#}", Value::Array(keys))?;
    } else if keys.is_empty() {
        writeln!(io::stderr(), "{}", super::none_in(file))?;
    } else {
        write!(out, "{}", table(&keys, now()))?;
    }
    out.flush()?;
    Ok(())
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

/// A moment as a person reads it.
pub(super) fn moment(seconds: i64) -> String {
    let seconds = u64::try_from(seconds).unwrap_or_default();
    // Later than this cannot be written.
    let seconds = seconds.min(253_402_300_799);
    let at = UNIX_EPOCH + Duration::from_secs(seconds);
    let text = humantime::format_rfc3339_seconds(at).to_string();
    text.replace('T', " ").trim_end_matches('Z').to_owned() + " UTC"
}

fn shown(key: &Key, now: i64) -> Value {
    json!({
        "id": key.id,
        "name": key.name,
        "tenant": key.tenant,
        "roles": key.roles,
        "state": key.state(now).as_str(),
        "ends_with": key.ends_with,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "requests_per_minute": key.limits.requests_per_minute,
        "concurrent": key.limits.concurrent,
    })
}

/// One line each, under a heading.
fn table(keys: &[Key], now: i64) -> String {
    let heading = [
        "ID",
        "NAME",
        "TENANT",
        "ROLES",
        "STATE",
        "ENDS WITH",
        "MADE",
        "EXPIRES",
        "LIMITS",
    ];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(keys.iter().map(|key| row(key, now)));
    let widths: Vec<usize> = (0..heading.len())
        .map(|at| rows.iter().map(|row| row[at].chars().count()).max())
        .map(Option::unwrap_or_default)
        .collect();
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(&widths);
        let cells: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        format!("{}\n", cells.join("  ").trim_end())
    });
    lines.collect()
}

fn row(key: &Key, now: i64) -> [String; 9] {
    let day = |seconds: i64| moment(seconds).split(' ').next().map(str::to_owned);
    let day = |seconds: i64| day(seconds).unwrap_or_default();
    let rate = key.limits.requests_per_minute;
    let at_once = key.limits.concurrent;
    let limits: Vec<_> = [
        rate.map(|it| format!("{it} a minute")),
        at_once.map(|it| format!("{it} at once")),
    ]
    .into_iter()
    .flatten()
    .collect();
    [
        key.id.clone(),
        printable(&key.name),
        key.tenant.clone(),
        match key.roles.as_slice() {
            [] => String::from("none"),
            roles => roles.join(", "),
        },
        key.state(now).as_str().to_owned(),
        format!("…{}", printable(&key.ends_with)),
        day(key.created_at),
        key.expires_at.map_or_else(|| String::from("never"), day),
        match limits.as_slice() {
            [] => String::from("the server's"),
            limits => limits.join(", "),
        },
    ]
}
