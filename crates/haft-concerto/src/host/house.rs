//! The host.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use haft_core::{BoxFuture, Cancel, ToolObject};

use super::agents::Agents;
use super::connections::Connections;
use super::course::Course;
use super::servers::Servers;
use super::session::{Session, Use, internal};
use super::tools::Toolbox;
use super::web::Web;
use super::{EmitFormat, RunFailure, Setup, TestOutcome};
use crate::load::Program;
use crate::repl::Ready;
use crate::value::Value;
use crate::vm::{Failure, Legacy, Machine, Output};

/// Runs a program, its tests and its tools on haft's engine. Clones share everything.
#[derive(Clone)]
pub struct Host(Arc<House>);

/// What everything that a host runs shares.
pub(super) struct House {
    pub(super) program: Arc<Program>,
    pub(super) setup: Setup,
    pub(super) cancel: Cancel,
    pub(super) partners: Partners,
    toolbox: OnceLock<Toolbox>,
    handlers: RwLock<HashMap<String, Handler>>,
    told: Mutex<HashSet<String>>,
}

/// Whom a program talks to.
#[derive(Clone)]
pub(super) struct Partners {
    pub(super) connections: Arc<Connections>,
    pub(super) servers: Arc<Servers>,
    pub(super) agents: Arc<Agents>,
    pub(super) web: Arc<Web>,
}

type Handler = Arc<dyn Fn(Value) -> BoxFuture<'static, Value> + Send + Sync>;

impl Host {
    /// A host for a program. Nothing is started before it is needed.
    pub fn new(program: Arc<Program>, setup: Setup) -> Self {
        let partners = Partners {
            connections: Arc::default(),
            servers: Arc::new(Servers::new(&setup)),
            agents: Arc::default(),
            web: Arc::default(),
        };
        Self::with(program, setup, partners)
    }

    /// A host for another program, with the same setup. What this one has started goes on for it, if both
    /// programs name the same connections, MCP servers and agents; otherwise it is ended.
    pub async fn followed_by(&self, program: Arc<Program>) -> Self {
        let setup = self.0.setup.clone();
        let (before, now) = (self.0.program.ir(), program.ir());
        if before.connections == now.connections && before.agents == now.agents {
            return Self::with(program, setup, self.0.partners.clone());
        }
        self.close().await;
        Self::new(program, setup)
    }

    fn with(program: Arc<Program>, setup: Setup, partners: Partners) -> Self {
        Self(Arc::new(House {
            partners,
            toolbox: OnceLock::new(),
            cancel: Cancel::new(),
            handlers: RwLock::default(),
            told: Mutex::default(),
            program,
            setup,
        }))
    }

