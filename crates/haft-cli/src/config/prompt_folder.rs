//! Sections from a folder of Markdown files.
//!
//! A file is a section: what stands between two lines of `+++` at its beginning says what it is, in TOML,
//! and the rest is its body. A folder of the same name beside it has the sections inside it. They are in
//! the order of their `order`, then of their names.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use haft::prompt::MAX_DEPTH;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::complaint::{Complaint, Place};
use super::document::{about_syntax, about_words};
use super::prompt::{Descriptions, Said, SectionConfig, Shown, Spot, What, missing, of_server};

/// How large a file may be.
const MAX_BYTES: u64 = 1 << 20;

/// The line before and after what a file says of itself.
const FENCE: &str = "+++";

/// What a file says of itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FrontMatter {
    key: Option<Spanned<String>>,
    title: Option<Spanned<String>>,
    summary: Option<Spanned<String>>,
    visibility: Option<Shown>,
    enabled: Option<bool>,
    tools: Vec<Spanned<String>>,
    server: Option<Spanned<String>>,
    order: i64,
}

/// The sections of a folder. `complain` is about the key that names it.
pub(super) fn read(
    folder: &Path,
    servers: &Descriptions,
    complain: &dyn Fn(String) -> Complaint,
) -> Result<Vec<SectionConfig>, Complaint> {
    let sections = sections(folder, servers, 0, complain)?;
    if sections.is_empty() {
        let message = format!("the folder `{}` has no Markdown file", folder.display());
        return Err(complain(message).remedy("write a section into a file such as `task.md` there"));
    }
    Ok(sections)
}

fn sections(
    folder: &Path,
    servers: &Descriptions,
    depth: usize,
    complain: &dyn Fn(String) -> Complaint,
) -> Result<Vec<SectionConfig>, Complaint> {
    let shown = folder.display();
    if depth > MAX_DEPTH {
        return Err(complain(format!(
            "the folder `{shown}` is nested too deeply"
        )));
    }
    let Entries { files, mut folders } = entries(folder)
        .map_err(|error| complain(format!("the folder `{shown}` cannot be read: {error}")))?;
    let mut sections = Vec::new();
    for file in files {
        let (order, mut section) = section(&file, servers, complain)?;
        let inside = file.with_extension("");
        if let Some(at) = folders.iter().position(|it| *it == inside) {
            folders.swap_remove(at);
            section.inside = self::sections(&inside, servers, depth + 1, complain)?;
        }
        sections.push((order, section));
    }
    if let Some(lonely) = folders.first() {
        let lonely = lonely.display();
        let message = format!("the folder `{lonely}` belongs to no section");
        let remedy = format!("write `{lonely}.md`, the section that it is inside of");
        return Err(complain(message).remedy(remedy));
    }
    // Stable: those of one order stay in the order of their names.
    sections.sort_by_key(|(order, _)| *order);
    Ok(sections.into_iter().map(|(_, section)| section).collect())
}

/// What a folder holds, each by name; hidden files and those that are no Markdown do not count.
struct Entries {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

fn entries(folder: &Path) -> std::io::Result<Entries> {
    let mut files = Vec::new();
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if path.is_dir() {
            folders.push(path);
        } else if path.extension().is_some_and(|it| it == "md") {
            files.push(path);
        }
    }
    files.sort();
    folders.sort();
    Ok(Entries { files, folders })
}

