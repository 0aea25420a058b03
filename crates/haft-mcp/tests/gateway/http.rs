//! The front door for HTTP, on a real socket.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use haft_mcp::gateway::{Caller, Gateway, HttpOptions, ListedTool};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use rmcp::ClientServiceExt as _;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::client::{ERAS, Era, Heard, Person, call, text};
use crate::toolbox::{Toolbox, object, tool};

/// Serves; who calls is said by a header, as if somebody had checked it.
async fn serve(gateway: &Gateway<Toolbox>, options: HttpOptions) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router: Router = Router::new().route("/mcp", gateway.http(options));
    let router = router.layer(from_fn(async |mut request: Request, next: Next| {
        let caller = request.headers().get("x-caller");
        if let Some(caller) = caller.map(|it| it.to_str().unwrap().to_owned()) {
            request.extensions_mut().insert(Caller::new(caller));
        }
        next.run(request).await
    }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn client() -> Client {
    // The library asks for one even where there is nothing to encrypt. A second test finds it there.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().build().unwrap()
}

/// A POST as `caller`, with more headers.
async fn post(address: SocketAddr, caller: &str, more: &[(&str, &str)], body: &Value) -> Response {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("accept", "application/json, text/event-stream"),
        ("x-caller", caller),
    ]
    .iter()
    .chain(more)
    {
        let name: HeaderName = name.parse().unwrap();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
    }
    let request = client().post(format!("http://{address}/mcp"));
    request.headers(headers).json(body).send().await.unwrap()
}

fn initialize() -> Value {
    initialize_with("2025-11-25")
}

fn initialize_with(version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}
    }})
}

fn legacy(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 2, "method": method})
}

fn modern_call(name: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": name,
        "arguments": arguments,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}
        }
    }})
}

fn modern_headers(name: &str) -> [(&str, &str); 3] {
    [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", name),
    ]
}

async fn session(address: SocketAddr, caller: &str) -> String {
    let response = post(address, caller, &[], &initialize()).await;
    assert_eq!(response.status(), StatusCode::OK);
    let session = response.headers()["mcp-session-id"].to_str().unwrap();
    session.to_owned()
}

fn gateway(toolbox: &Toolbox) -> Gateway<Toolbox> {
    Gateway::builder(toolbox.clone()).build().unwrap()
}

#[tokio::test]
async fn clients_of_both_eras_list_call_and_are_asked_on_one_address() {
    let toolbox = Toolbox::of(&["echo", "who", "steps", "ask", "needs"]);
    let address = serve(&gateway(&toolbox), HttpOptions::default()).await;
    for era in ERAS {
        let (person, mut heard) = Person::helpful(era);
        let mut config =
            StreamableHttpClientTransportConfig::with_uri(format!("http://{address}/mcp"));
        let caller = HeaderValue::from_static("tenant");
        config
            .custom_headers
            .insert(HeaderName::from_static("x-caller"), caller);
        let transport = StreamableHttpClientTransport::with_client(client(), config);
        let client = person
            .serve_with_lifecycle(transport, era.lifecycle())
            .await
            .unwrap();
        assert_eq!(client.list_all_tools().await.unwrap().len(), 5);
        assert_eq!(text(&call(&client, "box__who", json!({})).await), "tenant");
        call(&client, "box__steps", json!({})).await;
        for at in [1.0, 2.0, 3.0] {
            assert_eq!(heard.recv().await, Some(Heard::Progress(at)), "{era:?}");
        }
        for tool in ["box__ask", "box__needs"] {
            let result = call(&client, tool, json!({})).await;
            assert_eq!(text(&result), "Hello, \"Ada\"!", "{era:?} {tool}");
        }
    }
}

#[tokio::test]
async fn a_foreign_host_or_origin_is_kept_out() {
    let toolbox = Toolbox::of(&["echo"]);
    let options = HttpOptions::default()
        .with_host("tools.example.com")
        .with_origin("https://app.example.com");
    let address = serve(&gateway(&toolbox), options).await;
    let own = format!("http://{address}");
    let cases = [
        ("origin", own.as_str(), StatusCode::OK),
        ("origin", "http://localhost:5173", StatusCode::OK),
        ("origin", "https://app.example.com", StatusCode::OK),
        (
            "origin",
            "https://app.example.com:8443",
            StatusCode::FORBIDDEN,
        ),
        ("origin", "http://app.example.com", StatusCode::FORBIDDEN),
        ("origin", "http://evil.example.com", StatusCode::FORBIDDEN),
        (
            "origin",
            "http://127.0.0.1.evil.example.com",
            StatusCode::FORBIDDEN,
        ),
        ("origin", "null", StatusCode::FORBIDDEN),
        ("host", "localhost:1", StatusCode::OK),
        ("host", "tools.example.com", StatusCode::OK),
        ("host", "evil.example.com", StatusCode::FORBIDDEN),
        ("host", "127.0.0.1.evil.example.com", StatusCode::FORBIDDEN),
    ];
    for (name, value, status) in cases {
        let response = post(address, "a", &[(name, value)], &initialize()).await;
        assert_eq!(response.status(), status, "{name}: {value}");
        // Nor by any other method.
        if status == StatusCode::FORBIDDEN {
            for method in [reqwest::Method::GET, reqwest::Method::DELETE] {
                let request = client().request(method, format!("{own}/mcp"));
                let request = request.header(name, value).header("x-caller", "a");
                assert_eq!(request.send().await.unwrap().status(), status);
            }
        }
    }
}

