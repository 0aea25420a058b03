//! A server that asks for authorization, and the authorization server beside it, on one port.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use haft_mcp::{Opener, Url};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::brain::{Brain, Sink};

/// What it does, for a test to change.
#[derive(Default)]
pub(crate) struct Behaviour {
    /// The scope without which no tool may be called.
    pub(crate) wants_scope: Option<&'static str>,
    /// Whether no scope is ever enough.
    pub(crate) is_never_content: bool,
    /// How long tokens last.
    pub(crate) expires_in: Option<u64>,
    /// What the token endpoint says to every request, in place of a token.
    pub(crate) token_error: Option<Value>,
    /// What the browser is sent back with, in place of a code.
    pub(crate) denial: Option<&'static str>,
    /// Where `/mcp` sends everybody.
    pub(crate) redirect: Option<String>,
    /// Who authorizes, if it is not this one; and under which path it does.
    pub(crate) issuer: Option<String>,
    /// Whether nobody can register.
    pub(crate) registers_nobody: bool,
}

#[derive(Default)]
struct Inside {
    behaviour: Behaviour,
    /// The tokens that are good, with their scopes.
    good: Vec<(String, String)>,
    good_refresh: Vec<String>,
    issued: usize,
    /// Every request: its path, its `authorization`, its body.
    seen: Vec<(String, String, String)>,
}

#[derive(Clone)]
pub(crate) struct Guarded {
    pub(crate) address: std::net::SocketAddr,
    inside: Arc<Mutex<Inside>>,
    brain: Brain,
}

impl Guarded {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let guarded = Self {
            address: listener.local_addr().unwrap(),
            inside: Arc::default(),
            brain: Brain::new(["modern"]),
        };
        let router = Router::new()
            .route(
                "/mcp",
                post(mcp).get(async || StatusCode::METHOD_NOT_ALLOWED),
            )
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route(
                "/.well-known/oauth-authorization-server/{*path}",
                get(metadata),
            )
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(guarded.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        guarded
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap()
    }

    pub(crate) fn url(&self) -> Url {
        Url::parse(&format!("{}/mcp", self.origin())).unwrap()
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    fn issuer(&self) -> String {
        let issuer = self.inside().behaviour.issuer.clone();
        issuer.unwrap_or_else(|| self.origin())
    }

    pub(crate) fn behave(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.inside().behaviour);
    }

    /// No token is good any more.
    pub(crate) fn revoke(&self) {
        self.inside().good.clear();
    }

    /// No token can be refreshed any more.
    pub(crate) fn revoke_refresh(&self) {
        self.inside().good_refresh.clear();
    }

    /// The bodies of requests to a path.
    pub(crate) fn seen(&self, path: &str) -> Vec<String> {
        let inside = self.inside();
        let seen = inside.seen.iter().filter(|(own, ..)| own == path);
        seen.map(|(.., body)| body.clone()).collect()
    }

    /// The `authorization` of every request to a path.
    pub(crate) fn authorizations(&self, path: &str) -> Vec<String> {
        let inside = self.inside();
        let seen = inside.seen.iter().filter(|(own, ..)| own == path);
        seen.map(|(_, authorization, _)| authorization.clone())
            .collect()
    }

    pub(crate) fn requests(&self) -> usize {
        self.inside().seen.len()
    }

    fn note(&self, uri: &Uri, headers: &HeaderMap, body: &[u8]) {
        let authorization = headers.get("authorization");
        let authorization = authorization.map_or("", |it| it.to_str().unwrap());
        self.inside().seen.push((
            uri.path().to_owned(),
            authorization.to_owned(),
            String::from_utf8_lossy(body).into_owned(),
        ));
    }

    fn issue(&self, scope: &str) -> Value {
        let mut inside = self.inside();
        inside.issued += 1;
        let (token, refresh) = (
            format!("access-{}", inside.issued),
            format!("refresh-{}", inside.issued),
        );
        inside.good.push((token.clone(), scope.to_owned()));
        inside.good_refresh.push(refresh.clone());
        let mut answer = json!({"access_token": token, "token_type": "Bearer", "refresh_token": refresh, "scope": scope, "id_token": "identity-token"});
        if let Some(seconds) = inside.behaviour.expires_in {
            answer["expires_in"] = seconds.into();
        }
        answer
    }
}

