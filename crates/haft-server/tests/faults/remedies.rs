//! Mistakes of an operator about a backend: the log names the URL and the remedy, clients learn neither.

use std::sync::Arc;

use haft_core::Model;
use haft_models::{Ollama, OpenAiChat, OpenAiResponses};
use serde_json::json;
use tokio::net::TcpListener;

use crate::adapter::{Adapter, Silence};
use crate::backend::{Behaviour, End, FaultyBackend};
use crate::door::{Door, ask};
use crate::matrix::{serve, stop_at_once};
use crate::support::Served;
use crate::tls::untrusted;
use crate::{KEY, log};

/// The host of every backend here that exists.
const HOST: &str = "127.0.0.1";

impl Adapter {
    /// Where the adapter of a backend at this root sends its requests.
    fn url(self, root: &str) -> String {
        let path = match self {
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Anthropic => "/v1/messages",
            Self::Ollama => "/api/chat",
        };
        format!("{root}{path}")
    }
}

/// What the log must say, and what clients must get.
struct Expected<'a> {
    /// Where the requests go.
    url: &'a str,
    remedy: &'a str,
    /// The code of the client's error.
    code: &'a str,
    /// What clients must not read: addresses, names of hosts, ports.
    hidden: &'a [&'a str],
}

/// Sends a request by every door of a server in front of this model and checks error and log.
async fn check(model: Arc<dyn Model>, expected: &Expected<'_>) {
    let served = serve(model).await;
    let conversation = served.post("/conversations", json!({})).await.ok();
    let conversation = conversation["id"].as_str().unwrap();
    for door in Door::ALL {
        let before = warnings(expected).len();
        let told = ask(&served, door, conversation).await;
        assert_client(told.text(), expected, &format!("{door:?}"));
        let lines = warnings(expected);
        assert!(lines.len() > before, "{door:?}: {}", log_about(expected));
    }
    let before = warnings(expected).len();
    for is_streamed in [false, true] {
        let text = ask_chat(&served, is_streamed).await;
        assert_client(&text, expected, "Chat Completions");
    }
    let lines = warnings(expected);
    assert!(lines.len() > before + 1, "{}", log_about(expected));
    for line in lines {
        assert!(line.contains("backend=\"default\""), "{line}");
        assert!(!line.contains(KEY), "{line}");
    }
    stop_at_once(served).await;
}

/// Sends a Chat Completions request; all that came.
async fn ask_chat(served: &Served, is_streamed: bool) -> String {
    let body = json!({"messages": [{"role": "user", "content": "hi"}], "stream": is_streamed});
    let answer = served.post("/chat/completions", body).await;
    format!("{:?}\n{}", answer.headers, answer.body)
}

#[track_caller]
fn assert_client(text: &str, expected: &Expected<'_>, what: &str) {
    assert!(text.contains(expected.code), "{what}: {text}");
    let usual = [
        expected.url,
        expected.remedy,
        "base_url",
        "http://",
        "https://",
        HOST,
        "localhost",
        KEY,
    ];
    for hidden in usual.iter().chain(expected.hidden) {
        assert!(!text.contains(hidden), "{what} has `{hidden}`: {text}");
    }
}

/// The warnings that name the URL and the remedy.
fn warnings(expected: &Expected<'_>) -> Vec<String> {
    let text = log::text();
    let lines = text.lines().filter(|line| {
        // The URL ends there: it is not the beginning of a longer one.
        let names_url = line.contains(&format!(" from {};", expected.url));
        // The log escapes quotes in its values.
        let remedy = expected.remedy.replace('"', "\\\"");
        line.contains(" WARN ") && names_url && line.contains(&remedy)
    });
    lines.map(str::to_owned).collect()
}

/// All that the log has about the URL, for the message of a failed test.
fn log_about(expected: &Expected<'_>) -> String {
    let text = log::text();
    let lines = text.lines().filter(|line| line.contains(expected.url));
    let lines: Vec<_> = lines.collect();
    format!("no warning names `{}`: {lines:#?}", expected.remedy)
}