#[tokio::test]
async fn without_a_caller_nobody_is_let_in() {
    let toolbox = Toolbox::of(&["echo", "who"]);
    let address = serve(&gateway(&toolbox), HttpOptions::default()).await;
    for body in [initialize(), modern_call("box__echo", &json!({}))] {
        let request = client().post(format!("http://{address}/mcp")).json(&body);
        let request = request.header("accept", "application/json, text/event-stream");
        assert_eq!(
            request.send().await.unwrap().status(),
            StatusCode::UNAUTHORIZED
        );
    }
    assert_eq!(toolbox.calls(), []);
    // Unless the door was opened on purpose.
    let options = HttpOptions::default().anonymous(Caller::new("anybody"));
    let address = serve(&gateway(&toolbox), options).await;
    let mut request = client().post(format!("http://{address}/mcp"));
    request = request.header("accept", "application/json, text/event-stream");
    for (name, value) in modern_headers("box__who") {
        request = request.header(name, value);
    }
    let response = request
        .json(&modern_call("box__who", &json!({})))
        .send()
        .await;
    assert!(response.unwrap().text().await.unwrap().contains("anybody"));
}

#[tokio::test]
async fn a_session_is_its_callers_alone() {
    let toolbox = Toolbox::of(&["echo"]);
    let address = serve(&gateway(&toolbox), HttpOptions::default()).await;
    let own = session(address, "a").await;
    let header = [("mcp-session-id", own.as_str())];
    let list = legacy("tools/list");
    assert_eq!(
        post(address, "b", &header, &list).await.status(),
        StatusCode::NOT_FOUND
    );
    let stream = client().get(format!("http://{address}/mcp"));
    let stream = stream
        .header("accept", "text/event-stream")
        .header("mcp-session-id", &own);
    let stream = stream.header("x-caller", "b").send().await.unwrap();
    assert_eq!(stream.status(), StatusCode::NOT_FOUND);
    // Nor can anybody else end it.
    let end = |caller: &'static str| {
        let request = client().delete(format!("http://{address}/mcp"));
        request
            .header("mcp-session-id", &own)
            .header("x-caller", caller)
            .send()
    };
    assert_eq!(end("b").await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(
        post(address, "a", &header, &list).await.status(),
        StatusCode::OK
    );
    assert!(end("a").await.unwrap().status().is_success());
    assert_eq!(
        post(address, "a", &header, &list).await.status(),
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn there_is_a_limit_to_sessions_and_ended_ones_do_not_count() {
    let toolbox = Toolbox::of(&["echo"]);
    let options = HttpOptions::default().max_sessions(3, 2);
    let address = serve(&gateway(&toolbox), options).await;
    let first = session(address, "a").await;
    session(address, "a").await;
    let refused = post(address, "a", &[], &initialize()).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    session(address, "b").await;
    let refused = post(address, "b", &[], &initialize()).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let end = client().delete(format!("http://{address}/mcp"));
    let end = end.header("mcp-session-id", first).header("x-caller", "a");
    end.send().await.unwrap();
    session(address, "b").await;
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused() {
    let toolbox = Toolbox::of(&["echo"]);
    let options = HttpOptions::default().max_body_bytes(10_000);
    let address = serve(&gateway(&toolbox), options).await;
    let long = modern_call("box__echo", &json!({"text": "x".repeat(10_000)}));
    let response = post(address, "a", &modern_headers("box__echo"), &long).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let short = modern_call("box__echo", &json!({"text": "x"}));
    let response = post(address, "a", &modern_headers("box__echo"), &short).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(toolbox.calls().len(), 1);
}

#[tokio::test]
async fn headers_must_say_what_the_body_says() {
    let schema = json!({
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}
    });
    let regional = ListedTool::new("box__echo", object(schema)).of_server("box", "echo");
    let toolbox = Toolbox::new([regional, tool("fail")]);
    let address = serve(&gateway(&toolbox), HttpOptions::default()).await;
    let body = modern_call("box__echo", &json!({"region": "eu"}));
    let with = |region: Option<&'static str>, name: &'static str| {
        let mut headers = modern_headers(name).to_vec();
        headers.extend(region.map(|region| ("mcp-param-region", region)));
        headers
    };
    for wrong in [
        with(Some("us"), "box__echo"),
        with(None, "box__echo"),
        with(Some("eu"), "box__fail"),
    ] {
        let response = post(address, "a", &wrong, &body).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{wrong:?}");
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer["error"]["code"], -32020);
    }
    assert_eq!(toolbox.calls(), []);
    let response = post(address, "a", &with(Some("eu"), "box__echo"), &body).await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_modern_client_that_hangs_up_cancels_its_call() {
    let toolbox = Toolbox::of(&["wait"]);
    let address = serve(&gateway(&toolbox), HttpOptions::default()).await;
    let waiting = tokio::spawn(async move {
        let body = modern_call("box__wait", &json!({}));
        post(address, "a", &modern_headers("box__wait"), &body).await
    });
    toolbox.started().await;
    waiting.abort();
    toolbox.stopped().await;
}

#[tokio::test]
async fn a_state_does_not_pass_from_caller_to_caller() {
    let toolbox = Toolbox::of(&["needs"]);
    let address = serve(&gateway(&toolbox), HttpOptions::default()).await;
    let mut body = modern_call("box__needs", &json!({}));
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"elicitation": {}});
    let headers = modern_headers("box__needs");
    let asked = post(address, "a", &headers, &body).await;
    let asked = asked.text().await.unwrap();
    let data = asked.lines().find_map(|line| line.strip_prefix("data:"));
    let asked: Value = serde_json::from_str(data.unwrap_or(&asked)).unwrap();
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    body["params"]["inputResponses"] = json!({"box__who": answer});
    body["params"]["requestState"] = asked["result"]["requestState"].clone();
    let foreign = post(address, "b", &headers, &body)
        .await
        .text()
        .await
        .unwrap();
    assert!(foreign.contains("-32602"), "{foreign}");
    let own = post(address, "a", &headers, &body)
        .await
        .text()
        .await
        .unwrap();
    assert!(own.contains("Hello,"), "{own}");
}

