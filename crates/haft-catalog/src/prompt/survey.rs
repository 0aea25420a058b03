//! What holds for every section in one rendering.

use haft_core::caught;

use super::context::{Collect, Context};
use super::error::RenderError;
use super::section::Setting;
use super::template::{Template, TextPart};
use super::tree::{Node, Tree};
use super::visibility::{SectionState, Visibility};

/// The visibilities of all sections as they were decided once, so that nothing is decided twice and
/// differently in one rendering.
pub(super) struct Survey<'a> {
    tree: &'a Tree,
    context: &'a Context<'a>,
    /// None for a section that is disabled or inside one that is.
    visibilities: Vec<Option<Visibility>>,
}

/// One section in one rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) state: SectionState,
    /// Whether its tools may be offered.
    pub(super) offers_tools: bool,
}

impl<'a> Survey<'a> {
    pub(super) fn new(tree: &'a Tree, context: &'a Context<'a>) -> Result<Self, RenderError> {
        let mut visibilities: Vec<Option<Visibility>> = Vec::with_capacity(tree.nodes.len());
        for node in &tree.nodes {
            // A section stands behind the one that it is in.
            let is_inside_enabled = node.parent.is_none_or(|at| visibilities[at].is_some());
            let is_enabled = is_inside_enabled && decided(node, &node.enabled, context)?;
            visibilities.push(if is_enabled {
                Some(checked_visibility(node, context)?)
            } else {
                None
            });
        }
        Ok(Self {
            tree,
            context,
            visibilities,
        })
    }

    /// How all sections stand in the prompt.
    pub(super) fn of_prompt(&self) -> Vec<Standing> {
        self.standings(0, self.tree.nodes.len(), None)
    }

    /// How a section and those inside it stand while it is read: it in full, and nothing around it.
    pub(super) fn of_reading(&self, root: usize) -> Vec<Standing> {
        let end = self.tree.nodes.get(root).map_or(root, |node| node.end);
        self.standings(root, end, Some(root))
    }

    fn standings(&self, start: usize, end: usize, read: Option<usize>) -> Vec<Standing> {
        let mut walked: Vec<Walked> = Vec::with_capacity(end - start);
        for (at, node) in self.tree.nodes.iter().enumerate().take(end).skip(start) {
            let is_read = read == Some(at);
            let around = match node.parent {
                // The first of a reading has a parent outside of it, which does not count.
                Some(parent) if !is_read => walked.get(parent - start).copied(),
                _ => None,
            };
            walked.push(self.walked(at, node, around, is_read));
        }
        walked.into_iter().map(|walked| walked.standing).collect()
    }

    fn walked(&self, at: usize, node: &Node, around: Option<Walked>, is_read: bool) -> Walked {
        let visibility = match self.visibilities[at] {
            Some(_) if is_read => Visibility::Full,
            Some(visibility) => visibility,
            None => return Walked::DISABLED,
        };
        let around = around.unwrap_or(Walked::TOP);
        let is_opened = is_read || self.context.stored.opens(&node.path);
        let is_hidden = !is_opened && around.hides_inside;
        let state = match visibility {
            _ if is_hidden => SectionState::Hidden,
            Visibility::Summary => SectionState::Summarized,
            Visibility::Full => SectionState::Shown,
        };
        let is_shown = state == SectionState::Shown;
        let opens_inside = around.opens_inside || (is_opened && is_shown);
        Walked {
            standing: Standing {
                state,
                offers_tools: match self.context.collect {
                    Collect::Shown => is_shown,
                    Collect::All => is_shown || opens_inside,
                },
            },
            hides_inside: is_hidden || visibility == Visibility::Summary,
            opens_inside,
        }
    }
}

/// A section on the way down, and what it means for those inside it.
#[derive(Clone, Copy)]
struct Walked {
    standing: Standing,
    /// Whether those inside it are hidden unless they were opened.
    hides_inside: bool,
    /// Whether it or one around it was opened and is shown.
    opens_inside: bool,
}

impl Walked {
    const TOP: Self = Self::plain(SectionState::Shown);
    const DISABLED: Self = Self::plain(SectionState::Disabled);

    const fn plain(state: SectionState) -> Self {
        Self {
            standing: Standing {
                state,
                offers_tools: false,
            },
            hides_inside: false,
            opens_inside: false,
        }
    }
}

/// The visibility of an enabled section, and that all it may be asked for is there.
fn checked_visibility(node: &Node, context: &Context<'_>) -> Result<Visibility, RenderError> {
    check_placeholders(node, TextPart::Body, &node.body, context)?;
    if let Some(summary) = &node.summary {
        check_placeholders(node, TextPart::Summary, summary, context)?;
    }
    let overridden = context.passed.get(&node.path);
    let overridden = overridden.or_else(|| context.stored.get(&node.path));
    let visibility = match overridden {
        Some(visibility) => visibility,
        None => decided(node, &node.visibility, context)?,
    };
    if visibility == Visibility::Summary && node.summary.is_none() {
        return Err(RenderError::MissingSummary {
            path: node.path.as_ref().to_owned(),
        });
    }
    Ok(visibility)
}

fn check_placeholders(
    node: &Node,
    part: TextPart,
    template: &Template,
    context: &Context<'_>,
) -> Result<(), RenderError> {
    let mut names = template.names();
    match names.find(|name| context.params.get(name).is_none()) {
        None => Ok(()),
        Some(name) => Err(unknown_placeholder(node, part, name)),
    }
}

pub(super) fn unknown_placeholder(node: &Node, part: TextPart, name: &str) -> RenderError {
    RenderError::UnknownPlaceholder {
        path: node.path.as_ref().to_owned(),
        part,
        name: name.to_owned(),
    }
}

fn decided<T: Copy>(
    node: &Node,
    setting: &Setting<T>,
    context: &Context<'_>,
) -> Result<T, RenderError> {
    match setting {
        Setting::Constant(value) => Ok(*value),
        Setting::Decided(decide) => {
            caught(|| decide(&context.params, &context.state)).map_err(|reason| {
                RenderError::Panicked {
                    path: node.path.as_ref().to_owned(),
                    reason,
                }
            })
        }
    }
}
