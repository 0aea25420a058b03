//! Every row of the table of errors (`open-responses.md` §6.2) that this server can produce.

use std::collections::HashSet;
use std::time::Duration;

use haft_core::{
    BoxFuture, Capabilities, Model, ModelError, ModelErrorKind, ModelRequest, ModelStream,
};
use haft_models::ScriptedModel;
use haft_models::testing::{Fault, Step, call, say};
use haft_server::{ApiKey, ErrorCode};
use serde_json::{Value, json};

use crate::support::{Answer, Setup, function, last, serve};

/// A model that always fails like this.
struct Failing(ModelError);

impl Model for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn send(&self, _: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }
}

/// What was seen: status, type, code, param.
type Row = (u16, String, String, Option<String>);

#[track_caller]
fn row(answer: &Answer) -> Row {
    let error = answer.body["error"].as_object().expect("an error");
    let keys: Vec<_> = error.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        ["message", "type", "param", "code"],
        "{}",
        answer.body
    );
    let text = |key: &str| error[key].as_str().map(str::to_owned);
    assert!(!text("message").unwrap().is_empty());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(answer.header("x-request-id").is_some());
    (
        answer.status,
        text("type").unwrap(),
        text("code").unwrap(),
        text("param"),
    )
}

/// What requests are refused with, by their bodies.
#[allow(clippy::too_many_lines, reason = "a table")]
fn bodies() -> Vec<(Value, u16, &'static str, &'static str, Option<&'static str>)> {
    const BAD: &str = "invalid_request";
    let call = json!({"type": "function_call", "call_id": "c", "name": "a", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "x"});
    let input = |items: Value| json!({"input": items});
    vec![
        (json!({"input": 5}), 400, BAD, "invalid_type", Some("input")),
        (
            json!({}),
            400,
            BAD,
            "missing_required_parameter",
            Some("input"),
        ),
        (
            json!({"input": "x", "truncation": "some"}),
            400,
            BAD,
            "invalid_value",
            Some("truncation"),
        ),
        (
            json!({"input": "x", "tools": [{"type": "mcp", "server_label": "a", "connector_id": "c"}]}),
            400,
            BAD,
            "unsupported_value",
            Some("tools[0].connector_id"),
        ),
        (
            json!({"input": "x", "safety_identifier": "y".repeat(65)}),
            400,
            BAD,
            "string_above_max_length",
            Some("safety_identifier"),
        ),
        (
            json!({"input": "x", "max_tool_calls": 0}),
            400,
            BAD,
            "integer_below_min_value",
            Some("max_tool_calls"),
        ),
        (
            json!({"input": "x", "temperature": 2.5}),
            400,
            BAD,
            "decimal_above_max_value",
            Some("temperature"),
        ),
        (
            json!({"input": "x", "previous_response_id": "resp_x"}),
            400,
            BAD,
            "previous_response_not_found",
            Some("previous_response_id"),
        ),
        (
            input(json!([output])),
            400,
            BAD,
            "tool_call_not_found",
            Some("input[0].call_id"),
        ),
        (
            input(json!([call, {"role": "user", "content": "go"}])),
            400,
            BAD,
            "missing_tool_output",
            Some("input[0].call_id"),
        ),
        (
            input(json!([call, output, output])),
            400,
            BAD,
            "duplicate_tool_output",
            Some("input[2].call_id"),
        ),
        (
            json!({"input": "x", "tools": [function("a")], "tool_choice": {"type": "function", "name": "b"}}),
            400,
            BAD,
            "tool_not_found",
            Some("tool_choice"),
        ),
        (
            json!({"input": "x", "tools": [{"type": "telepathy"}]}),
            400,
            BAD,
            "unsupported_tool",
            Some("tools[0].type"),
        ),
        (
            json!({"input": "x", "tools": [function("a"), function("a")]}),
            400,
            BAD,
            "duplicate_tool",
            Some("tools[1].name"),
        ),
        (
            json!({"input": "x", "tools": [{"type": "function", "name": "a", "parameters": {"type": "strang"}}]}),
            400,
            BAD,
            "invalid_function_parameters",
            Some("tools[0].parameters"),
        ),
        (
            json!({"input": "x", "tools": [{"type": "mcp", "server_label": "a", "server_url": "file:///etc/passwd"}]}),
            400,
            BAD,
            "mcp_server_not_allowed",
            Some("tools[0].server_url"),
        ),
        (
            input(json!([{"type": "wish"}])),
            400,
            BAD,
            "unsupported_item_type",
            Some("input[0].type"),
        ),
        (
            input(
                json!([{"role": "user", "content": [{"type": "input_video", "video_url": "https://example.org/v"}]}]),
            ),
            400,
            BAD,
            "unsupported_content",
            Some("input[0].content[0]"),
        ),
        (
            json!({"input": "x", "model": "nobody"}),
            404,
            "not_found",
            "model_not_found",
            Some("model"),
        ),
        (
            json!({"input": "x", "conversation": "conv_nobody"}),
            404,
            "not_found",
            "conversation_not_found",
            Some("conversation"),
        ),
        (
            input(json!([{"type": "item_reference", "id": "msg_nobody"}])),
            404,
            "not_found",
            "item_not_found",
            Some("input[0]"),
        ),
    ]
}

