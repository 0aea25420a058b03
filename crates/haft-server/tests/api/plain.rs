//! Plain requests: text in, text out.

use haft_models::OfflineModel;
use serde_json::json;

use crate::support::{Setup, kinds};

#[tokio::test]
async fn a_string_is_answered() {
    let served = Setup::of(OfflineModel::new()).serve().await;
    let response = served.create(json!({"input": "Say hello."})).await;
    assert_eq!(response["status"], "completed");
    assert_eq!(response["output"][0]["type"], "message");
    let id = response["id"].as_str().unwrap();
    let again = served.get(&format!("/responses/{id}")).await.ok();
    assert_eq!(again, response);
}

#[tokio::test]
async fn a_stream_tells_the_same_story() {
    let served = Setup::of(OfflineModel::new()).serve().await;
    let events = served.stream(json!({"input": "Say hello."})).await;
    let kinds = kinds(&events);
    assert_eq!(
        kinds[..4],
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
        ]
    );
    assert_eq!(kinds.last(), Some(&"response.completed"));
}
