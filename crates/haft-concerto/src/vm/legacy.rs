//! What a machine leaves to one that runs a changed program, for those who write a program while it runs.

use std::collections::HashMap;
use std::sync::Arc;

use super::Machine;
use crate::natives::Stores;
use crate::value::Value;

/// Constants, state of tools and stores, by name.
#[derive(Debug, Default)]
pub struct Legacy {
    globals: HashMap<Arc<str>, Value>,
    stores: Option<Stores>,
}

impl Legacy {
    /// Forgets a store, a constant, or a tool with its state.
    pub fn forget(&mut self, name: &str) {
        self.globals.retain(|global, _| {
            let owner = global.split('.').next().unwrap_or_default();
            **global != *name && owner != name
        });
        if let Some(stores) = &mut self.stores {
            stores.forget(name);
        }
    }

    /// Forgets what holds functions: they mean nothing to a program that is not the old one with something
    /// behind it.
    pub fn forget_functions(&mut self) {
        self.globals.retain(|_, value| !value.holds_function());
        if let Some(stores) = &mut self.stores {
            stores.retain_values(|value| !value.holds_function());
        }
    }

    /// Whether a constant or the state of a tool holds a function.
    pub fn has_functions_in_globals(&self) -> bool {
        self.globals.values().any(Value::holds_function)
    }
}

impl Machine {
    /// What this machine leaves; it has nothing of it any more.
    pub fn leave(&mut self) -> Legacy {
        let program = Arc::clone(&self.program);
        let globals = program.globals.iter().map(|(name, place)| {
            let value = self.globals.get_mut(*place as usize);
            (Arc::clone(name), value.map(Value::take).unwrap_or_default())
        });
        Legacy {
            globals: globals.collect(),
            stores: Some(std::mem::take(&mut self.stores)),
        }
    }

    /// Takes over what another machine left, as far as this program has it.
    pub fn inherit(&mut self, mut legacy: Legacy) {
        if let Some(stores) = legacy.stores.take() {
            self.stores.inherit(stores);
        }
        let program = Arc::clone(&self.program);
        for (name, place) in &program.globals {
            if let (Some(value), Some(slot)) = (
                legacy.globals.remove(name),
                self.globals.get_mut(*place as usize),
            ) {
                *slot = value;
            }
        }
    }
}
