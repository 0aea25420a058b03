//! The text of a prompt.

use std::fmt;
use std::sync::Arc;

use haft_core::ToolObject;

use super::context::Context;
use super::error::RenderError;
use super::params::Params;
use super::survey::{Standing, Survey, unknown_placeholder};
use super::template::TextPart;
use super::tree::{Node, Tree};
use super::visibility::SectionState;

/// What a model is to see, and what became of every section.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The text; without a line end at its end.
    pub text: String,
    /// Every declared section by its path, depth first as declared.
    pub states: Vec<(Arc<str>, SectionState)>,
    /// The tools that may be offered, depth first as declared.
    pub tools: Vec<SectionTool>,
    /// Whether there is something to read, so that `read_section` is to be offered.
    pub offers_read_section: bool,
}

/// A tool, and the section that it belongs to.
#[derive(Clone)]
pub struct SectionTool {
    /// The tool.
    pub tool: Arc<dyn ToolObject>,
    /// The path of its section.
    pub section: Arc<str>,
}

impl fmt::Debug for SectionTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}", self.tool, self.section)
    }
}

pub(super) fn rendered(tree: &Tree, context: &Context<'_>) -> Result<Rendered, RenderError> {
    let standings = Survey::new(tree, context)?.of_prompt();
    Ok(Rendered {
        text: text(&tree.nodes, &standings, &context.params)?,
        states: tree
            .nodes
            .iter()
            .zip(&standings)
            .map(|(node, standing)| (Arc::clone(&node.path), standing.state))
            .collect(),
        tools: tree
            .nodes
            .iter()
            .zip(&standings)
            .filter(|(_, standing)| standing.offers_tools)
            .flat_map(|(node, _)| tools_of(node))
            .collect(),
        offers_read_section: has_summary(&standings),
    })
}

/// Whether something is shown that tells the model to read.
pub(super) fn has_summary(standings: &[Standing]) -> bool {
    let mut states = standings.iter().map(|standing| standing.state);
    states.any(|state| state == SectionState::Summarized)
}

pub(super) fn tools_of(node: &Node) -> impl Iterator<Item = SectionTool> + '_ {
    node.tools.iter().map(|tool| SectionTool {
        tool: Arc::clone(tool),
        section: Arc::clone(&node.path),
    })
}

/// The sections that are not hidden, as they stand.
pub(super) fn text(
    nodes: &[Node],
    standings: &[Standing],
    params: &Params,
) -> Result<String, RenderError> {
    let mut blocks = Vec::new();
    for (node, standing) in nodes.iter().zip(standings) {
        match standing.state {
            SectionState::Disabled | SectionState::Hidden => {}
            SectionState::Summarized => {
                blocks.push(heading(node));
                blocks.push(summary(node, params)?);
                blocks.push(suffix(node));
            }
            SectionState::Shown => {
                blocks.push(heading(node));
                let body = node.body.fill(params);
                let body = body.map_err(|name| unknown_placeholder(node, TextPart::Body, name))?;
                if !body.is_empty() {
                    blocks.push(body);
                }
                blocks.extend(node.examples.clone());
            }
        }
    }
    Ok(blocks.join("\n\n"))
}

fn heading(node: &Node) -> String {
    let marks = "#".repeat((node.depth + 2).min(6));
    let Node {
        number,
        title,
        path,
        ..
    } = node;
    format!("{marks} {number}. {title} ({path})")
}

fn summary(node: &Node, params: &Params) -> Result<String, RenderError> {
    let filled = match &node.summary {
        Some(summary) => summary
            .fill(params)
            .map_err(|name| unknown_placeholder(node, TextPart::Summary, name))?,
        None => String::new(),
    };
    if filled.is_empty() {
        return Err(RenderError::MissingSummary {
            path: node.path.as_ref().to_owned(),
        });
    }
    Ok(filled)
}

/// The same for every section: whether there are tools or sections inside does not show.
fn suffix(node: &Node) -> String {
    format!(
        "---\n[This section is summarized. To view full content, call `read_section` with key \
         \"{}\".]",
        node.path
    )
}