/// A model that cannot take pictures or videos.
fn plain_model(script: impl IntoIterator<Item = Step>) -> ScriptedModel {
    let script: Vec<_> = script.into_iter().collect();
    ScriptedModel::new(script).with_capabilities(Capabilities::default())
}

#[tokio::test]
async fn bad_requests_are_refused_by_status_type_code_and_place() {
    let model = plain_model([]);
    let served = Setup::of(model.clone()).serve().await;
    for (body, status, kind, code, param) in bodies() {
        for is_streamed in [false, true] {
            let mut body = body.clone();
            body["stream"] = is_streamed.into();
            let answer = served.post("/responses", body.clone()).await;
            let expected = (
                status,
                kind.to_owned(),
                code.to_owned(),
                param.map(str::to_owned),
            );
            assert_eq!(row(&answer), expected, "{body}\n{}", answer.body);
        }
    }
    assert_eq!(model.received().len(), 0);
}

/// Failures of the model, and how the server reports each.
#[allow(clippy::too_many_lines, reason = "a table")]
fn failures() -> Vec<(
    ModelError,
    u16,
    &'static str,
    &'static str,
    Option<&'static str>,
)> {
    let error = |kind: ModelErrorKind| ModelError::new(kind, "it broke");
    vec![
        (
            error(ModelErrorKind::RateLimit),
            429,
            "too_many_requests",
            "rate_limit_exceeded",
            None,
        ),
        (
            error(ModelErrorKind::QuotaExhausted),
            429,
            "too_many_requests",
            "insufficient_quota",
            None,
        ),
        (
            error(ModelErrorKind::Timeout),
            504,
            "model_error",
            "backend_timeout",
            None,
        ),
        (
            error(ModelErrorKind::Unreachable),
            502,
            "model_error",
            "backend_unreachable",
            None,
        ),
        (
            error(ModelErrorKind::ContextLength),
            400,
            "invalid_request",
            "context_length_exceeded",
            Some("input"),
        ),
        (
            error(ModelErrorKind::PromptRefused),
            400,
            "invalid_request",
            "invalid_prompt",
            None,
        ),
        (
            error(ModelErrorKind::InvalidRequest),
            400,
            "invalid_request",
            "invalid_value",
            None,
        ),
        (
            error(ModelErrorKind::ServerError),
            500,
            "model_error",
            "model_error",
            None,
        ),
        (
            error(ModelErrorKind::ServerError).with_status(503),
            503,
            "server_error",
            "server_is_overloaded",
            None,
        ),
        // The operator's key is none of the client's business.
        (
            error(ModelErrorKind::Unauthorized).with_status(401),
            502,
            "model_error",
            "backend_authentication_error",
            None,
        ),
        (
            error(ModelErrorKind::Unauthorized).with_status(403),
            502,
            "model_error",
            "backend_permission_denied",
            None,
        ),
        (
            error(ModelErrorKind::NotFound),
            502,
            "model_error",
            "backend_not_found",
            None,
        ),
        (
            error(ModelErrorKind::NotFound).with_code("model_not_found"),
            404,
            "not_found",
            "model_not_found",
            None,
        ),
        (
            error(ModelErrorKind::Misconfigured),
            502,
            "model_error",
            "backend_misconfigured",
            None,
        ),
        (
            error(ModelErrorKind::Protocol),
            500,
            "model_error",
            "model_error",
            None,
        ),
    ]
}

