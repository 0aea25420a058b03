//! Sealed texts: what a client carries for the server, but can neither read nor forge.
//!
//! A compaction item holds hidden context, and `encrypted_content` of a reasoning item what the model's
//! provider must get back; the client stores both and sends them back. What comes in is plain bytes and
//! whose they are, what goes out is `haft1.` and base64url; the other way round, the bytes or an error
//! that does not say why. Keys live in a file; the newest seals, all of them open. This module must
//! never show a key.

mod key_file;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

pub use key_file::KeyFileError;

use crate::mcp::QuestionIds;

/// The longest sealed text that a client accepts and may send, in characters.
pub(crate) const MAX_SEALED_CHARS: usize = 10_485_760;

/// What every sealed text begins with; another form gets another number.
const PREFIX: &str = "haft1.";
const KEY_ID_BYTES: usize = 8;
const KEY_BYTES: usize = 32;

/// What the keys for questions are derived by.
const ASKING: &[u8] = b"haft questions about calls 1";

/// What the keys for nonces that follow from their text are derived by.
const NONCES: &[u8] = b"haft nonces of sealed texts 1";

/// The keys that seal and open.
///
/// Each text has a random nonce of 96 bits, or one that a keyed hash makes of the text: a key is good
/// for some four thousand million texts.
#[derive(Clone)]
pub(crate) struct SealingKeys {
    /// Never empty; the newest is the last.
    keys: Arc<[SealingKey]>,
}

struct SealingKey {
    id: [u8; KEY_ID_BYTES],
    key: LessSafeKey,
    /// Derived from the same secret, for questions about calls.
    asking: hmac::Key,
    /// Derived from the same secret, for nonces.
    nonces: hmac::Key,
}

impl SealingKeys {
    /// The keys in a file. If there is none, it is made, with one key, for this user alone.
    pub(crate) fn open(path: &Path) -> Result<Self, KeyFileError> {
        key_file::open(path)
    }

    /// Adds a key to the file and gives all of them. Processes that have the file open go on
    /// sealing with what they have; texts under the new key open there after a restart.
    pub(crate) fn rotate(path: &Path) -> Result<Self, KeyFileError> {
        key_file::rotate(path)
    }

    /// A key for as long as this process lives: what it seals is lost afterwards.
    pub(crate) fn ephemeral() -> Result<Self, KeyFileError> {
        let key = key_file::StoredKey::random(0)?;
        Self::from_stored(&[key], Path::new(""))
    }

    fn from_stored(stored: &[key_file::StoredKey], path: &Path) -> Result<Self, KeyFileError> {
        let keys = stored
            .iter()
            .map(SealingKey::read)
            .collect::<Option<Vec<_>>>()
            .filter(|keys| !keys.is_empty());
        keys.map(|keys| Self { keys: keys.into() })
            .ok_or_else(|| KeyFileError::Damaged { path: path.into() })
    }

    /// The ids of all keys, which are no secret: every sealed text names its key.
    pub(crate) fn ids(&self) -> Vec<String> {
        let hex = |key: &SealingKey| {
            let digits = key.id.iter().flat_map(|byte| [byte >> 4, byte & 15]);
            let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
            digits.collect()
        };
        self.keys.iter().map(hex).collect()
    }

    /// Ids for questions about calls of an owner.
    pub(crate) fn question_ids(&self, owner: &str) -> QuestionIds {
        let keys = self.keys.iter().map(|key| key.asking.clone());
        QuestionIds::new(keys.collect(), owner)
    }

    /// Seals bytes for an owner. Only with the same owner will they open.
    pub(crate) fn seal(&self, owner: &str, plain: &[u8]) -> Result<String, SealError> {
        let key = self.keys.last().ok_or(SealError::Failed)?;
        let mut nonce = [0; NONCE_LEN];
        let random = SystemRandom::new();
        random.fill(&mut nonce).map_err(|_| SealError::Failed)?;
        key.seal(owner, plain, nonce)
    }

