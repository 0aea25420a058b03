//! What a configuration says: its tables and keys, as they stand in the file.
//!
//! Nothing is looked up here and no default is filled in, except in `[loop]`, whose options come
//! from the engine as they are.

use std::path::PathBuf;

use haft::LoopOptions;
use haft::models::{Adapter, ModelConfig};
use haft_hosted::FileSearchConfig;
use haft_server::{DialectChoice, UnsupportedTools};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::serde_words::unknown;
use super::values::{Age, Bytes, Limit, Listen, Origin};

/// The whole file. `[mcp.*]` is told apart before.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FileConfig {
    pub(super) server: ServerTable,
    pub(super) model: Vec<ModelConfig>,
    #[serde(rename = "loop")]
    pub(super) loop_options: LoopOptions,
    pub(super) retention: RetentionTable,
    pub(super) limits: LimitsTable,
    pub(super) search_files: Option<FileSearchConfig>,
}

/// `[server]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServerTable {
    pub(super) listen: Option<Listen>,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) default_model: Option<String>,
    pub(super) dialect: Option<DialectChoice>,
    pub(super) unsupported_tools: Option<UnsupportedTools>,
    pub(super) max_body_bytes: Option<Bytes>,
    pub(super) max_runs: Option<usize>,
    pub(super) api_key_env: Option<String>,
    pub(super) api_key_file: Option<PathBuf>,
    pub(super) allow_anonymous: Option<bool>,
    pub(super) allowed_origins: Option<Vec<Origin>>,
    pub(super) drain_wait: Option<Age>,
    pub(super) stop_wait: Option<Age>,
}

/// `[limits]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LimitsTable {
    pub(super) requests_per_minute: Option<u32>,
    pub(super) concurrent: Option<u32>,
    pub(super) max_waiting: Option<usize>,
    pub(super) max_wait: Option<Age>,
    pub(super) max_header_bytes: Option<Bytes>,
    pub(super) max_headers: Option<usize>,
    pub(super) max_input_items: Option<usize>,
    pub(super) max_tools: Option<usize>,
}

/// `[retention]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RetentionTable {
    pub(super) max_age: Option<Limit<Age>>,
    pub(super) max_bytes: Option<Limit<Bytes>>,
}

/// The keys of every table, in the words of whoever reads it.
pub(super) fn tables() -> [(&'static str, Vec<String>); 7] {
    [
        ("`[server]`", keys_of::<ServerTable>()),
        ("`[[model]]`", keys_of::<ModelConfig>()),
        ("`[loop]`", keys_of::<LoopOptions>()),
        ("`[retention]`", keys_of::<RetentionTable>()),
        ("`[limits]`", keys_of::<LimitsTable>()),
        ("`[search_files]`", keys_of::<FileSearchConfig>()),
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
