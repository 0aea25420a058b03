//! The API over a WebSocket (`open-responses.md` §7).

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use haft_core::Item;
use haft_models::ScriptedModel;
use haft_models::testing::{Fault, Pieces, Step, call, say, think};
use haft_server::ApiKey;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::legal::assert_legal;
use crate::support::{Served, Setup, function, item_types, kinds, serve};
use crate::tools::{echo, endless, soon};

/// A client's end of a connection.
pub(crate) struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

pub(crate) async fn connect(served: &Served) -> Socket {
    connect_with(served, &[]).await.unwrap()
}

pub(crate) async fn connect_with(
    served: &Served,
    headers: &[(&str, &str)],
) -> Result<Socket, Error> {
    let address = served.base.replacen("http", "ws", 1);
    let mut request = format!("{address}/responses")
        .into_client_request()
        .unwrap();
    for (name, value) in headers {
        let name: tokio_tungstenite::tungstenite::http::HeaderName = name.parse().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let (socket, _) = connect_async(request).await?;
    Ok(Socket(socket))
}

impl Socket {
    pub(crate) async fn send(&mut self, message: &Value) {
        let text = Message::Text(message.to_string().into());
        self.0.send(text).await.unwrap();
    }

    pub(crate) async fn create(&mut self, mut body: Value) {
        body["type"] = "response.create".into();
        self.send(&body).await;
    }

    /// The next message; none when it is closed.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(10), self.0.next()).await;
            match next.expect("nothing comes") {
                Some(Ok(Message::Text(text))) => {
                    return Some(serde_json::from_str(&text).unwrap());
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(other)) => panic!("{other:?}"),
            }
        }
    }

    /// The messages of one turn: a legal stream, or one error.
    pub(crate) async fn turn(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let message = self.next().await.expect("the connection was closed");
            let kind = message["type"].as_str().unwrap().to_owned();
            messages.push(message);
            match kind.as_str() {
                "error" => {
                    assert_eq!(messages.len(), 1, "an error and a response: {messages:?}");
                    return messages;
                }
                "response.completed" | "response.incomplete" => {
                    assert_legal(&messages);
                    return messages;
                }
                "response.failed" => return messages,
                _ => {}
            }
        }
    }

    /// A turn that gives a response.
    pub(crate) async fn response(&mut self, body: Value) -> Value {
        self.create(body).await;
        let turn = self.turn().await;
        turn.last().unwrap()["response"].clone()
    }

    /// Sends a part of a text message that is not its last.
    pub(crate) async fn fragment(&mut self, text: &str, is_first: bool) {
        use tokio_tungstenite::tungstenite::protocol::frame::Frame;
        use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

        let kind = if is_first { Data::Text } else { Data::Continue };
        let frame = Frame::message(text.to_owned(), OpCode::Data(kind), false);
        self.0.send(Message::Frame(frame)).await.unwrap();
    }

    pub(crate) async fn ping(&mut self) {
        self.0.send(Message::Ping("x".into())).await.unwrap();
    }

    /// The code of the close frame that comes next.
    pub(crate) async fn close_code(&mut self) -> Option<u16> {
        match self.0.next().await {
            Some(Ok(Message::Close(Some(close)))) => Some(close.code.into()),
            _ => None,
        }
    }

    /// A turn that gives an error: status, code, param.
    pub(crate) async fn refused(&mut self) -> (u64, String, Option<String>) {
        let turn = self.turn().await;
        let message = &turn[0];
        assert_eq!(message["type"], "error", "{message}");
        let error = &message["error"];
        assert!(error["type"].is_string() && error["message"].is_string());
        (
            message["status"].as_u64().unwrap(),
            error["code"].as_str().unwrap().to_owned(),
            error["param"].as_str().map(str::to_owned),
        )
    }
}

fn said(model: &ScriptedModel, request: usize) -> Vec<String> {
    let request = model.received()[request].clone();
    request.conversation.items().map(Item::text).collect()
}

#[tokio::test]
async fn turns_are_the_same_events_as_streams() {
    let step = || think("hm").say("some words").pieces(Pieces::Each(4));
    let (served, _) = serve([step(), step()]).await;
    let streamed = served.stream(json!({"input": "go"})).await;
    let mut socket = connect(&served).await;
    socket.create(json!({"input": "go"})).await;
    let turn = socket.turn().await;
    assert_eq!(kinds(&turn), kinds(&streamed));
    let response = &turn.last().unwrap()["response"];
    assert_eq!(&served.stored(&response["id"]).await, response);
}

