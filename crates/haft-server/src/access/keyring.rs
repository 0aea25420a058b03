//! The keys as the server knows them, and what each opens.
//!
//! The file is looked at again when a request comes, no more than once a second, beside the other
//! requests. Once there was a file, a key is needed: a file that is gone or damaged opens nothing, and the
//! next start is refused without it.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use haft_core::{BoxFuture, Owner};

use super::key::{Key, KeyHash, KeyLimits, KeyState};
use super::key_file::{KeyFile, KeysError, Stamp};
use super::line::{RunLine, RunPermit};
use super::meter::Meter;
use super::rate::RateReport;
use crate::app::now;
use crate::error::{ApiError, ErrorCode};
use crate::options::ApiKey;

/// How long what is known of the file is believed.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// All keys, from the file and from the configuration.
pub(crate) struct Keyring {
    file: Option<KeyFile>,
    /// The limits of keys without their own.
    limits: KeyLimits,
    /// The key that the configuration names.
    configured: Option<Arc<Holder>>,
    /// Whoever comes where no key is needed.
    anybody: Arc<Holder>,
    known: RwLock<Arc<Known>>,
    /// Those of the keys in the file, by their ids. They stay whatever becomes of the file.
    meters: Meters,
    begun: Instant,
    /// When the file was looked at, in milliseconds since then.
    looked_at: AtomicU64,
}

/// What is known of the file.
enum Known {
    /// There never was one.
    NoFile,
    /// These keys are in it.
    Keys {
        stamp: Stamp,
        holders: HashMap<KeyHash, Arc<Holder>>,
    },
    /// It cannot be used.
    Unusable { reason: String },
}

/// One who may come in, or might once.
struct Holder {
    id: String,
    owner: Owner,
    hash: Option<KeyHash>,
    key: Option<Key>,
    limits: KeyLimits,
    meter: Arc<Meter>,
}

type Meters = Mutex<HashMap<String, Arc<Meter>>>;

/// That somebody may come in, and as whom.
#[derive(Clone)]
pub(crate) struct Pass(Arc<Holder>);

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pass({} of {})", self.0.id, self.0.owner)
    }
}

impl Pass {
    /// For what the server goes on with by itself. It was counted when it was asked for.
    pub(crate) fn of_tenant(owner: Owner) -> Self {
        Self(Arc::new(Holder {
            id: String::from("server"),
            owner,
            hash: None,
            key: None,
            limits: KeyLimits::default(),
            meter: Arc::default(),
        }))
    }

    /// Whose pass it is.
    pub(crate) fn owner(&self) -> &Owner {
        &self.0.owner
    }

    /// Which key it is by: its id, which is no secret.
    pub(crate) fn key_id(&self) -> &str {
        &self.0.id
    }

    /// The name of the key, where one was sent.
    pub(crate) fn key_name(&self) -> Option<&str> {
        match &self.0.key {
            Some(key) => Some(&key.name),
            None => self.0.hash.map(|_| self.0.id.as_str()),
        }
    }

    /// The roles of the key.
    pub(crate) fn roles(&self) -> &[String] {
        self.0.key.as_ref().map_or(&[], |key| &key.roles)
    }

    /// Counts a request for a model's work. None where requests are not counted.
    pub(crate) fn count(&self) -> Option<RateReport> {
        self.0.meter.count(self.0.limits)
    }

    /// Waits for room for one more run.
    pub(crate) async fn begin_run(&self, line: &Arc<RunLine>) -> Result<RunPermit, ApiError> {
        let running = self.0.meter.begin(self.0.limits)?;
        let slot = line.enter(&self.0.owner).await?;
        Ok(RunPermit {
            _slot: slot,
            _running: running,
        })
    }
}

