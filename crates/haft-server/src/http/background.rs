//! Responses that run on when nobody waits for them (`open-responses.md` §9.4).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use haft_core::{BoxFuture, Owner, Store, StoredItem, StoredResponse};

use super::path::Path;
use super::responses::dialected;
use super::retrieve::{self, shown};
use super::{reply, sse};
use crate::app::{App, Caller, store_failed};
use crate::drive::Job;
use crate::error::{ApiError, ErrorCode};
use crate::live::LiveRun;
use crate::stream::{Dialect, WireEvent};
use crate::wire::{CreateRequest, Include, ResponseError, ResponseResource, ResponseStatus};

/// How long a cancelled run may take to end before its client is answered all the same.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

/// How many stored events are read at once.
const EVENT_PAGE: usize = 256;

/// Starts a response in the background: it is stored as queued before anybody hears of it.
pub(super) async fn start(
    app: Arc<App>,
    caller: &Caller,
    request: &CreateRequest,
    job: Job,
) -> Result<Response, ApiError> {
    let resource = job.translator.resource().clone();
    let queued = job
        .place
        .response(&resource, &[], false)
        .ok_or_else(unwritable)?;
    let put = app.store.put_response(&caller.owner, queued, None).await;
    put.map_err(store_failed)?;
    let live = LiveRun::new(
        caller.owner.clone(),
        resource.id.clone(),
        job.plan.cancel.clone(),
        request.stream,
    );
    app.live.insert(Arc::clone(&live));
    let writer = Arc::clone(&live).write_events(Arc::clone(&app.store));
    tokio::spawn(writer);
    let keep_alive = app.options.keep_alive;
    let watched = Arc::clone(&app);
    job.run_live(Arc::clone(&app), Arc::clone(&live));
    tokio::spawn({
        let live = Arc::clone(&live);
        async move {
            live.over().await;
            watched.live.remove(&live.owner, &live.id);
        }
    });
    if request.stream {
        let following = FollowLive::new(live, 0);
        return Ok(sse::stream(sse::Frames::new(
            following,
            caller.dialect,
            keep_alive,
        )));
    }
    Ok(reply::ok(&dialected(resource, caller.dialect)))
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
            let events = self.live.between(self.next, state.shown);
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
    page: Option<BoxFuture<'static, Option<Vec<WireEvent>>>>,
}

impl sse::Source for Replay {
    fn poll_events(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<WireEvent>>> {
        let page = self.page.get_or_insert_with(|| {
            let (store, owner, id) = (Arc::clone(&self.store), self.owner.clone(), self.id.clone());
            let after = self.after;
            Box::pin(async move {
                let events = store.events(&owner, &id, after, EVENT_PAGE).await;
                let events = events.ok().filter(|events| !events.is_empty())?;
                Some(
                    events
                        .into_iter()
                        .filter_map(|event| {
                            WireEvent::stored(event.sequence_number, event.json.get())
                        })
                        .collect(),
                )
            })
        });
        let events = ready!(page.as_mut().poll(cx));
        self.page = None;
        if let Some(events) = &events {
            self.after = events.last().map(|event| event.sequence_number);
        }
        Poll::Ready(events)
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
    Path(id): Path<String>,
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
            Include::default(),
            caller.dialect,
        )));
    }
    if let Some(live) = app.live.get(&caller.owner, &id) {
        live.cancel.cancel();
        // If it takes longer it is told as it is: being worked on.
        let _ = tokio::time::timeout(CANCEL_WAIT, live.over()).await;
    }
    let (stored, resource) = retrieve::load(&app, &caller.owner, &id).await?;
    Ok(reply::ok(&shown(
        &stored,
        resource,
        Include::default(),
        caller.dialect,
    )))
}

/// Responses that a dead process left behind are failed, truthfully.
pub(crate) async fn settle_orphans(app: &App) -> Result<usize, ApiError> {
    let orphans = app.store.unfinished().await.map_err(store_failed)?;
    let count = orphans.len();
    for (owner, orphan) in orphans {
        settle(app, &owner, orphan).await?;
    }
    Ok(count)
}

async fn settle(app: &App, owner: &Owner, mut orphan: StoredResponse) -> Result<(), ApiError> {
    let Ok(mut resource) = serde_json::from_str::<ResponseResource>(orphan.resource.get()) else {
        return Ok(());
    };
    let message = "the server was stopped while the response was being worked on: send it again";
    resource.status = ResponseStatus::Failed;
    resource.error = Some(ResponseError {
        code: ErrorCode::ServerError.as_str().to_owned(),
        message: message.to_owned(),
    });
    let log = Log::read(app, owner, &resource.id).await?;
    orphan.output = log.items;
    if let Some(last) = log.last {
        let mut shown = shown(&orphan, resource.clone(), log.include, Dialect::default());
        shown.status = resource.status;
        let events = WireEvent::failure(last + 1, &shown, message);
        let events = events
            .into_iter()
            .filter_map(crate::live::stored_event)
            .collect();
        let append = app.store.append_events(owner, &resource.id, events).await;
        append.map_err(store_failed)?;
    }
    orphan.is_finished = true;
    if let Ok(json) = serde_json::value::to_raw_value(&resource) {
        orphan.resource = json;
    }
    let put = app.store.put_response(owner, orphan, None).await;
    put.map_err(store_failed)?;
    Ok(())
}

/// What the log of a response says about how far it came.
struct Log {
    /// The number of its last event.
    last: Option<u64>,
    /// The items that were finished, by their places.
    items: Vec<StoredItem>,
    /// Everything: what the log holds was chosen when it was written.
    include: Include,
}

impl Log {
    async fn read(app: &App, owner: &Owner, id: &str) -> Result<Self, ApiError> {
        #[derive(serde::Deserialize)]
        struct Done {
            output_index: usize,
            item: Box<serde_json::value::RawValue>,
        }
        #[derive(serde::Deserialize)]
        struct Named {
            id: String,
        }
        let mut last = None;
        let mut items = std::collections::BTreeMap::new();
        loop {
            let events = app.store.events(owner, id, last, EVENT_PAGE).await;
            let events = events.map_err(store_failed)?;
            let Some(event) = events.last() else {
                break;
            };
            last = Some(event.sequence_number);
            for event in &events {
                let json = event.json.get();
                if !json.starts_with(r#"{"type":"response.output_item.done""#) {
                    continue;
                }
                let done = serde_json::from_str::<Done>(json).ok();
                let named = done.and_then(|done| {
                    let named: Named = serde_json::from_str(done.item.get()).ok()?;
                    let item = StoredItem {
                        id: named.id,
                        json: done.item,
                    };
                    Some((done.output_index, item))
                });
                items.extend(named);
            }
        }
        Ok(Self {
            last,
            items: items.into_values().collect(),
            include: Include {
                encrypted_reasoning: true,
                logprobs: true,
            },
        })
    }
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
