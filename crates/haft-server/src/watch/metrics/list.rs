//! Every metric, once: what is registered, what is documented and what a test checks come from here.

use haft_engine::Counters;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::labels::{
    BackendLabels, CallLabels, ErrorLabels, FailoverLabels, KindLabels, McpCallLabels,
    McpServerLabels, McpStateLabels, McpToolLabels, ModelLabels, OperationLabels, OutcomeLabels,
    RequestLabels, RouteLabels, RunLabels, StoreErrorLabels, TokenLabels,
};

/// Bounds of what a client waits for, in seconds.
const WAITS: [f64; 15] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 300.0,
];

/// Bounds of what a store takes, in seconds.
const WRITES: [f64; 13] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0,
];

fn waits() -> Histogram {
    Histogram::new(WAITS)
}

fn writes() -> Histogram {
    Histogram::new(WRITES)
}

/// A family of histograms; all of a family have the same bounds.
pub(crate) type Histograms<Labels> = Family<Labels, Histogram>;

/// What a metric is, for whoever reads of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Described {
    /// As it is registered; samples of counters end in `_total`.
    pub(crate) name: &'static str,
    /// `counter`, `gauge`, `histogram` or `info`.
    pub(crate) kind: &'static str,
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

macro_rules! metrics {
    ($($field:ident: $type:ty = $make:expr,
        $kind:literal $name:literal [$($label:literal),*] $help:literal;)*) => {
        /// The meters of a server.
        #[cfg_attr(not(feature = "otlp"), allow(dead_code, reason = "those of spans"))]
        pub(crate) struct Meters {
            $(pub(crate) $field: $type,)*
        }

        impl Meters {
            /// Meters that stand at nothing, registered.
            pub(super) fn register(registry: &mut Registry) -> Self {
                $(
                    let $field: $type = $make;
                    registry.register($name, $help, $field.clone());
                )*
                Self { $($field,)* }
            }
        }

        /// The meters, in the order in which they are shown.
        pub(super) const METERS: &[Described] = &[$(Described {
            name: $name,
            kind: $kind,
            labels: &[$($label),*],
            help: $help,
        },)*];
    };
}

