//! `haft backup` and `haft restore`: the whole data folder of a server, copied while it runs and put back.
//!
//! A backup is a folder with the files as they lie in the data folder and a manifest that names each with
//! its length and SHA-256. The manifest is written last: a folder without one is no backup.

mod manifest;
mod restore;
mod take;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::failure::Failure;
use crate::serve::STORE;

pub(crate) use restore::{INCOMPLETE, restore};
pub(crate) use take::backup;

/// The index of searched files, which is built again from them.
const INDEX: &str = "search.db";

/// The folder in the data folder where a restore prepares the files.
const STAGING: &str = ".restore";

/// How many bytes are copied at once.
const CHUNK: usize = 64 * 1024;

/// Whether a file of the data folder is part of a backup. Locks, files that are being written and what
/// `SQLite` keeps beside its databases belong to a moment; the index is built again.
fn is_saved(path: &Path) -> bool {
    let name = path.to_string_lossy();
    let is_of = |database: &str| {
        let rest = name.strip_prefix(database);
        rest.is_some_and(|rest| matches!(rest, "-wal" | "-shm" | "-journal"))
    };
    let extension = path.extension();
    let is_passing = extension.is_some_and(|it| it == "lock" || it == "new")
        || name.starts_with(".writable-")
        || name == INCOMPLETE
        || path.starts_with(STAGING);
    !is_passing && name != INDEX && !is_of(INDEX) && !is_of(STORE)
}

/// The regular files below a folder that are part of a backup, by their relative paths, in order; and
/// what else lies there and is left out because it is no regular file.
fn saved_files(folder: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut files, mut others) = (Vec::new(), Vec::new());
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(folder.join(&below))? {
            let entry = entry?;
            let path = below.join(entry.file_name());
            if !is_saved(&path) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                files.push(path);
            } else {
                others.push(path);
            }
        }
    }
    files.sort();
    Ok((files, others))
}

/// The length and the SHA-256 of a file.
fn digest(path: &Path) -> io::Result<(u64, String)> {
    copy_to(path, &mut io::sink())
}

/// Copies a file into a new one that only its owner may read, to the disk. Gives length and SHA-256.
fn copy_private(from: &Path, to: &Path) -> io::Result<(u64, String)> {
    if let Some(parent) = to.parent() {
        make_private(parent)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(to)?;
    let copied = copy_to(from, &mut file)?;
    file.sync_all()?;
    Ok(copied)
}

fn copy_to(from: &Path, to: &mut dyn io::Write) -> io::Result<(u64, String)> {
    let mut from = File::open(from)?;
    let mut hash = Sha256::new();
    let mut bytes = 0;
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = from.read(&mut chunk)?;
        let Some(read) = chunk.get(..count).filter(|read| !read.is_empty()) else {
            break;
        };
        hash.update(read);
        to.write_all(read)?;
        bytes += count as u64;
    }
    let hash = hash.finalize();
    let hex = hash.iter().map(|byte| format!("{byte:02x}"));
    Ok((bytes, hex.collect()))
}

/// A folder, made for its owner alone where it is missing.
fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Makes the names in a folder last, not only the content of its files.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// A failure to read or write a file or folder.
fn failed(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Failure {
    let text = format!("cannot {what} `{}`", path.display());
    move |error| Failure::new(format!("{text}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_logs_and_the_index_are_no_part_of_a_backup() {
        for path in [
            "haft.db-wal",
            "haft.db-shm",
            "haft.db.lock",
            "search.db",
            "search.db-wal",
            "keys.json.lock",
            "keys.json.new",
            ".writable-17",
            ".restore/haft.db",
        ] {
            assert!(!is_saved(Path::new(path)), "{path}");
        }
        for path in [
            "haft.db",
            "keys.json",
            "sealing-keys",
            "mcp-pins.json",
            "mcp-tokens.json",
            "mcp-servers/files.json",
            "of-a-later-version",
        ] {
            assert!(is_saved(Path::new(path)), "{path}");
        }
    }
}
