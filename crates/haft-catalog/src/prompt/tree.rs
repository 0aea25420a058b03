//! A prompt that was checked: its sections in the order in which they are shown.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use haft_core::{FeedbackProvider, Policy, ToolObject};

use super::context::Context;
use super::error::RenderError;
use super::read::{Read, read};
use super::render::{Rendered, rendered};
use super::section::Setting;
use super::template::Template;
use super::visibility::Visibility;

/// How many sections may be around one; a section at the top has depth 0.
pub const MAX_DEPTH: usize = 8;

/// A prompt: sections that were checked, ready to be rendered. `T` is the type of the answer.
/// Clones share it.
pub struct Prompt<T = String> {
    tree: Arc<Tree>,
    answer: PhantomData<fn() -> T>,
}

/// What a prompt is made of.
pub(super) struct Tree {
    pub(super) name: String,
    /// Depth first, as declared.
    pub(super) nodes: Vec<Node>,
    pub(super) by_path: HashMap<Arc<str>, usize>,
    pub(super) policies: Vec<Arc<dyn Policy>>,
    pub(super) feedback: Vec<Arc<dyn FeedbackProvider>>,
}

/// A section in its place.
pub(super) struct Node {
    pub(super) path: Arc<str>,
    pub(super) title: String,
    pub(super) number: String,
    pub(super) depth: usize,
    pub(super) parent: Option<usize>,
    /// The first node after it that is not inside it.
    pub(super) end: usize,
    pub(super) body: Template,
    pub(super) summary: Option<Template>,
    pub(super) visibility: Setting<Visibility>,
    pub(super) enabled: Setting<bool>,
    pub(super) tools: Vec<Arc<dyn ToolObject>>,
    /// The examples of its tools as they are shown.
    pub(super) examples: Option<String>,
    pub(super) policies: Vec<Arc<dyn Policy>>,
    pub(super) feedback: Vec<Arc<dyn FeedbackProvider>>,
}

impl<T> Prompt<T> {
    pub(super) fn new(tree: Tree) -> Self {
        Self {
            tree: Arc::new(tree),
            answer: PhantomData,
        }
    }

    /// `ns/key`: what it is called in events, logs and traces.
    pub fn name(&self) -> &str {
        &self.tree.name
    }

    /// The same prompt, for those who do not care about the type of the answer.
    pub fn untyped(&self) -> Prompt {
        Prompt {
            tree: Arc::clone(&self.tree),
            answer: PhantomData,
        }
    }

    /// What a model is to see at the start of a run.
    ///
    /// Sections that are not shown are checked too: what is missing for their texts shows now, and
    /// not when a model asks for them.
    pub fn render(&self, context: &Context<'_>) -> Result<Rendered, RenderError> {
        rendered(&self.tree, context)
    }

    /// What a model is told that asks for the section of this key: its full path, taken as it is.
    pub fn read(&self, key: &str, context: &Context<'_>) -> Result<Read, RenderError> {
        read(&self.tree, key, context)
    }

    /// Whether there is a section of this path, enabled or not.
    pub fn contains(&self, path: &str) -> bool {
        self.tree.by_path.contains_key(path)
    }

    /// All sections, depth first as declared.
    pub fn sections(&self) -> impl ExactSizeIterator<Item = SectionView<'_>> {
        self.tree.nodes.iter().map(SectionView)
    }

    /// The section of this path.
    pub fn section(&self, path: &str) -> Option<SectionView<'_>> {
        let at = *self.tree.by_path.get(path)?;
        self.tree.nodes.get(at).map(SectionView)
    }

    /// The names of all placeholders in its texts.
    pub fn placeholders(&self) -> BTreeSet<&str> {
        self.tree
            .nodes
            .iter()
            .flat_map(|node| std::iter::once(&node.body).chain(&node.summary))
            .flat_map(Template::names)
            .collect()
    }

    /// Policies for all of its tools. Those of a section are in its [`SectionView`].
    pub fn policies(&self) -> &[Arc<dyn Policy>] {
        &self.tree.policies
    }

    /// Feedback on calls of all of its tools. That of a section is in its [`SectionView`].
    pub fn feedback(&self) -> &[Arc<dyn FeedbackProvider>] {
        &self.tree.feedback
    }
}

impl<T> Clone for Prompt<T> {
    fn clone(&self) -> Self {
        Self {
            tree: Arc::clone(&self.tree),
            answer: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Prompt<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt")
            .field("name", &self.name())
            .field("sections", &self.tree.by_path.len())
            .finish_non_exhaustive()
    }
}

/// A section of a prompt, to look at.
#[derive(Clone, Copy)]
pub struct SectionView<'a>(&'a Node);

impl<'a> SectionView<'a> {
    /// Its keys and those around it, joined by dots.
    pub fn path(&self) -> &'a str {
        &self.0.path
    }

    /// Its title.
    pub fn title(&self) -> &'a str {
        &self.0.title
    }

    /// Its position among its siblings and those around it, from 1, joined by dots.
    pub fn number(&self) -> &'a str {
        &self.0.number
    }

    /// How many sections are around it.
    pub fn depth(&self) -> usize {
        self.0.depth
    }

    /// Whether it can be shown as a summary.
    pub fn has_summary(&self) -> bool {
        self.0.summary.is_some()
    }

    /// Its own tools.
    pub fn tools(&self) -> &'a [Arc<dyn ToolObject>] {
        &self.0.tools
    }

    /// Policies for its own tools.
    pub fn policies(&self) -> &'a [Arc<dyn Policy>] {
        &self.0.policies
    }

    /// Feedback on calls of its own tools.
    pub fn feedback(&self) -> &'a [Arc<dyn FeedbackProvider>] {
        &self.0.feedback
    }
}

impl fmt::Debug for SectionView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Section({} {})", self.0.number, self.0.path)
    }
}
