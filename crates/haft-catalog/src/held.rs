//! Tools that a binding holds back until they are asked for, and tools that it shows in brief.
//!
//! A long list costs a model its attention and its caller tokens. Both ways keep what was sent before
//! as it is: what is loaded comes behind everything else, and what is shown in brief keeps its place.
//! Where a provider takes tools that the model shall not see yet, they are on the list from the first
//! request on, and the list never changes.

use std::sync::Arc;

use haft_core::{Loading, ToolDefinition, ToolName, ToolRef, ViewFormat};

use crate::binding::{Appended, Binding};
use crate::offered::{BriefSchema, Offered};
use crate::refusal::CallRefused;

/// About how many bytes of JSON make one token.
const BYTES_PER_TOKEN: usize = 4;

/// What is held back, in order, and what finds it. Clones share one list.
#[derive(Clone, Default)]
pub(crate) struct Held {
    tools: Arc<[Arc<Offered>]>,
    search: Option<ToolName>,
    /// Those that are on the list and that the model does not see yet.
    unseen: Arc<[ToolName]>,
}

impl Held {
    pub(crate) fn refusal(&self, wire_name: &str) -> Option<CallRefused> {
        let tool = self.find(wire_name)?;
        Some(CallRefused::NotLoaded {
            name: tool.name().clone(),
            search: self.search.clone()?,
        })
    }

    /// Whether a tool of the list is one that the model does not see yet.
    pub(crate) fn keeps_unseen(&self, name: &ToolName) -> bool {
        self.unseen.contains(name)
    }

    /// Notes that the model gets to see a tool of the list; says whether that is new.
    pub(crate) fn disclose(&mut self, name: &ToolName) -> bool {
        let is_new = self.keeps_unseen(name);
        if is_new {
            let unseen = self.unseen.iter().filter(|one| *one != name);
            self.unseen = unseen.cloned().collect();
        }
        is_new
    }

    fn find(&self, name: &str) -> Option<&Arc<Offered>> {
        let mut tools = self.tools.iter();
        tools.find(|tool| tool.name().as_str() == name)
    }
}

impl Binding {
    /// This binding without those tools that `is_held` names, until they are [loaded](Self::with_loaded).
    /// A call of one is answered with the words that `search` finds it.
    #[must_use]
    pub fn with_held(&self, search: &ToolName, is_held: impl Fn(&ToolDefinition) -> bool) -> Self {
        let (held, offered): (Vec<_>, Vec<_>) = self
            .offered()
            .iter()
            .cloned()
            .partition(|tool| is_held(tool.definition()));
        let earlier = self.held_back().tools.iter().cloned();
        let held = Held {
            tools: earlier.chain(held).collect(),
            search: Some(search.clone()),
            unseen: Arc::clone(&self.held_back().unseen),
        };
        self.with(offered, held)
    }

    /// This binding with those tools that `is_held` names left to the provider, which shows each when its
    /// own search has found it. All of them can be called: whether the model has seen one is the
    /// provider's to know.
    #[must_use]
    pub fn with_searched(&self, is_held: impl Fn(&ToolDefinition) -> bool) -> Self {
        let tools = self.offered().iter().map(|tool| {
            if is_held(tool.definition()) {
                tool.loaded_by(Loading::Searched)
            } else {
                Arc::clone(tool)
            }
        });
        self.with(tools.collect(), self.held_back().clone())
    }

    /// The same as [`with_held`](Self::with_held), for providers that take the tools with the first
    /// request and show them when an output refers to them: they stay on the list, in their places, and
    /// cannot be called until they are [loaded](Self::with_loaded).
    #[must_use]
    pub fn with_referenced(
        &self,
        search: &ToolName,
        is_held: impl Fn(&ToolDefinition) -> bool,
    ) -> Self {
        let mut held = Vec::new();
        let tools = self.offered().iter().map(|tool| {
            if !is_held(tool.definition()) {
                return Arc::clone(tool);
            }
            let tool = tool.loaded_by(Loading::Referenced);
            held.push(Arc::clone(&tool));
            tool
        });
        let tools: Vec<_> = tools.collect();
        let names = held.iter().map(|tool| tool.name().clone());
        let unseen = self.held_back().unseen.iter().cloned().chain(names);
        let held = Held {
            unseen: unseen.collect(),
            tools: self.held_back().tools.iter().cloned().chain(held).collect(),
            search: Some(search.clone()),
        };
        self.with(tools, held)
    }

