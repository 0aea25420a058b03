//! Feedback: what the host adds to a tool's message from time to time.
//!
//! What comes in: one moment per finished call, its time given from outside. What goes out: the
//! blocks of every provider one of whose triggers fires. What was counted so far is in a
//! [`FeedbackMemory`], which serialises with the session. Feedback must never change a result: it
//! is appended to what the model reads, and to nothing else.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haft_core::{
    FeedbackMoment, FeedbackProvider, FeedbackTrigger, FileSystem, Slice, SliceKind, ToolName,
    caught,
};
use serde::{Deserialize, Serialize};

use crate::policies::normalised;

/// A provider that always says the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reminder {
    name: String,
    text: String,
    triggers: Vec<FeedbackTrigger>,
}

impl Reminder {
    /// A text under a name. It is said when a trigger fires; it has none yet.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            triggers: Vec::new(),
        }
    }

    /// Also then.
    #[must_use]
    pub fn when(mut self, trigger: FeedbackTrigger) -> Self {
        self.triggers.push(trigger);
        self
    }
}

impl FeedbackProvider for Reminder {
    fn name(&self) -> &str {
        &self.name
    }

    fn triggers(&self) -> &[FeedbackTrigger] {
        &self.triggers
    }

    fn block(&self, _: &FeedbackMoment<'_>) -> Option<String> {
        Some(self.text.clone())
    }
}

/// The providers of a run, in the order in which they speak.
///
/// ```
/// use haft_engine::{Feedback, FeedbackMemory, FeedbackTrigger, Reminder, with_feedback};
/// use std::time::Duration;
///
/// let feedback = Feedback::new()
///     .provider(Reminder::new("tests", "Run the tests.").when(FeedbackTrigger::EveryNCalls(2)));
/// let mut memory = FeedbackMemory::default();
/// feedback.begin(&mut memory, Duration::ZERO);
/// let mut call = || feedback.after_call(&mut memory, "edit_file", "call_1", true, Duration::ZERO);
/// assert!(call().is_empty());
/// assert_eq!(with_feedback("Done.", &call()), "Done.\n\nRun the tests.");
/// ```
#[derive(Clone, Default)]
pub struct Feedback {
    providers: Vec<Arc<dyn FeedbackProvider>>,
    files: Option<Arc<dyn FileSystem>>,
}

/// Somebody who speaks, and after calls of which tools; of all, if none are named.
pub(crate) type Scope = (Option<Vec<ToolName>>, Arc<dyn FeedbackProvider>);

/// A section's provider: it speaks after calls of the section's tools.
struct Scoped {
    tools: Vec<ToolName>,
    provider: Arc<dyn FeedbackProvider>,
}

impl FeedbackProvider for Scoped {
    fn name(&self) -> &str {
        self.provider.name()
    }

    fn triggers(&self) -> &[FeedbackTrigger] {
        self.provider.triggers()
    }

    fn block(&self, moment: &FeedbackMoment<'_>) -> Option<String> {
        let mut tools = self.tools.iter();
        let is_its_own = tools.any(|tool| tool.as_str() == moment.tool_name);
        is_its_own.then(|| self.provider.block(moment)).flatten()
    }
}

/// What was counted so far. It is kept also where a call is rolled back: the call did happen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FeedbackMemory {
    calls: u64,
    providers: BTreeMap<String, Spoken>,
}

impl Slice for FeedbackMemory {
    const NAME: &'static str = "feedback";
    const KIND: SliceKind = SliceKind::Log;
}

/// What one provider has to remember.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Spoken {
    /// When each number of seconds was last full, in milliseconds since the epoch.
    seconds: BTreeMap<u64, u64>,
    files: BTreeMap<String, Watch>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Watch {
    /// It was there before: it cannot be created unless it goes away.
    Present,
    Absent,
    Reported,
}

impl Feedback {
    /// Nobody speaks.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more provider, behind the others.
    #[must_use]
    pub fn provider(mut self, provider: impl FeedbackProvider) -> Self {
        self.providers.push(Arc::new(provider));
        self
    }

    /// The providers of a prompt, each for calls of the tools that it names, or of all.
    pub(crate) fn extend(&mut self, providers: Vec<Scope>) {
        for (tools, provider) in providers {
            self.providers.push(match tools {
                None => provider,
                Some(tools) => Arc::new(Scoped { tools, provider }),
            });
        }
    }

