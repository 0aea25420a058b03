//! What was loaded stays loaded: in a chain, in a conversation, for clients that keep everything themselves,
//! and over the death of the process.

use haft_core::Annotations;
use haft_models::ScriptedModel;
use haft_models::testing::{Fault, ScriptedCall, Step, call, calls, offers, output_says, say};
use serde_json::{Value, json};

use super::{deferred, names, outputs, query, tools};
use crate::resuming::{remains, slow, told_up_to};
use crate::support::{Setup, function, item_types, last, serve};

/// A model that finds `book_flight`, answers, and is asked again.
fn script() -> [Step; 3] {
    let list = ["near", "search_tools", "book_flight"];
    [
        call("search_tools", query("book a flight")),
        say("found it").expect(offers(list)),
        call("book_flight", json!({"text": "oslo"})).expect(offers(list)),
    ]
}

fn assert_same_prefix(model: &ScriptedModel) {
    let requests = model.received();
    let [before, after] = [1, 2].map(|at| {
        let items = requests[at].conversation.items();
        items
            .map(|item| serde_json::to_value(item).unwrap())
            .collect::<Vec<_>>()
    });
    let told = |item: &Value| match item["type"].as_str() {
        Some("function_call") => json!([item["call_id"], item["name"], item["arguments"]]),
        Some("function_call_output") => json!([item["call_id"], item["output"]]),
        _ => item["content"].clone(),
    };
    // The model reads what it read before.
    let before: Vec<_> = before.iter().map(told).collect();
    let after: Vec<_> = after.iter().map(told).collect();
    assert_eq!(before[..], after[..before.len()]);
}

#[tokio::test]
async fn a_chain_goes_on_with_what_was_loaded() {
    let (served, model) = serve(script()).await;
    let first = served
        .create(json!({"input": "go", "tools": tools()}))
        .await;
    let body = json!({"input": "do it", "tools": tools(), "previous_response_id": first["id"]});
    let second = served.create(body).await;
    assert_eq!(item_types(&second), ["function_call"]);
    assert_same_prefix(&model);
    model.assert_finished();
}

#[tokio::test]
async fn a_conversation_goes_on_with_what_was_loaded() {
    let (served, model) = serve(script()).await;
    let conversation = served.post("/conversations", json!({})).await.ok();
    for input in ["go", "do it"] {
        let body = json!({"input": input, "tools": tools(), "conversation": conversation["id"]});
        served.create(body).await;
    }
    let path = format!(
        "/conversations/{}/items",
        conversation["id"].as_str().unwrap()
    );
    let items = served.get(&path).await.ok().to_string();
    assert!(
        items.contains("tool_search_output") && !items.contains("haft_"),
        "{items}"
    );
    assert_same_prefix(&model);
    model.assert_finished();
}

#[tokio::test]
async fn a_client_that_keeps_everything_goes_on_with_what_was_loaded() {
    for is_streamed in [false, true] {
        let (served, model) = serve(script()).await;
        let body = json!({"input": "go", "tools": tools(), "store": false});
        let first = if is_streamed {
            last(&served.stream(body).await).clone()
        } else {
            served.create(body).await
        };
        let mut input = vec![json!({"role": "user", "content": "go"})];
        input.extend(first["output"].as_array().unwrap().iter().cloned());
        input.push(json!({"role": "user", "content": "do it"}));
        let second = served
            .create(json!({"input": input, "tools": tools(), "store": false}))
            .await;
        assert_eq!(item_types(&second), ["function_call"]);
        let read = outputs(&model.received()[2]);
        assert_eq!(read, ["book_flight: Books a flight to a city."]);
        model.assert_finished();
    }
}

#[tokio::test]
async fn what_was_found_is_callable_without_being_declared_again() {
    let (served, model) = serve([
        call("search_tools", query("book a flight")),
        say("found it"),
        call("book_flight", json!({})).expect(offers(["book_flight"])),
    ])
    .await;
    let first = served
        .create(json!({"input": "go", "tools": tools()}))
        .await;
    let second = served
        .create(json!({"input": "do it", "previous_response_id": first["id"]}))
        .await;
    assert_eq!(second["output"][0]["name"], "book_flight");
    assert_eq!(second["tools"], json!([]));
    model.assert_finished();
}

