//! Images, files and videos: each reaches the provider in its own shape or is refused by name, and
//! what is refused is known before anything is sent.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::sync::Arc;

use common::events::answer_of;
use haft_core::{Item, Model, ModelErrorKind, ModelRequest};
use haft_models::testing::{Protocol, ScriptedServer, say};
use haft_models::{Anthropic, CapabilityOverrides, Ollama, OpenAiChat, OpenAiResponses};
use serde_json::{Value, json};

fn adapter(
    protocol: Protocol,
    server: &ScriptedServer,
    capabilities: CapabilityOverrides,
) -> Arc<dyn Model> {
    let (root, base) = (server.url(), server.base_url());
    match protocol {
        Protocol::ChatCompletions => Arc::new(
            OpenAiChat::new("m")
                .base_url(&base)
                .with_capabilities(capabilities),
        ),
        Protocol::Responses => Arc::new(
            OpenAiResponses::new("m")
                .base_url(&base)
                .with_capabilities(capabilities),
        ),
        Protocol::Messages => Arc::new(
            Anthropic::new("m")
                .base_url(&root)
                .caching(false)
                .with_capabilities(capabilities),
        ),
        Protocol::Ollama => Arc::new(
            Ollama::new("m")
                .base_url(&root)
                .with_capabilities(capabilities),
        ),
    }
}

fn all_inputs(takes: bool) -> CapabilityOverrides {
    CapabilityOverrides {
        image_input: Some(takes),
        file_input: Some(takes),
        video_input: Some(takes),
        ..CapabilityOverrides::default()
    }
}

fn item(json: Value) -> Item {
    serde_json::from_value(json).unwrap()
}

/// The body of a request with these items, or the reason why there is none.
async fn sent(
    protocol: Protocol,
    capabilities: CapabilityOverrides,
    items: Vec<Item>,
) -> Result<Value, String> {
    let server = ScriptedServer::start([say("ok")]).await.unwrap();
    let model = adapter(protocol, &server, capabilities);
    let request = ModelRequest {
        conversation: items.into(),
        ..ModelRequest::default()
    };
    let result = answer_of(&*model, request).await;
    match result {
        Ok(_) => Ok(server.received()[0].body.clone()),
        Err(error) => {
            assert!(server.received().is_empty(), "{error}");
            assert_eq!(error.kind, ModelErrorKind::InvalidRequest, "{error}");
            assert_eq!(error.code.as_deref(), Some("unsupported_content"));
            Err(error.message)
        }
    }
}

const IMAGE: &str = "data:image/png;base64,AAAA";

