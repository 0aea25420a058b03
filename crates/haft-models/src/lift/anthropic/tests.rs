use super::*;
use haft_core::{ContentPart, Item, ModelResponse, Usage};
use proptest::prelude::*;

/// The events of a stream, or the error that it ends with.
fn lifted(data: &[&str]) -> Result<Vec<ModelEvent>, ModelError> {
    let mut lift = AnthropicLift::default();
    let mut events = Events::new();
    for data in data {
        let frame = SseEvent {
            data: (*data).to_owned(),
            ..SseEvent::default()
        };
        if lift.take(frame, &mut events)? == Flow::Over {
            break;
        }
    }
    lift.end(&mut events)?;
    Ok(events.into())
}

fn response(events: Vec<ModelEvent>) -> ModelResponse {
    let mut assembly = haft_core::Assembly::default();
    for event in events {
        assembly.add(event);
    }
    assembly.take_finished().unwrap()
}

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","model":"claude-x","content":[],"usage":{"input_tokens":3,"cache_creation_input_tokens":5,"cache_read_input_tokens":7,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn end(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":20}}}}"#
    )
}

#[test]
fn thoughts_text_and_calls_become_items_in_order() {
    let events = lifted(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xyz"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"He"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"y"}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"find","input":{}}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"a\" "}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":":1}"}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"ping","input":{}}}"#,
        r#"{"type":"content_block_stop","index":4}"#,
        &end("tool_use"),
        STOP,
        r#"{"type":"content_block_start"}"#,
    ])
    .unwrap();
    insta::assert_debug_snapshot!(events);
    assert_eq!(
        response(events).usage,
        Some(Usage {
            input_tokens: 15,
            cache_write_tokens: 5,
            cached_input_tokens: 7,
            output_tokens: 20,
            reasoning_tokens: 0,
            requests: 1
        })
    );
}

#[test]
fn text_blocks_in_a_row_are_the_parts_of_one_message() {
    let events = lifted(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"b"}}"#,
        &end("end_turn"),
        STOP,
    ]);
    let items = response(events.unwrap()).items;
    let [Item::Message(message)] = items.as_slice() else {
        panic!("{items:?}")
    };
    let parts = [ContentPart::output_text("a"), ContentPart::output_text("b")];
    assert_eq!(message.content, parts);
}

#[test]
fn an_empty_text_block_is_no_message() {
    let events = lifted(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}"#,
        &end("tool_use"),
        STOP,
    ]);
    let items = response(events.unwrap()).items;
    assert_eq!(items, [Item::function_call("t", "n", "{}")]);
}

#[test]
fn a_call_that_the_limit_cut_off_is_marked_and_nothing_is_invented() {
    for (piece, arguments) in [(r#"{\"a\":"#, r#"{"a":"#), ("", "")] {
        let delta = format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":"{piece}"}}}}"#
        );
        let events = lifted(&[
            START,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}"#,
            &delta,
            r#"{"type":"content_block_stop","index":0}"#,
            &end("max_tokens"),
            STOP,
        ]);
        let response = response(events.unwrap());
        assert_eq!(response.finish, FinishReason::Length);
        let [Item::FunctionCall(call)] = response.items.as_slice() else {
            panic!("{response:?}")
        };
        assert_eq!(call.arguments, arguments);
        assert_eq!(call.status, Some(ItemStatus::Incomplete));
    }
}

#[test]
fn unknown_blocks_are_kept() {
    let events = lifted(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"something_new","delta":3}"#,
        &end("pause_turn"),
        STOP,
    ]);
    let response = response(events.unwrap());
    assert_eq!(response.finish, FinishReason::Normal);
    assert_eq!(
        serde_json::to_value(&response.items).unwrap(),
        json!([{"type": "anthropic:server_tool_use", "block":
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}}}])
    );
}

