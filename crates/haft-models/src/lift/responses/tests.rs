use super::*;
use haft_core::{Item, ModelResponse, Usage};
use proptest::prelude::*;
use serde_json::json;

/// The answer to a request that declares every tool of the provider.
fn lift() -> ResponsesLift {
    let types = haft_core::PROVIDER_TOOL_TYPES.into_iter();
    ResponsesLift::new(ProviderOptions {
        tools: types.map(|name| json!({"type": name})).collect(),
        ..ProviderOptions::default()
    })
}

fn whole(body: &str) -> Result<Events, ModelError> {
    lift().whole(body)
}

/// The events of a stream, or the error that it ends with.
pub(super) fn lifted(data: &[&str]) -> Result<Vec<ModelEvent>, ModelError> {
    let mut lift = lift();
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

pub(super) fn response(events: &[ModelEvent]) -> ModelResponse {
    let mut assembly = haft_core::Assembly::default();
    for event in events {
        assembly.add(event.clone());
    }
    assembly.take_finished().unwrap()
}

/// What the deltas of the item at `index` add up to.
fn said(events: &[ModelEvent], at: usize) -> String {
    let pieces = events.iter().filter_map(|event| match event {
        ModelEvent::TextDelta { index, text }
        | ModelEvent::RefusalDelta { index, text }
        | ModelEvent::ReasoningDelta { index, text }
        | ModelEvent::SummaryDelta { index, text, .. }
        | ModelEvent::ArgumentsDelta { index, text } => (*index == at).then_some(text.as_str()),
        _ => None,
    });
    pieces.collect()
}

const CREATED: &str = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"gpt-x","status":"in_progress","output":[]}}"#;
const COMPLETED: &str =
    r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[]}}"#;

#[test]
fn every_kind_of_item_is_lifted() {
    let events = lifted(&[
        CREATED,
        r#"{"type":"response.in_progress","response":{"id":"resp_1"}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}"#,
        r#"{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"hm"}"#,
        r#"{"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"hm"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA"}}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","content":[]}}"#,
        r#"{"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"He","logprobs":[]}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"y","logprobs":[]}"#,
        r#"{"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"Hey"}"#,
        r#"{"type":"response.refusal.delta","item_id":"msg_1","output_index":1,"content_index":1,"delta":"no"}"#,
        r#"{"type":"response.refusal.done","item_id":"msg_1","output_index":1,"content_index":1,"refusal":"no"}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hey","annotations":[],"logprobs":[]},{"type":"refusal","refusal":"no"}]}}"#,
        r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc_1","status":"in_progress","call_id":"call_1","name":"find","arguments":""}}"#,
        r#"{"type":"response.output_item.added","output_index":3,"item":{"type":"function_call","id":"fc_2","status":"in_progress","call_id":"call_2","name":"ping","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":3,"delta":"{}"}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"a\" :1}"}"#,
        r#"{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"a\" :1}"}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"fc_1","status":"completed","call_id":"call_1","name":"find","arguments":"{\"a\" :1}"}}"#,
        r#"{"type":"response.output_item.done","output_index":3,"item":{"type":"function_call","id":"fc_2","status":"completed","call_id":"call_2","name":"ping","arguments":"{}"}}"#,
        r#"{"type":"response.output_item.added","output_index":4,"item":{"type":"web_search_call","id":"ws_1","status":"in_progress"}}"#,
        r#"{"type":"response.web_search_call.searching","item_id":"ws_1","output_index":4}"#,
        r#"{"type":"response.output_item.done","output_index":4,"item":{"type":"web_search_call","id":"ws_1","status":"completed","action":{"q":1}}}"#,
        r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":3},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":16}}}"#,
        "[DONE]",
    ])
    .unwrap();
    insta::assert_debug_snapshot!(events);
    assert_eq!(
        response(&events).usage,
        Some(Usage {
            input_tokens: 9,
            cache_write_tokens: 3,
            cached_input_tokens: 4,
            output_tokens: 7,
            reasoning_tokens: 2,
            requests: 1
        })
    );
}