metrics! {
    requests: Family<RequestLabels, Counter> = Family::default(),
        "counter" "haft_requests" ["route", "method", "status"]
        "Requests that were answered. A message in a WebSocket counts as one with the method WS";
    request_seconds: Histograms<RouteLabels> = Family::new_with_constructor(waits),
        "histogram" "haft_request_duration_seconds" ["route", "method"]
        "From a request's head to the last byte of its answer";
    active_requests: Gauge = Gauge::default(),
        "gauge" "haft_requests_active" []
        "Requests that are being answered";
    active_streams: Gauge = Gauge::default(),
        "gauge" "haft_streams_active" []
        "Answers that are being streamed over HTTP";
    memory_used: Gauge = Gauge::default(),
        "gauge" "haft_memory_budget_used_bytes" []
        "Bytes of `max_pending_bytes` in use";
    websockets: Gauge = Gauge::default(),
        "gauge" "haft_websockets_open" []
        "WebSockets that are open";
    runs: Family<RunLabels, Counter> = Family::default(),
        "counter" "haft_runs" ["model", "outcome"]
        "Runs that ended: completed, incomplete, failed, cancelled, waiting for their client, or put_away for the next process";
    run_seconds: Histograms<ModelLabels> = Family::new_with_constructor(waits),
        "histogram" "haft_run_duration_seconds" ["model"]
        "From the beginning of a run to its end";
    active_runs: Gauge = Gauge::default(),
        "gauge" "haft_runs_active" []
        "Runs that are under way, those in the background included";
    background_runs: Gauge = Gauge::default(),
        "gauge" "haft_runs_background" []
        "Runs that are under way in the background";
    waiting_runs: Gauge = Gauge::default(),
        "gauge" "haft_runs_waiting" []
        "Requests that wait until a run may begin";
    turns: Family<ModelLabels, Counter> = Family::default(),
        "counter" "haft_turns" ["model"]
        "Answers of models within runs";
    first_token_seconds: Histograms<ModelLabels> = Family::new_with_constructor(waits),
        "histogram" "haft_time_to_first_token_seconds" ["model"]
        "From a request that was read to the first piece of its answer";
    tokens: Family<TokenLabels, Counter> = Family::default(),
        "counter" "haft_tokens" ["model", "kind"]
        "Tokens as providers count them: input and, as parts of it, cached and cache_write; output and, as a part of it, reasoning";
    tool_calls: Family<CallLabels, Counter> = Family::default(),
        "counter" "haft_tool_calls" ["kind", "outcome"]
        "Calls of tools: by the type of the tool where it runs here, as function or custom where the client runs it, as tool_search whoever searches, as unknown where there is none";
    tool_seconds: Histograms<KindLabels> = Family::new_with_constructor(waits),
        "histogram" "haft_tool_call_duration_seconds" ["kind"]
        "How long calls ran here";
    mcp_calls: Family<McpCallLabels, Counter> = Family::default(),
        "counter" "haft_mcp_calls" ["server", "tool", "outcome", "door"]
        "Calls of MCP tools through the gateway or from runs (door: gateway, responses), by outcome: succeeded, tool_error (the tool says that it failed), failed (the server gave no answer), denied, cancelled, rejected (unknown tool or invalid arguments). Servers and tools that are not configured or not listed count as other";
    mcp_seconds: Histograms<McpToolLabels> = Family::new_with_constructor(waits),
        "histogram" "haft_mcp_call_duration_seconds" ["server", "tool"]
        "How long calls of MCP tools took, waits for approvals included";
    mcp_up: Family<McpServerLabels, Gauge> = Family::default(),
        "gauge" "haft_mcp_server_up" ["server"]
        "Whether an MCP server can be used: 0 after a failed connection or list, else 1";
    mcp_state: Family<McpStateLabels, Gauge> = Family::default(),
        "gauge" "haft_mcp_server_state" ["server", "state"]
        "1 for the state that an MCP server is in: not_started, starting, connected, saved_list or unavailable";
    mcp_tools: Family<McpServerLabels, Gauge> = Family::default(),
        "gauge" "haft_mcp_server_tools" ["server"]
        "Tools of an MCP server that may be used";
    mcp_held: Family<McpServerLabels, Gauge> = Family::default(),
        "gauge" "haft_mcp_server_tools_held" ["server"]
        "New or changed tools of an MCP server that are held back until `haft mcp accept`";
    mcp_connections: Family<McpServerLabels, Gauge> = Family::default(),
        "gauge" "haft_mcp_server_connections" ["server"]
        "Connections to an MCP server that this process has opened: all past the first are reconnections or restarts";
    hydrations: Family<OutcomeLabels, Counter> = Family::default(),
        "counter" "haft_hydrations" ["outcome"]
        "Arguments that were read: valid, repaired, unvalidated (the tool has no schema), or refused";
    tools_injected: Counter = Counter::default(),
        "counter" "haft_tools_injected" []
        "Tools that were added to running conversations: found by a search, or brought by a section that was read";
    disclosures: Counter = Counter::default(),
        "counter" "haft_disclosure_dynamic" []
        "Sections that were read and brought tools into a running conversation";
    disclosure_restarts: Counter = Counter::default(),
        "counter" "haft_disclosure_restarts" []
        "Conversations that were started anew so that their model takes new tools";
    tools_picked: Counter = Counter::default(),
        "counter" "haft_tools_picked" []
        "Tools that were picked out of brief lists, by name or by calling them";
    calls_suppressed: Counter = Counter::default(),
        "counter" "haft_calls_suppressed" []
        "Calls that were left out because the model already had their results";
    compactions: Family<OutcomeLabels, Counter> = Family::default(),
        "counter" "haft_compactions" ["outcome"]
        "Contexts that were to be summed up: completed, failed or cancelled";
    truncations: Counter = Counter::default(),
        "counter" "haft_truncations" []
        "Contexts that were cut because the model refused them as too long";
    backend_requests: Family<ModelLabels, Counter> = Family::default(),
        "counter" "haft_backend_requests" ["model"]
        "Requests to models, repeated ones included, by the model that was meant, whoever answered";
    backend_retries: Family<ErrorLabels, Counter> = Family::default(),
        "counter" "haft_backend_retries" ["model", "error"]
        "Requests to models that failed and were repeated, by what failed";
    backend_failures: Family<ErrorLabels, Counter> = Family::default(),
        "counter" "haft_backend_failures" ["model", "error"]
        "Requests to models that nobody answered, by what failed";
    backend_failovers: Family<FailoverLabels, Counter> = Family::default(),
        "counter" "haft_backend_failovers" ["model", "backend", "error", "by"]
        "Requests that another backend answered in place of one that failed, or that is left alone because it did (left_alone)";
    backend_available: Family<BackendLabels, Gauge> = Family::default(),
        "gauge" "haft_backend_available" ["backend"]
        "Whether requests are let through to a backend: 1, or 0 while it is left alone because it failed";
    store_seconds: Histograms<OperationLabels> = Family::new_with_constructor(writes),
        "histogram" "haft_store_operation_duration_seconds" ["operation"]
        "How long the store took";
    store_errors: Family<StoreErrorLabels, Counter> = Family::default(),
        "counter" "haft_store_errors" ["operation", "error"]
        "Operations that the store could not do: busy or failed";
    spans: Family<OutcomeLabels, Counter> = Family::default(),
        "counter" "haft_spans" ["outcome"]
        "Spans that were exported, or dropped because the collector could not take them";
}

impl Meters {
    /// Counts what became of a run's tools.
    pub(crate) fn disclosed(&self, counters: &Counters) {
        self.tools_injected.inc_by(counters.tools_injected);
        self.disclosures.inc_by(counters.disclosure_dynamic);
        self.disclosure_restarts
            .inc_by(counters.disclosure_restarts);
        self.tools_picked.inc_by(counters.tools_picked);
        self.calls_suppressed.inc_by(counters.calls_suppressed);
    }
}
