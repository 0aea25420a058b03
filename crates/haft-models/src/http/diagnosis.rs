//! What an operator can do about a failed request: the usual mistakes in an entry and at a server.

use haft_core::{ModelError, ModelErrorKind};
use reqwest::header::{AUTHORIZATION, HeaderName};

use super::Endpoint;
use super::direct::TLS_RECORD;

/// The port that Ollama listens on unless it is told otherwise.
const OLLAMA_PORT: u16 = 11434;

/// A sentence of a server that tells that it is not set up for the request.
pub(super) struct KnownComplaint {
    /// What the server's message contains, in lower case.
    words: &'static str,
    /// What clients are told.
    pub(super) message: &'static str,
    /// What the operator is to do.
    pub(super) remedy: &'static str,
}

const COMPLAINTS: [KnownComplaint; 8] = [
    // vLLM, for `auto` and for `required`.
    KnownComplaint {
        words: "--tool-call-parser",
        message: "it does not accept tools",
        remedy: "start vLLM with `--enable-auto-tool-choice --tool-call-parser NAME`",
    },
    KnownComplaint {
        words: "--enable-auto-tool-choice",
        message: "it does not accept tools",
        remedy: "start vLLM with `--enable-auto-tool-choice --tool-call-parser NAME`",
    },
    // llama.cpp.
    KnownComplaint {
        words: "requires --jinja",
        message: "it does not accept tools",
        remedy: "start llama-server with `--jinja`",
    },
    // Ollama.
    KnownComplaint {
        words: "does not support tools",
        message: "the model cannot call tools",
        remedy: "set `model` to one that supports tools",
    },
    // OpenRouter.
    KnownComplaint {
        words: "no endpoints found that support tool use",
        message: "the model cannot call tools",
        remedy: "set `model` to one that supports tools",
    },
    // nginx, Go and Apache, on a port for TLS.
    KnownComplaint {
        words: "plain http request was sent to https port",
        message: TLS_MESSAGE,
        remedy: TLS_REMEDY,
    },
    KnownComplaint {
        words: "client sent an http request to an https server",
        message: TLS_MESSAGE,
        remedy: TLS_REMEDY,
    },
    KnownComplaint {
        words: "speaking plain http to an ssl-enabled server port",
        message: TLS_MESSAGE,
        remedy: TLS_REMEDY,
    },
];

const TLS_MESSAGE: &str = "it expects another protocol";
const TLS_REMEDY: &str = "the server speaks TLS there: begin `base_url` with `https://`";

/// The complaint in a server's message, if it is a known one.
pub(super) fn known_complaint(message: &str) -> Option<&'static KnownComplaint> {
    let message = message.to_lowercase();
    COMPLAINTS.iter().find(|it| message.contains(it.words))
}

/// Whether a server that knows no such thing means the model, not the path.
pub(super) fn is_about_model(message: &str) -> bool {
    message.to_lowercase().contains("model")
}

/// Adds to an error what its operator needs to know: where the request went, and the remedy.
pub(super) fn diagnosed(mut error: ModelError, endpoint: &Endpoint, path: &str) -> ModelError {
    let remedy = error.operator_note.take();
    let remedy = remedy.or_else(|| remedy_for(&error, endpoint, path));
    let url = shown_url(endpoint, path);
    let outcome = match error.status {
        Some(status) => format!("HTTP {status} from {url}"),
        None => format!("no answer from {url}"),
    };
    let note = match remedy {
        Some(remedy) => format!("{outcome}; {remedy}"),
        None => outcome,
    };
    error.with_operator_note(endpoint.redactor().clean(note))
}

/// Where a request went, without the query: it may hold a key.
fn shown_url(endpoint: &Endpoint, path: &str) -> String {
    let mut url = endpoint.url(path);
    url.set_query(None);
    url.into()
}

fn remedy_for(error: &ModelError, endpoint: &Endpoint, path: &str) -> Option<String> {
    match error.kind {
        ModelErrorKind::Unauthorized => Some(key_remedy(error, endpoint)),
        ModelErrorKind::NotFound
            if error.code.as_deref() == Some(super::failure::MODEL_NOT_FOUND) =>
        {
            Some(model_remedy(endpoint, path))
        }
        ModelErrorKind::NotFound => Some(address_remedy(endpoint, path)),
        ModelErrorKind::InvalidRequest => format_remedy(&error.message),
        ModelErrorKind::Unreachable => connection_remedy(&error.message),
        _ => None,
    }
}

fn key_remedy(error: &ModelError, endpoint: &Endpoint) -> String {
    let api_key = HeaderName::from_static("x-api-key");
    let has_key = [AUTHORIZATION, api_key]
        .iter()
        .any(|name| endpoint.headers().contains_key(name));
    match (has_key, error.status) {
        (false, _) => "no API key was sent: set `api_key_env` or `api_key_file`".into(),
        (true, Some(403)) => {
            "the API key may not use this model or address: check its permissions".into()
        }
        (true, _) => "the API key was rejected: check `api_key_env` or `api_key_file`".into(),
    }
}