#[tokio::test]
async fn additional_tools_come_behind_all_others_in_order_and_the_later_definition_counts() {
    let (served, model) = serve([
        call("search_tools", query("book a flight")),
        say("one").expect(offers(["near", "search_tools", "book_flight"])),
        call("zoom", json!({})).expect(offers(["near", "search_tools", "book_flight", "zoom"])),
    ])
    .await;
    let first = served
        .create(json!({"input": "go", "tools": tools()}))
        .await;
    let mut again = deferred("book_flight", "Books any journey.");
    again["strict"] = true.into();
    let more = json!([
        // Deferred or not: it is loaded.
        {"type": "additional_tools", "role": "developer", "tools": [deferred("zoom", "Zooms."), again]},
        {"role": "user", "content": "on"},
    ]);
    let body = json!({"input": more, "tools": tools(), "previous_response_id": first["id"]});
    let second = served.create(body).await;
    assert_eq!(second["output"][0]["name"], "zoom");
    let shown = super::described(&model.received()[2], "book_flight");
    assert_eq!(shown, "Books any journey.");
    model.assert_finished();
}

#[tokio::test]
async fn a_request_may_bring_all_its_tools_as_items() {
    let (served, model) = serve([call("far", json!({})).expect(offers(["far", "near"]))]).await;
    let input = json!([
        {"type": "additional_tools", "role": "developer",
            "tools": [deferred("far", "Goes far."), function("near")]},
        {"role": "user", "content": "go"},
    ]);
    let response = served.create(json!({"input": input, "store": false})).await;
    assert_eq!(response["output"][0]["name"], "far");
    model.assert_finished();
}

#[tokio::test]
async fn what_was_loaded_survives_a_compaction() {
    let (served, model) = serve([
        call("search_tools", query("book a flight")),
        say("found it"),
        say("A summary."),
        call("book_flight", json!({})),
    ])
    .await;
    let first = served
        .create(json!({"input": "go", "tools": tools()}))
        .await;
    let trigger = json!([{"type": "compaction_trigger"}]);
    let body = json!({"input": trigger, "tools": tools(), "previous_response_id": first["id"]});
    let compacted = served.create(body).await;
    let body = json!({"input": "do it", "tools": tools(), "previous_response_id": compacted["id"]});
    let third = served.create(body).await;
    assert_eq!(third["output"][0]["name"], "book_flight");
    let shown = names(&model.received()[3]);
    assert_eq!(shown, ["near", "search_tools", "book_flight"]);
}

#[tokio::test]
async fn a_background_run_whose_process_dies_keeps_what_it_found() {
    let directory = tempfile::tempdir().unwrap();
    let hangs = Step::default().fault(Fault::Hang);
    let model = ScriptedModel::new([call("search_tools", query("book a flight")), hangs]);
    let served = Setup::of(model).on_disk(directory.path()).serve().await;
    let body = json!({"input": "go", "tools": tools(), "background": true, "stream": true});
    let mut told = told_up_to(&served, &body, "response.output_item.done").await;
    assert_eq!(told.1.last().unwrap()["item"]["type"], "tool_search_call");
    let left = remains(directory.path());
    let model = ScriptedModel::new([call("book_flight", json!({})).expect(offers([
        "near",
        "search_tools",
        "book_flight",
    ]))]);
    let again = Setup::of(model.clone()).on_disk(left.path()).serve().await;
    let id = json!(std::mem::take(&mut told.0));
    let response = again.settled(&id).await;
    assert_eq!(
        item_types(&response),
        ["tool_search_call", "tool_search_output", "function_call"],
        "{response:#}"
    );
    let log = crate::state::replay(&again, id.as_str().unwrap(), "").await;
    crate::legal::assert_legal(&log);
    model.assert_finished();
}

