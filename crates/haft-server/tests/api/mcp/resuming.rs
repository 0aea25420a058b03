//! Questions and calls that outlive the process.

use std::path::Path;

use haft_core::Item;
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
        assert_eq!(first["status"], "completed");
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
    let script = vec![call("air__wait", json!({})), say("careful")];
    let (served, model) = serve_with(directory.path(), &air, script).await;
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
    assert_outcome_unknown(&outputs(&model));
    assert_eq!(air.called(), ["wait"]);
    let late = json!({"input": yes(&first), "tools": asking(&air), "previous_response_id": id});
    let answer = served.post("/responses", late).await;
    assert_eq!(answer.error().1, "approval_request_not_found");
}

#[tokio::test]
async fn an_allowed_call_of_a_background_run_survives_the_process_as_far_as_anybody_knows() {
    let directory = tempfile::tempdir().unwrap();
    let air = Fake::with(&["wait"]).await;
    let served = serve(directory.path(), &air, vec![call("air__wait", json!({}))]).await;
    let first = served
        .create(json!({"input": "go", "tools": asking(&air)}))
        .await;
    let mut input = yes(&first);
    let thanks = json!({"role": "user", "content": "thanks"});
    input.as_array_mut().unwrap().push(thanks);
    let body = json!({"input": input, "tools": asking(&air), "background": true, "stream": true,
        "previous_response_id": first["id"]});
    let (id, _) = told_up_to(&served, &body, "response.mcp_call_arguments.done").await;
    air.waits().await;
    let left = remains(directory.path());
    let keys = "sealing-keys";
    std::fs::copy(directory.path().join(keys), left.path().join(keys)).unwrap();

    let model = ScriptedModel::new(vec![say("who knows")]);
    let mut again = setup(model.clone(), &[&air]).on_disk(left.path());
    again.data_dir = Some(left.path().to_owned());
    let again = again.serve().await;
    let response = again.settled(&json!(id)).await;
    assert_eq!(
        item_types(&response),
        ["mcp_call", "message"],
        "{response:#}"
    );
    assert_eq!(response["output"][0]["status"], "failed");
    let items = first["output"].as_array().unwrap();
    assert_eq!(
        response["output"][0]["approval_request_id"],
        items.last().unwrap()["id"]
    );
    let log = crate::state::replay(&again, &id, "").await;
    crate::legal::assert_legal(&log);
    // What was said behind the call is still said.
    let sent = model.received().remove(0).conversation;
    assert_eq!(sent.items().last().unwrap().text(), "thanks");
    assert!(sent.verify().is_ok());
    assert_eq!(air.called(), ["wait"]);
    air.go_on();
}

/// A server on this folder, and its model.
async fn serve_with(directory: &Path, air: &Fake, script: Vec<Step>) -> (Served, ScriptedModel) {
    let model = ScriptedModel::new(script);
    let mut setup = setup(model.clone(), &[air]).on_disk(directory);
    setup.data_dir = Some(directory.to_owned());
    (setup.serve().await, model)
}

/// The outputs of calls that the model was sent last.
fn outputs(model: &ScriptedModel) -> Vec<String> {
    let conversation = model.received().pop().unwrap().conversation;
    let outputs = conversation.items().filter_map(|item| match item {
        Item::FunctionCallOutput(output) => Some(output.output.to_text()),
        _ => None,
    });
    outputs.collect()
}

fn assert_outcome_unknown(outputs: &[String]) {
    assert_eq!(outputs.len(), 1, "{outputs:?}");
    assert!(
        outputs[0].contains("Whether it took effect is unknown"),
        "{outputs:?}"
    );
}

/// The message of the error that a repeated approval gets.
async fn refused(served: &Served, body: Value) -> String {
    let answer = served.post("/responses", body).await;
    assert_eq!(answer.error().1, "approval_request_not_found");
    answer.body["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn approved_call_of_a_killed_process_has_an_unknown_outcome_for_every_continuation() {
    for is_stored in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let air = Fake::with(&["wait"]).await;
        let served = serve(directory.path(), &air, vec![call("air__wait", json!({}))]).await;
        let first = served
            .create(json!({"input": "go", "tools": asking(&air)}))
            .await;
        let approval = json!({"input": yes(&first), "tools": asking(&air), "store": is_stored,
            "previous_response_id": first["id"]});
        let raw = Raw::post(&served, &approval).await;
        air.waits().await;
        // The process dies in the middle of the call.
        let left = remains(directory.path());
        let keys = "sealing-keys";
        std::fs::copy(directory.path().join(keys), left.path().join(keys)).unwrap();

        let (again, model) = serve_with(left.path(), &air, vec![say("careful")]).await;
        let message = refused(&again, approval).await;
        assert!(message.contains("outcome is unknown"), "{message}");
        assert!(message.contains("may have taken effect"), "{message}");
        let next = json!({"input": "and?", "tools": asking(&air),
            "previous_response_id": first["id"]});
        again.create(next).await;
        assert_outcome_unknown(&outputs(&model));
        assert_eq!(air.called(), ["wait"]);
        air.go_on();
        drop(raw);
    }
}

