//! Log messages of servers, on their way to the clients that asked for them.
//!
//! A server does not say to which request a message belongs, and it may quote what another caller sent. So
//! a message goes to a request that is in flight at that server, as long as all of them are of one caller.
//! Without requests in flight it goes to the clients of the operator only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_mcp::gateway::{BackendLog, CallContext};
use haft_mcp::{LogLevel, LogMessage, OnLog, Server};
use tokio::sync::broadcast;

/// How many messages may be pending for a client.
const PENDING: usize = 256;

/// The requests in flight at each server, and where other messages go.
#[derive(Debug)]
pub(super) struct ServerLogs {
    active: Mutex<HashMap<String, Vec<(u64, CallContext)>>>,
    next: Mutex<u64>,
    /// The most verbose level that any client asked for.
    level: Mutex<Option<LogLevel>>,
    others: Option<broadcast::Sender<BackendLog>>,
}

impl ServerLogs {
    /// `is_operator`: whether messages that belong to no request may be sent to every client.
    pub(super) fn new(is_operator: bool) -> Arc<Self> {
        Arc::new(Self {
            active: Mutex::default(),
            next: Mutex::default(),
            level: Mutex::default(),
            others: is_operator.then(|| broadcast::channel(PENDING).0),
        })
    }

    /// Messages that belong to no request, from now on.
    pub(super) fn others(&self) -> Option<broadcast::Receiver<BackendLog>> {
        self.others.as_ref().map(broadcast::Sender::subscribe)
    }

    /// Asks servers for messages from this level on. What other clients want is kept.
    pub(super) fn want(&self, level: LogLevel) -> LogLevel {
        let mut wanted = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let level = wanted.map_or(level, |wanted| wanted.min(level));
        *wanted = Some(level);
        level
    }

    /// Notes that a request is in flight at a server until what is returned is dropped.
    pub(super) fn enter(
        self: &Arc<Self>,
        server: &Arc<Server>,
        context: &CallContext,
    ) -> ActiveRequest {
        let label = server.label().as_str();
        // A client that wants less than `info` says so; everything else is sent anyway.
        let own = context.log_level().filter(|it| *it < LogLevel::Info);
        let wanted = match own {
            Some(level) => Some(self.want(level)),
            None => *self.level.lock().unwrap_or_else(PoisonError::into_inner),
        };
        if let Some(level) = wanted {
            // A server that was added or started meanwhile.
            server.set_log_level(level);
        }
        let id = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            *next = next.wrapping_add(1);
            *next
        };
        let mut active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = active.entry(label.to_owned()).or_default();
        requests.push((id, context.clone()));
        ActiveRequest {
            logs: Arc::clone(self),
            label: label.to_owned(),
            id,
        }
    }

    /// Passes a message on that arrived while no request was in flight.
    pub(super) fn pass_on(&self, label: &str, message: &LogMessage) {
        let Some(others) = self.others.as_ref().filter(|_| !message.is_during_request) else {
            return;
        };
        // It fails if there are no clients, which is no error.
        let _ = others.send(BackendLog {
            level: message.level,
            logger: Some(logger(label, message)),
            data: message.data.clone(),
        });
    }

    /// Passes a message on to the request with this id, if it is the one to have it: all requests in flight
    /// at the server are of one caller, and this is the last of them whose client wants the message.
    fn pass_on_to(&self, label: &str, id: u64, message: &LogMessage) {
        let active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = active.get(label).map(Vec::as_slice).unwrap_or_default();
        let Some((_, newest)) = requests.last() else {
            return;
        };
        let caller = newest.caller().id();
        if requests.iter().any(|(_, it)| it.caller().id() != caller) {
            return;
        }
        let wants = |(_, context): &&(u64, CallContext)| {
            let least = context.log_level();
            least.is_some_and(|least| message.level >= least)
        };
        if let Some((chosen, context)) = requests.iter().rev().find(wants)
            && *chosen == id
        {
            let logger = logger(label, message);
            context.log(message.level, Some(&logger), message.data.clone());
        }
    }
}

/// The server, and the part of it that wrote the message.
fn logger(label: &str, message: &LogMessage) -> String {
    match &message.logger {
        Some(logger) => format!("{label}/{logger}"),
        None => label.to_owned(),
    }
}

/// A request in flight.
pub(super) struct ActiveRequest {
    logs: Arc<ServerLogs>,
    label: String,
    id: u64,
}

impl ActiveRequest {
    /// What passes on the log messages that arrive while the request is in flight.
    pub(super) fn on_log(&self) -> OnLog {
        let (logs, label, id) = (Arc::clone(&self.logs), self.label.clone(), self.id);
        Arc::new(move |message| logs.pass_on_to(&label, id, message))
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let active = self.logs.active.lock();
        let mut active = active.unwrap_or_else(PoisonError::into_inner);
        if let Some(requests) = active.get_mut(&self.label) {
            requests.retain(|(id, _)| *id != self.id);
            if requests.is_empty() {
                active.remove(&self.label);
            }
        }
    }
}
