//! One section of a prompt, as its author writes it.

use std::fmt;
use std::sync::Arc;

use haft_core::{FeedbackProvider, Namespace, Policy, ToolSource};

use super::context::StateView;
use super::params::Params;
use super::template::Source;
use super::visibility::Visibility;

/// Decides about a section for one rendering.
type Decide<T> = Arc<dyn Fn(&Params, &StateView<'_>) -> T + Send + Sync>;

/// Something that is said once, or decided for each rendering.
#[derive(Clone)]
pub(super) enum Setting<T> {
    Constant(T),
    Decided(Decide<T>),
}

/// A section: a text, its summary, its tools and what holds for them, and the sections inside it.
///
/// Nothing is checked here; [`PromptTemplate::build`](super::PromptTemplate::build) does.
///
/// ```
/// use haft_catalog::prompt::{Section, Visibility};
///
/// let section = Section::new("ref", "Reference")
///     .body(
///         "
///         All API notes, for ${product}.
///         ",
///     )
///     .summary("API notes.")
///     .visibility(Visibility::Summary)
///     .child(Section::new("limits", "Limits").body("10 rps."))
///     .child(
///         Section::new("beta", "Beta")
///             .body("What is new.")
///             .enabled_when(|params, _| params.get("channel") == Some("beta")),
///     );
/// ```
#[derive(Clone)]
pub struct Section {
    pub(super) key: String,
    pub(super) title: String,
    pub(super) body: Source,
    pub(super) summary: Option<Source>,
    pub(super) visibility: Setting<Visibility>,
    pub(super) enabled: Setting<bool>,
    pub(super) tools: Vec<ToolSource>,
    pub(super) policies: Vec<Arc<dyn Policy>>,
    pub(super) feedback: Vec<Arc<dyn FeedbackProvider>>,
    pub(super) children: Vec<Section>,
}

impl Section {
    /// A section with a key among its siblings and a title, and nothing in it.
    pub fn new(key: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            title: title.into(),
            body: Source::Literal(String::new()),
            summary: None,
            visibility: Setting::Constant(Visibility::Full),
            enabled: Setting::Constant(true),
            tools: Vec::new(),
            policies: Vec::new(),
            feedback: Vec::new(),
            children: Vec::new(),
        }
    }

    /// An MCP server as a section: its label, what is said of it as the summary, its tools, and no
    /// body. It is shown in full unless [`visibility`](Self::visibility) says otherwise.
    ///
    /// The description is no template: it is shown as it is, dollar signs too.
    pub fn of_server<S: Into<ToolSource>>(
        label: &Namespace,
        description: &str,
        tools: impl IntoIterator<Item = S>,
    ) -> Self {
        let section = Self::new(label.as_str().to_lowercase(), label.as_str()).tools(tools);
        if description.trim().is_empty() {
            section
        } else {
            section.literal_summary(description)
        }
    }

    /// What it says in full; a template.
    #[must_use]
    pub fn body(mut self, template: impl Into<String>) -> Self {
        self.body = Source::Template(template.into());
        self
    }

    /// What it says in short; a template.
    #[must_use]
    pub fn summary(mut self, template: impl Into<String>) -> Self {
        self.summary = Some(Source::Template(template.into()));
        self
    }

    /// What it says in full, without placeholders: a dollar sign is a dollar sign.
    #[must_use]
    pub fn literal_body(mut self, text: impl Into<String>) -> Self {
        self.body = Source::Literal(text.into());
        self
    }

    /// What it says in short, without placeholders: a dollar sign is a dollar sign.
    #[must_use]
    pub fn literal_summary(mut self, text: impl Into<String>) -> Self {
        self.summary = Some(Source::Literal(text.into()));
        self
    }

    /// How much of it is shown as long as nothing overrides it.
    #[must_use]
    pub fn visibility(mut self, visibility: Visibility) -> Self {
        self.visibility = Setting::Constant(visibility);
        self
    }

    /// Decides for each rendering how much of it is shown as long as nothing overrides it.
    #[must_use]
    pub fn visibility_when<F>(mut self, decide: F) -> Self
    where
        F: Fn(&Params, &StateView<'_>) -> Visibility + Send + Sync + 'static,
    {
        self.visibility = Setting::Decided(Arc::new(decide));
        self
    }

    /// Whether it is there at all, with everything inside it.
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = Setting::Constant(enabled);
        self
    }

    /// Decides for each rendering whether it is there at all.
    #[must_use]
    pub fn enabled_when<F>(mut self, decide: F) -> Self
    where
        F: Fn(&Params, &StateView<'_>) -> bool + Send + Sync + 'static,
    {
        self.enabled = Setting::Decided(Arc::new(decide));
        self
    }

    /// A tool that comes with it.
    #[must_use]
    pub fn tool(mut self, tool: impl Into<ToolSource>) -> Self {
        self.tools.push(tool.into());
        self
    }

    /// Tools that come with it, in this order.
    #[must_use]
    pub fn tools<S: Into<ToolSource>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.tools.extend(tools.into_iter().map(Into::into));
        self
    }

    /// A policy for the tools of this section.
    #[must_use]
    pub fn policy(mut self, policy: impl Policy) -> Self {
        self.policies.push(Arc::new(policy));
        self
    }

    /// Feedback on calls of the tools of this section.
    #[must_use]
    pub fn feedback(mut self, provider: impl FeedbackProvider) -> Self {
        self.feedback.push(Arc::new(provider));
        self
    }

    /// A section inside it, after those that are there.
    #[must_use]
    pub fn child(mut self, child: Section) -> Self {
        self.children.push(child);
        self
    }

    /// Sections inside it, in this order.
    #[must_use]
    pub fn children(mut self, children: impl IntoIterator<Item = Section>) -> Self {
        self.children.extend(children);
        self
    }
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section")
            .field("key", &self.key)
            .field("title", &self.title)
            .field("tools", &self.tools)
            .field("children", &self.children)
            .finish_non_exhaustive()
    }
}
