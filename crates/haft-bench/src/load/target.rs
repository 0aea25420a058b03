//! The servers that are measured.

use std::net::SocketAddr;
use std::str::FromStr;

use crate::case::{Kind, Loops};

/// Where a server is, and which process it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetArgument {
    pub(crate) address: SocketAddr,
    pub(crate) process: u32,
}

impl FromStr for TargetArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not an address, a comma and a process id");
        let (address, process) = text.split_once(',').ok_or_else(wrong)?;
        let address = address.strip_prefix("http://").unwrap_or(address);
        Ok(Self {
            address: address.parse().map_err(|_| wrong())?,
            process: process.parse().map_err(|_| wrong())?,
        })
    }
}

/// One row of a table: a server and what is asked of it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) server: TargetArgument,
    pub(crate) loops: Loops,
    pub(crate) model: &'static str,
    pub(crate) store: bool,
    role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Bare,
    Proxy,
    Haft,
    Chat,
    Peer,
}

impl Target {
    fn new(name: &str, server: TargetArgument, loops: Loops, role: Role) -> Self {
        Self {
            name: name.to_owned(),
            server,
            loops,
            model: "m",
            store: false,
            role,
        }
    }

    pub(crate) fn bare(server: TargetArgument) -> Self {
        Self::new("bare", server, Loops::Client, Role::Bare)
    }

    pub(crate) fn proxy(server: TargetArgument) -> Self {
        Self::new("proxy", server, Loops::Client, Role::Proxy)
    }

    pub(crate) fn haft(server: TargetArgument) -> Self {
        Self::new("haft", server, Loops::Server, Role::Haft)
    }

    pub(crate) fn peer(server: TargetArgument) -> Self {
        Self::new("peer", server, Loops::Client, Role::Peer)
    }

    /// The same, in another build.
    pub(crate) fn beside(mut self) -> Self {
        self.name.push_str(" beside");
        self
    }

    /// The same, in front of a backend that speaks Chat Completions.
    pub(crate) fn over_chat(mut self) -> Self {
        self.name.push_str(", chat");
        self.model = "m-chat";
        self.role = Role::Chat;
        self
    }

    /// The same, with responses that are stored.
    pub(crate) fn stored(mut self) -> Self {
        self.name.push_str(", stored");
        self.store = true;
        self
    }

    pub(crate) fn is_bare(&self) -> bool {
        self.role == Role::Bare
    }

    pub(crate) fn is_proxy(&self) -> bool {
        self.role == Role::Proxy
    }

    /// Whether it is measured in a case.
    pub(crate) fn takes_part(&self, kind: Kind, connections: usize) -> bool {
        match self.role {
            Role::Bare | Role::Proxy | Role::Haft => true,
            Role::Chat => kind != Kind::Trickled,
            Role::Peer => connections == 8 && kind != Kind::Loop,
        }
    }
}
