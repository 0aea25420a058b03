//! `read_section`: parts of a prompt that are summed up until the model reads them
//! (`dynamic-tools.md` §2).

use std::sync::Arc;

use haft_catalog::prompt::{
    Collect, Context, Overrides, Params, Prompt, RenderError, Rendered, SectionState, SectionTool,
    StateView, Visibility, read_section_definition, restart_text,
};
use haft_core::{
    Annotations, DefinitionError, Loading, Policy, SessionState, ToolContext, ToolDefinition,
    ToolError, ToolName, ToolObject, ToolOutput, dynamic_tool, read_arguments,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::feedback::Scope;

/// A prompt and what it is rendered with.
#[derive(Clone)]
pub(crate) struct PromptSource {
    pub(crate) prompt: Prompt,
    pub(crate) params: Params,
    /// Overrides of this run only.
    pub(crate) passed: Overrides,
    pub(crate) collect: Collect,
}

/// A prompt as a run began with it, for another process that goes on with the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct FrozenPrompt {
    pub(crate) text: Arc<str>,
    /// The tools of its sections, in order.
    pub(crate) tools: Vec<ToolName>,
    /// The tools of sections that are yet to be read, in order, where the list has them from the
    /// beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unread: Vec<ToolName>,
    pub(crate) offers_read_section: bool,
}

/// What `read_section` gives to code.
///
/// The model reads the content; the tools reach it with the next request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadSectionResult {
    /// The section that was read.
    pub section_key: String,
    /// The content, as the model reads it.
    pub content: String,
    /// The tools that come with it.
    pub expanded_tools: Vec<ToolName>,
}

#[derive(Deserialize)]
struct Arguments {
    section_key: String,
}

impl PromptSource {
    pub(crate) fn render(&self, state: &SessionState) -> Result<Rendered, RenderError> {
        let stored = state.get::<Overrides>();
        let stored = stored.map(|stored| (*stored).clone()).unwrap_or_default();
        self.prompt.render(&self.context(state.into(), stored))
    }

    /// The prompt as a run begins with it. Where outputs refer to tools, those of unread sections are on
    /// the list already; what is switched off stays out.
    pub(crate) fn frozen(&self, rendered: &Rendered, loading: Loading) -> FrozenPrompt {
        let tools = names(&rendered.tools);
        let mut unread = Vec::new();
        if loading == Loading::Referenced {
            let states = rendered.states.iter();
            let enabled = states.filter(|(_, state)| *state != SectionState::Disabled);
            let sections = enabled.filter_map(|(path, _)| self.prompt.section(path));
            let all = sections.flat_map(|section| section.tools());
            unread.extend(all.map(|tool| tool.definition().name().clone()));
            unread.retain(|name| !tools.contains(name));
        }
        FrozenPrompt {
            text: rendered.text.as_str().into(),
            tools,
            unread,
            offers_read_section: rendered.offers_read_section,
        }
    }

    fn context<'a>(&self, state: StateView<'a>, stored: Overrides) -> Context<'a> {
        Context {
            params: self.params.clone(),
            state,
            passed: self.passed.clone(),
            stored,
            collect: self.collect,
        }
    }

    /// The tool of this name, in whichever section it is.
    pub(crate) fn tool(&self, name: &ToolName) -> Option<Arc<dyn ToolObject>> {
        let mut tools = self.prompt.sections().flat_map(|section| section.tools());
        tools.find(|tool| tool.definition().name() == name).cloned()
    }

    /// What is asked before a call of this tool: the policies of its section, then those of the prompt.
    pub(crate) fn policies(&self, tool: &ToolDefinition) -> Vec<Arc<dyn Policy>> {
        let section = self.prompt.sections().find(|section| {
            let mut tools = section.tools().iter();
            tools.any(|one| one.definition().name() == tool.name())
        });
        let own = section
            .map(|section| section.policies())
            .unwrap_or_default();
        own.iter().chain(self.prompt.policies()).cloned().collect()
    }

    /// All policies, to be registered.
    pub(crate) fn all_policies(&self) -> impl Iterator<Item = &Arc<dyn Policy>> {
        let sections = self
            .prompt
            .sections()
            .flat_map(|section| section.policies());
        sections.chain(self.prompt.policies())
    }

    /// Who has something to say about calls: of which tools, or of all.
    pub(crate) fn feedback(&self) -> Vec<Scope> {
        let everywhere = self
            .prompt
            .feedback()
            .iter()
            .map(|one| (None, Arc::clone(one)));
        let of_sections = self.prompt.sections().flat_map(|section| {
            let tools: Vec<_> = section
                .tools()
                .iter()
                .map(|tool| tool.definition().name().clone())
                .collect();
            section
                .feedback()
                .iter()
                .map(move |one| (Some(tools.clone()), Arc::clone(one)))
        });
        of_sections.chain(everywhere).collect()
    }

    /// The tool by which a model asks for a section.
    pub(crate) fn read_section(
        self: &Arc<Self>,
        opens: Opens,
    ) -> Result<Arc<dyn ToolObject>, DefinitionError> {
        let definition = read_section_definition()?;
        let definition = ToolDefinition::builder(definition.name().as_str())
            .description(definition.description().unwrap_or_default())
            .parameters(definition.offered_parameters())
            .annotations(Annotations {
                read_only: true,
                idempotent: true,
                sequential: true,
                ..Annotations::default()
            })
            .build()?;
        let source = Arc::clone(self);
        Ok(dynamic_tool(definition, move |arguments, context| {
            let source = Arc::clone(&source);
            async move { source.read(arguments, &context, opens) }
        }))
    }

    fn read(
        &self,
        arguments: Value,
        context: &ToolContext,
        opens: Opens,
    ) -> Result<ToolOutput, ToolError> {
        let Arguments { section_key } = read_arguments(&arguments)?;
        let stored = context.slice::<Overrides>()?;
        let state = context.transaction().map(StateView::from);
        let state = state.unwrap_or_default();
        let read = self
            .prompt
            .read(&section_key, &self.context(state, (*stored).clone()));
        let read = read.map_err(|error| ToolError::new(error.to_string()))?;
        if !read.is_success {
            return Ok(ToolOutput::failure(read.text));
        }
        let text = match opens {
            Opens::ByRestart if !read.collected.is_empty() => restart_text(&section_key),
            _ => read.text,
        };
        let result = ReadSectionResult {
            section_key: section_key.clone(),
            content: read.content.unwrap_or_default(),
            expanded_tools: names(&read.collected),
        };
        if read.changes_override {
            context.update::<Overrides>(move |overrides| {
                overrides.set(section_key.clone(), Visibility::Full);
            })?;
        }
        Ok(ToolOutput::serialized(&result)?
            .with_message(text)
            .hiding_value())
    }
}

/// How tools of a section reach the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opens {
    /// With the next request.
    ByInjection,
    /// With a prompt that is started anew.
    ByRestart,
}

fn names(tools: &[SectionTool]) -> Vec<ToolName> {
    let names = tools
        .iter()
        .map(|tool| tool.tool.definition().name().clone());
    names.collect()
}
