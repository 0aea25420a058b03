//! What a host is given.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haft_core::{Approver, Model};
use haft_engine::LoopOptions;
use haft_mcp::{ConnectOptions, Pool};
use haft_models::http::Http;
use haft_models::{ModelConfig, from_config_with};

use crate::manifest::Manifest;
use crate::natives::Permissions;
use crate::vm::Limits;

/// Where environment variables are read from.
pub(super) type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Who hears warnings: a server that cannot start, a signature that a server does not have.
pub(super) type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// What a host is given. Everything has a default that reaches nothing.
#[derive(Clone)]
pub struct Setup {
    /// The manifest, as it lies beside the program. Commands, keys and variables that it names are granted by
    /// that; what only a file of IR or the source names needs permission.
    pub manifest: Option<Manifest>,
    /// What the program may reach: the command line's, together with the manifest's.
    pub permissions: Permissions,
    /// How much a program may use. Of served tools the steps count for each call.
    pub limits: Limits,
    /// Answers every model offline (§15) and starts no MCP server: `--mock`, and tests without `--live`.
    pub mock: bool,
    /// What becomes of emits on standard output.
    pub emits: EmitFormat,
    /// Models that are known beside the connections of the manifest, by the name of a connection: the
    /// `[[model]]` entries of `haft.toml` are [`Entries`].
    pub models: Option<Arc<dyn Models>>,
    /// MCP servers that are known beside those of the manifest and the source, by their label: those of
    /// `haft.toml`. They belong to whoever gives them: the host does not end them.
    pub servers: Option<Pool>,
    /// How the program's own MCP servers and agents are started and reached.
    pub connect: ConnectOptions,
    /// Where keys and other variables that connections, servers and agents name are read from.
    pub variables: Variables,
    /// What bounds the runs of models. What the language fixes is set on top of it: rounds, no last turn,
    /// calls in order, no tool held back.
    pub options: LoopOptions,
    /// Who is asked about calls of tools that need approval, such as those of servers whose settings say so.
    pub approver: Option<Arc<dyn Approver>>,
    /// How long one call of a program's tool may take in all, with what it waits for.
    pub tool_timeout: Duration,
    /// How long one call of a served tool may compute.
    pub call_limit: Duration,
    /// Who hears warnings; standard error is a good place. Without a line end.
    pub warn: Warn,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            manifest: None,
            permissions: Permissions::default(),
            limits: Limits::default(),
            mock: false,
            emits: EmitFormat::Text,
            models: None,
            servers: None,
            connect: ConnectOptions::default(),
            variables: Arc::new(haft_models::process_environment),
            options: LoopOptions::default(),
            approver: None,
            tool_timeout: Duration::from_mins(10),
            call_limit: Duration::from_secs(30),
            warn: Arc::new(|_| {}),
        }
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("permissions", &self.permissions)
            .field("limits", &self.limits)
            .field("mock", &self.mock)
            .field("emits", &self.emits)
            .finish_non_exhaustive()
    }
}

/// What becomes of emits on standard output (§10). Handlers of [`Host::on_emit`](super::Host::on_emit)
/// hear of them in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmitFormat {
    /// `[emit:channel] payload`.
    #[default]
    Text,
    /// One object per line: `{"channel":…,"payload":…}`.
    Json,
    /// Nothing is shown.
    Hidden,
}

/// Models that are known by the name of a connection.
pub trait Models: Send + Sync {
    /// The model `base` at this connection, the connection's own if no other is named. None if there is
    /// no such connection; an error, in words, if there is one and it cannot be used.
    fn model(&self, connection: &str, base: Option<&str>)
    -> Option<Result<Arc<dyn Model>, String>>;
}

/// `[[model]]` entries as connections: the name or an alias of an entry is the connection's name, its
/// `model` what is asked for where a program names none.
///
/// ```
/// use haft_concerto::host::{Entries, Models};
/// use haft_models::{Adapter, ModelConfig};
///
/// let entries = Entries::new(vec![ModelConfig::new("local", Adapter::Ollama)]);
/// let model = entries.model("local", Some("qwen3")).unwrap().unwrap();
/// assert_eq!(model.name(), "qwen3");
/// assert!(entries.model("remote", None).is_none());
/// ```
pub struct Entries {
    list: Vec<ModelConfig>,
    variables: Variables,
    http: Http,
}

impl Entries {
    /// These entries, with keys from the process's environment.
    pub fn new(entries: Vec<ModelConfig>) -> Self {
        Self {
            list: entries,
            variables: Arc::new(haft_models::process_environment),
            http: Http::default(),
        }
    }

    /// With keys from elsewhere.
    #[must_use]
    pub fn variables(
        mut self,
        variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.variables = Arc::new(variables);
        self
    }
}

impl Models for Entries {
    fn model(
        &self,
        connection: &str,
        base: Option<&str>,
    ) -> Option<Result<Arc<dyn Model>, String>> {
        let entry = self.list.iter().find(|entry| {
            entry.name == connection || entry.aliases.iter().any(|alias| alias == connection)
        })?;
        let mut entry = entry.clone();
        if let Some(base) = base {
            entry.model = Some(base.to_owned());
        }
        let model = from_config_with(&entry, &*self.variables, &self.http);
        Some(model.map_err(|error| error.to_string()))
    }
}