#[tokio::test]
async fn refused_connection_is_logged_with_its_remedy() {
    let listener = TcpListener::bind((HOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    drop(listener);
    for scheme in ["http", "https"] {
        for adapter in Adapter::ALL {
            let root = format!("{scheme}://{HOST}:{port}");
            let expected = Expected {
                url: &adapter.url(&root),
                remedy: "nothing listens there: start the server, or correct `base_url`",
                code: "backend_unreachable",
                hidden: &[&port],
            };
            check(adapter.model(&root, Silence::Nowhere), &expected).await;
        }
    }
}

#[tokio::test]
async fn https_to_a_plain_port_is_logged_with_its_remedy() {
    // Servers answer what is no request with 400, or close the connection.
    let answer = Behaviour::say(400, &[], "Invalid HTTP request received.", End::Close);
    for (behaviour, remedy) in [
        (
            answer,
            "the server does not speak TLS there: begin `base_url` with `http://`",
        ),
        (
            Behaviour::silent(End::Close),
            "the server closed the connection during the TLS handshake: if it does not speak TLS, begin \
             `base_url` with `http://`",
        ),
    ] {
        for adapter in Adapter::ALL {
            let backend = FaultyBackend::speaking_first(behaviour.clone()).await;
            let port = backend.address.port().to_string();
            let root = format!("https://{HOST}:{port}");
            let expected = Expected {
                url: &adapter.url(&root),
                remedy,
                code: "backend_unreachable",
                hidden: &[&port],
            };
            check(adapter.model(&root, Silence::Nowhere), &expected).await;
        }
    }
}

#[tokio::test]
async fn http_to_a_tls_port_is_logged_with_its_remedy() {
    for adapter in Adapter::ALL {
        let (port, _, _) = untrusted();
        let port = port.to_string();
        let root = format!("http://{HOST}:{port}");
        let expected = Expected {
            url: &adapter.url(&root),
            remedy: "the server speaks TLS there: begin `base_url` with `https://`",
            code: "backend_unreachable",
            hidden: &[&port],
        };
        check(adapter.model(&root, Silence::Nowhere), &expected).await;
    }
}

#[tokio::test]
async fn http_to_a_tls_port_that_answers_in_plain_text_is_logged_with_its_remedy() {
    for sentence in [
        // nginx, Go, Apache.
        "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>",
        "Client sent an HTTP request to an HTTPS server.\n",
        "Reason: You're speaking plain HTTP to an SSL-enabled server port.",
    ] {
        for adapter in Adapter::ALL {
            let behaviour = Behaviour::say(400, &[], sentence, End::Close);
            let backend = FaultyBackend::start(behaviour).await;
            let port = backend.address.port().to_string();
            let root = format!("http://{HOST}:{port}");
            let expected = Expected {
                url: &adapter.url(&root),
                remedy: "the server speaks TLS there: begin `base_url` with `https://`",
                code: "backend_misconfigured",
                hidden: &[&port],
            };
            check(adapter.model(&root, Silence::Nowhere), &expected).await;
        }
    }
}

#[tokio::test]
async fn connection_closed_without_an_answer_is_logged_with_its_remedy() {
    for adapter in Adapter::ALL {
        let backend = FaultyBackend::start(Behaviour::silent(End::Close)).await;
        let port = backend.address.port().to_string();
        let root = format!("http://{HOST}:{port}");
        let expected = Expected {
            url: &adapter.url(&root),
            remedy: "the server closed the connection without an answer: look at its log; if it speaks TLS \
                     there, begin `base_url` with `https://`",
            code: "backend_unreachable",
            hidden: &[&port],
        };
        check(adapter.model(&root, Silence::Nowhere), &expected).await;
    }
}

#[tokio::test]
async fn untrusted_certificate_is_logged_with_its_remedy() {
    for adapter in Adapter::ALL {
        let (port, _, _) = untrusted();
        let port = port.to_string();
        let root = format!("https://localhost:{port}");
        let expected = Expected {
            url: &adapter.url(&root),
            remedy: "this system does not trust the server's certificate: add its CA to the system's certificates",
            code: "backend_unreachable",
            hidden: &[&port],
        };
        check(adapter.model(&root, Silence::Nowhere), &expected).await;
    }
}

#[tokio::test]
async fn unknown_host_is_logged_with_its_remedy() {
    // A proxy would look the name up itself.
    let names = ["http_proxy", "https_proxy", "all_proxy"];
    let is_set = |name: &&str| {
        [(*name).to_owned(), name.to_uppercase()]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
    };
    if names.iter().any(is_set) {
        return;
    }
    // To look names up may take long: only one adapter each.
    for (scheme, adapter) in [("http", Adapter::Chat), ("https", Adapter::Responses)] {
        // RFC 6761: no such name exists.
        let root = format!("{scheme}://gpu-7.hidden.invalid:8000");
        let expected = Expected {
            url: &adapter.url(&root),
            remedy: "the host name is unknown: correct `base_url`",
            code: "backend_unreachable",
            hidden: &["gpu-7", "hidden", "8000"],
        };
        check(adapter.model(&root, Silence::Nowhere), &expected).await;
    }
}

#[tokio::test]
async fn base_url_without_the_version_is_logged_with_its_remedy() {
    for adapter in [Adapter::Chat, Adapter::Responses] {
        let behaviour = Behaviour::say(404, &[], r#"{"detail":"Not Found"}"#, End::Close);
        let backend = FaultyBackend::start(behaviour).await;
        let port = backend.address.port().to_string();
        let root = format!("http://{HOST}:{port}");
        let model: Arc<dyn Model> = match adapter {
            Adapter::Chat => Arc::new(OpenAiChat::new("m").base_url(&root).api_key(KEY)),
            _ => Arc::new(OpenAiResponses::new("m").base_url(&root).api_key(KEY)),
        };
        let expected = Expected {
            url: &adapter.url(&root).replace("/v1", ""),
            remedy: &format!(
                "most servers have this API below `/v1`: set `base_url = \"{root}/v1\"`"
            ),
            code: "backend_not_found",
            hidden: &[&port],
        };
        check(model, &expected).await;
    }
    // The other way round: Ollama's own API has no version.
    let behaviour = Behaviour::say(404, &[], "404 page not found", End::Close);
    let backend = FaultyBackend::start(behaviour).await;
    let port = backend.address.port().to_string();
    let root = format!("http://{HOST}:{port}");
    let model = Ollama::new("m")
        .base_url(&format!("{root}/v1"))
        .api_key(KEY);
    let expected = Expected {
        url: &Adapter::Ollama.url(&format!("{root}/v1")),
        remedy: &format!("Ollama's own API begins at its root: set `base_url = \"{root}\"`"),
        code: "backend_not_found",
        hidden: &[&port],
    };
    check(Arc::new(model), &expected).await;
}

#[tokio::test]
async fn vllm_without_tool_parsing_is_logged_with_its_remedy() {
    for adapter in [Adapter::Chat, Adapter::Responses] {
        for sentence in [
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
            "tool_choice=\"required\" requires --tool-call-parser to be set",
        ] {
            let body = json!({"object": "error", "message": sentence, "type": "BadRequestError",
                "param": null, "code": 400});
            let behaviour = Behaviour::say(400, &[], &body.to_string(), End::Close);
            let backend = FaultyBackend::start(behaviour).await;
            let port = backend.address.port().to_string();
            let root = format!("http://{HOST}:{port}");
            let expected = Expected {
                url: &adapter.url(&root),
                remedy: "start vLLM with `--enable-auto-tool-choice --tool-call-parser NAME`",
                code: "backend_misconfigured",
                hidden: &[&port, "--tool-call-parser", "vLLM"],
            };
            check(adapter.model(&root, Silence::Nowhere), &expected).await;
        }
    }
}
