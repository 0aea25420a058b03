//! Constants get their values in the order of the source. One that is read earlier has none.

use std::collections::{HashMap, HashSet};

use super::{Checker, Code};
use crate::ast::ItemKind;
use crate::source::Span;
use crate::symbols::join;

/// What a constant, or the state of a tool, reads to get its value.
pub(super) struct Reading {
    /// The full path.
    pub(super) path: String,
    /// The place among the declarations.
    pub(super) order: usize,
    pub(super) constants: Vec<(String, Span)>,
}

impl Checker<'_> {
    /// Notes what is read while something gets its value.
    pub(super) fn reading<T>(
        &mut self,
        name: &str,
        order: usize,
        inner: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.reads.replace(Vec::new());
        let result = inner(self);
        let constants = std::mem::replace(&mut self.reads, before).unwrap_or_default();
        let path = join(&self.symbols.modules[self.module], name);
        self.readings.push(Reading {
            path,
            order,
            constants,
        });
        result
    }

    /// Tells constants that are read before they have a value.
    pub(super) fn constants_in_order(&mut self) {
        let readings = std::mem::take(&mut self.readings);
        let symbols = self.symbols;
        let constants = symbols.items.iter().enumerate();
        let order: HashMap<String, usize> = constants
            .filter_map(|(order, declared)| match &declared.item.kind {
                ItemKind::Const(it) => Some((
                    join(&symbols.modules[declared.module], &it.name.text),
                    order,
                )),
                _ => None,
            })
            .collect();
        let reads: HashMap<&str, &Reading> =
            readings.iter().map(|it| (it.path.as_str(), it)).collect();
        // Those that need themselves, and those on a way that was told: each way once.
        let circles = in_circles(&reads);
        let mut told: HashSet<&str> = HashSet::new();
        for Reading {
            path,
            order: own,
            constants,
        } in &readings
        {
            let later =
                |(needed, _): &&(String, Span)| order.get(needed).is_some_and(|it| it >= own);
            for (needed, span) in constants.iter().filter(later) {
                if told.contains(path.as_str()) || self.diagnostics.is_full() {
                    break;
                }
                let is_circle = circles.contains(path.as_str());
                let way = is_circle.then(|| way_back(&reads, needed, path)).flatten();
                let (text, help) = if let Some(way) = way {
                    let shown: Vec<String> = way.iter().map(|it| format!("`{it}`")).collect();
                    told.extend(way);
                    let text = format!(
                        "constants need each other: `{path}` → {}",
                        shown.join(" → ")
                    );
                    (text, "one of them needs a value of its own".to_owned())
                } else {
                    let text = format!("`{path}` needs `{needed}`, which has no value yet");
                    let help = format!(
                        "declare `{needed}` above: constants get their values in the order of the source"
                    );
                    (text, help)
                };
                self.tell_with_help(Code::E035, *span, text, help);
            }
        }
    }
}

/// Those that are left when all are taken away that need nobody, then those that need only these, and so on:
/// they stand in circles, or need somebody who does.
fn in_circles<'r>(reads: &HashMap<&'r str, &'r Reading>) -> HashSet<&'r str> {
    let mut needs: HashMap<&str, usize> = HashMap::new();
    let mut needed_by: HashMap<&str, Vec<&'r str>> = HashMap::new();
    for (name, reading) in reads {
        let constants = reading.constants.iter().map(|(it, _)| it.as_str());
        let constants: HashSet<&str> = constants.filter(|it| reads.contains_key(it)).collect();
        needs.insert(name, constants.len());
        for needed in constants {
            needed_by.entry(needed).or_default().push(name);
        }
    }
    let mut left: HashSet<&'r str> = reads.keys().copied().collect();
    let mut free: Vec<&str> = left.iter().copied().filter(|it| needs[it] == 0).collect();
    while let Some(name) = free.pop() {
        left.remove(name);
        for other in needed_by.get(name).into_iter().flatten() {
            if let Some(count) = needs.get_mut(other) {
                *count -= 1;
                if *count == 0 {
                    free.push(other);
                }
            }
        }
    }
    left
}

/// The way from the one to the other, both with it, if reading leads there.
fn way_back<'r>(
    reads: &HashMap<&'r str, &'r Reading>,
    from: &'r str,
    to: &str,
) -> Option<Vec<&'r str>> {
    // By whom each was reached, and those whose readings are still to be looked at.
    let mut reached: HashMap<&str, Option<&str>> = HashMap::from([(from, None)]);
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        if name == to {
            let mut way = vec![name];
            while let Some(Some(before)) = way.last().and_then(|it| reached.get(it)) {
                way.push(before);
            }
            way.reverse();
            return Some(way);
        }
        for (next, _) in reads.get(name).into_iter().flat_map(|it| &it.constants) {
            if !reached.contains_key(next.as_str()) {
                reached.insert(next, Some(name));
                open.push(next);
            }
        }
    }
    None
}
