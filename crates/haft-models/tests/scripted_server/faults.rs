//! Every fault, on every protocol, as a client sees it.

use std::time::Duration;

use haft_models::testing::{Fault, Pieces, Protocol, ScriptedServer, Step, call, fault, say};
use serde_json::json;
use tokio::time::timeout;

use super::{chunks_of, json_of, post, request, stream, with_stream};

fn step() -> Step {
    say("hello world").pieces(Pieces::Each(6))
}

async fn server(steps: impl IntoIterator<Item = Step>) -> ScriptedServer {
    let steps: Vec<_> = steps.into_iter().collect();
    ScriptedServer::start(steps).await.unwrap()
}

#[tokio::test]
async fn a_closed_connection_gives_no_answer() {
    for protocol in Protocol::ALL {
        let server = server([fault(Fault::Closed), step()]).await;
        let body = request(protocol, "hi");
        assert!(post(&server, protocol, &body).await.is_err());
        assert_eq!(post(&server, protocol, &body).await.unwrap().status(), 200);
        server.assert_finished();
    }
}

#[tokio::test]
async fn a_page_of_html_comes_as_proxies_send_it() {
    for protocol in Protocol::ALL {
        let server = server([fault(Fault::Html(502))]).await;
        let body = request(protocol, "hi");
        let response = post(&server, protocol, &body).await.unwrap();
        assert_eq!(response.status(), 502);
        assert_eq!(
            response.headers()["content-type"],
            "text/html; charset=utf-8"
        );
        assert!(
            response
                .text()
                .await
                .unwrap()
                .starts_with("<!DOCTYPE html>")
        );
    }
}

