//! Where a server is, and the key for it.

use std::path::Path;

use haft::models::Lookup;
use haft::models::http::{EndpointError, Secret};

use crate::arguments::{RemoteArguments, SERVER};
use crate::config::{Complaint, Door, Listen, Source, Variables, door, read_key};
use crate::failure::Failure;

/// The variable that holds the key.
const KEY: &str = "HAFT_API_KEY";

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// With `/v1`.
    pub(super) base: String,
    pub(super) origin: Origin,
    /// Whether there is a key for it.
    pub(super) has_key: bool,
}

/// Who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The command line or a variable.
    Named,
    /// The configuration of a server.
    Configuration,
}

/// Why nobody can be asked with this address and this key.
pub(super) fn refused(error: &EndpointError) -> Failure {
    let remedy = match error {
        EndpointError::Address { .. } => "write it as `http://HOST:PORT` or `https://HOST`",
        _ => "a key is one line of visible characters without spaces",
    };
    Failure::new(format!("the server cannot be asked: {error}")).remedy(remedy)
}

/// The server that is meant, and the key for it, if there is one.
pub(super) fn find(
    arguments: &RemoteArguments,
    lookup: Lookup<'_>,
) -> Result<(Address, Option<Secret>), Box<dyn std::error::Error>> {
    let said = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
    let own_key = match &arguments.key_file {
        Some(file) => Some(key_of(file)?),
        None => said(KEY).map(|key| Secret::new(key.trim())),
    };
    let named = arguments.server.clone().or_else(|| said(SERVER));
    let (base, origin, key) = if let Some(named) = named {
        (base_of(&named), Origin::Named, own_key)
    } else {
        let door = own_door(arguments)?;
        // The key of a configuration is for the server of that configuration only.
        let of_configuration = || door.key.as_ref().and_then(|source| source.read(lookup));
        let key = own_key.or_else(of_configuration);
        (of_listener(&door.listen)?, Origin::Configuration, key)
    };
    let has_key = key.is_some();
    let address = Address {
        base,
        origin,
        has_key,
    };
    Ok((address, key))
}

fn key_of(file: &Path) -> Result<Secret, Failure> {
    read_key(file).map_err(|reason| {
        let shown = file.display();
        Failure::new(format!("the key cannot be read from `{shown}`: {reason}"))
            .remedy("name a file that holds the key and nothing else")
    })
}

fn own_door(arguments: &RemoteArguments) -> Result<Door, Complaint> {
    let source = Source::named_or_usual(arguments.config.as_deref())?;
    let variables = Variables::from_environment(std::env::vars_os())?;
    door(&source, &variables)
}

/// The API's address for whoever listens here.
fn of_listener(listen: &Listen) -> Result<String, Failure> {
    if listen.port() == 0 {
        return Err(Failure::new(
            "the configuration takes any free port, so the server may be anywhere",
        )
        .remedy("name it with `--server URL`, as the first line of `haft serve` says"));
    }
    // Nobody can be asked at an address that stands for all.
    let host = match listen.host() {
        "0.0.0.0" => String::from("127.0.0.1"),
        "::" => String::from("[::1]"),
        host if host.contains(':') => format!("[{host}]"),
        host => host.to_owned(),
    };
    Ok(base_of(&format!("http://{host}:{}", listen.port())))
}

/// The API's address as a person may write it: with or without scheme and `/v1`.
fn base_of(said: &str) -> String {
    let said = said.trim().trim_end_matches('/');
    let said = match said.split_once("://") {
        Some(_) => said.to_owned(),
        None => format!("http://{said}"),
    };
    let rest = said.split_once("://").map_or("", |(_, rest)| rest);
    if rest.contains(['/', '?', '#']) || rest.is_empty() {
        said
    } else {
        format!("{said}/v1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_short() {
        for (said, base) in [
            ("127.0.0.1:4141", "http://127.0.0.1:4141/v1"),
            ("http://box", "http://box/v1"),
            ("https://box:1/", "https://box:1/v1"),
            ("http://box/v1", "http://box/v1"),
            ("https://box/haft/v1/", "https://box/haft/v1"),
        ] {
            assert_eq!(base_of(said), base);
        }
    }

    #[test]
    fn an_address_to_listen_on_becomes_one_to_ask() {
        for (listen, base) in [
            ("127.0.0.1:4141", "http://127.0.0.1:4141/v1"),
            ("0.0.0.0:80", "http://127.0.0.1:80/v1"),
            ("[::]:80", "http://[::1]:80/v1"),
            ("[::1]:80", "http://[::1]:80/v1"),
            ("box:80", "http://box:80/v1"),
        ] {
            assert_eq!(of_listener(&listen.parse().unwrap()), Ok(base.to_owned()));
        }
        let failure = of_listener(&"127.0.0.1:0".parse().unwrap()).unwrap_err();
        assert!(failure.to_string().contains("--server URL"), "{failure}");
    }

    fn found(server: Option<&str>, variables: &[(&str, &str)]) -> (Address, Option<String>) {
        let arguments = RemoteArguments {
            server: server.map(str::to_owned),
            ..RemoteArguments::default()
        };
        let lookup = |name: &str| {
            let mut variables = variables.iter();
            let found = variables.find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let (address, key) = find(&arguments, &lookup).unwrap();
        (address, key.map(|key| key.expose().to_owned()))
    }

    #[test]
    fn the_command_line_wins_over_the_environment() {
        let variables = [(SERVER, "box:1"), (KEY, " hunter2\n")];
        let (address, key) = found(None, &variables);
        assert_eq!(address.base, "http://box:1/v1");
        assert_eq!(key.as_deref(), Some("hunter2"));
        let (address, _) = found(Some("box:2"), &variables);
        assert_eq!(address.base, "http://box:2/v1");
        assert_eq!(address.origin, Origin::Named);
        let (address, key) = found(Some("box:2"), &[(KEY, "")]);
        assert_eq!((address.has_key, key), (false, None));
    }
}
