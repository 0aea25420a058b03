//! Background responses that a dead process left behind: each goes on from its last checkpoint, or is
//! failed with the reason why it cannot.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft_core::{Owner, StoredItem, StoredResponse};
use serde_json::{Value, json};

use crate::access::{Pass, RunPermit};
use crate::app::{App, Caller, store_failed};
use crate::context::{Remembered, chain_records};
use crate::durable::{Asked, Checkpoint, Durable};
use crate::error::{ApiError, ErrorCode, without_content};
use crate::history::is_mark;
use crate::http::{Unadmitted, arrange, go_live, read};
use crate::lifetime::stopped;
use crate::live::LiveRun;
use crate::mcp::Patience;
use crate::orphans::settle_orphan;
use crate::stream::{Dialect, WireEvent};
use crate::wire::{Door, ResponseResource};

/// How many stored events are read at once.
const EVENT_PAGE: usize = 256;

/// How long a run that finds no room waits before it asks again.
const ADMISSION_PAUSE: Duration = Duration::from_millis(500);

/// What became of the responses that were left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TakenUp {
    pub(crate) resumed: usize,
    pub(crate) failed: usize,
}

/// Takes up what a dead process left behind. Everything is looked up and locked when this returns, so
/// that no new request comes in between.
pub(crate) async fn take_up(app: &Arc<App>) -> Result<TakenUp, ApiError> {
    let mut taken = TakenUp::default();
    let mut spilled = HashSet::new();
    for (owner, orphan) in app.store.unfinished().await.map_err(store_failed)? {
        let id = orphan.id.clone();
        let log = read_log(app, &owner, &id).await?;
        match resume(app, &owner, &orphan, &log).await {
            Ok(folder) => {
                taken.resumed += 1;
                spilled.extend(folder);
            }
            Err(error) => {
                tracing::warn!(%error, id, "a response cannot go on");
                settle_orphan(app, &owner, orphan, &log, &error).await?;
                taken.failed += 1;
            }
        }
    }
    if let Some(folder) = app.spill_folder.clone() {
        let removed = tokio::task::spawn_blocking(move || remove_others(&folder, &spilled)).await;
        if let Ok(Err(error)) = removed {
            tracing::warn!(%error, "long results of earlier runs could not be removed");
        }
    }
    Ok(taken)
}

/// Removes the long results of runs that nobody goes on with: their process died.
fn remove_others(folder: &Path, spilled: &HashSet<PathBuf>) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if !spilled.contains(&path) {
            std::fs::remove_dir_all(path)?;
        }
    }
    Ok(())
}

/// Continues a response in a task of its own. Gives where it keeps long results.
async fn resume(
    app: &Arc<App>,
    owner: &Owner,
    orphan: &StoredResponse,
    log: &[WireEvent],
) -> Result<Option<PathBuf>, ApiError> {
    let checkpoint = app.store.checkpoint(owner, &orphan.id).await;
    let checkpoint = checkpoint.map_err(store_failed)?;
    let checkpoint = checkpoint.as_deref().and_then(Checkpoint::read);
    let Some(Checkpoint {
        request: asked,
        run,
        ..
    }) = checkpoint.filter(|_| is_whole(log))
    else {
        return Err(stopped());
    };
    let resource = serde_json::from_str::<ResponseResource>(orphan.resource.get());
    let resource = resource.map_err(|error| {
        let error = without_content(&error);
        tracing::error!(error, id = orphan.id, "a stored response cannot be read");
        stopped()
    })?;
    let (mut job, has_log) = plan_again(app, owner, orphan, &asked).await?;
    let told = run.as_ref().map(|run| run.told.clone());
    let fresh = job.translator;
    job.translator = fresh
        .restored(Box::new(resource), told, log)
        .ok_or_else(stopped)?;
    job.place.input.clone_from(&orphan.input);
    let trace = run.as_ref().and_then(|run| run.trace.clone());
    job.watch.resumed(&orphan.id, trace);
    let spilled = run.as_ref().and_then(|run| run.session.spill_directory());
    let spilled = spilled.map(Path::to_owned);
    if let Some(run) = run {
        let planned = job.plan.conversation.len();
        if run.planned_items > 0 && run.planned_items != planned {
            return Err(ApiError::new(
                ErrorCode::ServerError,
                "the server was stopped while the response was being worked on, and what it goes on \
                 from has changed since: send it again",
            ));
        }
        // What was compacted is in the session.
        job.compaction = None;
        job.so_far = Some(Box::new(run));
    }
    let cancel = job.plan.cancel.clone();
    let id = orphan.id.clone();
    let live = LiveRun::new(owner.clone(), id, cancel, has_log, log.to_vec());
    // Whoever asks for it before it goes on finds it.
    app.live.insert(Arc::clone(&live));
    let app = Arc::clone(app);
    let durable = Durable::new(live, asked);
    Arc::clone(&app).lifetime.spawn(async move {
        let waiting = app.watch.waiting();
        let admitted = admission(&app, &durable.live).await;
        drop(waiting);
        match admitted {
            Some(permit) => go_live(app, job.admitted(permit), durable),
            None => durable.live.end().await,
        }
    });
    Ok(spilled)
}

