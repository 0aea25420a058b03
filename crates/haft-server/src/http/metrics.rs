//! `GET /metrics`: for those on this machine, for those with a key, or for everybody.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::{IntoResponse, Response};

use super::{caller, door};
use crate::app::App;
use crate::error::ApiError;
use crate::watch::{BackendLabels, Form, Name};

/// Where whoever asks is, if the listener says so.
pub(super) struct Peer(Option<SocketAddr>);

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let info = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        Ok(Self(info.map(|ConnectInfo(address)| *address)))
    }
}

pub(super) async fn metrics(
    State(app): State<Arc<App>>,
    peer: Peer,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if !app.options.watch.public_metrics {
        app.keyring.refresh().await;
        door::check_host(&app, &uri, &headers)?;
        if !is_of_this_machine(&peer, &uri, &headers) {
            caller::recognise(&app, &headers, "")?;
        }
    }
    let form = Form::wanted(&headers);
    let available = &app.watch.metrics.meters.backend_available;
    for member in app.models.members() {
        let labels = BackendLabels {
            backend: Name(Arc::clone(member.name())),
        };
        let is_usable = i64::from(member.standing().is_usable());
        available.get_or_create(&labels).set(is_usable);
    }
    app.watch.update_mcp_gauges();
    let used = i64::try_from(app.memory.used()).unwrap_or(i64::MAX);
    app.watch.metrics.meters.memory_used.set(used);
    let mut response = app.watch.metrics.text(form).into_response();
    let kind = HeaderValue::from_static(form.content_type());
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

/// What proxies add, and web pages.
const TRACES: [&str; 8] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "cf-connecting-ip",
    "via",
    "origin",
];

/// Whether somebody on this machine asks for himself: who comes through a proxy comes from anywhere,
/// and asks for another name.
fn is_of_this_machine(peer: &Peer, uri: &Uri, headers: &HeaderMap) -> bool {
    let is_passed_on = TRACES.into_iter().any(|name| headers.contains_key(name));
    let is_loopback = |address: SocketAddr| address.ip().to_canonical().is_loopback();
    !is_passed_on && door::means_this_machine(uri, headers) && peer.0.is_some_and(is_loopback)
}
