//! Finds the tools whose names somebody wrote (`tool-selection.md` §6.1).

use super::features::{Hashing, Key};
use super::index::Inner;
use super::names::{NameKind, Named};
use super::parts::{GONE, Part};
use super::query::Query;
use super::rankers::{Allowed, DEPTH};
use super::text::{clean, squeezed, tokens};

/// The shortest beginning of a name that means the name.
const SHORTEST_PREFIX: usize = 3;
const SELECT: &str = "select:";

/// Words before or after a name of one word that make it one: "use `X`", "the `X` tool".
const BEFORE: [&str; 10] = [
    "call", "calling", "function", "invoke", "named", "run", "running", "tool", "use", "using",
];
const AFTER: [&str; 2] = ["function", "tool"];

/// What the names in a query lead to.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ByName {
    /// Tools whose name is there, in order of appearance.
    pub(super) exact: Vec<u32>,
    /// Tools whose name begins with the query, in the order of the list.
    pub(super) prefix: Vec<u32>,
    /// Whether nothing else is wanted.
    pub(super) only: bool,
    /// Tools that are named and must not be returned, by place among those.
    pub(super) withheld: Vec<usize>,
}

impl ByName {
    pub(super) fn find(index: &Inner, query: &Query, allowed: Allowed<'_>) -> Self {
        let mut found = Self::default();
        let lookup = Lookup { index, allowed };
        if let Some(names) = selected(&query.text) {
            for name in names.split(',') {
                lookup.whole(&squeezed(name), &mut found);
            }
            found.only = true;
            return found;
        }
        let whole = query.squeezed();
        lookup.whole(&whole, &mut found);
        if found.exact.is_empty() {
            lookup.inside(query, &mut found);
        }
        lookup.beginning(&whole, &mut found);
        found
    }
}

/// What follows `select:`.
fn selected(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let start = text.get(..SELECT.len())?;
    start
        .eq_ignore_ascii_case(SELECT)
        .then(|| &text[SELECT.len()..])
}

struct Lookup<'a> {
    index: &'a Inner,
    allowed: Allowed<'a>,
}

