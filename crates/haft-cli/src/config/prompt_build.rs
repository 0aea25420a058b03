//! A prompt made of what a configuration says and the tools that there are.

use haft::prompt::{Prompt, PromptError, PromptTemplate, RenderError, Section, TextPart};
use haft::{Namespace, Snapshot, ToolName};

use super::complaint::Complaint;
use super::prompt::{PromptConfig, Said, SectionConfig, Spot, What};
use crate::catalogue::PREFIX;
use crate::text::nearest;

/// Makes it; without tools, to see whether the rest is right.
pub(crate) fn build(config: &PromptConfig, tools: Option<&Snapshot>) -> Result<Prompt, Complaint> {
    let mut template = PromptTemplate::new(&config.ns, &config.key);
    for section in &config.sections {
        template = template.section(made(section, tools)?);
    }
    template.build().map_err(|error| complaint(config, &error))
}

/// Why it cannot be rendered, at the place that is to blame.
pub(crate) fn not_rendered(config: &PromptConfig, error: &RenderError) -> Complaint {
    let section = |path: &str| {
        let mut sections = by_path(config).into_iter();
        sections.find(|(it, _)| it == path).map(|(_, it)| it)
    };
    let spot = match error {
        RenderError::UnknownPlaceholder { path, part, name } => section(path).map(|section| {
            let text = match part {
                TextPart::Body => body(section),
                TextPart::Summary => summary(section),
            };
            text.narrowed_to_any(&[&format!("${{{name}}}"), &format!("${name}")])
        }),
        RenderError::MissingSummary { path } | RenderError::Panicked { path, .. } => {
            section(path).map(|it| it.at.clone())
        }
        _ => None,
    };
    let complaint = match spot {
        Some(spot) => spot.complain(error.to_string()),
        None => Complaint::new(config.named_at.clone(), error.to_string()),
    };
    match error {
        RenderError::UnknownPlaceholder { name, .. } => complaint.remedy(format!(
            "say it in `[prompt.params]` of the configuration: `{name} = \"…\"`"
        )),
        _ => complaint,
    }
}

/// Complains about tools that cannot be there: neither one of haft's own, which these are, nor of one of
/// the servers, which are not asked.
pub(crate) fn check_tools(
    config: &PromptConfig,
    own: &Snapshot,
    servers: &[&str],
) -> Result<(), Complaint> {
    let of_server = |name: &str| {
        let mut servers = servers.iter();
        servers.any(|label| {
            let rest = name.strip_prefix(label);
            rest.is_some_and(|rest| rest.starts_with("__"))
        })
    };
    for (_, section) in by_path(config) {
        for named in &section.tools {
            if !of_server(bare(&named.text)) {
                found(named, own)?;
            }
        }
    }
    Ok(())
}

fn made(config: &SectionConfig, tools: Option<&Snapshot>) -> Result<Section, Complaint> {
    let mut section = match &config.what {
        What::Text { key, title, body } => {
            let section = Section::new(&key.text, &title.text);
            match body {
                Some(body) => section.body(&body.text),
                None => section,
            }
        }
        What::Server { label, description } => {
            let named = Namespace::new(&label.text);
            let named = named.map_err(|error| label.at.complain(error.to_string()))?;
            let of_server = tools.and_then(|tools| tools.in_namespace(named.as_str()));
            let of_server = of_server.into_iter().flatten().map(|it| it.tool().clone());
            Section::of_server(
                &named,
                description.as_deref().unwrap_or_default(),
                of_server,
            )
        }
    };
    if let Some(summary) = &config.summary {
        section = section.summary(&summary.text);
    }
    if let Some(tools) = tools {
        for named in &config.tools {
            section = section.tool(found(named, tools)?.tool().clone());
        }
    }
    for inner in &config.inside {
        section = section.child(made(inner, tools)?);
    }
    Ok(section
        .visibility(config.visibility)
        .enabled(config.is_enabled))
}

fn bare(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}

fn found<'t>(named: &Said, tools: &'t Snapshot) -> Result<&'t haft::PreparedTool, Complaint> {
    tools.get(bare(&named.text)).ok_or_else(|| {
        let known = tools.names().map(ToolName::as_str);
        let complaint = named
            .at
            .complain(format!("there is no tool `{}`", named.text));
        complaint.remedy(match nearest(bare(&named.text), known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => String::from("`haft tools list` shows those that there are"),
        })
    })
}

