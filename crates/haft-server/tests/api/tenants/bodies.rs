//! Ids in bodies: those of another tenant are unknown, wherever they stand.

use serde_json::{Value, json};

use super::world::{Estate, World, unknown};

/// A request that names something by its id.
struct Form {
    what: &'static str,
    path: &'static str,
    body: fn(&str) -> Value,
}

const fn form(what: &'static str, path: &'static str, body: fn(&str) -> Value) -> Form {
    Form { what, path, body }
}

/// Where ids of responses can stand.
pub(super) const OF_RESPONSES: [fn(&str) -> Value; 3] = [
    |id| json!({"input": "x", "previous_response_id": id}),
    |id| json!({"input": "x", "previous_response_id": id, "store": false}),
    |id| json!({"previous_response_id": id}),
];

const RESPONSES: &[Form] = &[
    form("previous", "/responses", OF_RESPONSES[0]),
    form("previous, unstored", "/responses", OF_RESPONSES[1]),
    form("previous, alone", "/responses", OF_RESPONSES[2]),
    form(
        "previous, streamed",
        "/responses",
        |id| json!({"input": "x", "previous_response_id": id, "stream": true}),
    ),
    form(
        "previous, in the background",
        "/responses",
        |id| json!({"input": "x", "previous_response_id": id, "background": true}),
    ),
    form(
        "previous, logged",
        "/responses",
        |id| json!({"input": "x", "previous_response_id": id, "background": true, "stream": true}),
    ),
    form(
        "previous to compact",
        "/responses/compact",
        |id| json!({"model": "default", "previous_response_id": id}),
    ),
    form(
        "previous and more to compact",
        "/responses/compact",
        |id| json!({"model": "default", "input": "x", "previous_response_id": id}),
    ),
    form(
        "previous to count",
        "/responses/input_tokens",
        OF_RESPONSES[0],
    ),
    form("previous, compacted on the way", "/responses", |id| {
        json!({"input": [{"role": "user", "content": "x"}, {"type": "compaction_trigger"}],
            "previous_response_id": id})
    }),
];

const CONVERSATIONS: &[Form] = &[
    form(
        "conversation",
        "/responses",
        |id| json!({"input": "x", "conversation": id}),
    ),
    form(
        "conversation as an object",
        "/responses",
        |id| json!({"input": "x", "conversation": {"id": id}}),
    ),
    form(
        "conversation, streamed",
        "/responses",
        |id| json!({"input": "x", "conversation": id, "stream": true}),
    ),
    form(
        "conversation, in the background",
        "/responses",
        |id| json!({"input": "x", "conversation": id, "background": true}),
    ),
    form(
        "conversation to count",
        "/responses/input_tokens",
        |id| json!({"input": "x", "conversation": id}),
    ),
];

const ITEMS: &[Form] = &[
    form(
        "reference",
        "/responses",
        |id| json!({"input": [{"type": "item_reference", "id": id}]}),
    ),
    form(
        "reference by its id alone",
        "/responses",
        |id| json!({"input": [{"id": id}]}),
    ),
    form(
        "reference without a type",
        "/responses",
        |id| json!({"input": [{"type": null, "id": id}]}),
    ),
    form(
        "reference, streamed",
        "/responses",
        |id| json!({"input": [{"type": "item_reference", "id": id}], "stream": true}),
    ),
    form(
        "reference, in the background",
        "/responses",
        |id| json!({"input": [{"type": "item_reference", "id": id}], "background": true}),
    ),
    form(
        "reference to compact",
        "/responses/compact",
        |id| json!({"model": "default", "input": [{"type": "item_reference", "id": id}]}),
    ),
    form(
        "reference to count",
        "/responses/input_tokens",
        |id| json!({"input": [{"type": "item_reference", "id": id}]}),
    ),
    form(
        "reference in a new conversation",
        "/conversations",
        |id| json!({"items": [{"type": "item_reference", "id": id}]}),
    ),
    form(
        "reference in one's own conversation",
        "/conversations/{mine}/items",
        |id| json!({"items": [{"type": "item_reference", "id": id}]}),
    ),
];

/// Every form with every id that it can be asked with.
fn all(estate: &Estate) -> Vec<(&'static Form, &str)> {
    let mut all = Vec::new();
    let responses = [&estate.response, &estate.finished, &estate.running];
    let items = [
        &estate.input_item,
        &estate.output_item,
        &estate.conversation_item,
    ];
    for form in RESPONSES {
        all.extend(responses.map(|id| (form, id.as_str())));
    }
    for form in CONVERSATIONS {
        all.push((form, estate.conversation.as_str()));
    }
    for form in ITEMS {
        all.extend(items.map(|id| (form, id.as_str())));
    }
    all
}