impl Lookup<'_> {
    /// Tools with exactly this name.
    fn whole(&self, squeezed: &str, found: &mut ByName) {
        if squeezed.is_empty() {
            return;
        }
        for (_, position) in self.named(Key::of(squeezed), squeezed) {
            found.add(position);
        }
        self.withheld(squeezed, found);
    }

    /// Tools whose name is a run of words in the query that is no part of a longer such run.
    fn inside(&self, query: &Query, found: &mut ByName) {
        let lengths = self
            .index
            .parts
            .iter()
            .map(|part| part.segment.names.longest());
        let withheld = self.index.withheld.iter().flat_map(|it| &it.squeezed);
        let longest = lengths.chain(withheld.map(String::len)).max().unwrap_or(0);
        let mut covered = 0;
        let mut run = String::new();
        for start in 0..query.tokens.len() {
            run.clear();
            let mut hashing = Hashing::START;
            let mut best = None;
            for (end, token) in query.tokens.iter().enumerate().skip(start) {
                run.push_str(&token.word);
                hashing = hashing.and(&token.word);
                if run.len() > longest {
                    break;
                }
                let names = self.names_here(hashing.key(), &run, query, (start, end));
                if !names.is_empty() {
                    best = Some((end + 1, names));
                }
                self.withheld_here(&run, query, start, end, found);
            }
            if let Some((end, names)) = best
                && end > covered
            {
                covered = end;
                for (_, position) in names {
                    found.add(position);
                }
            }
        }
    }

    fn names_here(
        &self,
        key: Key,
        run: &str,
        query: &Query,
        (start, end): (usize, usize),
    ) -> Vec<(NameKind, u32)> {
        let mut names = self.named(key, run);
        names.retain(|&(kind, position)| {
            let tool = &self.index.tools[position as usize];
            let name = match kind {
                NameKind::Exposed => Some(tool.name()),
                NameKind::Raw => tool.raw_name(),
                NameKind::Title => tool.title(),
            };
            name.is_some_and(|name| is_meant(name, query, start, end))
        });
        names
    }

    /// Tools whose name begins so.
    fn beginning(&self, squeezed: &str, found: &mut ByName) {
        if squeezed.chars().count() < SHORTEST_PREFIX {
            return;
        }
        let mut positions: Vec<u32> = self
            .index
            .parts
            .iter()
            .flat_map(|part| {
                part.segment
                    .names
                    .beginning(squeezed)
                    .map(move |it| (part, it))
            })
            .filter_map(|(part, named)| self.position(part, named))
            .collect();
        positions.sort_unstable();
        positions.dedup();
        positions.retain(|position| !found.exact.contains(position));
        positions.truncate(DEPTH);
        found.prefix = positions;
    }

    /// Tools with exactly this name, the surest kinds of names first.
    fn named(&self, key: Key, squeezed: &str) -> Vec<(NameKind, u32)> {
        let mut names = Vec::new();
        for part in &self.index.parts {
            let here = part.segment.names.exactly(key, squeezed);
            names.extend(here.filter_map(|it| Some((it.kind, self.position(part, it)?))));
        }
        names.sort_unstable();
        names
    }

    fn position(&self, part: &Part, named: &Named) -> Option<u32> {
        let position = part.positions[named.tool as usize];
        let is_there = position != GONE
            && self
                .allowed
                .is_none_or(|allowed| allowed[position as usize]);
        is_there.then_some(position)
    }

    fn withheld(&self, squeezed: &str, found: &mut ByName) {
        for (at, withheld) in self.index.withheld.iter().enumerate() {
            if withheld.squeezed.iter().any(|name| name == squeezed)
                && !found.withheld.contains(&at)
            {
                found.withheld.push(at);
            }
        }
    }

    fn withheld_here(
        &self,
        run: &str,
        query: &Query,
        start: usize,
        end: usize,
        found: &mut ByName,
    ) {
        for (at, withheld) in self.index.withheld.iter().enumerate() {
            let is_named = withheld.squeezed.iter().any(|name| name == run);
            if is_named
                && is_meant(withheld.tool.name(), query, start, end)
                && !found.withheld.contains(&at)
            {
                found.withheld.push(at);
            }
        }
    }
}

impl ByName {
    fn add(&mut self, position: u32) {
        if !self.exact.contains(&position) {
            self.exact.push(position);
        }
    }
}

/// Whether the words from `start` to `end` mean the name that they spell. A name of one word may be just
/// that word: it is meant if it is marked, looks like no word, or stands where a name does.
fn is_meant(name: &str, query: &Query, start: usize, end: usize) -> bool {
    let name = clean(name);
    if tokens(&name).len() > 1 {
        return true;
    }
    if start != end {
        return false;
    }
    let looks_like_no_word = name.contains(|c: char| c.is_ascii_digit() || c == '_');
    looks_like_no_word || is_quoted(query, start) || stands_as_a_name(query, start)
}

fn is_quoted(query: &Query, at: usize) -> bool {
    let token = &query.tokens[at];
    let is_quote = |c: char| {
        matches!(
            c,
            '`' | '"' | '\'' | '“' | '”' | '„' | '‘' | '’' | '«' | '»'
        )
    };
    let before = query.text[..token.start].chars().next_back();
    let after = query.text[token.end..].chars().next();
    before.is_some_and(is_quote) && after.is_some_and(is_quote)
}

fn stands_as_a_name(query: &Query, at: usize) -> bool {
    let word = |at: usize| query.tokens.get(at).map(|token| &*token.word);
    let before = at.checked_sub(1).and_then(word);
    before.is_some_and(|word| BEFORE.contains(&word))
        || word(at + 1).is_some_and(|word| AFTER.contains(&word))
}