fn model_remedy(endpoint: &Endpoint, path: &str) -> String {
    if path == "api/chat" {
        return "the server does not have the model: pull it (`ollama pull NAME`), or correct `model`".into();
    }
    let list = match path {
        "v1/messages" => "v1/models",
        _ => "models",
    };
    let list = shown_url(endpoint, list);
    format!("the server does not have the model: set `model` to a name that {list} lists")
}

/// What is wrong with an address where the API is not.
fn address_remedy(endpoint: &Endpoint, path: &str) -> String {
    let base = endpoint.base();
    let base = base.trim_end_matches('/');
    let is_ollama = endpoint.url("").port() == Some(OLLAMA_PORT);
    match path {
        "api/chat" if base.ends_with("/v1") || base.ends_with("/api") => {
            let root = base.rsplit_once('/').map_or(base, |(root, _)| root);
            format!("Ollama's own API begins at its root: set `base_url = \"{root}\"`")
        }
        "api/chat" => "the server is not Ollama: for others use `adapter = \"openai-chat\"`".into(),
        "chat/completions" | "responses" if !has_version(base) => {
            let root = base
                .strip_suffix("/api")
                .filter(|_| is_ollama)
                .unwrap_or(base);
            let ollama = if is_ollama {
                ", or use `adapter = \"ollama\"`"
            } else {
                ""
            };
            format!(
                "most servers have this API below `/v1`: set `base_url = \"{root}/v1\"`{ollama}"
            )
        }
        "responses" => {
            "the server may not have the Responses API: use `adapter = \"openai-chat\"`".into()
        }
        _ => "the API is not at this address: correct `base_url`".into(),
    }
}

/// Whether a segment of the path is a version: `v1`, `v1beta`.
fn has_version(base: &str) -> bool {
    let is_version = |segment: &str| {
        let mut chars = segment.chars();
        chars.next() == Some('v') && chars.next().is_some_and(|it| it.is_ascii_digit())
    };
    base.split('/').skip(3).any(is_version)
}

/// A server that refuses a schema beside tools.
fn format_remedy(message: &str) -> Option<String> {
    let message = message.to_lowercase();
    let names = |words: &[&str]| words.iter().any(|words| message.contains(words));
    let is_format = names(&[
        "response_format",
        "response format",
        "json mode",
        "response mime type",
    ]);
    (is_format && names(&["tool", "function"])).then(|| {
        "the server refuses a response format beside tools: set `capabilities = { \
         structured_output_with_tools = false }`"
            .into()
    })
}

fn connection_remedy(message: &str) -> Option<String> {
    let message = message.to_lowercase();
    let says = |words: &str| message.contains(words);
    let remedy = if says("connection refused") {
        "nothing listens there: start the server, or correct `base_url`"
    } else if says("invalidcontenttype") || says("corrupt message") {
        "the server does not speak TLS there: begin `base_url` with `http://`"
    } else if says("tls handshake eof") {
        "the server closed the connection during the TLS handshake: if it does not speak TLS, begin `base_url` \
         with `http://`"
    } else if says(&TLS_RECORD.to_lowercase()) {
        TLS_REMEDY
    } else if says("hung up before it answered") {
        "the server closed the connection without an answer: look at its log; if it speaks TLS there, begin \
         `base_url` with `https://`"
    } else if says("dns error") || says("failed to lookup") {
        "the host name is unknown: correct `base_url`"
    } else if says("invalid peer certificate") {
        certificate_remedy(&message)
    } else {
        return None;
    };
    Some(remedy.into())
}

/// What to do about a certificate that was rejected for this reason.
fn certificate_remedy(reason: &str) -> &'static str {
    if reason.contains("not valid for name") || reason.contains("notvalidforname") {
        "the server's certificate is for another host name: correct the host in `base_url`"
    } else if reason.contains("expired") {
        "the server's certificate has expired: renew it, or correct the clock of this system"
    } else {
        "this system does not trust the server's certificate: add its CA to the system's certificates"
    }
}

#[cfg(test)]
mod tests {
    use super::super::failure::of_body;
    use super::*;

    fn note(base: &str, path: &str, status: u16, body: &str) -> String {
        let endpoint = Endpoint::new(base).unwrap();
        let error = diagnosed(of_body(status, body.as_bytes()), &endpoint, path);
        error.operator_note.unwrap()
    }

