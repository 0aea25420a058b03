//! Spans, as a real collector would get them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use haft_engine::{Backoff, LoopOptions};
use haft_models::ScriptedModel;
use haft_models::testing::{Fault, ScriptedCall, calls, fail, say};
use haft_server::OtlpOptions;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Told;
use prost::Message as _;
use serde_json::{Value, json};

use super::Log;
use crate::support::{Setup, function};
use crate::tools::echo;

/// A collector on loopback.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Received>>>,
    headers: Arc<Mutex<Vec<HeaderMap>>>,
    /// What it answers, one after the other; then all is well.
    refusals: Arc<Mutex<Vec<StatusCode>>>,
}

#[derive(Debug, Clone)]
struct Received {
    name: String,
    kind: i32,
    trace: Vec<u8>,
    id: Vec<u8>,
    parent: Vec<u8>,
    start: u64,
    end: u64,
    is_error: bool,
    attributes: BTreeMap<String, Value>,
    resource: BTreeMap<String, Value>,
}

impl Collector {
    async fn start(&self) -> String {
        async fn take(
            State(collector): State<Collector>,
            headers: HeaderMap,
            body: Bytes,
        ) -> StatusCode {
            collector.headers.lock().unwrap().push(headers);
            if let Some(status) = collector.refusals.lock().unwrap().pop() {
                return status;
            }
            collector.read(&body);
            StatusCode::OK
        }
        let router = axum::Router::new()
            .route("/v1/traces", post(take))
            .with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        format!("http://{address}")
    }

    fn read(&self, body: &[u8]) {
        let request = ExportTraceServiceRequest::decode(body).unwrap();
        let mut spans = self.spans.lock().unwrap();
        for resource in request.resource_spans {
            let of_resource = attributes(resource.resource.unwrap().attributes);
            for span in resource.scope_spans.into_iter().flat_map(|it| it.spans) {
                spans.push(Received {
                    name: span.name,
                    kind: span.kind,
                    trace: span.trace_id,
                    id: span.span_id,
                    parent: span.parent_span_id,
                    start: span.start_time_unix_nano,
                    end: span.end_time_unix_nano,
                    is_error: span.status.is_some_and(|status| status.code == 2),
                    attributes: attributes(span.attributes),
                    resource: of_resource.clone(),
                });
            }
        }
    }

