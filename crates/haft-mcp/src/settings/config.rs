//! What a file says about a server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use haft_core::{NoSchemaMode, OnRepaired};
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error as _};

use super::oauth::OAuthConfig;
use super::secrets::{expand, token_in};
use super::{
    Approve, Defer, HttpKind, HttpSettings, Pin, Prefer, ServerSettings, StdioSettings,
    TenantConfig, TenantCredentials, ToolSettings, TransportSettings, is_tenant_name,
};
use crate::names::Label;
use crate::secret::Secret;

/// The bounds of `max_message_bytes`: an ordinary list fits, and memory does too.
const MIN_MESSAGE_BYTES: usize = 64 * 1024;
const MAX_MESSAGE_BYTES: usize = 1024 * 1024 * 1024;

/// Reads variables of the environment.
pub type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// One server, as a file describes it: either a `command` or a `url`.
///
/// ```
/// # use haft_mcp::{Label, ServerConfig};
/// let config: ServerConfig = serde_json::from_value(serde_json::json!({
///     "url": "https://mcp.example.com/mcp",
///     "bearer_env": "EXAMPLE_TOKEN",
///     "call_timeout": 30,
/// }))?;
/// let settings = config.resolve(Label::new("example")?, &|_| Some("secret".into()))?;
/// assert_eq!(settings.timeouts.call.as_secs(), 30);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct ServerConfig {
    /// The program of a server that runs as a child process. Here and in `args`, `env`, `cwd`, `url` and `headers`,
    /// `${NAME}` stands for the environment variable of that name, `${NAME:-text}` for `text` where it is not set,
    /// and `$${` for `${` itself.
    pub command: Option<String>,
    /// What the program is started with.
    pub args: Vec<String>,
    /// Variables of the program beside `PATH`, `HOME` and the like. No other variable of haft reaches the program:
    /// `${NAME}` in a value passes one on.
    pub env: BTreeMap<String, Secret>,
    /// Where the program is started.
    pub cwd: Option<PathBuf>,
    /// The address of a server that is reached over HTTP.
    pub url: Option<String>,
    /// Headers that go with every request to that address.
    pub headers: BTreeMap<String, Secret>,
    /// The variable that holds a bearer token.
    pub bearer_env: Option<String>,
    /// The file that holds a bearer token.
    pub bearer_file: Option<PathBuf>,
    /// Which protocol the address speaks.
    pub transport: Option<HttpKind>,
    /// How haft shows who it is, where a token is not given by hand.
    pub oauth: Option<OAuthConfig>,
    /// What the server is for.
    pub description: Option<String>,
    /// Whether it is connected to at the start, not at the first call.
    pub warm: bool,
    /// After how many seconds without a call it is stopped; never if not set.
    #[serde(deserialize_with = "seconds")]
    #[schemars(with = "Option<f64>")]
    pub idle_shutdown: Option<Duration>,
    /// How many seconds connecting may take.
    #[serde(deserialize_with = "seconds")]
    #[schemars(with = "Option<f64>")]
    pub connect_timeout: Option<Duration>,
    /// How many seconds a call may be silent.
    #[serde(deserialize_with = "seconds")]
    #[schemars(with = "Option<f64>")]
    pub idle_timeout: Option<Duration>,
    /// How many seconds a call may take in all.
    #[serde(deserialize_with = "seconds")]
    #[schemars(with = "Option<f64>")]
    pub call_timeout: Option<Duration>,
    /// How many calls may be in flight at the same time; further ones wait. 8 for a program, 16 for an address if not
    /// set.
    pub max_concurrent_calls: Option<usize>,
    /// The largest message of the server or to it, in bytes; 16 MiB if not set.
    pub max_message_bytes: Option<usize>,
    /// Whether the server may answer a call with a task of the extension `io.modelcontextprotocol/tasks`, whose result
    /// is polled within `call_timeout`.
    pub tasks: bool,
    /// The raw names of the only tools that are used.
    pub allow: Option<Vec<String>>,
    /// The raw names of tools that are not used. It wins over `allow`.
    pub deny: Vec<String>,
    /// Which calls a person is asked about.
    pub approve: Approve,
    /// Whether the server's annotations and instructions are believed.
    pub trusted: bool,
    /// Whether its tools are held back until searched for.
    pub defer: Defer,
    /// What becomes of tools that changed since they were first seen.
    pub pin: Option<Pin>,
    /// What becomes of calls whose arguments were repaired, or that were recovered from text: `allow`, `approve` or
    /// `deny`.
    #[schemars(with = "Option<String>")]
    pub on_repaired: Option<OnRepaired>,
    /// Which form of a result the model reads.
    pub prefer: Prefer,
    /// Whether a result that does not fit its schema is an error.
    pub strict_output: bool,
    /// What differs for single tools, by raw name.
    pub tools: BTreeMap<String, ToolConfig>,
    /// Credentials of single tenants: their calls go over connections of their own, with these and nothing of the
    /// server's `headers`, `bearer_env`, `bearer_file` or login. Only with `url`.
    pub tenants: BTreeMap<String, TenantConfig>,
    /// Whether tenants without credentials of their own are refused, instead of using those of the server.
    pub require_tenant_credentials: bool,
}

