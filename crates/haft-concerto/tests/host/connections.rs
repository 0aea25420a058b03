//! Connections (§16): who answers a model.

use std::sync::Arc;
use std::time::Duration;

use haft_concerto::host::{Entries, Setup};
use haft_concerto::natives::Grant;
use haft_models::testing::{Fault, Protocol, fault, say};
use haft_models::{Adapter, ModelConfig};

use crate::kit::{bodies, manifest, provider, stage};

const ASK: &str = r#"
    model M { provider: desk, base: "small" }
    match M.execute("go") { Ok(r) => emit("ok", r.text), Err(e) => emit("error", e) }
"#;

async fn printed(manifest: &str, program: &str, change: impl FnOnce(&mut Setup)) -> String {
    stage(manifest, program, change).run().await.unwrap()
}

fn project(rest: &str) -> String {
    format!("[project]\nname = \"test\"\n{rest}")
}

#[tokio::test]
async fn a_missing_key_is_an_error_and_never_a_mock() {
    let server = provider([say("not asked")]).await;
    let text = manifest(&server.base_url(), "").replace("DESK_KEY", "NO_KEY");
    assert_eq!(
        printed(&text, ASK, |_| {}).await,
        "[emit:error] connection 'desk': environment variable NO_KEY is not set\n"
    );
    assert_eq!(bodies(&server).len(), 0);
}

#[tokio::test]
async fn each_provider_speaks_its_protocol() {
    for (name, expected, address_is_root) in [
        ("openai", Protocol::ChatCompletions, false),
        ("openai", Protocol::ChatCompletions, true),
        ("custom", Protocol::ChatCompletions, true),
        ("google", Protocol::ChatCompletions, false),
        ("anthropic", Protocol::Messages, true),
        ("anthropic", Protocol::Messages, false),
        ("ollama", Protocol::Ollama, true),
        ("ollama", Protocol::Ollama, false),
    ] {
        let server = provider([say("hello")]).await;
        let address = if address_is_root {
            server.url()
        } else {
            server.base_url()
        };
        let text = manifest(&address, "").replace("\"openai\"", &format!("\"{name}\""));
        assert_eq!(
            printed(&text, ASK, |_| {}).await,
            "[emit:ok] hello\n",
            "{name}"
        );
        let received = server.received();
        assert_eq!(received[0].protocol, expected, "{name}");
        assert_eq!(received[0].body["model"], "small");
        server.assert_finished();
    }
}

#[tokio::test]
async fn the_key_is_sent_and_a_custom_server_may_need_none() {
    let server = provider([say("a"), say("b")]).await;
    printed(&manifest(&server.base_url(), ""), ASK, |_| {}).await;
    assert_eq!(
        server.received()[0].header("authorization"),
        Some("present")
    );
    let address = server.base_url();
    let text = project(&format!(
        "[connections.desk]\nprovider = \"custom\"\nbase_url = \"{address}\"\n"
    ));
    printed(&text, ASK, |_| {}).await;
    assert_eq!(server.received()[1].header("authorization"), None);
}

#[tokio::test]
async fn base_is_an_alias_a_name_or_the_connections_default() {
    let server = provider([say("x").forever()]).await;
    let more = "default_model = \"usual\"\n[connections.desk.models]\nfast = \"small-2\"\n";
    let text = manifest(&server.base_url(), more);
    let program = r#"
        model A { provider: desk, base: "fast" }
        model B { provider: desk, base: "other" }
        model C { provider: desk }
        A.execute("1"); B.execute("2"); C.execute("3");
    "#;
    printed(&text, program, |_| {}).await;
    let bodies = bodies(&server);
    let asked: Vec<_> = bodies
        .iter()
        .map(|it| it["model"].as_str().unwrap())
        .collect();
    assert_eq!(asked, ["small-2", "other", "usual"]);
    let text = manifest(&server.base_url(), "");
    let program = ASK.replace(", base: \"small\"", "");
    let printed = printed(&text, &program, |_| {}).await;
    assert!(
        printed.starts_with("[emit:error] connection 'desk': no model is named"),
        "{printed}"
    );
}

