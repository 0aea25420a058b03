//! A request that brings `tool_search` along.

use haft_models::ScriptedModel;
use haft_models::testing::{ScriptedCall, call, calls, offers, output_says, say};
use serde_json::json;

use super::{deferred, described, names, outputs, query, tools};
use crate::support::{Setup, function, item_types, kinds, last, serve};
use crate::tools::echo;

#[tokio::test]
async fn a_search_and_what_it_found_are_two_items_and_the_model_goes_on() {
    for is_streamed in [false, true] {
        let (served, model) = serve([
            call("search_tools", query("book a flight")).expect(offers(["near", "search_tools"])),
            call("book_flight", json!({"text": "oslo"})).expect(offers([
                "near",
                "search_tools",
                "book_flight",
            ])),
        ])
        .await;
        let body = json!({"input": "go", "tools": tools()});
        let response = if is_streamed {
            let events = served.stream(body).await;
            assert_eq!(
                kinds(&events)[2..6],
                [
                    "response.output_item.added",
                    "response.output_item.done",
                    "response.output_item.added",
                    "response.output_item.done",
                ]
            );
            for event in [&events[2], &events[4]] {
                assert_eq!(event["item"]["status"], "in_progress");
            }
            assert_eq!(events[5]["item"], last(&events)["output"][1]);
            last(&events).clone()
        } else {
            served.create(body).await
        };
        assert_eq!(
            item_types(&response),
            ["tool_search_call", "tool_search_output", "function_call"]
        );
        let [search, found, called] = [0, 1, 2].map(|at| response["output"][at].clone());
        assert_eq!(
            search,
            json!({"id": search["id"], "type": "tool_search_call", "status": "completed",
                "call_id": null, "execution": "server", "arguments": query("book a flight")})
        );
        assert_eq!(
            found,
            json!({"id": found["id"], "type": "tool_search_output", "status": "completed",
                "call_id": null, "execution": "server",
                "tools": [deferred("book_flight", "Books a flight to a city.")]})
        );
        assert!(search["id"].as_str().unwrap().starts_with("tsc_"));
        assert!(found["id"].as_str().unwrap().starts_with("tso_"));
        assert_eq!(called["name"], "book_flight");
        assert_eq!(response["status"], "completed");
        // What was loaded is no part of the echo.
        assert_eq!(response["tools"].as_array().unwrap().len(), 4);
        assert_eq!(served.stored(&response["id"]).await, response);
        let first = &model.received()[0];
        assert_eq!(
            outputs(&model.received()[1]),
            ["book_flight: Books a flight to a city."]
        );
        let told = described(first, "search_tools");
        assert!(
            told.ends_with(
                "It finds:\n- book_flight: Books a flight to a city.\n- play_music: Plays a song."
            ),
            "{told}"
        );
        model.assert_finished();
    }
}

#[tokio::test]
async fn nothing_found_is_an_empty_list_and_the_model_is_told() {
    let (served, model) = serve([
        call("search_tools", query("qqqq zzzz")),
        say("there is none").expect(output_says("No tool found.")),
    ])
    .await;
    let body = json!({"input": "go", "tools": tools()});
    let response = served.create(body).await;
    assert_eq!(
        item_types(&response),
        ["tool_search_call", "tool_search_output", "message"]
    );
    assert_eq!(response["output"][1]["tools"], json!([]));
    model.assert_finished();
}

#[tokio::test]
async fn what_is_not_loaded_is_neither_called_nor_shown() {
    let (served, model) = serve([
        call("book_flight", json!({"text": 1})),
        say("I will search").expect(output_says(
            "Tool 'book_flight' is not loaded. Find it with search_tools first.",
        )),
    ])
    .await;
    let events = served
        .stream(json!({"input": "go", "tools": tools()}))
        .await;
    assert_eq!(item_types(last(&events)), ["message"]);
    assert!(!serde_json::to_string(&events).unwrap().contains("_call\""));
    model.assert_finished();
}

#[tokio::test]
async fn tools_of_a_namespace_are_found_in_it_and_the_model_reads_of_the_namespace_only() {
    let crm = json!({"type": "namespace", "name": "crm", "description": "Customers and orders.", "tools": [
        function("open_page"),
        deferred("list_orders", "Lists the orders of a customer."),
        deferred("close_account", "Closes an account."),
    ]});
    let media = json!({"type": "namespace", "name": "media", "description": "Films.",
        "defer_loading": true, "tools": [function("rent_film")]});
    let (served, model) = serve([
        call("search_tools", query("list orders"))
            .expect(offers(["crm__open_page", "search_tools"])),
        call("search_tools", query("rent film")),
        call("crm__list_orders", json!({})).expect(offers([
            "crm__open_page",
            "search_tools",
            "crm__list_orders",
            "media__rent_film",
        ])),
    ])
    .await;
    let body = json!({"input": "go", "tools": [crm, media, {"type": "tool_search"}]});
    let response = served.create(body).await;
    let found = |at: usize| response["output"][at]["tools"].clone();
    assert_eq!(
        found(1),
        json!([{"type": "namespace", "name": "crm", "description": "Customers and orders.",
            "tools": [deferred("list_orders", "Lists the orders of a customer.")]}])
    );
    assert_eq!(found(3)[0]["name"], "media");
    assert_eq!(found(3)[0]["tools"][0]["name"], "rent_film");
    let called = &response["output"][4];
    assert_eq!(
        (&called["name"], &called["namespace"]),
        (&json!("list_orders"), &json!("crm"))
    );
    let told = described(&model.received()[0], "search_tools");
    assert!(
        told.ends_with("It finds:\n- crm: Customers and orders.\n- media: Films."),
        "{told}"
    );
    model.assert_finished();
}