    /// Seals bytes for an owner so that the same bytes give the same text: an item is presented
    /// several times, in events and in the response, and must be the same each time.
    ///
    /// The nonce is a keyed hash of the owner and the bytes, so two texts share one only if they are
    /// the same text.
    pub(crate) fn seal_stably(&self, owner: &str, plain: &[u8]) -> Result<String, SealError> {
        let key = self.keys.last().ok_or(SealError::Failed)?;
        let mut hash = hmac::Context::with_key(&key.nonces);
        hash.update(&owner.len().to_le_bytes());
        hash.update(owner.as_bytes());
        hash.update(plain);
        let hash = hash.sign();
        let nonce = hash.as_ref().first_chunk().ok_or(SealError::Failed)?;
        key.seal(owner, plain, *nonce)
    }

    /// Opens what was sealed for this owner.
    pub(crate) fn unseal(&self, owner: &str, text: &str) -> Result<Vec<u8>, UnsealError> {
        if text.len() > MAX_SEALED_CHARS {
            return Err(UnsealError);
        }
        let encoded = text.strip_prefix(PREFIX).ok_or(UnsealError)?;
        let sealed = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| UnsealError)?;
        let (id, rest) = sealed
            .split_first_chunk::<KEY_ID_BYTES>()
            .ok_or(UnsealError)?;
        let (nonce, body) = rest.split_first_chunk::<NONCE_LEN>().ok_or(UnsealError)?;
        let key = self
            .keys
            .iter()
            .find(|key| key.id == *id)
            .ok_or(UnsealError)?;
        let mut body = body.to_vec();
        let plain = key
            .key
            .open_in_place(
                Nonce::assume_unique_for_key(*nonce),
                Aad::from(bound_to(*id, owner)),
                &mut body,
            )
            .map_err(|_| UnsealError)?
            .len();
        body.truncate(plain);
        Ok(body)
    }
}

impl SealingKey {
    fn read(stored: &key_file::StoredKey) -> Option<Self> {
        let secret = stored.key()?;
        let secret_key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let derived = |label| {
            let derived = hmac::sign(&secret_key, label);
            hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())
        };
        Some(Self {
            id: stored.id()?,
            key: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &secret).ok()?),
            asking: derived(ASKING),
            nonces: derived(NONCES),
        })
    }

    fn seal(&self, owner: &str, plain: &[u8], nonce: [u8; NONCE_LEN]) -> Result<String, SealError> {
        let overhead = KEY_ID_BYTES + NONCE_LEN + AES_256_GCM.tag_len();
        let bytes = plain.len().saturating_add(overhead);
        let chars = PREFIX.len() + bytes.div_ceil(3).saturating_mul(4);
        if chars > MAX_SEALED_CHARS {
            return Err(SealError::TooLarge);
        }
        let mut sealed = Vec::with_capacity(bytes);
        sealed.extend_from_slice(&self.id);
        sealed.extend_from_slice(&nonce);
        let mut body = plain.to_vec();
        self.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(bound_to(self.id, owner)),
                &mut body,
            )
            .map_err(|_| SealError::Failed)?;
        sealed.append(&mut body);
        let mut text = String::with_capacity(chars);
        text.push_str(PREFIX);
        URL_SAFE_NO_PAD.encode_string(&sealed, &mut text);
        Ok(text)
    }
}

/// Whether a text claims to be sealed here. Others may belong to the provider.
pub(crate) fn is_sealed(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// What a sealed text is bound to besides its content.
fn bound_to(key_id: [u8; KEY_ID_BYTES], owner: &str) -> Vec<u8> {
    [PREFIX.as_bytes(), &key_id, owner.as_bytes()].concat()
}

impl fmt::Debug for SealingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKeys({})", self.keys.len())
    }
}

/// Why something could not be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SealError {
    /// Sealed, it would be longer than a client accepts.
    #[error("it is too long to be sealed: a sealed text has at most 10485760 characters")]
    TooLarge,
    /// The system gives no random numbers.
    #[error("the system cannot seal: it gives no random numbers")]
    Failed,
}

/// A text that does not open: damaged, forged, for somebody else, or under a key that is not known.
/// Which of them is nobody's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it was not sealed by this server for this owner, or it was changed since")]
pub(crate) struct UnsealError;

#[cfg(test)]
#[path = "sealed_tests.rs"]
mod tests;
