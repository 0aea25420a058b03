use haft_core::{
    ContentPart, Item, ItemStatus, Message, ModelEvent, ModelResponse, Reasoning, Role,
};
use serde_json::{Map, Value, json};

use super::*;

fn heading() -> Heading {
    Heading {
        id: "chatcmpl_1".into(),
        created: 7,
        model: "m".into(),
    }
}

fn whole(answer: ModelResponse) -> Value {
    serde_json::to_value(Completion::of(answer, heading())).unwrap()
}

fn frames(events: impl IntoIterator<Item = ModelEvent>, with_usage: bool) -> Vec<String> {
    let mut writer = ChunkWriter::new(heading(), with_usage);
    let frames = events.into_iter().flat_map(|event| writer.take(event));
    frames
        .map(|frame| String::from_utf8(frame.to_vec()).unwrap())
        .collect()
}

/// The chunks, with `[DONE]` demanded at the end.
fn chunks(frames: &[String]) -> Vec<Value> {
    let (last, frames) = frames.split_last().unwrap();
    assert_eq!(last, "data: [DONE]\n\n");
    let chunk = |frame: &String| {
        let data = frame
            .strip_prefix("data: ")
            .unwrap()
            .strip_suffix("\n\n")
            .unwrap();
        assert!(!data.contains('\n'));
        serde_json::from_str(data).unwrap()
    };
    frames.iter().map(chunk).collect()
}

fn thought(content: &[&str], summary: &[&str]) -> Item {
    let content = content.iter().map(|text| ContentPart::ReasoningText {
        text: (*text).into(),
    });
    let summary = summary.iter().map(|text| ContentPart::SummaryText {
        text: (*text).into(),
    });
    Item::Reasoning(Reasoning {
        content: content.collect(),
        summary: summary.collect(),
        ..Reasoning::default()
    })
}

fn message(parts: Vec<ContentPart>) -> Item {
    Item::Message(Message {
        content: parts,
        ..Message::new(Role::Assistant, "")
    })
}

fn weighed(text: &str) -> ContentPart {
    let logprobs = json!([{"token": text, "logprob": -0.5, "bytes": [104], "top_logprobs": []}]);
    ContentPart::OutputText {
        text: text.into(),
        annotations: Vec::new(),
        extra: Map::from_iter([("logprobs".into(), logprobs)]),
    }
}

fn everything() -> ModelResponse {
    ModelResponse::of([
        thought(&["hm, ", "well"], &[]),
        message(vec![weighed("Let me look.")]),
        Item::function_call("call_a", "look", "{\"at\":1}"),
        Item::function_call("call_b", "wait", ""),
    ])
    .with_usage(12, 5)
}

#[test]
fn a_whole_answer_has_all_its_members() {
    insta::assert_json_snapshot!(whole(everything()));
}

#[test]
fn an_answer_in_pieces_has_one_frame_for_each() {
    insta::assert_snapshot!(frames(everything().into_events(), true).concat());
}

#[test]
fn the_cost_is_told_only_to_who_asked_and_only_if_it_is_known() {
    let costs = |answer: ModelResponse, with_usage: bool| {
        let frames = frames(answer.into_events(), with_usage);
        let chunks = chunks(&frames);
        let told = chunks
            .iter()
            .filter(|chunk| chunk["usage"].is_object())
            .count();
        let null = chunks
            .iter()
            .filter(|chunk| chunk.get("usage") == Some(&Value::Null))
            .count();
        (told, null, chunks.len())
    };
    let known = || ModelResponse::text("hi").with_usage(1, 1);
    assert_eq!(costs(known(), true), (1, 3, 4));
    assert_eq!(costs(known(), false), (0, 0, 3));
    assert_eq!(costs(ModelResponse::text("hi"), true), (0, 3, 3));
    assert!(whole(ModelResponse::text("hi")).get("usage").is_none());
}

#[test]
fn the_reason_is_told_in_the_words_of_the_protocol() {
    let call = || ModelResponse::of([Item::function_call("c", "f", "{")]);
    let text = || ModelResponse::text("hi");
    for (answer, finish, reason) in [
        (text(), FinishReason::Normal, "stop"),
        (text(), FinishReason::Unknown, "stop"),
        (text(), FinishReason::Length, "length"),
        (text(), FinishReason::ContentFilter, "content_filter"),
        (call(), FinishReason::Normal, "tool_calls"),
        (call(), FinishReason::Unknown, "tool_calls"),
        (call(), FinishReason::Length, "length"),
    ] {
        let answer = ModelResponse { finish, ..answer };
        let frames = frames(answer.clone().into_events(), false);
        let chunks = chunks(&frames);
        assert_eq!(
            chunks.last().unwrap()["choices"][0]["finish_reason"],
            reason
        );
        assert_eq!(whole(answer)["choices"][0]["finish_reason"], reason);
    }
}

