//! Nothing that was acknowledged is lost, and nothing is there by halves, however often the server is
//! killed.
//!
//! Some clients do everything that can be done with stored responses and conversations; the server is
//! killed at a random moment and started again on the same data; then everything is compared with what
//! the clients were told. `scripts/crash` does it more often; what is random follows from a seed.
//!
//! - `HAFT_CRASH_KILLS`: how often it is killed.
//! - `HAFT_CRASH_SEED`: what the random moments and requests follow from.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod backend;
mod census;
mod checks;
mod client;
mod ledger;
mod load;
mod server;
mod talking;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use census::Census;
use client::Client;
use fastrand::Rng;
use load::Worker;
use serde_json::json;
use server::Place;
use support::Running;

const WORKERS: usize = 6;
/// After about so many rounds the clients begin a new conversation for all.
const SHARED_ROUNDS: u64 = 20;
/// So many of the responses of earlier rounds are looked at again in each.
const SAMPLE: usize = 20;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("`{name}` must be a number, not `{text}`")),
    )
}

#[test]
fn nothing_acknowledged_is_lost_however_often_the_server_is_killed() {
    let kills = number("HAFT_CRASH_KILLS").unwrap_or(10);
    let seed = number("HAFT_CRASH_SEED").unwrap_or_else(|| fastrand::u64(..1_000_000));
    println!("{kills} kills with the seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let mut trial = Trial::new(folder.path(), seed);
    let mut killed = 0;
    while killed < kills {
        match trial.round(kills - killed) {
            Ok(times) => killed += times,
            Err(problems) => {
                let folder = folder.keep();
                panic!(
                    "after {killed} kills, with the seed {seed}, in {}:\n{}",
                    folder.display(),
                    problems.join("\n")
                );
            }
        }
        println!("{killed} of {kills} kills, {} responses", trial.known());
    }
    trial.stop();
}

/// A server that is killed again and again, and those who use it.
struct Trial {
    rng: Rng,
    place: Place,
    running: Option<(Running, Client)>,
    workers: Vec<Worker>,
    census: Census,
    /// The conversation that all use.
    shared: Option<String>,
}

impl Trial {
    fn new(folder: &Path, seed: u64) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            place: Place::new(folder, backend::start()),
            running: None,
            workers: (0..WORKERS)
                .map(|number| Worker::new(number, seed))
                .collect(),
            census: Census::default(),
            shared: None,
        }
    }

    /// So many responses are known to be there.
    fn known(&self) -> usize {
        let ledgers = self.workers.iter().map(|worker| &worker.ledger);
        ledgers.map(|ledger| ledger.responses.len()).sum()
    }

    /// Uses the server, kills it, starts it again and checks everything. How often it was killed, which
    /// is at most so often.
    fn round(&mut self, at_most: u64) -> Result<u64, Vec<String>> {
        let (server, client) = match self.running.take() {
            Some(running) => running,
            None => self.place.start().map_err(|problem| vec![problem])?,
        };
        if self.shared.is_none() || self.rng.u64(..SHARED_ROUNDS) == 0 {
            self.share_anew(&client);
        }
        self.use_and_kill(server, &client);
        let mut times = 1;
        // Sometimes also before it is ready again, or while it works on what was left.
        while times < at_most && self.rng.u32(..4) == 0 {
            let server = if self.rng.bool() {
                self.place.spawn()
            } else {
                self.place.start().map_err(|problem| vec![problem])?.0
            };
            thread::sleep(Duration::from_millis(self.rng.u64(..200)));
            server.kill();
            times += 1;
        }
        let (server, client) = self.place.start().map_err(|problem| vec![problem])?;
        let problems = self.check(&client, times == at_most);
        self.running = Some((server, client));
        if problems.is_empty() {
            return Ok(times);
        }
        Err(problems)
    }

    fn share_anew(&mut self, client: &Client) {
        let made = client.ask("POST", "/conversations", Some(&json!({})));
        let id = made
            .ok()
            .and_then(|(_, made)| Some(made["id"].as_str()?.to_owned()));
        self.shared = id;
        for worker in &mut self.workers {
            worker.ledger.shared.clear();
        }
    }

    fn use_and_kill(&mut self, server: Running, client: &Client) {
        let is_killed = AtomicBool::new(false);
        let shared = self.shared.as_deref().unwrap_or_default();
        let moment = Duration::from_millis(self.rng.u64(..1_000));
        thread::scope(|scope| {
            for worker in &mut self.workers {
                scope.spawn(|| worker.work(client, shared, &is_killed));
            }
            thread::sleep(moment);
            is_killed.store(true, Ordering::SeqCst);
            server.kill();
        });
    }

    fn check(&mut self, client: &Client, is_everything: bool) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let mut problems = Vec::new();
        for worker in &mut self.workers {
            let known = worker.ledger.responses.len();
            let mut is_chosen = || is_everything || self.rng.usize(..known) < SAMPLE;
            let ids = worker.ledger.responses.keys();
            let sample: BTreeSet<String> = ids.filter(|_| is_chosen()).cloned().collect();
            let is_old = |id: &str| sample.contains(id);
            problems.extend(checks::check_responses(client, &mut worker.ledger, is_old));
        }
        let database = self.place.database();
        problems.extend(runtime.block_on(census::settled(&database)));
        for worker in &mut self.workers {
            problems.extend(checks::check_talks(client, &mut worker.ledger));
        }
        let shared = self.shared.as_deref().unwrap_or_default();
        let parts = self.workers.iter().flat_map(|worker| &worker.ledger.shared);
        problems.extend(checks::check_shared(client, shared, parts));
        problems.extend(runtime.block_on(self.census.count(&database)));
        problems.extend(self.place.errors());
        problems
    }

    /// Ends the last server as an operator does.
    fn stop(mut self) {
        let Some((mut server, _)) = self.running.take() else {
            return;
        };
        server.signal("TERM");
        assert!(server.0.wait().unwrap().success());
        let problems = census::check_file(&self.place.database());
        assert!(problems.is_empty(), "{problems:#?}");
        assert_eq!(self.place.errors(), Vec::<String>::new());
    }
}
