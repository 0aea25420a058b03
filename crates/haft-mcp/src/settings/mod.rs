//! What haft is told about one server.
//!
//! Two stages: [`ServerConfig`] is what a file says, key by key; [`ServerSettings`] is what follows
//! from it, with the secrets read and nothing left to be wrong.

mod config;
mod limits;
mod oauth;
mod secrets;
mod tenants;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use haft_core::{NoSchemaMode, OnRepaired};
use reqwest::Url;
use schemars::JsonSchema;
use serde::Deserialize;

pub use self::config::{ServerConfig, SettingsError, ToolConfig, VariableLookup};
pub use self::limits::{Limits, Timeouts};
pub use self::oauth::{Grant, OAuthClient, OAuthConfig, OAuthSettings, Proof};
pub(crate) use self::tenants::TenantSettings;
pub use self::tenants::{TenantConfig, TenantCredentials, is_tenant_name};
use crate::names::Label;
use crate::secret::{Redactor, Secret};

/// Everything about one server.
///
/// ```
/// use haft_mcp::{Label, ServerSettings};
/// let files = ServerSettings::stdio(Label::new("files")?, "npx")
///     .args(["-y", "@modelcontextprotocol/server-filesystem", "/srv"]);
/// assert!(!files.trusted);
/// # Ok::<(), haft_core::NameError>(())
/// ```
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct ServerSettings {
    /// What it is called.
    pub label: Label,
    /// How it is reached.
    pub transport: TransportSettings,
    /// What it is for, in the operator's words.
    pub description: Option<String>,
    /// How long each thing may take.
    pub timeouts: Timeouts,
    /// How much of each thing there may be.
    pub limits: Limits,
    /// Whether its annotations and instructions are believed.
    pub trusted: bool,
    /// Whether it is connected to at the start, not at the first call.
    pub warm: bool,
    /// After how long without a call it is stopped; never if not set.
    pub idle_shutdown: Option<std::time::Duration>,
    /// Whether it may answer a call with a task, whose result is polled.
    pub tasks: bool,
    /// The raw names of the only tools that are used; all if not set.
    pub allow: Option<Vec<String>>,
    /// The raw names of tools that are not used. It wins over `allow`.
    pub deny: Vec<String>,
    /// Which calls a person is asked about.
    pub approve: Approve,
    /// Whether its tools are held back until searched for.
    pub defer: Defer,
    /// What becomes of tools that changed since they were first seen.
    pub pin: Option<Pin>,
    /// What becomes of calls whose arguments were repaired, or that were recovered from text.
    pub on_repaired: Option<OnRepaired>,
    /// Which form of a result the model reads.
    pub prefer: Prefer,
    /// Whether a result that does not fit its schema is an error.
    pub strict_output: bool,
    /// What differs for single tools, by raw name.
    pub tools: BTreeMap<String, ToolSettings>,
    /// The credentials of single tenants, in place of those of `transport`; by tenant, for addresses only.
    pub tenants: BTreeMap<String, TenantCredentials>,
    /// Whether a tenant without credentials of its own is refused, instead of using those of `transport`.
    pub requires_tenant_credentials: bool,
}

/// What differs for one tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolSettings {
    /// How long it may be silent.
    pub idle_timeout: Option<std::time::Duration>,
    /// How long it may take in all.
    pub call_timeout: Option<std::time::Duration>,
    /// Which calls a person is asked about.
    pub approve: Option<Approve>,
    /// Whether it is held back until searched for.
    pub defer: Option<Defer>,
    /// What becomes of calls whose arguments were repaired, or that were recovered from text.
    pub on_repaired: Option<OnRepaired>,
    /// Which form of a result the model reads.
    pub prefer: Option<Prefer>,
    /// Whether a result that does not fit its schema is an error.
    pub strict_output: Option<bool>,
    /// How much text of a result the model reads, in bytes.
    pub result_text_bytes: Option<usize>,
    /// What it may do if it has no schema. Without this such a tool is left out.
    pub no_schema_mode: Option<NoSchemaMode>,
    /// Whether its result changes by itself, so that equal calls in a row are meant.
    pub polling: bool,
}

