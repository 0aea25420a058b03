//! What `haft prompt render` prints.

use std::io::{self, Write};
use std::sync::Arc;

use haft::prompt::{Prompt, Read, Rendered, SectionTool, read_section_definition};
use haft::{ToolDefinition, Value, json};
use owo_colors::OwoColorize;

use crate::failure::Failure;
use crate::terminal::print_json;
use crate::text::{counted, one_line, printable};
use crate::tokens;

/// A tool that is offered, and what that costs.
struct Offer {
    definition: Arc<ToolDefinition>,
    /// None for haft's own.
    section: Option<Arc<str>>,
    tokens: usize,
}

impl Offer {
    fn new(definition: Arc<ToolDefinition>, section: Option<Arc<str>>) -> Self {
        Self {
            tokens: tokens::of_tool(&definition),
            definition,
            section,
        }
    }

    fn of(tools: &[SectionTool]) -> Vec<Self> {
        let tools = tools.iter().map(|it| {
            let definition = Arc::clone(it.tool.definition());
            Self::new(definition, Some(Arc::clone(&it.section)))
        });
        tools.collect()
    }

    fn json(&self) -> Value {
        json!({
            "name": self.definition.name().as_str(),
            "section": self.section.as_deref(),
            "tokens": self.tokens,
        })
    }
}

/// The whole prompt.
pub(super) fn rendered(
    prompt: &Prompt,
    rendered: &Rendered,
    is_json: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut offers = Offer::of(&rendered.tools);
    if rendered.offers_read_section {
        let own = read_section_definition().map_err(|it| Failure::new(it.to_string()))?;
        offers.push(Offer::new(own, None));
    }
    let of_text = tokens::count(&rendered.text);
    let of_tools: usize = offers.iter().map(|it| it.tokens).sum();
    if is_json {
        let sections = prompt.sections().zip(&rendered.states);
        let sections: Vec<Value> = sections
            .map(|(section, (_, state))| {
                json!({
                    "path": section.path(),
                    "number": section.number(),
                    "title": section.title(),
                    "state": state.to_string(),
                })
            })
            .collect();
        print_json(&json!({
            "prompt": prompt.name(),
            "text": rendered.text,
            "sections": sections,
            "tools": offers.iter().map(Offer::json).collect::<Vec<_>>(),
            "tokens": {
                "text": of_text,
                "tools": of_tools,
                "total": of_text + of_tools,
                "counted": tokens::METHOD,
            },
        }))?;
        return Ok(());
    }
    writeln!(io::stdout(), "{}", printable(&rendered.text))?;
    let mut aside = anstream::stderr().lock();
    writeln!(
        aside,
        "\n{}: {} of text and {} of {}, {} in all ({})",
        prompt.name().bold(),
        in_tokens(of_text),
        of_tools,
        counted(offers.len() as u64, "tool"),
        of_text + of_tools,
        tokens::METHOD
    )?;
    table(&mut aside, &offers)?;
    for (path, state) in &rendered.states {
        writeln!(
            aside,
            "  {:<30}{}",
            one_line(path, 60),
            state.to_string().dimmed()
        )?;
    }
    Ok(())
}

/// What reading one section gives.
pub(super) fn read(read: &Read, is_json: bool) -> io::Result<()> {
    let offers = Offer::of(&read.collected);
    let of_text = tokens::count(&read.text);
    let of_tools: usize = offers.iter().map(|it| it.tokens).sum();
    if is_json {
        return print_json(&json!({
            "key": read.key,
            "success": read.is_success,
            "text": read.text,
            "already_expanded": read.is_already_expanded,
            "stays_open": read.changes_override,
            "tools": offers.iter().map(Offer::json).collect::<Vec<_>>(),
            "tokens": {
                "text": of_text,
                "tools": of_tools,
                "total": of_text + of_tools,
                "counted": tokens::METHOD,
            },
        }));
    }
    writeln!(io::stdout(), "{}", printable(&read.text))?;
    let mut aside = anstream::stderr().lock();
    let method = tokens::METHOD;
    match offers.len() {
        0 => writeln!(aside, "\n{} of text ({method})", in_tokens(of_text))?,
        many => writeln!(
            aside,
            "\n{} of text ({method}); from the next request on {}, {}:",
            in_tokens(of_text),
            counted(many as u64, "tool"),
            in_tokens(of_tools),
        )?,
    }
    table(&mut aside, &offers)
}

fn in_tokens(tokens: usize) -> String {
    counted(tokens as u64, "token")
}

fn table(out: &mut impl Write, offers: &[Offer]) -> io::Result<()> {
    for offer in offers {
        let name = one_line(offer.definition.name().as_str(), 64);
        let section = offer.section.as_deref().unwrap_or("haft's own");
        let name = format!("{name:<30}");
        let tokens = format!("{:>6}", offer.tokens);
        writeln!(
            out,
            "  {}{tokens}  {}",
            name.cyan(),
            one_line(section, 60).dimmed()
        )?;
    }
    Ok(())
}