/// Room for a run, however long that takes; none if the server stops first.
async fn admission(app: &App, live: &LiveRun) -> Option<RunPermit> {
    let pass = Pass::of_tenant(live.owner.clone());
    while !app.lifetime.is_stopping() {
        match pass.begin_run(&app.line).await {
            Ok(permit) => return Some(permit),
            Err(_) => tokio::time::sleep(ADMISSION_PAUSE).await,
        }
    }
    None
}

/// What a request comes to now, and whether its events are kept.
async fn plan_again(
    app: &Arc<App>,
    owner: &Owner,
    orphan: &StoredResponse,
    asked: &Asked,
) -> Result<(Unadmitted, bool), ApiError> {
    let caller = Caller {
        owner: owner.clone(),
        pass: Pass::of_tenant(owner.clone()),
        // Events are kept in the specification's words; each reader gets his own.
        dialect: Dialect::OpenResponses,
        request_id: asked.request_id.clone(),
        wants_vendor_events: asked.wants_vendor_events,
        watch: app.watch.unasked(),
    };
    let items = orphan.input.iter();
    let items = items.filter_map(|item| as_sent(item).ok());
    let request = Arc::new(read(app, asked.body_with(items), Door::Http)?);
    let inherited = inherited(app, orphan, &caller).await?;
    let job = arrange(
        app,
        &caller,
        &request,
        inherited.as_ref(),
        Patience::OfStart,
    )
    .await?;
    Ok((job, request.stream))
}

/// An item of the input as its client would send it: what this server noted in it is not read from requests.
fn as_sent(item: &StoredItem) -> Result<Value, serde_json::Error> {
    let json: Value = serde_json::from_str(item.json.get())?;
    let mut members = json.as_object().into_iter().flatten();
    Ok(if members.any(|(key, _)| is_mark(key)) {
        json!({"type": "item_reference", "id": item.id})
    } else {
        json
    })
}

/// What a response goes on from, also if somebody deleted that since: what continues it keeps it.
async fn inherited(
    app: &App,
    orphan: &StoredResponse,
    caller: &Caller,
) -> Result<Option<Remembered>, ApiError> {
    let Some(previous) = &orphan.previous else {
        return Ok(None);
    };
    let chain = app.store.chain(&caller.owner, &orphan.id).await;
    let chain = chain.map_err(store_failed)?.unwrap_or_default();
    let is_whole = chain.first().is_some_and(|first| first.previous.is_none());
    match chain.split_last().filter(|_| is_whole) {
        Some((_, before)) => Ok(Some(Remembered {
            response_id: previous.clone(),
            records: chain_records(before)?,
        })),
        None => Ok(None),
    }
}

/// Whether a log has no hole, no damage and no end.
fn is_whole(log: &[WireEvent]) -> bool {
    let numbers = log.iter().map(|event| event.sequence_number);
    let is_readable = log.iter().all(|event| !event.kind.is_empty());
    is_readable
        && numbers.eq(0..log.len() as u64)
        && !log.last().is_some_and(WireEvent::is_terminal)
}

async fn read_log(app: &App, owner: &Owner, id: &str) -> Result<Vec<WireEvent>, ApiError> {
    let mut log: Vec<WireEvent> = Vec::new();
    loop {
        let after = log.last().map(|last| last.sequence_number);
        let page = app.store.events(owner, id, after, EVENT_PAGE).await;
        let page = page.map_err(store_failed)?;
        if page.is_empty() {
            return Ok(log);
        }
        for event in page {
            let read = WireEvent::stored(event.sequence_number, event.json.get());
            // A damaged one has no name.
            let damaged = || WireEvent {
                sequence_number: event.sequence_number,
                kind: "".into(),
                json: "{}".into(),
            };
            log.push(read.unwrap_or_else(damaged));
        }
    }
}
