//! A run under way: its events go to whoever follows, its end into the store, then the end is told.

mod follower;
mod listener;
mod once;
mod place;
mod unheard;

use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use haft_core::{Alongside, Conversation, ModelErrorKind, Usage};
use haft_engine::{End, EventKind, FailedReason, Outcome, RunEvent, RunStream, Session, Step};

use crate::access::RunPermit;
use crate::app::{App, ConversationLock, now};
use crate::compaction::{Compaction, Halt, item_of};
use crate::durable::{Durable, RunSoFar, items_in_common};
use crate::error::{ApiError, ErrorCode};
use crate::history::Record;
use crate::lifetime::stopped;
use crate::orphans::settle_broken;
use crate::plan::Plan;
use crate::stream::{OutputItem, Translator, WireEvent};
use crate::truncate::shorter;
use crate::watch::RunWatch;
use crate::wire::{ResponseResource, Truncation};

pub(crate) use follower::Follower;
use listener::Listener;
pub(crate) use listener::{Commitment, MAX_STALL, Signal};
pub(crate) use place::Place;
use place::{Kept, keep};
use unheard::Unheard;

/// How often a request is repeated with less of its context.
const MAX_SHORTENINGS: usize = 8;

/// A response that is over.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    /// With the items that the client may see.
    pub(crate) resource: Box<ResponseResource>,
    /// Everything that the model was to know.
    context: Vec<Record>,
    /// What it gave, whole.
    items: Vec<OutputItem>,
}

impl Ended {
    /// Its context and all of its items, for whoever goes on from it.
    pub(crate) fn into_records(self) -> Vec<Record> {
        let mut records = self.context;
        records.extend(self.items.iter().map(record_of));
        for record in &mut records {
            record.param = None;
        }
        records
    }
}

/// A run with everything around it.
pub(crate) struct Job {
    pub(crate) plan: Box<Plan>,
    pub(crate) translator: Box<Translator>,
    pub(crate) place: Place,
    /// What is to be compacted before the model is asked.
    pub(crate) compaction: Option<Compaction>,
    /// Everything that the model was to know.
    pub(crate) context: Vec<Record>,
    /// How far another process had come with it.
    pub(crate) so_far: Option<Box<RunSoFar>>,
    /// Held until the run is over.
    pub(crate) lock: Option<ConversationLock>,
    pub(crate) permit: RunPermit,
    pub(crate) watch: RunWatch,
}

/// How a run went.
enum Ran {
    Ended(End, Usage),
    /// The server stops: another process goes on from the last checkpoint.
    PutAway,
}

impl Job {
    /// Starts it for somebody who is there; it ends when he goes away.
    pub(crate) fn follow(mut self: Box<Self>, app: &Arc<App>, wants_events: bool) -> Follower {
        if !wants_events {
            self.translator.mute();
            if !self.place.is_stored {
                self.translator.keep_only_shown();
            }
        }
        let unheard = Unheard::default();
        let commitment = Arc::new(Commitment::default());
        let cancel = self.plan.cancel.clone();
        let listener = Listener::Follower {
            unheard: unheard.clone(),
            commitment: Arc::clone(&commitment),
            wants_events,
            is_gone: false,
        };
        let run = Box::pin(self.drive(Arc::clone(app), listener));
        Follower::new(Arc::clone(app), run, unheard, commitment, cancel)
    }

    /// Starts it in the background, where it goes on whoever listens.
    pub(crate) fn run_live(self: Box<Self>, app: Arc<App>, durable: Durable) {
        let live = Arc::clone(&durable.live);
        let driven = self.drive(Arc::clone(&app), Listener::Live(durable));
        let driven = AssertUnwindSafe(Box::pin(driven)).catch_unwind();
        Arc::clone(&app).lifetime.spawn(async move {
            if let Err(panic) = driven.await {
                let panic = haft_core::panic_text(&*panic);
                tracing::error!(panic, id = live.id, "a background run broke");
                settle_broken(&app, &live).await;
            }
        });
    }