    /// Where to see which files exist. Without it, [`FeedbackTrigger::OnFileCreated`] never fires.
    #[must_use]
    pub fn files(mut self, files: impl FileSystem) -> Self {
        self.files = Some(Arc::new(files));
        self
    }

    /// Whether nobody speaks.
    pub fn is_empty(&self) -> bool {
        self.providers.is_empty()
    }

    /// Notes what is there and which time it is, for triggers that the memory does not know yet.
    pub fn begin(&self, memory: &mut FeedbackMemory, now: Duration) {
        for provider in &self.providers {
            let spoken = memory.of(&**provider);
            for trigger in provider.triggers() {
                match trigger {
                    FeedbackTrigger::EveryNCalls(_) => {}
                    FeedbackTrigger::EveryNSeconds(seconds) => {
                        spoken.seconds.entry(*seconds).or_insert(millis(now));
                    }
                    FeedbackTrigger::OnFileCreated(path) => {
                        let watch = || {
                            if self.is_there(path) {
                                Watch::Present
                            } else {
                                Watch::Absent
                            }
                        };
                        spoken.files.entry(path.clone()).or_insert_with(watch);
                    }
                }
            }
        }
    }

    /// Counts a finished call; the blocks that belong behind its message, in order.
    pub fn after_call(
        &self,
        memory: &mut FeedbackMemory,
        tool_name: &str,
        call_id: &str,
        success: bool,
        now: Duration,
    ) -> Vec<String> {
        self.begin(memory, now);
        memory.calls += 1;
        let moment = FeedbackMoment {
            tool_name,
            call_id,
            success,
            calls: memory.calls,
            now,
        };
        self.providers
            .iter()
            .filter(|provider| self.fires(memory.of(&***provider), &***provider, &moment))
            .filter_map(|provider| {
                caught(|| provider.block(&moment)).unwrap_or_else(|panic| {
                    tracing::error!(provider = provider.name(), panic, "feedback panicked");
                    None
                })
            })
            .collect()
    }

    /// Asks every trigger, also behind the first that fires: each keeps its own count.
    fn fires(
        &self,
        spoken: &mut Spoken,
        provider: &dyn FeedbackProvider,
        moment: &FeedbackMoment<'_>,
    ) -> bool {
        let triggers = provider.triggers().iter();
        triggers.fold(false, |any, trigger| {
            let fires = match trigger {
                FeedbackTrigger::EveryNCalls(0) | FeedbackTrigger::EveryNSeconds(0) => false,
                FeedbackTrigger::EveryNCalls(calls) => moment.calls.is_multiple_of(*calls),
                FeedbackTrigger::EveryNSeconds(seconds) => spoken.time(*seconds, moment.now),
                FeedbackTrigger::OnFileCreated(path) => spoken.file(path, self.is_there(path)),
            };
            any || fires
        })
    }

    fn is_there(&self, path: &str) -> bool {
        let path = normalised(path, "");
        self.files.as_ref().is_some_and(|files| files.exists(&path))
    }
}

impl FeedbackMemory {
    fn of(&mut self, provider: &dyn FeedbackProvider) -> &mut Spoken {
        self.providers
            .entry(provider.name().to_owned())
            .or_default()
    }
}

impl Spoken {
    fn time(&mut self, seconds: u64, now: Duration) -> bool {
        let now = millis(now);
        let last = self.seconds.entry(seconds).or_insert(now);
        let full = now.saturating_sub(*last) >= seconds.saturating_mul(1000);
        if full {
            *last = now;
        }
        full
    }

    fn file(&mut self, path: &str, present: bool) -> bool {
        let watch = self.files.entry(path.to_owned()).or_insert(Watch::Absent);
        let created = *watch == Watch::Absent && present;
        match (*watch, present) {
            (Watch::Absent, true) => *watch = Watch::Reported,
            (Watch::Present, false) => *watch = Watch::Absent,
            _ => {}
        }
        created
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A tool's message with feedback behind it, each block after a blank line.
pub fn with_feedback(message: &str, blocks: &[String]) -> String {
    let said = std::iter::once(message).filter(|message| !message.is_empty());
    let pieces: Vec<_> = said.chain(blocks.iter().map(String::as_str)).collect();
    pieces.join("\n\n")
}

impl fmt::Debug for Feedback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.providers.iter().map(|provider| provider.name());
        f.debug_list().entries(names).finish()
    }
}

#[cfg(test)]
#[path = "feedback_tests.rs"]
mod tests;
