//! What a configuration says: its tables and keys, as they stand in the file.
//!
//! Nothing is looked up here and no default is filled in, except in `[loop]`, whose options come
//! from the engine as they are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use haft::LoopOptions;
use haft::models::{Adapter, HeaderSource, ModelConfig};
use haft_hosted::FileSearchConfig;
use haft_mcp::{OAuthConfig, ServerConfig, TenantConfig, ToolConfig};
use haft_server::{DialectChoice, UnsupportedTools};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::concerto::ConcertoTable;
use super::gateway::{EndpointTable, GatewayTable, RuleTable};
use super::mcp::{Files, McpTable};
use super::prompt::{PromptTable, SectionTable};
use super::serde_words::unknown;
use super::values::{Age, Bytes, Limit, Listen, Origin};
use super::watch::{CallRecording, LogFormat};

/// The whole file.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FileConfig {
    /// Where the server listens, who may ask, how it answers and when it stops.
    pub(super) server: ServerTable,
    /// The models: one entry each. Without any, one is looked for when the server starts.
    pub(super) model: Vec<ModelConfig>,
    /// What bounds a run. A request may lower a limit, never raise it.
    #[serde(rename = "loop")]
    pub(super) loop_options: LoopOptions,
    /// How long stored responses and conversations last.
    pub(super) retention: RetentionTable,
    /// What requests may bring, what keys may ask for, and how many may wait.
    pub(super) limits: LimitsTable,
    /// What is logged, and how.
    pub(super) log: LogTable,
    /// Whether there is a `/metrics`, and who may read it.
    pub(super) metrics: MetricsTable,
    /// A collector that gets spans of requests, runs, requests to models and calls.
    pub(super) otlp: OtlpTable,
    /// A tool that searches the files of folders, for requests that name it.
    pub(super) search_files: Option<FileSearchConfig>,
    /// Concerto programs whose tools are there, too, for requests that name them.
    pub(super) concerto: ConcertoTable,
    /// haft's tools and those of its MCP servers as one MCP server, at `/mcp`. It is there if this table is,
    /// or with `haft serve --mcp`. A table `[gateway.NAME]` is a further endpoint at `/mcp/NAME`.
    pub(super) gateway: Option<GatewayTable>,
    /// What a model is told, as sections that are shown in full or as summaries that it can read. There is
    /// none unless there are sections, here or in a folder.
    pub(super) prompt: PromptTable,
    /// MCP servers, each under a name of its own: a program that is started (`command`) or an address
    /// (`url`). Nothing is started before it is needed.
    pub(super) mcp: McpTable,
}

/// `[server]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServerTable {
    /// Where to listen. `127.0.0.1` is for this machine alone; port 0 takes a free one.
    pub(super) listen: Option<Listen>,
    /// The folder where responses, conversations and keys are kept.
    pub(super) data_dir: Option<PathBuf>,
    /// The model for requests that name none; the first entry where nothing is said.
    pub(super) default_model: Option<String>,
    /// How answers are written where the specification and `OpenAI` differ.
    pub(super) dialect: Option<DialectChoice>,
    /// What becomes of hosted tools that a request asks for and nobody provides.
    pub(super) unsupported_tools: Option<UnsupportedTools>,
    /// How large a request may be.
    pub(super) max_body_bytes: Option<Bytes>,
    /// How many responses are made at the same time; requests beyond that wait in line.
    pub(super) max_runs: Option<usize>,
    /// The variable that holds a key of the tenant `default`, beside the keys of `haft keys`.
    pub(super) api_key_env: Option<String>,
    /// The file that holds such a key, in place of a variable.
    pub(super) api_key_file: Option<PathBuf>,
    /// Whether everybody who reaches the address may use it where there is no key.
    pub(super) allow_anonymous: Option<bool>,
    /// Pages of these origins may use the server from a browser.
    pub(super) allowed_origins: Option<Vec<Origin>>,
    /// Files of further MCP servers, as other clients write them: JSON with `mcpServers` or `servers`, with comments or
    /// not, or the `config.toml` of Codex. An entry that cannot be used is skipped.
    pub(super) mcp_servers: Option<Files>,
    /// The hosts of MCP servers that requests may bring along: names, `*.example.com`, `*` for every public
    /// one, or whole origins, which alone may be private or without TLS.
    pub(super) mcp_hosts: Option<Vec<String>>,
    /// The hosts of images, files and videos that requests name by address and the model's provider fetches: names,
    /// `*.example.com`, `*` for every public one, or whole origins, which alone may be private.
    pub(super) content_hosts: Option<Vec<String>>,
    /// How long the server says at `/readyz` that it is not ready, and still takes requests, when it is
    /// told to stop.
    pub(super) drain_wait: Option<Age>,
    /// How long what is under way may take to end then; as long again once it was cancelled.
    pub(super) stop_wait: Option<Age>,
}