#[test]
fn every_reason_to_stop_is_told() {
    for (reason, finish) in [
        ("end_turn", FinishReason::Normal),
        ("stop_sequence", FinishReason::Normal),
        ("tool_use", FinishReason::Normal),
        ("pause_turn", FinishReason::Normal),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("refusal", FinishReason::ContentFilter),
        ("tired", FinishReason::Unknown),
    ] {
        let events = lifted(&[START, &end(reason), STOP]);
        assert_eq!(response(events.unwrap()).finish, finish, "{reason}");
    }
    let events = lifted(&[START, STOP]);
    assert_eq!(response(events.unwrap()).finish, FinishReason::Unknown);
}

#[test]
fn a_stream_that_breaks_off_is_an_error() {
    let begun =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#;
    let ended = r#"{"type":"content_block_stop","index":0}"#;
    for data in [&[START][..], &[START, begun], &[START, begun, ended], &[]] {
        let error = lifted(data).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Unreachable);
    }
}

#[test]
fn an_answer_that_says_why_it_stopped_is_whole_without_the_mark_of_its_end() {
    let begun =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#;
    let (reason, odd) = (end("end_turn"), r#"{"type":"message_delta","delta":{}}"#);
    let whole = response(lifted(&[START, begun, &reason]).unwrap());
    assert_eq!((whole.finish, whole.items.len()), (FinishReason::Normal, 1));
    assert_eq!(whole.usage.unwrap().output_tokens, 20);
    assert!(lifted(&[START, begun, odd]).is_err());
}

#[test]
fn input_that_is_text_is_taken_for_the_text_of_the_arguments() {
    let body = |input: &str| {
        format!(
            r#"{{"content":[{{"type":"tool_use","id":"a","name":"n","input":{input}}}],"stop_reason":"tool_use"}}"#
        )
    };
    let cases = [
        (r#""{\"a\": 1}""#, r#"{"a": 1}"#),
        (r#""""#, ""),
        ("null", ""),
        ("[1]", "[1]"),
    ];
    for (input, arguments) in cases {
        let answer = response(AnthropicLift::whole(&body(input)).unwrap().into());
        let Item::FunctionCall(call) = &answer.items[0] else {
            panic!("{answer:?}")
        };
        assert_eq!(call.arguments, arguments, "{input}");
    }
}

#[test]
fn errors_in_the_stream_bear_the_providers_words() {
    let error = lifted(&[
        START,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}"#,
    ])
    .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::ServerError);
    assert_eq!(error.code.as_deref(), Some("overloaded_error"));
    assert_eq!(error.message, "Overloaded");
}

#[test]
fn pieces_for_no_block_or_for_one_of_another_type_break_the_protocol() {
    let text =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    for data in [
        vec![
            START,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}"#,
        ],
        vec![
            START,
            text,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"x"}}"#,
        ],
        vec![
            START,
            text,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"x"}}"#,
        ],
        vec![
            START,
            text,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}"#,
        ],
        vec![START, r#"{"type":"content_block_start","index":0}"#],
        vec!["{", STOP],
    ] {
        assert_eq!(
            lifted(&data).unwrap_err().kind,
            ModelErrorKind::Protocol,
            "{data:?}"
        );
    }
}

#[test]
fn half_a_pair_of_surrogates_does_not_end_the_answer() {
    let events = lifted(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83d"}}"#,
        &end("end_turn"),
        STOP,
    ]);
    assert!(response(events.unwrap()).items[0].text().starts_with('a'));
}

#[test]
fn a_whole_answer_is_lifted_like_a_stream() {
    let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[
        {"type":"thinking","thinking":"hm","signature":"c2ln"},
        {"type":"text","text":"Hey"},
        {"type":"tool_use","id":"toolu_1","name":"find","input":{"a" : 12345678901234567890123}},
        {"type":"tool_use","id":"toolu_2","name":"ping","input":{}}],
        "stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}"#;
    insta::assert_debug_snapshot!(AnthropicLift::whole(body).unwrap());
    for body in ["{}", "", "<html>"] {
        let error = AnthropicLift::whole(body).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{body}");
    }
}

