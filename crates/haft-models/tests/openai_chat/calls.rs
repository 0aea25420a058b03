//! Calls put together from pieces, whatever a server leaves out.

use serde_json::{Value, json};

use crate::common::server::Reply;
use crate::{answered, calls_of, chunks};

/// A chunk with these pieces of calls.
fn piece(calls: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]})
}

fn stop() -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
}

async fn assembled(pieces: &[Value]) -> Vec<(String, String, String)> {
    let mut all: Vec<_> = pieces.iter().cloned().map(piece).collect();
    all.push(stop());
    let response = answered(chunks(&all)).await.unwrap();
    let owned =
        |(id, name, arguments): (&str, &str, &str)| (id.into(), name.into(), arguments.into());
    calls_of(&response).into_iter().map(owned).collect()
}

fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.into(), name.into(), arguments.into())
}

/// R23
#[tokio::test]
async fn interleaved_pieces_are_sorted_by_index() {
    let calls = assembled(&[
        json!([{"index": 0, "id": "a", "type": "function", "function": {"name": "one", "arguments": ""}}]),
        json!([{"index": 1, "id": "b", "type": "function", "function": {"name": "two", "arguments": "{\"x\""}}]),
        json!([{"index": 0, "function": {"arguments": "{\"y\":"}}, {"index": 1, "function": {"arguments": ":2}"}}]),
        json!([{"index": 0, "function": {"arguments": "1}"}}]),
    ])
    .await;
    assert_eq!(
        calls,
        [call("a", "one", "{\"y\":1}"), call("b", "two", "{\"x\":2}")]
    );
}

#[tokio::test]
async fn a_name_in_every_piece_is_one_name() {
    let with_index = assembled(&[
        json!([{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{"}}]),
        json!([{"index": 0, "id": "a", "function": {"name": "one", "arguments": "}"}}]),
    ])
    .await;
    assert_eq!(with_index, [call("a", "one", "{}")]);
    let without = assembled(&[
        json!([{"function": {"name": "one", "arguments": "{"}}]),
        json!([{"function": {"name": "one", "arguments": "}"}}]),
    ])
    .await;
    assert_eq!(without, [call("", "one", "{}")]);
}

#[tokio::test]
async fn pieces_without_index_belong_to_their_id_or_to_the_last() {
    let calls = assembled(&[
        json!([{"id": "a", "function": {"name": "one", "arguments": "{"}}]),
        json!([{"function": {"arguments": "\"x\":1"}}]),
        json!([{"id": "a", "function": {"arguments": "}"}}]),
        json!([{"id": "b", "function": {"name": "one", "arguments": "{}"}}]),
        json!([{"id": "c", "function": {"name": "two"}}]),
    ])
    .await;
    assert_eq!(
        calls,
        [
            call("a", "one", "{\"x\":1}"),
            call("b", "one", "{}"),
            call("c", "two", "")
        ]
    );
}

#[tokio::test]
async fn whole_calls_in_one_chunk_are_different_calls() {
    let calls = assembled(&[json!([
        {"function": {"name": "one", "arguments": {"x": 1}}},
        {"function": {"name": "one", "arguments": {"x": 2}}},
        {"function": {"name": "one", "arguments": ""}},
        {"function": {"name": "one", "arguments": ""}}
    ])])
    .await;
    let names: Vec<_> = calls.iter().map(|call| call.2.as_str()).collect();
    assert_eq!(names, ["{\"x\":1}", "{\"x\":2}", "", ""]);
}

#[tokio::test]
async fn whole_calls_that_all_claim_index_0_are_told_apart_by_their_ids() {
    let calls = assembled(&[
        json!([{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{\"x\":1}"}}]),
        json!([{"index": 0, "id": "b", "function": {"name": "one", "arguments": "{\"x\":2}"}}]),
        json!([{"index": 0, "id": "c", "function": {"name": "two", "arguments": "{}"}}]),
    ])
    .await;
    assert_eq!(
        calls,
        [
            call("a", "one", "{\"x\":1}"),
            call("b", "one", "{\"x\":2}"),
            call("c", "two", "{}")
        ]
    );
}

#[tokio::test]
async fn an_id_of_its_own_for_every_piece_is_one_call() {
    let calls = assembled(&[
        json!([{"index": 0, "id": "r1", "function": {"name": "one", "arguments": "{\"x\""}}]),
        json!([{"index": 0, "id": "r2", "function": {"name": "one", "arguments": ":1}"}}]),
    ])
    .await;
    assert_eq!(calls, [call("r1", "one", "{\"x\":1}")]);
}

#[tokio::test]
async fn ids_and_names_may_be_late_or_missing() {
    let calls = assembled(&[
        json!([{"index": 0, "function": {"arguments": "{\"x\""}}]),
        json!([{"index": 0, "function": {"name": "one"}}]),
        json!([{"index": 0, "id": "late", "function": {"arguments": ":1}"}}]),
        json!([{"index": 1, "function": {"arguments": "{}"}}]),
    ])
    .await;
    assert_eq!(
        calls,
        [call("late", "one", "{\"x\":1}"), call("", "", "{}")]
    );
}

#[tokio::test]
async fn one_broken_call_does_not_spoil_the_others() {
    let calls = assembled(&[
        json!([{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{\"x\": \"cut"}}]),
        json!([{"index": 1, "id": "b", "function": null}, 7, null]),
        json!([{"index": 2, "id": "c", "function": {"name": "two", "arguments": "{}"}}]),
        json!({"not": "a list"}),
    ])
    .await;
    assert_eq!(
        calls,
        [
            call("a", "one", "{\"x\": \"cut"),
            call("b", "", ""),
            call("c", "two", "{}")
        ]
    );
}

#[tokio::test]
async fn prose_and_calls_in_one_message_are_both_kept() {
    let response = answered(chunks(&[
        json!({"choices": [{"delta": {"role": "assistant", "content": "Let me "}}]}),
        json!({"choices": [{"delta": {"content": "look."}}]}),
        piece(json!([{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{}"}}])),
        json!({"choices": [{"delta": {"content": " Done."}}]}),
        stop(),
    ]))
    .await
    .unwrap();
    assert_eq!(response.items[0].text(), "Let me look. Done.");
    assert_eq!(calls_of(&response), [("a", "one", "{}")]);
}

#[tokio::test]
async fn calls_that_share_one_id_stay_apart() {
    let calls = || {
        json!([
            {"id": "a", "type": "function", "function": {"name": "one", "arguments": "{\"x\":1}"}},
            {"id": "a", "type": "function", "function": {"name": "one", "arguments": "{\"x\":2}"}},
            {"id": "a", "type": "function", "function": {"name": "two", "arguments": "{}"}},
        ])
    };
    let expected = [
        call("a", "one", "{\"x\":1}"),
        call("a", "one", "{\"x\":2}"),
        call("a", "two", "{}"),
    ];
    assert_eq!(assembled(&[calls()]).await, expected);
    let whole = json!({"choices": [{"index": 0, "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": null, "tool_calls": calls()}}]});
    let response = answered(Reply::json(200, whole.to_string())).await.unwrap();
    assert_eq!(calls_of(&response).len(), 3);
    // One after the other, another name begins another call.
    let later = assembled(&[
        json!([{"id": "a", "function": {"name": "one", "arguments": "{}"}}]),
        json!([{"id": "a", "function": {"name": "two", "arguments": "{}"}}]),
    ])
    .await;
    let expected = [call("a", "one", "{}"), call("a", "two", "{}")];
    assert_eq!(later, expected);
}