#[tokio::test]
async fn how_to_stream_is_ignored_and_the_background_refused() {
    let (served, model) = serve([say("one"), say("two")]).await;
    let mut socket = connect(&served).await;
    let body =
        json!({"input": "go", "stream": false, "stream_options": {"include_obfuscation": true}});
    assert_eq!(socket.response(body).await["status"], "completed");
    socket
        .create(json!({"input": "go", "background": true}))
        .await;
    let refused = (
        400,
        "unsupported_parameter".into(),
        Some("background".into()),
    );
    assert_eq!(socket.refused().await, refused);
    let body = json!({"input": "go", "background": false});
    assert_eq!(socket.response(body).await["status"], "completed");
    assert_eq!(model.received().len(), 2);
}

#[tokio::test]
async fn turns_wait_for_each_other_and_come_in_order() {
    let step = say("some words")
        .pieces(Pieces::Each(2))
        .delay_ms(5)
        .forever();
    let (served, _) = serve([step]).await;
    let mut socket = connect(&served).await;
    for at in 0..4 {
        socket
            .create(json!({"input": "go", "metadata": {"at": format!("{at}")}}))
            .await;
    }
    for at in 0..4 {
        let turn = socket.turn().await;
        let ids: std::collections::HashSet<_> = turn
            .iter()
            .filter_map(|event| event["response"]["id"].as_str())
            .collect();
        assert_eq!(ids.len(), 1);
        let last = turn.last().unwrap();
        assert_eq!(last["response"]["metadata"]["at"], format!("{at}"));
    }
}

#[tokio::test]
async fn sixteen_may_wait_and_more_are_told_to_come_back() {
    let first = say("x").fault(Fault::HangAfterEvents(3));
    let (served, _) = serve([first, say("y").forever()]).await;
    let mut socket = connect(&served).await;
    socket.create(json!({"input": "first"})).await;
    while socket.next().await.unwrap()["type"] != "response.output_text.delta" {}
    for _ in 0..17 {
        socket.create(json!({"input": "more"})).await;
    }
    let message = socket.next().await.unwrap();
    assert_eq!(message["status"], 429);
    assert_eq!(message["error"]["code"], "rate_limit_exceeded");
    assert_eq!(message["headers"]["Retry-After"], "1");
    let told = message["error"]["message"].as_str().unwrap();
    assert!(told.contains("try again in 1s"), "{told}");
}

#[tokio::test]
async fn only_as_much_waits_as_may_come_at_once() {
    let first = say("x").fault(Fault::HangAfterEvents(3));
    let model = ScriptedModel::new(vec![first, say("y").forever()]);
    let served = Setup::of(model)
        .options(|options| options.max_body_bytes = 10_000)
        .serve()
        .await;
    let mut socket = connect(&served).await;
    socket.create(json!({"input": "first"})).await;
    while socket.next().await.unwrap()["type"] != "response.output_text.delta" {}
    for _ in 0..3 {
        socket.create(json!({"input": "m".repeat(4_000)})).await;
    }
    let message = socket.next().await.unwrap();
    assert_eq!(message["error"]["code"], "rate_limit_exceeded", "{message}");
    let told = message["error"]["message"].as_str().unwrap();
    assert!(told.starts_with("2 responses"), "{told}");
}

#[tokio::test]
async fn what_is_not_understood_is_answered_and_the_connection_stays() {
    let (served, _) = serve([say("fine")]).await;
    let mut socket = connect(&served).await;
    socket.0.send(Message::Text("{".into())).await.unwrap();
    assert_eq!(socket.refused().await, (400, "invalid_json".into(), None));
    for (message, code, param) in [
        (json!([]), "invalid_type", None),
        (json!({}), "missing_required_parameter", Some("type")),
        (
            json!({"type": "response.dance"}),
            "invalid_value",
            Some("type"),
        ),
        (
            json!({"type": "response.create"}),
            "missing_required_parameter",
            Some("input"),
        ),
        (
            json!({"type": "response.create", "input": "x", "model": "nobody"}),
            "model_not_found",
            Some("model"),
        ),
    ] {
        socket.send(&message).await;
        let (_, told, place) = socket.refused().await;
        assert_eq!(
            (told.as_str(), place.as_deref()),
            (code, param),
            "{message}"
        );
    }
    assert_eq!(
        socket.response(json!({"input": "go"})).await["status"],
        "completed"
    );
}