    /// Registers who hears of a channel. Its answer is the value of `await emit`; that of a plain `emit`
    /// is dropped, and the program goes on when it is there. The latest handler of a channel counts.
    #[must_use]
    pub fn on_emit<F, R>(self, channel: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Value> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |payload| Box::pin(handler(payload)));
        let handlers = self.0.handlers.write();
        let mut handlers = handlers.unwrap_or_else(PoisonError::into_inner);
        handlers.insert(channel.into(), handler);
        drop(handlers);
        self
    }

    /// Runs the program on a machine of its own: what comes first, then its entry. `Err` of `main` is a
    /// failure.
    pub async fn run(&self, output: Box<dyn Output>) -> Result<Value, RunFailure> {
        let session = Session::open(&self.0, output, Use::Program).await?;
        let entry = session.machine().await.entry();
        let entry = entry.map_err(|error| RunFailure {
            text: error.to_string(),
            place: None,
            is_cancelled: false,
        })?;
        let course = Course::new(self.0.cancel.child());
        match session.drive(entry, course).await? {
            Value::Err(error) => Err(RunFailure {
                text: Failure::Raised(error.get().clone()).to_string(),
                place: None,
                is_cancelled: false,
            }),
            value => Ok(value),
        }
    }

    /// Runs the test at this place of the IR on a machine of its own.
    pub async fn test(&self, place: usize, output: Box<dyn Output>) -> TestOutcome {
        let Some(test) = self.0.program.ir().tests.get(place) else {
            return TestOutcome::Failed(format!("there is no test number {place}"), None);
        };
        let ended = async {
            let session = Session::open(&self.0, output, Use::Test).await?;
            let fiber = session.machine().await.test(place);
            let fiber = fiber.map_err(|error| internal(&error.to_string()))?;
            session
                .drive(fiber, Course::new(self.0.cancel.child()))
                .await
        };
        let ended = ended.await;
        let ended = ended.map_err(|ended| (ended.failure.to_string(), ended.place));
        TestOutcome::of(test, ended)
    }

    /// Runs a piece of a program that is written while it runs ([`Repl`](crate::repl::Repl)), on what the
    /// pieces before left. Gives its result and what it leaves, whether it failed or not.
    pub async fn piece(
        &self,
        piece: &Ready,
        legacy: Legacy,
        output: Box<dyn Output>,
    ) -> (Result<Value, RunFailure>, Legacy) {
        let initialises = piece.initialises || legacy.has_functions_in_globals();
        let session = Session::resumed(&self.0, output, legacy, initialises).await;
        let session = match session {
            Ok(session) => session,
            Err((ended, legacy)) => return (Err(ended.into()), legacy),
        };
        let arguments = piece.arguments.clone();
        let fiber = session.machine().await.function(&piece.function, arguments);
        let course = Course::new(self.0.cancel.child());
        let ended = match fiber {
            Ok(fiber) => session.drive(fiber, course).await.map_err(Into::into),
            Err(error) => Err(internal(&error.to_string()).into()),
        };
        let legacy = session.machine().await.leave();
        (ended, legacy)
    }

    /// The program's tools for a catalogue, on a machine that they share; what comes first has run.
    pub async fn tools(
        &self,
        output: Box<dyn Output>,
    ) -> Result<Vec<Arc<dyn ToolObject>>, RunFailure> {
        let session = Session::open(&self.0, output, Use::Tools).await?;
        Ok(self.0.toolbox().served(&session))
    }

    /// Stops everything that runs, as soon as it can be stopped: waiting at once, code after its slice.
    /// What begins later is stopped as well. May be called from anywhere, such as a signal's task.
    pub fn cancel(&self) {
        self.0.cancel.cancel();
    }

    /// Ends MCP servers and agents that the host started, and waits for their end.
    pub async fn close(&self) {
        self.0.partners.agents.close().await;
        self.0.partners.servers.close().await;
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("module", &self.0.program.ir().module)
            .field("setup", &self.0.setup)
            .finish_non_exhaustive()
    }
}

/// The display form of a payload, whole: the machine looked at its length when it was emitted.
fn whole(machine: &mut Machine, payload: &Value) -> String {
    let shown = machine.shown(payload);
    shown.map_or_else(|_| payload.to_string(), Into::into)
}

impl House {
    /// The program's tools, made when the first is needed.
    pub(super) fn toolbox(&self) -> &Toolbox {
        self.toolbox
            .get_or_init(|| Toolbox::new(&self.program, &self.setup))
    }

    /// Whether somebody hears of a channel.
    pub(super) fn hears(&self, channel: &str) -> bool {
        self.handler(channel).is_some()
    }

    fn handler(&self, channel: &str) -> Option<Handler> {
        let handlers = self.handlers.read();
        let handlers = handlers.unwrap_or_else(PoisonError::into_inner);
        handlers.get(channel).cloned()
    }

    /// What the handler of a channel answers, if there is one.
    pub(super) async fn handled(&self, channel: &str, payload: Value) -> Option<Value> {
        let handler = self.handler(channel)?;
        Some(handler(payload).await)
    }

    /// Writes an emit where the program's words go.
    pub(super) fn show(&self, machine: &mut Machine, channel: &str, payload: &Value) {
        let line = match self.setup.emits {
            EmitFormat::Hidden => return,
            EmitFormat::Text => format!("[emit:{channel}] {}\n", whole(machine, payload)),
            EmitFormat::Json => {
                // What cannot be written as JSON is at least shown.
                let json = payload.to_json();
                let json =
                    json.unwrap_or_else(|_| serde_json::json!(whole(machine, payload)).to_string());
                let channel = serde_json::json!(channel);
                format!("{{\"channel\":{channel},\"payload\":{json}}}\n")
            }
        };
        machine.output().print(&line);
    }

    /// Says something once for each `about`: what is wrong with a server is wrong at every call.
    pub(super) fn warn(&self, about: &str, text: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert(about.to_owned()) {
            (self.setup.warn)(text);
        }
    }
}
