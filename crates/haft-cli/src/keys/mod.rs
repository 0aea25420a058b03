//! `haft keys`: who may use a server.
//!
//! What comes in: the command line, and where the server keeps its data. What goes out: a changed file
//! of keys, which a running server takes over by itself, and words for whoever is in a hurry. A key is
//! printed once, when it is made, alone on standard output, so that it can be piped; it is kept nowhere.

mod list;

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Duration;

use haft_server::access::{KeyFile, KeyLimits, KeyState, KeysError, NewKey};

use crate::arguments::{KeysArguments, KeysCommand};
use crate::config::{Age, Source, Variables, data_dir};
use crate::failure::Failure;
use crate::serve;
use crate::text::printable;

/// Does what the command line says.
pub(crate) fn keys(arguments: KeysArguments) -> Result<(), Box<dyn Error>> {
    let source = Source::named_or_usual(arguments.config.as_deref())?;
    let variables = Variables::from_environment(std::env::vars_os())?;
    let folder = data_dir(&source, &variables, arguments.data_dir)?;
    match arguments.what {
        KeysCommand::Add {
            name,
            tenant,
            roles,
            requests_per_minute,
            concurrent,
            expires,
        } => {
            let new = NewKey {
                name,
                tenant,
                roles,
                lifetime: expires.map(|Age(lifetime)| lifetime),
                limits: KeyLimits {
                    requests_per_minute,
                    concurrent,
                },
            };
            // The server may not have run yet.
            let folder = serve::prepare::data_dir(&folder)?;
            add(&KeyFile::in_folder(&folder), new)
        }
        KeysCommand::List { json } => list::list(&KeyFile::in_folder(&folder), json),
        KeysCommand::Revoke { which } => revoke(&KeyFile::in_folder(&folder), &which),
    }
}

fn add(file: &KeyFile, new: NewKey) -> Result<(), Box<dyn Error>> {
    if new.lifetime.is_some_and(|it| it < Duration::from_secs(1)) {
        let message = "`--expires` leaves the key no time: write a time such as `30d`";
        return Err(Failure::mistake(message).into());
    }
    let is_first = file.read()?.is_none();
    let (key, secret) = file.add(new).map_err(|error| match error {
        KeysError::Name | KeysError::Tenant | KeysError::Role { .. } => {
            Failure::mistake(error.to_string()).into()
        }
        error => Box::<dyn Error>::from(error),
    })?;
    let mut words = format!(
        "made `{}` ({}) for the tenant `{}`",
        printable(&key.name),
        key.id,
        key.tenant
    );
    if !key.roles.is_empty() {
        words = format!("{words} with the roles {}", key.roles.join(", "));
    }
    if let Some(end) = key.expires_at {
        words = format!("{words}, until {}", list::moment(end));
    }
    words
        .push_str("\nthe key is shown this once; clients send it as `Authorization: Bearer KEY`\n");
    if is_first {
        let folder = file.path().parent().unwrap_or(file.path()).display();
        let _ = writeln!(
            words,
            "it is the first key in `{}`: every request to the server with this data folder needs a key, within a \
             second if it is running",
            printable(&folder.to_string())
        );
    }
    // If nobody reads the words, the key is all the more important.
    let _ = io::stderr().write_all(words.as_bytes());
    let mut out = io::stdout();
    writeln!(out, "{}", secret.expose())?;
    out.flush()?;
    Ok(())
}

/// The server may keep its data elsewhere.
fn none_in(file: &KeyFile) -> Failure {
    let folder = file.path().parent().unwrap_or(file.path()).display();
    let message = format!("there are no keys in `{folder}`");
    Failure::new(message).remedy(
        "name the folder where the server has its data with `--data-dir DIR`, or its configuration \
         with `--config FILE`; `haft keys add NAME` makes a key",
    )
}

fn revoke(file: &KeyFile, which: &str) -> Result<(), Box<dyn Error>> {
    let is_revoked = |key: &haft_server::access::Key| key.state(0) == KeyState::Revoked;
    let before = file.read()?.unwrap_or_default();
    if before.is_empty() {
        return Err(none_in(file).into());
    }
    let key = file.revoke(which)?;
    let was_revoked = before.iter().any(|it| it.id == key.id && is_revoked(it));
    let name = printable(&key.name);
    let mut out = io::stdout();
    if was_revoked {
        let when = list::moment(key.revoked_at.unwrap_or_default());
        writeln!(out, "`{name}` ({}) was revoked before, on {when}", key.id)?;
    } else {
        writeln!(
            out,
            "revoked `{name}` ({}) of the tenant `{}`: new requests with it are refused, open streams end",
            key.id, key.tenant
        )?;
    }
    Ok(())
}
