//! The API over HTTP: paths, who may come in, and how answers leave.

mod background;
mod body;
mod caller;
mod chat;
mod compact;
mod conversations;
mod counts;
mod door;
mod health;
mod list;
mod mcp;
mod metered_body;
mod metering;
mod metrics;
mod models;
mod origin;
mod path;
mod paths;
mod reply;
mod responses;
mod retrieve;
mod revoked;
mod sse;
mod trace;
mod warning;
mod websocket;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use tracing::Instrument as _;

use crate::app::App;
use crate::error::{ApiError, ErrorCode};

pub(crate) use background::go_live;
pub(crate) use caller::sane_request_id;
pub use paths::Route;
pub(crate) use responses::{Unadmitted, arrange, read};

use paths::Paths;

/// All paths of the API.
fn paths() -> Paths {
    Paths::below("/v1")
        .post_metered("/responses", responses::create)
        .get("/responses", list::list_or_upgrade)
        .post_metered("/responses/input_tokens", responses::input_tokens)
        .post_metered("/responses/compact", compact::compact)
        .get("/responses/{id}", retrieve::retrieve)
        .delete("/responses/{id}", retrieve::delete)
        .post("/responses/{id}/cancel", background::cancel)
        .get("/responses/{id}/input_items", retrieve::input_items)
        .get("/responses/{id}/trace", trace::trace)
        .post("/conversations", conversations::create)
        .get("/conversations/{id}", conversations::retrieve)
        .post("/conversations/{id}", conversations::update)
        .delete("/conversations/{id}", conversations::delete)
        .get("/conversations/{id}/items", conversations::list)
        .post("/conversations/{id}/items", conversations::add)
        .get("/conversations/{id}/items/{item_id}", conversations::item)
        .delete(
            "/conversations/{id}/items/{item_id}",
            conversations::delete_item,
        )
        .post_metered("/chat/completions", chat::complete)
        .get("/haft/mcp", mcp::servers)
        .get("/haft/mcp/calls", mcp::calls)
        .get("/models", models::list)
        .get("/models/{id}", models::retrieve)
}

/// Paths beside the envelope: who asks for these has no key or a door of his own, asks every few
/// seconds, and is not counted.
fn open_paths() -> Paths {
    Paths::below("")
        .get("/healthz", health::healthy)
        .get("/readyz", health::ready)
}

/// The same, for those who count.
fn metrics_paths() -> Paths {
    Paths::below("").get("/metrics", metrics::metrics)
}

/// The list of all of them.
pub(crate) fn routes() -> Vec<Route> {
    let mut routes = paths().into_routes();
    routes.extend(metrics_paths().into_routes());
    routes.extend(open_paths().into_routes());
    routes
}

pub(crate) fn router(app: Arc<App>) -> Router {
    let metrics_paths = if app.options.watch.metrics {
        metrics_paths().into_router()
    } else {
        Router::new()
    };
    let api = app.endpoints.added_to(paths().into_router());
    api.fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&app), envelope))
        .merge(metrics_paths)
        .merge(open_paths().into_router())
        .layer(middleware::from_fn(refuse_ambiguous))
        .with_state(app)
}

/// Refuses ambiguous requests on every path, also on those that need no key.
async fn refuse_ambiguous(request: Request, next: Next) -> Response {
    match door::check_ambiguity(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => {
            let request_id = sane_request_id(request.headers());
            let mut response = error.into_response();
            if let Ok(value) = HeaderValue::from_str(&request_id) {
                response.headers_mut().insert("x-request-id", value);
            }
            response
        }
    }
}

async fn unknown_path(method: Method, uri: Uri) -> ApiError {
    let path = uri.path();
    let help = match path.strip_prefix("/v1") {
        Some(rest) if rest.starts_with('/') && rest.len() > 1 => {
            "this server has `/v1/responses`, `/v1/conversations`, `/v1/chat/completions` and `/v1/models`"
        }
        _ => "the API is served under `/v1`",
    };
    let message = format!("unknown route `{method} {}`; {help}", haft_core::cut(path));
    ApiError::new(ErrorCode::RouteNotFound, message)
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let path = uri.path();
    let mut message = format!("`{}` does not allow {method}", haft_core::cut(path));
    // A client appends the path of the endpoint to its base URL.
    if path.starts_with("/v1/responses/") && path.ends_with("/responses") {
        message.push_str("; the client's base URL must end in `/v1`");
    }
    ApiError::new(ErrorCode::MethodNotAllowed, message)
}

/// Lets in who may come in, and names every request.
async fn envelope(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let request_id = sane_request_id(request.headers());
    let mut watched = app.watch.request(&request, &request_id);
    app.keyring.refresh().await;
    // Of a level that is shown wherever anything is: every line of the log says which request it is.
    let span = tracing::error_span!("request", request_id);
    let (uri, headers) = (request.uri(), request.headers());
    let origin = door::check_headers(&app.options.limits, uri, headers)
        .and_then(|()| door::check_host(&app, uri, headers))
        .and_then(|()| origin::allowed(&app, headers));
    let admitted =
        origin.as_ref().map_err(Clone::clone).and_then(|origin| {
            match origin::preflight(request.method(), origin.as_ref()) {
                Some(answer) => Ok(Err(answer)),
                None => caller::recognise(&app, headers, &request_id).map(Ok),
            }
        });
    let mut response = match admitted {
        Ok(Ok(mut caller)) => {
            watched.asked_by(&caller);
            caller.watch = watched.notes();
            let pass = caller.pass.clone();
            let method = request.method().clone();
            request.extensions_mut().insert(caller);
            let answered = AssertUnwindSafe(next.run(request)).catch_unwind();
            let answered = answered.instrument(span.clone()).await;
            let response = answered.unwrap_or_else(|panic| {
                let panic = haft_core::panic_text(&*panic);
                tracing::error!(parent: &span, panic, "a request broke the server");
                ApiError::new(ErrorCode::ServerError, "the server broke over this request")
                    .into_response()
            });
            let response = revoked::cut_stream(response, &app.keyring, &pass);
            metered_body::count(response, &method, &app.memory)
        }
        Ok(Err(preflight)) => preflight,
        Err(error) => span.in_scope(|| error.into_response()),
    };
    origin::mark(&mut response, origin.unwrap_or_default());
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert("x-request-id", value);
    }
    watched.answer(response, span)
}
