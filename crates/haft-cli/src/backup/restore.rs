//! Putting a backup back.

use std::error::Error;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use haft_server::access::KeyFile;
use haft_server::{API_KEYS_IN_USE, API_KEYS_NOTE};
use haft_store::{DatabaseLock, OpenError};

use super::manifest::{Manifest, SavedFile};
use super::{STAGING, copy_private, digest, failed, make_private, sync_folder};
use crate::arguments::RestoreArguments;
use crate::config::{Source, Variables, data_dir};
use crate::failure::Failure;
use crate::serve::STORE;
use crate::serve::prepare::writable_dir;
use crate::text::printable;

/// The file that is in a data folder while its content is being exchanged. A server does not start there.
pub(crate) const INCOMPLETE: &str = ".restore-incomplete";

/// Puts the files of a backup into the data folder. Everything is copied and checked before anything that is
/// there is touched.
pub(crate) fn restore(arguments: &RestoreArguments) -> Result<(), Box<dyn Error>> {
    let source = Source::named_or_usual(arguments.config.as_deref())?;
    let variables = Variables::from_environment(std::env::vars_os())?;
    let folder = data_dir(&source, &variables, arguments.data_dir.clone())?;
    let from = &arguments.from;
    let manifest = Manifest::read(from)?;
    check(from, &manifest)?;
    let is_new = !folder.exists();
    let folder = writable_dir(&folder)?;
    let lock_file = folder.join(format!("{STORE}.lock"));
    let had_lock_file = lock_file.exists();
    // Until the end: no server starts in between.
    let lock = DatabaseLock::acquire(folder.join(STORE)).map_err(in_use)?;
    let restored = replace(from, &folder, &manifest, arguments.force);
    // Once files are being exchanged, what is staged is all there is of some of them.
    if restored.is_err() && !folder.join(INCOMPLETE).exists() {
        let _ = remove(&folder.join(STAGING));
        if !had_lock_file {
            let _ = remove(&lock_file);
        }
        if is_new {
            let _ = fs::remove_dir(&folder);
        }
    }
    drop(lock);
    let uses_api_keys = restored?;
    if uses_api_keys && !manifest.has(KeyFile::NAME) {
        let _ = writeln!(
            io::stderr(),
            "warning: the backup has no `{}`, although its data was used with API keys: no server starts \
             with it; make new keys with `haft keys add`",
            KeyFile::NAME
        );
    }
    writeln!(
        io::stdout(),
        "restored {} files of the backup of {} to `{}`",
        manifest.files.len(),
        manifest.created_at,
        printable(&folder.display().to_string())
    )?;
    Ok(())
}

/// Puts the files of a backup in the place of what the folder holds. Gives whether its data was used with API
/// keys.
fn replace(from: &Path, folder: &Path, manifest: &Manifest, force: bool) -> Result<bool, Failure> {
    let old = content(folder)?;
    let is_unfinished = folder.join(INCOMPLETE).exists();
    if !old.is_empty() && !force && !is_unfinished {
        let message = format!("the data folder `{}` is not empty", folder.display());
        return Err(Failure::mistake(message)
            .remedy("choose an empty one with `--data-dir`, or replace all of it with `--force`"));
    }
    let staged = stage(from, folder, manifest)?;
    let uses_api_keys = uses_api_keys(&folder.join(STAGING).join(STORE));
    exchange(folder, &old, &staged)?;
    give_to_owner(folder, manifest);
    Ok(uses_api_keys)
}

/// Whether clients needed API keys when this database was used last; no, if it cannot be read.
fn uses_api_keys(database: &Path) -> bool {
    let note = haft_store::read_server_note(database, API_KEYS_NOTE);
    note.is_ok_and(|note| note.as_deref() == Some(API_KEYS_IN_USE))
}

fn in_use(error: OpenError) -> Failure {
    match error {
        OpenError::InUse { path } => {
            Failure::new(format!("`{}` is in use by a server", path.display()))
                .remedy("stop it first, or restore to another folder with `--data-dir`")
        }
        error => Failure::new(error.to_string()),
    }
}

