//! Tools that the calls of a turn asked for: what is read, found and picked reaches the next request.

use haft_catalog::prompt::{Overrides, READ_SECTION, Rendered, Visibility};
use haft_core::{ErrorCode, ToolName};

use crate::disclosure::{Found, Opens, Pick, Picked, ReadSectionResult, SEARCH_TOOLS};
use crate::event::EventKind;
use crate::outcome::{CallRecord, CallStatus, FailedReason};
use crate::texts;

use super::Machine;
use super::batch::{Batch, BatchCall, CallState};
use super::effect::{Effect, VisibilityExpansionRequired};
use super::settle::Settled;

/// Why a model is started anew.
const NOT_DYNAMIC: &str = "Adapter does not support dynamic tools";

/// What a call asked for.
enum Asked {
    Section(ReadSectionResult),
    Search(Found),
    Pick(Pick),
}

impl Machine {
    /// Tells of the prompt that a run begins with, and remembers it for whoever goes on with the run.
    pub(super) fn begin_prompt(&mut self) {
        if self.environment.prompt.is_none() {
            return;
        }
        if let (Some(rendered), Some(frozen)) = (
            self.environment.rendered.clone(),
            self.environment.frozen.clone(),
        ) {
            self.progress().prompt = Some(frozen);
            self.tell_prompt(&rendered);
        }
        if let Some(prompt) = self.progress().prompt.clone() {
            self.instructions = Some(self.environment.instructions_with(&prompt));
        }
    }

    fn tell_prompt(&mut self, rendered: &Rendered) {
        let Some(source) = &self.environment.prompt else {
            return;
        };
        let states = rendered.states.iter();
        let states = states.map(|(path, state)| (path.as_ref().to_owned(), *state));
        let full = self.tools.full();
        let offered = full.tools_for_llm();
        let offered = offered.filter(|tool| !full.unseen().contains(tool.name()));
        let event = EventKind::PromptRendered {
            prompt: source.prompt.name().to_owned(),
            section_states: states.collect(),
            tool_names: offered.map(|tool| tool.name().clone()).collect(),
        };
        self.emit(event);
    }

    /// Makes what this turn's calls asked for part of the list. Says whether the run goes on.
    pub(super) fn disclose(&mut self, batch: &Batch) -> bool {
        let opens = self.environment.opens();
        let mut keys = Vec::new();
        for call in &batch.calls {
            if call.is_auto_picked || self.has_loaded_itself(call) {
                keys.push(call.item.name.clone());
            }
            match self.asked(call) {
                Some(Asked::Section(read)) if !read.expanded_tools.is_empty() => {
                    if opens == Opens::ByInjection {
                        self.progress().counters.disclosure_dynamic += 1;
                        self.inject_section(&read);
                    }
                    keys.push(read.section_key);
                }
                Some(Asked::Search(found)) => {
                    let (added, skipped) = self.tools.load(&found.tools);
                    if !added.is_empty() {
                        keys.push(SEARCH_TOOLS.to_owned());
                        if opens == Opens::ByInjection {
                            self.note_injected(added, skipped, SEARCH_TOOLS.to_owned());
                        }
                    }
                }
                Some(Asked::Pick(pick)) => {
                    if pick.fresh > 0 {
                        keys.push(call.item.name.clone());
                    }
                    let fresh = u64::try_from(pick.fresh).unwrap_or(u64::MAX);
                    self.progress().counters.tools_picked += fresh;
                    self.emit(EventKind::ToolsPicked {
                        picked: pick.picked,
                        unknown: pick.unknown,
                        auto: false,
                    });
                }
                Some(Asked::Section(_)) | None => {}
            }
        }
        match opens {
            _ if keys.is_empty() => true,
            Opens::ByInjection => {
                self.tools.show(&self.environment.state);
                true
            }
            Opens::ByRestart => self.restart(keys),
        }
    }

