//! Several backends behind one model: who answers, what is said of it, and how often each is asked.

use std::sync::Arc;
use std::time::Duration;

use haft_core::Model;
use haft_engine::{Backoff, End, Run};
use haft_models::pool::{BreakerSettings, Member, Pool};
use haft_models::testing::{Fault, ScriptedServer, Step, call, fail, fault, say};
use haft_models::{Anthropic, Backend, OpenAiChat, ScriptedModel};
use haft_server::ModelEntry;
use serde_json::json;

use crate::support::{Setup, backend, last};
use crate::tools::echo;

fn breaker(failures: u32) -> BreakerSettings {
    BreakerSettings {
        failures,
        ..BreakerSettings::default()
    }
}

fn chat(name: &'static str, server: &ScriptedServer) -> Arc<Member> {
    let model = OpenAiChat::new(name)
        .base_url(&server.base_url())
        .api_key("secret-key");
    let member = Member::new(name, Backend::from(Arc::new(model)));
    Arc::new(member.breaker(breaker(3)))
}

fn anthropic(name: &'static str, server: &ScriptedServer) -> Arc<Member> {
    let model = Anthropic::new(name)
        .base_url(&server.url())
        .api_key("secret-key");
    let model: Arc<dyn Model> = Arc::new(model);
    let member = Member::new(name, Backend::from(model));
    Arc::new(member.breaker(breaker(3)))
}

/// A server whose only model has these backends.
fn setup(first: Arc<Member>, others: impl IntoIterator<Item = Arc<Member>>) -> Setup {
    let pool = Pool::new(first, others);
    let mut setup = Setup::of(ScriptedModel::new([] as [Step; 0]));
    setup.models = vec![ModelEntry::from_pool("default", [], pool)];
    setup
}

#[tokio::test]
async fn a_response_says_who_stood_in() {
    let near = backend([fail(500), fail(503), say("near")]).await;
    let far = backend([say("far"), say("far")]).await;
    let served = setup(chat("near", &near), [chat("far", &far)])
        .serve()
        .await;
    let answer = served.post("/responses", json!({"input": "hi"})).await;
    assert_eq!(answer.header("haft-model"), Some("far"));
    let body = answer.ok();
    assert_eq!(body["output"][0]["content"][0]["text"], "far");
    assert_eq!(body["model"], "default", "as it was asked for");
    let streamed = json!({"input": "hi", "stream": true});
    let streamed = served.post("/responses", streamed).await;
    assert_eq!(streamed.header("haft-model"), Some("far"));
    let answer = served.post("/responses", json!({"input": "hi"})).await;
    assert_eq!(answer.header("haft-model"), None, "the first one answered");
    assert_eq!(answer.ok()["output"][0]["content"][0]["text"], "near");
    near.assert_finished();
    far.assert_finished();
}

