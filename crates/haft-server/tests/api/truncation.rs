//! Contexts that are too long: refused, or without their oldest turns.

use haft_core::{Capabilities, Conversation, Item, Model as _};
use haft_models::scripted::{Fault, ScriptedModel, Step, fault, say};
use serde_json::{Value, json};

use crate::support::{Served, Setup};

/// A model into which so many tokens fit.
fn model(tokens: u64, script: impl IntoIterator<Item = Step>) -> ScriptedModel {
    let model = ScriptedModel::new(script.into_iter().collect::<Vec<_>>());
    let capabilities = Capabilities {
        context_tokens: Some(tokens),
        ..model.capabilities()
    };
    model.with_capabilities(capabilities)
}

async fn serve(model: &ScriptedModel) -> Served {
    Setup::of(model.clone()).serve().await
}

/// About a hundred tokens.
fn long(name: &str) -> String {
    format!("{name} {}", "x".repeat(400 - name.len() - 1))
}

/// Three turns of the user, the second with a call, under a word of the host.
fn turns() -> Vec<Value> {
    vec![
        json!({"role": "developer", "content": "Be brief."}),
        json!({"role": "user", "content": long("first")}),
        json!({"role": "assistant", "content": long("one")}),
        json!({"role": "user", "content": long("second")}),
        json!({"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}),
        json!({"type": "function_call_output", "call_id": "call_1", "output": long("seen")}),
        json!({"role": "assistant", "content": long("two")}),
        json!({"role": "user", "content": long("third")}),
    ]
}

/// The first word of each item.
fn words(conversation: &Conversation) -> Vec<String> {
    let words = conversation.items().map(|item| match item {
        Item::FunctionCall(call) => call.call_id.clone(),
        Item::FunctionCallOutput(output) => output.call_id.to_uppercase(),
        item => item.text(),
    });
    let first = |text: String| text.split(' ').next().unwrap().to_owned();
    words.map(first).collect()
}

fn received(model: &ScriptedModel) -> Vec<Vec<String>> {
    let requests = model.received();
    requests.iter().map(|it| words(&it.conversation)).collect()
}

#[tokio::test]
async fn what_is_clearly_too_long_is_refused_before_anything_is_sent() {
    let model = model(300, [say("never")]);
    let served = serve(&model).await;
    for extra in [
        json!({}),
        json!({"truncation": "disabled"}),
        json!({"stream": true}),
    ] {
        let mut body = json!({"input": turns()});
        body.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        let refused = served.post("/responses", body).await;
        let expected = (400, "context_length_exceeded", Some("input"));
        assert_eq!(refused.error(), expected);
    }
    assert_eq!(received(&model).len(), 0);
}

#[tokio::test]
async fn what_may_fit_is_left_to_the_provider() {
    let model = model(520, [say("fine")]);
    let served = serve(&model).await;
    served.create(json!({"input": turns()})).await;
    assert_eq!(received(&model)[0].len(), 8);
}

#[tokio::test]
async fn the_oldest_turns_go_and_no_more_than_must() {
    let model = model(520, [say("a"), say("b"), say("c")]);
    let served = serve(&model).await;
    let ask = |input: Value, more: Value| {
        let mut body = json!({"input": input, "truncation": "auto"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        served.create(body)
    };
    let answer = ask(json!(turns()), json!({})).await;
    assert_eq!(answer["truncation"], "auto");
    // An answer needs room, too.
    ask(json!(turns()), json!({"max_output_tokens": 200})).await;
    ask(json!(turns()[..4]), json!({})).await;
    assert_eq!(
        received(&model),
        [
            vec!["Be", "second", "call_1", "CALL_1", "two", "third"],
            vec!["Be", "third"],
            vec!["Be", "first", "one", "second"],
        ]
    );
}

#[tokio::test]
async fn a_latest_turn_that_cannot_fit_is_refused_all_the_same() {
    let model = model(50, [say("never")]);
    let served = serve(&model).await;
    let body = json!({"input": turns(), "truncation": "auto"});
    let refused = served.post("/responses", body).await;
    assert_eq!(
        refused.error(),
        (400, "context_length_exceeded", Some("input"))
    );
    assert_eq!(received(&model).len(), 0);
}

fn too_long() -> Step {
    let body = json!({"error": {"message": "too long", "code": "context_length_exceeded"}});
    fault(Fault::status(400).with_body(body))
}

#[tokio::test]
async fn a_provider_that_finds_it_too_long_is_asked_again_with_less() {
    let model = ScriptedModel::new([too_long(), say("fine"), too_long(), too_long()]);
    let served = serve(&model).await;
    let body = json!({"input": turns(), "truncation": "auto"});
    let answer = served.create(body.clone()).await;
    assert_eq!(answer["output"][0]["content"][0]["text"], "fine");
    let asked = received(&model);
    assert_eq!(asked[0].len(), 8);
    assert_eq!(asked[1], ["Be", "third"]);
    // When nothing is left to leave out, there is no third request.
    let refused = served.post("/responses", body).await;
    let expected = (400, "context_length_exceeded", Some("input"));
    assert_eq!(refused.error(), expected);
    assert_eq!(received(&model).len(), 4);
}

#[tokio::test]
async fn a_provider_that_finds_it_too_long_is_believed() {
    let model = ScriptedModel::new([too_long()]);
    let served = serve(&model).await;
    let refused = served.post("/responses", json!({"input": turns()})).await;
    assert_eq!(
        refused.error(),
        (400, "context_length_exceeded", Some("input"))
    );
}

#[tokio::test]
async fn input_tokens_counts_text_tools_and_instructions_and_images_by_the_piece() {
    let model = model(100, [say("never")]);
    let served = serve(&model).await;
    let count = async |body: Value| {
        let answer = served.post("/responses/input_tokens", body).await.ok();
        assert_eq!(answer["object"], "response.input_tokens");
        answer["input_tokens"].as_u64().unwrap()
    };
    let plain = count(json!({"input": "12345678"})).await;
    assert_eq!(plain, 6);
    assert_eq!(
        count(json!({"input": "12345678", "instructions": "1234"})).await,
        7
    );
    let tool = json!({"type": "function", "name": "look", "parameters": {"type": "object"}});
    assert!(count(json!({"input": "12345678", "tools": [tool]})).await > plain);
    let data = format!("data:image/png;base64,{}", "A".repeat(100_000));
    let image = json!([{"role": "user", "content": [{"type": "input_image", "image_url": data}]}]);
    assert_eq!(count(json!({"input": image})).await, 1004);
    // However long it is, it is counted.
    assert!(count(json!({"input": turns()})).await > 500);
    assert_eq!(received(&model).len(), 0);
}
