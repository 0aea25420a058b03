//! The minimal proxy: what everybody would write with axum and reqwest to stand in front of a model and
//! do nothing. It reads a request, passes it on over a connection that is kept open, and streams the answer
//! back.

use std::net::SocketAddr;

use anyhow::Result;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;

/// The largest request.
const MAX_BYTES: usize = 64 * 1024 * 1024;

#[derive(Clone)]
struct Upstream {
    client: reqwest::Client,
    address: SocketAddr,
}

/// Passes requests on until the process is stopped.
pub(crate) async fn serve(backend: SocketAddr) -> Result<()> {
    // The client wants a provider to be built at all, although nothing here is encrypted.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build()?;
    let upstream = Upstream {
        client,
        address: backend,
    };
    let router = Router::new().fallback(pass).with_state(upstream);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    crate::process::announce(listener.local_addr()?)?;
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await?;
    Ok(())
}

async fn pass(State(upstream): State<Upstream>, request: Request) -> Response {
    match passed(&upstream, request).await {
        Ok(response) => response,
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

async fn passed(upstream: &Upstream, request: Request) -> Result<Response> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, MAX_BYTES).await?;
    let url = format!("http://{}{}", upstream.address, parts.uri.path());
    let mut sent = upstream.client.request(parts.method, url).body(body);
    if let Some(value) = parts.headers.get(CONTENT_TYPE) {
        sent = sent.header(CONTENT_TYPE, value);
    }
    let answer = sent.send().await?;
    let mut response = Response::builder().status(answer.status());
    if let Some(value) = answer.headers().get(CONTENT_TYPE) {
        response = response.header(CONTENT_TYPE, value);
    }
    Ok(response.body(Body::from_stream(answer.bytes_stream()))?)
}
