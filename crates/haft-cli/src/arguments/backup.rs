//! `haft backup` and `haft restore`.

use std::path::PathBuf;

use clap::Args;

pub(super) const BACKUP_HELP: &str = "\
Examples:
  haft backup /backup/haft-2026-11-18 --config /etc/haft/haft.toml
  haft backup DIR --data-dir /var/lib/haft

The copy holds the content of all tenants and all secrets of the data folder: encrypt it.";

pub(super) const RESTORE_HELP: &str = "\
Examples:
  haft restore /backup/haft-2026-11-18 --data-dir /var/lib/haft
  haft restore DIR --force --config /etc/haft/haft.toml

Every file is checked against the backup's checksums before anything is replaced.";

#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// Where to copy to: a folder that is empty or not there yet
    #[arg(value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// The server's configuration [default: `haft.toml` of this folder, if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The server's data folder [default: `data_dir` of the configuration]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// A folder that `haft backup` has made
    #[arg(value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// Replace everything in a data folder that is not empty
    #[arg(long)]
    pub(crate) force: bool,
    /// The server's configuration [default: `haft.toml` of this folder, if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The server's data folder [default: `data_dir` of the configuration]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}
