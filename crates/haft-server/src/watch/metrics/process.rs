//! The process itself, looked at when somebody asks.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;

use super::labels::BuildLabels;
use super::list::Described;

const UPTIME: Described = Described {
    name: "haft_uptime_seconds",
    kind: "gauge",
    labels: &[],
    help: "How long the server has been there",
};
const STARTED: Described = Described {
    name: "process_start_time_seconds",
    kind: "gauge",
    labels: &[],
    help: "When the server was put together, in seconds since the epoch",
};
const MEMORY: Described = Described {
    name: "process_resident_memory_bytes",
    kind: "gauge",
    labels: &[],
    help: "Memory that the process holds; not told on every system",
};
const BUILD: Described = Described {
    name: "haft_build",
    kind: "info",
    labels: &["version"],
    help: "Which haft this is",
};

/// What is told of the process.
pub(super) const DESCRIBED: &[Described] = &[UPTIME, STARTED, MEMORY, BUILD];

#[derive(Debug)]
pub(super) struct Process {
    started: Instant,
    started_at: f64,
}

impl Process {
    pub(super) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            started: Instant::now(),
            started_at: since.unwrap_or_default().as_secs_f64(),
        }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut gauge = |metric: Described, value: f64| {
            let gauge = ConstGauge::new(value);
            let kind = gauge.metric_type();
            let encoder = encoder.encode_descriptor(metric.name, metric.help, None, kind)?;
            gauge.encode(encoder)
        };
        gauge(UPTIME, self.started.elapsed().as_secs_f64())?;
        gauge(STARTED, self.started_at)?;
        if let Some(bytes) = resident_bytes() {
            #[allow(clippy::cast_precision_loss, reason = "no process holds 2^53 bytes")]
            gauge(MEMORY, bytes as f64)?;
        }
        let info = Info::new(BuildLabels {
            version: env!("CARGO_PKG_VERSION"),
        });
        let kind = info.metric_type();
        info.encode(encoder.encode_descriptor(BUILD.name, BUILD.help, None, kind)?)
    }
}

/// The memory that this process holds, where the system tells it in a file.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
