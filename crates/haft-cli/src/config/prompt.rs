//! `[prompt]`: the sections that a model is shown, from this file and from a folder of Markdown files.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use haft::prompt::{Params, Visibility};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::complaint::{Complaint, Place};
use super::document::{Document, Step};
use super::prompt_build::build;
use super::prompt_folder;

/// `[prompt]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PromptTable {
    /// The first part of the prompt's name in events, logs and traces.
    pub(super) ns: Option<String>,
    /// The second part of it.
    pub(super) key: Option<String>,
    /// A folder of Markdown files, each a section after those of this file; `ref.md` may have a folder `ref`
    /// beside it with the sections inside it.
    pub(super) folder: Option<PathBuf>,
    /// What stands for `$NAME` and `${NAME}` in the texts of sections.
    pub(super) params: BTreeMap<String, String>,
    /// The sections, in their order.
    #[schemars(with = "Vec<SectionTable>")]
    pub(super) section: Vec<Spanned<SectionTable>>,
}

/// `[[prompt.section]]`, and `[[prompt.section.section]]` inside it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SectionTable {
    /// What it is called among its siblings: 1 to 64 of a-z, 0-9, `_` and `-`.
    #[schemars(with = "Option<String>")]
    pub(super) key: Option<Spanned<String>>,
    /// Its heading.
    #[schemars(with = "Option<String>")]
    pub(super) title: Option<Spanned<String>>,
    /// What it says in full. `$NAME` and `${NAME}` stand for a parameter, `$$` for a dollar sign.
    #[schemars(with = "Option<String>")]
    pub(super) body: Option<Spanned<String>>,
    /// What it says in short; the same holds for it.
    #[schemars(with = "Option<String>")]
    pub(super) summary: Option<Spanned<String>>,
    /// How much of it is shown at first.
    pub(super) visibility: Option<Shown>,
    /// Whether it is there at all, with everything inside it.
    pub(super) enabled: Option<bool>,
    /// The names of the tools that are offered once it is shown in full; each tool belongs to one section.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) tools: Vec<Spanned<String>>,
    /// The name of an MCP server that this section is: its key and title are that name, its summary is the
    /// server's `description` unless another is given, its tools are the server's.
    #[schemars(with = "Option<String>")]
    pub(super) server: Option<Spanned<String>>,
    /// The sections inside it, with the same keys, at most eight deep.
    #[schemars(with = "Option<Vec<BTreeMap<String, serde_json::Value>>>")]
    pub(super) section: Vec<Spanned<SectionTable>>,
}

/// How much of a section is shown at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shown {
    /// All of it.
    #[default]
    Full,
    /// Its summary; the model reads the rest with `read_section`, and gets its tools then.
    Summary,
}

impl From<Shown> for Visibility {
    fn from(shown: Shown) -> Self {
        match shown {
            Shown::Full => Self::Full,
            Shown::Summary => Self::Summary,
        }
    }
}

/// A part of a file.
#[derive(Clone)]
pub(crate) struct Spot {
    name: Arc<str>,
    text: Arc<str>,
    span: Range<usize>,
}

impl Spot {
    /// A whole file, as it is called and as it is.
    pub(super) fn of_file(name: &str, text: &str) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            span: 0..text.len(),
        }
    }

    /// Another part of the same file.
    pub(super) fn at(&self, span: Range<usize>) -> Self {
        Self {
            span,
            ..self.clone()
        }
    }

    /// The first place of these words in it, or all of it.
    pub(super) fn narrowed(&self, words: &str) -> Self {
        let within = self.text.get(self.span.clone()).unwrap_or_default();
        match within.find(words) {
            Some(at) if !words.is_empty() => {
                let start = self.span.start + at;
                self.at(start..start + words.len())
            }
            _ => self.clone(),
        }
    }

    /// The first of these words that is in it.
    pub(super) fn narrowed_to_any(&self, words: &[&str]) -> Self {
        let within = self.text.get(self.span.clone()).unwrap_or_default();
        let found = words.iter().find(|words| within.contains(**words));
        found.map_or_else(|| self.clone(), |words| self.narrowed(words))
    }

    pub(super) fn complain(&self, message: impl Into<String>) -> Complaint {
        Complaint::new(Place::in_file(&self.name, &self.text, &self.span), message)
    }
}

impl std::fmt::Debug for Spot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{:?}", self.name, self.span)
    }
}

/// A text, and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(super) text: String,
    pub(super) at: Spot,
}

impl Said {
    pub(super) fn of(spanned: Spanned<String>, file: &Spot, offset: usize) -> Self {
        let span = spanned.span();
        Self {
            at: file.at(span.start + offset..span.end + offset),
            text: spanned.into_inner(),
        }
    }
}

/// The prompt that a configuration describes.
#[derive(Debug, Clone)]
pub(crate) struct PromptConfig {
    pub(super) ns: String,
    pub(super) key: String,
    /// Where the two stand.
    pub(super) named_at: Place,
    /// What is known for its placeholders.
    pub(crate) params: Params,
    pub(super) sections: Vec<SectionConfig>,
}

/// One section of it.
#[derive(Debug, Clone)]
pub(super) struct SectionConfig {
    pub(super) what: What,
    pub(super) summary: Option<Said>,
    pub(super) visibility: Visibility,
    pub(super) is_enabled: bool,
    pub(super) tools: Vec<Said>,
    pub(super) inside: Vec<SectionConfig>,
    pub(super) at: Spot,
}