impl Keyring {
    /// The keys of a file, if one is named, and of the configuration.
    pub(crate) fn open(
        file: Option<KeyFile>,
        configured: Option<&ApiKey>,
        limits: KeyLimits,
    ) -> Result<Arc<Self>, KeysError> {
        let named = |id: &str, hash| {
            Arc::new(Holder {
                id: id.to_owned(),
                owner: Owner::default(),
                hash,
                key: None,
                limits,
                meter: Arc::default(),
            })
        };
        let meters = Meters::default();
        let known = match &file {
            Some(file) => read(file, limits, &meters)?,
            None => Known::NoFile,
        };
        Ok(Arc::new(Self {
            file,
            limits,
            configured: configured.map(|key| named("configured", Some(key.hash()))),
            anybody: named("anybody", None),
            known: RwLock::new(Arc::new(known)),
            meters,
            begun: Instant::now(),
            looked_at: AtomicU64::new(0),
        }))
    }

    /// Whether somebody without a key is refused.
    pub(crate) fn needs_key(&self) -> bool {
        self.configured.is_some() || self.has_file()
    }

    /// Whether there is a file of keys, or was since the start.
    pub(crate) fn has_file(&self) -> bool {
        !matches!(*self.known(), Known::NoFile)
    }

    /// Where the file of keys is or would be; none without a data folder.
    pub(crate) fn file_path(&self) -> Option<&Path> {
        self.file.as_ref().map(KeyFile::path)
    }

    /// Whether there is a file of keys that cannot be read: then nobody comes in.
    pub(crate) fn is_unusable(&self) -> bool {
        matches!(&*self.known(), Known::Unusable { .. })
    }

    /// Looks at the file again, if that is due.
    pub(crate) async fn refresh(self: &Arc<Self>) {
        if self.file.is_none() {
            return;
        }
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last = self.looked_at.load(Ordering::Relaxed);
        let patience = u64::try_from(LOOK_AFTER.as_millis()).unwrap_or(u64::MAX);
        if now.saturating_sub(last) < patience {
            return;
        }
        let is_first = self
            .looked_at
            .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        if is_first {
            let ring = Arc::clone(self);
            // Whatever became of it, what is known is what counts.
            let _ = tokio::task::spawn_blocking(move || ring.look()).await;
        }
    }

    fn look(&self) {
        let Some(file) = &self.file else { return };
        let known = self.known();
        let failed = |source| KeysError::Io {
            path: file.path().to_owned(),
            source,
        };
        let now = match (file.stamp().map_err(failed), &*known) {
            (Ok(None), Known::NoFile) => return,
            (Ok(Some(now)), Known::Keys { stamp, .. }) if now == *stamp => return,
            (Ok(_), _) => read(file, self.limits, &self.meters),
            (Err(error), _) => Err(error),
        };
        let now = match now {
            Ok(Known::NoFile) => Known::Unusable {
                reason: format!("`{}` is gone", file.path().display()),
            },
            Ok(now) => now,
            Err(error) => Known::Unusable {
                reason: error.to_string(),
            },
        };
        match (&now, &*known) {
            (Known::Unusable { reason }, Known::Unusable { reason: told }) if reason == told => {
                return;
            }
            (Known::Unusable { reason }, _) => {
                tracing::error!("no key of the file of keys is let in: {reason}");
            }
            (Known::Keys { holders, .. }, _) => {
                tracing::info!(keys = holders.len(), "the file of keys was read again");
            }
            (Known::NoFile, _) => {}
        }
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(now);
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The keys of the file that are valid now; none where the file cannot be read.
    pub(crate) fn active_keys(&self) -> Option<Vec<Key>> {
        let now = now();
        match &*self.known() {
            Known::NoFile => Some(Vec::new()),
            Known::Keys { holders, .. } => {
                let keys = holders.values().filter_map(|holder| holder.key.clone());
                Some(
                    keys.filter(|key| key.state(now) == KeyState::Active)
                        .collect(),
                )
            }
            Known::Unusable { .. } => None,
        }
    }

    /// Who comes with this key, or without one.
    pub(crate) fn recognise(&self, given: Option<&str>) -> Result<Pass, ApiError> {
        self.admit(given.map(KeyHash::of))
    }

    /// The same for somebody who came in before: his key may not be worth anything any more.
    pub(crate) fn recognise_again(&self, pass: &Pass) -> Result<Pass, ApiError> {
        self.admit(pass.0.hash)
    }

    /// Becomes ready when a pass is not valid any more, with the reason. None for one that lasts as long as the server.
    ///
    /// A file of keys that cannot be read revokes nothing: it keeps new requests out, and may be repaired.
    pub(crate) fn revoked(self: &Arc<Self>, pass: &Pass) -> Option<BoxFuture<'static, ApiError>> {
        // Only keys of the file change.
        if self.file.is_none() || pass.0.key.is_none() {
            return None;
        }
        let (ring, pass) = (Arc::clone(self), pass.clone());
        Some(Box::pin(async move {
            loop {
                tokio::time::sleep(LOOK_AFTER).await;
                ring.refresh().await;
                match ring.recognise_again(&pass) {
                    Err(error) if error.code == ErrorCode::InvalidApiKey => return error,
                    _ => {}
                }
            }
        }))
    }

