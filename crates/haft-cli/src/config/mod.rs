//! The configuration of a server: defaults, then `haft.toml`, then variables, then flags.
//!
//! In two stages: what the layers say ([`file`], where every key is known and of its kind) and what
//! that means ([`resolve`], where defaults, paths and keys are looked up). What comes out is
//! [`Resolved`], or one [`Complaint`] that names file, line and column and says what to do. No key
//! is ever part of a complaint, and nothing is opened here but the files of keys and scripts.

mod bare_numbers;
pub(crate) mod client_entry;
pub(crate) mod client_file;
mod complaint;
mod concerto;
mod document;
mod door;
mod excerpt;
mod file;
mod gateway;
mod keys;
mod layered;
mod limits;
mod mcp;
mod models;
mod prompt;
mod prompt_build;
mod prompt_folder;
mod reference;
mod resolve;
mod schema;
mod serde_words;
mod values;
mod variables;
mod watch;

use std::path::Path;

use haft::LoopOptions;
use haft::models::{Adapter, ModelConfig, process_environment};

pub(crate) use complaint::{Complaint, Place};
pub(crate) use concerto::ConcertoConfig;
pub(crate) use document::Source;
pub(crate) use door::{Door, door};
pub(crate) use gateway::{GatewayConfig, GatewayMode};
pub(crate) use keys::{KeySource, read as read_key};
pub(crate) use mcp::{McpServer, check_form};
pub(crate) use prompt::PromptConfig;
pub(crate) use prompt_build::{build as build_prompt, check_tools, not_rendered};
pub(crate) use reference::reference;
pub(crate) use resolve::{Flags, Resolved, data_dir, resolve};
pub(crate) use schema::schema;
pub(crate) use values::{Age, Listen};
pub(crate) use variables::Variables;
#[cfg(feature = "otlp")]
pub(crate) use watch::Collector;
pub(crate) use watch::{CallRecording, FILTER_REMEDY, LogFormat, Watching};

/// What a configuration says to those who need neither its models nor its keys. What MCP servers need from
/// the environment may be missing.
pub(crate) fn without_models(named: Option<&Path>) -> Result<Resolved, Complaint> {
    let source = Source::named_or_usual(named)?;
    let variables = Variables::from_environment(std::env::vars_os())?;
    check_without_models(&source, &variables)
}

/// What a configuration says to Concerto programs.
#[derive(Debug, Clone, Default)]
pub(crate) struct ForPrograms {
    /// The models, which are connections. Whether their keys are there is seen when they are asked.
    pub(crate) models: Vec<ModelConfig>,
    /// The MCP servers, whose variables may be missing.
    pub(crate) mcp: Vec<McpServer>,
    pub(crate) loop_options: LoopOptions,
}

/// What a configuration says to Concerto programs, if there is one.
pub(crate) fn for_programs(named: Option<&Path>) -> Result<ForPrograms, Complaint> {
    let source = Source::named_or_usual(named)?;
    let variables = Variables::from_environment(std::env::vars_os())?;
    let config = check_without_models(&source, &variables)?;
    Ok(ForPrograms {
        models: resolve::described_models(&source, &variables)?,
        mcp: config.mcp,
        loop_options: config.loop_options,
    })
}

/// The same of layers that are there already.
pub(crate) fn check_without_models(
    source: &Source,
    variables: &Variables,
) -> Result<Resolved, Complaint> {
    let flags = Flags {
        model: Some(ModelConfig::new("offline", Adapter::Offline)),
        has_no_door: true,
        ..Flags::default()
    };
    resolve(source, variables, flags, &process_environment)
}

#[cfg(test)]
mod mcp_tests;
#[cfg(test)]
mod tests;

/// The keys of every table that can be written, for whoever tells of them.
#[cfg(test)]
pub(crate) fn keys_of_tables() -> std::collections::BTreeSet<String> {
    let tables = file::tables()
        .into_iter()
        .filter(|(table, _)| table.starts_with('`'));
    tables.flat_map(|(_, keys)| keys).collect()
}
