//! `list_files`: what is in a directory, or which files below it match a pattern.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};
use haft_core::{Cancel, ToolContext, ToolDefinition};
use rustix::fs::{AtFlags, Dir, FileType, statat};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Built, file_tool};
use crate::place::Root;
use crate::refusal::Refusal;
use crate::workspace::Workspace;

/// How many entries are shown.
const SHOWN: usize = 1000;

/// How many entries are looked at.
const VISITED: usize = 200_000;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The directory, relative to the workspace; the workspace itself if not given.
    path: Option<String>,
    /// A pattern such as `*.md` or `**/*.rs`, relative to `path`. Files in all directories below
    /// are then looked through.
    #[schemars(length(max = 256))]
    glob: Option<String>,
}

pub(crate) fn list_files(workspace: &Workspace) -> Built {
    let definition = ToolDefinition::builder("list_files")
        .description(
            "List a directory of the workspace, or the files below it that match a pattern. \
             Directories end with `/`.",
        )
        .read_only()
        .idempotent();
    file_tool(workspace, definition, run)
}

fn run(
    workspace: &Workspace,
    arguments: &Arguments,
    context: &ToolContext,
) -> Result<String, Refusal> {
    let shown = arguments.path.as_deref().unwrap_or(".");
    let pattern = match arguments.glob.as_deref() {
        Some(glob) => Some(
            Pattern::new(glob)
                .map_err(|error| Refusal::Failed(format!("'{glob}' is no pattern: {error}")))?,
        ),
        None => None,
    };
    let root = workspace.open()?;
    let path = root.resolve(shown)?;
    let failed = |error: io::Error| Refusal::io(shown, &error);
    let mut listing = Listing {
        root,
        directory: path,
        pattern,
        cancel: context.cancel(),
        entries: Vec::new(),
        visited: 0,
    };
    listing.fill().map_err(failed)?;
    Ok(listing.page())
}

struct Listing<'a> {
    root: Root,
    directory: PathBuf,
    pattern: Option<Pattern>,
    cancel: &'a Cancel,
    /// Paths relative to the listed directory.
    entries: Vec<PathBuf>,
    visited: usize,
}

impl Listing<'_> {
    fn fill(&mut self) -> io::Result<()> {
        // Paths, not open directories: there may be more of them than can be open at once.
        let mut waiting = vec![PathBuf::new()];
        while let Some(path) = waiting.pop() {
            let directory = match self.root.directory(&self.directory.join(&path)) {
                Ok(directory) => directory,
                // One below that may not be entered, or is gone again, hides only itself.
                Err(_) if path != Path::new("") => continue,
                Err(error) => return Err(error),
            };
            for entry in Dir::read_from(&directory)? {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                self.visited += 1;
                if self.visited > VISITED || self.cancel.is_cancelled() {
                    return Ok(());
                }
                let kind = kind_of(&directory, name, entry.file_type());
                let below = path.join(name);
                if self.takes(&below, kind) {
                    self.entries.push(match kind {
                        // With a slash behind it.
                        FileType::Directory => below.join(""),
                        _ => below.clone(),
                    });
                }
                // A link is an entry and never a way: it may lead out, or round in a circle.
                if self.pattern.is_some() && kind == FileType::Directory {
                    waiting.push(below);
                }
            }
        }
        Ok(())
    }

    fn takes(&self, path: &Path, kind: FileType) -> bool {
        let options = MatchOptions {
            require_literal_separator: true,
            ..MatchOptions::default()
        };
        match &self.pattern {
            None => true,
            Some(pattern) => {
                kind != FileType::Directory && pattern.matches_path_with(path, options)
            }
        }
    }

    /// The entries as paths of the workspace, sorted, and how many were left out.
    fn page(mut self) -> String {
        let bytes = |path: &PathBuf| path.as_os_str().as_bytes().to_vec();
        self.entries.sort_by_cached_key(bytes);
        let shown = self.entries.iter().take(SHOWN);
        let mut lines: Vec<_> = shown
            .map(|entry| self.directory.join(entry).to_string_lossy().into_owned())
            .collect();
        if self.entries.len() > SHOWN {
            lines.push(format!(
                "[entries left out: {}]",
                self.entries.len() - SHOWN
            ));
        }
        if self.visited > VISITED {
            lines.push(format!(
                "[the search ended after {VISITED} entries: narrow `path`]"
            ));
        }
        lines.join("\n")
    }
}

/// Some file systems do not say with the name what it is.
fn kind_of(directory: &OwnedFd, name: &OsStr, said: FileType) -> FileType {
    match said {
        FileType::Unknown => statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_or(FileType::Unknown, |stat| {
                FileType::from_raw_mode(stat.st_mode)
            }),
        known => known,
    }
}
