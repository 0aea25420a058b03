//! Tools of a request that are held back until somebody finds them (`open-responses.md` §5.5).

use std::collections::{HashMap, HashSet};

use haft_core::{Defer, brief_of};
use serde_json::{Value, json};

use crate::error::{ApiError, ErrorCode};
use crate::wire::{RequestTool, RequestToolKind};

/// Who searches, by the request's own word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    /// The request has no `tool_search`: whatever is held back is searched for without a word.
    Unsaid,
    Client,
    Server,
}

impl Search {
    /// Who searches in a request with these tools. What it declares holds against what was loaded before; what it
    /// brings with its items must not say something else.
    pub(super) fn of_request(
        declared: &[RequestTool],
        loaded: &[RequestTool],
    ) -> Result<Self, ApiError> {
        let own = Self::of(declared);
        if own == Self::Unsaid {
            return Ok(Self::of(loaded));
        }
        let contradicts = |tool: &&RequestTool| {
            let said = Self::of([*tool]);
            said != Self::Unsaid && said != own && tool.param.starts_with("input")
        };
        match loaded.iter().find(contradicts) {
            None => Ok(own),
            Some(tool) => {
                let at = format!("{}.execution", tool.param);
                let message = format!(
                    "`{at}` says another than the `tool_search` in `tools` who searches: keep one of the two"
                );
                Err(ApiError::new(ErrorCode::InvalidValue, message).at(at))
            }
        }
    }

    /// Who searches among these tools. A client that wants to do it by itself does.
    pub(crate) fn of<'t>(tools: impl IntoIterator<Item = &'t RequestTool>) -> Self {
        let mut search = Self::Unsaid;
        for tool in tools {
            match tool.kind {
                RequestToolKind::ToolSearch {
                    is_client: true, ..
                } => return Self::Client,
                RequestToolKind::ToolSearch { .. } => search = Self::Server,
                _ => {}
            }
        }
        search
    }
}

/// How a tool came into the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Declared,
    Loaded,
}

/// The namespace that a tool stands in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Within<'t> {
    pub(super) name: &'t str,
    pub(super) description: Option<&'t str>,
    /// Whether all of it is deferred.
    pub(super) is_deferred: bool,
}

/// A tool as its client declared it, for whoever finds it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Declared {
    Alone(Value),
    InNamespace {
        namespace: String,
        description: Option<String>,
        tool: Value,
    },
    /// A tool of an MCP server.
    OfServer {
        /// The entry of the server, without its secrets.
        entry: Value,
        name: String,
    },
}

/// The definitions of tools, in this order; those of one namespace or server are one.
pub(crate) fn definitions<'d>(found: impl IntoIterator<Item = &'d Declared>) -> Vec<Value> {
    let mut definitions: Vec<Value> = Vec::new();
    for declared in found {
        let (whole, list, piece) = match declared {
            Declared::Alone(tool) => {
                definitions.push(tool.clone());
                continue;
            }
            Declared::InNamespace {
                namespace,
                description,
                tool,
            } => {
                let mut whole = json!({"type": "namespace", "name": namespace});
                if let Some(description) = description {
                    whole["description"] = description.as_str().into();
                }
                (whole, "tools", tool.clone())
            }
            Declared::OfServer { entry, name } => {
                (entry.clone(), "allowed_tools", Value::from(name.as_str()))
            }
        };
        let is_same = |known: &&mut Value| {
            let same = |key: &str| known.get(key) == whole.get(key);
            same("type") && same("name") && same("server_label")
        };
        let known = definitions.iter_mut().find(is_same);
        let known = known.and_then(|known| known.get_mut(list)?.as_array_mut());
        if let Some(pieces) = known {
            pieces.push(piece);
        } else {
            let mut first = whole;
            first[list] = Value::Array(vec![piece]);
            definitions.push(first);
        }
    }
    definitions
}

/// How much a model reads of what a search may find: names beyond it are only counted.
const MAX_NOTE_BYTES: usize = 12 * 1024;

/// What is held back of a request's tools, and what is known of it.
#[derive(Debug, Default)]
pub(super) struct Deferral {
    /// What the model reads of it before it is loaded: name and description.
    lines: Vec<(String, String)>,
    /// The tools that the request itself defers, by the name for the model.
    pub(super) by_request: HashSet<String>,
    /// All tools that its client declared, by the same name.
    pub(super) declared: HashMap<String, Declared>,
    /// What was loaded, in order, by the same name.
    pub(super) loaded: Vec<String>,
}

impl Deferral {
    /// Lets the model read of a tool, a namespace or a server; once.
    pub(super) fn mention(&mut self, name: &str, description: Option<&str>) {
        if self.lines.iter().any(|(known, _)| known == name) {
            return;
        }
        let description = description.unwrap_or_default().to_owned();
        self.lines.push((name.to_owned(), description));
    }

    /// What a search may find, as the model reads it.
    pub(super) fn note(&self) -> Option<String> {
        if self.lines.is_empty() {
            return None;
        }
        let mut note = String::from("It finds:");
        for (at, (name, description)) in self.lines.iter().enumerate() {
            // One line each, whatever its author wrote: a line that looks like a tool is one.
            let line = match brief_of(description) {
                brief if brief.is_empty() => format!("\n- {name}"),
                brief => format!("\n- {name}: {brief}"),
            };
            if note.len() + line.len() > MAX_NOTE_BYTES {
                let left = self.lines.len() - at;
                note = format!("{note}\n- and {left} more");
                break;
            }
            note.push_str(&line);
        }
        Some(note)
    }

    /// A tool is loaded; the first time counts.
    pub(super) fn load(&mut self, backend: &str) {
        if !self.loaded.iter().any(|known| known == backend) {
            self.loaded.push(backend.to_owned());
        }
    }

    /// Whether a tool that the request defers cannot be called yet.
    pub(super) fn is_held(&self, backend: &str) -> bool {
        self.by_request.contains(backend) && !self.loaded.iter().any(|known| known == backend)
    }

    /// Whether the engine defers a tool of the client: only if the request says so. The client's own instructions
    /// may name it, and a model that cannot see it would not call it.
    pub(super) fn of_client_tool(&self, backend: &str) -> Defer {
        if self.by_request.contains(backend) {
            Defer::Always
        } else {
            Defer::Never
        }
    }
}
