//! `[log]`, `[metrics]` and `[otlp]`: what operators see of a server.

use std::fmt;

use haft::models::http::{Endpoint, EndpointError, Secret};
use haft::models::{HeaderSource, Lookup, required_variable};
use schemars::JsonSchema;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;

use super::complaint::Complaint;
use super::document::{Document, Step};
use super::file::{FileConfig, OtlpTable};
use super::keys::unset_variable;

/// What is logged where nobody says anything.
const USUAL_FILTER: &str = "warn,haft=info";

/// What to write for a filter that is none.
pub(crate) const FILTER_REMEDY: &str =
    "write a level such as `debug`, or `warn,haft=info,haft_server=debug`";

/// The variables of OpenTelemetry that are heard where `[otlp]` names no collector. Those for traces go
/// before those for everything.
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const PROTOCOLS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
];
const HEADERS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
];
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const DISABLED: &str = "OTEL_SDK_DISABLED";
const EXPORTER: &str = "OTEL_TRACES_EXPORTER";

/// How lines of the log are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: one object on each line.
    Json,
}

/// What the record of gateway calls holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallRecording {
    /// There is no record.
    Off,
    /// Who called what, how it ended, how long it took and how large it was; never content.
    #[default]
    Metadata,
    /// The arguments of each call as well, up to 16 KiB.
    Arguments,
}

impl From<CallRecording> for haft_server::CallRecord {
    fn from(recording: CallRecording) -> Self {
        match recording {
            CallRecording::Off => Self::Off,
            CallRecording::Metadata => Self::Metadata,
            CallRecording::Arguments => Self::Arguments,
        }
    }
}

/// What operators see.
#[derive(Debug, Clone)]
pub(crate) struct Watching {
    /// What is logged.
    pub(crate) filter: String,
    pub(crate) log_format: LogFormat,
    pub(crate) access_log: bool,
    pub(crate) calls: CallRecording,
    /// Whether there is a `/metrics`.
    pub(crate) metrics: bool,
    pub(crate) public_metrics: bool,
    pub(crate) otlp: Option<Collector>,
    /// What the log should say about all this when it has begun.
    pub(crate) notes: Vec<String>,
}

impl Default for Watching {
    fn default() -> Self {
        Self {
            filter: USUAL_FILTER.to_owned(),
            log_format: LogFormat::default(),
            access_log: true,
            calls: CallRecording::default(),
            metrics: true,
            public_metrics: false,
            otlp: None,
            notes: Vec::new(),
        }
    }
}

/// Who gets spans.
#[derive(Clone)]
#[cfg_attr(
    not(feature = "otlp"),
    allow(dead_code, reason = "nobody speaks with it")
)]
pub(crate) struct Collector {
    pub(crate) endpoint: String,
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) service_name: Option<String>,
    pub(crate) sample_ratio: f64,
    pub(crate) captures_content: bool,
}

/// An address may hold a key.
impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector")
            .field("endpoint", &crate::text::without_password(&self.endpoint))
            .field("service_name", &self.service_name)
            .field("sample_ratio", &self.sample_ratio)
            .field("captures_content", &self.captures_content)
            .finish_non_exhaustive()
    }
}

/// Refuses what the tables say wrongly. Nothing is looked up for that.
pub(super) fn check(document: &Document<'_>, said: &FileConfig) -> Result<(), Complaint> {
    if let Some(filter) = &said.log.level {
        EnvFilter::try_new(filter).map_err(|error| {
            let path = [Step::Key("log"), Step::Key("level")];
            document
                .complain(&path, format!("this is no filter: {error}"))
                .remedy(FILTER_REMEDY)
        })?;
    }
    let ratio = said.otlp.sample_ratio;
    if ratio.is_some_and(|ratio| !(0.0..=1.0).contains(&ratio)) {
        let message = "`sample_ratio` must be from 0 to 1";
        return Err(document.complain(&in_otlp("sample_ratio"), message));
    }
    if let Some(endpoint) = &said.otlp.endpoint {
        Endpoint::new(endpoint).map_err(|error| {
            document
                .complain(&in_otlp("endpoint"), error.to_string())
                .remedy("write the collector's address, such as `http://127.0.0.1:4318`")
        })?;
    }
    Ok(())
}

/// What the tables say, and what OpenTelemetry's variables add.
pub(super) fn watching(
    document: &Document<'_>,
    said: &FileConfig,
    lookup: Lookup<'_>,
) -> Result<Watching, Complaint> {
    let usual = Watching::default();
    let mut notes = Vec::new();
    Ok(Watching {
        filter: said.log.level.clone().unwrap_or(usual.filter),
        log_format: said.log.format.unwrap_or(usual.log_format),
        access_log: said.log.access.unwrap_or(usual.access_log),
        calls: said.log.calls.unwrap_or(usual.calls),
        metrics: said.metrics.enabled.unwrap_or(usual.metrics),
        public_metrics: said.metrics.public.unwrap_or(usual.public_metrics),
        otlp: collector(document, &said.otlp, lookup, &mut notes)?,
        notes,
    })
}

