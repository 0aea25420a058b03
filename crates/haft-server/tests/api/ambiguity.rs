//! Requests that two readers could understand differently.

use haft_models::testing::say;
use serde_json::json;

use crate::raw::Raw;
use crate::support::serve;

#[tokio::test]
async fn second_host_header_is_rejected_on_every_path() {
    let (served, model) = serve([say("hello").forever()]).await;
    for path in ["/v1/responses", "/v1/models", "/healthz", "/metrics"] {
        let mut raw = Raw::connect(&served).await;
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n"
        );
        raw.send(head.as_bytes()).await;
        let head = raw.head().await;
        assert_eq!(head[0], "http/1.1 400 bad request", "{path}");
        assert!(head.iter().any(|line| line.starts_with("x-request-id: ")));
    }
    assert!(model.received().is_empty());
}

#[tokio::test]
async fn second_header_that_decides_about_the_answer_is_rejected() {
    let (served, model) = serve([say("hello").forever()]).await;
    for (name, first, second) in [
        ("Authorization", "Bearer one", "Bearer two"),
        ("Haft-Dialect", "openai", "open-responses"),
    ] {
        for second in [first, second] {
            let request = served.posting("/responses", &json!({"input": "go"}));
            let request = request.header(name, first).header(name, second);
            let answer = served.send(request).await;
            assert_eq!(answer.error(), (400, "invalid_value", None), "{name}");
            let message = answer.body["error"]["message"].as_str().unwrap();
            assert!(message.contains(name), "{message}");
        }
    }
    assert!(model.received().is_empty());
}

#[tokio::test]
async fn compressed_body_is_rejected_instead_of_misread() {
    let (served, model) = serve([say("hello").forever()]).await;
    let body = json!({"input": "go"});
    for coding in ["gzip", "identity, br", "x-unknown"] {
        let request = served.posting("/responses", &body);
        let answer = served
            .send(request.header("content-encoding", coding))
            .await;
        assert_eq!(
            answer.error(),
            (415, "unsupported_content_type", None),
            "{coding}"
        );
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("Content-Encoding"), "{message}");
    }
    assert!(model.received().is_empty());
    let request = served.posting("/responses", &body);
    let answer = served
        .send(request.header("content-encoding", "Identity"))
        .await;
    answer.ok();
}
