//! Each metric moves when its thing happens, and none can be multiplied by a client.

use haft_core::FinishReason;
use haft_engine::{Backoff, LoopOptions};
use haft_models::ScriptedModel;
use haft_models::testing::{Fault, ScriptedCall};
use haft_models::testing::{call, calls, fail, say, think};
use haft_server::ModelEntry;
use serde_json::json;
use std::time::Duration;

use crate::support::{Setup, function, serve};
use crate::tools::echo;

#[tokio::test]
async fn a_plain_request_moves_what_it_should() {
    let step = think("hm").say("hello").usage(12, 5);
    let (server, _) = serve([step]).await;
    let before = server.scrape().await;
    before.assert(r#"haft_tokens_total{model="default",kind="input"}"#, 0.0);
    before.assert("haft_requests_active", 0.0);
    server
        .create(json!({"model": "default", "input": "hi"}))
        .await;
    let scrape = server.scrape().await;
    for (sample, value) in [
        (
            r#"haft_requests_total{route="/v1/responses",method="POST",status="200"}"#,
            1.0,
        ),
        (
            r#"haft_request_duration_seconds_count{route="/v1/responses",method="POST"}"#,
            1.0,
        ),
        (
            r#"haft_runs_total{model="default",outcome="completed"}"#,
            1.0,
        ),
        (r#"haft_run_duration_seconds_count{model="default"}"#, 1.0),
        (r#"haft_turns_total{model="default"}"#, 1.0),
        (
            r#"haft_time_to_first_token_seconds_count{model="default"}"#,
            1.0,
        ),
        (r#"haft_tokens_total{model="default",kind="input"}"#, 12.0),
        (r#"haft_tokens_total{model="default",kind="output"}"#, 5.0),
        (r#"haft_backend_requests_total{model="default"}"#, 1.0),
        (
            r#"haft_store_operation_duration_seconds_count{operation="put_response"}"#,
            1.0,
        ),
        ("haft_requests_active", 0.0),
        ("haft_streams_active", 0.0),
        ("haft_runs_active", 0.0),
    ] {
        scrape.assert(sample, value);
    }
    assert!(scrape.get("process_resident_memory_bytes").unwrap() > 1e6);
    assert!(scrape.get("process_start_time_seconds").unwrap() > 1.7e9);
    assert!(scrape.get("haft_uptime_seconds").unwrap() >= 0.0);
    let version = env!("CARGO_PKG_VERSION");
    scrape.assert(&format!("haft_build_info{{version=\"{version}\"}}"), 1.0);
}

#[tokio::test]
async fn cached_and_reasoning_tokens_are_told_apart() {
    use haft_core::{ModelResponse, Usage};
    struct Frugal;
    impl haft_core::Model for Frugal {
        fn name(&self) -> &'static str {
            "frugal"
        }
        fn provider(&self) -> &'static str {
            "test"
        }
        fn capabilities(&self) -> haft_core::Capabilities {
            haft_core::Capabilities::default()
        }
        fn send(
            &self,
            _: haft_core::ModelRequest,
        ) -> haft_core::BoxFuture<'_, Result<haft_core::ModelStream, haft_core::ModelError>>
        {
            let mut response = ModelResponse::text("hi");
            response.usage = Some(Usage {
                input_tokens: 100,
                cached_input_tokens: 80,
                cache_write_tokens: 7,
                output_tokens: 30,
                reasoning_tokens: 20,
                requests: 1,
            });
            Box::pin(async { Ok(response.into_stream()) })
        }
    }
    let server = Setup::of(Frugal).serve().await;
    server.create(json!({"input": "hi"})).await;
    let scrape = server.scrape().await;
    for (kind, count) in [
        ("input", 100.0),
        ("cached", 80.0),
        ("cache_write", 7.0),
        ("output", 30.0),
        ("reasoning", 20.0),
    ] {
        let sample = format!("haft_tokens_total{{model=\"default\",kind=\"{kind}\"}}");
        scrape.assert(&sample, count);
    }
}

#[tokio::test]
async fn calls_are_counted_by_kind_and_outcome_and_hydration() {
    let (tool, _) = echo("echo");
    let model = ScriptedModel::new(vec![
        calls([
            ScriptedCall::new("echo", json!({"text": "a"})),
            ScriptedCall::new("echo", json!({"fail": true})),
            ScriptedCall::new("echo", json!({"text": 3})),
            ScriptedCall::new("nothing", json!({})),
        ]),
        call("mine", json!({"text": "x"})),
    ]);
    let server = Setup::of(model).tools([tool]).serve().await;
    let tools = json!([{"type": "haft:echo"}, function("mine")]);
    let response = server.create(json!({"input": "go", "tools": tools})).await;
    assert_eq!(response["status"], "completed", "{response:#}");
    let scrape = server.scrape().await;
    for (sample, value) in [
        (
            r#"haft_tool_calls_total{kind="haft:echo",outcome="succeeded"}"#,
            1.0,
        ),
        (
            r#"haft_tool_calls_total{kind="haft:echo",outcome="failed"}"#,
            1.0,
        ),
        (
            r#"haft_tool_calls_total{kind="haft:echo",outcome="invalid_arguments"}"#,
            1.0,
        ),
        (
            r#"haft_tool_calls_total{kind="unknown",outcome="unknown_tool"}"#,
            1.0,
        ),
        (
            r#"haft_tool_calls_total{kind="function",outcome="handed_over"}"#,
            1.0,
        ),
        (
            r#"haft_tool_call_duration_seconds_count{kind="haft:echo"}"#,
            2.0,
        ),
        (r#"haft_hydrations_total{outcome="valid"}"#, 3.0),
        (r#"haft_hydrations_total{outcome="refused"}"#, 2.0),
        (r#"haft_turns_total{model="default"}"#, 2.0),
        (r#"haft_runs_total{model="default",outcome="waiting"}"#, 1.0),
        (
            r#"haft_time_to_first_token_seconds_count{model="default"}"#,
            1.0,
        ),
    ] {
        scrape.assert(sample, value);
    }
}

#[tokio::test]
async fn repaired_arguments_are_counted_as_such() {
    let (tool, _) = echo("echo");
    let model = ScriptedModel::new(vec![call("echo", r#"{"text": "a",}"#), say("done")]);
    let server = Setup::of(model)
        .tools([tool])
        .options(|options| options.loop_options.repair = true)
        .serve()
        .await;
    server
        .create(json!({"input": "go", "tools": [{"type": "haft:echo"}]}))
        .await;
    let scrape = server.scrape().await;
    scrape.assert(r#"haft_hydrations_total{outcome="repaired"}"#, 1.0);
    // A repaired call needs somebody's word, and waits for it.
    let sample = r#"haft_tool_calls_total{kind="haft:echo",outcome="suspended"}"#;
    scrape.assert(sample, 1.0);
}

#[tokio::test]
async fn failures_and_repetitions_of_a_backend_are_counted_by_their_kind() {
    let patient = LoopOptions {
        retry: Backoff {
            base: Duration::from_millis(1),
            cap: Duration::from_millis(2),
            attempts: 3,
            ..Backoff::default()
        },
        ..LoopOptions::default()
    };
    let model = ScriptedModel::new(vec![fail(429), fail(503), say("ok"), fail(401)]);
    let server = Setup::of(model)
        .options(|options| options.loop_options = patient)
        .serve()
        .await;
    server.create(json!({"input": "go"})).await;
    let answer = server.post("/responses", json!({"input": "go"})).await;
    assert_ne!(answer.status, 200);
    let status = answer.status;
    let scrape = server.scrape().await;
    let requests = format!(
        "haft_requests_total{{route=\"/v1/responses\",method=\"POST\",status=\"{status}\"}}"
    );
    for (sample, value) in [
        (
            r#"haft_backend_retries_total{model="default",error="rate_limit"}"#,
            1.0,
        ),
        (
            r#"haft_backend_retries_total{model="default",error="server_error"}"#,
            1.0,
        ),
        (
            r#"haft_backend_failures_total{model="default",error="unauthorized"}"#,
            1.0,
        ),
        (r#"haft_backend_requests_total{model="default"}"#, 4.0),
        (r#"haft_runs_total{model="default",outcome="failed"}"#, 1.0),
        (
            r#"haft_runs_total{model="default",outcome="completed"}"#,
            1.0,
        ),
        (&requests, 1.0),
    ] {
        scrape.assert(sample, value);
    }
}

#[tokio::test]
async fn streams_background_runs_and_websockets_are_counted_while_they_last() {
    let slow = || say("slowly").fault(Fault::HangAfterEvents(3));
    let (server, _) = serve([slow(), slow()]).await;
    let body = json!({"input": "hi", "stream": true});
    let mut stream = server.posting("/responses", &body).send().await.unwrap();
    stream.chunk().await.unwrap().unwrap();
    let scrape = server.until("haft_streams_active", 1.0).await;
    scrape.assert("haft_requests_active", 1.0);
    scrape.assert("haft_runs_active", 1.0);
    scrape.assert("haft_runs_background", 0.0);
    drop(stream);
    let scrape = server.until("haft_runs_active", 0.0).await;
    scrape.assert("haft_streams_active", 0.0);
    scrape.assert(
        r#"haft_runs_total{model="default",outcome="cancelled"}"#,
        1.0,
    );

    let body = json!({"input": "hi", "background": true});
    let response = server.create(body).await;
    let scrape = server.until("haft_runs_background", 1.0).await;
    scrape.assert("haft_requests_active", 0.0);
    let id = response["id"].as_str().unwrap();
    server
        .post(&format!("/responses/{id}/cancel"), json!({}))
        .await
        .ok();
    server.until("haft_runs_background", 0.0).await;

    let address = server.base.replace("http://", "ws://") + "/responses";
    let (socket, _) = tokio_tungstenite::connect_async(address).await.unwrap();
    server.until("haft_websockets_open", 1.0).await;
    drop(socket);
    let scrape = server.until("haft_websockets_open", 0.0).await;
    scrape.assert(
        r#"haft_requests_total{route="/v1/responses",method="GET",status="101"}"#,
        1.0,
    );
}

#[tokio::test]
async fn a_message_in_a_websocket_counts_as_a_request() {
    use futures_util::{SinkExt as _, StreamExt as _};
    use tokio_tungstenite::tungstenite::Message;
    let (server, _) = serve([say("hello").usage(3, 2)]).await;
    let address = server.base.replace("http://", "ws://") + "/responses";
    let (mut socket, _) = tokio_tungstenite::connect_async(address).await.unwrap();
    for body in [
        json!({"type": "response.create", "input": "hi"}),
        json!({"type": "response.create", "model": "none", "input": "hi"}),
    ] {
        socket.send(Message::text(body.to_string())).await.unwrap();
    }
    while let Some(Ok(message)) = socket.next().await {
        if message
            .to_text()
            .is_ok_and(|text| text.contains("model_not_found"))
        {
            break;
        }
    }
    let refused = r#"haft_requests_total{route="/v1/responses",method="WS",status="404"}"#;
    let scrape = server.until(refused, 1.0).await;
    let well = r#"haft_requests_total{route="/v1/responses",method="WS",status="200"}"#;
    scrape.assert(well, 1.0);
}

#[tokio::test]
async fn compactions_cuts_and_chat_are_counted() {
    let model = ScriptedModel::new(vec![
        say("summary").usage(50, 10),
        say("hello").usage(7, 3),
        fail(400).fault(
            Fault::status(400).with_body(json!({"error": {"code": "context_length_exceeded"}})),
        ),
        say("shorter"),
    ]);
    let server = Setup::of(model).serve().await;
    let window =
        json!({"model": "default", "input": [{"role": "user", "content": "a long story"}]});
    server.post("/responses/compact", window).await.ok();
    let chat = json!({"model": "default", "messages": [{"role": "user", "content": "hi"}]});
    server.post("/chat/completions", chat).await.ok();
    let turn = |text: &str| json!({"role": "user", "content": text});
    let answer = json!({"role": "assistant", "content": "well"});
    let long = json!({"input": [turn("one"), answer, turn("two")], "truncation": "auto"});
    server.create(long).await;
    let scrape = server.scrape().await;
    for (sample, value) in [
        (r#"haft_compactions_total{outcome="completed"}"#, 1.0),
        ("haft_truncations_total", 1.0),
        (r#"haft_backend_requests_total{model="default"}"#, 4.0),
        (
            r#"haft_requests_total{route="/v1/chat/completions",method="POST",status="200"}"#,
            1.0,
        ),
        (
            r#"haft_backend_failures_total{model="default",error="context_length"}"#,
            1.0,
        ),
    ] {
        scrape.assert(sample, value);
    }
    let tokens = scrape.get(r#"haft_tokens_total{model="default",kind="input"}"#);
    assert!(tokens.unwrap() >= 57.0, "{tokens:?}");
}

#[tokio::test]
async fn what_a_store_cannot_do_is_counted() {
    let (server, _) = serve([say("hello")]).await;
    server.get("/conversations/conv_none").await;
    server.get("/responses/resp_none").await;
    let scrape = server.scrape().await;
    for operation in ["conversation", "response"] {
        let sample =
            format!("haft_store_operation_duration_seconds_count{{operation=\"{operation}\"}}");
        scrape.assert(&sample, 1.0);
    }
    assert!(
        !scrape
            .series()
            .any(|series| series.starts_with("haft_store_errors"))
    );
}

#[tokio::test]
async fn a_hostile_client_makes_no_series() {
    let (tool, _) = echo("echo");
    let steps: Vec<_> = (0..40)
        .flat_map(|number| {
            let name = format!("secret_{number}");
            [calls([
                ScriptedCall::new(name.clone(), json!({"text": "x"})),
                ScriptedCall::new(format!("unknown_{name}"), json!({})),
            ])]
        })
        .collect();
    let server = Setup::of(ScriptedModel::new(steps))
        .tools([tool])
        .serve()
        .await;
    let mut first = 0;
    for number in 0..40 {
        let name = format!("secret_{number}");
        let tools = json!([function(&name), {"type": "haft:echo"}]);
        server
            .post("/responses", json!({"input": "go", "tools": tools}))
            .await;
        let unknown = json!({"model": format!("model-{name}"), "input": "go"});
        assert_eq!(server.post("/responses", unknown).await.status, 404);
        server.get(&format!("/responses/resp_{name}")).await;
        server.get(&format!("/{name}\"}} 1")).await;
        server
            .get(&format!("/conversations/{name}/items?after={name}"))
            .await;
        let odd = server
            .request(&format!("X{name}").to_uppercase(), "/responses")
            .header("x-request-id", &name)
            .header("user-agent", &name);
        server.send(odd).await;
        if number == 0 {
            first = server.scrape().await.series().count();
        }
    }
    let text = server.metrics_text().await;
    assert!(!text.to_lowercase().contains("secret"), "{text}");
    assert_eq!(server.scrape().await.series().count(), first);
}

#[tokio::test]
async fn every_metric_of_the_list_is_told_as_it_is_described() {
    let model = ScriptedModel::new(vec![say("hi").finish(FinishReason::Normal)]);
    let server = Setup::of(model).serve().await;
    server.create(json!({"input": "go"})).await;
    let scrape = server.scrape().await;
    let table = haft_server::metrics_table();
    for (name, family) in &scrape.families {
        let row = table
            .lines()
            .find(|row| row.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("`{name}` is in no document"));
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let kind = if cells[2] == "info" {
            "gauge"
        } else {
            cells[2]
        };
        assert_eq!(kind, family.kind, "{name}");
        let labels: Vec<_> = family
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let mut documented: Vec<_> = cells[3].split(", ").map(str::to_owned).collect();
        documented.retain(|label| label != "–");
        documented.sort();
        assert_eq!(documented, labels, "{name}");
        let help = family.help.trim_end_matches('.');
        assert_eq!(help, cells[4].trim_end_matches('.'), "{name}");
    }
}

#[tokio::test]
async fn scrapers_that_ask_for_openmetrics_get_it() {
    let (server, _) = serve([]).await;
    let answer = crate::support::client()
        .get(server.beside("/metrics"))
        .header(
            "accept",
            "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
        )
        .send()
        .await
        .unwrap();
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(answer.headers()["content-type"], kind);
    assert!(answer.text().await.unwrap().ends_with("# EOF\n"));
}

#[tokio::test]
async fn several_models_have_series_of_their_own() {
    let one = ModelEntry::new("one", ScriptedModel::new(vec![say("hi").usage(1, 1)]));
    let mut two = ModelEntry::new("two", ScriptedModel::new(vec![say("hi").usage(2, 2)]));
    two.aliases.push("second".into());
    let mut setup = Setup::of(ScriptedModel::new(vec![]));
    setup.models = vec![one, two];
    let server = setup.serve().await;
    for name in ["one", "second"] {
        server.create(json!({"model": name, "input": "hi"})).await;
    }
    let scrape = server.scrape().await;
    scrape.assert(r#"haft_tokens_total{model="one",kind="input"}"#, 1.0);
    scrape.assert(r#"haft_tokens_total{model="two",kind="input"}"#, 2.0);
}