/// What a section is about.
#[derive(Debug, Clone)]
pub(super) enum What {
    /// Its own text.
    Text {
        key: Said,
        title: Said,
        body: Option<Said>,
    },
    /// An MCP server, and what is said of it in the configuration.
    Server {
        label: Said,
        description: Option<String>,
    },
}

impl SectionConfig {
    /// Its key, and where that comes from.
    pub(super) fn key(&self) -> (String, &Spot) {
        match &self.what {
            What::Text { key, .. } => (key.text.clone(), &key.at),
            What::Server { label, .. } => (label.text.to_lowercase(), &label.at),
        }
    }
}

impl PromptConfig {
    /// The names of the tools that it offers, beside those of servers.
    pub(crate) fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.all_sections()
            .into_iter()
            .flat_map(|it| &it.tools)
            .map(|it| it.text.as_str())
    }

    /// Whether one of its sections is an MCP server.
    pub(crate) fn has_servers(&self) -> bool {
        let mut sections = self.all_sections().into_iter();
        sections.any(|it| matches!(it.what, What::Server { .. }))
    }

    /// What it is called, and how many sections it has.
    pub(crate) fn outline(&self) -> (String, usize) {
        let name = format!("{}/{}", self.ns, self.key);
        (name, self.all_sections().len())
    }

    fn all_sections(&self) -> Vec<&SectionConfig> {
        fn add<'c>(sections: &'c [SectionConfig], all: &mut Vec<&'c SectionConfig>) {
            for section in sections {
                all.push(section);
                add(&section.inside, all);
            }
        }
        let mut all = Vec::new();
        add(&self.sections, &mut all);
        all
    }
}

/// The MCP servers that sections may be, and what is said of each.
pub(super) type Descriptions = BTreeMap<String, Option<String>>;

/// The prompt, checked as far as it can be without its tools; none without sections.
pub(super) fn prompt(
    document: &Document<'_>,
    table: PromptTable,
    servers: &Descriptions,
) -> Result<Option<PromptConfig>, Complaint> {
    let file = document.whole();
    let mut sections = from_tables(table.section, &file, servers)?;
    if let Some(folder) = table.folder {
        let path = [Step::Key("prompt"), Step::Key("folder")];
        let folder = document.folder_of(&path).join(folder);
        let complain = |message: String| document.complain(&path, message);
        sections.extend(prompt_folder::read(&folder, servers, &complain)?);
    }
    if sections.is_empty() {
        return Ok(None);
    }
    let named = if table.ns.is_some() { "ns" } else { "key" };
    let config = PromptConfig {
        ns: table.ns.unwrap_or_else(|| "haft".into()),
        key: table.key.unwrap_or_else(|| "prompt".into()),
        named_at: document.place_near(&[Step::Key("prompt"), Step::Key(named)]),
        params: table.params.into_iter().collect(),
        sections,
    };
    build(&config, None)?;
    Ok(Some(config))
}

fn from_tables(
    tables: Vec<Spanned<SectionTable>>,
    file: &Spot,
    servers: &Descriptions,
) -> Result<Vec<SectionConfig>, Complaint> {
    let sections = tables.into_iter().map(|spanned| {
        let at = file.at(spanned.span());
        let table = spanned.into_inner();
        let said = |spanned| Said::of(spanned, file, 0);
        let key = table.key.map(said);
        let title = table.title.map(said);
        let body = table.body.map(said);
        let what = match table.server.map(said) {
            Some(label) => of_server(label, [&key, &title, &body], servers)?,
            None => What::Text {
                key: key.ok_or_else(|| missing(&at, "key"))?,
                title: title.ok_or_else(|| missing(&at, "title"))?,
                body,
            },
        };
        Ok(SectionConfig {
            what,
            summary: table.summary.map(said),
            visibility: table.visibility.unwrap_or_default().into(),
            is_enabled: table.enabled.unwrap_or(true),
            tools: table.tools.into_iter().map(said).collect(),
            inside: from_tables(table.section, file, servers)?,
            at,
        })
    });
    sections.collect()
}

/// A section that is a server: what it is follows from that.
pub(super) fn of_server(
    label: Said,
    others: [&Option<Said>; 3],
    servers: &Descriptions,
) -> Result<What, Complaint> {
    let others = ["key", "title", "body"].into_iter().zip(others);
    for (key, other) in others {
        if let Some(other) = other {
            let message = format!("a section that is a server has no `{key}` of its own");
            let remedy = format!("leave it out, or `server = \"{}\"`", label.text);
            return Err(other.at.complain(message).remedy(remedy));
        }
    }
    if let Some(description) = servers.get(&label.text) {
        let description = description.clone();
        return Ok(What::Server { label, description });
    }
    let message = format!("there is no MCP server `{}`", label.text);
    let known: Vec<_> = servers.keys().map(|it| format!("`{it}`")).collect();
    Err(label.at.complain(message).remedy(match known.as_slice() {
        [] => format!("describe it in `[mcp.{}]`", label.text),
        known => format!("there is {}", known.join(", ")),
    }))
}

/// A section without something that every section has.
pub(super) fn missing(at: &Spot, key: &str) -> Complaint {
    at.complain(format!("this section has no `{key}`"))
        .remedy(format!("write `{key} = \"…\"`"))
}