#[tokio::test]
async fn failures_of_the_model_have_their_rows() {
    for (error, status, kind, code, param) in failures() {
        let served = Setup::of(Failing(error.clone())).serve().await;
        for is_streamed in [false, true] {
            let body = json!({"input": "go", "stream": is_streamed});
            let answer = served.post("/responses", body).await;
            let expected = (
                status,
                kind.to_owned(),
                code.to_owned(),
                param.map(str::to_owned),
            );
            assert_eq!(row(&answer), expected, "{error:?}");
            let waits = matches!(status, 429 | 503);
            assert_eq!(answer.header("retry-after").is_some(), waits, "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_wait_that_the_backend_asks_for_is_passed_on() {
    let mut error = ModelError::new(ModelErrorKind::RateLimit, "slow down");
    error.retry_after = Some(Duration::from_millis(1500));
    let served = Setup::of(Failing(error)).serve().await;
    let answer = served.post("/responses", json!({"input": "go"})).await;
    assert_eq!(answer.header("retry-after"), Some("2"));
    // Codex reads these words.
    let message = answer.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("try again in 1.5s"), "{message}");
}

/// Rows that cannot be provoked here, and why.
const NOT_HERE: [(ErrorCode, &str); 7] = [
    (
        ErrorCode::PermissionDenied,
        "keys have no scopes yet; the WebSocket's origin gives it: websocket.rs",
    ),
    (
        ErrorCode::ApprovalRequestNotFound,
        "nothing asks for approval yet",
    ),
    (
        ErrorCode::McpServerUnavailable,
        "there are no MCP servers yet",
    ),
    (
        ErrorCode::InvalidEncryptedContent,
        "compaction brings it, with tests of its own",
    ),
    (ErrorCode::OutputInvalid, "needs a schema: structured.rs"),
    (
        ErrorCode::ConnectionLimitReached,
        "only on a WebSocket: websocket.rs",
    ),
    (
        ErrorCode::ResponseCancelled,
        "only inside of a response: streaming.rs, state.rs",
    ),
];

/// Provokes what is neither a bad body nor a failing model.
async fn others() -> Vec<Row> {
    let mut rows = Vec::new();
    let (served, _) = serve([say("hello")]).await;
    let raw = |body: &'static str, kind: &'static str| {
        let request = served.request("POST", "/responses");
        served.send(request.header("content-type", kind).body(body))
    };
    rows.push(row(&raw("{", "application/json").await));
    rows.push(row(&raw("{}", "text/plain").await));
    rows.push(row(&served
        .post("/responses", json!({"input": "x", "stop": "END"}))
        .await));
    rows.push(row(&served.get("/nowhere").await));
    rows.push(row(&served.get("/responses/resp_x").await));
    let put = served.request("PUT", "/responses");
    rows.push(row(&served.send(put).await));
    let done = served.create(json!({"input": "go"})).await;
    let id = done["id"].as_str().unwrap();
    rows.push(row(&served
        .post(&format!("/responses/{id}/cancel"), json!({}))
        .await));

    let setup = Setup::of(plain_model([])).options(|options| options.max_body_bytes = 10);
    let served = setup.serve().await;
    rows.push(row(&served
        .post("/responses", json!({"input": "long enough"}))
        .await));
    let long = served.request("GET", "/models");
    let long = long.header("x-long", "x".repeat(70_000));
    rows.push(row(&served.send(long).await));
    let setup = Setup::of(plain_model([]));
    let setup = setup.options(|options| options.api_key = Some(ApiKey::new("key")));
    let served = setup.serve().await;
    rows.push(row(&served.get("/models").await));

    let hang = Step::default().fault(Fault::Hang);
    let served = Setup::of(plain_model([hang.forever()])).serve().await;
    let queued = served
        .create(json!({"input": "go", "background": true}))
        .await;
    let next = json!({"input": "more", "previous_response_id": queued["id"]});
    rows.push(row(&served.post("/responses", next).await));
    let conversation = served.post("/conversations", json!({})).await.ok();
    let body = json!({"input": "go", "conversation": conversation["id"], "background": true});
    served.create(body.clone()).await;
    rows.push(row(&served.post("/responses", body).await));

    let script = [say("no").forever()];
    let served = Setup::of(plain_model(script)).serve().await;
    let body = json!({"input": "go", "tools": [function("a")], "tool_choice": "required"});
    rows.push(row(&served.post("/responses", body).await));
    rows.push(row(&broken_store().await));
    rows
}

/// What a store that fails gives.
async fn broken_store() -> Answer {
    let served = Setup {
        store: std::sync::Arc::new(crate::state::FullStore::default()),
        ..Setup::of(plain_model([]))
    }
    .serve()
    .await;
    let answer = served.get("/responses/resp_broken").await;
    // The details are the operator's.
    assert!(
        !answer.body.to_string().contains("secret"),
        "{}",
        answer.body
    );
    answer
}

#[tokio::test]
async fn every_row_is_provoked_or_has_a_reason() {
    let mut seen: HashSet<String> = HashSet::new();
    seen.extend(
        bodies()
            .into_iter()
            .map(|(_, _, _, code, _)| code.to_owned()),
    );
    seen.extend(
        failures()
            .into_iter()
            .map(|(_, _, _, code, _)| code.to_owned()),
    );
    let others = others().await;
    let expected = [
        (400, "invalid_json", None),
        (415, "unsupported_content_type", None),
        (400, "unknown_parameter", Some("stop")),
        (404, "route_not_found", None),
        (404, "response_not_found", None),
        (405, "method_not_allowed", None),
        (400, "unsupported_parameter", Some("id")),
        (413, "request_too_large", None),
        (431, "request_headers_too_large", None),
        (401, "invalid_api_key", None),
        (
            409,
            "previous_response_in_progress",
            Some("previous_response_id"),
        ),
        (409, "conversation_locked", Some("conversation")),
        (500, "tool_choice_not_followed", Some("tool_choice")),
        (500, "server_error", None),
    ];
    let told: Vec<_> = others
        .iter()
        .map(|(status, _, code, param)| (*status, code.as_str(), param.as_deref()))
        .collect();
    assert_eq!(told, expected);
    seen.extend(others.into_iter().map(|(_, _, code, _)| code));
    let excused: HashSet<_> = NOT_HERE.iter().map(|(code, _)| code.as_str()).collect();
    for code in ErrorCode::ALL {
        let (is_seen, is_excused) = (
            seen.contains(code.as_str()),
            excused.contains(code.as_str()),
        );
        assert!(is_seen || is_excused, "{code:?} is never seen");
        assert!(!(is_seen && is_excused), "{code:?} needs no excuse");
    }
}

/// All paths with the methods that they take.
const PATHS: [(&str, &[&str]); 10] = [
    ("/responses", &["GET", "POST"]),
    ("/responses/input_tokens", &["POST"]),
    ("/responses/resp_x", &["GET", "DELETE"]),
    ("/responses/resp_x/cancel", &["POST"]),
    ("/responses/resp_x/input_items", &["GET"]),
    ("/conversations", &["POST"]),
    ("/conversations/conv_x", &["GET", "POST", "DELETE"]),
    ("/conversations/conv_x/items", &["GET", "POST"]),
    ("/conversations/conv_x/items/msg_x", &["GET", "DELETE"]),
    ("/models", &["GET"]),
];

#[tokio::test]
async fn a_wrong_method_is_told_which_are_right() {
    let (served, _) = serve([]).await;
    for (path, methods) in PATHS {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            if methods.contains(&method) {
                continue;
            }
            let request = served.request(method, path);
            let request = request
                .header("content-type", "application/json")
                .body("{}");
            let answer = served.send(request).await;
            let told = row(&answer);
            assert_eq!(
                (told.0, told.2.as_str()),
                (405, "method_not_allowed"),
                "{method} {path}"
            );
            let allowed = answer.header("allow").unwrap_or_default();
            for method in methods {
                assert!(allowed.contains(method), "{path}: {allowed}");
            }
        }
    }
}

#[tokio::test]
async fn bodies_that_are_no_json_are_refused_on_every_path() {
    let setup = Setup::of(plain_model([])).options(|options| options.max_body_bytes = 1000);
    let served = setup.serve().await;
    let paths = [
        "/responses",
        "/responses/input_tokens",
        "/conversations",
        "/conversations/conv_x",
        "/conversations/conv_x/items",
    ];
    for path in paths {
        let send = |kind: &'static str, body: String| {
            let request = served.request("POST", path).header("content-type", kind);
            served.send(request.body(body))
        };
        let answer = send("text/plain", "{}".into()).await;
        assert_eq!(row(&answer).2, "unsupported_content_type", "{path}");
        assert_eq!(answer.status, 415, "{path}");
        let answer = send("application/json", "{\"a\":".into()).await;
        assert_eq!(
            (answer.status, row(&answer).2.as_str()),
            (400, "invalid_json"),
            "{path}"
        );
        let answer = send("application/json", format!("\"{}\"", "x".repeat(2000))).await;
        assert_eq!(
            (answer.status, row(&answer).2.as_str()),
            (413, "request_too_large"),
            "{path}"
        );
        let answer = send("application/json", "[]".into()).await;
        assert_eq!(
            (answer.status, row(&answer).2.as_str()),
            (400, "invalid_type"),
            "{path}"
        );
        let deep = format!("{}{}", "[".repeat(400), "]".repeat(400));
        let answer = send("application/json; charset=utf-8", deep).await;
        assert_eq!(row(&answer).2, "invalid_json", "{path}");
    }
}

