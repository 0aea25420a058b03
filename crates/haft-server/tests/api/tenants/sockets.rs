//! On a `WebSocket`: the same as everywhere else, and what a connection remembers is its own.

use serde_json::{Value, json};

use super::bodies::OF_RESPONSES;
use super::world::{World, unknown};
use crate::websocket::{Socket, connect_with};

async fn socket(world: &World, key: &str) -> Socket {
    let bearer = format!("Bearer {key}");
    connect_with(&world.served, &[("authorization", &bearer)])
        .await
        .unwrap()
}

/// The whole error that a turn comes to, without an id.
async fn refused(socket: &mut Socket, body: Value, id: &str) -> String {
    socket.create(body).await;
    let turn = socket.turn().await;
    assert_eq!(turn[0]["type"], "error", "{turn:?}");
    turn[0].to_string().replace(id, "ID")
}

#[tokio::test]
async fn no_socket_opens_without_a_good_key() {
    let world = World::new().await;
    for key in ["haft_wrong", &world.revoked, &world.expired] {
        let bearer = format!("Bearer {key}");
        let refused = connect_with(&world.served, &[("authorization", &bearer)]).await;
        let Err(tokio_tungstenite::tungstenite::Error::Http(answer)) = refused else {
            panic!("it opens, or fails otherwise");
        };
        assert_eq!(answer.status().as_u16(), 401);
    }
    assert!(connect_with(&world.served, &[]).await.is_err());
}

#[tokio::test]
async fn an_id_of_another_tenant_is_unknown_on_a_socket() {
    let world = World::new().await;
    let estate = world.estate(&world.own).await;
    let mut foreign = socket(&world, &world.foreign).await;
    let mut own = socket(&world, &world.own).await;
    for id in [&estate.response, &estate.finished, &estate.running] {
        for body in OF_RESPONSES {
            let no_id = unknown(id);
            let nowhere = refused(&mut foreign, body(&no_id), &no_id).await;
            assert!(nowhere.contains("previous_response_not_found"), "{nowhere}");
            assert_eq!(refused(&mut foreign, body(id), id).await, nowhere);
        }
        if *id != estate.running {
            let response = own.response(OF_RESPONSES[0](id)).await;
            assert_eq!(response["status"], "completed");
        }
    }
    let items = [
        &estate.input_item,
        &estate.output_item,
        &estate.conversation_item,
    ];
    for (id, code) in items
        .map(|id| (id, "item_not_found"))
        .into_iter()
        .chain([(&estate.conversation, "conversation_not_found")])
    {
        let body = |id: &str| match code {
            "item_not_found" => json!({"input": [{"type": "item_reference", "id": id}]}),
            _ => json!({"input": "x", "conversation": id}),
        };
        let no_id = unknown(id);
        let nowhere = refused(&mut foreign, body(&no_id), &no_id).await;
        assert!(nowhere.contains(code), "{nowhere}");
        assert_eq!(refused(&mut foreign, body(id), id).await, nowhere);
        assert_eq!(own.response(body(id)).await["status"], "completed");
    }
}

#[tokio::test]
async fn what_a_connection_remembers_is_nobody_elses() {
    let world = World::new().await;
    let mut own = socket(&world, &world.own).await;
    let unstored = own
        .response(json!({"input": "secret", "store": false}))
        .await;
    let id = unstored["id"].as_str().unwrap();
    let next = json!({"input": "x", "previous_response_id": id, "store": false});
    for key in [&world.foreign, &world.colleague] {
        let mut other = socket(&world, key).await;
        let nowhere = unknown(id);
        let body = json!({"input": "x", "previous_response_id": nowhere, "store": false});
        let nowhere = refused(&mut other, body, &nowhere).await;
        assert_eq!(refused(&mut other, next.clone(), id).await, nowhere);
    }
    assert_eq!(own.response(next).await["status"], "completed");
}

#[tokio::test]
async fn a_key_that_is_revoked_opens_nothing_more_on_a_socket_that_is_open() {
    let world = World::new().await;
    let mut open = socket(&world, &world.own).await;
    let first = open.response(json!({"input": "x"})).await;
    assert_eq!(first["status"], "completed");
    let estate = world.estate(&world.own).await;
    world.keys.revoke("own").await;
    for body in [
        json!({"input": "x"}),
        json!({"input": "x", "previous_response_id": first["id"]}),
        json!({"generate": false}),
    ] {
        open.create(body).await;
        assert_eq!(open.refused().await, (401, "invalid_api_key".into(), None));
    }
    let path = format!("/responses/{}", estate.running);
    assert_eq!(world.served.get_as(&world.own, &path).await.error().0, 401);
    // What runs already is the tenant's, and goes on.
    let running = world.served.get_as(&world.colleague, &path).await.ok();
    assert_eq!(running["status"], "in_progress");
    let finished = format!("/responses/{}", estate.finished);
    assert_eq!(
        world
            .served
            .get_as(&world.colleague, &finished)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_socket_that_was_opened_without_a_key_needs_one_as_soon_as_there_are_keys() {
    let keys = crate::access::Keys::new();
    let model = haft_models::ScriptedModel::new([haft_models::testing::say("hello").forever()]);
    let mut setup = crate::support::Setup::of(model);
    setup.data_dir = Some(keys.folder().to_owned());
    let served = setup.serve().await;
    let mut open = connect_with(&served, &[]).await.unwrap();
    assert_eq!(
        open.response(json!({"input": "x"})).await["status"],
        "completed"
    );
    keys.add("first", "acme");
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    open.create(json!({"input": "x"})).await;
    assert_eq!(open.refused().await, (401, "invalid_api_key".into(), None));
}
