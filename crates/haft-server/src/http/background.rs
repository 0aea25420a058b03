//! Responses that run on when nobody waits for them (`open-responses.md` §9.4).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use haft_core::{Alongside, BoxFuture, Owner, Store, StoredEvent};

use super::path::Ids;
use super::responses::dialected;
use super::retrieve::{self, shown};
use super::{reply, sse};
use crate::app::{App, Caller, store_failed};
use crate::drive::Job;
use crate::durable::{Asked, Checkpoint, Durable};
use crate::error::{ApiError, ErrorCode};
use crate::live::LiveRun;
use crate::stream::{Dialect, WireEvent};
use crate::wire::{CreateRequest, ResponseResource, View};

/// How long a cancelled run may take to end before its client is answered all the same.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

/// How many stored events are read at once.
const EVENT_PAGE: usize = 256;

/// Starts a response in the background: it is stored as queued before anybody hears of it.
pub(super) async fn start(
    app: Arc<App>,
    caller: &Caller,
    request: &CreateRequest,
    body: &Bytes,
    job: Box<Job>,
) -> Result<Response, ApiError> {
    let resource = job.translator.resource().clone();
    let keep_alive = app.options.keep_alive;
    let asked = serde_json::from_slice(body).map_err(|_| unwritable())?;
    let asked = Asked::new(asked, caller);
    // On its own: a client that goes away now must not leave a response behind that nobody works on.
    let launched = app
        .lifetime
        .spawn(launch(Arc::clone(&app), job, request.stream, asked));
    let live = launched.await.map_err(|_| unwritable())??;
    if request.stream {
        let following = FollowLive::new(live, 0);
        return Ok(sse::stream(sse::Frames::new(
            following,
            caller.dialect,
            keep_alive,
        )));
    }
    Ok(reply::ok(&dialected(Box::new(resource), caller.dialect)))
}

/// Stores a response as queued, then lets it run.
async fn launch(
    app: Arc<App>,
    job: Box<Job>,
    has_log: bool,
    asked: Asked,
) -> Result<Arc<LiveRun>, ApiError> {
    let resource = job.translator.resource();
    let owner = job.place.owner.clone();
    let id = resource.id.clone();
    let queued = job.place.response(resource, &[], false);
    let queued = queued.ok_or_else(unwritable)?;
    let alongside = Alongside {
        checkpoint: Some(Checkpoint::new(asked.clone(), None).to_json()?),
        ..Alongside::default()
    };
    let put = app.store.put_response(&owner, queued, alongside).await;
    put.map_err(store_failed)?;
    let cancel = job.plan.cancel.clone();
    let live = LiveRun::new(owner, id, cancel, has_log, Vec::new());
    go_live(app, job, Durable::new(Arc::clone(&live), asked));
    Ok(live)
}

/// Lets a run go on in the background, where whoever comes finds it.
pub(crate) fn go_live(app: Arc<App>, job: Box<Job>, durable: Durable) {
    let live = Arc::clone(&durable.live);
    app.live.insert(Arc::clone(&live));
    let writer = Arc::clone(&live).write_events(Arc::clone(&app.store));
    let kept = Arc::clone(&app);
    app.lifetime.spawn(async move {
        writer.await;
        kept.live.remove(&live.owner, &live.id);
    });
    job.run_live(app, durable);
}

fn unwritable() -> ApiError {
    ApiError::new(ErrorCode::ServerError, "the response cannot be written")
}

/// The events of a live run, from a place on.
struct FollowLive {
    live: Arc<LiveRun>,
    next: usize,
    change: Option<BoxFuture<'static, ()>>,
}

impl FollowLive {
    fn new(live: Arc<LiveRun>, next: usize) -> Self {
        Self {
            live,
            next,
            change: None,
        }
    }
}

