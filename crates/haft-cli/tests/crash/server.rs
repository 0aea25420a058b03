//! The server as a process that is started, killed and started again on the same data.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::client::Client;
use crate::support::{Running, haft};

/// No start takes so long, whatever a dead server left behind.
const START: Duration = Duration::from_mins(1);

/// Where a server keeps its things.
pub(crate) struct Place {
    folder: PathBuf,
    /// How much of the log was looked at.
    read: usize,
}

impl Place {
    /// A folder with a configuration in it that asks this provider.
    pub(crate) fn new(folder: &Path, backend: SocketAddr) -> Self {
        let config = format!(
            "[[model]]\nname = \"m\"\nadapter = \"openai-chat\"\nbase_url = \"http://{backend}/v1\"\n"
        );
        fs::write(folder.join("haft.toml"), config).unwrap();
        Self {
            folder: folder.to_owned(),
            read: 0,
        }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.join("haft-data/haft.db")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// Starts a process, ready or not.
    pub(crate) fn spawn(&self) -> Running {
        let log: File = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log())
            .unwrap();
        let child = haft(&self.folder, &["serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn();
        Running(child.unwrap())
    }

    /// Starts a server, and waits until it answers.
    pub(crate) fn start(&self) -> Result<(Running, Client), String> {
        let mut running = self.spawn();
        let out = running.0.stdout.take().unwrap();
        let (found, address) = mpsc::channel();
        thread::spawn(move || {
            // To the end, so that the server never waits for somebody who reads.
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if let Some(address) = line.strip_prefix("listening on http://") {
                    let _ = found.send(address.to_owned());
                }
            }
        });
        let address = address
            .recv_timeout(START)
            .map_err(|_| format!("the server does not start; its log:\n{}", self.end_of_log()))?;
        let client = Client { address };
        match client.get("/models") {
            Ok((200, _)) => Ok((running, client)),
            other => Err(format!("the restarted server answers {other:?}")),
        }
    }

    /// What the log has at level error since this was asked last.
    pub(crate) fn errors(&mut self) -> Vec<String> {
        let log = fs::read(self.log()).unwrap_or_default();
        let new = String::from_utf8_lossy(log.get(self.read..).unwrap_or_default()).into_owned();
        self.read = log.len();
        let is_bad = |line: &&str| line.contains(" ERROR ") || line.contains("panicked");
        let bad = new.lines().filter(is_bad);
        bad.map(|line| format!("in the log: {line}")).collect()
    }

    fn end_of_log(&self) -> String {
        let log = fs::read(self.log()).unwrap_or_default();
        let start = log.len().saturating_sub(4_000);
        String::from_utf8_lossy(&log[start..]).into_owned()
    }
}
