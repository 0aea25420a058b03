//! Lists hold what the caller has, and places in lists of others are unknown.

use serde_json::{Value, json};

use super::world::{World, unknown};

fn ids(page: &Value) -> Vec<&str> {
    let data = page["data"].as_array().unwrap().iter();
    data.map(|entry| entry["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_list_holds_nothing_of_another_tenant() {
    let world = World::new().await;
    let estate = world.estate(&world.own).await;
    let empty = world.served.get_as(&world.foreign, "/responses").await.ok();
    assert_eq!(
        empty,
        json!({"object": "list", "data": [], "first_id": null, "last_id": null,
        "has_more": false})
    );
    let mine = world.estate(&world.foreign).await;
    for order in ["asc", "desc"] {
        let path = format!("/responses?limit=100&order={order}");
        for (key, has, has_not) in [
            (&world.foreign, &mine, &estate),
            (&world.own, &estate, &mine),
            (&world.colleague, &estate, &mine),
        ] {
            let page = world.served.get_as(key, &path).await.ok();
            let listed = ids(&page);
            for id in [&has.response, &has.finished, &has.running] {
                assert!(listed.contains(&id.as_str()), "{order}");
            }
            for id in [&has_not.response, &has_not.finished, &has_not.running] {
                assert!(!listed.contains(&id.as_str()), "{order}");
            }
            assert_eq!(listed.len(), 3);
        }
    }
}

#[tokio::test]
async fn a_place_in_the_list_of_another_tenant_is_unknown() {
    let world = World::new().await;
    let estate = world.estate(&world.own).await;
    let mine = world.estate(&world.foreign).await;
    let lists = [
        (
            String::from("/v1/responses"),
            vec![&estate.response, &estate.finished, &estate.running],
        ),
        (
            format!("/v1/responses/{}/input_items", mine.response),
            vec![
                &estate.input_item,
                &estate.output_item,
                &estate.conversation_item,
            ],
        ),
        (
            format!("/v1/conversations/{}/items", mine.conversation),
            vec![
                &estate.input_item,
                &estate.output_item,
                &estate.conversation_item,
            ],
        ),
    ];
    for (list, places) in lists {
        for place in places {
            let at = |place: &str| format!("{list}?after={place}");
            let no_place = unknown(place);
            let nowhere = world
                .seen(&world.foreign, "GET", &at(&no_place), None, &[&no_place])
                .await;
            let foreign = world
                .seen(&world.foreign, "GET", &at(place), None, &[place])
                .await;
            assert_eq!(
                (nowhere.status, nowhere.code.as_deref()),
                (404, Some("item_not_found"))
            );
            assert_eq!(foreign, nowhere, "{list} after {place}");
        }
    }
}