#[tokio::test]
async fn unknown_paths_and_ids_are_errors_in_json() {
    let (served, _) = serve([]).await;
    for (path, code) in [
        ("/", "route_not_found"),
        ("/nowhere", "route_not_found"),
        ("/responses/", "route_not_found"),
        ("/responses/a/b/c", "route_not_found"),
        ("/responses/%ff", "route_not_found"),
        ("/responses/resp_x", "response_not_found"),
        ("/responses/resp_x?stream=true", "response_not_found"),
        ("/responses/resp_x/input_items", "response_not_found"),
        ("/conversations/conv_x", "conversation_not_found"),
        ("/conversations/conv_x/items", "conversation_not_found"),
        (
            "/conversations/conv_x/items/msg_x",
            "conversation_not_found",
        ),
        ("/models/nobody", "model_not_found"),
    ] {
        let answer = served.get(path).await;
        let told = row(&answer);
        assert_eq!((told.0, told.2.as_str()), (404, code), "{path}");
    }
    for path in ["/responses/resp_x", "/conversations/conv_x"] {
        assert_eq!(row(&served.delete(path).await).0, 404, "{path}");
    }
    let answer = served.post("/responses/resp_x/cancel", json!({})).await;
    assert_eq!(row(&answer).2, "response_not_found");
}