    /// Waits for so many spans; in the order of their beginning.
    async fn spans(&self, count: usize) -> Vec<Received> {
        for _ in 0..400 {
            let mut spans = self.spans.lock().unwrap().clone();
            if spans.len() >= count {
                assert_eq!(spans.len(), count, "{spans:#?}");
                spans.sort_by_key(|span| span.start);
                return spans;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{:#?}", self.spans.lock().unwrap());
    }
}

fn attributes(
    pairs: Vec<opentelemetry_proto::tonic::common::v1::KeyValue>,
) -> BTreeMap<String, Value> {
    fn value(told: Option<Told>) -> Value {
        match told.unwrap() {
            Told::StringValue(text) => text.into(),
            Told::IntValue(number) => number.into(),
            Told::DoubleValue(number) => number.into(),
            Told::ArrayValue(list) => {
                let values = list.values.into_iter();
                values.map(|it| value(it.value)).collect()
            }
            other => panic!("{other:?}"),
        }
    }
    let pairs = pairs.into_iter();
    pairs
        .map(|pair| (pair.key, value(pair.value.unwrap().value)))
        .collect()
}

impl Received {
    #[track_caller]
    fn is(&self, name: &str, value: impl Into<Value>) {
        assert_eq!(self.attributes.get(name), Some(&value.into()), "{self:#?}");
    }
}

fn setup(model: ScriptedModel, url: &str, change: impl FnOnce(&mut OtlpOptions)) -> Setup {
    let mut otlp = OtlpOptions::new(url).unwrap();
    change(&mut otlp);
    Setup::of(model).options(|options| options.watch.otlp = Some(otlp))
}

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[tokio::test]
async fn a_run_is_told_by_the_names_of_the_conventions() {
    let collector = Collector::default();
    let url = collector.start().await;
    let (tool, _) = echo("echo");
    let model = ScriptedModel::new(vec![
        fail(503),
        calls([
            ScriptedCall::new("echo", json!({"text": "hunter2"})),
            ScriptedCall::new("echo", json!({"text": "hunter2", "fail": true})),
        ])
        .usage(10, 20),
        say("hunter2").usage(30, 4),
    ]);
    let mut server = setup(model, &url, |_| {}).tools([tool]);
    server.options.loop_options = LoopOptions {
        retry: Backoff {
            base: Duration::from_millis(1),
            cap: Duration::from_millis(2),
            ..Backoff::default()
        },
        ..LoopOptions::default()
    };
    let server = server.serve().await;
    let conversation = server.post("/conversations", json!({})).await.ok();
    let body = json!({
        "input": "hunter2", "instructions": "hunter2", "conversation": conversation["id"],
        "tools": [{"type": "haft:echo"}],
    });
    let request = server.posting("/responses", &body);
    let request = request
        .header("traceparent", PARENT)
        .header("x-request-id", "mine");
    let response = server.send(request).await.ok();

    let spans = collector.spans(8).await;
    let by_name =
        |name: &str| -> Vec<&Received> { spans.iter().filter(|span| span.name == name).collect() };
    let request = by_name("POST /v1/responses")[0];
    assert_eq!(request.kind, 2, "a server");
    assert_eq!(request.trace[..2], [0x0a, 0xf7], "the client's trace");
    assert_eq!(request.parent[..2], [0xb7, 0xad]);
    request.is("http.request.method", "POST");
    request.is("http.route", "/v1/responses");
    request.is("http.response.status_code", 200);
    request.is("haft.request.id", "mine");
    request.is("haft.tenant", "default");
    request.is("client.address", "127.0.0.1");
    assert_eq!(request.resource["service.name"], "haft");
    assert_eq!(
        request.resource["service.version"],
        env!("CARGO_PKG_VERSION")
    );

    let run = by_name("invoke_agent")[0];
    assert_eq!((run.kind, &run.parent), (1, &request.id));
    run.is("gen_ai.operation.name", "invoke_agent");
    run.is("gen_ai.provider.name", "scripted");
    run.is("gen_ai.request.model", "scripted");
    run.is("gen_ai.response.id", response["id"].clone());
    run.is("gen_ai.conversation.id", conversation["id"].clone());
    run.is("gen_ai.usage.input_tokens", 40);
    run.is("gen_ai.usage.output_tokens", 24);
    run.is("gen_ai.response.finish_reasons", json!(["stop"]));
    run.is("haft.outcome", "completed");
    run.is("haft.model", "default");
    assert!(!run.is_error);

    check_children(run, &spans);
    for span in &spans {
        assert!(span.end >= span.start);
        let attributes = format!("{:?}", span.attributes);
        assert!(
            !attributes.contains("hunter2"),
            "content is not sent: {span:#?}"
        );
    }
    let of_conversation = by_name("POST /v1/conversations")[0];
    assert_ne!(
        of_conversation.trace, request.trace,
        "nobody gave it a trace"
    );
    assert!(of_conversation.parent.is_empty());
}

/// The requests to the model and the calls of the run above.
fn check_children(run: &Received, spans: &[Received]) {
    let by_name =
        |name: &str| -> Vec<&Received> { spans.iter().filter(|span| span.name == name).collect() };
    let chats = by_name("chat scripted");
    assert_eq!(chats.len(), 3);
    for chat in &chats {
        assert_eq!((chat.kind, &chat.parent), (3, &run.id));
        chat.is("gen_ai.operation.name", "chat");
        chat.is("gen_ai.request.model", "scripted");
        assert!(chat.start >= run.start && chat.end <= run.end, "{chat:#?}");
    }
    assert!(chats[0].is_error);
    chats[0].is("error.type", "server_error");
    assert!(
        !chats[0]
            .attributes
            .contains_key("gen_ai.usage.input_tokens")
    );
    chats[1].is("gen_ai.response.finish_reasons", json!(["tool_calls"]));
    chats[1].is("gen_ai.usage.input_tokens", 10);
    chats[1].is("gen_ai.response.model", "scripted");
    chats[2].is("gen_ai.usage.output_tokens", 4);
    assert!(chats[2].attributes["gen_ai.response.time_to_first_chunk"].is_f64());

    let tools = by_name("execute_tool echo");
    assert_eq!(tools.len(), 2);
    for tool in &tools {
        assert_eq!((tool.kind, &tool.parent), (1, &run.id));
        tool.is("gen_ai.operation.name", "execute_tool");
        tool.is("gen_ai.tool.name", "echo");
        tool.is("haft.tool.kind", "haft:echo");
        assert!(tool.attributes["gen_ai.tool.call.id"].is_string());
    }
    let failed: Vec<_> = tools.iter().filter(|tool| tool.is_error).collect();
    assert_eq!(failed.len(), 1);
    failed[0].is("error.type", "failed");
}

#[tokio::test]
async fn content_goes_along_only_where_it_is_wanted_and_stored() {
    let collector = Collector::default();
    let url = collector.start().await;
    let (tool, _) = echo("echo");
    let step = || calls([ScriptedCall::new("echo", json!({"text": "deep"}))]);
    let model = ScriptedModel::new(vec![step(), say("well"), step(), say("well")]);
    let server = setup(model, &url, |otlp| otlp.captures_content = true);
    let server = server.tools([tool]).serve().await;
    let body = |store: bool| {
        json!({
            "input": "how", "instructions": "be kind", "store": store,
            "tools": [{"type": "haft:echo"}],
        })
    };
    server.create(body(true)).await;
    let spans = collector.spans(5).await;
    let of = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let json_of = |span: &Received, name: &str| -> Value {
        serde_json::from_str(span.attributes[name].as_str().unwrap()).unwrap()
    };
    let run = of("invoke_agent");
    let said = json_of(run, "gen_ai.input.messages");
    let part = json!({"type": "text", "content": "how"});
    assert_eq!(said, json!([{"role": "user", "parts": [part]}]));
    let told = json_of(run, "gen_ai.system_instructions");
    assert_eq!(told, json!([{"type": "text", "content": "be kind"}]));
    let answer = json_of(run, "gen_ai.output.messages");
    assert_eq!(answer[0]["parts"][0]["content"], "well");
    assert_eq!(answer[0]["finish_reason"], "stop");
    let first = json_of(of("chat scripted"), "gen_ai.output.messages");
    let call = &first[0]["parts"][0];
    assert_eq!(
        (&call["type"], &call["name"]),
        (&json!("tool_call"), &json!("echo"))
    );
    assert_eq!(call["arguments"], json!({"text": "deep"}));
    let tool = of("execute_tool echo");
    assert_eq!(
        json_of(tool, "gen_ai.tool.call.arguments"),
        json!({"text": "deep"})
    );
    tool.is("gen_ai.tool.call.result", "echo: deep");

    collector.spans.lock().unwrap().clear();
    server.create(body(false)).await;
    for span in collector.spans(5).await {
        let attributes = format!("{:?}", span.attributes);
        for word in ["deep", "how", "be kind", "well"] {
            assert!(!attributes.contains(word), "{span:#?}");
        }
    }
}

#[tokio::test]
async fn who_begins_a_trace_decides_whether_it_is_recorded() {
    let collector = Collector::default();
    let url = collector.start().await;
    let model = ScriptedModel::new(vec![say("hi").forever()]);
    let server = setup(model, &url, |otlp| otlp.sample_ratio = 0.0)
        .serve()
        .await;
    let body = json!({"input": "hi"});
    server.create(body.clone()).await;
    let unsampled = PARENT.replace("-01", "-00");
    let request = server
        .posting("/responses", &body)
        .header("traceparent", unsampled);
    server.send(request).await.ok();
    let request = server
        .posting("/responses", &body)
        .header("traceparent", PARENT);
    server.send(request).await.ok();
    let spans = collector.spans(3).await;
    assert!(spans.iter().all(|span| span.trace[0] == 0x0a));
}

#[tokio::test]
async fn calls_of_the_client_have_no_span_and_failures_have_their_kind() {
    let collector = Collector::default();
    let url = collector.start().await;
    let model = ScriptedModel::new(vec![
        calls([ScriptedCall::new("mine", json!({"text": "x"}))]),
        say("half").fault(Fault::error_event(4, "hunter2")),
    ]);
    let server = setup(model, &url, |_| {}).serve().await;
    server
        .create(json!({"input": "hi", "tools": [function("mine")]}))
        .await;
    let spans = collector.spans(3).await;
    assert!(
        spans
            .iter()
            .all(|span| !span.name.starts_with("execute_tool"))
    );
    collector.spans.lock().unwrap().clear();
    server.stream(json!({"input": "hi"})).await;
    let spans = collector.spans(3).await;
    let run = spans
        .iter()
        .find(|span| span.name == "invoke_agent")
        .unwrap();
    assert!(run.is_error);
    run.is("error.type", "model_error");
    run.is("haft.outcome", "failed");
    assert!(!format!("{spans:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_websocket_has_one_span_per_message_below_its_own() {
    use futures_util::{SinkExt as _, StreamExt as _};
    use tokio_tungstenite::tungstenite::Message;
    let collector = Collector::default();
    let url = collector.start().await;
    let model = ScriptedModel::new(vec![say("hi").forever()]);
    let server = setup(model, &url, |_| {}).serve().await;
    let address = server.base.replace("http://", "ws://") + "/responses";
    let (mut socket, _) = tokio_tungstenite::connect_async(address).await.unwrap();
    for _ in 0..2 {
        let body = json!({"type": "response.create", "input": "hi"});
        socket.send(Message::text(body.to_string())).await.unwrap();
        while let Some(Ok(message)) = socket.next().await {
            if message
                .to_text()
                .is_ok_and(|text| text.contains("response.completed"))
            {
                break;
            }
        }
    }
    let spans = collector.spans(7).await;
    let opening = spans
        .iter()
        .find(|span| span.name == "GET /v1/responses")
        .unwrap();
    let messages = spans.iter().filter(|span| span.name == "WS /v1/responses");
    let messages: Vec<_> = messages.collect();
    assert_eq!(messages.len(), 2);
    for message in messages {
        assert_eq!(message.parent, opening.id);
        let below = spans.iter().filter(|span| span.parent == message.id);
        assert_eq!(below.count(), 1);
    }
}

#[tokio::test]
async fn a_collector_that_fails_is_asked_again_and_gets_its_headers() {
    let collector = Collector::default();
    *collector.refusals.lock().unwrap() = vec![StatusCode::SERVICE_UNAVAILABLE];
    let url = collector.start().await;
    let model = ScriptedModel::new(vec![say("hi").forever()]);
    let mut otlp = OtlpOptions::new(&format!("{url}/v1/traces")).unwrap();
    otlp = otlp.header("x-key", "hunter2".into()).unwrap();
    otlp.service_name = "my haft".into();
    assert!(!format!("{otlp:?}").contains("hunter2"));
    let setup = Setup::of(model).options(|options| options.watch.otlp = Some(otlp));
    let server = setup.serve().await;
    server.create(json!({"input": "hi"})).await;
    let spans = collector.spans(3).await;
    assert_eq!(spans[0].resource["service.name"], "my haft");
    let headers = collector.headers.lock().unwrap().clone();
    assert_eq!(headers.len(), 2);
    for headers in headers {
        assert_eq!(headers["content-type"], "application/x-protobuf");
        assert_eq!(headers["x-key"], "hunter2");
    }
    let sample = r#"haft_spans_total{outcome="exported"}"#;
    server.until(sample, 3.0).await;
}

#[tokio::test]
async fn the_last_spans_leave_when_the_server_stops() {
    let collector = Collector::default();
    let url = collector.start().await;
    let model = ScriptedModel::new(vec![say("hi")]);
    let server = setup(model, &url, |_| {}).serve().await;
    server.create(json!({"input": "hi"})).await;
    server.stop().await;
    assert_eq!(collector.spans.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_collector_that_is_not_there_costs_nothing_but_a_warning() {
    let log = Log::of("warn");
    // Nobody listens there: the port was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", port.local_addr().unwrap());
    drop(port);
    let model = ScriptedModel::new(vec![say("hi").forever()]);
    let server = setup(model, &url, |_| {}).serve().await;
    for _ in 0..20 {
        server.create(json!({"input": "hi"})).await;
    }
    let started = std::time::Instant::now();
    server.stop().await;
    assert!(started.elapsed() < Duration::from_secs(8));
    let text = log.text();
    let complaints = text
        .lines()
        .filter(|line| line.contains("cannot be exported"));
    assert_eq!(complaints.count(), 1, "{text}");
}

/// Calls the tool `echo` at `/mcp` without a session.
async fn call_gateway(server: &crate::support::Served, trace: Option<&str>) {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    });
    if let Some(trace) = trace {
        meta["traceparent"] = trace.into();
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "hunter2"}, "_meta": meta}});
    let url = server.base.replace("/v1", "/mcp");
    let request = crate::support::client()
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "echo")
        .json(&body);
    let answer = request.send().await.unwrap().text().await.unwrap();
    assert!(answer.contains("echo: hunter2"), "{answer}");
}

#[tokio::test]
async fn a_gateway_call_has_a_span_below_its_request_or_below_the_one_its_client_names() {
    let collector = Collector::default();
    let url = collector.start().await;
    let (tool, _) = echo("echo");
    let mut setup = setup(ScriptedModel::new(vec![]), &url, |_| {}).tools([tool]);
    setup.gateway = Some(haft_server::GatewayOptions::default());
    let server = setup.serve().await;
    call_gateway(&server, None).await;
    let spans = collector.spans(2).await;
    let of = |spans: &[Received], name: &str| {
        let span = spans.iter().find(|span| span.name == name);
        span.unwrap_or_else(|| panic!("{name}: {spans:#?}")).clone()
    };
    let (request, call) = (of(&spans, "POST /mcp"), of(&spans, "execute_tool echo"));
    assert_eq!((&call.trace, &call.parent), (&request.trace, &request.id));
    assert_eq!(call.attributes["mcp.method.name"], "tools/call");
    assert_eq!(call.attributes["haft.mcp.endpoint"], "/mcp");
    assert_eq!(call.attributes["haft.outcome"], "succeeded");
    assert!(!format!("{spans:?}").contains("hunter2"));

    collector.spans.lock().unwrap().clear();
    call_gateway(&server, Some(PARENT)).await;
    let call = of(&collector.spans(2).await, "execute_tool echo");
    assert_eq!((call.trace[0], call.parent[7]), (0x0a, 0x31));
}
