//! What a program may reach (§12): programs may run tool calls that a model chose, so nothing is open
//! that the host did not open.

use std::path::{Component, Path, PathBuf};

/// How messages begin that tell it.
pub(super) const DENIED: &str = "permission denied: ";

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

/// Where whoever runs the program allows more, for messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrantedBy {
    /// Flags of the command line: `--allow-net=HOST`.
    #[default]
    Flags,
    /// The table `[concerto]` of a configuration file: `allow_net = ["HOST"]`.
    Configuration,
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
    /// Where more is allowed.
    pub granted_by: GrantedBy,
}

impl Permissions {
    /// How to allow a host. Names of hosts have no case.
    pub(crate) fn may_ask(&self, host: &str) -> Result<(), String> {
        let is_allowed = match &self.net {
            Grant::Only(hosts) => hosts.iter().any(|it| it.eq_ignore_ascii_case(host)),
            grant => grant.allows(host),
        };
        if is_allowed {
            return Ok(());
        }
        Err(self.denied(host, "net", Some(host)))
    }

    /// Whether a variable of the environment may be read, or how to allow it.
    pub(crate) fn may_read_variable(&self, name: &str) -> Result<(), String> {
        if self.env.allows(name) {
            return Ok(());
        }
        Err(self.denied(&format!("environment variable {name}"), "env", Some(name)))
    }

    /// Whether a process may be started that the source names, or how to allow it.
    #[cfg_attr(not(feature = "host"), allow(dead_code, reason = "for the host"))]
    pub(crate) fn may_start(&self) -> Result<(), String> {
        if self.process {
            return Ok(());
        }
        Err(self.denied("the program starts a process", "process", None))
    }

    /// That something is not allowed, and how it would be.
    pub(crate) fn denied(&self, what: &str, kind: &str, name: Option<&str>) -> String {
        let remedy = match (self.granted_by, name) {
            (GrantedBy::Flags, Some(name)) => format!("--allow-{kind}={name}"),
            (GrantedBy::Flags, None) => format!("--allow-{kind}"),
            (GrantedBy::Configuration, Some(name)) => {
                format!("`allow_{kind} = [\"{name}\"]` in `[concerto]`")
            }
            (GrantedBy::Configuration, None) => format!("`allow_{kind} = true` in `[concerto]`"),
        };
        format!("{DENIED}{what}: allow it with {remedy}")
    }

    /// The path, if a program may touch it. Links are followed first: a link in an allowed directory
    /// does not lead out of it.
    pub(super) fn path(&self, path: &str) -> Result<PathBuf, String> {
        let denied = || match &self.fs {
            Grant::Only(directories) => {
                let allowed = directories.join(", ");
                self.denied(&format!("{path} is not in {allowed}"), "fs", Some("DIR"))
            }
            _ => self.denied(path, "fs", Some("DIR")),
        };
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
