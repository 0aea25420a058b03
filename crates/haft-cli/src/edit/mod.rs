//! Changes to configuration files that people write by hand: JSON with comments, and TOML.
//!
//! A change replaces only the bytes it must, so that comments, order and formatting of the rest survive. Its result
//! is parsed again and compared with what it should mean before it is given out.

pub(crate) mod jsonc;
pub(crate) mod toml_tables;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Why a file cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditError(pub(crate) String);

impl std::fmt::Display for EditError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EditError {}

/// Who may read a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// As it is; a new file is readable as usual.
    AsItIs,
    /// Only its owner, because it holds secrets.
    OwnerOnly,
}

/// Writes a file completely or not at all: a reader never sees a part of it. Missing folders are made, and a link is
/// followed, so that the file of a linked configuration stays where it is.
pub(crate) fn write_whole(path: &Path, text: &str, access: Access) -> io::Result<()> {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let there = std::fs::metadata(&path).map(|it| it.permissions().mode() & 0o777);
        let mode = match (access, there) {
            (Access::OwnerOnly, _) => 0o600,
            (Access::AsItIs, Ok(mode)) => mode,
            (Access::AsItIs, Err(_)) => 0o644,
        };
        let permissions = std::fs::Permissions::from_mode(mode);
        file.as_file().set_permissions(permissions)?;
    }
    #[cfg(not(unix))]
    let _ = access;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}