    /// Ends it without asking the model: a warm-up.
    pub(crate) async fn warm_up(mut self: Box<Self>, app: &App) -> (Vec<WireEvent>, Ended) {
        let mut events = self.translator.begin();
        let warmed = self.translator.warm_up(now());
        let finished = keep(app, &self.place, warmed, None, None).await.finished;
        events.extend(finished.events);
        let ended = Ended {
            resource: finished.resource,
            context: self.context,
            items: finished.items,
        };
        (events, ended)
    }

    async fn drive(mut self: Box<Self>, app: Arc<App>, mut listener: Listener) {
        self.watch.begin();
        let begun = self.translator.begin();
        match &mut listener {
            Listener::Live(durable) => {
                Box::pin(self.note_beginning(&app, durable, begun)).await;
            }
            Listener::Follower { .. } => listener.tell(begun, &self.plan.cancel).await,
        }
        let ended = match self.run(&app, &mut listener).await {
            Ok(Ran::PutAway) => {
                self.watch.put_away();
                return listener.put_away().await;
            }
            Ok(Ran::Ended(End::Cancelled, _)) if app.lifetime.is_stopping() => {
                if listener.may_be_put_away() {
                    self.watch.put_away();
                    return listener.put_away().await;
                }
                Err(stopped())
            }
            Ok(Ran::Ended(end, usage)) => Ok((end, usage)),
            Err(error) => Err(error),
        };
        self.watch.ended(&ended);
        if let Some(error) = refusal(&ended, &self.translator)
            && listener.may_refuse()
        {
            // Whoever reads the error may try again at once.
            drop((self.lock, self.permit));
            return listener.refuse(error).await;
        }
        let finished = match ended {
            Ok((end, usage)) => self.translator.finish(&end, &usage, now()),
            Err(error) => self.translator.fail(&error),
        };
        // What only some runs need is kept apart while it lasts, here and below: thousands of runs
        // wait at the same time, and each keeps room for all that it does in place.
        let finished = match &mut listener {
            Listener::Live(durable) => Box::pin(durable.gather(finished)).await,
            Listener::Follower { .. } => finished,
        };
        if let Some(lock) = &self.lock {
            lock.ends();
        }
        let kept = if self.place.is_stored {
            let trace = self.watch.to_json();
            Box::pin(keep(&app, &self.place, finished, trace, listener.durable())).await
        } else {
            Kept::unwritten(finished)
        };
        let Kept {
            finished,
            is_written,
        } = kept;
        let mut resource = finished.resource;
        resource.output = finished.shown;
        // Whoever reads the end may use the conversation at once.
        drop(self.permit);
        drop(self.lock.take());
        let ended = Box::new(Ended {
            resource,
            context: self.context,
            items: finished.items,
        });
        if let Listener::Live(durable) = &listener {
            return durable.end(finished.events, is_written).await;
        }
        listener
            .end(finished.events, ended, &self.plan.cancel)
            .await;
    }

    /// Runs it, with less of the context if it is too long and may be cut.
    async fn run(&mut self, app: &App, listener: &mut Listener) -> Result<Ran, ApiError> {
        if let Some(so_far) = self.so_far.take() {
            return Box::pin(self.go_on(*so_far, app, listener)).await;
        }
        self.open_up(listener).await;
        let mut conversation = self.plan.conversation.clone();
        let mut usage = Usage::default();
        if let Some(compaction) = self.compaction.take() {
            match Box::pin(self.compact(compaction, app, listener)).await? {
                ControlFlow::Continue(compacted) => (conversation, usage) = compacted,
                ControlFlow::Break(ran) => return Ok(ran),
            }
        }
        if listener.hears_only_the_end()
            && let Some(used) = self.ask_once(&conversation).await
        {
            return Ok(Ran::Ended(End::Completed, usage + used));
        }
        let in_front = self.translator.finished_items();
        for _ in 0..MAX_SHORTENINGS {
            let planned_items = items_in_common(&self.plan.conversation, &conversation);
            let session = conversation.clone().into();
            let outcome = self
                .run_once(session, planned_items, usage, app, listener)
                .await?;
            let Some(outcome) = outcome else {
                return Ok(Ran::PutAway);
            };
            let may_shorten = self.plan.truncation == Truncation::Auto
                && is_too_long(&outcome.end)
                && self.translator.finished_items() == in_front;
            usage += outcome.usage;
            if !may_shorten {
                return Ok(Ran::Ended(outcome.end, usage));
            }
            match shorter(&conversation) {
                Some(shortened) => {
                    self.watch.shortened();
                    conversation = shortened;
                }
                None => return Ok(Ran::Ended(outcome.end, usage)),
            }
        }
        Err(ApiError::new(
            ErrorCode::ContextLengthExceeded,
            "the context is too long for the model, however much of it is left out",
        )
        .at("input"))
    }

