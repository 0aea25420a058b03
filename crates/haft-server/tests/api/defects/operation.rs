//! Operation (lines 50 to 54).

use haft_models::ScriptedModel;
use haft_models::testing::{Fault, Step, call, say};
use haft_server::{ApiKey, ModelEntry};
use serde_json::{Value, json};

use crate::support::{BACKENDS, Setup, backend, item_types, last, serve};
use crate::tools::{echo, of_kind};

/// §11.50: each option of the server is wired; those with tests of their own are not repeated here.
#[tokio::test]
async fn what_the_operator_sets_has_an_effect() {
    let model = || ScriptedModel::new([say("ok").forever()]);
    // The key.
    let setup = Setup::of(model()).options(|options| options.api_key = Some(ApiKey::new("key")));
    let served = setup.serve().await;
    let body = json!({"input": "go"});
    assert_eq!(served.post("/responses", body.clone()).await.status, 401);
    let request = served.posting("/responses", &body).bearer_auth("key");
    assert_eq!(served.send(request).await.status, 200);
    // The default model and other names of a model.
    let mut setup = Setup::of(model());
    let mut second = ModelEntry::new("second", ScriptedModel::new([say("the second").forever()]));
    second.aliases.push("alias".into());
    setup.models.push(second);
    setup.options.default_model = Some("second".into());
    let served = setup.serve().await;
    let response = served.create(body.clone()).await;
    assert_eq!(response["output"][0]["content"][0]["text"], "the second");
    let named = served
        .create(json!({"input": "go", "model": "alias"}))
        .await;
    assert_eq!(named["model"], "second");
    // The size of bodies.
    let setup = Setup::of(model()).options(|options| options.max_body_bytes = 100);
    let served = setup.serve().await;
    let answer = served
        .post("/responses", json!({"input": "x".repeat(100)}))
        .await;
    assert_eq!(answer.error(), (413, "request_too_large", None));
    // The limits of the loop.
    let (tool, _) = echo("echo");
    let script = [
        call("echo", json!({"text": "a"})),
        call("echo", json!({"text": "b"})),
        say("that was it"),
    ];
    let setup = Setup::of(ScriptedModel::new(script)).tools([tool]);
    let setup = setup.options(|options| options.loop_options.max_rounds = 1);
    let served = setup.serve().await;
    let body = json!({"input": "go", "tools": [{"type": "haft:echo"}]});
    let response = served.create(body).await;
    assert_eq!(response["incomplete_details"]["reason"], "max_turns");
    // What is not provided.
    let setup = Setup::of(model()).options(|options| {
        options.unsupported_tools = haft_server::UnsupportedTools::Reject;
    });
    let served = setup.serve().await;
    let body = json!({"input": "go", "tools": [{"type": "web_search"}]});
    assert_eq!(
        served.post("/responses", body.clone()).await.error().1,
        "unsupported_tool"
    );
    let setup = Setup::of(model()).options(|options| {
        options.unsupported_tools = haft_server::UnsupportedTools::Ignore;
    });
    let served = setup.serve().await;
    let body = json!({"input": "go", "tools": [{"type": "file_search"}]});
    assert_eq!(served.post("/responses", body).await.status, 200);
}

/// §11.50: what cannot work is refused at the start, not with every request.
#[test]
fn a_limit_of_zero_is_refused_at_the_start() {
    let mut options = haft_server::ServerOptions::default();
    options.loop_options.max_rounds = 0;
    let store = std::sync::Arc::new(haft_store::MemoryStore::new());
    let built = haft_server::Server::builder(store)
        .model(ModelEntry::new("m", ScriptedModel::new([] as [Step; 0])))
        .options(options)
        .build();
    let error = built.err().expect("it was built");
    assert!(error.to_string().contains("max_rounds"), "{error}");
}

