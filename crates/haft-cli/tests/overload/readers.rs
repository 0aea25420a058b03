//! Clients that ask for a stream and do not read it.

use std::time::{Duration, Instant};

use tokio::net::{TcpSocket, TcpStream};

use crate::Server;
use crate::backend::{self, ENDLESS};
use crate::client::{Client, load};

const LATENCY: Duration = Duration::from_millis(250);
const LASTS: Duration = Duration::from_secs(4);
const TRIES: usize = 6;

/// How much one who does not read may take, in MiB: what was made until nobody could take more.
const EACH: f64 = 1.5;

/// Asks for a stream without an end and reads nothing of it.
async fn ask_and_sleep(address: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    // As little as can be lies ready for one who does not fetch it.
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = socket.connect(address.parse().unwrap()).await.unwrap();
    let mut client = Client::over(stream, address);
    let body = format!(r#"{{"input":"{ENDLESS}","stream":true,"store":false}}"#);
    client.ask(None, &body).await;
    client.into_stream()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_who_do_not_read_take_a_bounded_part_of_memory_and_nothing_from_others() {
    const SLEEPERS: usize = 250;
    let backend = backend::start(LATENCY).await;
    let server = Server::start(&backend, "[server]\nmax_runs = 1000\n", |_| {}).await;
    let alone = load(&server.address, None, 8, LASTS).await;
    let before = server.memory();
    let mut sleepers = Vec::new();
    for _ in 0..SLEEPERS {
        sleepers.push(ask_and_sleep(&server.address).await);
    }
    let full = settled(&server).await;
    eprintln!("{before} MiB before, {full} MiB with {SLEEPERS} who do not read");
    let each = (full - before) / f64::from(u32::try_from(SLEEPERS).unwrap());
    assert!(each < EACH, "{each} MiB for each who does not read");
    let mut told = Vec::new();
    for _ in 0..TRIES {
        let beside = load(&server.address, None, 8, LASTS).await;
        assert_eq!(beside.answers.keys().copied().collect::<Vec<_>>(), [200]);
        let now = server.memory();
        let share = beside.good() * 100 / alone.good().max(1);
        eprintln!("{share} % of what others had alone, now {now} MiB");
        assert!(now < full + 32.0, "{full} MiB have become {now}");
        if share >= 80 {
            return;
        }
        told.push(format!("{alone:?} then {beside:?}"));
    }
    panic!("others are held up, every time: {told:#?}");
}

/// The memory when it does not grow any more, or after a minute.
async fn settled(server: &Server) -> f64 {
    let mut last = server.memory();
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now = server.memory();
        if now < last + 1.0 {
            return now;
        }
        last = now;
    }
    last
}

/// Waits until so many runs are under way.
async fn until_running(server: &Server, runs: usize) {
    for _ in 0..600 {
        let mut client = Client::connect(&server.address).await;
        let metrics = client.get("/metrics").await;
        let line = metrics
            .lines()
            .find(|line| line.starts_with("haft_runs_active "));
        if line == Some(&format!("haft_runs_active {runs}")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("there are never {runs} runs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_read_gives_way_when_others_wait() {
    const LIMIT: usize = 8;
    let backend = backend::start(LATENCY).await;
    let config = format!("[server]\nmax_runs = {LIMIT}\n[limits]\nmax_wait = \"2m\"\n");
    let server = Server::start(&backend, &config, |_| {}).await;
    let mut sleepers = Vec::new();
    for _ in 0..LIMIT {
        sleepers.push(ask_and_sleep(&server.address).await);
    }
    // All places are taken by those who would hold them for two minutes.
    until_running(&server, LIMIT).await;
    let begun = Instant::now();
    let mut client = Client::connect(&server.address).await;
    client.ask(None, r#"{"input":"go","store":false}"#).await;
    assert_eq!(client.answer().await.0, 200);
    assert!(begun.elapsed() < Duration::from_mins(1));
    drop(sleepers);
}
