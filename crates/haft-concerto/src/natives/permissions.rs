//! What a program may reach (§12): programs may run tool calls that a model chose, so nothing is open
//! that the host did not open.

use std::path::{Component, Path, PathBuf};

/// Names of one kind that are allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Grant {
    /// None.
    #[default]
    Nothing,
    /// These.
    Only(Vec<String>),
    /// All.
    Everything,
}

impl Grant {
    /// Whether a name is allowed.
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Only(names) => names.iter().any(|allowed| allowed == name),
            Self::Everything => true,
        }
    }
}

/// What a program may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Directories, with all that is in them.
    pub fs: Grant,
    /// Hosts.
    pub net: Grant,
    /// Environment variables.
    pub env: Grant,
    /// Whether processes that the source names may be started.
    pub process: bool,
}

impl Permissions {
    /// The path, if a program may touch it. Links are followed first: a link in an allowed directory
    /// does not lead out of it.
    pub(super) fn path(&self, path: &str) -> Result<PathBuf, String> {
        let denied = || format!("permission denied: {path}: allow it with --allow-fs=DIR");
        match &self.fs {
            Grant::Nothing => Err(denied()),
            Grant::Everything => Ok(PathBuf::from(path)),
            Grant::Only(directories) => {
                let real = resolve(Path::new(path)).ok_or_else(denied)?;
                let allowed = directories.iter().any(|directory| {
                    std::fs::canonicalize(directory)
                        .is_ok_and(|directory| real.starts_with(directory))
                });
                if allowed { Ok(real) } else { Err(denied()) }
            }
        }
    }
}

/// The path without links; of one that does not exist yet, that of its directory with its name.
fn resolve(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = std::fs::canonicalize(path) {
        return Some(real);
    }
    // A dangling link would be written through.
    if path.symlink_metadata().is_ok() {
        return None;
    }
    let Component::Normal(name) = path.components().next_back()? else {
        return None;
    };
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = std::fs::canonicalize(parent.unwrap_or(Path::new("."))).ok()?;
    Some(parent.join(name))
}