impl sse::Source for FollowLive {
    fn poll_events(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<WireEvent>>> {
        loop {
            if let Some(change) = &mut self.change {
                ready!(Pin::new(change).poll(cx));
                self.change = None;
            }
            let mut watch = self.live.watch();
            let state = *watch.borrow_and_update();
            let events = self.live.page(self.next, state.shown);
            if !events.is_empty() {
                self.next += events.len();
                return Poll::Ready(Some(events));
            }
            if state.is_over {
                return Poll::Ready(None);
            }
            let seen = self.next;
            self.change = Some(Box::pin(async move {
                // The sender lives as long as the run that this follower holds.
                let _ = watch
                    .wait_for(|state| state.is_over || state.shown > seen)
                    .await;
            }));
        }
    }
}

/// The stored events of a response that is over.
struct Replay {
    store: Arc<dyn Store>,
    owner: Owner,
    id: String,
    after: Option<u64>,
    page: Option<BoxFuture<'static, Vec<StoredEvent>>>,
}

impl sse::Source for Replay {
    fn poll_events(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<WireEvent>>> {
        let page = self.page.get_or_insert_with(|| {
            let (store, owner, id) = (Arc::clone(&self.store), self.owner.clone(), self.id.clone());
            let after = self.after;
            Box::pin(async move {
                let events = store.events(&owner, &id, after, EVENT_PAGE).await;
                events.unwrap_or_else(|error| {
                    tracing::error!(%error, id, "stored events cannot be read");
                    Vec::new()
                })
            })
        });
        let events = ready!(page.as_mut().poll(cx));
        self.page = None;
        let Some(last) = events.last() else {
            return Poll::Ready(None);
        };
        // Behind the last that was read, whether it can be shown or not.
        self.after = Some(last.sequence_number);
        let events = events.into_iter();
        let readable =
            events.filter_map(|event| WireEvent::stored(event.sequence_number, event.json.get()));
        Poll::Ready(Some(readable.collect()))
    }
}

/// The events of a background response, those that were and those that come.
pub(super) fn replay(
    app: &App,
    owner: &Owner,
    resource: &ResponseResource,
    starting_after: Option<u64>,
    dialect: Dialect,
) -> Response {
    let keep_alive = app.options.keep_alive;
    if let Some(live) = app.live.get(owner, &resource.id) {
        let next = starting_after.map_or(0, |after| after.saturating_add(1));
        let next = usize::try_from(next).unwrap_or(usize::MAX);
        return sse::stream(sse::Frames::new(
            FollowLive::new(live, next),
            dialect,
            keep_alive,
        ));
    }
    let replay = Replay {
        store: Arc::clone(&app.store),
        owner: owner.clone(),
        id: resource.id.clone(),
        after: starting_after,
        page: None,
    };
    sse::stream(sse::Frames::new(replay, dialect, keep_alive))
}

/// `POST /responses/{id}/cancel`
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ids(id): Ids<String>,
) -> Result<Response, ApiError> {
    let (stored, resource) = retrieve::load(&app, &caller.owner, &id).await?;
    if !resource.background {
        let message =
            format!("the response `{id}` does not run in the background: close its stream");
        return Err(ApiError::new(ErrorCode::UnsupportedParameter, message).at("id"));
    }
    if stored.is_finished {
        return Ok(reply::ok(&shown(
            &stored,
            resource,
            &View::default(),
            caller.dialect,
        )));
    }
    if let Some(live) = app.live.get(&caller.owner, &id) {
        live.cancel();
        // If it takes longer it is told as it is: being worked on.
        let _ = tokio::time::timeout(CANCEL_WAIT, live.over()).await;
    }
    let (stored, resource) = retrieve::load(&app, &caller.owner, &id).await?;
    Ok(reply::ok(&shown(
        &stored,
        resource,
        &View::default(),
        caller.dialect,
    )))
}

/// Whether a stored response has a log of events.
pub(super) async fn has_log(app: &App, owner: &Owner, id: &str) -> Result<bool, ApiError> {
    if let Some(live) = app.live.get(owner, id) {
        return Ok(live.has_log);
    }
    let events = app
        .store
        .events(owner, id, None, 1)
        .await
        .map_err(store_failed)?;
    Ok(!events.is_empty())
}