    fn asked(&self, call: &BatchCall) -> Option<Asked> {
        let record = self.session.run.as_ref()?.records.get(call.record)?;
        if record.status != CallStatus::Succeeded {
            return None;
        }
        let value = record.value.clone()?;
        let name = call.item.name.as_str();
        if self.environment.prompt.is_some() && name == READ_SECTION {
            serde_json::from_value(value).ok().map(Asked::Section)
        } else if self.tools.is_search(name) {
            serde_json::from_value(value).ok().map(Asked::Search)
        } else if self
            .tools
            .pick_tool()
            .is_some_and(|pick| pick.as_str() == name)
        {
            serde_json::from_value(value).ok().map(Asked::Pick)
        } else {
            None
        }
    }

    /// What a search found.
    pub(super) fn found_by(&self, call: &BatchCall) -> Vec<ToolName> {
        match self.asked(call) {
            Some(Asked::Search(found)) => found.tools,
            _ => Vec::new(),
        }
    }

    /// The tools that the output of a call refers to, where that is how the model gets to see them.
    pub(super) fn references(&self, call: &BatchCall) -> Vec<String> {
        let mut names = match self.asked(call) {
            Some(Asked::Section(read)) => read.expanded_tools,
            Some(Asked::Search(found)) => found.tools,
            Some(Asked::Pick(_)) | None => Vec::new(),
        };
        names.retain(|name| self.tools.full().unseen().contains(name));
        names.iter().map(ToString::to_string).collect()
    }

    fn inject_section(&mut self, read: &ReadSectionResult) {
        let Some(source) = self.environment.prompt.clone() else {
            return;
        };
        let names = read.expanded_tools.iter();
        let tools = names.filter_map(|name| source.tool(name)).collect();
        let (added, skipped) = self.tools.inject(tools);
        self.note_injected(added, skipped, read.section_key.clone());
    }

    pub(super) fn note_injected(
        &mut self,
        added: Vec<ToolName>,
        skipped: Vec<ToolName>,
        section_key: String,
    ) {
        if added.is_empty() {
            return;
        }
        let names: Vec<_> = added.iter().map(ToolName::as_str).collect();
        tracing::info!(
            section_key,
            tool_count = added.len(),
            tool_names = names.join(", "),
            "Injected tools from section expansion"
        );
        let progress = self.progress();
        progress.counters.tools_injected += u64::try_from(added.len()).unwrap_or(u64::MAX);
        progress.disclosed.extend(added.iter().cloned());
        self.emit(EventKind::ToolsInjected {
            tool_names: added,
            section_key,
            skipped,
        });
    }

    /// Starts a model anew that cannot take new tools in a running conversation. Says whether the run
    /// goes on.
    fn restart(&mut self, section_keys: Vec<String>) -> bool {
        let limit = self.environment.options.max_restarts;
        let progress = self.progress();
        if progress.restarts >= limit {
            let message = format!("Too many prompt restarts ({limit})");
            self.end_failed(FailedReason::RestartLimit, message);
            return false;
        }
        progress.restarts += 1;
        progress.counters.disclosure_restarts += 1;
        let restart = progress.restarts;
        self.emit(EventKind::DisclosureRestarted {
            section_keys: section_keys.clone(),
            reason: NOT_DYNAMIC,
            restart,
        });
        self.effects
            .push_back(Effect::Restart(VisibilityExpansionRequired {
                requested_overrides: self.opened(&section_keys),
                section_keys,
                reason: NOT_DYNAMIC,
            }));
        match self.begin_anew() {
            Ok(()) => true,
            Err(words) => {
                self.end_failed(FailedReason::Prompt, words);
                false
            }
        }
    }

    /// Which of these are sections, opened.
    fn opened(&self, keys: &[String]) -> Overrides {
        let source = self.environment.prompt.as_ref();
        let is_section = |key: &&String| source.is_some_and(|it| it.prompt.contains(key));
        let sections = keys.iter().filter(is_section);
        sections
            .map(|key| (key.clone(), Visibility::Full))
            .collect()
    }