#[test]
fn usage_that_cannot_be_read_loses_no_answer() {
    for count in ["-1", "18446744073709551616", "\"5\"", "1e300"] {
        let usage = format!(r#"{{"input_tokens":{count},"output_tokens":1}}"#);
        let body = format!(
            r#"{{"id":"msg_1","content":[{{"type":"text","text":"Hey"}}],"stop_reason":"end_turn","usage":{usage}}}"#
        );
        let whole: Vec<_> = AnthropicLift::whole(&body).unwrap().into();
        let streamed = lifted(&[
            &format!(r#"{{"type":"message_start","message":{{"id":"msg_1","usage":{usage}}}}}"#),
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hey"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            &format!(
                r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#
            ),
            STOP,
        ]);
        for events in [streamed.unwrap(), whole] {
            let answer = response(events);
            assert_eq!(
                (answer.items[0].text().as_str(), answer.usage),
                ("Hey", None)
            );
        }
    }
}

fn odd_event() -> impl Strategy<Value = String> {
    let kind = proptest::sample::select(vec![
        "message_start",
        "content_block_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
    ]);
    let block = proptest::sample::select(vec![
        json!({"type": "text", "text": ""}),
        json!({"type": "text", "text": "x"}),
        json!({"type": "tool_use", "id": "t", "name": "n", "input": {}}),
        json!({"type": "tool_use", "input": null}),
        json!({"type": "thinking", "thinking": ""}),
        json!({"type": "redacted_thinking", "data": "d"}),
        json!({"type": "mystery", "input": 3}),
    ]);
    let delta = proptest::sample::select(vec![
        json!({"type": "text_delta", "text": "x"}),
        json!({"type": "text_delta"}),
        json!({"type": "thinking_delta", "thinking": "x"}),
        json!({"type": "signature_delta", "signature": "s"}),
        json!({"type": "input_json_delta", "partial_json": "{"}),
        json!({"type": "citations_delta"}),
        json!({"stop_reason": "max_tokens"}),
    ]);
    let place = proptest::sample::select(vec![json!(0), Value::Null]);
    (kind, block, delta, place).prop_map(|(kind, block, delta, place)| {
        json!({"type": kind, "index": place, "content_block": block, "delta": delta,
            "message": {"id": "m"}})
        .to_string()
    })
}

proptest! {
    #[test]
    fn events_are_in_order_however_odd_the_server_is(
        data in proptest::collection::vec(odd_event(), 0..24),
    ) {
        let mut lift = AnthropicLift::default();
        let mut events = Events::new();
        let mut is_broken = false;
        for data in data {
            let frame = SseEvent { data, ..SseEvent::default() };
            match lift.take(frame, &mut events) {
                Ok(Flow::Over) => break,
                Ok(_) => {}
                // A piece out of place ends the answer; what came before it must still hold.
                Err(_) => {
                    is_broken = true;
                    break;
                }
            }
        }
        let is_finished = !is_broken && lift.end(&mut events).is_ok();
        crate::lift::invariants::check(events.make_contiguous(), is_finished);
    }
}

#[test]
fn a_search_of_the_provider_and_the_call_that_follows_it_are_items_in_order() {
    let events = lifted(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"I look."}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"tool_search_tool_bm25","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"query\":"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"weather\"}"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"get_weather"}]}}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{}}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"city\":\"Oslo\"}"}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        &end("tool_use"),
        STOP,
    ]);
    let items = serde_json::to_value(response(events.unwrap()).items).unwrap();
    let block = &items[1]["block"];
    assert_eq!(
        block.to_string(),
        r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"tool_search_tool_bm25","input":{"query":"weather"}}"#
    );
    assert_eq!(
        items[2]["block"]["content"]["tool_references"][0]["tool_name"],
        "get_weather"
    );
    assert_eq!(
        (&items[3]["name"], items.as_array().unwrap().len()),
        (&json!("get_weather"), 4)
    );
}