fn in_otlp(key: &str) -> [Step<'_>; 2] {
    [Step::Key("otlp"), Step::Key(key)]
}

fn collector(
    document: &Document<'_>,
    said: &OtlpTable,
    lookup: Lookup<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<Collector>, Complaint> {
    let named = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
    let (endpoint, mut headers) = match &said.endpoint {
        // Headers of the environment may hold the key to another collector.
        Some(endpoint) => (endpoint.clone(), Vec::new()),
        None => match of_environment(&named) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(note) => {
                notes.push(note);
                return Ok(None);
            }
        },
    };
    for (name, source) in &said.headers {
        let path = [Step::Key("otlp"), Step::Key("headers"), Step::Key(name)];
        let secret = match source {
            HeaderSource::Value(value) => Secret::new(value),
            HeaderSource::Variable { env } => {
                required_variable(env, lookup).map_err(|_| unset_variable(document, &path, env))?
            }
        };
        let header = (name.clone(), secret);
        try_out(&endpoint, std::slice::from_ref(&header))
            .map_err(|error| document.complain(&path, error.to_string()))?;
        headers.push(header);
    }
    Ok(Some(Collector {
        endpoint,
        headers,
        service_name: said.service_name.clone().or_else(|| named(SERVICE_NAME)),
        sample_ratio: said.sample_ratio.unwrap_or(1.0),
        captures_content: said.capture_content.unwrap_or_default(),
    }))
}

/// The address of a collector, and what it is sent beside spans.
type Found = (String, Vec<(String, Secret)>);

/// The collector that OpenTelemetry's own variables name, or why haft cannot speak with it. They are
/// often set for all programs of a machine: what is wrong with them keeps nobody from serving.
fn of_environment(named: &impl Fn(&str) -> Option<String>) -> Result<Option<Found>, String> {
    let is_said = |name, value| named(name).is_some_and(|it| it.trim().eq_ignore_ascii_case(value));
    if is_said(DISABLED, "true") || is_said(EXPORTER, "none") {
        return Ok(None);
    }
    let found = [TRACES_ENDPOINT, ENDPOINT]
        .into_iter()
        .find_map(|variable| Some((variable, named(variable)?)));
    let Some((variable, endpoint)) = found else {
        return Ok(None);
    };
    let refused = |reason: &str| {
        Err(format!(
            "no spans are exported as `{variable}` says: {reason}"
        ))
    };
    if cfg!(not(feature = "otlp")) {
        return refused("this haft was built without OTLP");
    }
    // Those who take JSON over HTTP take this as well.
    let protocol = PROTOCOLS.into_iter().find_map(named);
    if protocol.is_some_and(|it| it.trim() == "grpc") {
        return refused("haft speaks `http/protobuf`, not `grpc`");
    }
    if variable == TRACES_ENDPOINT && !endpoint.trim().ends_with("/v1/traces") {
        return refused("it must end with `/v1/traces`");
    }
    let headers = HEADERS.into_iter().find_map(named);
    let headers = headers.map_or_else(Vec::new, |text| headers_of(&text));
    match try_out(&endpoint, &headers) {
        Ok(()) => Ok(Some((endpoint, headers))),
        Err(error) => refused(&error.to_string()),
    }
}

/// Whether a collector can be asked.
fn try_out(endpoint: &str, headers: &[(String, Secret)]) -> Result<(), EndpointError> {
    let mut checked = Endpoint::new(endpoint)?;
    for (name, value) in headers {
        checked = checked.header(name, value.clone())?;
    }
    Ok(())
}

/// The headers of a variable, `name=value,name=value`, values with `%20` for what cannot be written.
fn headers_of(text: &str) -> Vec<(String, Secret)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(name, value)| {
        let value = decoded(value.trim());
        (name.trim().to_owned(), Secret::new(value))
    });
    pairs.filter(|(name, _)| !name.is_empty()).collect()
}