    /// Goes on from where another process has stopped.
    async fn go_on(
        &mut self,
        so_far: RunSoFar,
        app: &App,
        listener: &mut Listener,
    ) -> Result<Ran, ApiError> {
        let mut usage = so_far.used_before;
        let planned_items = so_far.planned_items;
        let history = match planned_items {
            0 => Conversation::default(),
            _ => self.plan.conversation.clone(),
        };
        let session = so_far.session.behind(&history);
        let outcome = self
            .run_once(session, planned_items, usage, app, listener)
            .await?;
        Ok(match outcome {
            Some(outcome) => {
                usage += outcome.usage;
                Ran::Ended(outcome.end, usage)
            }
            None => Ran::PutAway,
        })
    }

    /// Sums the conversation up, and tells so. Gives what the model is asked with then, and what was used by
    /// then, unless that was all.
    async fn compact(
        &mut self,
        compaction: Compaction,
        app: &App,
        listener: &mut Listener,
    ) -> Result<ControlFlow<Ran, (Conversation, Usage)>, ApiError> {
        let goes_on = compaction.goes_on();
        let compacting = RunWatch::compacting();
        let carried = self.plan.compact(compaction, app, &self.place.owner).await;
        self.watch.compacted(&compacting, &carried);
        let carried = match carried {
            Ok(carried) => carried,
            Err(Halt::Error(error)) => return Err(error),
            Err(Halt::Cancelled(usage)) => {
                return Ok(ControlFlow::Break(Ran::Ended(End::Cancelled, usage)));
            }
        };
        if let Listener::Live(durable) = listener {
            // It is made again where no checkpoint knows of it.
            durable.hold();
        }
        let item = |id: &str| item_of(id, &carried.sealed).into();
        let events = self.translator.add_whole("cmp", item);
        listener.answering(&self.plan.cancel).await;
        listener.tell(events, &self.plan.cancel).await;
        if !goes_on {
            return Ok(ControlFlow::Break(Ran::Ended(
                End::Completed,
                carried.usage,
            )));
        }
        let conversation = self.plan.conversation_of(&carried.pieces)?;
        let conversation = self.plan.fit(conversation)?;
        Ok(ControlFlow::Continue((conversation, carried.usage)))
    }

    /// Tells what stands in front of everything that the model says.
    async fn open_up(&mut self, listener: &mut Listener) {
        let opening = &self.plan.opening;
        if opening.is_empty() {
            return;
        }
        if let Listener::Live(durable) = listener {
            // The next checkpoint knows of it.
            durable.hold();
        }
        let mut events = Vec::new();
        for listing in &opening.listings {
            events.extend(self.translator.add_listing(listing));
        }
        for (call_id, call) in &opening.allowed {
            events.extend(self.translator.add_allowed(call_id, call.clone()));
        }
        listener.answering(&self.plan.cancel).await;
        listener.tell(events, &self.plan.cancel).await;
    }

