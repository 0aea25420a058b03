//! What a configuration means: every default filled in, every path and key looked up.

use std::path::{Path, PathBuf};
use std::time::Duration;

use haft::LoopOptions;
use haft::models::http::Secret;
use haft::models::{Lookup, ModelConfig};
use haft_hosted::FileSearchConfig;
use haft_server::access::Limits;
use haft_server::{DialectChoice, UnsupportedTools};

use super::complaint::Complaint;
use super::concerto::{self, ConcertoConfig};
use super::document::{Document, Source, Step};
use super::file::{RetentionTable, ServerTable};
use super::gateway::{self, GatewayConfig};
use super::keys::{self, KeySource};
use super::limits;
use super::mcp::{self, McpServer, Missing};
use super::models;
use super::prompt::{self, PromptConfig};
use super::values::{Age, Bytes, Limit, Listen, Origin};
use super::variables::Variables;
use super::watch::{self, Watching};
use crate::user_dirs;

/// Everything that a server must know.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) listen: Listen,
    pub(crate) data_dir: PathBuf,
    pub(crate) dialect: DialectChoice,
    pub(crate) unsupported_tools: UnsupportedTools,
    pub(crate) max_body_bytes: usize,
    pub(crate) max_runs: usize,
    pub(crate) limits: Limits,
    pub(crate) api_key: Option<ClientKey>,
    /// Whether requests may come without a key from everywhere.
    pub(crate) allow_anonymous: bool,
    pub(crate) allowed_origins: Vec<Origin>,
    pub(crate) drain_wait: Duration,
    pub(crate) stop_wait: Duration,
    /// Of the models; none where the models are still to be found.
    pub(crate) default_model: Option<String>,
    /// As the file or the command line say; empty where neither does.
    pub(crate) models: Vec<ModelConfig>,
    pub(crate) loop_options: LoopOptions,
    pub(crate) retention: Retention,
    pub(crate) watching: Watching,
    /// What may be searched, if anything.
    pub(crate) search_files: Option<FileSearchConfig>,
    /// Programs whose tools are there, too.
    pub(crate) concerto: ConcertoConfig,
    /// The MCP servers, in their order.
    pub(crate) mcp: Vec<McpServer>,
    /// What there is to say about those of another program's file.
    pub(crate) mcp_notes: Vec<String>,
    /// The hosts of those that requests may bring along.
    pub(crate) mcp_hosts: Vec<String>,
    /// The hosts of images and files that requests may name.
    pub(crate) content_hosts: Vec<String>,
    /// What a model is told, if anything.
    pub(crate) prompt: Option<PromptConfig>,
    /// The MCP server that haft itself is at `/mcp`, if it is one.
    pub(crate) gateway: Option<GatewayConfig>,
    /// Further endpoints of it, at `/mcp/NAME`, in the order of the file.
    pub(crate) endpoints: Vec<(String, GatewayConfig)>,
}

/// The key that clients must send.
#[derive(Debug, Clone)]
pub(crate) struct ClientKey {
    pub(crate) secret: Secret,
    /// Where it came from: what may be shown of it.
    pub(crate) source: KeySource,
}

/// How long stored responses last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retention {
    pub(crate) max_age: Option<Duration>,
    pub(crate) max_bytes: Option<u64>,
}

/// What the command line says; it wins over everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    pub(crate) listen: Option<Listen>,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) allow_anonymous: bool,
    /// There is a gateway, whether the file has one or not.
    pub(crate) has_gateway: bool,
    /// In place of the file's models.
    pub(crate) model: Option<ModelConfig>,
    /// No client comes in, so their key is not looked up.
    pub(crate) has_no_door: bool,
}