#[test]
fn servers_that_leave_places_and_dones_out_are_understood() {
    // As llama.cpp: no `sequence_number`, no `output_index`, no `arguments.done`, a call's pieces
    // under its call id.
    let events = lifted(&[
        r#"{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress"}}"#,
        r#"{"type":"response.output_item.added","item":{"content":[],"id":"msg_1","role":"assistant","status":"in_progress","type":"message"}}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","delta":"Hey"}"#,
        r#"{"type":"response.output_item.added","item":{"arguments":"","call_id":"fc_a","name":"find","type":"function_call","status":"in_progress"}}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":"{\"a\"","item_id":"fc_a"}"#,
        r#"{"type":"response.output_item.added","item":{"arguments":"","call_id":"fc_b","name":"find","type":"function_call","status":"in_progress"}}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":":1}","item_id":"fc_a"}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":"{}","item_id":"fc_b"}"#,
        r#"{"type":"response.output_item.done","item":{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hey","annotations":[]}]}}"#,
        r#"{"type":"response.output_item.done","item":{"arguments":"{\"a\":1}","call_id":"fc_a","name":"find","type":"function_call","status":"completed"}}"#,
        r#"{"type":"response.output_item.done","item":{"arguments":"{}","call_id":"fc_b","name":"find","type":"function_call","status":"completed"}}"#,
        COMPLETED,
    ])
    .unwrap();
    let items = response(&events).items;
    assert_eq!(items.len(), 3);
    let calls: Vec<_> = items[1..]
        .iter()
        .map(|item| match item {
            Item::FunctionCall(call) => (call.call_id.as_str(), call.arguments.as_str()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(calls, [("fc_a", r#"{"a":1}"#), ("fc_b", "{}")]);
    assert_eq!(said(&events, 0), "Hey");
    assert_eq!(said(&events, 1), r#"{"a":1}"#);
    assert_eq!(said(&events, 2), "{}");
}

#[test]
fn items_that_only_the_final_response_holds_are_taken_from_there() {
    let completed = r#"{"type":"response.completed","response":{"status":"completed","output":[
        {"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Hey you","annotations":[]}]},
        {"type":"function_call","call_id":"c","name":"find","arguments":{"a": 1}}]}}"#;
    let events = lifted(&[
        CREATED,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","delta":"Hey"}"#,
        completed,
    ])
    .unwrap();
    let response = response(&events);
    assert_eq!(response.items[0].text(), "Hey you");
    assert_eq!(
        response.items[1],
        Item::function_call("c", "find", r#"{"a": 1}"#)
    );
    assert_eq!(response.items.len(), 2);
    assert_eq!(
        (said(&events, 0), said(&events, 1)),
        ("Hey you".into(), r#"{"a": 1}"#.into())
    );
}

#[test]
fn an_item_that_is_never_said_whole_is_put_together_from_its_pieces() {
    let events = lifted(&[
        CREATED,
        r#"{"type":"response.reasoning_text.delta","delta":"hm"}"#,
        r#"{"type":"response.output_text.delta","delta":"Hey"}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c","name":"find"}}"#,
        r#"{"type":"response.function_call_arguments.done","arguments":"{}"}"#,
        COMPLETED,
    ])
    .unwrap();
    let items = serde_json::to_value(response(&events).items).unwrap();
    assert_eq!(
        items,
        json!([
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": "Hey", "annotations": []}]},
            {"type": "function_call", "call_id": "c", "name": "find", "arguments": "{}"}
        ])
    );
}

#[test]
fn reused_places_and_missing_call_ids_do_not_merge_calls() {
    let call = |event: &str, arguments: &str| {
        format!(
            r#"{{"type":"response.output_item.{event}","output_index":0,"item":{{"type":"function_call","name":"find","arguments":"{arguments}"}}}}"#
        )
    };
    let events = lifted(&[
        CREATED,
        &call("added", ""),
        &call("done", "1"),
        &call("added", ""),
        &call("done", "2"),
        COMPLETED,
    ])
    .unwrap();
    let expected = ["1", "2"].map(|arguments| Item::function_call("", "find", arguments));
    assert_eq!(response(&events).items, expected);
}

#[test]
fn the_end_of_a_response_gives_its_reason() {
    let incomplete = |reason: &str| {
        format!(
            r#"{{"type":"response.incomplete","response":{{"status":"incomplete","incomplete_details":{reason}}}}}"#
        )
    };
    for (event, finish) in [
        (COMPLETED.to_owned(), FinishReason::Normal),
        (
            incomplete(r#"{"reason":"max_output_tokens"}"#),
            FinishReason::Length,
        ),
        (
            incomplete(r#"{"reason":"content_filter"}"#),
            FinishReason::ContentFilter,
        ),
        (
            incomplete(r#"{"reason":"max_tool_calls"}"#),
            FinishReason::Length,
        ),
        (incomplete("null"), FinishReason::Length),
    ] {
        let events = lifted(&[&event]).unwrap();
        assert_eq!(response(&events).finish, finish, "{event}");
    }
}

#[test]
fn failures_bear_the_providers_code_and_words() {
    use ModelErrorKind::{RateLimit, ServerError};
    for (data, kind, code, message) in [
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"oops"}}}"#,
            ServerError,
            Some("server_error"),
            "oops",
        ),
        (
            r#"{"type":"error","sequence_number":3,"code":"rate_limit_exceeded","message":"slow","param":null}"#,
            RateLimit,
            Some("rate_limit_exceeded"),
            "slow",
        ),
        (
            r#"{"type":"error","error":{"type":"rate_limit_error","code":null,"message":"slow","param":null}}"#,
            RateLimit,
            Some("rate_limit_error"),
            "slow",
        ),
        (r#"{"error":{"message":"down"}}"#, ServerError, None, "down"),
        (
            r#"{"type":"response.failed","response":{"status":"cancelled","error":null}}"#,
            ServerError,
            None,
            "the response ended as `cancelled` without a reason",
        ),
    ] {
        let error = lifted(&[CREATED, data]).unwrap_err();
        assert_eq!(
            (error.kind, error.code.as_deref(), error.message.as_str()),
            (kind, code, message)
        );
    }
}

#[test]
fn a_stream_that_breaks_off_is_an_error() {
    for data in [vec![], vec![CREATED], vec![CREATED, "[DONE]"]] {
        assert_eq!(lifted(&data).unwrap_err().kind, ModelErrorKind::Unreachable);
    }
    assert_eq!(lifted(&["{"]).unwrap_err().kind, ModelErrorKind::Protocol);
    let unfinished = r#"{"type":"response.completed","response":{"status":"in_progress"}}"#;
    assert_eq!(
        lifted(&[unfinished]).unwrap_err().kind,
        ModelErrorKind::Protocol
    );
}

#[test]
fn the_type_may_stand_in_the_event_line_alone() {
    let mut lift = lift();
    let mut events = Events::new();
    let frame = SseEvent {
        event: "response.output_text.delta".into(),
        data: r#"{"delta":"Hey"}"#.into(),
        id: None,
    };
    assert_eq!(lift.take(frame, &mut events), Ok(Flow::More));
    assert!(matches!(events.back(), Some(ModelEvent::TextDelta { text, .. }) if text == "Hey"));
}

#[test]
fn a_whole_answer_is_lifted_like_a_stream() {
    let body = r#"{"id":"resp_1","object":"response","model":"gpt-x","status":"completed","output":[
        {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"},
        {"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hey","annotations":[]}]},
        {"type":"function_call","id":"fc_1","call_id":"call_1","name":"find","arguments":"{\"a\" :1}","status":"completed"}],
        "usage":{"input_tokens":1,"output_tokens":2}}"#;
    insta::assert_debug_snapshot!(whole(body).unwrap());
    for body in ["<html>", "{}"] {
        let error = whole(body).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{body}");
    }
    let error = whole(r#"{"error":{"message":"no","code":"slow_down"}}"#);
    assert_eq!(error.unwrap_err().kind, ModelErrorKind::ServerError);
    let failed = r#"{"status":"failed","error":{"code":"invalid_prompt","message":"no"}}"#;
    let error = whole(failed).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::PromptRefused);
}

#[test]
fn usage_that_cannot_be_read_loses_no_answer() {
    let item = r#"{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Hey"}]}"#;
    for count in ["-1", "18446744073709551616", "\"5\"", "1e300", "[]"] {
        for usage in [
            format!(r#"{{"input_tokens":{count},"output_tokens":1}}"#),
            count.to_owned(),
        ] {
            let body = format!(r#"{{"status":"completed","output":[{item}],"usage":{usage}}}"#);
            let completed = format!(r#"{{"type":"response.completed","response":{body}}}"#);
            let streamed = lifted(&[CREATED, &completed]).unwrap();
            let whole: Vec<_> = whole(&body).unwrap().into();
            for events in [streamed, whole] {
                let answer = response(&events);
                assert_eq!(answer.items[0].text(), "Hey", "{usage}");
                assert!(
                    answer.usage.is_none_or(|it| it.output_tokens == 0),
                    "{usage}"
                );
            }
        }
    }
}

#[test]
fn an_item_of_the_final_response_is_neither_lost_nor_taken_twice() {
    let call = |id: &str, name: &str| {
        format!(
            r#"{{"type":"function_call","id":"{id}","call_id":"c{id}","name":"{name}","arguments":"{{}}"}}"#
        )
    };
    let done = |id: &str, name: &str| {
        format!(
            r#"{{"type":"response.output_item.done","item":{}}}"#,
            call(id, name)
        )
    };
    let completed = |items: &[String]| {
        format!(
            r#"{{"type":"response.completed","response":{{"output":[{}]}}}}"#,
            items.join(",")
        )
    };
    // One that was not streamed stands before one that was.
    let output = completed(&[call("1", "a"), call("2", "b")]);
    let events = lifted(&[&done("2", "b"), &output]).unwrap();
    let names: Vec<_> = response(&events)
        .items
        .iter()
        .map(|item| match item {
            Item::FunctionCall(call) => call.name.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["b", "a"]);
    // The final list has ids of its own.
    let output = completed(&[call("3", "a"), call("4", "b")]);
    let events = lifted(&[&done("1", "a"), &done("2", "b"), &output]).unwrap();
    assert_eq!(response(&events).items.len(), 2);
}

fn reasoning(item: &Item) -> haft_core::Reasoning {
    match item {
        Item::Reasoning(reasoning) => reasoning.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn parts_of_a_summary_are_what_their_deltas_say() {
    let delta = |place: &str, text: &str| {
        format!(
            r#"{{"type":"response.reasoning_summary_text.delta","item_id":"rs_1",{place}"delta":"{text}"}}"#
        )
    };
    let events = lifted(&[
        CREATED,
        r#"{"type":"response.output_item.added","item":{"type":"reasoning","id":"rs_1","summary":[]}}"#,
        &delta(r#""summary_index":0,"#, "a"),
        &delta(r#""summary_index":0,"#, "b"),
        // Some servers count on from elsewhere, or not at all.
        &delta(r#""summary_index":7,"#, "c"),
        &delta("", "d"),
        r#"{"type":"response.reasoning_summary_text.done","item_id":"rs_1","summary_index":7,"text":"cd"}"#,
        r#"{"type":"response.reasoning_summary_text.done","item_id":"rs_1","summary_index":8,"text":"e"}"#,
        r#"{"type":"response.reasoning_text.delta","item_id":"rs_1","delta":"raw"}"#,
        r#"{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1","summary":[]}}"#,
        COMPLETED,
    ])
    .unwrap();
    let told: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::SummaryDelta { part, text, .. } => Some((*part, text.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(told, [(0, "a"), (0, "b"), (1, "c"), (1, "d"), (2, "e")]);
    let item = reasoning(&response(&events).items[0]);
    let texts = |parts: &[haft_core::ContentPart]| -> Vec<_> {
        parts
            .iter()
            .map(|part| part.text().unwrap().to_owned())
            .collect()
    };
    assert_eq!(texts(&item.summary), ["ab", "cd", "e"]);
    assert_eq!(texts(&item.content), ["raw"]);
}

#[test]
fn the_id_at_the_beginning_is_the_id_at_the_end_and_what_is_sealed_keeps_its_own() {
    let events = lifted(&[
        CREATED,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_a","summary":[]}}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_b","summary":[],"encrypted_content":"gAAA"}}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_a","content":[]}}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":"x"}]}}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_c","delta":"y"}"#,
        COMPLETED,
    ])
    .unwrap();
    crate::lift::invariants::check(&events, true);
    let items = response(&events).items;
    let ids: Vec<_> = items.iter().map(|item| item.id().unwrap()).collect();
    assert_eq!(ids, ["rs_a", "msg_a", "msg_c"]);
    assert_eq!(reasoning(&items[0]).extra["wire_id"], json!("rs_b"));
}

#[test]
fn likelihoods_of_deltas_are_kept_where_the_item_has_none() {
    let events = lifted(&[
        CREATED,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","delta":"He","logprobs":[{"token":"He","logprob":-0.5,"top_logprobs":[]}]}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","delta":"y","logprobs":[{"token":"y","logprob":-1.5,"bytes":[121],"top_logprobs":[{"token":"i","logprob":-2}]}]}"#,
        r#"{"type":"response.output_text.done","item_id":"msg_1","text":"Hey","logprobs":[{"token":"He","logprob":-0.5}]}"#,
        COMPLETED,
    ])
    .unwrap();
    let item = serde_json::to_value(&response(&events).items[0]).unwrap();
    assert_eq!(
        item["content"][0]["logprobs"],
        json!([
            {"token": "He", "logprob": -0.5, "bytes": [72, 101], "top_logprobs": []},
            {"token": "y", "logprob": -1.5, "bytes": [121],
                "top_logprobs": [{"token": "i", "logprob": -2, "bytes": [105]}]}
        ])
    );
}

fn odd_event() -> impl Strategy<Value = String> {
    let kind = proptest::sample::select(vec![
        "created",
        "output_item.added",
        "output_item.done",
        "output_text.delta",
        "output_text.done",
        "refusal.delta",
        "reasoning_text.delta",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "completed",
        "incomplete",
        "unheard_of",
    ]);
    let id = || proptest::sample::select(vec![json!("a"), json!("b"), json!(""), Value::Null]);
    let item = (
        proptest::sample::select(vec!["message", "function_call", "reasoning", "mystery"]),
        id(),
        id(),
        proptest::sample::select(vec![json!("{}"), json!({"a": 1}), Value::Null]),
    )
        .prop_map(|(kind, id, call_id, arguments)| {
            json!({"type": kind, "id": id, "call_id": call_id, "name": "n", "arguments": arguments,
                "content": [{"type": "output_text", "text": "xy"}],
                "summary": [{"type": "summary_text", "text": "xy"}]})
        });
    let place = proptest::sample::select(vec![json!(0), json!(1), json!(-1), Value::Null]);
    let items = proptest::collection::vec(item, 1..4);
    let text = proptest::sample::select(vec![json!("x"), json!(""), json!(3)]);
    (kind, id(), place, items, text).prop_map(|(kind, id, place, items, text)| {
        json!({"type": format!("response.{kind}"), "item_id": id, "output_index": place,
            "summary_index": place,
            "item": items[0], "delta": text, "text": text, "arguments": text,
            "response": {"output": items}})
        .to_string()
    })
}

proptest! {
    #[test]
    fn events_are_in_order_however_odd_the_server_is(
        data in proptest::collection::vec(odd_event(), 0..24),
    ) {
        let mut lift = lift();
        let mut events = Events::new();
        let mut ended = Ok(());
        for data in data {
            let frame = SseEvent { data, ..SseEvent::default() };
            match lift.take(frame, &mut events) {
                Ok(Flow::Over) => break,
                Ok(_) => {}
                Err(error) => {
                    ended = Err(error);
                    break;
                }
            }
        }
        let is_finished = ended.is_ok() && lift.end(&mut events).is_ok();
        crate::lift::invariants::check(events.make_contiguous(), is_finished);
    }
}

/// Everything that a client executes, and one item that the provider runs.
const UNDECLARED: [&str; 5] = [
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
    "code_interpreter_call",
];

#[test]
fn items_of_tools_that_the_request_does_not_declare_are_ignored() {
    let search = r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#;
    let text = r#"{"type":"message","id":"m_1","role":"assistant","content":[{"type":"output_text","text":"hi"}]}"#;
    for item_type in UNDECLARED {
        let call =
            format!(r#"{{"type":"{item_type}","id":"x_1","call_id":"c_1","status":"completed"}}"#);
        let output = format!("[{search},{call},{text}]");
        let response = format!(r#"{{"id":"r","status":"completed","output":{output}}}"#);
        let events = [
            format!(r#"{{"type":"response.output_item.added","output_index":0,"item":{search}}}"#),
            format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{search}}}"#),
            format!(r#"{{"type":"response.output_item.added","output_index":1,"item":{call}}}"#),
            r#"{"type":"response.x.in_progress","item_id":"x_1","output_index":1}"#.to_owned(),
            format!(r#"{{"type":"response.output_item.done","output_index":1,"item":{call}}}"#),
            format!(r#"{{"type":"response.output_item.added","output_index":2,"item":{text}}}"#),
            format!(r#"{{"type":"response.completed","response":{response}}}"#),
        ];
        let lift = || {
            ResponsesLift::new(ProviderOptions {
                tools: [json!({"type": "web_search"})].into(),
                ..ProviderOptions::default()
            })
        };
        let mut streamed = Events::new();
        let mut reading = lift();
        for data in events {
            let frame = SseEvent {
                data,
                ..SseEvent::default()
            };
            reading.take(frame, &mut streamed).unwrap();
        }
        for events in [streamed, lift().whole(&response).unwrap()] {
            let done = events.iter().filter_map(|event| match event {
                ModelEvent::ItemDone { item, .. } => Some(item.kind()),
                ModelEvent::ProviderEvent { .. } => Some("event"),
                _ => None,
            });
            let done: Vec<_> = done.collect();
            assert_eq!(done, ["web_search_call", "message"], "{item_type}");
        }
    }
}

#[test]
fn members_that_only_haft_writes_are_removed_from_items_and_events() {
    let private = r#""provenance":{},"wire_field":"role","wire_id":"w","haft":1,"haft_wire_id":"x","recovered":true"#;
    for item in [
        format!(r#"{{"type":"web_search_call","id":"i","status":"completed",{private}}}"#),
        format!(r#"{{"type":"reasoning","id":"i","summary":[],{private}}}"#),
        format!(
            r#"{{"type":"function_call","id":"i","call_id":"c","name":"n","arguments":"{{}}",{private}}}"#
        ),
    ] {
        let mut events = Events::new();
        let mut lift = lift();
        for data in [
            format!(r#"{{"type":"response.output_item.added","output_index":0,"item":{item}}}"#),
            format!(r#"{{"type":"response.web_search_call.searching","item_id":"i",{private}}}"#),
            format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#),
        ] {
            let frame = SseEvent {
                data,
                ..SseEvent::default()
            };
            lift.take(frame, &mut events).unwrap();
        }
        let told = format!("{events:?}");
        for member in ["provenance", "wire_", "haft", "recovered\""] {
            assert!(!told.contains(member), "`{member}` in {told}");
        }
    }
}