/// The section that a file is, and its place among others.
fn section(
    path: &Path,
    servers: &Descriptions,
    complain: &dyn Fn(String) -> Complaint,
) -> Result<(i64, SectionConfig), Complaint> {
    let name = path.display().to_string();
    let text = text_of(path)
        .map_err(|why| complain(format!("the file `{name}` cannot be read: {why}")))?;
    let file = Spot::of_file(&name, &text);
    let (front, body) = parts(&text, &file)?;
    let offset = front.start;
    let said_of_itself = front_matter(&name, &text, front.clone())?;
    let said = |spanned| Said::of(spanned, &file, offset);
    // All that can be pointed at where something is missing.
    let at = file.at(0..text.lines().next().unwrap_or_default().len());
    let key = said_of_itself.key.map(said);
    let title = said_of_itself.title.map(said);
    let body = Some(&text[body.clone()])
        .filter(|it| !it.trim().is_empty())
        .map(|it| Said {
            text: it.to_owned(),
            at: file.at(body),
        });
    let what = match said_of_itself.server.map(said) {
        Some(label) => of_server(label, [&key, &title, &body], servers)?,
        None => What::Text {
            title: title.ok_or_else(|| missing(&at, "title").remedy(format!("{HOW}; {ELSE}")))?,
            key: match key {
                Some(key) => key,
                None => key_of(path, &at)?,
            },
            body,
        },
    };
    let section = SectionConfig {
        what,
        summary: said_of_itself.summary.map(said),
        visibility: said_of_itself.visibility.unwrap_or_default().into(),
        is_enabled: said_of_itself.enabled.unwrap_or(true),
        tools: said_of_itself.tools.into_iter().map(said).collect(),
        inside: Vec::new(),
        at,
    };
    Ok((said_of_itself.order, section))
}

fn text_of(path: &Path) -> Result<String, String> {
    // Opening a pipe would wait for somebody who writes into it.
    let is_file = fs::metadata(path).map_err(|error| error.to_string())?;
    if !is_file.is_file() {
        return Err(String::from("it is no file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(String::from("it is larger than 1 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| String::from("it is not UTF-8"))?;
    // Some editors begin files with a mark of their encoding.
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// The key that a file's name is.
fn key_of(path: &Path, at: &Spot) -> Result<Said, Complaint> {
    let text = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_legal = |it: char| matches!(it, 'a'..='z' | '0'..='9' | '_' | '-');
    if let Some(wrong) = text.chars().find(|it| !is_legal(*it)) {
        let message = format!(
            "the file's name is the section's key, and `{text}` cannot be one because of the `{wrong}`: \
             only a-z, 0-9, `_` and `-` are allowed"
        );
        let remedy = format!("rename the file, or write `key = \"…\"` in it; {ELSE}");
        return Err(at.complain(message).remedy(remedy));
    }
    Ok(Said {
        text: text.into_owned(),
        at: at.clone(),
    })
}

/// What to do with files that are none of this.
const ELSE: &str = "a file that is no section has its place in another folder";

/// How a file begins.
const HOW: &str =
    "begin the file with a line `+++`, lines such as `title = \"…\"`, and another line `+++`";

type Span = std::ops::Range<usize>;

/// What a file says of itself, and its body.
fn parts(text: &str, file: &Spot) -> Result<(Span, Span), Complaint> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    let first_at = || file.at(0..first.trim_end().len());
    if first.trim_end() == "---" {
        let message = "this looks like YAML, which is not read";
        return Err(first_at().complain(message).remedy(HOW));
    }
    if first.trim_end() != FENCE {
        return Ok((0..0, 0..text.len()));
    }
    let mut at = first.len();
    for line in lines {
        if line.trim_end() == FENCE {
            return Ok((first.len()..at, at + line.len()..text.len()));
        }
        at += line.len();
    }
    let message = "what begins with this line has no end";
    let remedy = "write another line `+++` behind the last `key = value`; the body follows it";
    Err(first_at().complain(message).remedy(remedy))
}

fn front_matter(name: &str, text: &str, span: Span) -> Result<FrontMatter, Complaint> {
    let place = |within: Option<Span>| {
        let within = within.unwrap_or_default();
        let within = within.start + span.start..within.end + span.start;
        Place::in_file(name, text, &within)
    };
    let table = DeTable::parse(&text[span.clone()])
        .map_err(|error| about_syntax(place(error.span()), error.message()))?;
    let value = Spanned::new(table.span(), DeValue::Table(table.into_inner()));
    FrontMatter::deserialize(ValueDeserializer::from(value))
        .map_err(|error| about_words(place(error.span()), error.message()))
}
