//! The tools of a run as they stand: what is offered in full, and what of that the model sees how.
//!
//! The list only grows at its end, so that what a provider has cached stays valid. Where a provider
//! takes tools that the model shall see later, it does not even grow. Picking is the one thing that
//! changes entries in place.

use std::sync::Arc;

use haft_catalog::{BindError, Binding, BriefSchema};
use haft_core::{
    Defer, DefinitionError, Loading, SessionState, ToolChoice, ToolDefinition, ToolName, ToolObject,
};

use crate::options::LoopOptions;

use super::finder::LexicalFinder;
use super::memory::{Deferral, Picked};
use super::pick::{self, PICK_TOOLS, pick_tools};
use super::search::{SEARCH_TOOLS, ToolFinder, search_tools};

/// What of a run's tools is shown when.
#[derive(Clone, Default)]
pub(crate) struct Showing {
    /// Tools are shown in brief until they are picked.
    pub(crate) brief: Option<BriefSchema>,
    /// Picks outlive the run's answer.
    pub(crate) keeps_picks: bool,
    /// Who searches; by words in this process if nobody is given.
    pub(crate) finder: Option<Arc<dyn ToolFinder>>,
    /// What the model reads behind the description of the search.
    pub(crate) search_note: Option<Arc<str>>,
    /// The search is in this process, whatever the provider could do.
    pub(crate) searches_here: bool,
}

/// What a toolset is made of.
pub(crate) struct Parts<'a> {
    /// The tools of the binding.
    pub(crate) binding: &'a Binding,
    /// The tools of the prompt's sections that are shown.
    pub(crate) of_sections: Vec<Arc<dyn ToolObject>>,
    /// Those of sections that are yet to be read, where the list has them from the beginning.
    pub(crate) unread: Vec<Arc<dyn ToolObject>>,
    /// The tools that read sections and long results.
    pub(crate) read_section: Option<Arc<dyn ToolObject>>,
    pub(crate) recall: Option<Arc<dyn ToolObject>>,
    pub(crate) showing: &'a Showing,
    pub(crate) options: &'a LoopOptions,
    pub(crate) context_tokens: Option<u64>,
    pub(crate) first_choice: Option<&'a ToolChoice>,
    /// How the model gets to see what is held back.
    pub(crate) loading: Loading,
    /// What earlier runs of the conversation have loaded. Where the list is all that a model sees, it comes
    /// last, in this order, whether it would be held back now or not: what was sent before does not move.
    pub(crate) loaded: Vec<ToolName>,
    /// Those of them that no output of the conversation refers to.
    pub(crate) unreferenced: Vec<ToolName>,
    pub(crate) state: &'a SessionState,
}

/// The tools of a run as they stand.
#[derive(Clone)]
pub(crate) struct Toolset {
    /// Everything that is offered, in full.
    full: Binding,
    /// The same as the model sees it.
    shown: Binding,
    /// That under the choice that holds until a tool has run, where there is one.
    first: Option<Binding>,
    first_choice: Option<ToolChoice>,
    picking: Option<Picking>,
    search: Option<ToolName>,
}

#[derive(Clone)]
struct Picking {
    tool: ToolName,
    schema: BriefSchema,
    /// What can be picked, in order.
    among: Arc<[ToolName]>,
}

impl Toolset {
    /// Tools that neither come nor go.
    pub(crate) fn plain(binding: Binding) -> Self {
        Self {
            full: binding.clone(),
            shown: binding,
            first: None,
            first_choice: None,
            picking: None,
            search: None,
        }
    }

    /// The same, with a choice that holds until one of them has run.
    pub(crate) fn chosen_first(mut self, choice: Option<&ToolChoice>) -> Result<Self, BindError> {
        if let Some(choice) = choice {
            self.first = Some(self.shown.with_choice(choice.clone())?);
            self.first_choice = Some(choice.clone());
        }
        Ok(self)
    }