    #[test]
    fn note_names_the_url_and_the_remedy() {
        let chat = "chat/completions";
        let nowhere = r#"{"detail":"Not Found"}"#;
        let no_model = r#"{"error":{"message":"The model `x` does not exist.","code":404}}"#;
        for (base, path, status, body, expected) in [
            (
                "http://h:8000",
                chat,
                404,
                nowhere,
                "HTTP 404 from http://h:8000/chat/completions; most servers have this API below `/v1`: \
                 set `base_url = \"http://h:8000/v1\"`",
            ),
            (
                "http://h:11434/api",
                chat,
                404,
                "404 page not found",
                "HTTP 404 from http://h:11434/api/chat/completions; most servers have this API below `/v1`: \
                 set `base_url = \"http://h:11434/v1\"`, or use `adapter = \"ollama\"`",
            ),
            (
                "http://h/v1",
                chat,
                404,
                nowhere,
                "HTTP 404 from http://h/v1/chat/completions; the API is not at this address: correct `base_url`",
            ),
            (
                "http://h/v1",
                "responses",
                404,
                nowhere,
                "HTTP 404 from http://h/v1/responses; the server may not have the Responses API: use \
                 `adapter = \"openai-chat\"`",
            ),
            (
                "http://h/v1",
                "api/chat",
                404,
                nowhere,
                "HTTP 404 from http://h/v1/api/chat; Ollama's own API begins at its root: set \
                 `base_url = \"http://h\"`",
            ),
            (
                "http://h/v1?key=hunter2-hunter2",
                chat,
                404,
                no_model,
                "HTTP 404 from http://h/v1/chat/completions; the server does not have the model: set `model` \
                 to a name that http://h/v1/models lists",
            ),
            (
                "http://h",
                "api/chat",
                404,
                r#"{"error":"model 'x' not found"}"#,
                "HTTP 404 from http://h/api/chat; the server does not have the model: pull it \
                 (`ollama pull NAME`), or correct `model`",
            ),
            (
                "http://h/v1",
                chat,
                401,
                "{}",
                "HTTP 401 from http://h/v1/chat/completions; no API key was sent: set `api_key_env` or \
                 `api_key_file`",
            ),
            (
                "http://h/v1",
                chat,
                400,
                r#"{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"}"#,
                "HTTP 400 from http://h/v1/chat/completions; start vLLM with `--enable-auto-tool-choice \
                 --tool-call-parser NAME`",
            ),
            (
                "http://h/v1",
                chat,
                500,
                r#"{"error":{"message":"tools param requires --jinja flag"}}"#,
                "HTTP 500 from http://h/v1/chat/completions; start llama-server with `--jinja`",
            ),
            (
                "http://h/v1",
                chat,
                400,
                r#"{"error":"json mode cannot be combined with tool calling"}"#,
                "HTTP 400 from http://h/v1/chat/completions; the server refuses a response format beside \
                 tools: set `capabilities = { structured_output_with_tools = false }`",
            ),
            (
                "http://h/v1",
                chat,
                500,
                "{}",
                "HTTP 500 from http://h/v1/chat/completions",
            ),
        ] {
            assert_eq!(note(base, path, status, body), expected);
        }
    }

    #[test]
    fn certificate_remedy_depends_on_the_reason() {
        for (reason, expected) in [
            (
                "invalid peer certificate: certificate not valid for name \"10.0.0.5\"; certificate is only valid \
                 for DnsName(\"gpu.internal\")",
                "another host name",
            ),
            (
                "invalid peer certificate: NotValidForName",
                "another host name",
            ),
            (
                "invalid peer certificate: certificate expired: verification time 3",
                "has expired",
            ),
            ("invalid peer certificate: UnknownIssuer", "add its CA"),
        ] {
            let remedy = connection_remedy(reason).unwrap();
            assert!(remedy.contains(expected), "{reason}: {remedy}");
        }
    }

    #[test]
    fn what_clients_read_of_a_server_that_is_not_set_up_names_no_options() {
        let body =
            r#"{"message":"tool_choice=\"required\" requires --tool-call-parser to be set"}"#;
        let endpoint = Endpoint::new("http://h/v1").unwrap();
        let error = diagnosed(of_body(400, body.as_bytes()), &endpoint, "chat/completions");
        assert_eq!(error.kind, ModelErrorKind::Misconfigured);
        assert_eq!(error.message, "it does not accept tools");
    }

    #[test]
    fn rejected_key_is_told_from_a_missing_one() {
        let endpoint = Endpoint::new("http://h/v1")
            .unwrap()
            .bearer("sk-hunter2".into())
            .unwrap();
        for (status, words) in [(401, "rejected"), (403, "permissions")] {
            let error = diagnosed(of_body(status, b"sk-hunter2"), &endpoint, "responses");
            let note = error.operator_note.unwrap();
            assert!(note.contains(words) && !note.contains("hunter2"), "{note}");
        }
    }
}