async fn mcp(State(server): State<Guarded>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    server.note(&uri, &headers, &body);
    let bearer = headers
        .get("authorization")
        .and_then(|it| it.to_str().ok()?.strip_prefix("Bearer "));
    let (scope, redirect, wanted) = {
        let inside = server.inside();
        let good = inside
            .good
            .iter()
            .find(|(token, _)| Some(token.as_str()) == bearer);
        (
            good.map(|(_, scope)| scope.clone()),
            inside.behaviour.redirect.clone(),
            (
                inside.behaviour.wants_scope,
                inside.behaviour.is_never_content,
            ),
        )
    };
    if let Some(to) = redirect {
        return (StatusCode::TEMPORARY_REDIRECT, [("location", to)]).into_response();
    }
    let metadata = format!(
        "resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"",
        server.origin()
    );
    let Some(scope) = scope else {
        let challenge = format!("Bearer {metadata}, scope=\"basic\"");
        return (StatusCode::UNAUTHORIZED, [("www-authenticate", challenge)]).into_response();
    };
    let message: Value = serde_json::from_slice(&body).unwrap();
    if let (Some(wanted), is_never_content) = wanted
        && message["method"] == "tools/call"
        && (is_never_content || !scope.split(' ').any(|own| own == wanted))
    {
        let challenge =
            format!("Bearer error=\"insufficient_scope\", scope=\"{wanted}\", {metadata}");
        return (StatusCode::FORBIDDEN, [("www-authenticate", challenge)]).into_response();
    }
    let (to, mut from) = mpsc::unbounded_channel();
    let sink: Sink = Arc::new(move |message| {
        let _ = to.send(message);
    });
    server.brain.hear(&message, &sink);
    drop(sink);
    match from.recv().await {
        Some(answer) => ([("content-type", "application/json")], answer).into_response(),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

async fn resource(State(server): State<Guarded>, uri: Uri, headers: HeaderMap) -> Response {
    server.note(&uri, &headers, &[]);
    axum::Json(json!({"resource": server.url(), "authorization_servers": [server.issuer()]}))
        .into_response()
}

async fn metadata(State(server): State<Guarded>, uri: Uri, headers: HeaderMap) -> Response {
    server.note(&uri, &headers, &[]);
    let origin = server.origin();
    let mut metadata = json!({
        "issuer": server.issuer(),
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": format!("{origin}/token"),
        "registration_endpoint": format!("{origin}/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
    });
    if server.inside().behaviour.registers_nobody {
        metadata
            .as_object_mut()
            .unwrap()
            .remove("registration_endpoint");
    }
    axum::Json(metadata).into_response()
}

async fn register(
    State(server): State<Guarded>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    server.note(&uri, &headers, &body);
    let mut registered: Value = serde_json::from_slice(&body).unwrap();
    registered["client_id"] = "registered-client".into();
    registered["client_secret"] = "registered-secret".into();
    (StatusCode::CREATED, axum::Json(registered)).into_response()
}

async fn authorize(
    State(server): State<Guarded>,
    uri: Uri,
    headers: HeaderMap,
    Query(query): Query<std::collections::HashMap<String, String>>,
) -> Response {
    server.note(&uri, &headers, uri.query().unwrap_or_default().as_bytes());
    let mut back = Url::parse(&query["redirect_uri"]).unwrap();
    let denial = server.inside().behaviour.denial;
    match denial {
        Some(error) => back.query_pairs_mut().append_pair("error", error),
        // The code says what it is good for.
        None => back
            .query_pairs_mut()
            .append_pair("code", &format!("code-{}", query["scope"])),
    };
    back.query_pairs_mut().append_pair("state", &query["state"]);
    (StatusCode::FOUND, [("location", back.to_string())]).into_response()
}

async fn token(
    State(server): State<Guarded>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    server.note(&uri, &headers, &body);
    if let Some(error) = server.inside().behaviour.token_error.clone() {
        return (StatusCode::BAD_REQUEST, axum::Json(error)).into_response();
    }
    let form: Vec<(String, String)> = Url::parse(&format!("x:?{}", String::from_utf8_lossy(&body)))
        .unwrap()
        .query_pairs()
        .into_owned()
        .collect();
    let value = |name: &str| {
        form.iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    };
    let refused = |error: &str| {
        (StatusCode::BAD_REQUEST, axum::Json(json!({"error": error}))).into_response()
    };
    match value("grant_type") {
        Some("authorization_code") => {
            let scope = value("code").and_then(|code| code.strip_prefix("code-"));
            match scope {
                Some(scope) if value("code_verifier").is_some() => {
                    axum::Json(server.issue(scope)).into_response()
                }
                _ => refused("invalid_grant"),
            }
        }
        Some("refresh_token") => {
            let used = value("refresh_token").unwrap_or_default();
            let is_good = {
                // Each is good once.
                let mut inside = server.inside();
                let before = inside.good_refresh.len();
                inside.good_refresh.retain(|good| good != used);
                before != inside.good_refresh.len()
            };
            if is_good {
                axum::Json(server.issue(value("scope").unwrap_or("basic"))).into_response()
            } else {
                refused("invalid_grant")
            }
        }
        Some("client_credentials") => {
            axum::Json(server.issue(value("scope").unwrap_or("basic"))).into_response()
        }
        _ => refused("unsupported_grant_type"),
    }
}

/// A person who logs in wherever asked, at once; and where that was.
pub(crate) fn person() -> (Opener, Arc<Mutex<Vec<Url>>>) {
    slow_person(Duration::ZERO)
}

/// A person who takes this long.
pub(crate) fn slow_person(wait: Duration) -> (Opener, Arc<Mutex<Vec<Url>>>) {
    let pages = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&pages);
    let opener: Opener = Arc::new(move |page: &Url| {
        noted.lock().unwrap().push(page.clone());
        let page = page.clone();
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            visit(page).await;
        });
    });
    (opener, pages)
}

/// What a browser does.
pub(crate) async fn visit(page: Url) {
    let mut page = page;
    for _ in 0..2 {
        let host = (page.host_str().unwrap(), page.port().unwrap());
        let answer = raw_get(host, &page).await;
        let location = answer
            .lines()
            .find_map(|line| line.strip_prefix("location: "));
        let Some(location) = location else { return };
        page = Url::parse(location.trim()).unwrap();
    }
}

async fn raw_get(host: (&str, u16), page: &Url) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut socket = tokio::net::TcpStream::connect(host).await.unwrap();
    let target = format!("{}?{}", page.path(), page.query().unwrap_or_default());
    let request = format!("GET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = socket.read_to_string(&mut answer).await;
    answer
}