#[tokio::test]
async fn an_id_of_another_tenant_in_a_body_is_unknown() {
    let world = World::new().await;
    let estate = world.estate(&world.own).await;
    let mine = world.estate(&world.foreign).await;
    for (form, id) in all(&estate) {
        let path = format!("/v1{}", form.path.replace("{mine}", &mine.conversation));
        let (no_id, body) = (unknown(id), form.body);
        let what = form.what;
        let nowhere = world
            .seen(
                &world.foreign,
                "POST",
                &path,
                Some(&body(&no_id)),
                &[&no_id],
            )
            .await;
        let foreign = world
            .seen(&world.foreign, "POST", &path, Some(&body(id)), &[id])
            .await;
        assert!(matches!(nowhere.status, 400 | 404), "{what}: {nowhere:?}");
        let code = nowhere.code.as_deref().unwrap();
        assert!(code.ends_with("_not_found"), "{what}: {nowhere:?}");
        assert_eq!(foreign, nowhere, "{what} with {id}");
    }
}

#[tokio::test]
async fn ones_own_ids_work_in_every_form() {
    let world = World::new().await;
    for (at, (form, _)) in all(&world.estate(&world.own).await).into_iter().enumerate() {
        // Anew: some of them use it up.
        let estate = world.estate(&world.own).await;
        let (_, id) = all(&estate)[at];
        let path = form.path.replace("{mine}", &estate.conversation);
        let answer = world
            .served
            .post_as(&world.colleague, &path, (form.body)(id))
            .await;
        let expected = if id == estate.running { 409 } else { 200 };
        assert_eq!(
            answer.status, expected,
            "{} with {id}: {}",
            form.what, answer.body
        );
    }
}

#[tokio::test]
async fn a_conversation_that_another_tenant_uses_is_not_even_locked() {
    let world = World::new().await;
    let estate = world.estate(&world.own).await;
    let body = json!({"input": "x", "conversation": estate.conversation, "background": true,
        "model": "endless"});
    world
        .served
        .post_as(&world.own, "/responses", body)
        .await
        .ok();
    let next = json!({"input": "x", "conversation": estate.conversation});
    let locked = world
        .served
        .post_as(&world.colleague, "/responses", next.clone())
        .await;
    assert_eq!(locked.error().0, 409);
    let foreign = world
        .served
        .post_as(&world.foreign, "/responses", next)
        .await;
    assert_eq!(
        foreign.error(),
        (404, "conversation_not_found", Some("conversation"))
    );
}

#[tokio::test]
async fn what_was_sealed_for_one_tenant_opens_for_no_other() {
    let world = World::new().await;
    let long = "words that are to be summed up ".repeat(50);
    let window = json!({"model": "default", "input": [
        {"role": "user", "content": long}, {"role": "assistant", "content": long}]});
    let compacted = world
        .served
        .post_as(&world.own, "/responses/compact", window)
        .await
        .ok();
    let output = compacted["output"].as_array().unwrap();
    let sealed = output.last().unwrap();
    assert_eq!(sealed["type"], "compaction");
    let mut damaged = sealed.clone();
    let content = sealed["encrypted_content"].as_str().unwrap();
    let last = if content.ends_with('A') { "B" } else { "A" };
    damaged["encrypted_content"] = format!("{}{last}", &content[..content.len() - 1]).into();
    for path in [
        "/v1/responses",
        "/v1/responses/input_tokens",
        "/v1/responses/compact",
    ] {
        let body = |item: &Value| json!({"model": "default", "input": [item, {"role": "user", "content": "go on"}]});
        let own = world
            .served
            .ask(Some(&world.colleague), "POST", path, Some(&body(sealed)))
            .await;
        assert_eq!(own.status, 200, "{path}: {}", own.body);
        let broken = world
            .seen(&world.foreign, "POST", path, Some(&body(&damaged)), &[])
            .await;
        let foreign = world
            .seen(&world.foreign, "POST", path, Some(&body(sealed)), &[])
            .await;
        let told = (broken.status, broken.code.as_deref());
        assert_eq!(told, (400, Some("invalid_encrypted_content")));
        assert_eq!(foreign, broken, "{path}");
    }
}