/// How a server is reached.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TransportSettings {
    /// A child process. Only ever from the operator.
    Stdio(StdioSettings),
    /// An address.
    Http(HttpSettings),
    /// A transport that is given beside the settings, from code only.
    Custom,
}

/// A child process.
#[derive(Clone, Default)]
pub struct StdioSettings {
    /// The program.
    pub command: String,
    /// What it is started with.
    pub args: Vec<String>,
    /// Its variables beside the few that every child gets.
    pub env: BTreeMap<String, Secret>,
    /// Where it is started.
    pub cwd: Option<PathBuf>,
}

/// An address.
#[derive(Clone)]
pub struct HttpSettings {
    /// The address.
    pub url: Url,
    /// Headers, sent to this origin only.
    pub headers: BTreeMap<String, Secret>,
    /// A bearer token, sent to this origin only.
    pub bearer: Option<Secret>,
    /// Which of the two protocols it speaks.
    pub kind: HttpKind,
    /// How haft shows who it is, where there is neither a bearer token nor a header for that.
    pub oauth: Option<OAuthSettings>,
}

impl fmt::Debug for StdioSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments often hold tokens.
        f.debug_struct("StdioSettings")
            .field("command", &self.command)
            .field("args", &self.args.len())
            .field("env", &self.env)
            .field("cwd", &self.cwd)
            .finish()
    }
}

impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // So do paths and queries.
        f.debug_struct("HttpSettings")
            .field("origin", &self.url.origin().ascii_serialization())
            .field("headers", &self.headers)
            .field("bearer", &self.bearer)
            .field("kind", &self.kind)
            .field("oauth", &self.oauth)
            .finish()
    }
}

/// Which protocol a server at an address speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpKind {
    /// Whatever it turns out to be; the older one is tried last.
    #[default]
    Auto,
    /// Streamable HTTP.
    Streamable,
    /// HTTP with an event stream, as in 2024-11-05.
    Sse,
}

/// Which calls a person is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Approve {
    /// None.
    #[default]
    Never,
    /// All that are not known to change nothing.
    Writes,
    /// Every one.
    Always,
}

/// Whether tools are held back until searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Defer {
    /// Where there are many.
    #[default]
    Auto,
    /// Yes.
    Always,
    /// No.
    Never,
}

impl From<Defer> for haft_core::Defer {
    fn from(defer: Defer) -> Self {
        match defer {
            Defer::Auto => Self::Auto,
            Defer::Always => Self::Always,
            Defer::Never => Self::Never,
        }
    }
}

/// What becomes of tools that changed since they were first seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pin {
    /// They are held back until accepted.
    Hold,
    /// They are used, and the difference is told.
    Warn,
    /// They are used.
    Off,
}

/// Which form of a result the model reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Prefer {
    /// The content, unless it is empty.
    #[default]
    Content,
    /// The structured content, if there is any.
    Structured,
}

impl HttpSettings {
    /// Whether a token was given by hand. Then no other one is looked for.
    pub(crate) fn has_token(&self) -> bool {
        let is_header = |name: &String| name.eq_ignore_ascii_case("authorization");
        self.bearer.is_some() || self.headers.keys().any(is_header)
    }
}

impl ServerSettings {
    /// A server with these and otherwise the defaults.
    pub fn new(label: Label, transport: TransportSettings) -> Self {
        Self {
            label,
            transport,
            description: None,
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            trusted: false,
            warm: false,
            idle_shutdown: None,
            tasks: false,
            allow: None,
            deny: Vec::new(),
            approve: Approve::default(),
            defer: Defer::default(),
            pin: None,
            on_repaired: None,
            prefer: Prefer::default(),
            strict_output: false,
            tools: BTreeMap::new(),
            tenants: BTreeMap::new(),
            requires_tenant_credentials: false,
        }
    }