/// §11.52
#[tokio::test]
async fn a_failed_backend_is_an_error_and_no_success() {
    for kind in BACKENDS {
        for (fault, status, code) in [
            (Fault::status(500), 500, "model_error"),
            (Fault::status(503), 503, "server_is_overloaded"),
            (
                Fault::status(429).with_header("retry-after", "7"),
                429,
                "rate_limit_exceeded",
            ),
            (Fault::Html(502), 500, "model_error"),
            (Fault::Closed, 502, "backend_unreachable"),
        ] {
            for is_streamed in [false, true] {
                let behind = backend([Step::default().fault(fault.clone())]).await;
                let served = kind.setup(&behind).serve().await;
                let body = json!({"input": "go", "stream": is_streamed});
                let answer = served.post("/responses", body).await;
                let (told, told_code, _) = answer.error();
                assert_eq!(
                    (told, told_code),
                    (status, code),
                    "{kind:?} {fault:?} {is_streamed}"
                );
                assert_eq!(answer.header("content-type"), Some("application/json"));
                if status == 429 {
                    assert_eq!(answer.header("retry-after"), Some("7"));
                }
            }
        }
    }
}

/// §11.54
#[tokio::test]
async fn a_tool_under_a_slug_of_its_own_is_like_any_other() {
    let model = ScriptedModel::new([
        call("ledger", json!({"text": "7"})).with_id("call_a"),
        say("booked"),
        say("again"),
    ]);
    let setup = Setup::of(model.clone()).tools([of_kind("ledger", "acme:ledger")]);
    let served = setup.serve().await;
    let tools = json!([{"type": "acme:ledger"}]);
    let choice = json!({"type": "acme:ledger"});
    let events = served
        .stream(json!({"input": "go", "tools": tools, "tool_choice": choice}))
        .await;
    let response = last(&events);
    assert_eq!(item_types(response), ["acme:ledger", "message"]);
    let item = &response["output"][0];
    assert!(item["id"].as_str().unwrap().starts_with("acme_"), "{item}");
    assert_eq!(item["output"], "booked 7");
    assert_eq!(response["tools"], tools);
    // It can be sent back as it is.
    let input =
        json!([{"role": "user", "content": "go"}, item, {"role": "user", "content": "more"}]);
    served.create(json!({"input": input, "tools": tools})).await;
    let request = model.received()[2].clone();
    let told: Vec<_> = request
        .conversation
        .items()
        .map(haft_core::Item::kind)
        .collect();
    let expected = [
        "message",
        "function_call",
        "function_call_output",
        "message",
    ];
    assert_eq!(told, expected);
}

/// §11.54
#[tokio::test]
async fn a_slug_that_nobody_registered_is_refused_by_name() {
    let (served, _) = serve([]).await;
    let answer = served
        .post(
            "/responses",
            json!({"input": "go", "tools": [{"type": "acme:ledger"}]}),
        )
        .await;
    assert_eq!(
        answer.error(),
        (400, "unsupported_tool", Some("tools[0].type"))
    );
    let input = json!([{"type": "acme:ledger", "id": "acme_1"}]);
    let answer = served.post("/responses", json!({"input": input})).await;
    assert_eq!(
        answer.error(),
        (400, "unsupported_item_type", Some("input[0].type"))
    );
    let message = answer.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("acme:ledger"), "{message}");
}

/// §11.51 is kept in `state.rs`: cancel, resume and replay of background responses.
#[tokio::test]
async fn a_background_response_can_be_cancelled_and_read_again() {
    let script = [Step::default()
        .say("on and on")
        .fault(Fault::HangAfterEvents(3))];
    let (served, _) = serve(script).await;
    let queued = served
        .create(json!({"input": "go", "background": true}))
        .await;
    assert_eq!(queued["status"], "queued");
    let id = queued["id"].as_str().unwrap();
    let cancelled = served
        .post(&format!("/responses/{id}/cancel"), json!({}))
        .await
        .ok();
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(cancelled["output"], Value::Array(Vec::new()));
    let again = served
        .post(&format!("/responses/{id}/cancel"), json!({}))
        .await
        .ok();
    assert_eq!(again, cancelled);
}
