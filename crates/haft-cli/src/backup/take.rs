//! Making a backup.

use std::error::Error;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use super::manifest::{Manifest, SavedFile};
use super::{copy_private, digest, failed, make_private, saved_files, sync_folder};
use crate::arguments::BackupArguments;
use crate::config::{Source, Variables, data_dir};
use crate::failure::Failure;
use crate::serve::STORE;
use crate::text::printable;

/// Copies the data folder, also while a server uses it.
pub(crate) fn backup(arguments: &BackupArguments) -> Result<(), Box<dyn Error>> {
    let source = Source::named_or_usual(arguments.config.as_deref())?;
    let variables = Variables::from_environment(std::env::vars_os())?;
    let folder = data_dir(&source, &variables, arguments.data_dir.clone())?;
    let folder = folder.canonicalize().map_err(|error| {
        failed("read the data folder", &folder)(error).remedy(
            "name the server's folder with `--data-dir`, or its configuration with `--config`",
        )
    })?;
    if !folder.join(STORE).exists() && !folder.join("keys.json").exists() {
        let message = format!(
            "`{}` is not a data folder: it has no `{STORE}`",
            printable(&folder.display().to_string())
        );
        let remedy =
            "name the server's folder with `--data-dir`, or its configuration with `--config`";
        return Err(Failure::mistake(message).remedy(remedy).into());
    }
    let to = &arguments.to;
    // Before anything is created there.
    let is_inside = std::path::absolute(to).is_ok_and(|to| to.starts_with(&folder));
    if is_inside {
        return Err(inside_data_folder(to).into());
    }
    make_private(to).map_err(failed("make the folder", to))?;
    let to = &to.canonicalize().map_err(failed("use the folder", to))?;
    if to.starts_with(&folder) {
        return Err(inside_data_folder(to).into());
    }
    let mut entries = fs::read_dir(to).map_err(failed("read", to))?;
    if entries.next().is_some() {
        let message = format!("`{}` is not empty", to.display());
        return Err(Failure::mistake(message)
            .remedy("choose a new folder")
            .into());
    }
    let manifest = copy(&folder, to)?;
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    writeln!(
        io::stdout(),
        "backed up {} files ({bytes} bytes) of `{}` to `{}`",
        manifest.files.len(),
        printable(&folder.display().to_string()),
        printable(&to.display().to_string())
    )?;
    Ok(())
}

fn inside_data_folder(to: &Path) -> Failure {
    let message = format!("`{}` is inside the data folder", to.display());
    Failure::mistake(message).remedy("choose a folder elsewhere")
}

/// Copies the database first, so that the keys and tenants it refers to are already in the files copied after it.
fn copy(folder: &Path, to: &Path) -> Result<Manifest, Box<dyn Error>> {
    let mut files = Vec::new();
    let database = folder.join(STORE);
    let mut version = None;
    if database.exists() {
        let copy = to.join(STORE);
        version = Some(haft_store::copy_database(&database, &copy)?);
        let (bytes, sha256) = digest(&copy).map_err(failed("read", &copy))?;
        files.push(SavedFile {
            path: STORE.into(),
            bytes,
            sha256,
        });
    }
    let (found, others) = saved_files(folder).map_err(failed("read", folder))?;
    for path in others {
        let shown = path.display().to_string();
        let _ = writeln!(
            io::stderr(),
            "warning: `{}` is left out: it is no regular file",
            printable(&shown)
        );
    }
    for path in found.into_iter().filter(|path| path != Path::new(STORE)) {
        let from = folder.join(&path);
        match copy_private(&from, &to.join(&path)) {
            Ok((bytes, sha256)) => files.push(SavedFile {
                path,
                bytes,
                sha256,
            }),
            // It was removed in between.
            Err(error) if error.kind() == ErrorKind::NotFound && !from.exists() => {}
            Err(error) => return Err(failed("copy", &from)(error).into()),
        }
    }
    if files.is_empty() {
        let message = format!("there is nothing to back up in `{}`", folder.display());
        return Err(Failure::new(message)
            .remedy(
                "name the server's folder with `--data-dir`, or its configuration with `--config`",
            )
            .into());
    }
    let manifest = Manifest::new(version, files);
    sync_folder(to).map_err(failed("write", to))?;
    manifest.write(to)?;
    sync_folder(to).map_err(failed("write", to))?;
    Ok(manifest)
}
