//! What is checked before a server acknowledges anything: that it has the keys that its data was sealed with and
//! the API keys that its data was used with, and that its clock is not behind its data.

use std::path::PathBuf;
use std::time::Duration;

use haft_core::{ClockEvent, ClockReading, StoreError, observe_clock, resume_clock};

use crate::app::App;

/// The note with the ids of all sealing keys that were ever used with the store.
const SEALING_KEYS: &str = "sealing_keys";

/// The note that says whether clients of the store need API keys of the data folder.
pub const API_KEYS_NOTE: &str = "api_keys";

/// The content of that note once there was a file of API keys.
pub const API_KEYS_IN_USE: &str = "in use";

/// The content of that note when the operator gave a missing file of API keys up.
const API_KEYS_FORGOTTEN: &str = "forgotten";

/// How often the server looks whether a first API key was made.
const KEYS_PAUSE: Duration = Duration::from_secs(1);

/// The note with the time of the last run.
const CLOCK: &str = "clock";

/// How often the clock is looked at.
const CLOCK_PAUSE: Duration = Duration::from_secs(5);

/// How often the time is noted: once in so many of these pauses.
const NOTED_EVERY: u32 = 12;

/// Why a server does not start with its data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The data was used with sealing keys that are not there.
    #[error(
        "sealing keys missing from `sealing-keys`: {}; restore the file from a backup, or start once with \
         `--forget-sealing-keys` (data sealed with them becomes unreadable)",
        ids.join(", ")
    )]
    MissingKeys {
        /// The ids of the missing keys.
        ids: Vec<String>,
    },
    /// The data was used with API keys, and `keys.json` is missing.
    #[error(
        "the file of API keys `{path}` is missing, although this data was used with it: restore it from a \
         backup, make new keys with `haft keys add`, or let everybody in with `--forget-api-keys`",
        path = path.display()
    )]
    MissingApiKeys {
        /// Where the file was.
        path: PathBuf,
    },
    /// The clock is behind the data.
    #[error(
        "the system clock is {seconds}s behind the time of the last run; set the clock, or start once with \
         `--accept-clock` (new records may then be deleted too early)"
    )]
    ClockBehind {
        /// How far it is behind.
        seconds: i64,
    },
    /// The store cannot be read or written.
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl App {
    /// Refuses to start with data that does not fit.
    pub(crate) async fn verify_start(&self) -> Result<(), StartError> {
        // Without a data folder the keys last as long as the process.
        if self.spill_folder.is_some() {
            self.verify_keys().await?;
            self.verify_api_keys().await?;
        }
        self.verify_clock().await
    }

    async fn verify_keys(&self) -> Result<(), StartError> {
        let mut ids = self.keys.ids();
        let noted = self.store.server_note(SEALING_KEYS).await?;
        let noted: Vec<String> = noted
            .and_then(|noted| serde_json::from_str(&noted).ok())
            .unwrap_or_default();
        let missing: Vec<String> = noted
            .iter()
            .filter(|id| !ids.contains(id))
            .cloned()
            .collect();
        if !missing.is_empty() {
            if !self.options.forget_sealing_keys {
                return Err(StartError::MissingKeys { ids: missing });
            }
            let missing = missing.join(", ");
            tracing::warn!(
                missing,
                "starting without sealing keys; data sealed with them is unreadable"
            );
        }
        ids.sort();
        if noted != ids {
            let json = serde_json::Value::from(ids).to_string();
            self.store.put_server_note(SEALING_KEYS, &json).await?;
        }
        Ok(())
    }

    /// Refuses to start without the file of API keys if there was one: a server without it would need no key.
    async fn verify_api_keys(&self) -> Result<(), StartError> {
        if self.keyring.has_file() {
            return self.note_api_keys(API_KEYS_IN_USE).await;
        }
        let noted = self.store.server_note(API_KEYS_NOTE).await?;
        let was_in_use = noted.as_deref() == Some(API_KEYS_IN_USE);
        let Some(path) = self.keyring.file_path().filter(|_| was_in_use) else {
            return Ok(());
        };
        if !self.options.forget_api_keys {
            return Err(StartError::MissingApiKeys { path: path.into() });
        }
        tracing::warn!("the file of API keys is given up");
        self.note_api_keys(API_KEYS_FORGOTTEN).await
    }

    async fn note_api_keys(&self, note: &str) -> Result<(), StartError> {
        if self.store.server_note(API_KEYS_NOTE).await?.as_deref() != Some(note) {
            self.store.put_server_note(API_KEYS_NOTE, note).await?;
        }
        Ok(())
    }

    /// Notes for the next start that API keys are in use, when the first is made while the server runs.
    pub(crate) async fn watch_api_keys(&self) {
        while self.keyring.file_path().is_some() {
            self.keyring.refresh().await;
            if self.keyring.has_file() {
                match self.note_api_keys(API_KEYS_IN_USE).await {
                    Ok(()) => return,
                    Err(error) => {
                        tracing::error!(%error, "the use of API keys cannot be noted");
                    }
                }
            }
            tokio::time::sleep(KEYS_PAUSE).await;
        }
    }

    async fn verify_clock(&self) -> Result<(), StartError> {
        let last = self.store.server_note(CLOCK).await?;
        let last = last.and_then(|last| last.parse::<i64>().ok());
        if let Some(last) = last
            && let Err(seconds) = resume_clock(last)
        {
            if !self.options.accept_clock {
                return Err(StartError::ClockBehind { seconds });
            }
            tracing::warn!(
                seconds,
                "accepting a system clock that is behind the last run"
            );
        }
        self.note_clock(observe_and_log()).await
    }

    async fn note_clock(&self, reading: ClockReading) -> Result<(), StartError> {
        let settled = reading.settled.to_string();
        Ok(self.store.put_server_note(CLOCK, &settled).await?)
    }

    /// Watches the clock for as long as the server runs, and notes the time for the next start.
    pub(crate) async fn watch_clock(&self) {
        loop {
            for _ in 1..NOTED_EVERY {
                tokio::time::sleep(CLOCK_PAUSE).await;
                observe_and_log();
            }
            tokio::time::sleep(CLOCK_PAUSE).await;
            if let Err(error) = self.note_clock(observe_and_log()).await {
                tracing::error!(%error, "failed to store the current time");
            }
        }
    }
}

fn observe_and_log() -> ClockReading {
    let (reading, event) = observe_clock();
    match event {
        Some(ClockEvent::SetBack(seconds)) => {
            tracing::error!(
                seconds,
                "system clock was set back; using elapsed time for new records until it is corrected"
            );
        }
        Some(ClockEvent::SetForward(seconds)) => {
            tracing::error!(
                seconds,
                "system clock jumped ahead; retention ignores the new time for one hour"
            );
        }
        Some(ClockEvent::InStep) => tracing::warn!("system clock is consistent again"),
        None => {}
    }
    reading
}