    fn admit(&self, given: Option<KeyHash>) -> Result<Pass, ApiError> {
        if !self.needs_key() {
            return Ok(Pass(Arc::clone(&self.anybody)));
        }
        let Some(given) = given else {
            return Err(no_entry(
                "an API key is needed: send the header `Authorization: Bearer KEY`",
            ));
        };
        let is_it = |holder: &&Arc<Holder>| holder.hash.is_some_and(|hash| hash.is(given));
        if let Some(holder) = self.configured.as_ref().filter(is_it) {
            return Ok(Pass(Arc::clone(holder)));
        }
        match &*self.known() {
            Known::NoFile => Err(wrong()),
            Known::Keys { holders, .. } => {
                let holder = holders.get(&given).ok_or_else(wrong)?;
                match holder.key.as_ref().map(|key| key.state(now())) {
                    Some(KeyState::Active) => Ok(Pass(Arc::clone(holder))),
                    Some(KeyState::Expired) => {
                        Err(no_entry("the time of this API key is over: use another"))
                    }
                    Some(KeyState::Revoked) | None => {
                        Err(no_entry("this API key was revoked: use another"))
                    }
                }
            }
            // The operator finds the reason in the log.
            Known::Unusable { .. } => Err(ApiError::new(
                ErrorCode::ServerError,
                "the server cannot read its API keys: its operator must repair that",
            )),
        }
    }
}

/// What the file says now.
fn read(file: &KeyFile, limits: KeyLimits, meters: &Meters) -> Result<Known, KeysError> {
    // First the stamp: if it changes meanwhile, the next look reads again.
    let stamp = file.stamp().map_err(|source| KeysError::Io {
        path: file.path().to_owned(),
        source,
    })?;
    let (Some(stamp), Some(keys)) = (stamp, file.read()?) else {
        return Ok(Known::NoFile);
    };
    let mut meters = meters.lock().unwrap_or_else(PoisonError::into_inner);
    meters.retain(|id, _| keys.iter().any(|key| key.id == *id));
    let holders = keys.into_iter().map(|key| {
        let holder = Holder {
            id: key.id.clone(),
            owner: Owner::new(&*key.tenant),
            hash: Some(key.hash()),
            limits: key.limits.or(limits),
            meter: Arc::clone(meters.entry(key.id.clone()).or_default()),
            key: Some(key.clone()),
        };
        (key.hash(), Arc::new(holder))
    });
    Ok(Known::Keys {
        stamp,
        holders: holders.collect(),
    })
}

fn wrong() -> ApiError {
    no_entry("the API key is wrong: check the `Authorization` header")
}

fn no_entry(message: &str) -> ApiError {
    ApiError::new(ErrorCode::InvalidApiKey, message)
}

#[cfg(test)]
#[path = "keyring_tests.rs"]
mod tests;
