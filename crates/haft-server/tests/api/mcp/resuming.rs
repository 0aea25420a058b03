//! Questions and calls that outlive the process.

use std::path::Path;

use haft_models::ScriptedModel;
use haft_models::testing::{Step, call, say};
use serde_json::{Value, json};

use super::server::{Fake, setup};
use crate::raw::Raw;
use crate::resuming::{remains, told_up_to};
use crate::support::{Served, item_types};

async fn serve(directory: &Path, air: &Fake, script: Vec<Step>) -> Served {
    let mut setup = setup(ScriptedModel::new(script), &[air]).on_disk(directory);
    setup.data_dir = Some(directory.to_owned());
    setup.serve().await
}

fn asking(air: &Fake) -> Value {
    let mut entry = air.entry("air");
    entry["require_approval"] = "always".into();
    json!([entry])
}

fn yes(response: &Value) -> Value {
    let items = response["output"].as_array().unwrap();
    let question = items.iter().find(|it| it["type"] == "mcp_approval_request");
    json!([{"type": "mcp_approval_response", "approve": true,
        "approval_request_id": question.unwrap()["id"]}])
}

#[tokio::test]
async fn a_question_is_answered_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let air = Fake::with(&["book"]).await;
    for is_background in [false, true] {
        let served = serve(
            directory.path(),
            &air,
            vec![call("air__book", json!({"q": "oslo"}))],
        )
        .await;
        let body = json!({"input": "go", "tools": asking(&air), "background": is_background});
        let first = served.create(body).await;
        let first = served.settled(&first["id"]).await;
        assert_eq!(first["status"], "requires_action");
        served.stop().await;

        let served = serve(directory.path(), &air, vec![say("booked")]).await;
        let body = json!({"input": yes(&first), "tools": asking(&air),
            "previous_response_id": first["id"], "background": is_background});
        let second = served.create(body).await;
        let second = served.settled(&second["id"]).await;
        assert_eq!(item_types(&second), ["mcp_call", "message"], "{second:#}");
        assert_eq!(second["output"][0]["output"], "book: oslo");
        served.stop().await;
    }
    assert_eq!(air.called(), ["book", "book"]);
}

#[tokio::test]
async fn a_background_run_that_was_put_away_in_a_call_goes_on_and_tells_what_it_knows() {
    let directory = tempfile::tempdir().unwrap();
    let air = Fake::with(&["wait"]).await;
    let served = serve(directory.path(), &air, vec![call("air__wait", json!({}))]).await;
    let tools = json!([air.entry("air")]);
    let body = json!({"input": "go", "tools": tools, "background": true, "stream": true});
    let (id, _) = told_up_to(&served, &body, "response.mcp_call_arguments.done").await;
    air.waits().await;
    let left = remains(directory.path());
    let again = serve(left.path(), &air, vec![say("who knows")]).await;
    let id = json!(id);
    let response = again.settled(&id).await;
    assert_eq!(
        item_types(&response),
        ["mcp_list_tools", "mcp_call", "message"],
        "{response:#}"
    );
    let ran = &response["output"][1];
    assert_eq!(ran["status"], "failed");
    let words = ran["error"]["message"].as_str().unwrap();
    assert!(
        words.contains("Whether it took effect is unknown"),
        "{words}"
    );
    let log = crate::state::replay(&again, id.as_str().unwrap(), "").await;
    crate::legal::assert_legal(&log);
    assert_eq!(air.called(), ["wait"]);
    air.go_on();
}

#[tokio::test]
async fn an_allowed_call_that_was_interrupted_is_not_made_again() {
    let air = Fake::with(&["wait"]).await;
    let directory = tempfile::tempdir().unwrap();
    let served = serve(
        directory.path(),
        &air,
        vec![call("air__wait", json!({})), say("careful")],
    )
    .await;
    let first = served
        .create(json!({"input": "go", "tools": asking(&air)}))
        .await;
    // The client goes away while the call runs.
    let body = json!({"input": yes(&first), "tools": asking(&air), "stream": true,
        "previous_response_id": first["id"]});
    let mut raw = Raw::post(&served, &body).await;
    raw.head().await;
    let begun = raw.chunk().await.unwrap();
    let begun: Value = serde_json::from_str(begun.split_once("data: ").unwrap().1).unwrap();
    let id = begun["response"]["id"].clone();
    air.waits().await;
    drop(raw);
    let path = format!("/responses/{}", id.as_str().unwrap());
    let mut second = served.get(&path).await;
    for _ in 0..200 {
        if second.status == 200 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        second = served.get(&path).await;
    }
    assert_eq!(second.ok()["status"], "cancelled");
    // Whoever goes on from there does not repeat it, and the model knows that nobody knows.
    let third = json!({"input": "and?", "tools": asking(&air), "previous_response_id": id});
    served.create(third).await;
    assert_eq!(air.called(), ["wait"]);
    let late = json!({"input": yes(&first), "tools": asking(&air), "previous_response_id": id});
    let answer = served.post("/responses", late).await;
    assert_eq!(answer.error().1, "approval_request_not_found");
}