/// What a file says about one tool of a server.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolConfig {
    /// How many seconds a call may be silent.
    #[serde(deserialize_with = "seconds")]
    #[schemars(with = "Option<f64>")]
    pub idle_timeout: Option<Duration>,
    /// How many seconds a call may take in all.
    #[serde(deserialize_with = "seconds")]
    #[schemars(with = "Option<f64>")]
    pub call_timeout: Option<Duration>,
    /// Which calls a person is asked about.
    pub approve: Option<Approve>,
    /// Whether the tool is held back until searched for.
    pub defer: Option<Defer>,
    /// What becomes of calls whose arguments were repaired, or that were recovered from text: `allow`, `approve` or
    /// `deny`.
    #[schemars(with = "Option<String>")]
    pub on_repaired: Option<OnRepaired>,
    /// Which form of a result the model reads.
    pub prefer: Option<Prefer>,
    /// Whether a result that does not fit its schema is an error.
    pub strict_output: Option<bool>,
    /// How much text of a result the model reads, in bytes.
    pub result_text_bytes: Option<usize>,
    /// What the tool may do if it has no schema: `read-only`, `human-approval` or `full`.
    #[schemars(with = "Option<String>")]
    pub no_schema_mode: Option<NoSchemaMode>,
    /// Whether the result changes by itself, so that equal calls in a row are meant: none of them is left out as a
    /// repetition. The limits of `[loop.loop_detection]` hold all the same.
    pub polling: bool,
}

/// A description of a server that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// Neither or both of `command` and `url`.
    #[error("server `{server}` needs either `command` or `url`: {problem}")]
    Transport {
        /// The server.
        server: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// A key that says nothing for this kind of server.
    #[error("`{key}` of server `{server}` is of no use with `{with}`: remove it")]
    Misplaced {
        /// The server.
        server: String,
        /// The key.
        key: &'static str,
        /// What it stands beside.
        with: &'static str,
    },
    /// A value that is not allowed.
    #[error("`{key}` of server `{server}`: {reason}")]
    Invalid {
        /// The server.
        server: String,
        /// The key.
        key: String,
        /// What is wrong and what to do.
        reason: String,
    },
}