    /// The tools at the beginning of a run.
    pub(crate) fn open(parts: Parts<'_>) -> Result<Self, BindError> {
        let binding = parts.binding;
        let search = search_tool_name(binding)?;
        let deferred = match parts.loading {
            Loading::Listed => binding.with_held(&search, |tool| parts.holds_back(tool)),
            Loading::Searched => binding.with_searched(|tool| parts.leaves_to_provider(tool)),
            Loading::Referenced => {
                binding.with_referenced(&search, |tool| parts.leaves_to_provider(tool))
            }
        };
        let is_held_back = deferred.held().len() > 0;
        let held = match parts.loading {
            Loading::Listed => {
                deferred.with_held(&search, |tool| parts.loaded.contains(tool.name()))
            }
            Loading::Searched | Loading::Referenced => deferred.clone(),
        };
        let shown = held.specs().iter();
        let shown = shown.filter(|spec| !spec.loading().is_deferred());
        let among = shown.map(|spec| spec.definition().name().clone());
        let picking = match parts.showing.brief {
            None => None,
            Some(schema) => Some(Picking {
                tool: own_name(PICK_TOOLS, binding)?,
                schema,
                among: among.collect(),
            }),
        };
        let mut own = Vec::new();
        own.extend(parts.read_section);
        if is_held_back {
            let finder = parts.showing.finder.clone();
            let finder = finder.unwrap_or_else(|| Arc::new(LexicalFinder::over(&deferred)));
            let note = parts.showing.search_note.as_deref();
            own.push(search_tools(&search, finder, note)?);
        }
        own.extend(parts.recall);
        if let Some(picking) = &picking {
            own.push(pick_tools(&picking.tool, Arc::clone(&picking.among))?);
        }
        let full = held.with_appended(parts.of_sections).binding;
        let full = full.with_appended(own).binding;
        let full = full.with_unseen(parts.unread);
        let full = full.with_loaded(parts.loaded).binding;
        let toolset = Self {
            picking,
            search: is_held_back.then_some(search),
            ..Self::plain(full)
        };
        toolset.chosen_first(parts.first_choice)
    }

    /// The tools as the model sees and may call them, before or after one of them has run.
    pub(crate) fn binding(&self, has_run: bool) -> &Binding {
        let first = self.first.as_ref().filter(|_| !has_run);
        first.unwrap_or(&self.shown)
    }

    /// Everything that is offered, in full.
    pub(crate) fn full(&self) -> &Binding {
        &self.full
    }

    /// Whether this is the tool that searches.
    pub(crate) fn is_search(&self, name: &str) -> bool {
        self.search
            .as_ref()
            .is_some_and(|search| search.as_str() == name)
    }

    /// The tool that picks, where there is one.
    pub(crate) fn pick_tool(&self) -> Option<&ToolName> {
        self.picking.as_ref().map(|picking| &picking.tool)
    }

    /// Whether a tool is shown in brief by now.
    pub(crate) fn is_unpicked(&self, name: &str, state: &SessionState) -> bool {
        let Some(picking) = &self.picking else {
            return false;
        };
        let picked = state.get::<Picked>();
        let is_picked =
            |name: &ToolName| picked.as_ref().is_ok_and(|picked| picked.0.contains(name));
        let mut among = picking.among.iter();
        among.any(|known| known.as_str() == name && !is_picked(known))
    }

    /// Loads what is held back; the names that are new.
    pub(crate) fn load(&mut self, names: &[ToolName]) -> (Vec<ToolName>, Vec<ToolName>) {
        let appended = self.full.with_loaded(names);
        self.full = appended.binding;
        (appended.added, appended.skipped)
    }

    /// Shows a loaded tool to everybody, as no output refers to it.
    pub(crate) fn list(&mut self, name: &ToolName) {
        self.full = self.full.with_listed(name);
    }

    /// Puts tools behind all others; the names that are new, and those that were there.
    pub(crate) fn inject(
        &mut self,
        tools: Vec<Arc<dyn ToolObject>>,
    ) -> (Vec<ToolName>, Vec<ToolName>) {
        let appended = self.full.with_appended(tools);
        self.full = appended.binding;
        (appended.added, appended.skipped)
    }

    /// Brings what the model sees up to date.
    pub(crate) fn show(&mut self, state: &SessionState) {
        self.shown = match &self.picking {
            None => self.full.clone(),
            Some(picking) => picking.show(&self.full, state),
        };
        let choice = self.first_choice.clone();
        // The choice was legal for the tools that there were, and none of them is gone.
        self.first = choice.and_then(|choice| self.shown.with_choice(choice).ok());
    }
}

