//! Names for the model: unique, legal, and the same for the same request.

use std::collections::HashSet;

use haft_core::ToolName;

use crate::wire::{RequestTool, RequestToolKind};

/// What a tool of the client is called for the model, unless that name is taken.
pub(crate) fn backend_name(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        None => ToolName::import(name),
        Some(namespace) => ToolName::import(&format!("{namespace}__{name}")),
    }
    .as_str()
    .to_owned()
}

/// The names that are taken.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Plain names of the request's own functions: nobody else gets them.
    reserved: HashSet<String>,
    used: HashSet<String>,
}

impl Names {
    pub(super) fn of_request(tools: &[RequestTool]) -> Self {
        let plain = tools.iter().filter_map(|tool| match &tool.kind {
            RequestToolKind::Function(function) => Some(function.name.clone()),
            RequestToolKind::Custom(custom) => Some(custom.name.clone()),
            _ => None,
        });
        Self {
            reserved: plain.collect(),
            used: HashSet::new(),
        }
    }

    /// A name for a tool of the client. One that was `loaded` replaces an earlier one of its name.
    pub(super) fn take(&mut self, namespace: Option<&str>, name: &str, is_loaded: bool) -> String {
        let plain = backend_name(namespace, name);
        if namespace.is_none() || is_loaded {
            self.used.insert(plain.clone());
            return plain;
        }
        let identity = format!("{}\u{0}{name}", namespace.unwrap_or_default());
        self.unless_taken(plain, &identity)
    }

    /// A name for a tool that runs here.
    pub(super) fn take_hosted(&mut self, name: &str) -> String {
        self.unless_taken(name.to_owned(), &format!("haft\u{0}{name}"))
    }

    fn unless_taken(&mut self, plain: String, identity: &str) -> String {
        let is_taken = self.reserved.contains(&plain) || self.used.contains(&plain);
        let name = if is_taken {
            ToolName::import(identity).as_str().to_owned()
        } else {
            plain
        };
        self.used.insert(name.clone());
        name
    }
}