/// What is wrong, at the place where it was said.
fn complaint(config: &PromptConfig, error: &PromptError) -> Complaint {
    let named = |key: &str, spot: fn(&SectionConfig) -> &Spot, skipped: usize| {
        let mut matching = by_path(config).into_iter().filter(|(path, _)| path == key);
        // Where there is no second one, the first is all that can be pointed at.
        let found = matching.clone().nth(skipped).or_else(|| matching.next());
        found.map(|(_, section)| spot(section).clone())
    };
    let whole: fn(&SectionConfig) -> &Spot = |section| &section.at;
    let key: fn(&SectionConfig) -> &Spot = |section| section.key().1;
    let spot = match error {
        PromptError::InvalidSectionKey { key: wrong } => {
            let sections = by_path(config).into_iter();
            let mut sections = sections.filter(|(_, section)| section.key().0 == *wrong);
            sections.next().map(|(_, section)| section.key().1.clone())
        }
        PromptError::DuplicateSection { path } => named(path, key, 1),
        PromptError::InvalidTitle { path, .. } => named(path, title, 0),
        PromptError::InvalidTemplate { path, part, error } => {
            let spot = match part {
                TextPart::Body => named(path, body, 0),
                TextPart::Summary => named(path, summary, 0),
            };
            spot.map(|spot| spot.narrowed(error.text.trim_end_matches('…')))
        }
        PromptError::DuplicateTool { name, second, .. } => tool_at(config, second, name),
        PromptError::ReservedName { name, path } => tool_at(config, path, name),
        PromptError::TooDeep { path }
        | PromptError::MissingSummary { path }
        | PromptError::InvalidTool { path, .. } => named(path, whole, 0),
        _ => None,
    };
    let complaint = match spot {
        Some(spot) => spot.complain(error.to_string()),
        None => Complaint::new(config.named_at.clone(), error.to_string()),
    };
    match error {
        PromptError::MissingSummary { path } => match server_of(config, path) {
            Some(label) => complaint.remedy(format!(
                "write `description = \"…\"` in `[mcp.{label}]`, or `summary = \"…\"` here"
            )),
            None => complaint,
        },
        _ => complaint,
    }
}

/// The server that the section of this path is.
fn server_of<'c>(config: &'c PromptConfig, path: &str) -> Option<&'c str> {
    let mut sections = by_path(config).into_iter();
    match &sections.find(|(it, _)| it == path)?.1.what {
        What::Server { label, .. } => Some(&label.text),
        What::Text { .. } => None,
    }
}

/// The last place where a section names a tool, or its server does.
fn tool_at(config: &PromptConfig, path: &str, name: &ToolName) -> Option<Spot> {
    let mut sections = by_path(config).into_iter();
    let (_, section) = sections.find(|(it, _)| it == path)?;
    let mut named = section.tools.iter();
    let named = named.rfind(|it| bare(&it.text) == name.as_str());
    Some(named.map_or_else(|| section.key().1.clone(), |it| it.at.clone()))
}

fn title(section: &SectionConfig) -> &Spot {
    match &section.what {
        What::Text { title, .. } => &title.at,
        What::Server { label, .. } => &label.at,
    }
}

fn body(section: &SectionConfig) -> &Spot {
    match &section.what {
        What::Text {
            body: Some(body), ..
        } => &body.at,
        _ => &section.at,
    }
}

fn summary(section: &SectionConfig) -> &Spot {
    section.summary.as_ref().map_or(&section.at, |it| &it.at)
}

/// All sections with their paths, depth first.
fn by_path(config: &PromptConfig) -> Vec<(String, &SectionConfig)> {
    fn add<'c>(
        sections: &'c [SectionConfig],
        around: &str,
        all: &mut Vec<(String, &'c SectionConfig)>,
    ) {
        for section in sections {
            let path = format!("{around}{}", section.key().0);
            let inside = format!("{path}.");
            all.push((path, section));
            add(&section.inside, &inside, all);
        }
    }
    let mut all = Vec::new();
    add(&config.sections, "", &mut all);
    all
}