impl Picking {
    fn show(&self, full: &Binding, state: &SessionState) -> Binding {
        let picked = state.get::<Picked>();
        let is_picked =
            |name: &ToolName| picked.as_ref().is_ok_and(|picked| picked.0.contains(name));
        let unpicked: Vec<_> = self.among.iter().filter(|name| !is_picked(name)).collect();
        if unpicked.is_empty() {
            return full.without_tool(&self.tool);
        }
        let shown = full.with_briefs(self.schema, |name| unpicked.contains(&name));
        match pick::shown(&self.tool, &unpicked) {
            Ok(definition) => shown.with_shown(&definition),
            Err(error) => {
                tracing::error!(%error, "pick_tools cannot be shown with its names");
                shown
            }
        }
    }
}

impl Parts<'_> {
    /// Whether a tool is held back at the beginning.
    fn holds_back(&self, tool: &ToolDefinition) -> bool {
        let choices = [Some(self.binding.choice()), self.first_choice];
        is_held_back(tool, choices, || match self.options.defer {
            Defer::Always => true,
            Defer::Never => false,
            Defer::Auto => self.has_too_many(),
        })
    }

    /// Whether a tool is held back by the provider. What was loaded before and is not to be found in the
    /// conversation has to be on the list for everybody to see.
    fn leaves_to_provider(&self, tool: &ToolDefinition) -> bool {
        self.holds_back(tool) && !self.unreferenced.contains(tool.name())
    }

    /// Decided once for a conversation, at its first request.
    fn has_too_many(&self) -> bool {
        let known = self.state.get::<Deferral>();
        if let Ok(Some(decided)) = known.map(|deferral| deferral.too_many) {
            return decided;
        }
        let too_many = self.options.defers(self.binding, self.context_tokens);
        let noted = self.state.update::<Deferral>(|deferral| {
            deferral.too_many = Some(too_many);
        });
        if let Err(error) = noted {
            tracing::error!(%error, "cannot store whether tools are deferred");
        }
        if too_many {
            let tools = self.binding.tools_for_llm();
            let is_auto = |tool: &&Arc<ToolDefinition>| tool.annotations().defer == Defer::Auto;
            let deferred = tools.filter(is_auto).count();
            let of = self.binding.len();
            tracing::info!(
                deferred,
                of,
                "deferred tools that the model finds with `{SEARCH_TOOLS}`"
            );
        }
        too_many
    }
}

/// Whether a tool is held back when a run begins: under the choice that holds and the one that holds until
/// a tool has run, and where `otherwise` says what becomes of tools that say nothing about it.
pub fn is_held_back(
    tool: &ToolDefinition,
    choices: [Option<&ToolChoice>; 2],
    otherwise: impl FnOnce() -> bool,
) -> bool {
    let name = tool.name().as_str();
    let [choice, first] = choices;
    let is_among = |choice: &ToolChoice| match choice {
        ToolChoice::Function(chosen) => name == chosen,
        ToolChoice::Allowed(allowed) => allowed.names.iter().any(|one| one == name),
        _ => false,
    };
    // What has to be called now cannot be searched for.
    let is_forced = matches!(choice, Some(ToolChoice::Function(chosen)) if name == chosen)
        || first.is_some_and(is_among);
    match tool.annotations().defer {
        _ if is_forced => false,
        Defer::Always => true,
        Defer::Never => false,
        Defer::Auto => !choice.is_some_and(is_among) && otherwise(),
    }
}

/// What the model calls the search among what is held back of these tools: `search_tools`, unless one of
/// them is called so.
pub fn search_tool_name(binding: &Binding) -> Result<ToolName, DefinitionError> {
    own_name(SEARCH_TOOLS, binding)
}

/// The name of one of haft's own tools. A client's function may have it: then ours has another.
fn own_name(name: &str, binding: &Binding) -> Result<ToolName, DefinitionError> {
    let is_taken = |name: &String| {
        let mut tools = binding.tools_for_llm();
        tools.any(|tool| tool.name().as_str() == name)
    };
    let others = (2..).map(|number| format!("haft__{name}_{number}"));
    let names = [name.to_owned(), format!("haft__{name}")]
        .into_iter()
        .chain(others);
    // There are more names than tools.
    let free = names
        .into_iter()
        .find(|name| !is_taken(name))
        .unwrap_or_default();
    Ok(ToolName::new(free)?)
}
