//! Which servers a request may name, and what becomes of its secrets.

use haft_mcp::Approve;
use haft_models::ScriptedModel;
use haft_models::testing::{call, say};
use serde_json::{Value, json};

use super::server::{Fake, configured, setup};
use crate::support::{Setup, item_types};

#[tokio::test]
async fn addresses_that_the_operator_does_not_allow_are_refused() {
    let air = Fake::with(&["find"]).await;
    let model = ScriptedModel::new([]);
    // By default any public host is allowed, and nothing else.
    let served = Setup::of(model).serve().await;
    for url in [
        air.url(),
        "http://example.org/mcp".to_owned(),
        "https://127.0.0.1/mcp".to_owned(),
        "https://[::1]/mcp".to_owned(),
        "https://10.0.0.1/mcp".to_owned(),
        "https://169.254.169.254/latest".to_owned(),
        "https://2130706433/mcp".to_owned(),
        "https://user:hush@example.org/mcp".to_owned(),
        "file:///etc/passwd".to_owned(),
    ] {
        let tool = json!({"type": "mcp", "server_label": "air", "server_url": url});
        let answer = served
            .post("/responses", json!({"input": "go", "tools": [tool]}))
            .await;
        let expected = (400, "mcp_server_not_allowed", Some("tools[0].server_url"));
        assert_eq!(answer.error(), expected, "{url}");
        assert!(!answer.body.to_string().contains("hush"));
    }
    assert!(air.calls().is_empty());
    assert_eq!(air.lists(), 0);
}

#[tokio::test]
async fn an_internal_host_name_cannot_be_told_from_an_unknown_one() {
    let model = ScriptedModel::new([say("1"), say("2")]);
    let served = Setup::of(model).serve().await;
    let mut answers = Vec::new();
    for host in ["localhost", "no-such-host.invalid"] {
        let url = format!("https://{host}/mcp");
        let tool = json!({"type": "mcp", "server_label": "air", "server_url": url});
        let response = served.create(json!({"input": "go", "tools": [tool]})).await;
        let item = &response["output"][0];
        let error = item["error"].as_str().unwrap().replace(host, "HOST");
        answers.push((item["type"].clone(), item["status"].clone(), error));
    }
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test]
async fn credentials_reach_their_server_and_nobody_else() {
    let air = Fake::with(&["find"]).await;
    let directory = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new([
        call("air__find", json!({})),
        say("done"),
        call("air__find", json!({})),
        say("done"),
    ]);
    let served = setup(model.clone(), &[&air])
        .on_disk(directory.path())
        .serve()
        .await;
    let mut entry = air.entry("air");
    entry["server_url"] = format!("{}?token=hush-query", air.url()).into();
    entry["authorization"] = "hush-token".into();
    entry["headers"] = json!({"X-Org": "hush-header"});
    for is_background in [false, true] {
        let body = json!({"input": "go", "tools": [entry], "background": is_background});
        let response = served.create(body).await;
        let response = served.settled(&response["id"]).await;
        let shown = &response["tools"][0];
        assert_eq!(shown["server_url"], air.origin());
        assert_eq!(
            (&shown["headers"], &shown["authorization"]),
            (&Value::Null, &Value::Null)
        );
        assert!(!response.to_string().contains("hush"), "{response:#}");
        let path = format!("/responses/{}/trace", response["id"].as_str().unwrap());
        let trace = served.get(&path).await;
        assert_eq!(trace.status, 200);
        assert!(!trace.body.to_string().contains("hush"));
    }
    let sent = air.calls();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0].headers["authorization"], "Bearer hush-token");
    assert_eq!(sent[0].headers["x-org"], "hush-header");
    assert!(!format!("{:?}", model.received()).contains("hush"));
    served.stop().await;
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let is_in = bytes.windows(5).any(|window| window == b"hush-");
        assert!(!is_in, "a secret is on disk");
    }
}