/// Whether the files of a backup are those that the manifest names.
fn check(from: &Path, manifest: &Manifest) -> Result<(), Failure> {
    for file in &manifest.files {
        let path = from.join(&file.path);
        let found = digest(&path).map_err(failed("read", &path))?;
        compare(&path, file, &found)?;
    }
    Ok(())
}

fn compare(path: &Path, file: &SavedFile, (bytes, sha256): &(u64, String)) -> Result<(), Failure> {
    if (file.bytes, &file.sha256) == (*bytes, sha256) {
        return Ok(());
    }
    let message = format!(
        "`{}` is not what was backed up: its checksum differs",
        path.display()
    );
    Err(Failure::new(message).remedy("nothing was changed; use another backup"))
}

/// What lies in a data folder, without locks, which other processes may hold, and without the remains of
/// a restore.
fn content(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed("read", folder))? {
        let name = entry.map_err(failed("read", folder))?.file_name();
        let name = PathBuf::from(name);
        let is_lock = name.extension().is_some_and(|it| it == "lock");
        if !is_lock && name != Path::new(STAGING) && name != Path::new(INCOMPLETE) {
            found.push(name);
        }
    }
    Ok(found)
}

/// Copies the files into a folder inside the data folder, and checks the copies. Gives what is to be moved
/// into place.
fn stage(from: &Path, folder: &Path, manifest: &Manifest) -> Result<Vec<PathBuf>, Failure> {
    let staging = folder.join(STAGING);
    remove(&staging)?;
    make_private(&staging).map_err(failed("make", &staging))?;
    for file in &manifest.files {
        let (from, to) = (from.join(&file.path), staging.join(&file.path));
        let copied = copy_private(&from, &to).map_err(failed("copy", &from))?;
        compare(&from, file, &copied)?;
    }
    if let Some(version) = manifest.database_version {
        let database = staging.join(STORE);
        let found = haft_store::check_database(&database);
        let found = found.map_err(|error| match error {
            error @ OpenError::Newer { .. } => Failure::mistake(error.to_string()),
            error => Failure::new(error.to_string()),
        })?;
        if found != version {
            let message =
                format!("the database has version {found}, and the manifest says {version}");
            return Err(Failure::new(message));
        }
    }
    content(&staging)
}

/// Puts what was staged in the place of what was there.
fn exchange(folder: &Path, old: &[PathBuf], staged: &[PathBuf]) -> Result<(), Failure> {
    let mark = folder.join(INCOMPLETE);
    fs::write(&mark, "run `haft restore` again\n").map_err(failed("write", &mark))?;
    sync_folder(folder).map_err(failed("write", folder))?;
    for name in old {
        remove(&folder.join(name))?;
    }
    let staging = folder.join(STAGING);
    for name in staged {
        let to = folder.join(name);
        fs::rename(staging.join(name), &to).map_err(failed("write", &to))?;
    }
    remove(&staging)?;
    sync_folder(folder).map_err(failed("write", folder))?;
    remove(&mark)?;
    sync_folder(folder).map_err(failed("write", folder))
}

fn remove(path: &Path) -> Result<(), Failure> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(failed("remove", path))
}

/// What an administrator restores is the server's, whose folder it is. Only root can give files away; where
/// that fails the server says what it cannot read.
#[cfg(unix)]
fn give_to_owner(folder: &Path, manifest: &Manifest) {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let Ok(owner) = fs::metadata(folder) else {
        return;
    };
    for file in &manifest.files {
        let mut path = folder.join(&file.path);
        while path != folder {
            let is_other = fs::metadata(&path).is_ok_and(|own| own.uid() != owner.uid());
            if is_other {
                let _ = chown(&path, Some(owner.uid()), Some(owner.gid()));
            }
            if !path.pop() {
                break;
            }
        }
    }
}

#[cfg(not(unix))]
fn give_to_owner(_folder: &Path, _manifest: &Manifest) {}
