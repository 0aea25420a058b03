//! The two texts that scrapers read: `OpenMetrics` for those who ask for it, and the older form of
//! Prometheus for everybody else.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// Which text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    OpenMetrics,
    Prometheus,
}

impl Form {
    /// The text that a scraper wants.
    pub(crate) fn wanted(headers: &HeaderMap) -> Self {
        let mut accepted = headers.get_all(ACCEPT).iter();
        let is_wanted = accepted.any(|value| {
            let value = value.to_str().unwrap_or_default();
            value.contains("application/openmetrics-text")
        });
        if is_wanted {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// The text in this form, from one in `OpenMetrics`.
    pub(super) fn of(self, text: String) -> String {
        match self {
            Self::OpenMetrics => text,
            Self::Prometheus => older(&text),
        }
    }
}

/// The name that samples of a metric bear; histograms have several, with endings of their own.
pub(super) fn sample_name(name: &str, kind: &str) -> String {
    match kind {
        "counter" => format!("{name}_total"),
        "info" => format!("{name}_info"),
        _ => name.to_owned(),
    }
}

/// The older form: a family is called as its samples are, and nothing marks the end.
fn older(text: &str) -> String {
    let mut kinds = std::collections::HashMap::new();
    for line in text.lines() {
        if let Some((name, kind)) = comment(line, "# TYPE ") {
            kinds.insert(name, kind);
        }
    }
    let mut older = String::with_capacity(text.len() + 256);
    for line in text.lines() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        let renamed = ["# HELP ", "# TYPE "].into_iter().find_map(|begin| {
            let (name, rest) = comment(line, begin)?;
            let kind = kinds.get(name)?;
            let name = sample_name(name, kind);
            // The older form knows no `info`: it is a gauge that stands at 1.
            let rest = if begin == "# TYPE " && rest == "info" {
                "gauge"
            } else {
                rest
            };
            Some(format!("{begin}{name} {rest}"))
        });
        older.push_str(renamed.as_deref().unwrap_or(line));
        older.push('\n');
    }
    older
}

/// The name and the rest of a line that begins so.
fn comment<'l>(line: &'l str, begin: &str) -> Option<(&'l str, &'l str)> {
    line.strip_prefix(begin)?.split_once(' ')
}
