//! Names that somebody writes: the surest way to a tool (`tool-selection.md` §6.1).

use super::features::Key;
use super::searchable::Searchable;
use super::text::squeezed;

/// What kind of name it is; the surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NameKind {
    Exposed,
    Raw,
    Title,
}

/// A name of a tool of a segment.
#[derive(Debug, Clone)]
pub(super) struct Named {
    squeezed: Box<str>,
    key: Key,
    pub(super) kind: NameKind,
    pub(super) tool: u32,
}

/// All names of a segment.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    /// By key.
    names: Box<[Named]>,
    /// Places in `names`, by squeezed name.
    in_order: Box<[u32]>,
    /// A bit for each key, by its first bits: nearly all words of a request are no names.
    filter: Box<[u64]>,
    /// The longest squeezed name, in bytes.
    longest: usize,
}

const FILTER_BITS: u32 = 15;

impl NameTable {
    pub(super) fn builder() -> NameTableBuilder {
        NameTableBuilder::default()
    }

    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// The tools that have exactly this squeezed name, which has this key.
    pub(super) fn exactly<'t>(
        &'t self,
        key: Key,
        squeezed: &'t str,
    ) -> impl Iterator<Item = &'t Named> {
        let start = if self.may_have(key) {
            self.names.partition_point(|named| named.key < key)
        } else {
            self.names.len()
        };
        self.names[start..]
            .iter()
            .take_while(move |named| named.key == key)
            .filter(move |named| *named.squeezed == *squeezed)
    }

    /// The tools with a name, other than a title, that begins so.
    pub(super) fn beginning<'t>(&'t self, prefix: &'t str) -> impl Iterator<Item = &'t Named> {
        let name = |&place: &u32| &self.names[place as usize];
        let start = self
            .in_order
            .partition_point(|place| *name(place).squeezed < *prefix);
        self.in_order[start..]
            .iter()
            .map(name)
            .take_while(move |named| named.squeezed.starts_with(prefix))
            .filter(|named| named.kind != NameKind::Title)
    }

    fn may_have(&self, key: Key) -> bool {
        let (word, bit) = filter_place(key);
        self.filter.get(word).is_some_and(|bits| bits & bit != 0)
    }

    pub(super) fn bytes(&self) -> usize {
        let texts: usize = self.names.iter().map(|named| named.squeezed.len()).sum();
        texts + self.names.len() * (size_of::<Named>() + 4) + self.filter.len() * 8
    }

    /// All of them as one; tools get new numbers, or are gone.
    pub(super) fn merged<'t>(parts: impl Iterator<Item = (&'t Self, &'t [Option<u32>])>) -> Self {
        let mut builder = Self::builder();
        for (part, numbers) in parts {
            for named in &part.names {
                if let Some(tool) = numbers[named.tool as usize] {
                    builder.names.push(Named {
                        tool,
                        ..named.clone()
                    });
                }
            }
        }
        builder.finish()
    }
}

fn filter_place(key: Key) -> (usize, u64) {
    let bits = key.0 >> (64 - FILTER_BITS);
    // 15 bits, less than any usize.
    (usize::try_from(bits >> 6).unwrap_or(0), 1 << (bits & 63))
}

#[derive(Default)]
pub(super) struct NameTableBuilder {
    names: Vec<Named>,
}

impl NameTableBuilder {
    pub(super) fn add(&mut self, tool: u32, of: &dyn Searchable) {
        let names = [
            (NameKind::Exposed, Some(of.name())),
            (NameKind::Raw, of.raw_name()),
            (NameKind::Title, of.title()),
        ];
        for (kind, name) in names {
            let squeezed = name.map(squeezed).unwrap_or_default();
            // Nothing but signs would be in every request.
            if !squeezed.is_empty() {
                self.names.push(Named {
                    key: Key::of(&squeezed),
                    squeezed: squeezed.into(),
                    kind,
                    tool,
                });
            }
        }
    }

    pub(super) fn finish(mut self) -> NameTable {
        self.names
            .sort_unstable_by_key(|named| (named.key, named.kind, named.tool));
        let count = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let mut in_order: Vec<u32> = (0..count).collect();
        in_order.sort_by(|&one, &other| {
            let name = |place: u32| &self.names[place as usize].squeezed;
            name(one).cmp(name(other))
        });
        let mut filter = vec![0_u64; 1 << (FILTER_BITS - 6)];
        for named in &self.names {
            let (word, bit) = filter_place(named.key);
            filter[word] |= bit;
        }
        NameTable {
            longest: self
                .names
                .iter()
                .map(|named| named.squeezed.len())
                .max()
                .unwrap_or(0),
            names: self.names.into(),
            in_order: in_order.into(),
            filter: filter.into(),
        }
    }
}