    /// A child process.
    pub fn stdio(label: Label, command: impl Into<String>) -> Self {
        let settings = StdioSettings {
            command: command.into(),
            ..StdioSettings::default()
        };
        Self::new(label, TransportSettings::Stdio(settings))
    }

    /// A server at an address.
    pub fn http(label: Label, url: Url) -> Self {
        let settings = HttpSettings {
            url,
            headers: BTreeMap::new(),
            bearer: None,
            kind: HttpKind::default(),
            oauth: None,
        };
        Self::new(label, TransportSettings::Http(settings))
    }

    /// What a child process is started with. Nothing for other transports.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        if let TransportSettings::Stdio(stdio) = &mut self.transport {
            stdio.args = args.into_iter().map(Into::into).collect();
        }
        self
    }

    /// Whether a tool of this raw name is used.
    pub fn admits(&self, raw: &str) -> bool {
        let is_allowed = self
            .allow
            .as_ref()
            .is_none_or(|allowed| allowed.iter().any(|name| name == raw));
        is_allowed && !self.deny.iter().any(|name| name == raw)
    }

    /// Whether this tool is held back until searched for.
    pub fn deferral(&self, raw: &str) -> Defer {
        let own = self.tools.get(raw).and_then(|tool| tool.defer);
        own.unwrap_or(self.defer)
    }

    /// The limits of a call of this tool: idle and in all.
    pub fn call_limits(&self, raw: &str) -> (std::time::Duration, std::time::Duration) {
        let tool = self.tools.get(raw);
        let idle = tool
            .and_then(|tool| tool.idle_timeout)
            .unwrap_or(self.timeouts.idle);
        let total = tool
            .and_then(|tool| tool.call_timeout)
            .unwrap_or(self.timeouts.call);
        (idle, total)
    }

    /// Whether a result of this tool that is not what the tool promises is an error.
    pub fn strict_output(&self, raw: &str) -> bool {
        let tool = self.tools.get(raw);
        tool.and_then(|tool| tool.strict_output)
            .unwrap_or(self.strict_output)
    }

    pub(crate) fn redactor(&self) -> Redactor {
        match &self.transport {
            TransportSettings::Stdio(stdio) => Redactor::new(stdio.env.values().cloned()),
            TransportSettings::Http(http) => {
                let headers = http.headers.values().cloned();
                let password = http.url.password().map(Secret::new);
                let query = http.url.query_pairs().map(|(_, value)| Secret::new(value));
                let client = http.oauth.as_ref().and_then(OAuthSettings::secret).cloned();
                let all = headers
                    .chain(http.bearer.clone())
                    .chain(client)
                    .chain(password)
                    .chain(query);
                Redactor::new(all)
            }
            TransportSettings::Custom => Redactor::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_wins_over_allow() {
        let mut settings = ServerSettings::stdio(Label::new("files").unwrap(), "x");
        assert!(settings.admits("read"));
        settings.allow = Some(vec!["read".into(), "write".into()]);
        settings.deny = vec!["write".into()];
        assert!(settings.admits("read"));
        assert!(!settings.admits("write"));
        assert!(!settings.admits("list"));
    }

    #[test]
    fn a_tool_has_its_own_limits() {
        let mut settings = ServerSettings::stdio(Label::new("files").unwrap(), "x");
        let slow = std::time::Duration::from_mins(30);
        let tool = ToolSettings {
            call_timeout: Some(slow),
            ..ToolSettings::default()
        };
        settings.tools.insert("slow".into(), tool);
        assert_eq!(settings.call_limits("slow"), (settings.timeouts.idle, slow));
        assert_eq!(
            settings.call_limits("x"),
            (settings.timeouts.idle, settings.timeouts.call)
        );
    }
}