    /// This binding with tools at its end that nobody knows of until they are
    /// [appended](Self::with_appended), for providers that show them when an output refers to them.
    /// Names that are on the list already are skipped.
    #[must_use]
    pub fn with_unseen<R: Into<ToolRef>>(&self, tools: impl IntoIterator<Item = R>) -> Self {
        let appended = self.with_appended(tools);
        let is_new = |tool: &Arc<Offered>| appended.added.contains(tool.name());
        let tools = appended.binding.offered().iter().map(|tool| {
            if is_new(tool) {
                tool.loaded_by(Loading::Referenced)
            } else {
                Arc::clone(tool)
            }
        });
        let mut held = appended.binding.held_back().clone();
        let unseen = held.unseen.iter().chain(&appended.added).cloned();
        held.unseen = unseen.collect();
        appended.binding.with(tools.collect(), held)
    }

    /// This binding with a loaded tool shown to everybody, for one that no output refers to.
    #[must_use]
    pub fn with_listed(&self, name: &ToolName) -> Self {
        let tools = self.offered().iter().map(|tool| {
            if tool.name() == name && tool.spec().loading() == Loading::Referenced {
                tool.loaded_by(Loading::Listed)
            } else {
                Arc::clone(tool)
            }
        });
        self.with(tools.collect(), self.held_back().clone())
    }

    /// The tools of the list that the model does not see yet.
    pub fn unseen(&self) -> &[ToolName] {
        &self.held_back().unseen
    }

    /// What is held back, in order.
    pub fn held(&self) -> impl ExactSizeIterator<Item = &Arc<ToolDefinition>> {
        self.held_back().tools.iter().map(|tool| tool.definition())
    }

    /// Whether a tool of this name is held back.
    pub fn is_held(&self, name: &str) -> bool {
        self.held_back().find(name).is_some()
    }

    /// This binding with tools that it holds back behind those that it offers, in this order. Names
    /// that it offers already, or does not know, change nothing.
    pub fn with_loaded<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Appended {
        let mut tools = self.offered().to_vec();
        let (mut added, mut skipped) = (Vec::<ToolName>::new(), Vec::new());
        for name in names {
            let name = name.as_ref();
            if let Some(tool) = self.held_back().find(name)
                && !added.contains(tool.name())
            {
                added.push(tool.name().clone());
                if !self.lists(tool.name()) {
                    tools.push(Arc::clone(tool));
                }
            } else if let Ok(tool) = self.admit(name) {
                skipped.push(tool.definition().name().clone());
            }
        }
        let left = self.held_back().tools.iter();
        let left = left.filter(|tool| !added.contains(tool.name())).cloned();
        let unseen = self.held_back().unseen.iter();
        let held = Held {
            tools: left.collect(),
            search: self.held_back().search.clone(),
            unseen: unseen.filter(|it| !added.contains(it)).cloned().collect(),
        };
        Appended {
            binding: self.with(tools, held),
            added,
            skipped,
            rejected: Vec::new(),
        }
    }

    /// This binding with those tools in brief that `is_brief` names, the others as they are. Calls are
    /// validated against the whole schema, however a tool is shown.
    #[must_use]
    pub fn with_briefs(&self, schema: BriefSchema, is_brief: impl Fn(&ToolName) -> bool) -> Self {
        let shown = self.offered().iter().map(|tool| {
            if is_brief(tool.name()) {
                tool.brief(schema)
            } else {
                Arc::clone(tool)
            }
        });
        self.with(shown.collect(), self.held_back().clone())
    }

    /// This binding with one tool shown by another definition, which says the same less strictly.
    #[must_use]
    pub fn with_shown(&self, definition: &Arc<ToolDefinition>) -> Self {
        let shown = self.offered().iter().map(|tool| {
            if tool.name() == definition.name() {
                tool.shown_as(Arc::clone(definition))
            } else {
                Arc::clone(tool)
            }
        });
        self.with(shown.collect(), self.held_back().clone())
    }

    /// This binding without one tool.
    #[must_use]
    pub fn without_tool(&self, name: &ToolName) -> Self {
        let tools = self.offered().iter();
        let tools = tools.filter(|tool| tool.name() != name).cloned();
        self.with(tools.collect(), self.held_back().clone())
    }

