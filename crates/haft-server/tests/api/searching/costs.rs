//! What a request with tools that are held back costs, as far as anybody says before it is sent.

use haft_models::testing::{call, say};
use serde_json::{Value, json};

use super::{deferred, query, tools};
use crate::support::{Served, function, serve};

async fn count(served: &Served, tools: Value) -> u64 {
    let body = json!({"input": "hi", "tools": tools});
    let counted = served.post("/responses/input_tokens", body).await.ok();
    counted["input_tokens"].as_u64().unwrap()
}

#[tokio::test]
async fn the_search_and_what_it_finds_are_counted_as_they_are_sent() {
    let (served, model) = serve([say("ok"), say("ok")]).await;
    let both = json!([function("near"), deferred("book_flight", "Books a flight to a city."), {"type": "tool_search"}]);
    let with = count(&served, both.clone()).await;
    let without = count(&served, json!([function("near")])).await;
    served.create(json!({"input": "hi", "tools": both})).await;
    let request = &model.received()[0];
    let sent: usize = request
        .tools
        .iter()
        .map(|tool| tool.definition())
        .filter(|tool| tool.name().as_str() == "search_tools")
        .map(|tool| tool.to_json().to_string().len())
        .sum();
    assert!(sent > 500, "{sent}");
    // Four bytes make a token, and each tool costs a little.
    assert_eq!(with - without, (sent as u64).div_ceil(4) + 4);
    // What waits to be found is part of the note, line by line.
    let third = json!([function("near"), deferred("book_flight", "Books a flight to a city."),
        deferred("play_music", "Plays a song."), {"type": "tool_search"}]);
    let more = count(&served, third).await - with;
    let line = "\n- play_music: Plays a song.".len() as u64;
    assert!((line / 4..=line / 4 + 2).contains(&more), "{more}");
    // A search that has nothing to find is not sent.
    let idle = json!([function("near"), {"type": "tool_search"}]);
    assert_eq!(count(&served, idle).await, without);
}

#[tokio::test]
async fn what_was_found_before_is_counted_beside_the_search() {
    let (served, model) = serve([call("search_tools", query("book a flight")), say("ok")]).await;
    let before = count(&served, tools()).await;
    let first = served
        .create(json!({"input": "hi", "tools": tools()}))
        .await;
    let body = json!({"input": "hi", "tools": tools(), "previous_response_id": first["id"]});
    let counted = served.post("/responses/input_tokens", body).await.ok();
    let after = counted["input_tokens"].as_u64().unwrap();
    let found = &model.received()[1].tools;
    let found = found.iter().last().unwrap().definition().to_json();
    assert!(
        after - before > found.to_string().len() as u64 / 4,
        "{before} {after}"
    );
}
