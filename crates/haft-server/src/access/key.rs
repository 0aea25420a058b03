//! A key: the secret that is shown once, and the record that is kept.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft_core::Owner;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::key_file::KeysError;

/// What every key begins with, so that scanners for secrets find one that was lost.
const PREFIX: &str = "haft_";
const ID_PREFIX: &str = "key_";
const SECRET_BYTES: usize = 32;
const ID_BYTES: usize = 5;

/// How many characters of a key are kept to recognise it by.
const SHOWN_CHARS: usize = 4;

/// The longest name of a key or a tenant, in characters.
const MAX_NAME_CHARS: usize = 64;

/// A key as it is kept: everything about it but the key itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Its id, `key_` and some characters.
    pub id: String,
    /// What its maker calls it.
    pub name: String,
    /// Whose responses, conversations and files it opens.
    pub tenant: String,
    /// What its holder is, for rules and endpoints that name roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// The SHA-256 of the key, in hexadecimal digits.
    sha256: KeyHash,
    /// Its last characters, to recognise it by.
    pub ends_with: String,
    /// When it was made, in seconds since the epoch.
    pub created_at: i64,
    /// When it stops to work, in seconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// When it was revoked, in seconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<i64>,
    /// What it may ask for, where that differs from what every key may.
    #[serde(default, skip_serializing_if = "KeyLimits::is_empty")]
    pub limits: KeyLimits,
}

/// What a key may ask for; nothing said leaves it to the server's own limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyLimits {
    /// How many requests for a model's work in a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<NonZeroU32>,
    /// How many of them at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<NonZeroU32>,
}

impl KeyLimits {
    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that `skip_serializing_if` asks for"
    )]
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These, and where they say nothing, those.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            requests_per_minute: self.requests_per_minute.or(others.requests_per_minute),
            concurrent: self.concurrent.or(others.concurrent),
        }
    }
}

/// Whether a key opens anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// It does.
    Active,
    /// Its time is over.
    Expired,
    /// Somebody revoked it.
    Revoked,
}

impl KeyState {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl Key {
    /// What it is worth at this moment, in seconds since the epoch.
    pub fn state(&self, now: i64) -> KeyState {
        if self.revoked_at.is_some() {
            KeyState::Revoked
        } else if self.expires_at.is_some_and(|end| end <= now) {
            KeyState::Expired
        } else {
            KeyState::Active
        }
    }

    pub(super) fn hash(&self) -> KeyHash {
        self.sha256
    }
}

/// What a new key shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// What its maker calls it: up to 64 characters, not beginning with `key_`.
    pub name: String,
    /// Whose it is: up to 64 letters, digits and `.`, `_`, `-`.
    pub tenant: String,
    /// What its holder is, for rules and endpoints that name roles; each as a tenant may be called.
    pub roles: Vec<String>,
    /// How long it works; nothing said means until it is revoked.
    pub lifetime: Option<Duration>,
    /// What it may ask for.
    pub limits: KeyLimits,
}

impl NewKey {
    /// A key of this name, for the tenant that everything belongs to where nobody says more.
    ///
    /// ```
    /// use haft_server::access::NewKey;
    /// assert_eq!(NewKey::named("ci").tenant, "default");
    /// ```
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            tenant: Owner::default().to_string(),
            roles: Vec::new(),
            lifetime: None,
            limits: KeyLimits::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), KeysError> {
        let is_name = (1..=MAX_NAME_CHARS).contains(&self.name.chars().count())
            && self.name.trim() == self.name
            && !self.name.starts_with(ID_PREFIX)
            && !self.name.chars().any(char::is_control);
        if !is_name {
            return Err(KeysError::Name);
        }
        if !is_tenant(&self.tenant) {
            return Err(KeysError::Tenant);
        }
        match self.roles.iter().find(|role| !is_tenant(role)) {
            Some(role) => Err(KeysError::Role {
                role: haft_core::cut(role),
            }),
            None => Ok(()),
        }
    }

    /// Makes the key. The secret is nowhere but in what is given back.
    pub(super) fn make(self, now: i64) -> Result<(Key, KeySecret), KeysError> {
        let random = SystemRandom::new();
        let mut secret = [0; SECRET_BYTES];
        let mut id = [0; ID_BYTES];
        random.fill(&mut secret).map_err(|_| KeysError::NoRandom)?;
        random.fill(&mut id).map_err(|_| KeysError::NoRandom)?;
        let secret = KeySecret(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(secret)));
        let lifetime = self.lifetime.map(|it| i64::try_from(it.as_secs()));
        let key = Key {
            id: format!("{ID_PREFIX}{}", hex(&id)),
            name: self.name,
            tenant: self.tenant,
            roles: distinct(self.roles),
            sha256: KeyHash::of(secret.expose()),
            ends_with: secret.0[secret.0.len() - SHOWN_CHARS..].to_owned(),
            created_at: now,
            expires_at: lifetime.map(|it| now.saturating_add(it.unwrap_or(i64::MAX))),
            revoked_at: None,
            limits: self.limits,
        };
        Ok((key, secret))
    }
}

/// The roles in alphabetical order, each once.
fn distinct(mut roles: Vec<String>) -> Vec<String> {
    roles.sort_unstable();
    roles.dedup();
    roles
}

/// Whether a tenant or a role can be called so.
pub(super) fn is_tenant(name: &str) -> bool {
    haft_mcp::is_tenant_name(name)
}

/// A key that was just made. It is shown once, to the one who asked for it.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecret(String);

impl KeySecret {
    /// The key, to be sent as `Authorization: Bearer …`.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret(…)")
    }
}

/// What is kept of a key. A key has 256 random bits, so nothing slower than SHA-256 is needed to make
/// it safe from guessing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyHash([u8; 32]);

impl KeyHash {
    pub(crate) fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// Whether it is the same, in a time that says nothing about where they differ.
    pub(super) fn is(self, other: Self) -> bool {
        use subtle::ConstantTimeEq as _;
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(…)")
    }
}

impl Serialize for KeyHash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for KeyHash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        unhex(&text)
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("`sha256` has 64 hexadecimal digits"))
    }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() || !text.bytes().all(|it| it.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}