/// Makes sense of the layers; the first thing that is wrong is the complaint.
pub(crate) fn resolve(
    source: &Source,
    variables: &Variables,
    flags: Flags,
    lookup: Lookup<'_>,
) -> Result<Resolved, Complaint> {
    let document = Document::parse(source, variables)?;
    let said = document.read()?;
    check_limits(&document, &said.loop_options)?;
    watch::check(&document, &said)?;
    let watching = if flags.has_no_door {
        Watching {
            calls: said.log.calls.unwrap_or_default(),
            ..Watching::default()
        }
    } else {
        watch::watching(&document, &said, lookup)?
    };
    let server = said.server;
    let in_server = |key| [Step::Key("server"), Step::Key(key)];

    let max_body_bytes = server.max_body_bytes.map_or(64 << 20, |Bytes(bytes)| bytes);
    // More than can be addressed is as good as no limit.
    let max_body_bytes = usize::try_from(max_body_bytes).unwrap_or(usize::MAX);
    let max_runs = server.max_runs.unwrap_or(256);
    for (key, is_zero) in [
        ("max_body_bytes", max_body_bytes == 0),
        ("max_runs", max_runs == 0),
    ] {
        if is_zero {
            let message = format!("`{key}` must be more than 0");
            return Err(document.complain(&in_server(key), message));
        }
    }
    let data_dir = data_dir_of(&document, &server, flags.data_dir)?;
    let api_key = if flags.has_no_door {
        None
    } else {
        keys::client_key(&document, server.api_key_env, server.api_key_file, lookup)?
    };
    let (models, default_model) = if let Some(model) = flags.model {
        (vec![model], None)
    } else {
        let models = models::checked(&document, said.model, lookup)?;
        let default_model = models::default_model(&document, &models, server.default_model)?;
        (models, default_model)
    };
    let missing = if flags.has_no_door {
        Missing::Note
    } else {
        Missing::Complain
    };
    let described = said.mcp.0.iter();
    let mut described: prompt::Descriptions = described
        .map(|(name, server)| (name.clone(), server.description.clone()))
        .collect();
    let files = server.mcp_servers;
    let servers = mcp::servers(&document, said.mcp, files, missing, lookup)?;
    for server in &servers.servers {
        let label = server.label.to_string();
        described.entry(label).or_default();
    }
    let endpoints = gateway::endpoints(&document, said.gateway, &servers.servers)?;
    let gateway = endpoints.own;
    Ok(Resolved {
        prompt: prompt::prompt(&document, said.prompt, &described)?,
        concerto: concerto::concerto(&document, said.concerto)?,
        mcp: servers.servers,
        mcp_notes: servers.notes,
        mcp_hosts: mcp::hosts(&document, "mcp_hosts", server.mcp_hosts)?,
        content_hosts: mcp::hosts(&document, "content_hosts", server.content_hosts)?,
        gateway: gateway.or_else(|| flags.has_gateway.then(GatewayConfig::default)),
        endpoints: endpoints.named,
        listen: flags.listen.or(server.listen).unwrap_or_default(),
        data_dir,
        dialect: server.dialect.unwrap_or_default(),
        unsupported_tools: server.unsupported_tools.unwrap_or_default(),
        max_body_bytes,
        max_runs,
        limits: limits::limits(&document, &said.limits)?,
        api_key,
        allow_anonymous: flags.allow_anonymous || server.allow_anonymous.unwrap_or_default(),
        allowed_origins: server.allowed_origins.unwrap_or_default(),
        drain_wait: server.drain_wait.map_or(Duration::ZERO, |Age(wait)| wait),
        stop_wait: server
            .stop_wait
            .map_or(Duration::from_secs(10), |Age(wait)| wait),
        default_model,
        models,
        loop_options: said.loop_options,
        retention: retention(&said.retention),
        watching,
        search_files: said.search_files.map(|search| {
            let path = [Step::Key("search_files"), Step::Key("folders")];
            search.relative_to(document.folder_of(&path))
        }),
    })
}

/// The models, for whoever asks them later or never: no key is looked up.
pub(super) fn described_models(
    source: &Source,
    variables: &Variables,
) -> Result<Vec<ModelConfig>, Complaint> {
    let document = Document::parse(source, variables)?;
    let said = document.read()?;
    models::described(&document, said.model)
}

/// Where the data is, for whoever needs nothing else of the configuration: models and their keys are
/// not looked at.
pub(crate) fn data_dir(
    source: &Source,
    variables: &Variables,
    flag: Option<PathBuf>,
) -> Result<PathBuf, Complaint> {
    let document = Document::parse(source, variables)?;
    let said = document.read()?;
    data_dir_of(&document, &said.server, flag)
}

fn data_dir_of(
    document: &Document<'_>,
    server: &ServerTable,
    flag: Option<PathBuf>,
) -> Result<PathBuf, Complaint> {
    let path = [Step::Key("server"), Step::Key("data_dir")];
    if server.data_dir.as_deref().is_some_and(is_empty) {
        return Err(document.complain(&path, "the folder's name is empty"));
    }
    Ok(flag.unwrap_or_else(|| {
        let user = user_dirs::data().filter(|_| document.is_of_user());
        let folder = server.data_dir.clone().or(user);
        let folder = folder.unwrap_or_else(|| "haft-data".into());
        document.folder_of(&path).join(folder)
    }))
}

fn is_empty(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

fn retention(said: &RetentionTable) -> Retention {
    const DAY: Duration = Duration::from_hours(24);
    let max_age = said.max_age.unwrap_or(Limit::At(Age(30 * DAY)));
    let max_bytes = said.max_bytes.unwrap_or(Limit::At(Bytes(10 << 30)));
    Retention {
        max_age: max_age.get().map(|Age(age)| age),
        max_bytes: max_bytes.get().map(|Bytes(bytes)| bytes),
    }
}

/// Limits that no run could start with.
fn check_limits(document: &Document<'_>, options: &LoopOptions) -> Result<(), Complaint> {
    let zero = [
        ("max_rounds", options.max_rounds == 0),
        ("max_tool_calls", options.max_tool_calls == Some(0)),
        ("max_input_tokens", options.max_input_tokens == Some(0)),
        ("max_output_tokens", options.max_output_tokens == Some(0)),
        ("max_total_tokens", options.max_total_tokens == Some(0)),
        ("max_parallel", options.max_parallel == 0),
        ("tool_timeout", options.tool_timeout.is_zero()),
        ("request_timeout", options.request_timeout.is_zero()),
    ];
    if let Some((key, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
        let path = [Step::Key("loop"), Step::Key(key)];
        return Err(document.complain(&path, format!("`{key}` must be more than 0")));
    }
    let second = Duration::from_secs(1);
    match options.deadline {
        Some(deadline) if deadline < second => {
            let path = [Step::Key("loop"), Step::Key("deadline")];
            Err(document.complain(&path, "no run is done in less than a second"))
        }
        _ => Ok(()),
    }
}
