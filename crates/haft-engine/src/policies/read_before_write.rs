//! Files that must be read before they are written.

use std::collections::BTreeSet;
use std::sync::Arc;

use haft_core::{
    Access, FileSystem, Policy, PolicyCall, SessionState, Slice, StateError, ToolDefinition,
    ToolOutput, Transaction, Verdict,
};
use serde::{Deserialize, Serialize};

use super::remember;

/// An existing file is written only if it was read or written before in this conversation.
///
/// New files may be written. Without a file system to look at, everything may.
///
/// ```
/// use haft_core::FileSystem;
/// use haft_engine::ReadBeforeWrite;
///
/// struct Everything;
/// impl FileSystem for Everything {
///     fn exists(&self, _: &str) -> bool {
///         true
///     }
/// }
/// let policy = ReadBeforeWrite::new().files(Everything).mount("/workspace");
/// ```
#[derive(Clone)]
pub struct ReadBeforeWrite {
    readers: BTreeSet<String>,
    writers: BTreeSet<String>,
    mount: String,
    files: Option<Arc<dyn FileSystem>>,
}

/// The files that were read or written so far: this policy's memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FilesSeen(BTreeSet<String>);

impl Slice for FilesSeen {
    const NAME: &'static str = "policy.read_before_write";
    const GROWS: bool = true;
}

impl Default for ReadBeforeWrite {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            readers: names(&["read_file"]),
            writers: names(&["write_file", "edit_file"]),
            mount: String::new(),
            files: None,
        }
    }
}

impl ReadBeforeWrite {
    /// The policy for `read_file`, `write_file` and `edit_file`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where to see which files exist.
    #[must_use]
    pub fn files(mut self, files: impl FileSystem) -> Self {
        self.files = Some(Arc::new(files));
        self
    }

    /// What stands in front of paths when the model writes them in full, for example `/workspace`.
    #[must_use]
    pub fn mount(mut self, prefix: impl Into<String>) -> Self {
        self.mount = prefix.into();
        self
    }

    /// Other tools that read, instead of `read_file`.
    #[must_use]
    pub fn readers<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.readers = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Other tools that write, instead of `write_file` and `edit_file`.
    #[must_use]
    pub fn writers<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.writers = tools.into_iter().map(Into::into).collect();
        self
    }

    /// The file that a call is about.
    fn path(&self, call: &PolicyCall<'_>) -> Option<String> {
        let path = call
            .text_argument("path")
            .or_else(|| call.text_argument("file_path"))?;
        Some(normalised(path, &self.mount))
    }
}

impl Policy for ReadBeforeWrite {
    fn name(&self) -> &'static str {
        "read_before_write"
    }

    fn check(&self, call: &PolicyCall<'_>, state: &SessionState) -> Verdict {
        let allowed = Verdict::Allow(Access::Full);
        if !self.writers.contains(call.tool_name()) {
            return allowed;
        }
        let (Some(files), Some(path)) = (&self.files, self.path(call)) else {
            return allowed;
        };
        // A memory that is not there has seen no file.
        let seen = state.get::<FilesSeen>().unwrap_or_default();
        if seen.0.contains(&path) || !files.exists(&path) {
            return allowed;
        }
        Verdict::Deny(format!("Read '{path}' before writing to it."))
    }

    fn on_result(&self, call: &PolicyCall<'_>, _: &ToolOutput, transaction: &Transaction) {
        if !self.has_memory(call.definition) {
            return;
        }
        if let Some(path) = self.path(call) {
            remember::<FilesSeen>(self.name(), transaction, move |seen| {
                seen.0.insert(path.clone());
            });
        }
    }

    fn has_memory(&self, definition: &ToolDefinition) -> bool {
        let tool = definition.name().as_str();
        self.readers.contains(tool) || self.writers.contains(tool)
    }

    fn register(&self, state: &SessionState) -> Result<(), StateError> {
        state.register::<FilesSeen>()
    }
}

/// One spelling per file: without `.`, doubled slashes, the leading `/` and the mount's prefix, and
/// with `..` resolved. What leads out of the root keeps its `..` in front.
pub(crate) fn normalised(path: &str, mount: &str) -> String {
    let absolute = path.starts_with('/');
    let parts = resolved(path, absolute);
    // `workspace/a` is a file in the root; only `/workspace/a` lies below the mount `/workspace`.
    let mounted = absolute || !mount.starts_with('/');
    let prefix = resolved(mount, true);
    let parts = match parts.strip_prefix(prefix.as_slice()) {
        Some(below) if mounted => below,
        _ => &parts,
    };
    parts.join("/")
}

fn resolved(path: &str, absolute: bool) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            // Above the root of everything is the root.
            ".." if absolute => {}
            part => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::normalised;

    #[test]
    fn every_spelling_of_a_path_is_one() {
        for path in [
            "src/a.rs",
            "./src/a.rs",
            "/src/a.rs",
            "src//a.rs",
            "src/./a.rs",
            "src/x/../a.rs",
            "/../src/a.rs",
            "/workspace/src/a.rs",
            "/workspace/./x/../src/a.rs",
        ] {
            assert_eq!(normalised(path, "/workspace"), "src/a.rs", "{path}");
        }
        for (path, kept) in [
            ("../src/a.rs", "../src/a.rs"),
            ("x/../../a", "../a"),
            ("workspace/a", "workspace/a"),
            ("/workspaces/a", "workspaces/a"),
            ("/workspace/../a", "a"),
            ("", ""),
        ] {
            assert_eq!(normalised(path, "/workspace"), kept, "{path}");
        }
        assert_eq!(normalised("repo/a", "repo/"), "a");
        assert_eq!(normalised("/repo/a", "repo/"), "a");
    }
}
