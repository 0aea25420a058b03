//! What a server needs of the machine: a folder to write to and an address to listen on.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::TcpListener;

use crate::config::Listen;
use crate::failure::Failure;

/// How long the name of a host may take to be looked up.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// The folder for data, made if it is not there and proven to be writable. What is in it is private:
/// a new one is for its owner alone.
pub(crate) fn data_dir(folder: &Path) -> Result<PathBuf, Failure> {
    let refused = |error: &io::Error| {
        let shown = folder.display();
        let failure = Failure::new(format!(
            "cannot write to the data folder `{shown}`: {error}"
        ));
        failure.remedy(match error.kind() {
            ErrorKind::PermissionDenied => {
                "give this user the right to write there, or choose another folder with \
                 `--data-dir` or `data_dir` in `[server]`"
            }
            ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
                "a file is in the way: remove it, or choose another folder with `--data-dir`"
            }
            _ => "choose another folder with `--data-dir` or `data_dir` in `[server]`",
        })
    };
    make_private(folder).map_err(|error| refused(&error))?;
    let folder = folder.canonicalize().map_err(|error| refused(&error))?;
    let probe = folder.join(format!(".writable-{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let written = match options.open(&probe) {
        // Left behind by a process of the same number that was killed in between.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        written => written.map(drop),
    };
    written.map_err(|error| refused(&error))?;
    std::fs::remove_file(&probe).map_err(|error| refused(&error))?;
    Ok(folder)
}

fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A listener at this address.
pub(super) async fn listener(listen: &Listen) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind((listen.host(), listen.port()));
    let bound = tokio::time::timeout(LOOKUP_TIMEOUT, bound).await;
    bound
        .unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
        .map_err(|error| cannot_listen(listen, &error))
}

/// Refuses an address that others can reach. Without a key, everybody could use it.
pub(super) fn only_this_machine(address: &SocketAddr, data_dir: &Path) -> Result<(), Failure> {
    if address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    let (port, data_dir) = (address.port(), data_dir.display());
    let message = format!(
        "others can reach `{address}`, and there is no key: everybody could use this server"
    );
    Err(Failure::new(message).remedy(format!(
        "make a key with `haft keys add NAME --data-dir {data_dir}`, or listen on this machine alone \
         with `--listen 127.0.0.1:{port}`, or let everybody in with `--allow-anonymous`"
    )))
}

fn cannot_listen(listen: &Listen, error: &io::Error) -> Failure {
    let because = |why: &str| Failure::new(format!("cannot listen on `{listen}`: {why}"));
    let host = listen.host();
    match error.kind() {
        ErrorKind::AddrInUse => because("something listens there already").remedy(format!(
            "stop it, perhaps another `haft serve`, or take a free port: `haft serve --listen \
             {host}:0`"
        )),
        ErrorKind::PermissionDenied => because("this user may not").remedy(format!(
            "choose a port above 1023, such as `haft serve --listen {host}:4141`"
        )),
        ErrorKind::AddrNotAvailable => because("this machine has no such address").remedy(
            "listen on `127.0.0.1` for this machine alone, or on `0.0.0.0` for all its addresses",
        ),
        ErrorKind::TimedOut => {
            because("looking up the host takes too long").remedy("write its IP address instead")
        }
        _ => because(&error.to_string())
            .remedy("choose another address with `--listen` or `listen` in `[server]`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_folder_is_made_for_its_owner_alone() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a/b");
        let made = data_dir(&folder).unwrap();
        assert_eq!(made, folder.canonicalize().unwrap());
        assert_eq!(std::fs::read_dir(&made).unwrap().count(), 0);
        assert_eq!(data_dir(&folder), Ok(made.clone()), "it may be there");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let rights = std::fs::metadata(&made).unwrap().permissions();
            assert_eq!(rights.mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("data");
        std::fs::write(&file, "").unwrap();
        for folder in [file.clone(), file.join("deeper")] {
            let failure = data_dir(&folder).unwrap_err().to_string();
            assert!(failure.contains("a file is in the way"), "{failure}");
        }
    }

    #[tokio::test]
    async fn an_address_of_elsewhere_is_told() {
        // From the block that is kept for documents.
        let listen = "192.0.2.1:0".parse().unwrap();
        let failure = listener(&listen).await.unwrap_err().to_string();
        assert!(failure.contains("no such address"), "{failure}");
    }
}
