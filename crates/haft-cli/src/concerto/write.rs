//! Files that are there whole, or as they were before.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

use super::project::shown;
use crate::failure::Failure;

/// Puts these bytes in the place of a file. Whoever reads it meanwhile sees the old one or the new one;
/// who may read and write it stays as it was.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|it| !it.is_dir()) {
        let text = format!("cannot write `{}`: ", shown(path));
        let text = format!("{text}there is no folder `{}`", shown(folder));
        return Err(Failure::mistake(text));
    }
    replaced(path, bytes)
        .map_err(|error| Failure::new(format!("cannot write `{}`: {error}", shown(path))))
}

fn replaced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link stays one: what it leads to is written.
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let about = real.metadata();
    if about.as_ref().is_ok_and(|it| !it.is_file()) {
        // A device or a pipe is written to as it is.
        return fs::write(&real, bytes);
    }
    if about.as_ref().is_ok_and(|it| it.permissions().readonly()) {
        return Err(io::Error::other("it is read-only"));
    }
    if about.as_ref().is_ok_and(has_other_names) {
        // They would go on naming the old file.
        return fs::write(&real, bytes);
    }
    let folder = real.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".haft-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // The system takes from it what the user's mask says, as of every new file.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file: NamedTempFile = builder.tempfile_in(folder)?;
    if let Ok(about) = about {
        file.as_file().set_permissions(about.permissions())?;
    }
    file.write_all(bytes)?;
    file.as_file().sync_data()?;
    file.persist(&real)?;
    Ok(())
}

/// Whether a file has more names than one.
#[cfg(unix)]
fn has_other_names(about: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    about.nlink() > 1
}

#[cfg(not(unix))]
fn has_other_names(_: &fs::Metadata) -> bool {
    false
}
