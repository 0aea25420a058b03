//! The access log: one line per request, whatever becomes of it.

use haft_models::testing::{Fault, say};
use serde_json::json;

use super::Log;
use crate::support::{Served, serve};

/// A line without what differs from time to time.
fn settled(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        words.push(match word.split_once('=') {
            Some((key @ ("ms" | "bytes"), _)) => format!("{key}=…"),
            Some(("response", id)) => {
                assert!(id.trim_matches('"').starts_with("resp_"), "{line}");
                "response=…".to_owned()
            }
            _ => word.to_owned(),
        });
    }
    words.join(" ")
}

async fn post(server: &Served, id: &str, body: serde_json::Value) -> u16 {
    let request = server
        .posting("/responses", &body)
        .header("x-request-id", id);
    server.send(request).await.status
}

#[tokio::test]
async fn a_request_leaves_one_line_with_everything_but_content() {
    let log = Log::of("warn,haft=info");
    let (server, _) = serve([say("hello there").usage(12, 5), say("hello")]).await;
    post(&server, "one", json!({"input": "hunter2"})).await;
    post(
        &server,
        "two",
        json!({"model": "gpt-hunter2", "input": "hi"}),
    )
    .await;
    post(
        &server,
        "three",
        json!({"input": "hunter2", "stream": true}),
    )
    .await;
    let hidden = server.request("GET", "/responses/resp_hunter2?after=hunter2");
    server.send(hidden.header("x-request-id", "four")).await;
    let nowhere = server.request("GET", "/hunter2");
    server.send(nowhere.header("x-request-id", "five")).await;
    let mut lines = Vec::new();
    for id in ["one", "two", "three", "four", "five"] {
        let line = log.line(&format!("request_id=\"{id}\"")).await;
        lines.push(settled(&line));
    }
    insta::assert_snapshot!(lines.join("\n"));
    let text = log.text();
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(
        text.lines()
            .filter(|line| line.contains("haft::access"))
            .count(),
        5
    );
}

#[tokio::test]
async fn a_stream_that_its_client_leaves_is_told_as_cut() {
    let log = Log::of("warn,haft=info");
    let (server, _) = serve([say("slowly").fault(Fault::HangAfterEvents(3))]).await;
    let body = json!({"input": "hi", "stream": true});
    let request = server
        .posting("/responses", &body)
        .header("x-request-id", "gone");
    let mut stream = request.send().await.unwrap();
    stream.chunk().await.unwrap().unwrap();
    assert!(!log.text().contains("haft::access"), "it is not over");
    drop(stream);
    let line = log.line("request_id=\"gone\"").await;
    assert!(
        line.contains("status=200") && line.contains("cut=true"),
        "{line}"
    );
}

#[tokio::test]
async fn a_client_that_goes_before_it_is_answered_leaves_a_line() {
    let log = Log::of("warn,haft=info");
    let (server, _) = serve([say("never").fault(Fault::Hang)]).await;
    let body = json!({"input": "hi"});
    let request = server
        .posting("/responses", &body)
        .header("x-request-id", "gone");
    let patience = std::time::Duration::from_millis(100);
    assert!(
        tokio::time::timeout(patience, request.send())
            .await
            .is_err()
    );
    let line = log.line("request_id=\"gone\"").await;
    assert!(line.contains("status=499"), "{line}");
}

#[tokio::test]
async fn it_can_be_switched_off() {
    let log = Log::of("warn,haft=info");
    let model = haft_models::ScriptedModel::new(vec![say("hi")]);
    let setup = crate::support::Setup::of(model);
    let server = setup
        .options(|options| options.watch.access_log = false)
        .serve()
        .await;
    post(&server, "quiet", json!({"input": "hi"})).await;
    assert!(!log.text().contains("quiet"), "{}", log.text());
}

#[tokio::test]
async fn every_line_inside_a_request_says_which_it_is() {
    use haft_core::{ToolDefinition, dynamic_tool};
    let log = Log::of("debug");
    let definition = ToolDefinition::builder("chatty")
        .parameters(json!({"type": "object"}))
        .build()
        .unwrap();
    let tool = dynamic_tool(definition, |_, _| async {
        tracing::warn!("a tool says something");
        tokio::task::yield_now().await;
        tracing::warn!("and something else");
        Ok("done")
    });
    let model = haft_models::ScriptedModel::new(vec![
        haft_models::testing::call("chatty", json!({})),
        say("hi"),
        haft_models::testing::call("chatty", json!({})),
        say("hi"),
    ]);
    let server = crate::support::Setup::of(model).tools([tool]).serve().await;
    let tools = json!([{"type": "haft:chatty"}]);
    post(&server, "near", json!({"input": "hi", "tools": tools})).await;
    let line = log.line("a tool says something").await;
    assert!(line.contains("request_id=\"near\""), "{line}");
    let line = log.line("and something else").await;
    assert!(line.contains("request_id=\"near\""), "{line}");
    let far = json!({"input": "hi", "tools": tools, "background": true});
    post(&server, "far", far).await;
    for _ in 0..200 {
        let text = log.text();
        let said = text.lines().filter(|line| line.contains("something"));
        if said.clone().count() == 4 {
            let far = said.filter(|line| line.contains("request_id=\"far\""));
            assert_eq!(far.count(), 2, "{text}");
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{}", log.text());
}
