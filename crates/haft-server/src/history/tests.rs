//! What a model reads of questions about calls, whatever was said to them.

#![allow(clippy::unwrap_used)]

use haft_core::Item;
use serde_json::{Value, json};

use super::{AsWritten, Claims, Expanded, Record, expand};
use crate::error::{ApiError, ErrorCode};

/// A context: what is stored, then what the request brings.
fn records(stored: &[Value], sent: &[Value]) -> Vec<Record> {
    let stored = stored.iter().map(|item| (item, None));
    let sent = sent.iter().enumerate();
    let sent = sent.map(|(at, item)| (item, Some(format!("input[{at}]"))));
    let all = stored.chain(sent).enumerate();
    all.map(|(at, (item, param))| Record {
        id: item["id"]
            .as_str()
            .map_or_else(|| format!("x_{at}"), str::to_owned),
        item: serde_json::from_value::<Item>(item.clone()).unwrap(),
        param,
    })
    .collect()
}

fn read(stored: &[Value], sent: &[Value]) -> Result<Expanded, ApiError> {
    expand(
        &records(stored, sent),
        &AsWritten,
        false,
        &Claims::default(),
    )
}

/// In short: calls and outputs by their ids.
fn shapes(items: &[Item]) -> Vec<String> {
    let shape = |item: &Item| match item {
        Item::FunctionCall(call) => format!("call {}", call.call_id),
        Item::FunctionCallOutput(output) if output.is_error => {
            format!("error {}", output.call_id)
        }
        Item::FunctionCallOutput(output) => {
            format!("output {} {}", output.call_id, output.output.to_text())
        }
        other => other.text(),
    };
    items.iter().map(shape).collect()
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": text})
}

fn says(text: &str) -> Value {
    json!({"type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": text}]})
}

fn asks(id: &str) -> Value {
    json!({"type": "mcp_approval_request", "id": id, "server_label": "air", "name": "book",
        "arguments": "{}"})
}

fn answers(id: &str, approve: bool) -> Value {
    json!({"type": "mcp_approval_response", "approval_request_id": id, "approve": approve})
}

fn ran(id: &str, request: &str) -> Value {
    json!({"type": "mcp_call", "id": id, "server_label": "air", "name": "book", "arguments": "{}",
        "output": "booked", "error": null, "approval_request_id": request})
}

#[test]
fn a_yes_of_this_request_leaves_its_call_open_and_what_is_said_waits_behind_it() {
    let stored = [user("go"), asks("q1"), asks("q2")];
    let sent = [user("thanks"), answers("q2", true), answers("q1", false)];
    let expanded = read(&stored, &sent).unwrap();
    assert_eq!(
        shapes(&expanded.items),
        ["go", "call q1", "call q2", "error q1"]
    );
    let carried: Vec<_> = expanded.carried.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(carried, ["q2"]);
    assert_eq!(expanded.carried[0].param, "input[1]");
    assert_eq!(shapes(&expanded.queued), ["thanks"]);
    assert!(expanded.answered().verify().is_ok());
}

#[test]
fn a_call_that_ran_stands_where_it_was_asked_about() {
    let stored = [
        user("go"),
        asks("q"),
        answers("q", true),
        ran("mcp_1", "q"),
        says("done"),
    ];
    let expanded = read(&stored, &[user("and?")]).unwrap();
    assert_eq!(
        shapes(&expanded.items),
        ["go", "call q", "output q booked", "done", "and?"]
    );
    // Without the question, which may be compacted, it is a call like any other.
    let expanded = read(&stored[3..], &[user("and?")]).unwrap();
    assert_eq!(
        shapes(&expanded.items),
        ["call mcp_1", "output mcp_1 booked", "done", "and?"]
    );
}

#[test]
fn an_earlier_yes_without_an_end_is_not_repeated() {
    let stored = [user("go"), asks("q"), answers("q", true)];
    let expanded = read(&stored, &[user("and?")]).unwrap();
    assert_eq!(shapes(&expanded.items), ["go", "call q", "error q", "and?"]);
    assert!(expanded.carried.is_empty());
    let late = read(&stored, &[answers("q", true)]).unwrap_err();
    assert_eq!(late.code, ErrorCode::ApprovalRequestNotFound);
}

#[test]
fn silence_is_no_answer_and_a_new_message_is_a_no() {
    let stored = [user("go"), asks("q")];
    let expanded = read(&stored, &[]).unwrap();
    assert_eq!(expanded.unanswered, ["q"]);
    let expanded = read(&stored, &[user("never mind")]).unwrap();
    assert_eq!(
        shapes(&expanded.items),
        ["go", "call q", "error q", "never mind"]
    );
    assert!(expanded.unanswered.is_empty());
    // And once the model has spoken, it is too late.
    let gone_on = [
        user("go"),
        asks("q"),
        user("never mind"),
        says("as you like"),
    ];
    let late = read(&gone_on, &[answers("q", true)]).unwrap_err();
    assert_eq!(late.code, ErrorCode::ApprovalRequestNotFound);
    assert_eq!(late.param.as_deref(), Some("input[0].approval_request_id"));
}

#[test]
fn calls_beside_a_question_belong_to_its_turn() {
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "12A"});
    let stored = [user("go"), call, asks("q")];
    let expanded = read(&stored, &[answers("q", true), output, user("thanks")]).unwrap();
    assert_eq!(
        shapes(&expanded.items),
        ["go", "call c", "call q", "output c 12A"]
    );
    assert_eq!(expanded.carried.len(), 1);
    assert_eq!(shapes(&expanded.queued), ["thanks"]);
}

fn searches(id: &str) -> Value {
    json!({"type": "tool_search_call", "id": id, "call_id": null, "execution": "server",
        "arguments": {"query": "x"}})
}

fn finds(tools: &Value) -> Value {
    json!({"type": "tool_search_output", "call_id": null, "execution": "server", "tools": tools})
}

#[test]
fn a_search_of_this_server_is_a_call_and_what_it_found() {
    let crm =
        json!({"type": "namespace", "name": "crm", "tools": [{"type": "function", "name": "a"}]});
    let air = json!({"type": "mcp", "server_label": "air", "allowed_tools": ["find", "book"]});
    let sent = [
        user("go"),
        searches("tsc_1"),
        finds(&json!([crm, air, {"type": "haft:clock"}])),
        searches("tsc_2"),
        finds(&json!([])),
        says("done"),
    ];
    let expanded = read(&[], &sent).unwrap();
    assert_eq!(
        shapes(&expanded.items),
        [
            "go",
            "call tsc_1",
            "output tsc_1 a\nfind\nbook\nhaft:clock",
            "call tsc_2",
            "output tsc_2 No tool found.",
            "done"
        ]
    );
    assert!(expanded.answered().verify().is_ok());
}

#[test]
fn a_search_that_has_no_end_and_an_end_without_a_search_are_nothing() {
    let sent = [
        user("go"),
        finds(&json!([])),
        searches("tsc_1"),
        says("done"),
    ];
    let expanded = read(&[], &sent).unwrap();
    assert_eq!(shapes(&expanded.items), ["go", "done"]);
}

#[test]
fn what_this_server_found_is_no_word_of_the_client() {
    let stored = [user("go"), asks("q"), searches("tsc_1"), finds(&json!([]))];
    let expanded = read(&stored, &[answers("q", true)]).unwrap();
    assert_eq!(expanded.carried.len(), 1);
    assert!(expanded.answered().verify().is_ok());
}
