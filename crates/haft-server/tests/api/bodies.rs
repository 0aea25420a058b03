//! What the bodies of all requests may take together.

use std::time::Duration;

use haft_models::ScriptedModel;
use haft_models::testing::{Fault, Step, say};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::limits::told;
use crate::raw::Raw;
use crate::support::{Answer, Served, Setup};
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
