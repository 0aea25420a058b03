//! More than a server can do: what it takes on it finishes, the rest is told to come back, and memory
//! stays where it is.
//!
//! Figures are ratios within one run, and a run that falls short is measured again: machines are busy
//! with other things. What must never happen fails at once.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::print_stderr, reason = "figures")]

mod backend;
mod bodies;
mod client;
mod crowd;
mod readers;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;

use support::{Running, haft};
use tokio::sync::{Mutex, MutexGuard};

/// They measure: nothing else runs beside them.
static ALONE: Mutex<()> = Mutex::const_new(());

/// A server with this configuration, in front of a backend.
struct Server {
    running: Running,
    address: String,
    _folder: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Server {
    async fn start(backend: &str, config: &str, prepare: impl FnOnce(&Path)) -> Self {
        let alone = ALONE.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let model = format!(
            "[[model]]\nname = \"default\"\nadapter = \"openai-chat\"\nbase_url = \
             \"http://{backend}/v1\"\n"
        );
        std::fs::write(
            folder.path().join("haft.toml"),
            format!("{config}\n{model}"),
        )
        .unwrap();
        prepare(folder.path());
        let command = haft(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
        let (running, lines) = Running::start_with(command);
        let address = lines[0].strip_prefix("listening on http://").unwrap();
        Self {
            address: address.to_owned(),
            running,
            _folder: folder,
            _alone: alone,
        }
    }

    /// How much memory it has, in MiB.
    fn memory(&self) -> f64 {
        let path = format!("/proc/{}/status", self.running.0.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        let kibibytes = line.split_whitespace().nth(1).unwrap();
        kibibytes.parse::<f64>().unwrap() / 1024.0
    }
}