impl ServerConfig {
    /// Reads the secrets and checks everything.
    pub fn resolve(
        self,
        label: Label,
        variables: VariableLookup<'_>,
    ) -> Result<ServerSettings, SettingsError> {
        let transport = match (&self.command, &self.url) {
            (Some(_), None) => TransportSettings::Stdio(self.stdio(&label, variables)?),
            (None, Some(_)) => TransportSettings::Http(self.http(&label, variables)?),
            (both, _) => {
                let problem = if both.is_some() {
                    "both are given"
                } else {
                    "neither is given"
                };
                return Err(SettingsError::Transport {
                    server: label.to_string(),
                    problem,
                });
            }
        };
        if self.max_concurrent_calls == Some(0) {
            let reason = "0 would allow no call: write 1 or more";
            return Err(invalid(&label, "max_concurrent_calls", reason));
        }
        let tenants = self.tenant_credentials(&label, variables)?;
        let mut settings = ServerSettings::new(label, transport);
        settings.limits.concurrent_calls = self.max_concurrent_calls;
        if let Some(bytes) = self.max_message_bytes {
            if !(MIN_MESSAGE_BYTES..=MAX_MESSAGE_BYTES).contains(&bytes) {
                let reason = "write a number of bytes from 65536 to 1073741824";
                return Err(invalid(&settings.label, "max_message_bytes", reason));
            }
            settings.limits.message_bytes = bytes;
            // A list may be as large as one message, and an image that passes is shown.
            settings.limits.list_bytes = settings.limits.list_bytes.max(bytes);
            settings.limits.result_image_bytes = settings.limits.result_image_bytes.max(bytes);
        }
        settings.tasks = self.tasks;
        settings.tenants = tenants;
        settings.requires_tenant_credentials = self.require_tenant_credentials;
        settings.description = self.description;
        settings.timeouts.connect = self.connect_timeout.unwrap_or(settings.timeouts.connect);
        settings.timeouts.idle = self.idle_timeout.unwrap_or(settings.timeouts.idle);
        settings.timeouts.call = self.call_timeout.unwrap_or(settings.timeouts.call);
        settings.trusted = self.trusted;
        settings.warm = self.warm;
        settings.idle_shutdown = self.idle_shutdown;
        settings.allow = self.allow;
        settings.deny = self.deny;
        settings.approve = self.approve;
        settings.defer = self.defer;
        settings.pin = self.pin;
        settings.on_repaired = self.on_repaired;
        settings.prefer = self.prefer;
        settings.strict_output = self.strict_output;
        let tools = self.tools.into_iter();
        settings.tools = tools.map(|(name, tool)| (name, tool.into())).collect();
        Ok(settings)
    }

    fn stdio(
        &self,
        label: &Label,
        variables: VariableLookup<'_>,
    ) -> Result<StdioSettings, SettingsError> {
        let misplaced = [
            ("headers", !self.headers.is_empty()),
            ("bearer_env", self.bearer_env.is_some()),
            ("bearer_file", self.bearer_file.is_some()),
            ("transport", self.transport.is_some()),
            ("oauth", self.oauth.is_some()),
            ("tenants", !self.tenants.is_empty()),
            (
                "require_tenant_credentials",
                self.require_tenant_credentials,
            ),
        ];
        no_misplaced(label, "command", &misplaced)?;
        let command = self.command.as_deref().unwrap_or_default();
        let command = expanded_text(label, "command", command, variables)?;
        if command.trim().is_empty() {
            return Err(invalid(label, "command", "it is empty: name a program"));
        }
        let args = self.args.iter();
        let args = args.map(|text| expanded_text(label, "args", text, variables));
        Ok(StdioSettings {
            command,
            args: args.collect::<Result<_, _>>()?,
            env: expanded(label, "env", &self.env, variables)?,
            cwd: match self.cwd.as_ref().map(|cwd| (cwd, cwd.to_str())) {
                Some((_, Some(cwd))) => Some(expanded_text(label, "cwd", cwd, variables)?.into()),
                other => other.map(|(cwd, _)| cwd.clone()),
            },
        })
    }

