//! The servers' tools in a catalogue.

use std::time::Duration;

use haft_catalog::{Catalog, Snapshot};
use serde_json::json;

use crate::kit::{LONG, Place, call, tool, until};

fn wire_names(snapshot: &Snapshot) -> Vec<String> {
    snapshot.names().map(ToString::to_string).collect()
}

#[tokio::test]
async fn the_catalogue_follows_the_servers_in_their_order() {
    let place = Place::new();
    let pool = place.pool();
    let mut first = place.fake("zeta", &["modern"]);
    first.pin = Some(haft_mcp::Pin::Off);
    first.allow = Some(vec!["echo".into(), "change".into(), "extra_0".into()]);
    let mut second = place.fake("alpha", &["legacy"]);
    second.allow = Some(vec!["echo".into()]);
    let first = pool.add(first).unwrap();
    pool.add(second).unwrap();
    pool.add(place.fake("down", &["exits-at-once"])).unwrap();

    let catalog = Catalog::new();
    let offering = pool.offer_in(&catalog);
    assert!(catalog.is_empty() && place.starts() == 0);
    offering.ask_all(LONG).await;
    let before = catalog.snapshot();
    let expected = ["zeta__echo", "zeta__change", "alpha__echo"];
    assert_eq!(wire_names(&before), expected);

    call(&first, "change", json!({})).await.unwrap();
    until("the new tool is in the catalogue", || {
        catalog.get("zeta__extra_0").is_some()
    })
    .await;
    // A run that has begun sees what it saw.
    assert_eq!(wire_names(&before), expected);
    assert!(pool.remove("alpha").await);
    until("its tools are gone", || {
        catalog.get("alpha__echo").is_none()
    })
    .await;
    drop(offering);
    pool.close().await;
}

#[tokio::test]
async fn what_is_known_from_before_is_offered_without_starting_anything() {
    let place = Place::new();
    let listed = json!([tool("read", "Reads.")]);
    let pool = place.pool();
    pool.add(place.listing("files", &listed)).unwrap();
    let catalog = Catalog::new();
    let offering = pool.offer_in(&catalog);
    offering.ask_all(Duration::from_secs(10)).await;
    assert_eq!(wire_names(&catalog.snapshot()), ["files__read"]);
    pool.close().await;

    let pool = place.pool();
    pool.add(place.listing("files", &listed)).unwrap();
    let catalog = Catalog::new();
    let _offering = pool.offer_in(&catalog);
    assert_eq!(wire_names(&catalog.snapshot()), ["files__read"]);
    assert_eq!(place.starts(), 1);
}

#[tokio::test]
async fn what_a_model_reads_stays_byte_for_byte_the_same_until_something_is_added_behind_it() {
    let place = Place::new();
    let pool = place.pool();
    let mut settings = place.fake("files", &["modern"]);
    settings.pin = Some(haft_mcp::Pin::Off);
    let server = pool.add(settings).unwrap();
    let catalog = Catalog::new();
    let offering = pool.offer_in(&catalog);
    let rendered = || {
        let binding = catalog.snapshot().bind().build().unwrap();
        let format = haft_core::ViewFormat::Mcp;
        let tools = binding.rendered(format);
        tools.map(|tool| tool.to_string()).collect::<Vec<_>>()
    };
    offering.ask_all(LONG).await;
    let before = rendered();
    assert!(before.len() > 10);

    // The server dies, comes back and lists anew.
    call(&server, "die", json!({})).await.unwrap_err();
    server.refresh().await.unwrap();
    offering.ask_all(LONG).await;
    assert_eq!(rendered(), before);

    call(&server, "change", json!({})).await.unwrap();
    until("the new tool is in the catalogue", || {
        catalog.get("files__extra_0").is_some()
    })
    .await;
    let after = rendered();
    assert_eq!(after.len(), before.len() + 1);
    assert_eq!(after[..before.len()], before);
    pool.close().await;
}