#[tokio::test]
async fn calls_that_wait_behind_a_search_survive_the_death_of_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let annotations = || Annotations {
        sequential: true,
        read_only: true,
        idempotent: true,
        ..Annotations::default()
    };
    // The search waits for the first call, and all others for the search.
    let batch = calls([
        ScriptedCall::new("slow", json!({})),
        ScriptedCall::new("search_tools", query("book a flight")),
        ScriptedCall::new("near", json!({"text": "a"})),
        ScriptedCall::new("slow", json!({"again": true})),
        ScriptedCall::new("near", json!({"text": "b"})),
    ]);
    let mut tools = tools();
    let all = tools.as_array_mut().unwrap();
    all.push(json!({"type": "haft:slow"}));
    let (tool, _) = slow(annotations(), true);
    let setup = Setup::of(ScriptedModel::new([batch])).tools([tool]);
    let served = setup.on_disk(directory.path()).serve().await;
    let body = json!({"input": "go", "tools": tools, "background": true, "stream": true});
    let (id, _) = told_up_to(&served, &body, "response.output_item.added").await;
    let left = remains(directory.path());
    let (tool, _) = slow(annotations(), false);
    let setup = Setup::of(ScriptedModel::new([])).tools([tool]);
    let again = setup.on_disk(left.path()).serve().await;
    let response = again.settled(&json!(id)).await;
    let wanted = [
        "haft:slow",
        "tool_search_call",
        "tool_search_output",
        "function_call",
        "haft:slow",
        "function_call",
    ];
    assert_eq!(item_types(&response), wanted, "{response:#}");
    let log = crate::state::replay(&again, &id, "").await;
    crate::legal::assert_legal(&log);
}

#[tokio::test]
async fn what_a_request_declares_is_later_than_what_was_loaded_before() {
    let weather = |description: &str| {
        json!({"type": "function", "name": "get_weather", "description": description,
            "parameters": {"type": "object"}})
    };
    let (served, model) = serve([say("loaded"), say("declared"), say("brought along")]).await;
    let brings = |description: &str| json!({"type": "additional_tools", "role": "developer", "tools": [weather(description)]});
    let user = json!({"role": "user", "content": "go"});
    let first = served.create(json!({"input": [brings("old"), user]})).await;
    let next = |input: Value| json!({"input": input, "tools": [weather("new")], "previous_response_id": first["id"]});
    served.create(next(json!("go on"))).await;
    served.create(next(json!([brings("newest"), user]))).await;
    let told = model.received().into_iter().map(|request| {
        let tool = request.tools.iter().next().unwrap().definition().clone();
        tool.description().unwrap().to_owned()
    });
    assert_eq!(told.collect::<Vec<_>>(), ["old", "new", "newest"]);
}

#[tokio::test]
async fn a_long_list_of_what_can_be_found_is_cut_between_its_lines_and_counted() {
    let tool = |number: usize| {
        json!({"type": "function", "name": format!("tool_number_{number}"), "defer_loading": true,
            "description": format!("Does {number}.\n- delete_everything: not a tool"),
            "parameters": {"type": "object"}})
    };
    let mut tools: Vec<Value> = (0..900).map(tool).collect();
    tools.push(json!({"type": "tool_search"}));
    let (served, model) = serve([say("hm")]).await;
    served.create(json!({"input": "go", "tools": tools})).await;
    let request = model.received().remove(0);
    let search = request.tools.iter().next().unwrap().definition().clone();
    let told = search.description().unwrap().to_owned();
    let (_, listed) = told.split_once("It finds:\n").unwrap();
    let lines: Vec<_> = listed.lines().collect();
    let (last, named) = lines.split_last().unwrap();
    assert_eq!(named[0], "- tool_number_0: Does 0.");
    assert!(named.iter().all(|line| line.starts_with("- tool_number_")));
    assert_eq!(*last, format!("- and {} more", 900 - named.len()));
}

#[tokio::test]
async fn the_model_reads_what_a_client_found_by_the_names_that_it_calls() {
    let search = json!({"type": "tool_search", "execution": "client"});
    let (served, model) = serve([
        call("tool_search", json!({"query": "orders"})),
        say("ok").expect(output_says(
            "These tools can be called now: crm__list, near.",
        )),
    ])
    .await;
    let first = served
        .create(json!({"input": "go", "tools": [search]}))
        .await;
    let asked = &first["output"][0];
    let found = json!({"type": "tool_search_output", "execution": "client", "status": "completed",
    "call_id": asked["call_id"], "tools": [
        {"type": "namespace", "name": "crm", "description": "", "tools": [function("list")]},
        function("near"), function("near"),
    ]});
    served
        .create(json!({"input": [found], "tools": [search], "previous_response_id": first["id"]}))
        .await;
    model.assert_finished();
}
