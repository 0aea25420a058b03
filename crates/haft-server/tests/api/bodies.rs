//! The memory that requests and responses may use together.

use std::time::Duration;

use haft_models::ScriptedModel;
use haft_models::testing::{Fault, Step, say};
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::time::{sleep, timeout};

use crate::limits::told;
use crate::raw::{Raw, address};
use crate::support::{Answer, Served, Setup, last};
use crate::websocket::connect_with;

const KIB: usize = 1 << 10;

/// A server that takes bodies of 512 KiB, and as much at once.
async fn serve(step: Step) -> Served {
    let setup = Setup::of(ScriptedModel::new([step.forever()])).options(|options| {
        options.max_runs = 1;
        options.max_body_bytes = 512 * KIB;
        options.limits.max_pending_bytes = 512 * KIB;
        options.limits.max_wait = Duration::from_mins(1);
    });
    setup.serve().await
}

fn body(size: usize) -> Value {
    json!({"input": "x".repeat(size), "store": false})
}

/// Sends half of what may come, which needs no model.
async fn half(served: &Served) -> Answer {
    let item = json!({"type": "message", "role": "user", "content": "x".repeat(256 * KIB)});
    served
        .post("/conversations", json!({"items": [item]}))
        .await
}

/// Does this until it leaves no room for others. What is just being read may be what is sent away, so
/// each time has longer.
async fn filled<T>(served: &Served, fill: impl AsyncFn() -> T) -> T {
    for tries in 0..8 {
        let held = fill().await;
        sleep(Duration::from_millis(50 << tries)).await;
        let answer = half(served).await;
        if answer.status != 200 {
            assert_eq!(told(&answer), (503, "server_is_overloaded", Some("1")));
            return held;
        }
    }
    panic!("there is always room");
}

/// Waits until there is room again.
async fn until_empty(served: &Served) {
    for _ in 0..500 {
        if half(served).await.status == 200 {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("there is no room");
}

#[tokio::test]
async fn bodies_that_are_read_share_what_there_is_and_small_ones_are_free() {
    let served = serve(say("hello")).await;
    // Nearly all of a body, and then nothing.
    let slow = filled(&served, async || {
        let mut slow = Raw::begin(&served, 512 * KIB).await;
        slow.send(&vec![b' '; 512 * KIB - 1]).await;
        slow
    })
    .await;
    let mut socket = connect_with(&served, &[]).await.unwrap();
    socket.create(body(256 * KIB)).await;
    assert_eq!(
        socket.refused().await,
        (503, "server_is_overloaded".into(), None)
    );
    assert_eq!(served.post("/responses", body(KIB)).await.status, 200);
    // One that may never come is told so, whatever the others have.
    let too_large = served.post("/responses", body(512 * KIB)).await;
    assert_eq!(too_large.error(), (413, "request_too_large", None));
    drop(slow);
    until_empty(&served).await;
    let large = body(500 * KIB);
    assert_eq!(served.post("/responses", large.clone()).await.status, 200);
    let mut socket = connect_with(&served, &[]).await.unwrap();
    assert_eq!(socket.response(large).await["status"], "completed");
}

#[tokio::test]
async fn a_body_counts_while_it_waits_and_not_when_it_is_under_way() {
    let served = serve(Step::default().fault(Fault::Hang)).await;
    let large = body(450 * KIB);
    let mut running = large.clone();
    running["store"] = true.into();
    running["background"] = true.into();
    served.create(running).await;
    until_empty(&served).await;
    let waiting = filled(&served, async || Raw::post(&served, &large).await).await;
    drop(waiting);
    until_empty(&served).await;
    let socket = filled(&served, async || {
        let mut socket = connect_with(&served, &[]).await.unwrap();
        socket.create(large.clone()).await;
        socket
    })
    .await;
    drop(socket);
    until_empty(&served).await;
}

#[tokio::test]
async fn unfinished_websocket_messages_share_the_budget() {
    let served = serve(say("hello")).await;
    let unfinished = filled(&served, async || {
        let mut socket = connect_with(&served, &[]).await.unwrap();
        // A ping between two fragments does not make the message free.
        socket.fragment(&"x".repeat(200 * KIB), true).await;
        socket.ping().await;
        socket.fragment(&"x".repeat(280 * KIB), false).await;
        socket
    })
    .await;
    let mut other = connect_with(&served, &[]).await.unwrap();
    other.fragment(&"x".repeat(300 * KIB), true).await;
    let refused = timeout(Duration::from_secs(30), other.refused()).await;
    assert_eq!(refused.unwrap(), (503, "server_is_overloaded".into(), None));
    assert_eq!(other.close_code().await, Some(1013));
    drop(unfinished);
    until_empty(&served).await;
}

/// Asks for something and reads nothing of the response.
async fn ask_and_ignore(served: &Served, path: &str) -> tokio::net::TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    // The kernel would take the whole response otherwise.
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(address(served)).await.unwrap();
    let request = format!("GET /v1{path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes())
        .await
        .unwrap();
    stream
}

#[tokio::test]
async fn responses_that_are_not_read_share_the_budget() {
    const MIB: usize = 1 << 20;
    let model = ScriptedModel::new([say("hello").forever()]);
    let setup = Setup::of(model).options(|options| {
        options.max_body_bytes = 32 * MIB;
        options.limits.max_pending_bytes = 32 * MIB;
    });
    let served = setup.serve().await;
    let item = json!({"type": "message", "role": "user", "content": "x".repeat(8 * MIB)});
    let large = served
        .post("/conversations", json!({"items": [item, item, item]}))
        .await;
    let path = format!(
        "/conversations/{}/items",
        large.ok()["id"].as_str().unwrap()
    );
    let mut unread = ask_and_ignore(&served, &path).await;
    // Once its response has begun it has its share of the budget: a request below must not be faster.
    let mut status = [0; 12];
    tokio::io::AsyncReadExt::read_exact(&mut unread, &mut status)
        .await
        .unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    let mut statuses = Vec::new();
    for _ in 0..500 {
        let status = served.get(&path).await.status;
        statuses.push(status);
        if status == 503 {
            break;
        }
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(statuses.last(), Some(&503), "{statuses:?}");
    let metrics = served.request("GET", "/../metrics");
    let metrics = served.send(metrics).await.body;
    let metrics = metrics.as_str().unwrap();
    let used = metrics
        .split("\nhaft_memory_budget_used_bytes ")
        .nth(1)
        .unwrap();
    let used = used.split(|it: char| !it.is_ascii_digit()).next().unwrap();
    assert!(used.parse::<usize>().unwrap() > 20 * MIB, "{used}");
    // What is small is still answered.
    assert_eq!(served.get("/models").await.status, 200);
    drop(unread);
    for _ in 0..500 {
        if served.get(&path).await.status == 200 {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("the memory of an unread response is not released");
}

#[tokio::test]
async fn an_endless_answer_is_cut_off() {
    // A quarter of 512 KiB, each byte counted four times.
    let short = serve(say("x".repeat(20 * KIB))).await;
    let long = serve(say("x".repeat(40 * KIB))).await;
    for store in [false, true] {
        let request = json!({"input": "hi", "store": store});
        assert_eq!(short.create(request.clone()).await["status"], "completed");
        let rejected = long.post("/responses", request.clone()).await;
        assert_eq!(rejected.error(), (500, "model_error", None));
        assert_eq!(rejected.header("x-should-retry"), Some("false"));
        assert_eq!(
            last(&short.stream(request.clone()).await)["status"],
            "completed"
        );
        let failed = long.stream(request).await;
        assert_eq!(last(&failed)["status"], "failed", "{failed:?}");
    }
}