#[tokio::test]
async fn what_the_manifest_does_not_know_is_an_entry_of_the_configuration() {
    let server = provider([say("x").forever()]).await;
    let mut entry = ModelConfig::new("local", Adapter::OpenaiChat);
    entry.model = Some("usual".to_owned());
    entry.base_url = Some(server.base_url());
    let program = r#"
        model A { provider: local, base: "other" }
        model B { provider: local }
        A.execute("1"); B.execute("2");
    "#;
    let options = haft_concerto::Options {
        connections: haft_concerto::Connections::Known(vec!["local".to_owned()]),
        ..haft_concerto::Options::default()
    };
    let compiled = haft_concerto::compile(&haft_concerto::Source::new("t.conc", program), &options);
    let program = haft_concerto::load::load(compiled.ir.unwrap()).unwrap();
    let setup = Setup {
        models: Some(Arc::new(Entries::new(vec![entry]))),
        ..Setup::default()
    };
    let host = haft_concerto::host::Host::new(program, setup);
    host.run(Box::new(crate::kit::Printed::default()))
        .await
        .unwrap();
    let bodies = bodies(&server);
    let asked: Vec<_> = bodies
        .iter()
        .map(|it| it["model"].as_str().unwrap())
        .collect();
    assert_eq!(asked, ["other", "usual"]);
}

#[tokio::test]
async fn a_connection_that_is_not_the_manifests_gets_no_key_unless_that_is_allowed() {
    let server = provider([say("x").forever()]).await;
    let text = manifest(&server.base_url(), "");
    let said = printed(&text, ASK, |setup| setup.manifest = None).await;
    assert!(
        said.contains("permission denied: environment variable DESK_KEY"),
        "{said}"
    );
    let said = printed(&text, ASK, |setup| {
        setup.manifest = None;
        setup.permissions.env = Grant::Only(vec!["DESK_KEY".to_owned()]);
    })
    .await;
    assert_eq!(said, "[emit:ok] x\n");
}

#[tokio::test]
async fn the_mock_answers_where_it_is_told_to_and_asks_nobody() {
    let server = provider([]).await;
    let text = manifest(&server.base_url(), "");
    let program = include_str!("../programs/d.conc");
    let said = printed(&text, program, |setup| setup.mock = true).await;
    assert_eq!(said, include_str!("../programs/d.out"));
    let text = project("[connections.desk]\nprovider = \"mock\"\ndefault_model = \"m\"\n");
    let program = "model M { provider: desk } emit(\"m\", M.execute(\"hi\").unwrap().model);";
    assert_eq!(printed(&text, program, |_| {}).await, "[emit:m] m\n");
    assert_eq!(bodies(&server).len(), 0);
}

#[tokio::test]
async fn only_so_many_requests_are_under_way_at_a_connection() {
    for (more, expected) in [
        (
            "[connections.desk.rate_limit]\nconcurrent_requests = 1\n",
            1,
        ),
        (
            "[connections.desk.rate_limit]\nrequests_per_minute = 1\n",
            1,
        ),
        (
            "[connections.desk.rate_limit]\nconcurrent_requests = 2\n",
            2,
        ),
    ] {
        let server = provider([fault(Fault::Hang).forever()]).await;
        let stage = stage(&manifest(&server.base_url(), more), ASK, |_| {});
        let host = stage.host.clone();
        let waiting = async {
            while bodies(&server).is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            // Long enough for the other to come as well.
            tokio::time::sleep(Duration::from_millis(300)).await;
            host.cancel();
        };
        let (one, other, ()) = tokio::join!(
            stage.host.run(Box::new(stage.printed.clone())),
            stage.host.run(Box::new(stage.printed.clone())),
            waiting
        );
        assert!(one.is_err() && other.is_err());
        assert_eq!(bodies(&server).len(), expected, "{more}");
    }
}
