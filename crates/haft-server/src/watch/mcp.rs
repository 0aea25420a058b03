//! Calls of MCP tools, through the gateway and in runs: metrics, and figures per tenant and server.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use haft_mcp::{Pool, ServerState};

use super::metrics::{
    McpCallLabels, McpServerLabels, McpStateLabels, McpToolLabels, Meters, Name, Word,
};
use super::{Watch, epoch_seconds};

/// So many tools have series of their own; the rest is counted as `other`. A server decides what its tools are
/// called, so that a hostile one could otherwise make series without end.
const MAX_SERIES: usize = 4_096;

/// From so many of the last calls the median is taken.
const MAX_DURATIONS: usize = 256;

/// The label of names that belong to no configured server or known tool.
const OTHER: &str = "other";

/// The label of haft's own tools.
const OWN: &str = "haft";

const STATES: [Word; 5] = [
    "not_started",
    "starting",
    "connected",
    "saved_list",
    "unavailable",
];

/// A call of an MCP tool that ended.
pub(crate) struct McpCall<'c> {
    /// `gateway` or `responses`.
    pub(crate) door: Word,
    /// The tenant.
    pub(crate) caller: &'c str,
    /// The label of the server; none for haft's own tools.
    pub(crate) server: Option<&'c str>,
    /// The server's name of the tool; none where no tool has the name.
    pub(crate) tool: Option<&'c str>,
    pub(crate) outcome: Word,
    pub(crate) elapsed: Duration,
}

/// Figures of one tenant's calls to one server, since the process started.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct McpFigures {
    pub(crate) calls: u64,
    pub(crate) errors: u64,
    pub(crate) last_used_at: f64,
    durations: VecDeque<f64>,
}

impl McpFigures {
    /// The median of the last calls, in milliseconds.
    pub(crate) fn p50_ms(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.durations.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }
}

/// What is known of MCP servers and their calls.
#[derive(Default)]
pub(super) struct McpWatch {
    pool: OnceLock<Pool>,
    series: Mutex<HashSet<(Name, Name)>>,
    figures: Mutex<HashMap<(String, String), McpFigures>>,
}

impl McpWatch {
    /// The labels of a call. Only a configured server and a tool that it lists become labels.
    fn labels(&self, call: &McpCall<'_>) -> McpToolLabels {
        let other = || McpToolLabels {
            server: OTHER.into(),
            tool: OTHER.into(),
        };
        let Some(tool) = call.tool else {
            return other();
        };
        let is_known = match call.server {
            None => true,
            Some(label) => self.pool.get().is_some_and(|pool| {
                let tools = pool.server(label).and_then(|server| server.known_tools());
                tools.is_some_and(|tools| tools.get(tool).is_some())
            }),
        };
        if !is_known {
            return other();
        }
        let key = (Name::from(call.server.unwrap_or(OWN)), Name::from(tool));
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        if !series.contains(&key) {
            if series.len() >= MAX_SERIES {
                return other();
            }
            series.insert(key.clone());
        }
        let (server, tool) = key;
        McpToolLabels { server, tool }
    }

    fn add(&self, call: &McpCall<'_>) {
        let Some(server) = call.server else { return };
        let is_configured = self
            .pool
            .get()
            .is_some_and(|it| it.server(server).is_some());
        if !is_configured {
            return;
        }
        let key = (call.caller.to_owned(), server.to_owned());
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        let figures = figures.entry(key).or_default();
        figures.calls += 1;
        figures.errors += u64::from(!matches!(call.outcome, "succeeded" | "cancelled"));
        figures.last_used_at = epoch_seconds();
        if figures.durations.len() == MAX_DURATIONS {
            figures.durations.pop_front();
        }
        let ms = call.elapsed.as_secs_f64() * 1000.0;
        figures.durations.push_back((ms * 10.0).round() / 10.0);
    }
}

impl Watch {
    /// Names the configured servers, whose labels and tools may become labels of metrics.
    pub(crate) fn set_mcp_pool(&self, pool: &Pool) {
        let _ = self.mcp.pool.set(pool.clone());
    }

    /// A call of an MCP tool ended.
    pub(crate) fn mcp_called(&self, call: &McpCall<'_>) {
        let meters = &self.metrics.meters;
        let labels = self.mcp.labels(call);
        let seconds = call.elapsed.as_secs_f64();
        if call.outcome != "rejected" {
            meters.mcp_seconds.get_or_create(&labels).observe(seconds);
        }
        let labels = McpCallLabels {
            server: labels.server,
            tool: labels.tool,
            outcome: call.outcome,
            door: call.door,
        };
        meters.mcp_calls.get_or_create(&labels).inc();
        self.mcp.add(call);
    }

    /// The figures of one tenant's calls to a server.
    pub(crate) fn mcp_figures(&self, caller: &str, server: &str) -> McpFigures {
        let figures = self
            .mcp
            .figures
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let key = (caller.to_owned(), server.to_owned());
        figures.get(&key).cloned().unwrap_or_default()
    }

    /// Brings the gauges of the servers up to date.
    pub(crate) fn update_mcp_gauges(&self) {
        let Some(pool) = self.mcp.pool.get() else {
            return;
        };
        for server in pool.servers() {
            let status = server.status();
            set_gauges(&self.metrics.meters, &status);
        }
    }
}

fn set_gauges(meters: &Meters, status: &haft_mcp::ServerStatus) {
    let server = Name::from(status.label.as_str());
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    for state in STATES {
        let labels = McpStateLabels {
            server: server.clone(),
            state,
        };
        let is_it = i64::from(status.state.as_str() == state);
        meters.mcp_state.get_or_create(&labels).set(is_it);
    }
    let labels = McpServerLabels { server };
    let is_up = !matches!(status.state, ServerState::Unavailable { .. });
    meters.mcp_up.get_or_create(&labels).set(i64::from(is_up));
    let tools = count(status.tools.unwrap_or_default());
    meters.mcp_tools.get_or_create(&labels).set(tools);
    let held = count(status.held.len());
    meters.mcp_held.get_or_create(&labels).set(held);
    let connections = i64::try_from(status.connections).unwrap_or(i64::MAX);
    meters
        .mcp_connections
        .get_or_create(&labels)
        .set(connections);
}