#[tokio::test]
async fn a_run_that_changed_backends_says_so_and_stays() {
    let near = backend([call("echo", r#"{"text":"a"}"#), fail(500)]).await;
    let far = backend([call("echo", r#"{"text":"b"}"#), say("done")]).await;
    let setup = setup(chat("near", &near), [chat("far", &far)]).tools([echo("echo").0]);
    let served = setup.serve().await;
    let body = json!({"input": "hi", "tools": [{"type": "haft:echo"}]});
    let answer = served.post("/responses", body).await;
    assert_eq!(answer.header("haft-model"), Some("near, far"));
    assert_eq!(answer.ok()["status"], "completed");
    near.assert_finished();
    far.assert_finished();
}

#[tokio::test]
async fn every_backend_is_asked_as_often_as_it_must_and_no_more() {
    let (near, far) = (
        backend([fail(500).forever()]).await,
        backend([fail(502).forever()]).await,
    );
    let mut setup = setup(chat("near", &near), [chat("far", &far)]);
    setup.options.loop_options.retry = Backoff {
        attempts: 5,
        base: Duration::from_millis(1),
        cap: Duration::from_millis(5),
        total: Duration::from_secs(5),
    };
    let served = setup.serve().await;
    let counts = || (near.received().len(), far.received().len());
    // Three attempts reach both; the fourth finds them left alone for longer than it would wait.
    let answer = served.post("/responses", json!({"input": "hi"})).await;
    assert_eq!(answer.error(), (502, "backend_unreachable", None));
    assert_eq!(counts(), (3, 3));
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=10).contains(&wait), "{wait}");
    for _ in 0..5 {
        let answer = served.post("/responses", json!({"input": "hi"})).await;
        assert_eq!(answer.error().0, 502);
        let answer = served.post("/chat/completions", chat_body()).await;
        assert_eq!(answer.error().0, 502);
    }
    assert_eq!(counts(), (3, 3), "nobody asks those who are left alone");
}

fn chat_body() -> serde_json::Value {
    json!({"messages": [{"role": "user", "content": "hi"}]})
}

/// The loop's own patience and that of the breakers, with a clock that only they move.
#[tokio::test(start_paused = true)]
async fn breakers_and_retries_do_not_add_up_to_minutes() {
    let failing = || ScriptedModel::new([fail(500).forever()]);
    let (near, far) = (failing(), failing());
    let member = |name: &'static str, model: &ScriptedModel| {
        let model: Arc<dyn Model> = Arc::new(model.clone());
        Arc::new(Member::new(name, Backend::from(model)).breaker(BreakerSettings::default()))
    };
    let pool = Arc::new(Pool::new(member("near", &near), [member("far", &far)]));
    // Five attempts open both; then one trial or two fit into the time that a request is given.
    for (expected, most) in [(5..=5, 30), (6..=7, 31)] {
        let began = tokio::time::Instant::now();
        let outcome = Run::new(Arc::clone(&pool)).user("hi").await.unwrap();
        assert!(matches!(outcome.end, End::Failed { .. }));
        let took = began.elapsed().as_secs();
        assert!(took <= most, "{took} seconds");
        let (near, far) = (near.received().len(), far.received().len());
        assert!(expected.contains(&near) && near == far, "{near} {far}");
    }
}

#[tokio::test]
async fn chat_completions_go_to_the_next_as_bytes_or_in_other_words() {
    for is_streamed in [false, true] {
        let mut body = chat_body();
        body["stream"] = is_streamed.into();
        body["seed"] = 7.into();
        let near = backend([fail(500)]).await;
        let far = backend([say("far")]).await;
        let served = setup(chat("near", &near), [chat("far", &far)])
            .serve()
            .await;
        let answer = served.post("/chat/completions", body.clone()).await;
        assert_eq!(answer.header("haft-model"), Some("far"));
        assert!(answer.ok().to_string().contains("far"));
        assert_eq!(far.received()[0].body["seed"], 7, "passed on as it is");

        body.as_object_mut().unwrap().remove("seed");
        let near = backend([fail(500), fail(400)]).await;
        let other = backend([say("other")]).await;
        let served = setup(chat("near", &near), [anthropic("other", &other)]);
        let served = served.serve().await;
        let answer = served.post("/chat/completions", body.clone()).await;
        assert_eq!(answer.header("haft-model"), Some("other"));
        let text = answer.ok().to_string();
        assert!(text.contains("other") && text.contains("chat.completion"));
        let refused = served.post("/chat/completions", body).await;
        assert_eq!(refused.status, 400, "it would be refused there, too");
        other.assert_finished();
    }
}

#[tokio::test]
async fn a_stream_that_has_begun_fails_where_it_is() {
    let cut = say("some words").fault(Fault::CutAfterEvents(2));
    let near = backend([cut]).await;
    let far = backend([say("never asked")]).await;
    let served = setup(chat("near", &near), [chat("far", &far)])
        .serve()
        .await;
    let events = served.stream(json!({"input": "hi"})).await;
    assert_eq!(last(&events)["status"], "failed");
    assert!(far.received().is_empty());
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_every_backend() {
    let near = backend([fault(Fault::Hang)]).await;
    let far = backend([say("never asked")]).await;
    let served = setup(chat("near", &near), [chat("far", &far)])
        .serve()
        .await;
    let request = served.posting("/responses", &json!({"input": "hi"}));
    let gone = tokio::time::timeout(Duration::from_millis(300), request.send()).await;
    assert!(gone.is_err());
    served.stop().await;
    assert_eq!((near.received().len(), far.received().len()), (1, 0));
}

#[tokio::test]
async fn models_are_listed_under_their_aliases_too() {
    let mut setup = Setup::of(ScriptedModel::new([say("hi"), say("hi")]));
    let model = ScriptedModel::new([say("hi")]);
    let backend = Backend::from(Arc::new(model) as Arc<dyn Model>);
    let aliases = ["gpt-5".to_owned(), "fast".to_owned()];
    let entry = ModelEntry::from_backend("local", aliases, backend);
    setup.models.push(entry);
    let served = setup.serve().await;
    let list = served.get("/models").await.ok();
    let models = list["data"].as_array().unwrap();
    let ids: Vec<_> = models.iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["default", "local", "gpt-5", "fast"]);
    for id in ids {
        // A client that looks for a model by a name finds that name.
        let path = format!("/models/{}", id.as_str().unwrap());
        let model = served.get(&path).await.ok();
        assert!(models.contains(&model), "{model}");
        assert_eq!(model["id"], *id);
    }
    let unknown = served.get("/models/gpt-4").await;
    assert_eq!(unknown.error().1, "model_not_found");
    let message = unknown.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("gpt-5"), "{message}");
}
