//! A directory in which tools work.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::{FileSystem, Resource, ResourceError, ToolContext, ToolSource, TransactionId};
use serde_json::Value;

use crate::history::History;
use crate::place::Root;
use crate::refusal::Refusal;
use crate::tools;

/// What a command sees of this process's environment unless more is allowed. No secrets by habit.
const ENVIRONMENT: [&str; 11] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ",
    "TMPDIR",
];

/// A directory, and what may be done there. Clones share it.
///
/// ```
/// use haft_builtin::Workspace;
/// let workspace = Workspace::new("project").allow_shell().allow_env("CARGO_HOME");
/// assert_eq!(workspace.tools().len(), 5);
/// ```
#[derive(Clone)]
pub struct Workspace {
    root: PathBuf,
    name: String,
    shell: bool,
    environment: BTreeSet<String>,
    /// One change at a time: reading, changing and writing a file is one step.
    history: Arc<Mutex<History>>,
}

impl Workspace {
    /// The workspace in this directory. It need not exist before a tool is called.
    pub fn new(root: impl AsRef<Path>) -> Self {
        let root = root.as_ref();
        Self {
            // A later change of this process's directory does not move the workspace.
            root: std::path::absolute(root).unwrap_or_else(|_| root.to_owned()),
            name: "workspace".to_owned(),
            shell: false,
            environment: ENVIRONMENT.iter().map(|name| (*name).to_owned()).collect(),
            history: Arc::default(),
        }
    }

    /// What it is called in snapshots and errors, where a session has more than one.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Offers `bash` too. Each command still needs approval unless the run says otherwise.
    #[must_use]
    pub fn allow_shell(mut self) -> Self {
        self.shell = true;
        self
    }

    /// Lets commands see one more variable of this process's environment.
    #[must_use]
    pub fn allow_env(mut self, name: impl Into<String>) -> Self {
        self.environment.insert(name.into());
        self
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The tools, in a fixed order: `list_files`, `read_file`, `write_file`, `edit_file`, and
    /// `bash` where it is allowed.
    pub fn tools(&self) -> Vec<ToolSource> {
        let mut tools = vec![
            tools::list_files(self),
            tools::read_file(self),
            tools::write_file(self),
            tools::edit_file(self),
        ];
        if self.shell {
            tools.push(tools::bash(self));
        }
        tools.into_iter().map(ToolSource::from).collect()
    }

    pub(crate) fn open(&self) -> Result<Root, Refusal> {
        Root::open(&self.root).map_err(|error| {
            // Where the directory lies is none of the model's business.
            let root = self.root.display();
            tracing::error!(%root, %error, "the workspace cannot be opened");
            Refusal::Failed("the workspace cannot be opened".to_owned())
        })
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        // What a panic left in it is still true: a change is noted when it has happened.
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call under which changes are kept, if this workspace will hear how it ends.
    ///
    /// Asked while the history is held: a call that was given up meanwhile, and perhaps rolled back
    /// already, must not change anything any more.
    pub(crate) fn journalled(
        &self,
        context: &ToolContext,
    ) -> Result<Option<TransactionId>, Refusal> {
        match context.transaction() {
            Some(transaction) if !transaction.is_open() => {
                Err(Refusal::Failed("the call is over".to_owned()))
            }
            Some(transaction) if transaction.has_resource(&self.name) => Ok(Some(transaction.id())),
            _ => Ok(None),
        }
    }

    pub(crate) fn environment(&self) -> impl Iterator<Item = (&str, std::ffi::OsString)> {
        let names = self.environment.iter().map(String::as_str);
        names.filter_map(|name| Some((name, std::env::var_os(name)?)))
    }
}

impl FileSystem for Workspace {
    fn exists(&self, path: &str) -> bool {
        let Ok(root) = self.open() else {
            return false;
        };
        let resolved = root.resolve(path);
        resolved.is_ok_and(|path| root.real().join(path).is_file())
    }
}

impl Resource for Workspace {
    fn name(&self) -> &str {
        &self.name
    }

    /// A moment in this process's memory of its own changes, not a copy of all files.
    fn capture(&self) -> Result<Value, ResourceError> {
        Ok(self.history().capture())
    }

    fn restore(&self, captured: &Value) -> Result<(), ResourceError> {
        let root = self.opened()?;
        self.history().restore(&root, captured)
    }

    fn commit(&self, transaction: TransactionId) {
        self.history().commit(transaction);
    }

    fn rollback(&self, transaction: TransactionId) -> Result<(), ResourceError> {
        if !self.history().has_changes(transaction) {
            return Ok(());
        }
        let root = self.opened()?;
        self.history().roll_back(&root, transaction)
    }
}

impl Workspace {
    fn opened(&self) -> Result<Root, ResourceError> {
        let root = self.root.display();
        Root::open(&self.root).map_err(|error| ResourceError::new(format!("`{root}`: {error}")))
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace")
            .field("root", &self.root)
            .field("name", &self.name)
            .field("shell", &self.shell)
            .finish_non_exhaustive()
    }
}
