//! Who calls.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The principal behind a request, as the layer in front of the gateway has authenticated it: a tenant, and, where
/// the request came with an API key, that key and its roles.
///
/// Sessions, sealed states and calls that wait for input are bound to the caller that started them. Two keys of one
/// tenant are two callers, because their roles may differ.
///
/// ```
/// use haft_mcp::gateway::Caller;
/// assert_ne!(Caller::new("tenant-a"), Caller::new("tenant-b"));
/// let caller = Caller::new("acme").with_key("key_1", "ci").with_roles(["support"]);
/// assert_eq!(caller.id(), "acme");
/// assert!(caller.has_role("support"));
/// assert_ne!(caller, Caller::new("acme"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller(Arc<Principal>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Principal {
    tenant: String,
    key: Option<KeyIdentity>,
    roles: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct KeyIdentity {
    id: String,
    name: String,
}

impl Caller {
    /// The caller with this id: a tenant or a user. Never a secret; ids appear in logs.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        let id: Arc<str> = id.into();
        Self(Arc::new(Principal {
            tenant: id.as_ref().to_owned(),
            key: None,
            roles: BTreeSet::new(),
        }))
    }

    /// The user who started this process, at the other end of standard input.
    pub fn local() -> Self {
        Self::new("local")
    }

    /// With the id and the name of the API key that the request came with; never the key itself.
    #[must_use]
    pub fn with_key(mut self, id: impl Into<String>, name: impl Into<String>) -> Self {
        let key = KeyIdentity {
            id: id.into(),
            name: name.into(),
        };
        Arc::make_mut(&mut self.0).key = Some(key);
        self
    }

    /// With these roles beside those that it has.
    #[must_use]
    pub fn with_roles<R: Into<String>>(mut self, roles: impl IntoIterator<Item = R>) -> Self {
        let own = &mut Arc::make_mut(&mut self.0).roles;
        own.extend(roles.into_iter().map(Into::into));
        self
    }

    /// The id, which is that of the tenant: whose data and whose upstream credentials are used.
    pub fn id(&self) -> &str {
        &self.0.tenant
    }

    /// The id of the API key, where there is one.
    pub fn key_id(&self) -> Option<&str> {
        self.0.key.as_ref().map(|key| key.id.as_str())
    }

    /// The name of the API key, where there is one.
    pub fn key_name(&self) -> Option<&str> {
        self.0.key.as_ref().map(|key| key.name.as_str())
    }

    /// Whether it has this role.
    pub fn has_role(&self, role: &str) -> bool {
        self.0.roles.contains(role)
    }

    /// A text that no other caller has: tenant, key and roles.
    pub fn principal(&self) -> String {
        let Principal { tenant, key, roles } = &*self.0;
        let key = key.as_ref().map(|key| (&key.id, &key.name));
        serde_json::json!([tenant, key, roles]).to_string()
    }
}