#[tokio::test]
async fn custom_tools_are_found_and_a_clients_own_search_tools_is_another() {
    let patch = json!({"type": "custom", "name": "apply_patch", "description": "Applies a patch.",
        "defer_loading": true});
    let own = function("search_tools");
    let (served, model) = serve([
        call("haft__search_tools", query("apply patch"))
            .expect(offers(["search_tools", "haft__search_tools"])),
        call("apply_patch", json!({"input": "*** Begin"})),
    ])
    .await;
    let body = json!({"input": "go", "tools": [own, patch, {"type": "tool_search"}]});
    let response = served.create(body).await;
    assert_eq!(
        item_types(&response),
        ["tool_search_call", "tool_search_output", "custom_tool_call"]
    );
    assert_eq!(response["output"][1]["tools"], json!([patch]));
    assert_eq!(response["output"][2]["input"], "*** Begin");
    model.assert_finished();
}

#[tokio::test]
async fn a_search_beside_other_calls_keeps_every_item_and_the_order_of_outputs() {
    let (tool, _) = echo("echo");
    let model = ScriptedModel::new([
        calls([
            ScriptedCall::new("search_tools", query("play music")),
            ScriptedCall::new("echo", json!({"text": "a"})),
            ScriptedCall::new("near", json!({"text": "b"})),
        ]),
        say("done").expect(offers(["near", "echo", "search_tools", "play_music"])),
    ]);
    let served = Setup::of(model.clone()).tools([tool]).serve().await;
    let tools = json!([function("near"), deferred("play_music", "Plays a song."),
        {"type": "haft:echo"}, {"type": "tool_search"}]);
    let events = served.stream(json!({"input": "go", "tools": tools})).await;
    let first = last(&events).clone();
    let mut types = item_types(&first);
    types.sort_unstable();
    assert_eq!(
        types,
        [
            "function_call",
            "haft:echo",
            "tool_search_call",
            "tool_search_output"
        ]
    );
    let items = first["output"].as_array().unwrap();
    let open = items
        .iter()
        .find(|item| item["type"] == "function_call")
        .unwrap();
    let answer =
        json!([{"type": "function_call_output", "call_id": open["call_id"], "output": "c"}]);
    served
        .create(json!({"input": answer, "previous_response_id": first["id"], "tools": tools}))
        .await;
    let read = &model.received()[1];
    let mut told = outputs(read);
    told.sort_unstable();
    assert_eq!(told, ["c", "echo: a", "play_music: Plays a song."]);
    assert!(read.conversation.verify().is_ok());
    model.assert_finished();
}

#[tokio::test]
async fn a_search_does_not_count_as_a_call_nor_as_what_was_required() {
    let (served, model) = serve([
        call("search_tools", query("book a flight")),
        call("book_flight", json!({})),
    ])
    .await;
    let body = json!({"input": "go", "tools": tools(), "tool_choice": "required",
        "max_tool_calls": 1});
    let response = served.create(body).await;
    assert_eq!(response["status"], "completed");
    assert_eq!(item_types(&response).len(), 3);
    let choices: Vec<_> = model
        .received()
        .into_iter()
        .map(|it| it.tool_choice)
        .collect();
    assert_eq!(choices, vec![Some(haft_core::ToolChoice::Required); 2]);
}

#[tokio::test]
async fn what_a_request_counts_is_what_it_shows() {
    let (served, _) = serve([]).await;
    let mut long = deferred("book_flight", "Books a flight.");
    long["parameters"]["properties"]["text"]["description"] = "word ".repeat(4000).into();
    let body = json!({"input": "go", "tools": [long, {"type": "tool_search"}]});
    let counted = served.post("/responses/input_tokens", body).await.ok();
    assert!(
        counted["input_tokens"].as_u64().unwrap() < 1000,
        "{counted}"
    );
}

#[tokio::test]
async fn a_search_that_could_not_be_carried_out_never_was() {
    let (served, model) = serve([
        call("search_tools", json!({"question": "flights"})),
        say("sorry"),
    ])
    .await;
    let response = served
        .create(json!({"input": "go", "tools": tools()}))
        .await;
    assert_eq!(item_types(&response), ["message"]);
    assert_eq!(names(&model.received()[1]), ["near", "search_tools"]);
}