    fn http(
        &self,
        label: &Label,
        variables: VariableLookup<'_>,
    ) -> Result<HttpSettings, SettingsError> {
        let misplaced = [
            ("args", !self.args.is_empty()),
            ("env", !self.env.is_empty()),
            ("cwd", self.cwd.is_some()),
        ];
        no_misplaced(label, "url", &misplaced)?;
        let url = self.url.as_deref().unwrap_or_default();
        let url = expanded_text(label, "url", url, variables)?;
        let url = Url::parse(&url)
            .map_err(|error| invalid(label, "url", format!("{error}: write `https://…`")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(invalid(
                label,
                "url",
                "only `http://` and `https://` can be reached",
            ));
        }
        let headers = expanded(label, "headers", &self.headers, variables)?;
        for (name, value) in &headers {
            let is_legal = reqwest::header::HeaderName::try_from(name).is_ok()
                && reqwest::header::HeaderValue::try_from(value.expose()).is_ok();
            if !is_legal {
                let key = format!("headers.{}", haft_core::cut(name));
                return Err(invalid(label, key, "this cannot be sent as a header"));
            }
        }
        let oauth = self.oauth.as_ref().map(|oauth| oauth.resolve(variables));
        let oauth = oauth.transpose();
        let settings = HttpSettings {
            url,
            headers,
            bearer: self.bearer(label, variables)?,
            kind: self.transport.unwrap_or_default(),
            oauth: oauth.map_err(|(key, reason)| invalid(label, key, reason))?,
        };
        let per_user = settings.oauth.as_ref().is_some_and(|it| it.per_user);
        if per_user && settings.has_token() {
            let reason = "the server has a token by `bearer_env`, `bearer_file` or `headers`, which all tenants would \
                          share: keep one";
            return Err(invalid(label, "oauth.per_user", reason));
        }
        Ok(settings)
    }

    /// The credentials of each tenant that has some.
    fn tenant_credentials(
        &self,
        label: &Label,
        variables: VariableLookup<'_>,
    ) -> Result<BTreeMap<String, TenantCredentials>, SettingsError> {
        let mut all = BTreeMap::new();
        for (tenant, config) in &self.tenants {
            let key = format!("tenants.{}", haft_core::cut(tenant));
            if !is_tenant_name(tenant) {
                let reason = "this cannot be the name of a tenant: use 1 to 64 letters, digits, `.`, `_` and `-`";
                return Err(invalid(label, key, reason));
            }
            // The rules for credentials are those of the server itself.
            let like_server = Self {
                url: self.url.clone(),
                headers: config.headers.clone(),
                bearer_env: config.bearer_env.clone(),
                bearer_file: config.bearer_file.clone(),
                ..Self::default()
            };
            let http = like_server.http(label, variables);
            let http = http.map_err(|error| match error {
                SettingsError::Invalid {
                    key: of, reason, ..
                } => invalid(label, format!("{key}.{of}"), reason),
                error => error,
            })?;
            if http.headers.is_empty() && http.bearer.is_none() {
                let reason =
                    "there are no credentials: give `bearer_env`, `bearer_file` or `headers`";
                return Err(invalid(label, key, reason));
            }
            let credentials = TenantCredentials {
                headers: http.headers,
                bearer: http.bearer,
            };
            all.insert(tenant.clone(), credentials);
        }
        Ok(all)
    }

    fn bearer(
        &self,
        label: &Label,
        variables: VariableLookup<'_>,
    ) -> Result<Option<Secret>, SettingsError> {
        match (&self.bearer_env, &self.bearer_file) {
            (None, None) => Ok(None),
            (Some(name), None) => match variables(name).as_deref().map(str::trim) {
                None | Some("") => {
                    let reason = format!("the variable `{name}` is not set: set it");
                    Err(invalid(label, "bearer_env", reason))
                }
                Some(token) => Ok(Some(Secret::new(token))),
            },
            (None, Some(file)) => {
                let token =
                    token_in(file).map_err(|reason| invalid(label, "bearer_file", reason))?;
                Ok(Some(token))
            }
            (Some(_), Some(_)) => Err(invalid(
                label,
                "bearer_file",
                "`bearer_env` is given as well: keep one",
            )),
        }
    }
}

impl From<ToolConfig> for ToolSettings {
    fn from(config: ToolConfig) -> Self {
        Self {
            idle_timeout: config.idle_timeout,
            call_timeout: config.call_timeout,
            approve: config.approve,
            defer: config.defer,
            on_repaired: config.on_repaired,
            prefer: config.prefer,
            strict_output: config.strict_output,
            result_text_bytes: config.result_text_bytes,
            no_schema_mode: config.no_schema_mode,
            polling: config.polling,
        }
    }
}

fn invalid(label: &Label, key: impl Into<String>, reason: impl Into<String>) -> SettingsError {
    SettingsError::Invalid {
        server: label.to_string(),
        key: key.into(),
        reason: reason.into(),
    }
}

fn no_misplaced(
    label: &Label,
    with: &'static str,
    keys: &[(&'static str, bool)],
) -> Result<(), SettingsError> {
    match keys.iter().find(|(_, is_given)| *is_given) {
        Some((key, _)) => Err(SettingsError::Misplaced {
            server: label.to_string(),
            key,
            with,
        }),
        None => Ok(()),
    }
}

/// The text with its references to variables replaced.
fn expanded_text(
    label: &Label,
    key: &str,
    text: &str,
    variables: VariableLookup<'_>,
) -> Result<String, SettingsError> {
    expand(text, variables).map_err(|reason| invalid(label, key, reason))
}

/// The values with their references to variables replaced.
fn expanded(
    label: &Label,
    key: &str,
    values: &BTreeMap<String, Secret>,
    variables: VariableLookup<'_>,
) -> Result<BTreeMap<String, Secret>, SettingsError> {
    let expand_one = |(name, value): (&String, &Secret)| {
        let value = expand(value.expose(), variables)
            .map_err(|reason| invalid(label, format!("{key}.{}", haft_core::cut(name)), reason))?;
        Ok((name.clone(), Secret::new(value)))
    };
    values.iter().map(expand_one).collect()
}

/// A number of seconds, whole or not, greater than nothing.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let Some(number) = Option::<f64>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let duration = Duration::try_from_secs_f64(number)
        .ok()
        .filter(|it| !it.is_zero());
    duration.map(Some).ok_or_else(|| {
        D::Error::custom(format!("`{number}` is no time: write seconds, more than 0"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::TransportKind;

    fn resolve(text: &str) -> Result<ServerSettings, String> {
        let config: ServerConfig = toml::from_str(text).map_err(|error| error.to_string())?;
        let variables = |name: &str| (name == "TOKEN").then(|| "hunter2".to_owned());
        config
            .resolve(Label::new("it").unwrap(), &variables)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_child_process_is_read() {
        let settings = resolve(
            "command = 'npx'\nargs = ['-y', 'x']\nidle_timeout = 0.5\npin = 'hold'\n\
             [env]\nA = 'b'\nC = 'x${TOKEN}y'\n[tools.'a.b']\nno_schema_mode = 'read-only'",
        )
        .unwrap();
        let TransportSettings::Stdio(stdio) = &settings.transport else {
            panic!()
        };
        assert_eq!(stdio.args, ["-y", "x"]);
        assert_eq!(stdio.env["C"].expose(), "xhunter2y");
        assert_eq!(settings.timeouts.idle, Duration::from_millis(500));
        assert_eq!(settings.pin, Some(Pin::Hold));
        assert_eq!(
            settings.tools["a.b"].no_schema_mode,
            Some(NoSchemaMode::ReadOnly)
        );
    }

    #[test]
    fn the_largest_message_is_a_setting_with_bounds() {
        let settings = resolve("command = 'x'\nmax_message_bytes = 33554432").unwrap();
        assert_eq!(settings.limits.message_bytes, 32 << 20);
        assert_eq!(settings.limits.result_image_bytes, 32 << 20);
        for bytes in ["0", "65535", "1073741825"] {
            let error =
                resolve(&format!("command = 'x'\nmax_message_bytes = {bytes}")).unwrap_err();
            let expected = "`max_message_bytes` of server `it`: write a number of bytes from 65536 to 1073741824";
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn the_number_of_concurrent_calls_is_a_setting_of_at_least_one() {
        let settings = resolve("command = 'x'\nmax_concurrent_calls = 3").unwrap();
        assert_eq!(settings.limits.concurrent_calls(TransportKind::Stdio), 3);
        for (transport, kind, calls) in [
            ("command = 'x'", TransportKind::Stdio, 8),
            ("url = 'https://x.example/mcp'", TransportKind::Http, 16),
        ] {
            let settings = resolve(transport).unwrap();
            assert_eq!(settings.limits.concurrent_calls(kind), calls);
        }
        let error = resolve("command = 'x'\nmax_concurrent_calls = 0").unwrap_err();
        let expected =
            "`max_concurrent_calls` of server `it`: 0 would allow no call: write 1 or more";
        assert_eq!(error, expected);
        assert!(resolve("command = 'x'\nmax_concurrent_calls = -1").is_err());
    }

    #[test]
    fn an_address_is_read_and_shows_no_secret() {
        let settings = resolve("url = 'https://x.example/mcp?key=hunter2'\nbearer_env = 'TOKEN'\ntransport = 'sse'\nheaders = { X-Key = 'k-${TOKEN}' }").unwrap();
        let shown = format!("{settings:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        let TransportSettings::Http(http) = &settings.transport else {
            panic!()
        };
        assert_eq!(http.kind, HttpKind::Sse);
        assert_eq!(http.bearer.as_ref().unwrap().expose(), "hunter2");
        assert_eq!(
            settings.redactor().clean("got k-hunter2".into()),
            "got [redacted]"
        );
    }

    #[test]
    fn what_cannot_work_is_told_with_a_remedy() {
        for (text, expected) in [
            (
                "",
                "server `it` needs either `command` or `url`: neither is given",
            ),
            (
                "command = 'x'\nurl = 'http://x'",
                "server `it` needs either `command` or `url`: both are given",
            ),
            (
                "command = ' '",
                "`command` of server `it`: it is empty: name a program",
            ),
            (
                "command = 'x'\ntransport = 'sse'",
                "`transport` of server `it` is of no use with `command`: remove it",
            ),
            (
                "url = 'http://x'\nargs = ['a']",
                "`args` of server `it` is of no use with `url`: remove it",
            ),
            (
                "url = 'file:///etc/passwd'",
                "`url` of server `it`: only `http://` and `https://` can be reached",
            ),
            (
                "url = 'http://x'\nbearer_env = 'NOPE'",
                "`bearer_env` of server `it`: the variable `NOPE` is not set: set it",
            ),
            (
                "url = 'http://x'\nheaders = { 'a b' = 'c' }",
                "`headers.a b` of server `it`: this cannot be sent as a header",
            ),
            (
                "command = 'x'\nenv = { A = '${NOPE}' }",
                "`env.A` of server `it`: the variable `NOPE` is not set: set it",
            ),
            (
                "command = 'x'\nenv = { A = '${TOKEN' }",
                "`env.A` of server `it`: `${` has no `}`: close it, or write `$${` for the characters themselves",
            ),
        ] {
            assert_eq!(resolve(text).unwrap_err(), expected);
        }
        for text in [
            "command = 'x'\ncall_timeout = 0",
            "command = 'x'\ncall_timeout = -1",
            "command = 'x'\nfoo = 1",
        ] {
            assert!(resolve(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_schema_names_every_key() {
        let schema = schemars::schema_for!(ServerConfig);
        let keys = schema.as_value()["properties"].as_object().unwrap();
        for key in [
            "command",
            "url",
            "bearer_env",
            "approve",
            "tools",
            "idle_timeout",
        ] {
            assert!(keys[key]["description"].is_string(), "{key}");
        }
    }
}
