//! Tools that come as one list from one place: the tools of an MCP server, under its label.
//!
//! Groups stand in configured order, whatever the order in which their servers answer; the tools of
//! a group stand in the order that the server gave. A group that nobody configured comes after the
//! configured ones, by its label.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use haft_core::{Namespace, ToolName, ToolSource, Validator};

use crate::error::Diagnostic;
use crate::natives::Natives;
use crate::offered::{Identity, Offered, Workshop, foreign_name};

#[derive(Debug, Default)]
pub(crate) struct Groups {
    order: Vec<Namespace>,
    groups: BTreeMap<Namespace, Group>,
}

/// The tools of one group in their server's order, and what became of the bad ones.
#[derive(Debug, Default)]
pub(crate) struct Group {
    tools: Vec<Arc<Offered>>,
    pub(crate) dropped: Vec<Diagnostic>,
}

impl Group {
    /// Prepares a list. A bad tool is dropped, and of two with one name the later.
    pub(crate) fn prepare(
        label: &Namespace,
        tools: impl IntoIterator<Item = ToolSource>,
        workshop: &Workshop,
    ) -> Self {
        let mut group = Self::default();
        let mut seen = HashSet::new();
        for (position, source) in tools.into_iter().enumerate() {
            let tool = match source.into_object() {
                Ok(tool) => tool,
                Err(error) => {
                    group.drop_tool(format!("{label}[{position}]"), error.to_string());
                    continue;
                }
            };
            let raw = foreign_name(tool.definition()).to_owned();
            if !seen.insert(raw.clone()) {
                group.drop_tool(
                    raw,
                    format!("`{label}` lists this name twice; the first one is kept"),
                );
                continue;
            }
            match Offered::grouped(tool, label, workshop) {
                Ok(tool) => group.tools.push(tool),
                Err(error) => group.drop_tool(raw, format!("left out of `{label}`: {error}")),
            }
        }
        group
    }

    fn drop_tool(&mut self, tool: String, message: String) {
        tracing::warn!(tool, message, "a tool of a group is left out");
        self.dropped.push(Diagnostic { tool, message });
    }
}

impl Groups {
    pub(crate) fn set_order(&mut self, order: impl IntoIterator<Item = Namespace>) {
        let mut seen = HashSet::new();
        self.order = order
            .into_iter()
            .filter(|label| seen.insert(label.clone()))
            .collect();
    }

    /// Puts the list in the place of the group's former one.
    ///
    /// Validators that somebody attached stay: the operator attached them, and it is the server that
    /// sent another list.
    pub(crate) fn set(&mut self, label: Namespace, mut group: Group) {
        let former = self.groups.get(&label).into_iter();
        let attached: BTreeMap<_, _> = former
            .flat_map(|former| &former.tools)
            .filter_map(|tool| Some((tool.identity(), tool.attached()?)))
            .collect();
        for tool in &mut group.tools {
            if let Some(&validator) = attached.get(tool.identity()) {
                *tool = tool.with_validator(Arc::clone(validator));
            }
        }
        self.groups.insert(label, group);
    }

    pub(crate) fn remove(&mut self, label: &Namespace) -> bool {
        self.groups.remove(label).is_some()
    }

    /// Gives a tool a validator of its own.
    pub(crate) fn attach(&mut self, identity: &Identity, validator: Arc<dyn Validator>) {
        let label = identity.namespace.as_ref();
        let group = label.and_then(|label| self.groups.get_mut(label));
        let mut tools = group.into_iter().flat_map(|group| &mut group.tools);
        if let Some(tool) = tools.find(|tool| tool.identity() == identity) {
            *tool = tool.with_validator(validator);
        }
    }

    /// All labels in order, those that have no tools yet included.
    pub(crate) fn labels(&self) -> Vec<&Namespace> {
        let configured: HashSet<_> = self.order.iter().collect();
        let others = self
            .groups
            .keys()
            .filter(|label| !configured.contains(label));
        self.order.iter().chain(others).collect()
    }

    pub(crate) fn dropped(&self) -> impl Iterator<Item = &Diagnostic> {
        self.groups.values().flat_map(|group| &group.dropped)
    }

    /// The tools in catalogue order, under names that no other tool bears.
    ///
    /// A name that a native tool bears makes way to the hashed form. What then still ends on one
    /// name is dropped: the later one by label and raw name, so that no order shows.
    pub(crate) fn named(&self, natives: &Natives) -> (Vec<Arc<Offered>>, Vec<Diagnostic>) {
        let mut by_identity: Vec<_> = self.groups.values().flat_map(|g| &g.tools).collect();
        by_identity.sort_by_key(|tool| tool.identity());
        let mut taken: BTreeMap<ToolName, &Identity> = BTreeMap::new();
        let mut dropped = Vec::new();
        for tool in by_identity {
            let named = under_free_name(tool, natives);
            if natives.bears(named.name()) || taken.contains_key(named.name()) {
                dropped.push(Diagnostic {
                    tool: tool.identity().raw.to_string(),
                    message: format!(
                        "another tool is already named `{}`; this one is left out",
                        named.name()
                    ),
                });
            } else {
                taken.insert(named.name().clone(), tool.identity());
            }
        }
        let tools = self
            .labels()
            .into_iter()
            .filter_map(|label| self.groups.get(label))
            .flat_map(|group| &group.tools)
            .map(|tool| (under_free_name(tool, natives), tool.identity()))
            .filter(|(named, identity)| taken.get(named.name()) == Some(identity))
            .map(|(named, _)| Arc::clone(named))
            .collect();
        (tools, dropped)
    }
}

fn under_free_name<'t>(tool: &'t Arc<Offered>, natives: &Natives) -> &'t Arc<Offered> {
    match tool.hashed() {
        Some(hashed) if natives.bears(tool.name()) => hashed,
        _ => tool,
    }
}
