//! From what an author wrote to a tree that holds together.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use haft_core::{FeedbackProvider, Policy, ToolName, ToolObject, ToolSource, cut};

use super::error::PromptError;
use super::key::is_key;
use super::section::{Section, Setting};
use super::template::{Source, Template, TextPart};
use super::tree::{MAX_DEPTH, Node, Tree};
use super::visibility::Visibility;

/// The longest title, in characters.
const MAX_TITLE_CHARS: usize = 120;

pub(super) fn built(
    ns: &str,
    key: &str,
    sections: Vec<Section>,
    policies: Vec<Arc<dyn Policy>>,
    feedback: Vec<Arc<dyn FeedbackProvider>>,
) -> Result<Tree, PromptError> {
    let name = format!("{ns}/{key}");
    if !is_key(ns) || !is_key(key) {
        return Err(PromptError::InvalidName { name: cut(&name) });
    }
    let mut builder = Builder::default();
    builder.add_all(sections, None)?;
    Ok(Tree {
        name,
        nodes: builder.nodes,
        by_path: builder.by_path,
        policies,
        feedback,
    })
}

#[derive(Default)]
struct Builder {
    nodes: Vec<Node>,
    by_path: HashMap<Arc<str>, usize>,
    /// Who has which tool.
    tools: HashMap<ToolName, Arc<str>>,
}

impl Builder {
    fn add_all(
        &mut self,
        sections: Vec<Section>,
        parent: Option<usize>,
    ) -> Result<(), PromptError> {
        for (position, section) in sections.into_iter().enumerate() {
            self.add(section, parent, position + 1)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        section: Section,
        parent: Option<usize>,
        position: usize,
    ) -> Result<(), PromptError> {
        let Section { key, title, .. } = &section;
        if !is_key(key) {
            return Err(PromptError::InvalidSectionKey { key: key.clone() });
        }
        let (path, number, depth) = match parent.and_then(|parent| self.nodes.get(parent)) {
            None => (key.clone(), position.to_string(), 0),
            Some(parent) => (
                format!("{}.{key}", parent.path),
                format!("{}.{position}", parent.number),
                parent.depth + 1,
            ),
        };
        if depth > MAX_DEPTH {
            return Err(PromptError::TooDeep { path });
        }
        if let Some(problem) = problem_of_title(title) {
            return Err(PromptError::InvalidTitle { path, problem });
        }
        let (body, summary) = texts(&section, &path)?;
        if summary.is_none() && matches!(section.visibility, Setting::Constant(Visibility::Summary))
        {
            return Err(PromptError::MissingSummary { path });
        }
        let at = self.nodes.len();
        let path: Arc<str> = path.into();
        if self.by_path.insert(Arc::clone(&path), at).is_some() {
            let path = path.as_ref().to_owned();
            return Err(PromptError::DuplicateSection { path });
        }
        let tools = self.take_tools(section.tools, &path)?;
        self.nodes.push(Node {
            examples: examples(&tools),
            path,
            title: section.title,
            number,
            depth,
            parent,
            end: at + 1,
            body,
            summary,
            visibility: section.visibility,
            enabled: section.enabled,
            tools,
            policies: section.policies,
            feedback: section.feedback,
        });
        self.add_all(section.children, Some(at))?;
        let end = self.nodes.len();
        if let Some(node) = self.nodes.get_mut(at) {
            node.end = end;
        }
        Ok(())
    }

    /// The tools of a section, each of a name that nobody else in the prompt has.
    fn take_tools(
        &mut self,
        sources: Vec<ToolSource>,
        path: &Arc<str>,
    ) -> Result<Vec<Arc<dyn ToolObject>>, PromptError> {
        let mut tools = Vec::with_capacity(sources.len());
        for source in sources {
            let tool = source
                .into_object()
                .map_err(|error| PromptError::InvalidTool {
                    path: path.as_ref().to_owned(),
                    error,
                })?;
            let name = tool.definition().name().clone();
            if name.is_reserved() {
                let path = path.as_ref().to_owned();
                return Err(PromptError::ReservedName { name, path });
            }
            match self.tools.entry(name) {
                Entry::Vacant(free) => {
                    free.insert(Arc::clone(path));
                }
                Entry::Occupied(taken) => {
                    return Err(PromptError::DuplicateTool {
                        name: taken.key().clone(),
                        first: taken.get().as_ref().to_owned(),
                        second: path.as_ref().to_owned(),
                    });
                }
            }
            tools.push(tool);
        }
        Ok(tools)
    }
}

fn problem_of_title(title: &str) -> Option<&'static str> {
    if title.trim().is_empty() {
        Some("is empty")
    } else if title.chars().count() > MAX_TITLE_CHARS {
        Some("is too long")
    } else if title.chars().any(char::is_control) {
        // A line end in a heading would begin something else.
        Some("has control characters")
    } else {
        None
    }
}

/// Body and summary, taken apart. A summary of nothing is none.
fn texts(section: &Section, path: &str) -> Result<(Template, Option<Template>), PromptError> {
    let taken_apart = |part, source: &Source| {
        Template::new(source).map_err(|error| PromptError::InvalidTemplate {
            path: path.to_owned(),
            part,
            error,
        })
    };
    let body = taken_apart(TextPart::Body, &section.body)?;
    let summary = match &section.summary {
        Some(summary) => Some(taken_apart(TextPart::Summary, summary)?),
        None => None,
    };
    Ok((body, summary.filter(|summary| !summary.is_empty())))
}

/// How the tools of a section are shown to be used, if one of them has examples.
fn examples(tools: &[Arc<dyn ToolObject>]) -> Option<String> {
    let mut text = String::from("Tools:");
    let mut any = false;
    for tool in tools {
        let definition = tool.definition();
        let examples = &definition.annotations().examples;
        if examples.is_empty() {
            continue;
        }
        any = true;
        text.push_str("\n- ");
        text.push_str(definition.name().as_str());
        for example in examples {
            // Values of JSON can always be written as JSON.
            let json = serde_json::to_string(example).unwrap_or_default();
            text.push_str("\n```json\n");
            text.push_str(&json);
            text.push_str("\n```");
        }
    }
    any.then_some(text)
}
