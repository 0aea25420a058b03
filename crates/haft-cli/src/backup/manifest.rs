//! What a backup consists of.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{copy_private, failed, is_saved};
use crate::failure::Failure;

/// The name of the manifest in a backup.
pub(super) const NAME: &str = "haft-backup.json";

/// The form of the manifest.
const FORMAT: u32 = 1;

/// No manifest has more bytes.
const MAX_BYTES: u64 = 64 << 20;

/// All files of a backup.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: u32,
    /// The version of the haft that made it.
    pub(super) haft: String,
    /// When, as RFC 3339.
    pub(super) created_at: String,
    /// The version of the database; none if there was no database.
    pub(super) database_version: Option<i64>,
    pub(super) files: Vec<SavedFile>,
}

/// A file of a backup.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedFile {
    /// Below the data folder and below the backup.
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl Manifest {
    pub(super) fn new(database_version: Option<i64>, files: Vec<SavedFile>) -> Self {
        Self {
            format: FORMAT,
            haft: env!("CARGO_PKG_VERSION").to_owned(),
            created_at: jiff::Timestamp::now().to_string(),
            database_version,
            files,
        }
    }

    /// Whether a file of this path is part of the backup.
    pub(super) fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == Path::new(path))
    }

    /// Writes it, which makes the folder a backup.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let path = folder.join(NAME);
        let json = serde_json::to_vec_pretty(self);
        let json =
            json.map_err(|error| Failure::new(format!("cannot write the manifest: {error}")))?;
        let draft = folder.join(format!("{NAME}.new"));
        fs::write(&draft, json).map_err(failed("write", &draft))?;
        let written = copy_private(&draft, &path).map_err(failed("write", &path));
        fs::remove_file(&draft).map_err(failed("remove", &draft))?;
        written.map(drop)
    }

    /// The manifest of a backup, if this haft can restore it.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(NAME);
        let shown = folder.display();
        let metadata = fs::metadata(&path).map_err(|error| {
            Failure::new(format!(
                "`{shown}` is no complete backup: `{NAME}`: {error}"
            ))
            .remedy("name a folder that `haft backup` has made")
        })?;
        let damaged = |reason: String| {
            Failure::new(format!(
                "the manifest `{}` is damaged: {reason}",
                path.display()
            ))
        };
        if metadata.len() > MAX_BYTES {
            return Err(damaged("it is too large".to_owned()));
        }
        let json = fs::read(&path).map_err(failed("read", &path))?;
        let format = serde_json::from_slice::<Format>(&json);
        let Format { format } = format.map_err(|error| damaged(error.to_string()))?;
        if format != FORMAT {
            let message = format!(
                "the backup `{shown}` has format {format}, and this haft knows format {FORMAT}"
            );
            return Err(Failure::mistake(message).remedy("use the newer haft that made it"));
        }
        let manifest: Self =
            serde_json::from_slice(&json).map_err(|error| damaged(error.to_string()))?;
        for file in &manifest.files {
            let mut parts = file.path.components();
            let is_below = parts.all(|part| matches!(part, Component::Normal(_)));
            if !is_below || !is_saved(&file.path) {
                let path = file.path.display();
                return Err(damaged(format!("`{path}` is no file of a data folder")));
            }
        }
        Ok(manifest)
    }
}

/// What every format begins with.
#[derive(Deserialize)]
struct Format {
    format: u32,
}