#[tokio::test]
async fn a_failure_before_the_response_is_an_envelope_and_later_a_failed_response() {
    for dialect in ["open-responses", "openai"] {
        let script = [
            Step::default().fault(Fault::status(429).with_header("retry-after", "3")),
            say("some words")
                .delay_ms(20)
                .fault(Fault::error_event(3, "it broke")),
            say("fine"),
        ];
        let (served, _) = serve(script).await;
        let mut socket = connect_with(&served, &[("haft-dialect", dialect)])
            .await
            .unwrap();
        socket.create(json!({"input": "go"})).await;
        let envelope = socket.turn().await.remove(0);
        assert_eq!(envelope["status"], 429);
        assert_eq!(envelope["headers"]["Retry-After"], "3");
        assert_eq!(envelope["error"]["code"], "rate_limit_exceeded");
        socket.create(json!({"input": "go"})).await;
        let turn = socket.turn().await;
        assert!(!kinds(&turn).contains(&"error"));
        assert_eq!(kinds(&turn).last(), Some(&"response.failed"));
        let numbers: Vec<_> = turn
            .iter()
            .map(|event| event["sequence_number"].as_u64())
            .collect();
        assert!(numbers.is_sorted());
        assert_eq!(
            socket.response(json!({"input": "go"})).await["status"],
            "completed"
        );
    }
}

#[tokio::test]
async fn what_is_not_stored_can_be_continued_on_its_connection_only() {
    let (served, model) = serve([say("one"), say("two"), say("three")]).await;
    let mut socket = connect(&served).await;
    let first = socket.response(json!({"input": "a", "store": false})).await;
    let second = socket
        .response(json!({"input": "b", "store": false, "previous_response_id": first["id"]}))
        .await;
    assert_eq!(said(&model, 1), ["a", "one", "b"]);
    let mut other = connect(&served).await;
    other
        .create(json!({"input": "c", "previous_response_id": second["id"]}))
        .await;
    assert_eq!(other.refused().await.1, "previous_response_not_found");
    // It holds the most recent response, no other.
    socket
        .create(json!({"input": "c", "previous_response_id": first["id"]}))
        .await;
    assert_eq!(socket.refused().await.1, "previous_response_not_found");
    let third = socket
        .response(json!({"input": "c", "store": false, "previous_response_id": second["id"]}))
        .await;
    assert_eq!(third["previous_response_id"], second["id"]);
    assert_eq!(said(&model, 2), ["a", "one", "b", "two", "c"]);
}

