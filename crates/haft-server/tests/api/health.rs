//! `/healthz` and `/readyz`.

use std::sync::Arc;
use std::time::Duration;

use haft_models::pool::{BreakerSettings, HealthSettings, Member, Pool};
use haft_models::testing::{Step, fail};
use haft_models::{Adapter, Backend, ModelConfig, ScriptedModel};
use haft_server::{ApiKey, ModelEntry};
use serde_json::{Value, json};

use crate::support::{Answer, Served, Setup, backend, client};

async fn probe(served: &Served, path: &str, key: Option<&str>) -> Answer {
    let root = served.base.trim_end_matches("/v1");
    let mut request = client().get(format!("{root}{path}"));
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    served.send(request).await
}

fn keyed(setup: Setup) -> Setup {
    setup.options(|options| options.api_key = Some(ApiKey::new("sk-ours")))
}

fn no_script() -> ScriptedModel {
    ScriptedModel::new([] as [Step; 0])
}

#[tokio::test]
async fn whoever_asks_hears_that_it_is_alive_and_ready_and_no_more() {
    let served = keyed(Setup::of(no_script())).serve().await;
    for key in [None, Some("sk-wrong"), Some("sk-ours")] {
        let alive = probe(&served, "/healthz", key).await;
        assert_eq!(alive.header("cache-control"), Some("no-store"));
        assert_eq!(alive.ok(), json!({"status": "ok"}));
    }
    for key in [None, Some("sk-wrong")] {
        let ready = probe(&served, "/readyz", key).await;
        assert_eq!(ready.ok(), json!({"status": "ready"}));
    }
    let parts =
        json!({"server": "ok", "store": "ok", "model": "ok", "backends": {"default": "ok"}});
    let ready = probe(&served, "/readyz", Some("sk-ours")).await;
    assert_eq!(ready.ok(), json!({"status": "ready", "parts": parts}));
}

#[cfg(unix)]
#[tokio::test]
async fn a_server_that_lets_nobody_in_because_it_cannot_read_its_keys_is_not_ready() {
    use std::os::unix::fs::PermissionsExt as _;
    let keys = crate::access::Keys::new();
    keys.add("ci", "team");
    let mut setup = Setup::of(no_script());
    setup.data_dir = Some(keys.folder().to_owned());
    let served = setup.serve().await;
    assert_eq!(probe(&served, "/readyz", None).await.status, 200);
    let chmod = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(keys.file().path(), mode).unwrap();
        // What is known of the file is believed for a second.
        tokio::time::sleep(Duration::from_millis(1_100))
    };
    // Whoever changes the mode changes the file's stamp by its content, too.
    keys.add("second", "team");
    chmod(0o644).await;
    let ready = probe(&served, "/readyz", None).await;
    assert_eq!(
        (ready.status, &ready.body["status"]),
        (503, &json!("not ready"))
    );
    chmod(0o600).await;
    assert_eq!(probe(&served, "/readyz", None).await.status, 200);
}

#[tokio::test]
async fn only_get_is_answered_and_the_rest_of_the_api_wants_its_key() {
    let served = keyed(Setup::of(no_script())).serve().await;
    let root = served.base.trim_end_matches("/v1");
    for path in ["/healthz", "/readyz"] {
        let posted = client().post(format!("{root}{path}"));
        assert_eq!(served.send(posted).await.status, 405);
        let headed = client().head(format!("{root}{path}"));
        assert_eq!(served.send(headed).await.status, 200);
    }
    assert_eq!(served.get("/models").await.status, 401);
    assert_eq!(probe(&served, "/healthz/", None).await.status, 401);
}

/// What is told with and without a key when it is not ready.
async fn not_ready(served: &Served) -> Value {
    let stranger = probe(served, "/readyz", None).await;
    assert_eq!(stranger.status, 503);
    assert_eq!(stranger.body, json!({"status": "not ready"}));
    let answer = probe(served, "/readyz", Some("sk-ours")).await;
    assert_eq!(answer.status, 503);
    answer.body["parts"].clone()
}

#[tokio::test]
async fn it_is_not_ready_while_no_backend_of_the_default_model_can_be_asked() {
    let near = backend([fail(500).forever()]).await;
    let far = backend([fail(500).forever()]).await;
    let member = |name: &'static str, base_url: String| {
        let mut config = ModelConfig::new(name, Adapter::OpenaiChat);
        config.base_url = Some(base_url);
        let settings = BreakerSettings {
            failures: 1,
            open: Duration::from_hours(1),
            longest: Duration::from_hours(1),
            ..BreakerSettings::default()
        };
        let backend = Backend::from_config(&config).unwrap();
        Arc::new(Member::new(name, backend).breaker(settings))
    };
    let pool = Pool::new(
        member("near", near.base_url()),
        [member("far", far.base_url())],
    );
    let mut setup = keyed(Setup::of(no_script()));
    setup.models = vec![
        ModelEntry::from_pool("main", [], pool),
        ModelEntry::new("other", no_script()),
    ];
    let served = setup.serve().await;
    let request = served.posting("/responses", &json!({"input": "hi"}));
    let asked = served.send(request.bearer_auth("sk-ours")).await;
    assert_eq!(asked.status, 500);
    let parts = not_ready(&served).await;
    let words = "all 2 backends of the default model are left alone";
    assert_eq!(parts["model"], words);
    let near = parts["backends"]["near"].as_str().unwrap();
    assert!(near.starts_with("left alone for 3"), "{near}");
    assert_eq!(parts["backends"]["other"], "ok");
    let text = parts.to_string();
    assert!(!text.contains("127.0.0.1") && !text.contains("script"));
}

#[tokio::test]
async fn it_becomes_ready_again_when_a_probe_finds_the_backend_well() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut config = ModelConfig::new("m", Adapter::OpenaiChat);
    config.base_url = Some(format!("http://{address}/v1"));
    let settings = BreakerSettings {
        failures: 2,
        open: Duration::from_hours(1),
        longest: Duration::from_hours(1),
        ..BreakerSettings::default()
    };
    let health = HealthSettings {
        every: Duration::from_millis(100),
        ..HealthSettings::default()
    };
    let made = Backend::from_config(&config).unwrap();
    let member = Member::new("m", made).breaker(settings).health(health);
    let mut setup = keyed(Setup::of(no_script()));
    let pool = Pool::new(Arc::new(member), []);
    setup.models = vec![ModelEntry::from_pool("m", [], pool)];
    let served = setup.serve().await;
    let until = async |status: u16| {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while probe(&served, "/readyz", None).await.status != status {
            assert!(tokio::time::Instant::now() < deadline);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    until(503).await;
    let words = "the backend of the default model is left alone";
    assert_eq!(not_ready(&served).await["model"], words);
    let listener = std::net::TcpListener::bind(address).unwrap();
    let answering = tokio::spawn(answer_everything(listener));
    until(200).await;
    answering.abort();
}

/// A server that has something for whoever asks.
async fn answer_everything(listener: std::net::TcpListener) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    loop {
        let (mut socket, _) = listener.accept().await.unwrap();
        let _ = socket.read(&mut [0; 4096]).await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
        let _ = socket.write_all(answer).await;
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_written_is_told() {
    let setup = Setup {
        store: Arc::new(crate::state::FullStore::default()),
        ..keyed(Setup::of(no_script()))
    };
    let served = setup.serve().await;
    let parts = not_ready(&served).await;
    assert_eq!(parts["store"], "it cannot be written");
    assert_eq!(parts["model"], "ok");
}
