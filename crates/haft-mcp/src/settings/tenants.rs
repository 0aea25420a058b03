//! Credentials of single tenants for a server that all of them use.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{ServerSettings, TransportSettings};
use crate::secret::Secret;

/// After how long without a call the connection of a tenant is closed, unless the server's own setting is shorter.
const IDLE: Duration = Duration::from_mins(5);

/// The longest name of a tenant.
const MAX_NAME_BYTES: usize = 64;

/// Whether a tenant can be called so: 1 to 64 letters, digits, `.`, `_` and `-`, a letter or a digit first.
pub fn is_tenant_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// What a file says about the credentials of one tenant: `[mcp.NAME.tenants.TENANT]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TenantConfig {
    /// Headers that go with requests of this tenant, in place of all headers and tokens of the server. `${NAME}`
    /// stands for a variable.
    pub headers: BTreeMap<String, Secret>,
    /// The variable that holds the tenant's bearer token.
    pub bearer_env: Option<String>,
    /// The file that holds the tenant's bearer token.
    pub bearer_file: Option<PathBuf>,
}

/// What is sent to a server for one tenant, in place of the server's own credentials.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TenantCredentials {
    /// Headers, sent to the server's origin only.
    pub headers: BTreeMap<String, Secret>,
    /// A bearer token, sent to the server's origin only.
    pub bearer: Option<Secret>,
}

/// How one tenant reaches a server.
#[derive(Debug)]
pub(crate) enum TenantSettings {
    /// Like everybody else.
    Shared,
    /// With credentials of its own.
    Own(ServerSettings),
    /// With a login of its own, if there is one.
    Login(ServerSettings),
    /// Not at all: it has no credentials, and the shared ones are not for it.
    Missing(ServerSettings),
}

impl ServerSettings {
    /// Whether tenants reach the server with different credentials.
    pub(crate) fn differs_by_tenant(&self) -> bool {
        !self.tenants.is_empty() || self.requires_tenant_credentials || self.has_logins_per_user()
    }

    /// Whether every tenant has a login of its own.
    pub fn has_logins_per_user(&self) -> bool {
        match &self.transport {
            TransportSettings::Http(http) => http.oauth.as_ref().is_some_and(|it| it.per_user),
            TransportSettings::Stdio(_) | TransportSettings::Custom => false,
        }
    }

    /// How a tenant reaches the server.
    pub(crate) fn for_tenant(&self, tenant: &str) -> TenantSettings {
        if !self.differs_by_tenant() {
            return TenantSettings::Shared;
        }
        let idle = self.idle_shutdown.map_or(IDLE, |idle| idle.min(IDLE));
        let mut settings = Self {
            warm: false,
            idle_shutdown: Some(idle),
            tenants: BTreeMap::new(),
            ..self.clone()
        };
        let own = self.tenants.get(tenant);
        if let (Some(own), TransportSettings::Http(http)) = (own, &mut settings.transport) {
            // Nothing of the shared credentials goes along.
            http.headers.clone_from(&own.headers);
            http.bearer.clone_from(&own.bearer);
            http.oauth = None;
            return TenantSettings::Own(settings);
        }
        if self.has_logins_per_user() {
            return TenantSettings::Login(settings);
        }
        if self.requires_tenant_credentials {
            return TenantSettings::Missing(settings);
        }
        TenantSettings::Shared
    }
}

#[cfg(test)]
mod tests {
    use super::super::ServerConfig;
    use super::*;
    use crate::names::Label;

    fn resolve(text: &str) -> Result<ServerSettings, String> {
        let config: ServerConfig = toml::from_str(text).map_err(|error| error.to_string())?;
        let variables = |name: &str| (name == "TOKEN").then(|| "hunter2".to_owned());
        let settings = config.resolve(Label::new("it").unwrap(), &variables);
        settings.map_err(|error| error.to_string())
    }

    #[test]
    fn credentials_of_a_tenant_replace_those_of_the_server() {
        let settings = resolve(
            "url = 'https://a.example/mcp'\nbearer_env = 'TOKEN'\nheaders = { x-team = 'all' }\n\
             [tenants.acme]\nheaders = { x-api-key = '${TOKEN}' }",
        );
        let settings = settings.unwrap();
        let TenantSettings::Own(own) = settings.for_tenant("acme") else {
            panic!()
        };
        let TransportSettings::Http(http) = &own.transport else {
            panic!()
        };
        assert_eq!(http.bearer, None);
        assert_eq!(http.headers.keys().collect::<Vec<_>>(), ["x-api-key"]);
        assert!(matches!(
            settings.for_tenant("other"),
            TenantSettings::Shared
        ));
        assert!(!format!("{settings:?}").contains("hunter2"));
    }

    #[test]
    fn shared_credentials_are_not_for_tenants_that_need_their_own() {
        let settings = "url = 'https://a.example/mcp'\nbearer_env = 'TOKEN'\n\
                        require_tenant_credentials = true\n[tenants.acme]\nbearer_env = 'TOKEN'";
        let settings = resolve(settings).unwrap();
        assert!(matches!(
            settings.for_tenant("acme"),
            TenantSettings::Own(_)
        ));
        assert!(matches!(
            settings.for_tenant("other"),
            TenantSettings::Missing(_)
        ));
        let login = resolve("url = 'https://a.example/mcp'\noauth = { per_user = true }").unwrap();
        assert!(matches!(
            login.for_tenant("other"),
            TenantSettings::Login(_)
        ));
    }

    #[test]
    fn what_cannot_work_is_an_error() {
        let url = "url = 'https://a.example/mcp'";
        for (text, part) in [
            (
                "command = 'x'\n[tenants.a]\nbearer_env = 'TOKEN'".to_owned(),
                "`tenants`",
            ),
            (
                "command = 'x'\nrequire_tenant_credentials = true".to_owned(),
                "`require_tenant",
            ),
            (format!("{url}\n[tenants.a]"), "no credentials"),
            (
                format!("{url}\n[tenants.'a b']\nbearer_env = 'TOKEN'"),
                "name of a tenant",
            ),
            (
                format!("{url}\n[tenants.a]\nbearer_env = 'GONE'"),
                "tenants.a.bearer_env",
            ),
            (format!("{url}\n[tenants.a]\ntoken = 'x'"), "unknown field"),
            (
                format!("{url}\nbearer_env = 'TOKEN'\noauth = {{ per_user = true }}"),
                "per_user",
            ),
        ] {
            let error = resolve(&text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
