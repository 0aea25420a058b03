use serde_json::json;

use super::*;
use rmcp::model::{CallToolRequest, CallToolRequestParams, DiscoverRequest, DiscoverRequestParams};

fn sent(traffic: &Traffic, id: i64, request: ClientRequest) -> RequestId {
    let id = RequestId::Number(id);
    traffic.outbound(&ClientJsonRpcMessage::request(request, id.clone()));
    id
}

fn call(traffic: &Traffic, id: i64) -> RequestId {
    let request = CallToolRequest::new(CallToolRequestParams::new("t"));
    sent(traffic, id, ClientRequest::CallToolRequest(request))
}

fn inbound(traffic: &Traffic, message: Value) -> Option<Value> {
    let message = traffic.inbound(message, 10)?;
    Some(serde_json::to_value(message).unwrap())
}

#[test]
fn a_result_is_kept_as_it_was_written_and_given_out_once() {
    let traffic = Traffic::new(false);
    let id = call(&traffic, 1);
    let result = json!({"content": 7, "structuredContent": null});
    let told = inbound(
        &traffic,
        json!({"jsonrpc": "2.0", "id": 1, "result": result}),
    );
    assert_eq!(told, Some(json!({"jsonrpc": "2.0", "id": 1, "result": {}})));
    assert_eq!(traffic.take_answer(&id), Some(Answer::Raw(result, 10)));
    assert_eq!(traffic.take_answer(&id), None);
    let again = inbound(&traffic, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert_eq!(again, None, "it was answered");
}

#[test]
fn answers_that_nobody_waits_for_are_dropped() {
    let traffic = Traffic::new(false);
    let id = call(&traffic, 1);
    for message in [
        json!({"jsonrpc": "2.0", "id": 2, "result": {}}),
        json!({"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "m"}}),
        json!({"jsonrpc": "2.0", "result": {}}),
        json!({"jsonrpc": "2.0", "id": null, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 1}),
        json!({"jsonrpc": "1.0", "id": 1, "result": {}}),
        json!({"id": 1, "result": {}}),
        json!([{"jsonrpc": "2.0", "id": 1, "result": {}}]),
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}),
    ] {
        assert_eq!(inbound(&traffic, message.clone()), None, "{message}");
    }
    assert!(traffic.is_awaited(&id));
    traffic.forget(&id);
    assert_eq!(
        inbound(&traffic, json!({"jsonrpc": "2.0", "id": 1, "result": {}})),
        None
    );
}

#[test]
fn a_failure_without_id_belongs_to_the_only_one_who_waits() {
    let traffic = Traffic::new(false);
    call(&traffic, 1);
    call(&traffic, 2);
    let nobodys =
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "what?"}});
    assert_eq!(inbound(&traffic, nobodys.clone()), None);
    inbound(&traffic, json!({"jsonrpc": "2.0", "id": 2, "result": {}})).unwrap();
    assert_eq!(inbound(&traffic, nobodys).unwrap()["id"], 1);
}

#[test]
fn odd_errors_are_read() {
    for (error, code, message) in [
        (json!({"code": 5, "message": "m"}), 5, "m"),
        (json!({"code": "x", "message": "a\u{200b}b"}), -32603, "ab"),
        (json!({"message": {"a": 1}}), -32603, r#"{"a":1}"#),
        (json!("plain"), -32603, "plain"),
        (json!({"code": 9e18}), -32603, r#"{"code":9e+18}"#),
    ] {
        let traffic = Traffic::new(false);
        call(&traffic, 1);
        let told = inbound(
            &traffic,
            json!({"jsonrpc": "2.0", "id": "1", "error": error}),
        )
        .unwrap();
        assert_eq!(
            (
                told["error"]["code"].as_i64(),
                told["error"]["message"].as_str()
            ),
            (Some(code), Some(message))
        );
        assert_eq!(told["id"], 1);
    }
}

#[test]
fn the_question_for_the_era_is_answered_once_by_whoever_comes_first() {
    let discover =
        || ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {}));
    let traffic = Traffic::new(false);
    let id = sent(&traffic, 0, discover());
    assert!(traffic.no_era(&id).is_some());
    assert!(traffic.no_era(&id).is_none());
    let late = json!({"jsonrpc": "2.0", "id": 0, "result": {"supportedVersions": ["2026-07-28"]}});
    assert_eq!(inbound(&traffic, late.clone()), None);
    assert!(!traffic.is_modern());

    let traffic = Traffic::new(false);
    let id = sent(&traffic, 0, discover());
    assert!(inbound(&traffic, late).is_some());
    assert!(traffic.is_modern());
    assert!(traffic.no_era(&id).is_none());
    // Now the server has nothing to ask any more.
    let ping = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"});
    assert_eq!(inbound(&traffic, ping), None);
}

#[test]
fn a_given_up_request_leaves_nothing_behind() {
    let traffic = Traffic::new(false);
    let id = call(&traffic, 1);
    let notice = rmcp::model::CancelledNotification::new(
        rmcp::model::CancelledNotificationParam::new(Some(id), None),
    );
    traffic.outbound(&ClientJsonRpcMessage::notification(notice.into()));
    assert!(traffic.requests().is_empty());
}

#[test]
fn a_handshake_ends_the_wait_for_the_era() {
    let traffic = Traffic::new(false);
    let discover = ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {}));
    let id = sent(&traffic, 0, discover);
    let config = rmcp::model::ClientConfig::default();
    let initialize = ClientRequest::InitializeRequest(rmcp::model::InitializeRequest::new(config));
    sent(&traffic, 1, initialize);
    assert!(traffic.no_era(&id).is_none());
    let late = json!({"jsonrpc": "2.0", "id": 0, "result": {"supportedVersions": ["2026-07-28"]}});
    assert_eq!(inbound(&traffic, late), None);
}