#[tokio::test]
async fn a_legacy_client_is_told_of_changes_on_its_stream() {
    let toolbox = Toolbox::of(&["echo"]);
    let address = serve(&gateway(&toolbox), HttpOptions::default()).await;
    let (person, mut heard) = Person::helpful(Era::Legacy);
    let mut config = StreamableHttpClientTransportConfig::with_uri(format!("http://{address}/mcp"));
    let caller = HeaderValue::from_static("tenant");
    config
        .custom_headers
        .insert(HeaderName::from_static("x-caller"), caller);
    let transport = StreamableHttpClientTransport::with_client(client(), config);
    let _client = person
        .serve_with_lifecycle(transport, Era::Legacy.lifecycle())
        .await
        .unwrap();
    toolbox.add(tool("fail"));
    assert_eq!(heard.recv().await, Some(Heard::ToolsChanged));
}

/// The `data` fields of a stream of events.
fn data_fields(stream: &str) -> Vec<&str> {
    let fields = stream.lines().filter_map(|it| it.strip_prefix("data:"));
    fields.map(str::trim).collect()
}

#[tokio::test]
async fn only_clients_of_2025_11_25_get_a_priming_event() {
    for (version, is_primed) in [
        ("2024-11-05", false),
        ("2025-03-26", false),
        ("2025-06-18", false),
        ("2025-11-25", true),
    ] {
        let toolbox = Toolbox::of(&["echo"]);
        let address = serve(&gateway(&toolbox), HttpOptions::default()).await;
        let response = post(address, "a", &[], &initialize_with(version)).await;
        let session = response.headers()["mcp-session-id"].to_str().unwrap();
        let session = session.to_owned();
        let answer = response.text().await.unwrap();
        let data = data_fields(&answer);
        assert_eq!(data.len(), 1, "{version}: {answer}");
        let agreed: Value = serde_json::from_str(data[0]).unwrap();
        assert_eq!(agreed["result"]["protocolVersion"], version);
        let headers = [
            ("mcp-session-id", session.as_str()),
            ("mcp-protocol-version", version),
        ];
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        post(address, "a", &headers, &initialized).await;
        let list = post(address, "a", &headers, &legacy("tools/list")).await;
        let list = list.text().await.unwrap();
        let data = data_fields(&list);
        assert_eq!(data[0].is_empty(), is_primed, "{version}: {list}");
        let listed: Value = serde_json::from_str(data[usize::from(is_primed)]).unwrap();
        assert_eq!(listed["result"]["tools"][0]["name"], "box__echo");

        let mut stream = client().get(format!("http://{address}/mcp"));
        for (name, value) in headers {
            stream = stream.header(name, value);
        }
        let stream = stream.header("accept", "text/event-stream");
        let mut stream = stream.header("x-caller", "a").send().await.unwrap();
        assert_eq!(stream.status(), StatusCode::OK);
        toolbox.add(tool("fail"));
        let mut events = String::new();
        while !events.contains("list_changed") {
            let chunk = stream.chunk().await.unwrap().unwrap();
            events.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        let is_empty = data_fields(&events)[0].is_empty();
        assert_eq!(is_empty, is_primed, "{version}: {events}");
    }
}
