//! Backends are asked how they are.

use std::sync::Arc;
use std::time::Duration;

use haft_core::ModelErrorKind;
use haft_models::pool::{BreakerSettings, HealthSettings, Member, Pool, Standing, watch};
use haft_models::{Adapter, Backend, ModelConfig};

use super::common::server::{Ending, Reply, Server};
use super::{answer, quick};

const PATIENCE: Duration = Duration::from_secs(5);

fn backend(adapter: Adapter, base_url: &str) -> Backend {
    let mut config = ModelConfig::new("m", adapter);
    config.base_url = Some(base_url.to_owned());
    Backend::from_config(&config).unwrap()
}

#[tokio::test]
async fn every_adapter_asks_for_the_list_of_models() {
    for (adapter, base, path) in [
        (Adapter::OpenaiChat, "/v1", "/v1/models"),
        (Adapter::OpenaiResponses, "/v1", "/v1/models"),
        (Adapter::Anthropic, "", "/v1/models"),
        (Adapter::Anthropic, "/v1", "/v1/models"),
        (Adapter::Ollama, "", "/api/tags"),
    ] {
        let server = Server::start([Reply::json(200, "{}")]).await;
        let backend = backend(adapter, &format!("{}{base}", server.url));
        assert_eq!(backend.ping(PATIENCE).await, Some(Ok(())), "{adapter:?}");
        let request = server.request();
        assert_eq!((&*request.method, &*request.path), ("GET", path));
    }
    for adapter in [Adapter::Offline] {
        let backend = Backend::from_config(&ModelConfig::new("m", adapter)).unwrap();
        assert!(!backend.can_be_pinged());
        assert_eq!(backend.ping(PATIENCE).await, None);
    }
}

#[tokio::test]
async fn whoever_answers_is_there_unless_he_says_that_he_failed() {
    for (status, is_there) in [
        (200, true),
        (401, true),
        (404, true),
        (405, true),
        (429, true),
        (500, false),
        (502, false),
        (503, false),
    ] {
        let server = Server::start([Reply::json(status, "{}")]).await;
        let asked = backend(Adapter::OpenaiChat, &server.url)
            .ping(PATIENCE)
            .await;
        assert_eq!(asked.unwrap().is_ok(), is_there, "{status}");
    }
    let silent = Server::start([Reply::json(200, "{").ending(Ending::Silent)]).await;
    let backend = backend(Adapter::OpenaiChat, &silent.url);
    let asked = backend.ping(Duration::from_millis(50)).await.unwrap();
    assert_eq!(asked.unwrap_err().kind, ModelErrorKind::Timeout);
}

/// How a backend stands, as soon as that is so.
async fn until(member: &Member, wanted: impl Fn(Standing) -> bool) {
    let reached = async {
        while !wanted(member.standing()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let reached = tokio::time::timeout(PATIENCE, reached).await;
    assert!(reached.is_ok(), "it is still {:?}", member.standing());
}

#[tokio::test]
async fn a_probe_opens_and_closes_a_breaker_without_any_request() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let settings = HealthSettings {
        every: Duration::from_millis(100),
        timeout: Duration::from_secs(1),
    };
    let hours = BreakerSettings {
        open: Duration::from_hours(1),
        longest: Duration::from_hours(1),
        ..quick()
    };
    let backend = backend(Adapter::OpenaiChat, &format!("http://{address}/v1"));
    let member = Arc::new(Member::new("m", backend).breaker(hours).health(settings));
    let pool = Pool::new(Arc::clone(&member), []);
    let watching = tokio::spawn(watch([Arc::clone(&member)]));
    until(&member, |it| matches!(it, Standing::Open(_))).await;
    assert!(answer(&pool).await.unwrap_err().retry_after.is_some());

    let server = Server::start_at(address, [Reply::json(200, "{}")]).await;
    until(&member, |it| it == Standing::Ready).await;
    assert!(server.requests().iter().all(|it| it.method == "GET"));
    watching.abort();
    assert!(watching.await.unwrap_err().is_cancelled());
    assert_eq!(Arc::strong_count(&member), 2, "nobody holds it any more");
}

#[tokio::test]
async fn nobody_is_asked_who_is_not_to_be() {
    let server = Server::start([Reply::json(200, "{}")]).await;
    let member = Member::new("m", backend(Adapter::OpenaiChat, &server.url));
    watch([Arc::new(member)]).await;
    assert!(server.requests().is_empty());
}