#[tokio::test]
async fn approved_call_whose_client_left_has_an_unknown_outcome_in_its_conversation() {
    let directory = tempfile::tempdir().unwrap();
    let air = Fake::with(&["wait"]).await;
    let script = vec![call("air__wait", json!({})), say("careful"), say("careful")];
    let (served, model) = serve_with(directory.path(), &air, script).await;
    let conversation = served.post("/conversations", json!({})).await.ok();
    let body = |input: Value| json!({"input": input, "tools": asking(&air), "conversation": conversation["id"]});
    let first = served.create(body(json!("go"))).await;
    let raw = Raw::post(&served, &body(yes(&first))).await;
    air.waits().await;
    drop(raw);
    // The conversation is free again when the cancelled response is stored.
    let mut second = served.post("/responses", body(json!("and?"))).await;
    for _ in 0..200 {
        if second.status == 200 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        second = served.post("/responses", body(json!("and?"))).await;
    }
    second.ok();
    assert_outcome_unknown(&outputs(&model));
    // A refusal comes too late as well.
    let mut no = yes(&first);
    no[0]["approve"] = json!(false);
    let branch = json!({"input": no, "tools": asking(&air), "previous_response_id": first["id"]});
    served.create(branch).await;
    assert_outcome_unknown(&outputs(&model));
    assert_eq!(air.called(), ["wait"]);
}

#[tokio::test]
async fn approved_call_whose_client_left_has_an_unknown_outcome_for_a_repeated_approval() {
    for (is_stored, is_streamed) in [(true, false), (true, true), (false, false), (false, true)] {
        let what = format!("stored: {is_stored}, streamed: {is_streamed}");
        let directory = tempfile::tempdir().unwrap();
        let air = Fake::with(&["wait"]).await;
        let script = vec![call("air__wait", json!({})), say("careful"), say("careful")];
        let (served, model) = serve_with(directory.path(), &air, script).await;
        let first = served
            .create(json!({"input": "go", "tools": asking(&air)}))
            .await;
        let approval = json!({"input": yes(&first), "tools": asking(&air), "store": is_stored,
            "stream": is_streamed, "previous_response_id": first["id"]});
        let raw = Raw::post(&served, &approval).await;
        air.waits().await;
        let assert_refused = async |when: &str| {
            let message = refused(&served, approval.clone()).await;
            for part in ["was started and is not started again", "unknown"] {
                assert!(message.contains(part), "{what}, {when}: {message}");
            }
            assert!(
                !message.contains("was executed"),
                "{what}, {when}: {message}"
            );
        };
        // A client that loses patience repeats the request while the call runs.
        assert_refused("while it runs").await;
        drop(raw);
        assert_refused("after its client left").await;
        let next = || {
            let body = json!({"input": "and?", "tools": asking(&air),
                "previous_response_id": first["id"]});
            served.create(body)
        };
        next().await;
        assert_outcome_unknown(&outputs(&model));
        // The same when the call has ended and nobody was there to hear of it.
        air.go_on();
        next().await;
        assert_outcome_unknown(&outputs(&model));
        assert_refused("after the call ended").await;
        assert_eq!(air.called(), ["wait"], "{what}");
    }
}

#[tokio::test]
async fn repeated_approval_of_a_finished_call_tells_its_result() {
    let directory = tempfile::tempdir().unwrap();
    let air = Fake::with(&["book"]).await;
    let script = vec![
        call("air__book", json!({"q": "oslo"})),
        say("booked"),
        say("as I said"),
    ];
    let (served, model) = serve_with(directory.path(), &air, script).await;
    let first = served
        .create(json!({"input": "go", "tools": asking(&air)}))
        .await;
    let approval = json!({"input": yes(&first), "tools": asking(&air),
        "previous_response_id": first["id"]});
    let second = served.create(approval.clone()).await;
    // Its answer was lost on the way to the client.
    let message = refused(&served, approval).await;
    assert!(message.contains("book: oslo"), "{message}");
    assert!(
        message.contains(second["id"].as_str().unwrap()),
        "{message}"
    );
    let next = json!({"input": "and?", "tools": asking(&air), "previous_response_id": first["id"]});
    served.create(next).await;
    assert_eq!(outputs(&model), ["book: oslo"]);
    assert_eq!(air.called(), ["book"]);
}
