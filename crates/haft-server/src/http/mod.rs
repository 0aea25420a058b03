//! The API over HTTP: paths, who may come in, and how answers leave.

mod background;
mod body;
mod caller;
mod chat;
mod compact;
mod conversations;
mod metrics;
mod models;
mod origin;
mod path;
mod reply;
mod responses;
mod retrieve;
mod sse;
mod trace;
mod websocket;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::FutureExt as _;
use tracing::Instrument as _;

use crate::app::App;
use crate::error::{ApiError, ErrorCode};

pub(crate) use background::go_live;
pub(crate) use caller::sane_request_id;
pub(crate) use responses::{Unadmitted, arrange, read};

/// All paths of the API.
pub(crate) fn router(app: Arc<App>) -> Router {
    let v1 = Router::new()
        .route(
            "/responses",
            post(responses::create).get(websocket::upgrade),
        )
        .route("/responses/input_tokens", post(responses::input_tokens))
        .route("/responses/compact", post(compact::compact))
        .route(
            "/responses/{id}",
            get(retrieve::retrieve).delete(retrieve::delete),
        )
        .route("/responses/{id}/cancel", post(background::cancel))
        .route("/responses/{id}/input_items", get(retrieve::input_items))
        .route("/responses/{id}/trace", get(trace::trace))
        .route("/conversations", post(conversations::create))
        .route(
            "/conversations/{id}",
            get(conversations::retrieve)
                .post(conversations::update)
                .delete(conversations::delete),
        )
        .route(
            "/conversations/{id}/items",
            get(conversations::list).post(conversations::add),
        )
        .route(
            "/conversations/{id}/items/{item_id}",
            get(conversations::item).delete(conversations::delete_item),
        )
        .route("/chat/completions", post(chat::complete))
        .route("/models", get(models::list))
        .route("/models/{id}", get(models::retrieve));
    Router::new()
        .nest("/v1", v1)
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&app), envelope))
        // Outside of the envelope: it has a door of its own, and those who look are not counted.
        .route("/metrics", get(metrics::metrics))
        .with_state(app)
}

async fn unknown_path(uri: Uri) -> ApiError {
    let message = format!(
        "there is nothing at `{}`: the API begins at `/v1`",
        haft_core::cut(uri.path())
    );
    ApiError::new(ErrorCode::RouteNotFound, message)
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let message = format!("`{}` does not take {method}", haft_core::cut(uri.path()));
    ApiError::new(ErrorCode::MethodNotAllowed, message)
}

/// Lets in who may come in, and names every request.
async fn envelope(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let request_id = sane_request_id(request.headers());
    let mut watched = app.watch.request(&request, &request_id);
    // Of a level that is shown wherever anything is: every line of the log says which request it is.
    let span = tracing::error_span!("request", request_id);
    let origin = origin::allowed(&app, request.headers());
    let admitted =
        origin.as_ref().map_err(Clone::clone).and_then(|origin| {
            match origin::preflight(request.method(), origin.as_ref()) {
                Some(answer) => Ok(Err(answer)),
                None => caller::recognise(&app, request.headers(), &request_id).map(Ok),
            }
        });
    let mut response = match admitted {
        Ok(Ok(mut caller)) => {
            watched.asked_by(&caller);
            caller.watch = watched.notes();
            request.extensions_mut().insert(caller);
            let answered = AssertUnwindSafe(next.run(request)).catch_unwind();
            let answered = answered.instrument(span.clone()).await;
            answered.unwrap_or_else(|panic| {
                let panic = haft_core::panic_text(&*panic);
                tracing::error!(parent: &span, panic, "a request broke the server");
                ApiError::new(ErrorCode::ServerError, "the server broke over this request")
                    .into_response()
            })
        }
        Ok(Err(preflight)) => preflight,
        Err(error) => error.into_response(),
    };
    origin::mark(&mut response, origin.unwrap_or_default());
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert("x-request-id", value);
    }
    watched.answer(response)
}
