//! What the loop costs: CPU per turn in process, over the number of turns and tools; and over HTTP,
//! beside a bare loop that sends the same bytes.
//!
//! Figures are CPU time of the thread that runs the loop, so that neither the server beside it nor
//! whatever else this machine does is counted. `cargo bench --bench run_loop`

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs
)]

#[path = "run_loop/http.rs"]
mod http;
#[path = "run_loop/in_process.rs"]
mod in_process;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The CPU time of this thread so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap(),
        time.tv_nsec.try_into().unwrap(),
    )
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn main() {
    // `cargo test --benches` and `cargo nextest` only want to see that it starts.
    let quick = std::env::args().any(|argument| argument == "--test");
    in_process::print(quick);
    http::print(quick);
}