#[tokio::test]
async fn a_configured_server_is_named_by_its_label_alone() {
    let air = Fake::with(&["find"]).await;
    let model = ScriptedModel::new([call("air__find", json!({"q": "x"})), say("done")]);
    let served = configured(model, vec![air.settings("air", Approve::Never)])
        .serve()
        .await;
    let tool = json!({"type": "mcp", "server_label": "air"});
    let response = served.create(json!({"input": "go", "tools": [tool]})).await;
    assert_eq!(
        item_types(&response),
        ["mcp_list_tools", "mcp_call", "message"]
    );
    assert_eq!(response["output"][1]["output"], "find: x");
    // A plain request does not hear of it.
    let model = ScriptedModel::new([say("plain")]);
    let served = configured(model.clone(), vec![air.settings("air", Approve::Never)])
        .serve()
        .await;
    served.create(json!({"input": "go"})).await;
    assert!(model.received()[0].tools.iter().next().is_none());
}

#[tokio::test]
async fn a_request_may_tighten_what_the_operator_decided_and_never_loosen_it() {
    let air = Fake::with(&["find"]).await;
    for (operator, request, asks) in [
        (Approve::Never, Value::Null, false),
        (Approve::Never, json!("always"), true),
        (
            Approve::Never,
            json!({"always": {"tool_names": ["find"]}}),
            true,
        ),
        (
            Approve::Never,
            json!({"never": {"tool_names": ["find"]}}),
            false,
        ),
        (
            Approve::Never,
            json!({"never": {"tool_names": ["other"]}}),
            true,
        ),
        (Approve::Always, Value::Null, true),
        (Approve::Always, json!("never"), true),
        (
            Approve::Always,
            json!({"never": {"tool_names": ["find"]}}),
            true,
        ),
    ] {
        let model = ScriptedModel::new([call("air__find", json!({})), say("done")]);
        let served = configured(model, vec![air.settings("air", operator)])
            .serve()
            .await;
        let mut tool = json!({"type": "mcp", "server_label": "air"});
        tool["require_approval"] = request.clone();
        let response = served.create(json!({"input": "go", "tools": [tool]})).await;
        let expected = if asks {
            "mcp_approval_request"
        } else {
            "mcp_call"
        };
        assert_eq!(item_types(&response)[1], expected, "{operator:?} {request}");
    }
    // Of a server that a request brings along, it decides by itself; in doubt somebody is asked.
    for (request, asks) in [
        (Value::Null, true),
        (json!("always"), true),
        (json!("never"), false),
    ] {
        let model = ScriptedModel::new([call("air__find", json!({})), say("done")]);
        let served = setup(model, &[&air]).serve().await;
        let mut tool = air.entry("air");
        tool["require_approval"] = request.clone();
        let response = served.create(json!({"input": "go", "tools": [tool]})).await;
        let expected = if asks {
            "mcp_approval_request"
        } else {
            "mcp_call"
        };
        assert_eq!(item_types(&response)[1], expected, "{request}");
    }
}

#[tokio::test]
async fn headers_of_messages_and_of_the_protocol_are_not_the_clients() {
    let air = Fake::with(&["find"]).await;
    let served = setup(ScriptedModel::new([]), &[&air]).serve().await;
    for name in [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "Mcp-Session-Id",
    ] {
        let mut entry = air.entry("air");
        entry["headers"] = json!({name: "1"});
        let body = json!({"input": "go", "tools": [entry]});
        let answer = served.post("/responses", body).await;
        let at = format!("tools[0].headers.{name}");
        assert_eq!(answer.error(), (400, "invalid_value", Some(at.as_str())));
    }
    assert_eq!(air.lists(), 0);
}

#[tokio::test]
async fn a_request_names_so_many_servers_and_no_more() {
    let air = Fake::with(&["find"]).await;
    let served = setup(ScriptedModel::new([]), &[&air]).serve().await;
    let entries: Vec<_> = (0..65).map(|it| air.entry(&format!("air{it}"))).collect();
    let body = json!({"input": "go", "tools": entries});
    let answer = served.post("/responses", body).await;
    assert_eq!(answer.error(), (400, "invalid_value", Some("tools")));
    assert_eq!(air.lists(), 0);
}