#[tokio::test]
async fn calls_of_a_chain_that_is_not_stored_are_answered() {
    let (tool, runs) = echo("echo");
    let model = ScriptedModel::new([
        call("echo", json!({"text": "a"}))
            .call("look", json!({"text": "b"}))
            .with_id("call_b"),
        say("done"),
    ]);
    let served = Setup::of(model.clone()).tools([tool]).serve().await;
    let mut socket = connect(&served).await;
    let tools = json!([function("look"), {"type": "haft:echo"}]);
    let first = socket
        .response(json!({"input": "go", "store": false, "tools": tools}))
        .await;
    assert_eq!(item_types(&first), ["haft:echo", "function_call"]);
    let output = json!([{"type": "function_call_output", "call_id": "call_b", "output": "seen"}]);
    let second = socket
        .response(json!({"input": output, "store": false, "tools": tools,
            "previous_response_id": first["id"]}))
        .await;
    assert_eq!(second["status"], "completed");
    let request = model.received()[1].clone();
    let kinds: Vec<_> = request.conversation.items().map(Item::kind).collect();
    let expected = [
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(runs.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn stored_responses_can_be_continued_on_every_connection() {
    let (served, model) = serve([say("one"), say("two"), say("three")]).await;
    let stored = served.create(json!({"input": "a"})).await;
    let mut socket = connect(&served).await;
    let next = json!({"input": "b", "previous_response_id": stored["id"]});
    let second = socket.response(next).await;
    assert_eq!(said(&model, 1), ["a", "one", "b"]);
    let next = json!({"input": "c", "previous_response_id": second["id"]});
    served.create(next).await;
    assert_eq!(said(&model, 2), ["a", "one", "b", "two", "c"]);
}

#[tokio::test]
async fn a_failed_continuation_forgets_what_it_went_on_from() {
    for is_late in [false, true] {
        let failing = if is_late {
            say("x y z")
                .delay_ms(20)
                .fault(Fault::error_event(3, "it broke"))
        } else {
            Step::default().fault(Fault::status(500))
        };
        let (served, _) = serve([say("one"), failing]).await;
        let mut socket = connect(&served).await;
        let first = socket.response(json!({"input": "a", "store": false})).await;
        let next = json!({"input": "b", "store": false, "previous_response_id": first["id"]});
        socket.create(next.clone()).await;
        socket.turn().await;
        socket.create(next).await;
        let refused = socket.refused().await;
        assert_eq!(
            (refused.0, refused.1.as_str()),
            (400, "previous_response_not_found")
        );
    }
}

#[tokio::test]
async fn a_continuation_that_is_refused_forgets_too_and_stored_ones_are_found_again() {
    let (served, _) = serve([say("one"), say("two"), say("three")]).await;
    let mut socket = connect(&served).await;
    for (store, code) in [(false, Some("previous_response_not_found")), (true, None)] {
        let first = socket.response(json!({"input": "a", "store": store})).await;
        let bad = json!({"input": "b", "temperature": 9, "previous_response_id": first["id"]});
        socket.create(bad).await;
        assert_eq!(socket.refused().await.1, "decimal_above_max_value");
        socket
            .create(json!({"input": "b", "previous_response_id": first["id"]}))
            .await;
        if let Some(code) = code {
            assert_eq!(socket.refused().await.1, code);
        } else {
            let turn = socket.turn().await;
            assert_eq!(turn.last().unwrap()["type"], "response.completed");
        }
    }
}

#[tokio::test]
async fn a_warm_up_asks_nobody_and_can_be_continued() {
    let (served, model) = serve([say("one")]).await;
    let mut socket = connect(&served).await;
    let body = json!({"generate": false, "store": false, "instructions": "be kind",
        "input": [{"role": "user", "content": "context"}], "tools": [function("look")]});
    socket.create(body).await;
    let turn = socket.turn().await;
    let expected = [
        "response.created",
        "response.in_progress",
        "response.completed",
    ];
    assert_eq!(kinds(&turn), expected);
    let warm = &turn[2]["response"];
    assert_eq!(warm["output"], json!([]));
    assert_eq!(warm["usage"]["total_tokens"], 0);
    assert_eq!(model.received().len(), 0);
    let next = json!({"input": "go", "store": false, "previous_response_id": warm["id"]});
    assert_eq!(socket.response(next).await["status"], "completed");
    assert_eq!(said(&model, 0), ["context", "go"]);
}

#[tokio::test]
async fn the_name_of_a_stream_is_on_all_of_its_events() {
    let (served, _) = serve([say("one"), say("two")]).await;
    let mut socket = connect(&served).await;
    socket
        .create(json!({"input": "go", "stream_id": "a \"b\""}))
        .await;
    for event in socket.turn().await {
        assert_eq!(event["stream_id"], "a \"b\"");
    }
    socket.create(json!({"input": "go"})).await;
    for event in socket.turn().await {
        assert!(event.get("stream_id").is_none());
    }
}

#[tokio::test]
async fn steering_is_answered_while_a_turn_goes_on() {
    let (served, _) = serve([say("x y").fault(Fault::HangAfterEvents(3))]).await;
    let mut socket = connect(&served).await;
    socket.create(json!({"input": "go"})).await;
    while socket.next().await.unwrap()["type"] != "response.output_text.delta" {}
    socket
        .send(&json!({"type": "response.steer", "stream_id": "s", "input": "left"}))
        .await;
    let answer = socket.next().await.unwrap();
    assert_eq!(answer["type"], "response.steer.failed");
    assert_eq!(answer["error"]["code"], "steering_not_supported");
    assert_eq!(answer["stream_id"], "s");
}

#[tokio::test]
async fn an_old_connection_is_closed_when_its_turn_has_ended() {
    let model = ScriptedModel::new([say("slow words").pieces(Pieces::Each(1)).delay_ms(30)]);
    let setup = Setup::of(model);
    let setup = setup.options(|options| options.websocket_age = Duration::from_millis(150));
    let served = setup.serve().await;
    let mut socket = connect(&served).await;
    let response = socket.response(json!({"input": "go"})).await;
    assert_eq!(response["status"], "completed");
    let refused = socket.refused().await;
    assert_eq!(
        (refused.0, refused.1.as_str()),
        (400, "websocket_connection_limit_reached")
    );
    assert_eq!(socket.next().await, None);
}

#[tokio::test]
async fn closing_stops_the_run_and_its_tools() {
    let (tool, seen) = endless(None);
    let model = ScriptedModel::new([call("endless", json!({}))]);
    let served = Setup::of(model).tools([tool]).serve().await;
    let mut socket = connect(&served).await;
    socket
        .create(json!({"input": "go", "tools": [{"type": "haft:endless"}]}))
        .await;
    let created = socket.next().await.unwrap();
    soon(&seen.started, Duration::from_secs(5)).await;
    drop(socket);
    soon(&seen.stopped, Duration::from_secs(1)).await;
    let id = created["response"]["id"].as_str().unwrap();
    let stored = loop {
        let answer = served.get(&format!("/responses/{id}")).await;
        if answer.status == 200 {
            break answer.body;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(stored["status"], "cancelled");
}

#[tokio::test]
async fn web_pages_may_connect_only_if_they_are_allowed() {
    let setup = Setup::of(ScriptedModel::new([say("hello").forever()]));
    let setup = setup.options(|options| {
        options.allowed_origins = vec!["https://console.example.org".into()];
    });
    let served = setup.serve().await;
    let status = async |headers: &[(&str, &str)]| match connect_with(&served, headers).await {
        Ok(_) => 101,
        Err(Error::Http(response)) => response.status().as_u16(),
        Err(error) => panic!("{error}"),
    };
    assert_eq!(status(&[]).await, 101);
    assert_eq!(
        status(&[("origin", "https://console.example.org")]).await,
        101
    );
    assert_eq!(status(&[("origin", "https://evil.example.org")]).await, 403);
    assert_eq!(status(&[("origin", "null")]).await, 403);
}

#[tokio::test]
async fn a_key_is_checked_before_the_upgrade() {
    let setup = Setup::of(ScriptedModel::new([say("hello").forever()]));
    let setup = setup.options(|options| options.api_key = Some(ApiKey::new("key")));
    let served = setup.serve().await;
    let Err(Error::Http(response)) = connect_with(&served, &[]).await else {
        panic!("it was let in");
    };
    assert_eq!(response.status(), 401);
    let header = [("authorization", "Bearer key")];
    let mut socket = connect_with(&served, &header).await.unwrap();
    assert_eq!(
        socket.response(json!({"input": "go"})).await["status"],
        "completed"
    );
}

#[tokio::test]
async fn pings_are_answered() {
    let (served, _) = serve([]).await;
    let mut socket = connect(&served).await;
    socket
        .0
        .send(Message::Ping("are you there".into()))
        .await
        .unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(5), socket.0.next()).await;
    let Ok(Some(Ok(Message::Pong(words)))) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(words, "are you there");
}

#[tokio::test]
async fn the_dialect_is_that_of_the_handshake() {
    let (served, _) = serve([think("hm").say("x").forever()]).await;
    let mut socket = connect(&served).await;
    socket.create(json!({"input": "go"})).await;
    let turn = socket.turn().await;
    assert!(kinds(&turn).contains(&"response.reasoning_text.delta"));
    let header = [("haft-dialect", "open-responses")];
    let mut socket = connect_with(&served, &header).await.unwrap();
    socket.create(json!({"input": "go"})).await;
    let turn = socket.turn().await;
    assert!(kinds(&turn).contains(&"response.reasoning.delta"));
}

#[tokio::test]
async fn message_that_cannot_be_read_is_answered_with_a_close_frame() {
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};

    let frame = |payload: &'static [u8], reserved: bool| {
        let mut frame = Frame::message(payload, OpCode::Data(Data::Text), true);
        frame.header_mut().rsv1 = reserved;
        Message::Frame(frame)
    };
    for (message, code) in [
        (frame(b"{}", true), CloseCode::Protocol),
        (frame(b"\xff\xfe", false), CloseCode::Invalid),
        (Message::text("x".repeat(2_000)), CloseCode::Size),
    ] {
        let setup = Setup::of(ScriptedModel::new([]));
        let setup = setup.options(|options| options.max_body_bytes = 1_000);
        let served = setup.serve().await;
        let mut socket = connect(&served).await;
        socket.0.send(message).await.unwrap();
        let next = tokio::time::timeout(Duration::from_secs(10), socket.0.next()).await;
        let Ok(Some(Ok(Message::Close(Some(close))))) = next else {
            panic!("{code}: {next:?}");
        };
        assert_eq!(close.code, code);
    }
}