    /// About how many tokens the shown definitions take: a quarter of their bytes.
    pub fn estimated_tokens(&self) -> usize {
        let bytes: usize = self
            .rendered(ViewFormat::Responses)
            .map(|tool| tool.len())
            .sum();
        bytes / BYTES_PER_TOKEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;
    use serde_json::json;

    fn binding(names: &[&str]) -> Binding {
        let catalog = Catalog::new();
        let tools = names.iter().map(|name| {
            let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
            let tool = ToolDefinition::builder(*name).description("Does it. And more.");
            tool.parameters(schema).build().unwrap()
        });
        catalog.register_all(tools).into_result().unwrap();
        catalog.snapshot().bind().build().unwrap()
    }

    fn names(binding: &Binding) -> Vec<&str> {
        let tools = binding.tools_for_llm();
        tools.map(|tool| tool.name().as_str()).collect()
    }

    fn search() -> ToolName {
        ToolName::new("search_tools").unwrap()
    }

    #[test]
    fn what_is_held_back_is_loaded_at_the_end_and_once() {
        let all = binding(&["a", "b", "c", "d"]);
        let some = all.with_held(&search(), |tool| tool.name().as_str() != "c");
        assert_eq!(names(&some), ["c"]);
        assert_eq!(
            some.admit("a").unwrap_err().to_string(),
            "Tool 'a' is not loaded. Find it with search_tools first."
        );
        let loaded = some.with_loaded(["d", "c", "a", "d", "nobody"]);
        assert_eq!(names(&loaded.binding), ["c", "d", "a"]);
        assert_eq!((loaded.added.len(), loaded.skipped.len()), (2, 1));
        assert!(loaded.binding.admit("a").is_ok());
        assert!(loaded.binding.is_held("b") && !loaded.binding.is_held("a"));
        let before = some.render(ViewFormat::Chat);
        let after = loaded.binding.render(ViewFormat::Chat);
        assert!(after.starts_with(before.trim_end_matches(']')));
    }

    #[test]
    fn what_a_provider_searches_can_be_called_and_keeps_its_place() {
        let all = binding(&["a", "b", "c"]);
        let marked = all.with_searched(|tool| tool.name().as_str() == "b");
        assert_eq!(names(&marked), ["a", "b", "c"]);
        let loading: Vec<_> = marked.specs().iter().map(|spec| spec.loading()).collect();
        assert_eq!(
            loading,
            [Loading::Listed, Loading::Searched, Loading::Listed]
        );
        assert!(marked.admit("b").is_ok() && marked.held().len() == 0);
    }

    #[test]
    fn what_is_referred_to_stays_in_its_place_and_cannot_be_called_before() {
        let all = binding(&["a", "b", "c"]);
        let some = all.with_referenced(&search(), |tool| tool.name().as_str() != "b");
        assert_eq!(names(&some), ["a", "b", "c"]);
        assert_eq!(
            some.admit("a").unwrap_err().to_string(),
            "Tool 'a' is not loaded. Find it with search_tools first."
        );
        let chosen = some.with_choice(haft_core::ToolChoice::Required).unwrap();
        assert!(chosen.admit("a").is_err() && chosen.callable().count() == 1);
        let loaded = some.with_loaded(["c"]);
        assert_eq!(loaded.added.len(), 1);
        let loaded = loaded.binding;
        assert!(loaded.admit("c").is_ok() && loaded.is_held("a") && !loaded.is_held("c"));
        assert_eq!(
            loaded.render(ViewFormat::Chat),
            some.render(ViewFormat::Chat)
        );
        assert_eq!(loaded.with_loaded(["c"]).skipped.len(), 1);
        let listed = loaded.with_listed(&ToolName::new("c").unwrap());
        assert_eq!(names(&listed), names(&loaded));
        let loading: Vec<_> = listed.specs().iter().map(|spec| spec.loading()).collect();
        let [referenced, shown] = [Loading::Referenced, Loading::Listed];
        assert_eq!(loading, [referenced, shown, shown]);
    }

    #[test]
    fn what_is_unseen_is_unknown_until_it_is_appended() {
        let tool = |name: &str| {
            let tool = ToolDefinition::builder(name).parameters(json!({"type": "object"}));
            tool.build().unwrap()
        };
        let some = binding(&["a", "b"]).with_unseen([tool("s"), tool("b"), tool("t")]);
        assert_eq!(names(&some), ["a", "b", "s", "t"]);
        assert_eq!(
            some.admit("s").unwrap_err().to_string(),
            "Unknown tool 's'. Available tools: a, b."
        );
        assert!(some.admit("b").is_ok());
        let opened = some.with_appended([tool("t"), tool("a")]);
        assert_eq!((opened.added.len(), opened.skipped.len()), (1, 1));
        let opened = opened.binding;
        assert_eq!(names(&opened), names(&some));
        assert!(opened.admit("t").is_ok() && opened.admit("s").is_err());
        assert_eq!(opened.unseen().len(), 1);
    }

    #[test]
    fn in_brief_a_tool_keeps_its_place_and_its_schema_holds() {
        let all = binding(&["a", "b"]);
        let brief = all.with_briefs(BriefSchema::Drop, |name| name.as_str() == "a");
        let rendered = brief.render(ViewFormat::Anthropic);
        assert!(rendered.starts_with(
            r#"[{"name":"a","description":"Does it. And more.","input_schema":{"type":"object"}},{"name":"b""#
        ));
        assert!(
            brief.admit("a").unwrap().definition().parameters().unwrap()["required"].is_array()
        );
        assert!(brief.estimated_tokens() < all.estimated_tokens());
        let kept = all.with_briefs(BriefSchema::Keep, |_| true);
        assert!(kept.render(ViewFormat::Anthropic).contains("required"));
    }
}