/// What a client puts together from chunks.
fn assembled(chunks: &[Value]) -> Value {
    let mut said = json!({"role": null, "content": null, "refusal": null});
    let mut calls: Vec<Value> = Vec::new();
    let add = |to: &mut Value, piece: &Value| {
        if let Some(piece) = piece.as_str() {
            *to = format!("{}{piece}", to.as_str().unwrap_or_default()).into();
        }
    };
    for chunk in chunks {
        let Some(choice) = chunk["choices"].get(0) else {
            continue;
        };
        let delta = &choice["delta"];
        for member in ["role", "content", "refusal", "reasoning_content"] {
            if delta.get(member).is_some_and(Value::is_string) {
                add(&mut said[member], &delta[member]);
            }
        }
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
            if index == calls.len() {
                calls.push(json!({"id": piece["id"], "type": piece["type"],
                    "function": {"name": piece["function"]["name"], "arguments": ""}}));
            }
            add(
                &mut calls[index]["function"]["arguments"],
                &piece["function"]["arguments"],
            );
        }
    }
    if !calls.is_empty() {
        said["tool_calls"] = calls.into();
    }
    said
}

#[test]
fn what_a_client_puts_together_is_the_whole_answer() {
    let refusal = |text: &str| ContentPart::Refusal {
        refusal: text.into(),
    };
    for items in [
        vec![],
        vec![Item::assistant("hi")],
        vec![Item::assistant("one"), Item::assistant("two")],
        vec![message(vec![refusal("no")])],
        vec![message(vec![
            ContentPart::output_text("so "),
            ContentPart::output_text("far"),
        ])],
        vec![
            thought(&["a", "b"], &[]),
            Item::assistant("hi"),
            thought(&["c"], &[]),
        ],
        vec![thought(&[], &["a", "b"]), Item::assistant("hi")],
        vec![
            Item::function_call("a", "f", "{}"),
            Item::function_call("b", "g", "{\"x\":1}"),
        ],
        vec![Item::assistant("text"), Item::function_call("a", "f", "")],
        vec![cut_off()],
        everything().items,
    ] {
        let answer = ModelResponse::of(items);
        let expected = whole(answer.clone())["choices"][0]["message"].clone();
        let frames_of_pieces = frames(answer.clone().into_events(), false);
        assert_eq!(assembled(&chunks(&frames_of_pieces)), expected);
        // A model that only tells of whole items is told of as well.
        let only_done = answer.into_events().into_iter().filter(|event| {
            matches!(
                event,
                ModelEvent::ItemDone { .. } | ModelEvent::Finished { .. }
            )
        });
        assert_eq!(assembled(&chunks(&frames(only_done, false))), expected);
    }
}

#[test]
fn every_call_has_an_id_of_its_own() {
    let answer = ModelResponse::of([
        Item::function_call("", "f", "{}"),
        Item::function_call("same", "f", "{}"),
        Item::function_call("same", "f", "{}"),
    ]);
    let streamed = assembled(&chunks(&frames(answer.clone().into_events(), false)));
    for said in [streamed, whole(answer)["choices"][0]["message"].clone()] {
        let ids: Vec<_> = (0..3)
            .map(|at| said["tool_calls"][at]["id"].as_str().unwrap())
            .collect();
        assert!(
            ids[0].starts_with("call_") && ids[2].starts_with("call_"),
            "{ids:?}"
        );
        assert_eq!(ids[1], "same");
        assert_ne!(ids[0], ids[2]);
    }
}

#[test]
fn nothing_is_told_before_there_is_something_to_tell() {
    let events = ModelResponse::text("hi").into_events().into_iter();
    let mut writer = ChunkWriter::new(heading(), false);
    let counts: Vec<_> = events.map(|event| writer.take(event).len()).collect();
    // Who speaks and the text; nothing more of the text; the reason and the mark of the end.
    assert_eq!(counts, [0, 0, 2, 0, 2]);
}

#[test]
fn an_error_is_a_frame_of_its_own() {
    let error = ApiError::new(crate::error::ErrorCode::BackendTimeout, "too slow");
    assert_eq!(
        error_frame(&error),
        "data: {\"error\":{\"message\":\"too slow\",\"type\":\"model_error\",\"param\":null,\"code\":\"backend_timeout\"}}\n\n"
    );
}

fn cut_off() -> Item {
    let Item::FunctionCall(mut call) = Item::function_call("c", "f", "") else {
        unreachable!()
    };
    call.status = Some(ItemStatus::Incomplete);
    Item::FunctionCall(call)
}

#[test]
fn a_call_that_was_cut_off_is_not_made_whole() {
    let answer = whole(ModelResponse::of([cut_off()]));
    let call = &answer["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["function"]["arguments"], "");
}
