//! What a server needs of the machine: a folder to write to and an address to listen on.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};

use crate::backup::INCOMPLETE;
use crate::config::Listen;
use crate::failure::Failure;

/// How long the name of a host may take to be looked up.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// How much the system keeps for a client that does not read; it doubles it. Left to itself it keeps
/// megabytes, which many clients can make the machine spend.
const SEND_BUFFER: u32 = 128 * 1024;

/// How many connections wait to be accepted.
const BACKLOG: u32 = 1024;

/// The data folder of a server, made if it is not there and proven to be writable. One whose content is
/// being exchanged is refused.
pub(crate) fn data_dir(folder: &Path) -> Result<PathBuf, Failure> {
    let is_new = !folder.exists();
    let folder = writable_dir(folder)?;
    if is_new && folder.file_name().is_some_and(|it| it == "haft-data") {
        // It stands in the folder of a project. Without this file the data works as well.
        let _ = std::fs::write(folder.join(".gitignore"), "*\n");
    }
    if folder.join(INCOMPLETE).exists() {
        let message = format!(
            "the restore of the data folder `{}` is incomplete",
            folder.display()
        );
        return Err(Failure::mistake(message).remedy("run `haft restore` again"));
    }
    Ok(folder)
}

/// A folder that is made if it is not there and proven to be writable. What is in it is private: a new one
/// is for its owner alone.
pub(crate) fn writable_dir(folder: &Path) -> Result<PathBuf, Failure> {
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
    let bound = tokio::time::timeout(LOOKUP_TIMEOUT, bind(listen)).await;
    bound
        .unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
        .map_err(|error| cannot_listen(listen, &error))
}

async fn bind(listen: &Listen) -> io::Result<TcpListener> {
    let mut refused = io::Error::from(ErrorKind::AddrNotAvailable);
    for address in tokio::net::lookup_host((listen.host(), listen.port())).await? {
        match bind_to(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn bind_to(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // A server that was just stopped does not hold the address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    // The connections have it, too.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
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
    Err(Failure::mistake(message).remedy(format!(
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

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_client_who_does_not_read_is_kept_little_for() {
        let listen: Listen = "127.0.0.1:0".parse().unwrap();
        let listener = listener(&listen).await.unwrap();
        let address = listener.local_addr().unwrap();
        let _client = tokio::net::TcpStream::connect(address).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let socket = TcpSocket::from_std_stream(accepted.into_std().unwrap());
        assert!(socket.send_buffer_size().unwrap() <= 2 * SEND_BUFFER);
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