/// Each part, and what becomes of it in Chat, Responses, Messages and Ollama; none where it is
/// refused. For Ollama it is the list of images.
fn matrix() -> Vec<(Value, [Option<Value>; 4])> {
    let image = json!({"type": "input_image", "image_url": IMAGE, "detail": "low"});
    let linked =
        json!({"type": "input_image", "image_url": "https://h.example/i.png", "detail": "auto"});
    let pdf = json!({"type": "input_file", "filename": "a.pdf",
        "file_data": "data:application/pdf;base64,JVBERi0="});
    let text = json!({"type": "input_file", "filename": "a.txt",
        "file_data": "data:text/plain;base64,aGk="});
    let zip = json!({"type": "input_file", "filename": "a.zip",
        "file_data": "data:application/zip;base64,AAAA"});
    let remote = json!({"type": "input_file", "file_url": "https://h.example/a.pdf"});
    let stored = json!({"type": "input_file", "file_id": "file_1"});
    let video = json!({"type": "input_video", "video_url": "https://h.example/v.mp4"});
    let file = |part: &Value| {
        json!({"type": "file", "file": {
        "file_data": part["file_data"], "filename": part["filename"]}})
    };
    let document =
        |source: Value, title: &str| json!({"type": "document", "source": source, "title": title});
    vec![
        (
            image.clone(),
            [
                Some(json!({"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}})),
                Some(image),
                Some(json!({"type": "image", "source": {"type": "base64",
                    "media_type": "image/png", "data": "AAAA"}})),
                Some(json!(["AAAA"])),
            ],
        ),
        (
            linked.clone(),
            [
                Some(json!({"type": "image_url",
                    "image_url": {"url": "https://h.example/i.png", "detail": "auto"}})),
                Some(linked),
                Some(json!({"type": "image",
                    "source": {"type": "url", "url": "https://h.example/i.png"}})),
                None,
            ],
        ),
        (
            pdf.clone(),
            [
                Some(file(&pdf)),
                Some(pdf),
                Some(document(
                    json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}),
                    "a.pdf",
                )),
                None,
            ],
        ),
        (
            text.clone(),
            [
                Some(file(&text)),
                Some(text),
                Some(document(
                    json!({"type": "text", "media_type": "text/plain", "data": "hi"}),
                    "a.txt",
                )),
                None,
            ],
        ),
        (zip.clone(), [Some(file(&zip)), Some(zip), None, None]),
        (
            remote.clone(),
            [
                None,
                Some(remote),
                Some(json!({"type": "document",
                    "source": {"type": "url", "url": "https://h.example/a.pdf"}})),
                None,
            ],
        ),
        (
            stored.clone(),
            [
                Some(json!({"type": "file", "file": {"file_id": "file_1"}})),
                Some(stored),
                None,
                None,
            ],
        ),
        (
            video.clone(),
            [
                Some(json!({"type": "video_url", "video_url": {"url": "https://h.example/v.mp4"}})),
                Some(video),
                None,
                None,
            ],
        ),
    ]
}

const PROTOCOLS: [Protocol; 4] = [
    Protocol::ChatCompletions,
    Protocol::Responses,
    Protocol::Messages,
    Protocol::Ollama,
];

fn message(part: &Value) -> Item {
    item(json!({"role": "user", "content": [{"type": "input_text", "text": "Look:"}, part]}))
}

#[tokio::test]
async fn every_part_of_a_message_arrives_or_is_refused_by_name() {
    for (part, expected) in matrix() {
        for (protocol, expected) in PROTOCOLS.into_iter().zip(expected) {
            let result = sent(protocol, all_inputs(true), vec![message(&part)]).await;
            let found = result.clone().map(|body| match protocol {
                Protocol::Responses => body["input"][0]["content"][1].clone(),
                Protocol::Ollama => body["messages"][0]["images"].clone(),
                _ => body["messages"][0]["content"][1].clone(),
            });
            if let Some(expected) = expected {
                assert_eq!(found.as_ref(), Ok(&expected), "{protocol:?} {part}");
                continue;
            }
            let kind = part["type"].as_str().unwrap();
            let words = format!("`content[1]`, an `{kind}`, cannot be sent: ");
            let error = result.unwrap_err();
            assert!(error.starts_with(&words), "{protocol:?}: {error}");
        }
    }
}

#[tokio::test]
async fn what_is_refused_is_known_before_anything_is_sent() {
    for (part, expected) in matrix() {
        for (protocol, expected) in PROTOCOLS.into_iter().zip(expected) {
            let server = ScriptedServer::start([]).await.unwrap();
            let output = item(json!({"type": "function_call_output", "call_id": "c",
                "output": [part]}));
            let model = adapter(protocol, &server, all_inputs(true));
            for (item, place) in [(message(&part), "content[1]"), (output, "output[0]")] {
                let unsupported = model.unsupported(&item);
                let found = unsupported.map(|it| (it.place, it.kind));
                let kind = part["type"].as_str().unwrap();
                let wanted = expected
                    .is_none()
                    .then(|| (place.to_owned(), kind.to_owned()));
                assert_eq!(found, wanted, "{protocol:?} {part}");
            }
            let model = adapter(protocol, &server, all_inputs(false));
            assert!(model.unsupported(&message(&part)).is_some(), "{protocol:?}");
            let words = item(json!({"role": "user",
                "content": [{"type": "input_text", "text": "hi", "odd": true}]}));
            assert_eq!(model.unsupported(&words), None);
        }
    }
}

#[tokio::test]
async fn a_model_that_takes_none_of_them_is_never_sent_one() {
    for protocol in PROTOCOLS {
        for (part, _) in matrix() {
            let error = sent(protocol, all_inputs(false), vec![message(&part)]).await;
            let kind = part["type"].as_str().unwrap().replace("input_", "");
            assert!(error.unwrap_err().contains(&format!("{kind}_input")));
        }
    }
}

#[tokio::test]
async fn every_part_of_an_output_arrives_or_is_named_in_brackets() {
    for (part, expected) in matrix() {
        for (protocol, expected) in PROTOCOLS.into_iter().zip(expected) {
            let items = vec![
                Item::user("go"),
                Item::function_call("c", "draw", "{}"),
                item(
                    json!({"type": "function_call_output", "call_id": "c", "output": [
                    {"type": "input_text", "text": "Here:"}, part]}),
                ),
            ];
            let body = sent(protocol, all_inputs(true), items).await.unwrap();
            let Some(expected) = expected else {
                let text = body.to_string();
                let is_named = text.contains("[unsupported content: ") || text.contains("[image]");
                assert!(is_named, "{protocol:?} {part}: {text}");
                continue;
            };
            let found = match protocol {
                // A tool message holds only text: the rest follows.
                Protocol::ChatCompletions => &body["messages"][3]["content"][1],
                Protocol::Responses => &body["input"][2]["output"][1],
                Protocol::Messages => &body["messages"][2]["content"][0]["content"][1],
                Protocol::Ollama => &body["messages"][2]["images"],
            };
            assert_eq!(found, &expected, "{protocol:?} {part}");
            if protocol == Protocol::ChatCompletions {
                let text = body["messages"][2]["content"].as_str().unwrap();
                assert!(text.starts_with("Here:\n\n["), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn text_in_an_odd_part_is_still_text() {
    let odd =
        item(json!({"role": "user", "content": [{"type": "input_text", "text": "hi", "odd": 1}]}));
    for protocol in PROTOCOLS {
        let body = sent(protocol, all_inputs(false), vec![odd.clone()]).await;
        let body = body.unwrap().to_string();
        assert!(body.contains("\"hi\""), "{protocol:?}: {body}");
        assert!(!body.contains("unsupported"), "{protocol:?}: {body}");
    }
}