/// `[limits]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LimitsTable {
    /// How many requests for a response a key may send in a minute; its own limit wins.
    pub(super) requests_per_minute: Option<u32>,
    /// How many of them it may have under way at once; its own limit wins.
    pub(super) concurrent: Option<u32>,
    /// How many requests may wait when `max_runs` are under way; four times as many as those where
    /// nothing is said.
    pub(super) max_waiting: Option<usize>,
    /// How long they may wait.
    pub(super) max_wait: Option<Age>,
    /// How many bytes all requests together may make the server hold: request bodies, unfinished WebSocket
    /// messages, answers of models (four times their size) and responses that are being written; the first
    /// 64 KiB of each do not count.
    pub(super) max_pending_bytes: Option<Bytes>,
    /// How many bytes the headers of a request may have.
    pub(super) max_header_bytes: Option<Bytes>,
    /// How many headers it may have.
    pub(super) max_headers: Option<usize>,
    /// How many items, or messages, it may bring.
    pub(super) max_input_items: Option<usize>,
    /// How many tools it may bring.
    pub(super) max_tools: Option<usize>,
}

/// `[retention]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RetentionTable {
    /// How long they are kept.
    pub(super) max_age: Option<Limit<Age>>,
    /// How much of them is kept; the oldest go first.
    pub(super) max_bytes: Option<Limit<Bytes>>,
}

/// `[log]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LogTable {
    /// What is logged, on standard error: a level, or a filter by module. The variable `HAFT_LOG` wins.
    /// Prompts, arguments, results and keys are never logged; of other libraries at most warnings are.
    pub(super) level: Option<String>,
    /// How its lines are written.
    pub(super) format: Option<LogFormat>,
    /// Whether each request leaves a line, never with its content.
    pub(super) access: Option<bool>,
    /// What the record of MCP calls through the gateway holds (`haft mcp calls`).
    pub(super) calls: Option<CallRecording>,
}

/// `[metrics]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MetricsTable {
    /// Whether there is a `/metrics` at all.
    pub(super) enabled: Option<bool>,
    /// Whether everybody may read `/metrics`; else those on this machine and those with a key.
    pub(super) public: Option<bool>,
}

/// `[otlp]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct OtlpTable {
    /// Where the collector is, over HTTP: spans go to `v1/traces` below it. Where nothing is said,
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` is heard.
    pub(super) endpoint: Option<String>,
    /// Headers for every export; what is secret comes from a variable.
    pub(super) headers: BTreeMap<String, HeaderSource>,
    /// What the server calls itself, else `OTEL_SERVICE_NAME`, else `haft`.
    pub(super) service_name: Option<String>,
    /// How many of the traces that begin here are recorded, from 0 to 1. Those of clients are recorded
    /// as they say.
    pub(super) sample_ratio: Option<f64>,
    /// Whether prompts, answers, arguments and results go along; those of responses that are not
    /// stored never do.
    pub(super) capture_content: Option<bool>,
}

/// The keys of every table, in the words of whoever reads it.
pub(super) fn tables() -> [(&'static str, Vec<String>); 20] {
    [
        ("`[server]`", keys_of::<ServerTable>()),
        ("`[[model]]`", keys_of::<ModelConfig>()),
        ("`[loop]`", keys_of::<LoopOptions>()),
        ("`[retention]`", keys_of::<RetentionTable>()),
        ("`[limits]`", keys_of::<LimitsTable>()),
        ("`[log]`", keys_of::<LogTable>()),
        ("`[metrics]`", keys_of::<MetricsTable>()),
        ("`[otlp]`", keys_of::<OtlpTable>()),
        ("`[search_files]`", keys_of::<FileSearchConfig>()),
        ("`[concerto]`", keys_of::<ConcertoTable>()),
        ("`[gateway]`", keys_of::<GatewayTable>()),
        ("`[gateway.NAME]`", keys_of::<EndpointTable>()),
        ("`[[gateway.rule]]`", keys_of::<RuleTable>()),
        ("`[prompt]`", keys_of::<PromptTable>()),
        ("`[[prompt.section]]`", keys_of::<SectionTable>()),
        ("`[mcp.NAME]`", keys_of::<ServerConfig>()),
        ("`[mcp.NAME.oauth]`", keys_of::<OAuthConfig>()),
        ("`[mcp.NAME.tenants.TENANT]`", keys_of::<TenantConfig>()),
        ("`[mcp.NAME.tools.TOOL]`", keys_of::<ToolConfig>()),
        ("the top of the file", keys_of::<FileConfig>()),
    ]
}

/// The adapters that there are.
pub(super) fn adapters() -> Vec<String> {
    known_to(serde_json::from_str::<Adapter>(r#""""#).err())
}

/// The keys that a table may have.
fn keys_of<T: DeserializeOwned>() -> Vec<String> {
    known_to(serde_json::from_str::<T>(r#"{"": 0}"#).err())
}

/// The list that serde gives to whoever names something else.
fn known_to(refused: Option<serde_json::Error>) -> Vec<String> {
    let message = refused.map(|error| error.to_string()).unwrap_or_default();
    unknown(&message).map_or_else(Vec::new, |unknown| unknown.known)
}