#[tokio::test]
async fn queries_are_checked() {
    let (served, _) = serve([say("hello")]).await;
    let response = served.create(json!({"input": "go"})).await;
    let id = response["id"].as_str().unwrap();
    for (query, code, param) in [
        ("/input_items?limit=0", "integer_below_min_value", "limit"),
        ("/input_items?limit=101", "decimal_above_max_value", "limit"),
        ("/input_items?limit=x", "invalid_type", "limit"),
        ("/input_items?order=up", "invalid_value", "order"),
        ("?include[]=everything", "invalid_value", "include[0]"),
        ("?stream=true", "unsupported_parameter", "stream"),
    ] {
        let answer = served.get(&format!("/responses/{id}{query}")).await;
        assert_eq!(answer.error(), (400, code, Some(param)), "{query}");
    }
}

#[tokio::test]
async fn a_page_behind_an_unknown_item_is_not_found() {
    let (served, _) = serve([say("hello")]).await;
    let response = served.create(json!({"input": "go"})).await;
    let conversation = served.post("/conversations", json!({})).await.ok();
    for path in [
        format!(
            "/responses/{}/input_items",
            response["id"].as_str().unwrap()
        ),
        format!(
            "/conversations/{}/items",
            conversation["id"].as_str().unwrap()
        ),
    ] {
        let answer = served.get(&format!("{path}?after=msg_nobody")).await;
        assert_eq!(
            answer.error(),
            (404, "item_not_found", Some("after")),
            "{path}"
        );
    }
}

#[tokio::test]
async fn an_empty_conversation_gives_nothing_to_answer() {
    let (served, _) = serve([]).await;
    let conversation = served.post("/conversations", json!({})).await.ok();
    let body = json!({"conversation": conversation["id"]});
    let answer = served.post("/responses", body).await;
    assert_eq!(
        answer.error(),
        (400, "missing_required_parameter", Some("input"))
    );
}

#[tokio::test]
async fn a_sane_request_id_is_kept_and_others_are_replaced() {
    let (served, _) = serve([]).await;
    let id = async |given: &str| {
        let request = served
            .request("GET", "/models")
            .header("x-request-id", given);
        let answer = served.send(request).await;
        answer.header("x-request-id").unwrap().to_owned()
    };
    assert_eq!(id("my-request.7").await, "my-request.7");
    for strange in ["", "a b", "<script>", &"x".repeat(500)] {
        let given = id(strange).await;
        assert!(given.starts_with("req_"), "{strange}: {given}");
    }
}

