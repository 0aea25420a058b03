//! The native tools and their wire names.
//!
//! Names are a pure function of the set of registered tools, never of the order in which they came:
//!
//! 1. a tool in no namespace bears its own name, always;
//! 2. a tool in a namespace bears `namespace__name` or, where that is illegal, too long or the name
//!    of a tool in no namespace, its hashed form.
//!
//! So registering or removing `files__read` (in no namespace) moves `read` in `files` to or from its
//! hashed name; no other registration changes a name that is already given. What still ends on one
//! name is a duplicate, and the later registration is refused.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use haft_core::{Namespace, ToolName, Validator};

use crate::lifecycle::Internal;
use crate::offered::Offered;
use crate::origin::Origin;

/// Catalogue order is the order of keys: no namespace first, then by namespace and name, by bytes.
type Key = (Option<Namespace>, ToolName);

#[derive(Debug, Default)]
pub(crate) struct Natives {
    tools: BTreeMap<Key, Native>,
    by_wire_name: HashMap<ToolName, Key>,
}

#[derive(Debug)]
pub(crate) struct Native {
    /// Under its plain name; see [`Native::offered`].
    tool: Arc<Offered>,
    pub(crate) origin: Origin,
    /// The life of a tool that has to be started.
    pub(crate) internal: Option<Internal>,
    /// Whether a tool in no namespace bears the plain name.
    displaced: bool,
}

impl Native {
    pub(crate) fn new(tool: Arc<Offered>, origin: Origin) -> Self {
        Self {
            tool,
            origin,
            internal: None,
            displaced: false,
        }
    }

    pub(crate) fn hosted(tool: Arc<Offered>, origin: Origin, internal: Internal) -> Self {
        Self {
            internal: Some(internal),
            ..Self::new(tool, origin)
        }
    }

    /// The tool under the wire name that it bears now.
    pub(crate) fn offered(&self) -> &Arc<Offered> {
        match self.tool.hashed() {
            Some(hashed) if self.displaced => hashed,
            _ => &self.tool,
        }
    }

    /// Whether it may be offered: an internal tool only while it is started.
    pub(crate) fn is_available(&self) -> bool {
        self.internal.as_ref().is_none_or(Internal::is_started)
    }

    fn key(&self) -> Option<Key> {
        let identity = self.tool.identity();
        let name = ToolName::new(&identity.raw).ok()?;
        Some((identity.namespace.clone(), name))
    }
}

/// The tool that already bears a name.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) name: ToolName,
    pub(crate) by: Origin,
}

impl Natives {
    /// Adds a tool and returns its wire name. On error nothing has changed.
    pub(crate) fn insert(&mut self, mut native: Native) -> Result<ToolName, Taken> {
        let plain = native.tool.name().clone();
        // A native tool's raw name is a tool name, so there is always a key.
        let Some(key) = native.key() else {
            return Err(self.taken(plain, &native.origin));
        };
        if let Some(known) = self.tools.get(&key) {
            let name = known.offered().name().clone();
            return Err(self.taken(name, &native.origin));
        }
        let is_free = if key.0.is_none() {
            self.make_way(&plain)
        } else {
            native.displaced = self.tools.contains_key(&(None, plain));
            !self.by_wire_name.contains_key(native.offered().name())
        };
        let name = native.offered().name().clone();
        if !is_free {
            return Err(self.taken(name, &native.origin));
        }
        self.by_wire_name.insert(name.clone(), key.clone());
        self.tools.insert(key, native);
        Ok(name)
    }

    /// Moves the namespaced tool that bears `name` to its hashed name, if there is one and it can.
    fn make_way(&mut self, name: &ToolName) -> bool {
        let Some(key) = self.by_wire_name.get(name).cloned() else {
            return true;
        };
        let Some(hashed) = self.tools.get(&key).and_then(|holder| holder.tool.hashed()) else {
            return false;
        };
        let hashed = hashed.name().clone();
        if self.by_wire_name.contains_key(&hashed) {
            return false;
        }
        if let Some(holder) = self.tools.get_mut(&key) {
            holder.displaced = true;
        }
        self.by_wire_name.remove(name);
        self.by_wire_name.insert(hashed, key);
        true
    }

    /// Takes the tool of this wire name out.
    pub(crate) fn remove(&mut self, wire_name: &str) -> Option<Native> {
        let key = self.by_wire_name.remove(wire_name)?;
        let removed = self.tools.remove(&key)?;
        if key.0.is_none() {
            self.give_back(removed.tool.name());
        }
        Some(removed)
    }

    /// Moves the tool that had made way for `name` back to it.
    fn give_back(&mut self, name: &ToolName) {
        let waiting = self
            .tools
            .iter_mut()
            .find(|(_, native)| native.displaced && native.tool.name() == name);
        if let Some((key, native)) = waiting {
            self.by_wire_name.remove(native.offered().name());
            native.displaced = false;
            self.by_wire_name.insert(name.clone(), key.clone());
        }
    }

    /// Puts another tool in the place of the one with the same identity, if there is one.
    ///
    /// Returns its wire name and the tool that was there.
    pub(crate) fn replace(&mut self, mut native: Native) -> Option<(ToolName, Native)> {
        let known = self.tools.get_mut(&native.key()?)?;
        native.displaced = known.displaced;
        let former = std::mem::replace(known, native);
        Some((known.offered().name().clone(), former))
    }

    /// Gives the tool of this wire name a validator of its own.
    pub(crate) fn attach(&mut self, wire_name: &str, validator: Arc<dyn Validator>) {
        let key = self.by_wire_name.get(wire_name);
        if let Some(native) = key.and_then(|key| self.tools.get_mut(key)) {
            native.tool = native.tool.with_validator(validator);
        }
    }

    pub(crate) fn get(&self, wire_name: &str) -> Option<&Native> {
        self.tools.get(self.by_wire_name.get(wire_name)?)
    }

    /// All tools in catalogue order, started or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Native> {
        self.tools.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Native> {
        self.tools.values_mut()
    }

    /// Whether a native tool bears this name, offered or not.
    pub(crate) fn bears(&self, wire_name: &ToolName) -> bool {
        self.by_wire_name.contains_key(wire_name)
    }

    fn taken(&self, name: ToolName, by_default: &Origin) -> Taken {
        let by = self
            .get(name.as_str())
            .map_or(by_default, |native| &native.origin)
            .clone();
        Taken { name, by }
    }
}