    /// Renders the prompt again and makes the list anew.
    fn begin_anew(&mut self) -> Result<(), String> {
        let environment = std::sync::Arc::clone(&self.environment);
        let rendered = match &environment.prompt {
            None => None,
            Some(source) => {
                let rendered = source.render(&environment.state);
                Some(rendered.map_err(|error| error.to_string())?)
            }
        };
        let source = environment.prompt.as_ref();
        let loading = environment.loading();
        let frozen = source.zip(rendered.as_ref());
        let mut frozen = frozen.map(|(source, rendered)| source.frozen(rendered, loading));
        if let Some(frozen) = &mut frozen {
            // What the conversation has called stays: its results may still tell to call it again.
            frozen.offers_read_section |= self.offers_read_section();
        }
        let tools = environment.toolset(frozen.as_ref(), &[], &self.session.conversation);
        self.tools = tools.map_err(|error| error.to_string())?;
        if let (Some(rendered), Some(frozen)) = (rendered, frozen) {
            self.instructions = Some(environment.instructions_with(&frozen));
            self.progress().prompt = Some(frozen);
            self.tell_prompt(&rendered);
        }
        Ok(())
    }

    fn offers_read_section(&mut self) -> bool {
        let prompt = self.progress().prompt.as_ref();
        prompt.is_some_and(|prompt| prompt.offers_read_section)
    }

    /// Answers a call that did not become a tool, unless its tool may come with a section that an
    /// earlier call of the turn reads: then its answer waits for that.
    pub(super) fn settle_refused_or_wait(&mut self, call: &mut BatchCall, is_reading: &mut bool) {
        if !matches!(call.state, CallState::Ready) {
            return;
        }
        let first = call.hydration.errors.first();
        let is_unknown =
            first.is_some_and(|error| matches!(error.detail, ErrorCode::UnknownTool { .. }));
        if *is_reading && is_unknown {
            call.is_early = true;
            return;
        }
        self.settle_refused(call);
        let is_read = self.environment.prompt.is_some() && call.item.name == READ_SECTION;
        *is_reading |= is_read && matches!(call.state, CallState::Ready);
    }

    /// Answers a call whose tool was not there when the turn began.
    pub(super) fn settle_early(&mut self, call: &mut BatchCall) {
        if !call.is_early {
            return;
        }
        let round = self.progress().rounds + 1;
        let brings = |record: &CallRecord| {
            let read = record
                .value
                .clone()
                .filter(|_| record.tool_name == READ_SECTION);
            let read =
                read.and_then(|value| serde_json::from_value::<ReadSectionResult>(value).ok());
            let is_brought = |name: &ToolName| name.as_str() == call.item.name;
            record.round == round
                && read.is_some_and(|read| read.expanded_tools.iter().any(is_brought))
        };
        if self.progress().records.iter().any(brings) {
            let text = texts::next_turn(&call.item.name);
            self.settle(call, Settled::error(CallStatus::Refused, text));
        } else {
            self.settle_refused(call);
        }
    }

    /// What to tell a model that called a tool of which it saw one line.
    pub(super) fn pick_hint(&self, name: &str) -> Option<String> {
        let pick = self.tools.pick_tool()?;
        let is_brief = self.tools.is_unpicked(name, &self.environment.state);
        is_brief.then(|| texts::pick_first(pick.as_str(), name))
    }

    /// To call a tool is to pick it, whatever comes of the call.
    pub(super) fn pick_called(&mut self, call: &mut BatchCall) {
        let state = &self.environment.state;
        let Some(definition) = &call.definition else {
            return;
        };
        if !self.tools.is_unpicked(&call.item.name, state) {
            return;
        }
        let name = definition.name().clone();
        if let Err(error) = state.update::<Picked>(|picked| {
            picked.add(&name);
        }) {
            tracing::error!(%error, "a pick cannot be remembered");
            return;
        }
        call.is_auto_picked = true;
        self.progress().counters.tools_picked += 1;
        self.emit(EventKind::ToolsPicked {
            picked: vec![name],
            unknown: Vec::new(),
            auto: true,
        });
    }

    /// Picks belong to the run that answered.
    pub(super) fn forget_picks(&mut self) {
        let environment = &self.environment;
        if environment.showing.brief.is_some() && !environment.showing.keeps_picks {
            let forgotten = environment
                .state
                .update::<Picked>(|picked| picked.0.clear());
            if let Err(error) = forgotten {
                tracing::error!(%error, "picks cannot be forgotten");
            }
        }
    }
}
