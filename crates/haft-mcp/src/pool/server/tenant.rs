//! A server as one tenant reaches it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::{Parts, Server, locked};
use crate::error::{Cause, McpError};
use crate::oauth::OAuthOptions;
use crate::settings::{TenantSettings, TransportSettings};

/// Whose connection it is.
#[derive(Debug, Clone)]
pub(in crate::pool) struct Tenant {
    name: String,
    credentials: Credentials,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Credentials {
    /// They are part of the settings.
    Configured,
    /// They are those of a login, which may come later.
    Login,
    /// There are none.
    Missing,
}

impl Server {
    /// The same server with the credentials of a tenant; none where the tenant shares those of the server.
    pub(in crate::pool) fn for_tenant(&self, tenant: &str) -> Option<Arc<Self>> {
        let mut options = self.parts.options.clone();
        options.custom = None;
        let tokens = options.oauth.tokens.take();
        // Logins of the operator are not for tenants, and nobody sits at the server to be asked for one.
        options.oauth = OAuthOptions::default();
        let (settings, credentials) = match self.settings().for_tenant(tenant) {
            TenantSettings::Shared => return None,
            TenantSettings::Own(settings) => (settings, Credentials::Configured),
            TenantSettings::Login(settings) => {
                options.oauth.tokens = tokens.map(|tokens| tokens.for_user(tenant));
                (settings, Credentials::Login)
            }
            TenantSettings::Missing(settings) => (settings, Credentials::Missing),
        };
        let server = Self::new(Parts {
            settings: Arc::new(settings),
            options,
            // What one tenant sees is not kept for others.
            memory: None,
            pins: self.parts.pins.clone(),
            changes: self.parts.changes.clone(),
            events: self.parts.events.clone(),
            tenant: Some(Tenant {
                name: tenant.to_owned(),
                credentials,
            }),
        });
        *locked(&server.era) = self.known_era();
        Some(server)
    }

    /// Whether a call is in flight.
    pub(in crate::pool) fn is_in_use(&self) -> bool {
        self.calls.load(Ordering::Acquire) > 0
    }

    /// The name that accepted definitions are kept under: each tenant may see other tools.
    pub(super) fn pin_name(&self) -> String {
        match &self.parts.tenant {
            Some(tenant) => format!("{}@{}", self.label(), tenant.name),
            None => self.label().to_string(),
        }
    }

    /// Lets the next use connect at once where only a login was missing, and the tenant has logged in since.
    pub(in crate::pool) fn notice_login(&self) {
        let is_missing = locked(&self.attempts).last().is_some_and(is_login_missing);
        if is_missing && self.parts.tenant.is_some() && self.has_login() == Ok(true) {
            self.forgive();
        }
    }

    /// Refuses to connect for a tenant without credentials: neither without any nor with those of others.
    pub(super) fn check_credentials(&self) -> Result<(), McpError> {
        let Some(tenant) = &self.parts.tenant else {
            return Ok(());
        };
        let label = self.label();
        let cause = match tenant.credentials {
            Credentials::Configured => return Ok(()),
            Credentials::Missing => Cause::NoCredentials {
                server: label.clone(),
                tenant: tenant.name.clone(),
            },
            Credentials::Login => match self.has_login() {
                Ok(true) => return Ok(()),
                Ok(false) => Cause::LoginRequired {
                    server: label.clone(),
                    user: Some(tenant.name.clone()),
                    wanted: None,
                },
                Err(error) => Cause::Settings(error.to_string()),
            },
        };
        let error = self.failure(cause);
        locked(&self.attempts).failed(&error, Instant::now());
        Err(error)
    }

    fn has_login(&self) -> Result<bool, crate::oauth::TokenStoreError> {
        match (&self.settings().transport, &self.parts.options.oauth.tokens) {
            (TransportSettings::Http(http), Some(tokens)) => tokens.has(&http.url),
            _ => Ok(false),
        }
    }
}

fn is_login_missing(failure: &super::super::attempts::Failure) -> bool {
    matches!(*failure.error.cause, Cause::LoginRequired { .. })
}
