//! Chat Completions passed on as bytes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use haft_core::{ModelError, ModelErrorKind, Streaming};
use haft_models::http::Forwarded;
use haft_models::pool::{Member, Pool, Witness};
use haft_models::{Backend, OpenAiChat};
use serde_json::json;

use super::common::server::{Ending, Reply, Server};
use super::{Mood, Puppet, quick};

fn member(name: &'static str, server: &Server) -> Arc<Member> {
    let chat = OpenAiChat::new(name)
        .base_url(&format!("{}/v1", server.url))
        .api_key("sk-hunter22");
    let member = Member::new(name, Backend::from(Arc::new(chat)));
    Arc::new(member.breaker(quick()))
}

fn good() -> Reply {
    Reply::json(200, json!({"id": "r", "choices": []}))
}

fn refusal(status: u16) -> Reply {
    Reply::json(status, json!({"error": {"message": "no", "code": "x"}}))
}

fn page() -> Reply {
    Reply {
        headers: vec![("content-type".into(), "text/html; charset=utf-8".into())],
        ..Reply::json(200, "<html>nothing here</html>")
    }
}

fn body(name: &str) -> Bytes {
    json!({"model": name}).to_string().into()
}

async fn passed(pool: &Pool, streaming: Streaming) -> (Result<Forwarded, ModelError>, Witness) {
    let witness = Witness::default();
    let patience = Duration::from_secs(10);
    let answer = pool.forward(streaming, patience, body, &witness).await;
    (answer, witness)
}

async fn text(forwarded: Forwarded) -> Result<String, ModelError> {
    let mut text = String::new();
    let mut body = forwarded.body;
    while let Some(chunk) = body.next().await {
        text.push_str(std::str::from_utf8(&chunk?).unwrap());
    }
    Ok(text)
}

#[tokio::test]
async fn a_body_goes_to_the_next_under_its_own_name() {
    for (first, streaming) in [
        (refusal(500), Streaming::Whole),
        (refusal(429), Streaming::Whole),
        (refusal(401), Streaming::Pieces),
        (refusal(404), Streaming::Pieces),
        (good().ending(Ending::Broken), Streaming::Whole),
        (
            Reply::json(200, "").ending(Ending::Broken),
            Streaming::Pieces,
        ),
        (page(), Streaming::Whole),
        (page(), Streaming::Pieces),
    ] {
        let (near, far) = (Server::start([first]).await, Server::start([good()]).await);
        let pool = Pool::new(member("near", &near), [member("far", &far)]);
        let (answer, witness) = passed(&pool, streaming).await;
        let said = text(answer.unwrap()).await.unwrap();
        assert_eq!(said, r#"{"id":"r","choices":[]}"#);
        assert_eq!(witness.stand_ins().as_deref(), Some("far"));
        assert_eq!(near.request().json()["model"], "near");
        assert_eq!(far.request().json()["model"], "far");
    }
}

#[tokio::test]
async fn a_refusal_of_the_request_itself_is_passed_on_as_it_is() {
    for status in [400, 413, 422] {
        let near = Server::start([refusal(status)]).await;
        let far = Server::start([good()]).await;
        let pool = Pool::new(member("near", &near), [member("far", &far)]);
        let (answer, witness) = passed(&pool, Streaming::Whole).await;
        let answer = answer.unwrap();
        assert_eq!(answer.status, status);
        let said = text(answer).await.unwrap();
        assert_eq!(said, r#"{"error":{"message":"no","code":"x"}}"#);
        assert!(far.requests().is_empty() && witness.stand_ins().is_none());
    }
}

#[tokio::test]
async fn the_last_ones_refusal_is_passed_on_as_it_is() {
    let (near, far) = (
        Server::start([refusal(500)]).await,
        Server::start([refusal(429).header("retry-after", "7")]).await,
    );
    let pool = Pool::new(member("near", &near), [member("far", &far)]);
    let (answer, _) = passed(&pool, Streaming::Whole).await;
    let answer = answer.unwrap();
    assert_eq!(answer.status, 429);
    assert_eq!(answer.retry_after.unwrap().as_secs(), 7);
    let failure = answer.failure().unwrap();
    assert_eq!(failure.kind, ModelErrorKind::RateLimit);
}

#[tokio::test]
async fn a_stream_that_has_begun_is_not_begun_again() {
    let broken = Reply::sse("data: {}\n\n").ending(Ending::Broken);
    let near = Server::start([broken.clone(), broken]).await;
    let far = Server::start([good()]).await;
    let pool = Pool::new(member("near", &near), [member("far", &far)]);
    for _ in 0..2 {
        let (answer, _) = passed(&pool, Streaming::Pieces).await;
        let failure = text(answer.unwrap()).await.unwrap_err();
        assert_eq!(failure.kind, ModelErrorKind::Unreachable);
    }
    assert!(far.requests().is_empty());
    let (answer, witness) = passed(&pool, Streaming::Pieces).await;
    assert!(answer.unwrap().is_success());
    assert_eq!(
        witness.stand_ins().as_deref(),
        Some("far"),
        "two failures opened it"
    );
    assert_eq!(near.requests().len(), 2);
}

#[tokio::test]
async fn whoever_has_said_that_he_answers_is_not_waited_for_endlessly() {
    let silent = Reply::sse("").ending(Ending::Silent);
    let (near, far) = (Server::start([silent]).await, Server::start([good()]).await);
    let pool = Pool::new(member("near", &near), [member("far", &far)]);
    let witness = Witness::default();
    let patience = Duration::from_millis(20);
    let answer = pool.forward(Streaming::Pieces, patience, body, &witness);
    assert_eq!(answer.await.unwrap().status, 200);
    assert!(far.requests().is_empty() && witness.stand_ins().is_none());
}

#[tokio::test]
async fn those_who_speak_otherwise_are_left_for_a_translation() {
    let near = Server::start([refusal(500), refusal(400)]).await;
    let other = Puppet::new("other", Mood::Answers);
    let pool = Pool::new(member("near", &near), [other.member()]);
    assert!(pool.passes_chat());
    let (answer, _) = passed(&pool, Streaming::Whole).await;
    let answer = answer.unwrap();
    let beside = Arc::new(pool.beside_chat(answer.failure().unwrap()).unwrap());
    let (said, by) = super::heard(&beside).await;
    assert_eq!((said.unwrap(), by), ("other".into(), Some("other".into())));
    let (answer, _) = passed(&pool, Streaming::Whole).await;
    let answer = answer.unwrap();
    assert!(pool.beside_chat(answer.failure().unwrap()).is_none());
    assert!(!Pool::new(other.member(), [member("near", &near)]).passes_chat());
}

#[tokio::test]
async fn one_that_keeps_failing_is_not_asked() {
    let near = Server::start([refusal(500), refusal(500), good()]).await;
    let pool = Pool::new(member("near", &near), []);
    for _ in 0..2 {
        let (answer, _) = passed(&pool, Streaming::Whole).await;
        assert_eq!(answer.unwrap().status, 500);
    }
    let (answer, _) = passed(&pool, Streaming::Whole).await;
    let failure = answer.unwrap_err();
    assert_eq!(failure.kind, ModelErrorKind::Unreachable);
    assert!(failure.retry_after.is_some());
    assert_eq!(near.requests().len(), 2);
}
