//! What is known of the tools of a server of a pool, and which of them may be called.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::super::memory::place;
use super::super::tools::{ServerTools, pin_of, written};
use super::{Listed, Server};
use crate::error::{Cause, Era, McpError};
use crate::listing::ToolList;
use crate::pins::{Compared, Standing};
use crate::settings::Pin;
use crate::tool::Diagnostic;

/// A list of a server that tells no changes is believed at least this long.
const FRESH_AT_LEAST: Duration = Duration::from_secs(10);

impl Server {
    /// What of a list may be used from now on.
    pub(super) async fn take_list(self: &Arc<Self>, list: ToolList, era: Era) -> Arc<ServerTools> {
        let server = Arc::clone(self);
        let taken = tokio::task::spawn_blocking(move || server.take_list_blocking(list, era)).await;
        match taken {
            Ok(tools) => tools,
            // The runtime is going down, or a bug: what is known stays.
            Err(_) => self.known_tools().unwrap_or_default(),
        }
    }

    fn take_list_blocking(&self, list: ToolList, era: Era) -> Arc<ServerTools> {
        let settings = self.settings();
        let before = self.known_tools();
        let tools = match self.compare(&list) {
            Ok(compared) => {
                ServerTools::of_list(list, settings, compared.as_ref(), before.as_deref())
            }
            // Nobody can say what was accepted.
            Err(problem) => {
                let known = before.as_deref().cloned().unwrap_or_default();
                ServerTools {
                    is_live: true,
                    is_complete: false,
                    diagnostics: vec![problem],
                    ..known
                }
            }
        };
        let tools = Arc::new(tools);
        if let Some(memory) = &self.parts.memory {
            let is_known = before
                .as_ref()
                .is_some_and(|it| it.shows_the_same(&tools) && it.is_live);
            if !is_known {
                // An empty list is not worth remembering: the next process would show it instead of asking.
                let tools = Some(&*tools.tools).filter(|it| !it.is_empty());
                memory.keep(settings, era, tools);
            }
        }
        // Once per change: a server may be listed every few seconds.
        let known = before.as_deref().map_or(&[][..], |it| &it.diagnostics);
        let new = tools.diagnostics.iter().filter(|it| !known.contains(it));
        for diagnostic in new {
            tracing::warn!(server = %settings.label, "{diagnostic}");
        }
        let has_changed = before.is_none_or(|it| !it.shows_the_same(&tools));
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        *listed = Listed {
            tools: Some(Arc::clone(&tools)),
            read_at: Some(Instant::now()),
            last_read: Some(Instant::now()),
            is_settled: true,
        };
        drop(listed);
        if has_changed {
            let _ = self.parts.changes.send(self.label().as_str().into());
        }
        tools
    }

    /// How the list stands to what was accepted; nothing where nothing is pinned.
    fn compare(&self, list: &ToolList) -> Result<Option<Compared>, Diagnostic> {
        let settings = self.settings();
        let pin = pin_of(settings);
        let Some(pins) = self.parts.pins.as_ref().filter(|_| pin != Pin::Off) else {
            return Ok(None);
        };
        // Whatever the operator admits later was there from the start.
        let listed = list.tools.iter().chain(&list.excluded);
        let definitions: Vec<_> = listed.map(written).collect();
        let label = &self.pin_name();
        let compared = if self.is_registering() {
            pins.compare_and_add(label, &place(settings), &definitions)
        } else {
            pins.compare(label, &place(settings), &definitions)
        };
        match compared {
            Ok(compared) => {
                if compared.is_first {
                    self.begin_registering();
                }
                self.log_changes(pin, &compared);
                Ok(Some(compared))
            }
            Err(error) => {
                tracing::error!(server = label, %error, "the pinned definitions cannot be used");
                if pin != Pin::Hold {
                    return Ok(None);
                }
                Err(Diagnostic {
                    tool: None,
                    is_left_out: false,
                    problem: format!("nothing new is used, because {error}"),
                })
            }
        }
    }

    /// The tools, if they were read a moment ago or the server tells when they change.
    pub(super) fn fresh_tools(&self) -> Option<Arc<ServerTools>> {
        let tells = self
            .connected()
            .is_some_and(|connection| connection.identity().tells_changes);
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        let tools = listed.tools.as_ref()?;
        let age = listed.read_at?.elapsed();
        let is_fresh = age < tools.ttl.max(FRESH_AT_LEAST) || tells;
        is_fresh.then(|| Arc::clone(tools))
    }

    pub(super) fn read_since(&self, instant: Instant) -> Option<Arc<ServerTools>> {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        let is_late_enough = listed.read_at.is_some_and(|at| at > instant);
        listed.tools.clone().filter(|_| is_late_enough)
    }

    /// Whether this tool may be called, by what the server lists now: over a new connection, and after it
    /// said that its tools changed, the list is read before the first call, so that nothing that was not
    /// accepted is called in the meantime.
    pub(super) async fn check_tool(self: &Arc<Self>, raw: &str) -> Result<(), McpError> {
        let is_read = {
            let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
            listed.read_at.is_some()
        };
        let pin = pin_of(self.settings());
        let tools = if is_read || pin == Pin::Off || self.parts.pins.is_none() {
            self.known_tools()
        } else {
            Some(self.refresh().await?)
        };
        let is_held = |tools: Arc<ServerTools>| tools.held.iter().any(|tool| tool.name == raw);
        let refused = if !self.settings().admits(raw) {
            Some(format!(
                "the tool `{raw}` is excluded by `allow` or `deny` of `[mcp.{}]`",
                self.label()
            ))
        } else if tools.is_some_and(is_held) {
            Some(format!(
                "the tool `{raw}` is new or has changed, and is held back: look at it, then run \
                 `haft mcp accept {}`",
                self.label()
            ))
        } else {
            None
        };
        refused.map_or(Ok(()), |text| Err(self.failure(Cause::Settings(text))))
    }

    /// Lets the next use of the list read it anew.
    pub(in crate::pool) fn expire(&self) {
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        listed.read_at = None;
    }

    /// Lets the next use of the list read it anew, as the first one over a new connection.
    pub(super) fn expire_for_new_connection(&self) {
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        listed.read_at = None;
        listed.is_settled = false;
    }

    /// Logs what differs from what was accepted: each change once, not at every list.
    fn log_changes(&self, pin: Pin, compared: &Compared) {
        let settings = self.settings();
        let label = settings.label.as_str();
        let is_used = |(tool, _): &&(String, Standing)| settings.admits(tool);
        let changed = compared.standings.iter().filter(is_used);
        let changed = changed.filter(|(_, standing)| *standing != Standing::Same);
        let changed: Vec<_> = changed.cloned().collect();
        let logged = std::mem::replace(&mut *super::locked(&self.logged_changes), changed.clone());
        for (tool, standing) in changed.iter().filter(|it| !logged.contains(it)) {
            let (what, differences) = match standing {
                Standing::Same => continue,
                Standing::New => ("is new", None),
                Standing::Changed(differences) => ("has changed", Some(differences)),
            };
            let differences = differences.into_iter().flatten();
            let differences: Vec<_> = differences.map(ToString::to_string).collect();
            let differences = differences.join("\n");
            let tool = haft_core::cut(&crate::text::visible(tool));
            if pin == Pin::Hold {
                tracing::warn!(server = label, tool, %differences,
                    "the tool {what} and is held back: review it, then run `haft mcp accept {label}`");
            } else {
                tracing::warn!(server = label, tool, %differences, "the tool {what}");
            }
        }
    }
}
