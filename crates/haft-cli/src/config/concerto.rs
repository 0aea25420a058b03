//! `[concerto]`: programs whose tools are there beside haft's own.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::complaint::Complaint;
use super::document::{Document, Step};
use super::values::{Age, Bytes};
use crate::arguments::EVERYTHING;

/// How much memory the values of one program may take where nothing is said.
const MEMORY: u64 = 256 << 20;

/// How long one call may compute where nothing is said.
const CALL: Duration = Duration::from_secs(30);

/// `[concerto]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ConcertoTable {
    /// The programs: `.conc`, `.conc-ir`, or folders with a `Concerto.toml`.
    pub(super) files: Option<Vec<PathBuf>>,
    /// The folders whose files they may read and write, beside what their manifests grant; `"*"` for all.
    pub(super) allow_fs: Option<Vec<String>>,
    /// The hosts that they may send requests to; `"*"` for all.
    pub(super) allow_net: Option<Vec<String>>,
    /// The environment variables that they may read; `"*"` for all.
    pub(super) allow_env: Option<Vec<String>>,
    /// Whether programs that `mcp` blocks of their sources name may be started.
    pub(super) allow_process: Option<bool>,
    /// How much memory the values of one program may take, all calls together; 256 MiB where nothing is
    /// said.
    pub(super) max_memory: Option<Bytes>,
    /// How long one call may compute, 30 s where nothing is said; waiting does not count.
    pub(super) call_limit: Option<Age>,
}

/// The programs of a configuration, and what they may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConcertoConfig {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) allow_fs: Vec<String>,
    pub(crate) allow_net: Vec<String>,
    pub(crate) allow_env: Vec<String>,
    pub(crate) allow_process: bool,
    /// In MiB.
    pub(crate) max_memory: usize,
    pub(crate) call_limit: Duration,
}

/// What the table means.
pub(super) fn concerto(
    document: &Document<'_>,
    said: ConcertoTable,
) -> Result<ConcertoConfig, Complaint> {
    let path = |key| [Step::Key("concerto"), Step::Key(key)];
    let Bytes(memory) = said.max_memory.unwrap_or(Bytes(MEMORY));
    let Age(call_limit) = said.call_limit.unwrap_or(Age(CALL));
    for (key, is_nothing, least) in [
        ("max_memory", memory < 1 << 20, "at least 1 MiB"),
        ("call_limit", call_limit.is_zero(), "more than 0"),
    ] {
        if is_nothing {
            let message = format!("`{key}` must be {least}");
            return Err(document.complain(&path(key), message));
        }
    }
    let folder = document.folder_of(&path("files"));
    let files = said.files.unwrap_or_default();
    let granted = document.folder_of(&path("allow_fs"));
    let allow_fs = said.allow_fs.unwrap_or_default();
    let allow_fs = allow_fs.into_iter().map(|name| match name.as_str() {
        EVERYTHING => name,
        name => granted.join(name).to_string_lossy().into_owned(),
    });
    Ok(ConcertoConfig {
        files: files.into_iter().map(|it| folder.join(it)).collect(),
        allow_fs: allow_fs.collect(),
        allow_net: said.allow_net.unwrap_or_default(),
        allow_env: said.allow_env.unwrap_or_default(),
        allow_process: said.allow_process.unwrap_or_default(),
        max_memory: usize::try_from(memory >> 20).unwrap_or(usize::MAX),
        call_limit,
    })
}
