//! What the provider searched by itself.

use haft_core::Item;

use super::tests::{lifted, response};

#[test]
fn a_search_of_the_provider_is_kept_as_it_came() {
    let asked = r#"{"type":"tool_search_call","id":"tsc_1","execution":"server","call_id":null,"status":"completed","arguments":{"paths":["crm"]}}"#;
    let found = r#"{"type":"tool_search_output","id":"tso_1","execution":"server","call_id":null,"status":"completed","tools":[{"type":"function","name":"find","defer_loading":true,"parameters":{"type":"object"}}]}"#;
    let call = r#"{"type":"function_call","id":"fc_1","call_id":"c","name":"find","arguments":"{}","namespace":"find","status":"completed"}"#;
    let done = |place: usize, item: &str| {
        format!(r#"{{"type":"response.output_item.done","output_index":{place},"item":{item}}}"#)
    };
    let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"tool_search_call","id":"tsc_1","execution":"server","call_id":null,"status":"in_progress","arguments":{}}}"#;
    let completed = format!(
        r#"{{"type":"response.completed","response":{{"id":"r","status":"completed","output":[{asked},{found},{call}]}}}}"#
    );
    let events = lifted(&[
        r#"{"type":"response.created","response":{"id":"r"}}"#,
        added,
        &done(0, asked),
        &done(1, found),
        &done(2, call),
        &completed,
    ]);
    let items = response(&events.unwrap()).items;
    assert_eq!(items.len(), 3);
    assert_eq!(serde_json::to_string(&items[0]).unwrap(), asked);
    assert_eq!(serde_json::to_string(&items[1]).unwrap(), found);
    let Item::FunctionCall(call) = &items[2] else {
        panic!("{:?}", items[2])
    };
    assert_eq!(
        (call.name.as_str(), &call.extra["namespace"]),
        ("find", &"find".into())
    );
}
