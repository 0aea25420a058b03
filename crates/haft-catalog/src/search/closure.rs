//! What tools need (`tool-selection.md` §6.4): declared, followed, never guessed.

use std::collections::{HashMap, HashSet, VecDeque};

use super::index::Inner;
use super::searchable::Searchable;

/// A tool that another one needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Needed {
    pub(super) position: u32,
    pub(super) via: u32,
}

/// Everything that these tools need, directly or through others: for one tool after the other, breadth
/// first, each once, at most so many. What the first needs is so never cut for what a later one does.
pub(super) fn closure(
    index: &Inner,
    roots: &[u32],
    most: usize,
    excluded: impl Fn(&dyn Searchable) -> bool,
) -> Vec<Needed> {
    let mut needed = Vec::new();
    let mut seen: HashSet<u32> = roots.iter().copied().collect();
    let mut waiting: VecDeque<u32> = VecDeque::new();
    let mut by_name: Option<HashMap<&str, u32>> = None;
    for &root in roots {
        waiting.push_back(root);
        while let Some(via) = waiting.pop_front() {
            for name in index.tools[via as usize].depends_on() {
                if needed.len() >= most {
                    return needed;
                }
                // Few lists have any edges, so names are only looked at where one is met.
                let by_name = by_name.get_or_insert_with(|| {
                    let names = index.tools.iter().map(|tool| tool.name());
                    names.zip(0..).collect()
                });
                let Some(&position) = by_name.get(name) else {
                    continue;
                };
                if excluded(&*index.tools[position as usize]) || !seen.insert(position) {
                    continue;
                }
                needed.push(Needed { position, via });
                waiting.push_back(position);
            }
        }
    }
    needed
}
