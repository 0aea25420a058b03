//! What one list of the backend looks like through a gateway, computed once for each list.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::mode::Mode;
use super::tool::{CacheHints, ListedTool, ToolList};

/// How many views are kept: callers may have different lists.
const KEPT: usize = 16;

/// The tools that a caller sees here, whatever the mode.
pub(super) struct View {
    pub(super) tools: Vec<Arc<ListedTool>>,
    pub(super) hints: CacheHints,
    /// Whether these tools are behind the facade.
    pub(super) is_hidden: bool,
    by_name: HashMap<String, usize>,
}

impl View {
    fn new(list: &ToolList, shows: impl Fn(&ListedTool) -> bool, mode: Mode) -> Self {
        let tools = list.tools.iter().filter(|tool| shows(tool));
        let tools: Vec<_> = tools.cloned().collect();
        let named = tools.iter().enumerate();
        Self {
            by_name: named.map(|(at, it)| (it.name.clone(), at)).collect(),
            is_hidden: mode.hides(&tools),
            hints: list.hints,
            tools,
        }
    }

    /// The tool of this name.
    pub(super) fn get(&self, name: &str) -> Option<&Arc<ListedTool>> {
        self.by_name.get(name).and_then(|at| self.tools.get(*at))
    }
}

/// The views of the lists that were used last. The newest comes first.
#[derive(Default)]
pub(super) struct Views(Mutex<Vec<Cached>>);

struct Cached {
    list: Arc<ToolList>,
    subset: Option<String>,
    view: Arc<View>,
}

impl Views {
    /// The view of a list, narrowed to the subset of this name.
    pub(super) fn of(
        &self,
        list: &Arc<ToolList>,
        subset: Option<&str>,
        shows: impl Fn(&ListedTool) -> bool,
        mode: Mode,
    ) -> Arc<View> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |it: &&Cached| Arc::ptr_eq(&it.list, list) && it.subset.as_deref() == subset;
        if let Some(cached) = lock().iter().find(is_it) {
            return Arc::clone(&cached.view);
        }
        // Made without the lock: it takes a moment where there are many tools.
        let view = Arc::new(View::new(list, shows, mode));
        let mut cached = lock();
        let new = Cached {
            list: Arc::clone(list),
            subset: subset.map(str::to_owned),
            view: Arc::clone(&view),
        };
        cached.insert(0, new);
        cached.truncate(KEPT);
        view
    }
}
