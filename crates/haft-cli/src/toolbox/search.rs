//! `haft tools search`: what a model would find, and why.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use haft::search::{Reason, SearchAnswer, SearchIndex, SearchRequest, Shown};
use owo_colors::OwoColorize;

use super::definitions;
use crate::arguments::SearchToolsArguments;
use crate::failure::Failure;
use crate::terminal::print_json;
use crate::text::{counted, one_line};
use crate::tokens;

pub(super) async fn search(arguments: &SearchToolsArguments) -> Result<ExitCode, Box<dyn Error>> {
    if arguments
        .queries
        .iter()
        .all(|query| query.trim().is_empty())
    {
        return Err(Failure::mistake("the query is empty")
            .remedy("say what the tool should do")
            .into());
    }
    let looked_at = definitions::of(&arguments.which).await?;
    let index = SearchIndex::of(looked_at.tools);
    let request =
        SearchRequest::of(arguments.queries.iter().cloned()).k(usize::from(arguments.limit));
    let answer = index
        .search_counting(&request, tokens::count)
        .map_err(|error| Failure::mistake(error.to_string()))?;
    if arguments.json {
        print_json(&answer)?;
    } else {
        page(&answer)?;
    }
    let found = !answer.hits.is_empty();
    Ok(ExitCode::from(u8::from(!found)))
}

fn page(answer: &SearchAnswer) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    for hit in &answer.hits {
        let name = format!("{:<28}", one_line(&hit.name, 64));
        let gap = if name.ends_with(' ') { "" } else { "  " };
        let why = why(hit.reason, &hit.matched, hit.via.as_deref());
        let brief = match &hit.shown {
            Shown::Brief { brief } => one_line(brief, 120),
            _ => String::new(),
        };
        writeln!(
            out,
            "{:.4}  {}{gap}{brief}\n        {}",
            hit.score,
            name.cyan(),
            why.dimmed()
        )?;
    }
    let total = counted(answer.total_tools as u64, "tool");
    let words = match answer.hits.len() {
        0 => format!("nothing fits among {total}: say it with other words"),
        found if answer.exhausted => format!("{found} of {total}; nothing else fits"),
        found => format!("{found} of {total}; `--limit` shows more"),
    };
    writeln!(io::stderr(), "{words}")
}

fn why(reason: Reason, matched: &[String], via: Option<&str>) -> String {
    let words = one_line(&matched.join(", "), 200);
    match reason {
        Reason::Exact => String::from("its name"),
        Reason::Prefix => String::from("its name begins like this"),
        Reason::Dense => String::from("its meaning"),
        Reason::Pinned => String::from("always there"),
        Reason::Dependency => format!("needed by {}", one_line(via.unwrap_or("another"), 64)),
        Reason::Lexical if words.is_empty() => String::from("pieces of its words"),
        Reason::Lexical => format!("words: {words}"),
    }
}
