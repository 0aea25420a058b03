//! Four times as many clients as there may be at once.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::Server;
use crate::backend;
use crate::client::{Tally, load};
use crate::support::haft;

/// What the backend takes for every answer: so little that the server has to work for its peak.
const LATENCY: Duration = Duration::from_millis(20);

/// How long each share is measured.
const LASTS: Duration = Duration::from_secs(4);

/// How often a measurement may be disturbed.
const TRIES: usize = 6;

/// How many MiB a crowd may take beyond those who are served.
const MORE_MEMORY: f64 = 48.0;

/// Measures at the limit and at four times the limit until the crowd gets four fifths of the peak; what
/// must never happen is checked each time.
async fn measure(server: &Server, key: Option<&str>, limit: usize, refused: u16, wait: Duration) {
    let mut told = Vec::new();
    for _ in 0..TRIES {
        let peak = load(&server.address, key, limit, LASTS).await;
        check(&peak, refused, wait);
        let memory = server.memory();
        let crowd = load(&server.address, key, 4 * limit, LASTS).await;
        check(&crowd, refused, wait);
        let more = server.memory() - memory;
        assert!(more < MORE_MEMORY, "{more} MiB more: {crowd:?}");
        let share = crowd.good() * 100 / peak.good().max(1);
        eprintln!("{share} % of the peak, {more} MiB more: {crowd:?}");
        let was_refused = crowd.answers.contains_key(&refused);
        assert!(was_refused, "nobody had to be refused: {crowd:?}");
        if share >= 80 {
            return;
        }
        told.push(format!("{peak:?} then {crowd:?}"));
    }
    panic!("less than four fifths of the peak, every time: {told:#?}");
}

/// Everybody was served or told to come back, within bounds.
fn check(tally: &Tally, refused: u16, wait: Duration) {
    let statuses: BTreeSet<_> = tally.answers.keys().copied().collect();
    assert!(
        statuses.is_subset(&BTreeSet::from([200, refused])),
        "{tally:?}"
    );
    // Waiting, the answer, and twenty seconds for a machine that does something else.
    let bound = wait + LATENCY + Duration::from_secs(20);
    assert!(tally.slowest < bound, "{tally:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_for_the_whole_server_waits_or_comes_back_and_costs_nobody_his_share() {
    const LIMIT: usize = 12;
    let backend = backend::start(LATENCY).await;
    // As many may wait as may run; the other half is refused.
    let config = format!(
        "[server]\nmax_runs = {LIMIT}\n[limits]\nmax_waiting = {LIMIT}\nmax_wait = \"5s\"\n"
    );
    let server = Server::start(&backend, &config, |_| {}).await;
    measure(&server, None, LIMIT, 503, Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_with_one_key_is_sent_back_and_does_not_touch_the_others() {
    const LIMIT: usize = 8;
    let backend = backend::start(LATENCY).await;
    let mut keys = Vec::new();
    let server = Server::start(&backend, "[server]\nmax_runs = 16\n", |folder| {
        let limit = LIMIT.to_string();
        for arguments in [
            &["crowd", "--concurrent", &limit][..],
            &["other", "--tenant", "other"],
        ] {
            let arguments = [&["keys", "add"], arguments].concat();
            let output = haft(folder, &arguments).output().unwrap();
            let key = String::from_utf8(output.stdout).unwrap();
            keys.push(key.trim().to_owned());
        }
    })
    .await;
    let [crowd, other] = keys.as_slice() else {
        panic!("two keys are made");
    };
    measure(&server, Some(crowd), LIMIT, 429, Duration::ZERO).await;
    let (crowd, others) = tokio::join!(
        load(&server.address, Some(crowd), 4 * LIMIT, LASTS),
        load(&server.address, Some(other), 4, LASTS),
    );
    assert!(crowd.answers.contains_key(&429), "{crowd:?}");
    assert!(others.good() > 0 && others.answers.len() == 1, "{others:?}");
}