    /// Runs the engine once and tells what happens. No outcome if the run was put away.
    async fn run_once(
        &mut self,
        session: Session,
        planned_items: usize,
        used_before: Usage,
        app: &App,
        listener: &mut Listener,
    ) -> Result<Option<Outcome>, ApiError> {
        let mut stream = self.start(session, app, listener)?;
        while let Some(step) = stream.next_step().await {
            let is_between_turns = matches!(step, Step::Checkpoint);
            if let Step::Event(event) = step {
                let begins = matches!(event.kind, EventKind::AnswerStarted);
                let events = self.hear(event, listener);
                if begins {
                    listener.answering(&self.plan.cancel).await;
                }
                if !events.is_empty() {
                    listener.tell(events, &self.plan.cancel).await;
                }
            } else if let Listener::Live(durable) = listener {
                let so_far = RunSoFar {
                    planned_items,
                    session: stream.session().without_first(planned_items),
                    told: self.translator.snapshot(),
                    used_before,
                    trace: Some(self.watch.snapshot()),
                };
                // Apart, so that runs that somebody follows need not keep room for it.
                Box::pin(durable.note(app, so_far)).await?;
                if is_between_turns && app.lifetime.is_stopping() {
                    return Ok(None);
                }
            }
        }
        let outcome = stream.finish().await;
        self.watch.leg(&outcome);
        Ok(Some(outcome))
    }

    fn start(
        &self,
        session: Session,
        app: &App,
        listener: &Listener,
    ) -> Result<RunStream, ApiError> {
        let mut run = self.plan.run(session);
        run = match (listener, &app.spill_folder) {
            // What another process may have to go on with is kept where that one finds it.
            (Listener::Live(_), Some(folder)) => run.journaled().spill_directory(folder),
            (Listener::Live(_), None) => run.journaled(),
            // Nobody goes on with it: a request that continues a response begins a run of its own.
            (Listener::Follower { .. }, _) => run.spill_to_memory(),
        };
        run.start().map_err(|error| {
            tracing::error!(%error, "a run cannot start");
            ApiError::new(ErrorCode::ServerError, error.to_string())
        })
    }

    /// Takes an event in and gives those that follow from it.
    fn hear(&mut self, event: RunEvent, listener: &mut Listener) -> Vec<WireEvent> {
        self.watch.hear(&event, self.plan.tools());
        if let Listener::Live(durable) = listener {
            durable.foresee(&event.kind);
            if self.translator.opens_with(&event.kind) {
                durable.hold();
            }
        }
        self.translator.translate(event.kind)
    }

    /// Writes down that a background response is being worked on, then tells so.
    async fn note_beginning(&self, app: &App, durable: &mut Durable, begun: Vec<WireEvent>) {
        let resource = self.translator.resource();
        let Some(response) = self.place.response(resource, &[], false) else {
            return;
        };
        let alongside = Alongside {
            events: durable.stored(&begun),
            ..Alongside::default()
        };
        let put = app
            .store
            .put_response(&self.place.owner, response, alongside);
        match put.await {
            Ok(_) => durable.live.add_written(begun),
            Err(error) => {
                tracing::error!(%error, "a response's progress cannot be stored");
                durable.live.add(begun);
            }
        }
    }
}

fn is_too_long(end: &End) -> bool {
    matches!(
        end,
        End::Failed { reason: FailedReason::Model { error, .. }, .. }
            if error.kind == ModelErrorKind::ContextLength
    )
}

/// The error that stands in place of a response: the run failed before anything was finished.
fn refusal(ended: &Result<(End, Usage), ApiError>, translator: &Translator) -> Option<ApiError> {
    if translator.finished_items() > 0 {
        return None;
    }
    let mut error = match ended {
        Ok((End::Failed { reason, message }, _)) => crate::failure::of_run(reason, message),
        Ok(_) => return None,
        Err(error) => error.clone(),
    };
    error.must_not_retry |= translator.has_run_tools();
    Some(error)
}

fn record_of(item: &OutputItem) -> Record {
    Record {
        id: item.id.clone(),
        item: serde_json::from_value(item.json.clone())
            .unwrap_or(haft_core::Item::Other(serde_json::Map::new())),
        param: None,
    }
}
