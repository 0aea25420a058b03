//! What is secret stays so, in everything that operators see.

use haft_models::ScriptedModel;
use haft_models::testing::{Fault, ScriptedCall, calls};
use haft_models::testing::{call, fault, say};
use haft_server::ApiKey;
use serde_json::json;

use super::Log;
use crate::support::{BACKENDS, Setup, backend, client, function};
use crate::tools::echo;

#[tokio::test]
async fn keys_headers_and_content_are_nowhere() {
    let log = Log::of("trace");
    let (tool, _) = echo("echo");
    let model = ScriptedModel::new(vec![
        calls([
            ScriptedCall::new("echo", json!({"text": "hunter2"})),
            ScriptedCall::new("echo", json!({"text": "hunter2", "fail": true})),
        ]),
        say("hunter2"),
        call("mine", json!({"text": "hunter2"})),
        fault(Fault::status(400).with_body(json!({"error": {"message": "hunter2"}}))),
    ]);
    let server = Setup::of(model)
        .tools([tool])
        .options(|options| options.api_key = Some(ApiKey::new("hunter2")))
        .serve()
        .await;
    let tools = json!([{"type": "haft:echo"}, function("mine")]);
    let mut ids = Vec::new();
    for _ in 0..3 {
        let body = json!({
            "input": "hunter2", "tools": tools, "instructions": "hunter2",
            "metadata": {"note": "hunter2"}, "safety_identifier": "hunter2",
        });
        let request = server
            .posting("/responses", &body)
            .bearer_auth("hunter2")
            .header("x-secret", "hunter2")
            .header("cookie", "hunter2")
            .header("traceparent", "hunter2")
            .header("x-request-id", "hunter2 is not sane");
        let answer = server.send(request).await;
        ids.push(answer.body["id"].clone());
    }
    // A wrong key is somebody's right key elsewhere.
    let wrong = server
        .request("GET", "/models")
        .bearer_auth("hunter2-and-more");
    assert_eq!(server.send(wrong).await.status, 401);
    for id in &ids {
        let Some(id) = id.as_str() else { continue };
        let trace = server.request("GET", &format!("/responses/{id}/trace"));
        let trace = server.send(trace.bearer_auth("hunter2")).await.ok();
        assert!(!trace.to_string().contains("hunter2"), "{trace:#}");
    }
    let metrics = server.metrics_text().await;
    assert!(!metrics.contains("hunter2"), "{metrics}");
    let own = own_lines(&log.text());
    assert!(own.lines().count() > 5, "{own}");
    assert!(!own.contains("hunter2"), "{own}");
}

/// The lines of this program; what libraries say at their lowest levels is theirs.
fn own_lines(text: &str) -> String {
    let own = text.lines().filter(|line| line.contains("haft"));
    own.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn keys_of_providers_are_nowhere() {
    let log = Log::of("warn,haft=trace");
    for kind in BACKENDS {
        let failing = fault(
            Fault::status(401).with_body(json!({"error": {"message": "bad key secret-key"}})),
        );
        let provider = backend([failing]).await;
        let server = kind.setup(&provider).serve().await;
        let answer = server.post("/responses", json!({"input": "hi"})).await;
        assert_ne!(answer.status, 200);
        assert!(!server.metrics_text().await.contains("secret-key"));
    }
    assert!(!log.text().contains("secret-key"), "{}", log.text());
}

#[tokio::test]
async fn metrics_are_for_this_machine_for_keys_or_for_everybody() {
    let model = || ScriptedModel::new(vec![]);
    let keyed = || {
        let setup = Setup::of(model());
        setup.options(|options| options.api_key = Some(ApiKey::new("hunter2")))
    };
    let server = keyed().serve().await;
    let address = server.beside("/metrics");
    let status = |request: reqwest::RequestBuilder| async {
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(
        status(client().get(&address)).await,
        200,
        "from this machine"
    );
    // Whoever comes through a proxy on this machine comes from anywhere.
    let passed_on = || {
        client()
            .get(&address)
            .header("x-forwarded-for", "192.0.2.1")
    };
    assert_eq!(status(passed_on()).await, 401);
    assert_eq!(status(passed_on().bearer_auth("wrong")).await, 401);
    assert_eq!(status(passed_on().bearer_auth("hunter2")).await, 200);
    assert_eq!(status(client().post(&address)).await, 405);
    // So does a page in a browser, by a name of its own, and a proxy that says no more than that.
    for (name, value) in [
        ("host", "evil.example"),
        ("origin", "http://evil.example"),
        ("cf-connecting-ip", "192.0.2.1"),
        ("x-forwarded-proto", "https"),
    ] {
        let led_here = client().get(&address).header(name, value);
        assert_eq!(status(led_here).await, 401, "{name}");
    }

    let open = keyed().options(|options| options.watch.public_metrics = true);
    let server = open.serve().await;
    let address = server.beside("/metrics");
    let passed_on = client().get(&address).header("forwarded", "for=192.0.2.1");
    assert_eq!(status(passed_on).await, 200);

    let off = keyed().options(|options| options.watch.metrics = false);
    let server = off.serve().await;
    let address = server.beside("/metrics");
    let with_key = client().get(&address).bearer_auth("hunter2");
    assert_eq!(status(with_key).await, 404, "there is none");
}
