//! Keys that are revoked while something of theirs is open.

use std::time::Duration;

use haft_models::ScriptedModel;
use haft_models::testing::{Fault, say};
use serde_json::json;

use crate::access::Keys;
use crate::support::{Served, Setup};
use crate::websocket::connect_with;

const SOON: Duration = Duration::from_secs(10);

/// A server whose model begins an answer and never ends it.
async fn endless(keys: &Keys) -> Served {
    let step = say("some words").fault(Fault::HangAfterEvents(3));
    let mut setup = Setup::of(ScriptedModel::new([step.forever()]));
    setup.data_dir = Some(keys.folder().to_owned());
    setup.serve().await
}

#[tokio::test]
async fn open_streams_of_a_revoked_key_are_cut_and_others_are_not() {
    let keys = Keys::new();
    let (own, other) = (keys.add("own", "acme"), keys.add("other", "acme"));
    let served = endless(&keys).await;
    let open = |key: &str| {
        let body = json!({"input": "go", "stream": true});
        served.posting("/responses", &body).bearer_auth(key).send()
    };
    let mut cut = open(&own).await.unwrap();
    let mut kept = open(&other).await.unwrap();
    let first = cut.chunk().await.unwrap().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    assert!(first.starts_with("event: response.created"), "{first}");
    let created: serde_json::Value = serde_json::from_str(
        first
            .lines()
            .nth(1)
            .unwrap()
            .strip_prefix("data: ")
            .unwrap(),
    )
    .unwrap();
    assert!(kept.chunk().await.unwrap().is_some());
    keys.revoke("own").await;
    let end = tokio::time::timeout(SOON, async {
        loop {
            match cut.chunk().await {
                Ok(Some(_)) => {}
                end => return end,
            }
        }
    });
    // Not a proper end: the client must not take what it has for the whole answer.
    assert!(end.await.expect("the stream stays open").is_err());
    let id = created["response"]["id"].as_str().unwrap();
    let path = format!("/responses/{id}");
    for _ in 0..200 {
        if served.get_as(&other, &path).await.status == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let stored = served.get_as(&other, &path).await.ok();
    assert_eq!(stored["status"], "cancelled");
    // The stream of another key of the same tenant is still there.
    let silent = tokio::time::timeout(Duration::from_millis(300), async {
        while let Ok(Some(_)) = kept.chunk().await {}
    });
    assert!(silent.await.is_err(), "the other stream has ended");
}

#[tokio::test]
async fn turn_of_a_revoked_key_on_a_socket_is_cut() {
    let keys = Keys::new();
    let own = keys.add("own", "acme");
    let served = endless(&keys).await;
    let bearer = format!("Bearer {own}");
    let mut socket = connect_with(&served, &[("authorization", &bearer)])
        .await
        .unwrap();
    socket.create(json!({"input": "go"})).await;
    let first = socket.next().await.unwrap();
    assert_eq!(first["type"], "response.created");
    keys.revoke("own").await;
    let closed = tokio::time::timeout(SOON, async { while socket.next().await.is_some() {} });
    closed.await.expect("the turn goes on");
}