#[tokio::test]
async fn a_cut_stream_breaks_after_its_events_or_bytes() {
    for protocol in Protocol::ALL {
        let server = server([
            step(),
            step().fault(Fault::CutAfterEvents(2)),
            step().fault(Fault::CutAfterBytes(50)),
            step().fault(Fault::CutAfterBytes(usize::MAX)),
            step().fault(Fault::CutAfterEvents(0)),
        ])
        .await;
        let separator = if protocol == Protocol::Ollama {
            "\n"
        } else {
            "\n\n"
        };
        let (whole, is_broken) = stream(&server, protocol).await;
        assert!(!is_broken);
        let (cut, is_broken) = stream(&server, protocol).await;
        assert!(is_broken);
        assert_eq!(cut.matches(separator).count(), 2, "{protocol:?}: {cut}");
        let (cut, is_broken) = stream(&server, protocol).await;
        assert_eq!((cut.len(), is_broken), (50, true), "{protocol:?}");
        let (cut, is_broken) = stream(&server, protocol).await;
        assert_eq!((cut.len(), is_broken), (whole.len(), true), "{protocol:?}");
        let (cut, is_broken) = stream(&server, protocol).await;
        assert_eq!((cut.len(), is_broken), (0, true), "{protocol:?}");
        server.assert_finished();
    }
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_can_be_cut_too() {
    for protocol in Protocol::ALL {
        let server = server([
            step().fault(Fault::CutAfterBytes(20)),
            step().fault(Fault::EndAfterEvents(0)),
        ])
        .await;
        let body = with_stream(request(protocol, "hi"), false);
        let (chunks, is_broken) = chunks_of(post(&server, protocol, &body).await.unwrap()).await;
        assert_eq!(
            (chunks.concat().len(), is_broken),
            (20, true),
            "{protocol:?}"
        );
        let (chunks, is_broken) = chunks_of(post(&server, protocol, &body).await.unwrap()).await;
        assert_eq!(
            (chunks.concat().len(), is_broken),
            (0, false),
            "{protocol:?}"
        );
    }
}

#[tokio::test]
async fn an_early_end_looks_whole() {
    for protocol in Protocol::ALL {
        let server = server([step().fault(Fault::EndAfterEvents(2))]).await;
        let (text, is_broken) = stream(&server, protocol).await;
        assert!(!is_broken);
        let separator = if protocol == Protocol::Ollama {
            "\n"
        } else {
            "\n\n"
        };
        assert_eq!(text.matches(separator).count(), 2, "{protocol:?}");
        for end in ["[DONE]", "message_stop", "\"done\":true"] {
            assert!(!text.contains(end), "{protocol:?}: {text}");
        }
    }
}

#[tokio::test]
async fn a_server_that_hangs_sends_what_it_has_and_no_more() {
    for protocol in Protocol::ALL {
        let server = server([
            fault(Fault::Hang),
            step().fault(Fault::HangAfterEvents(1)),
            step(),
        ])
        .await;
        let body = with_stream(request(protocol, "hi"), true);
        let mut asking = std::pin::pin!(post(&server, protocol, &body));
        while server.received().is_empty() {
            let turn = Duration::from_millis(5);
            assert!(timeout(turn, &mut asking).await.is_err());
        }
        let wait = Duration::from_millis(50);
        assert!(timeout(wait, asking).await.is_err());
        let mut response = post(&server, protocol, &body).await.unwrap();
        assert!(response.chunk().await.unwrap().is_some());
        assert!(timeout(wait, response.chunk()).await.is_err());
        drop(response);
        assert_eq!(post(&server, protocol, &body).await.unwrap().status(), 200);
        server.assert_finished();
    }
}

#[tokio::test]
async fn an_error_comes_inside_a_stream_in_the_protocols_form() {
    let error = || Fault::ErrorEvent {
        after_events: 2,
        code: Some("overloaded_error".into()),
        message: "too much".into(),
    };
    let ends = [
        "data: {\"error\":{\"message\":\"too much\",\"type\":\"server_error\",\"param\":null,\
         \"code\":\"overloaded_error\"}}\n\n",
        "event: error\ndata: {\"type\":\"error\",\"sequence_number\":2,\
         \"code\":\"overloaded_error\",\"message\":\"too much\",\"param\":null}\n\n",
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\
         \"message\":\"too much\"}}\n\n",
        "{\"error\":\"too much\"}\n",
    ];
    for (protocol, end) in Protocol::ALL.into_iter().zip(ends) {
        let server = server([step().fault(error()), step().fault(error())]).await;
        let (text, is_broken) = stream(&server, protocol).await;
        assert!(!is_broken);
        assert!(text.contains(end), "{protocol:?}: {text}");
        assert!(!text.starts_with(end));
        if protocol == Protocol::Responses {
            assert!(text.contains("event: response.failed\n"), "{text}");
        }
        let body = with_stream(request(protocol, "hi"), false);
        let response = post(&server, protocol, &body).await.unwrap();
        assert_eq!(response.status(), 500);
        assert!(json_of(response).await.to_string().contains("too much"));
    }
}

#[tokio::test]
async fn garbage_comes_between_events() {
    for protocol in Protocol::ALL {
        let own = Fault::Garbage {
            after_events: 1,
            text: Some("}{\n".into()),
        };
        let server = server([step().fault(Fault::garbage(1)), step().fault(own)]).await;
        let body = with_stream(request(protocol, "hi"), true);
        let (chunks, _) = chunks_of(post(&server, protocol, &body).await.unwrap()).await;
        assert!(std::str::from_utf8(&chunks[1]).is_err(), "{protocol:?}");
        assert!(chunks.len() > 2, "{protocol:?}");
        let (chunks, _) = chunks_of(post(&server, protocol, &body).await.unwrap()).await;
        assert_eq!(chunks[1], "}{\n", "{protocol:?}");
    }
}

#[tokio::test]
async fn the_last_word_of_a_whole_stream_can_be_missing() {
    for (protocol, word) in [
        (Protocol::ChatCompletions, "data: [DONE]"),
        (Protocol::Responses, "data: [DONE]"),
        (Protocol::Messages, "event: message_stop"),
    ] {
        let server = server([step(), step().fault(Fault::NoDone)]).await;
        let (text, _) = stream(&server, protocol).await;
        assert!(text.contains(word), "{protocol:?}");
        let (text, is_broken) = stream(&server, protocol).await;
        assert!(!text.contains(word) && !is_broken, "{protocol:?}");
        let finishes = [
            "\"finish_reason\":\"stop\"",
            "response.completed",
            "end_turn",
        ];
        assert!(
            finishes.iter().any(|end| text.contains(end)),
            "{protocol:?}: {text}"
        );
    }
}

#[tokio::test]
async fn calls_come_without_ids_or_with_the_same() {
    for (protocol, member) in [
        (Protocol::ChatCompletions, "\"id\":\"call_"),
        (Protocol::Responses, "\"call_id\":"),
        (Protocol::Messages, "\"id\":\"call_"),
    ] {
        for is_streamed in [true, false] {
            let two = || call("a", "{}").call("b", "{}");
            let server = server([
                two(),
                two().fault(Fault::MissingCallIds),
                two().fault(Fault::RepeatedCallIds),
            ])
            .await;
            let mut texts = Vec::new();
            for _ in 0..3 {
                let body = with_stream(request(protocol, "hi"), is_streamed);
                let response = post(&server, protocol, &body).await.unwrap();
                texts.push(response.text().await.unwrap());
            }
            assert!(
                texts[0].contains("call_1") && texts[0].contains("call_2"),
                "{protocol:?}"
            );
            assert!(!texts[1].contains(member), "{protocol:?}: {}", texts[1]);
            assert!(
                texts[2].contains("call_1") && !texts[2].contains("call_2"),
                "{protocol:?}"
            );
        }
    }
}

#[tokio::test]
async fn arguments_come_as_objects_where_text_is_due() {
    for is_streamed in [true, false] {
        for (protocol, words) in [
            (Protocol::ChatCompletions, r#""arguments":{"city":"Oslo"}"#),
            (Protocol::Responses, r#""arguments":{"city":"Oslo"}"#),
            (Protocol::Messages, r#""input":{"city":"Oslo"}"#),
        ] {
            let step = call("t", json!({"city": "Oslo"})).fault(Fault::ObjectArguments);
            let server = server([step]).await;
            let body = with_stream(request(protocol, "hi"), is_streamed);
            let text = post(&server, protocol, &body)
                .await
                .unwrap()
                .text()
                .await
                .unwrap();
            assert!(text.contains(words), "{protocol:?}: {text}");
            assert!(!text.contains("arguments.delta") && !text.contains("partial_json"));
        }
    }
}

#[tokio::test]
async fn a_server_that_was_stopped_refuses_connections() {
    let server = server([step()]).await;
    let url = format!("{}/v1/models", server.url());
    assert_eq!(
        super::client().get(&url).send().await.unwrap().status(),
        200
    );
    server.stop().await;
    assert!(
        super::client()
            .get(&url)
            .send()
            .await
            .unwrap_err()
            .is_connect()
    );
}

#[tokio::test]
async fn dropping_the_server_hangs_up_on_who_waits() {
    let server = server([step().fault(Fault::HangAfterEvents(1))]).await;
    let body = with_stream(request(Protocol::ChatCompletions, "hi"), true);
    let mut response = post(&server, Protocol::ChatCompletions, &body)
        .await
        .unwrap();
    response.chunk().await.unwrap();
    drop(server);
    let end = timeout(Duration::from_secs(10), response.chunk()).await;
    assert!(end.expect("the server still answers").is_err());
}