/// A text with its `%20` and the like as what they stand for; what stands for nothing stays.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.get(..2).filter(|_| *first == b'%');
        // A number may have a sign; a code has none.
        let code = code.filter(|code| code.iter().all(u8::is_ascii_hexdigit));
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Flags, Source, Variables, resolve};

    fn watching(text: &str, variables: &[(&str, &str)]) -> Watching {
        let source = Source {
            text: text.to_owned(),
            ..Source::default()
        };
        let lookup = |name: &str| {
            let mut variables = variables.iter();
            let found = variables.find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let resolved = resolve(&source, &Variables::none(), Flags::default(), &lookup);
        resolved
            .unwrap_or_else(|complaint| panic!("{complaint}"))
            .watching
    }

    #[test]
    fn the_tables_are_read() {
        let text = r#"
            [log]
            level = "debug"
            format = "json"
            access = false
            [metrics]
            enabled = false
            public = true
            [otlp]
            endpoint = "http://collector:4318?key=hunter2"
            headers = { x-team = "blue", authorization = { env = "TOKEN" } }
            service_name = "mine"
            sample_ratio = 0.5
            capture_content = true
        "#;
        let variables = [
            ("TOKEN", "Bearer hunter2"),
            (ENDPOINT, "http://other"),
            (HEADERS[1], "x-other=key"),
        ];
        let watching = watching(text, &variables);
        assert_eq!(watching.filter, "debug");
        assert_eq!(watching.log_format, LogFormat::Json);
        assert!(!watching.access_log && !watching.metrics && watching.public_metrics);
        assert!(!format!("{watching:?}").contains("hunter2"));
        let collector = watching.otlp.unwrap();
        assert_eq!(collector.endpoint, "http://collector:4318?key=hunter2");
        assert_eq!(
            told(&collector),
            [("authorization", "Bearer hunter2"), ("x-team", "blue")],
            "headers of the environment are for its collector"
        );
        assert_eq!(collector.service_name.as_deref(), Some("mine"));
        assert!(collector.captures_content);
        assert!((collector.sample_ratio - 0.5).abs() < f64::EPSILON);
    }

    fn told(collector: &Collector) -> Vec<(&str, &str)> {
        let headers = collector.headers.iter();
        headers
            .map(|(name, it)| (name.as_str(), it.expose()))
            .collect()
    }

    #[cfg(feature = "otlp")]
    #[test]
    fn opentelemetrys_own_variables_are_heard() {
        let variables = [
            (ENDPOINT, "http://collector:4318"),
            (
                HEADERS[1],
                "authorization=Basic%20aHVudGVyMg==, x-team = blue,,=no",
            ),
            (SERVICE_NAME, "mine"),
        ];
        let collector = watching("", &variables).otlp.unwrap();
        assert_eq!(collector.endpoint, "http://collector:4318");
        assert_eq!(
            told(&collector),
            [("authorization", "Basic aHVudGVyMg=="), ("x-team", "blue")]
        );
        assert_eq!(collector.service_name.as_deref(), Some("mine"));
    }

    #[cfg(feature = "otlp")]
    #[test]
    fn what_is_said_of_traces_goes_before_what_is_said_of_everything() {
        let variables = [
            (ENDPOINT, "http://a"),
            (TRACES_ENDPOINT, "http://b/v1/traces"),
            (HEADERS[0], "x-of=traces"),
            (HEADERS[1], "x-of=everything"),
            (PROTOCOLS[0], "http/protobuf"),
            (PROTOCOLS[1], "grpc"),
        ];
        let collector = watching("", &variables).otlp.unwrap();
        assert_eq!(collector.endpoint, "http://b/v1/traces");
        assert_eq!(told(&collector), [("x-of", "traces")]);
    }

    #[test]
    fn what_haft_cannot_speak_with_is_told_and_keeps_nobody_from_serving() {
        for variables in [
            &[(ENDPOINT, "collector:4317")][..],
            &[(ENDPOINT, "http://c:4317"), (PROTOCOLS[1], "grpc")],
            &[(TRACES_ENDPOINT, "http://c:4318/mine")],
            &[(ENDPOINT, "http://c"), (HEADERS[1], "x=%0Ahunter2")],
        ] {
            let watching = watching("", variables);
            assert!(watching.otlp.is_none());
            assert_eq!(watching.notes.len(), 1, "{:?}", watching.notes);
            let note = &watching.notes[0];
            assert!(
                note.contains(variables[0].0) && !note.contains("hunter2"),
                "{note}"
            );
        }
        for switch in [(DISABLED, "true"), (EXPORTER, "none")] {
            let watching = watching("", &[(ENDPOINT, "http://c"), switch]);
            assert!(watching.otlp.is_none() && watching.notes.is_empty());
        }
    }

    #[test]
    fn a_header_is_looked_up_only_for_a_collector() {
        let text = "[otlp]\nheaders = { x-key = { env = \"GONE\" } }\n";
        assert!(watching(text, &[]).otlp.is_none());
    }

    #[test]
    fn what_stands_for_nothing_stays() {
        assert_eq!(decoded("a%20b%2"), "a b%2");
        assert_eq!(decoded("%zz%C3%A4%+1"), "%zzä%+1");
    }
}
