//! Several backends behind one model: who is asked, who is left alone, and what is said.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../common/mod.rs"]
mod common;

mod asking;
mod breaking;
mod forwarding;
mod health;
mod staying;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_core::{
    BoxFuture, Capabilities, Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse,
    ModelStream,
};
use haft_models::Backend;
use haft_models::pool::{BreakerSettings, Member, Pool, Witness};

/// A backend that does what it is told, and counts how often it is asked.
#[derive(Clone)]
struct Puppet(Arc<Inner>);

struct Inner {
    name: &'static str,
    mood: Mutex<Mood>,
    asked: Mutex<Vec<ModelRequest>>,
    capabilities: Capabilities,
}

/// What it does when it is asked.
#[derive(Clone)]
enum Mood {
    Answers,
    Fails(ModelError),
    /// It fails inside of the stream, after so many events.
    BreaksAfter(usize, ModelError),
    /// The stream ends without an end, after so many events.
    EndsAfter(usize),
    Hangs,
    HangsAfter(usize),
}

impl Puppet {
    fn new(name: &'static str, mood: Mood) -> Self {
        Self::able(name, mood, Capabilities::default())
    }

    fn able(name: &'static str, mood: Mood, capabilities: Capabilities) -> Self {
        Self(Arc::new(Inner {
            name,
            mood: Mutex::new(mood),
            asked: Mutex::default(),
            capabilities,
        }))
    }

    fn failing(name: &'static str, kind: ModelErrorKind) -> Self {
        Self::new(name, Mood::Fails(error(kind)))
    }

    fn becomes(&self, mood: Mood) {
        *self.0.mood.lock().unwrap() = mood;
    }

    fn asked(&self) -> usize {
        self.0.asked.lock().unwrap().len()
    }

    fn member(&self) -> Arc<Member> {
        self.member_with(BreakerSettings::off())
    }

    fn member_with(&self, settings: BreakerSettings) -> Arc<Member> {
        let backend = Backend::from(Arc::new(self.clone()) as Arc<dyn Model>);
        Arc::new(Member::new(self.0.name, backend).breaker(settings))
    }
}

impl Model for Puppet {
    fn name(&self) -> &str {
        self.0.name
    }

    fn provider(&self) -> &'static str {
        "puppet"
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities.clone()
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        Box::pin(async move {
            use futures_util::{StreamExt as _, stream};
            self.0.asked.lock().unwrap().push(request);
            let mood = self.0.mood.lock().unwrap().clone();
            let events = ModelResponse::text(self.0.name).into_events();
            let first = |count| {
                let events = events.clone().into_iter().take(count).map(Ok);
                stream::iter(events.collect::<Vec<_>>())
            };
            Ok(match mood {
                Mood::Answers => first(usize::MAX).boxed(),
                Mood::Fails(error) => return Err(error),
                Mood::BreaksAfter(count, error) => {
                    first(count).chain(stream::iter([Err(error)])).boxed()
                }
                Mood::EndsAfter(count) => first(count).boxed(),
                Mood::Hangs => std::future::pending().await,
                Mood::HangsAfter(count) => first(count).chain(stream::pending()).boxed(),
            })
        })
    }
}

fn error(kind: ModelErrorKind) -> ModelError {
    let words = format!("it is {kind:?}");
    let status = match kind {
        ModelErrorKind::RateLimit => 429,
        ModelErrorKind::ServerError => 500,
        ModelErrorKind::Unauthorized => 401,
        ModelErrorKind::Unreachable | ModelErrorKind::Timeout | ModelErrorKind::Protocol => {
            return ModelError::new(kind, words);
        }
        _ => 400,
    };
    ModelError::new(kind, words).with_status(status)
}

fn asked(words: &str) -> ModelRequest {
    ModelRequest {
        conversation: words.into(),
        ..ModelRequest::default()
    }
}

/// Opens at the second failure, for ten seconds.
fn quick() -> BreakerSettings {
    BreakerSettings {
        enabled: true,
        failures: 2,
        open: Duration::from_secs(10),
        longest: Duration::from_mins(1),
    }
}

/// The text of an answer to "hi".
async fn answer(pool: &Pool) -> Result<String, ModelError> {
    answer_to(pool, asked("hi")).await
}

async fn answer_to(model: &dyn Model, request: ModelRequest) -> Result<String, ModelError> {
    let answer = common::events::answer_of(model, request).await?;
    Ok(answer.items.iter().map(haft_core::Item::text).collect())
}

/// What a pool says and who said it.
async fn heard(pool: &Arc<Pool>) -> (Result<String, ModelError>, Option<String>) {
    let witness = Witness::default();
    let model = pool.heard_by(witness.clone());
    (answer_to(&*model, asked("hi")).await, witness.stand_ins())
}