#[tokio::test]
async fn more_runs_than_the_operator_allows_are_told_to_come_back() {
    let hang = Step::default().fault(Fault::Hang).forever();
    let setup = Setup::of(plain_model([hang])).options(|options| {
        options.max_runs = 1;
        options.limits.max_waiting = Some(0);
    });
    let served = setup.serve().await;
    let running = served
        .create(json!({"input": "go", "background": true}))
        .await;
    let answer = served.post("/responses", json!({"input": "go"})).await;
    let told = row(&answer);
    assert_eq!((told.0, told.2.as_str()), (503, "server_is_overloaded"));
    assert_eq!(answer.header("retry-after"), Some("1"));
    // When there is room again, it is used.
    let id = running["id"].as_str().unwrap();
    served
        .post(&format!("/responses/{id}/cancel"), json!({}))
        .await
        .ok();
    let answer = served
        .post("/responses", json!({"input": "go", "background": true}))
        .await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_key_is_needed_where_one_is_set() {
    let setup = Setup::of(plain_model([say("hello").forever()]));
    let setup = setup.options(|options| options.api_key = Some(ApiKey::new("the key")));
    let served = setup.serve().await;
    let body = json!({"input": "go"});
    for given in [
        None,
        Some("Bearer wrong"),
        Some("Basic dGhlIGtleQ=="),
        Some("the key"),
    ] {
        for path in ["/responses", "/nowhere"] {
            let mut request = served.posting(path, &body);
            if let Some(given) = given {
                request = request.header("authorization", given);
            }
            let answer = served.send(request).await;
            assert_eq!(row(&answer).2, "invalid_api_key", "{given:?}");
            assert_eq!(answer.status, 401);
            assert!(!answer.body.to_string().contains("the key"));
        }
    }
    let request = served.posting("/responses", &body);
    let answer = served
        .send(request.header("authorization", "bearer the key"))
        .await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn an_error_after_a_tool_has_run_is_no_reason_to_send_the_request_again() {
    let (tool, runs) = crate::tools::echo("echo");
    let script = [
        call("echo", json!({"text": "a"})),
        Step::default().fault(Fault::status(500)),
    ];
    let served = Setup::of(ScriptedModel::new(script))
        .tools([tool])
        .serve()
        .await;
    let answer = served
        .post(
            "/responses",
            json!({"input": "go", "tools": [{"type": "haft:echo"}]}),
        )
        .await;
    // SDKs repeat a request on 500; on 200 they do not.
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body["status"], "failed");
    assert_eq!(runs.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_response_that_cannot_be_stored_has_failed() {
    let setup = Setup::of(ScriptedModel::new([say("hello").forever()]));
    let served = Setup {
        store: std::sync::Arc::new(crate::state::FullStore::default()),
        ..setup
    }
    .serve()
    .await;
    let events = served.stream(json!({"input": "go"})).await;
    let response = last(&events);
    assert_eq!(response["status"], "failed");
    assert_eq!(response["error"]["code"], "server_error");
    assert_eq!(response["output"][0]["content"][0]["text"], "hello");
    let id = response["id"].as_str().unwrap();
    let owner = haft_core::Owner::default();
    assert!(served.store.response(&owner, id).await.unwrap().is_none());
    // What is not to be stored does not mind.
    let events = served.stream(json!({"input": "go", "store": false})).await;
    assert_eq!(last(&events)["status"], "completed");
}

#[tokio::test]
async fn common_mistakes_of_clients_are_told_with_the_remedy() {
    let (served, _) = serve([say("hi").forever()]).await;
    let of_chat = json!({"type": "function", "function": {"name": "f", "parameters": {}}});
    let result = json!({"role": "tool", "tool_call_id": "c", "content": "42"});
    for (path, body, remedy) in [
        (
            "/responses",
            json!({"input": "hi", "tools": [of_chat]}),
            "beside `type`",
        ),
        (
            "/responses",
            json!({"input": [result]}),
            "function_call_output",
        ),
        (
            "/responses/responses",
            json!({}),
            "base URL must end in `/v1`",
        ),
        ("/embeddings", json!({}), "this server has `/v1/responses`"),
        ("/../responses", json!({}), "the API is served under `/v1`"),
    ] {
        let answer = served.post(path, body).await;
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(remedy), "{path}: {message}");
    }
}
