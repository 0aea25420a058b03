//! Which tools have a key, and how often: sorted, packed, never changed.

use super::features::Key;

/// A tool of one segment, by number, and how often it has something, in quarters.
///
/// Packed: 20 bits for the tool, 12 for the count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posting(u32);

impl Posting {
    pub(super) const MAX_TOOLS: usize = 1 << 20;
    pub(super) const MAX_COUNT: u32 = (1 << 12) - 1;

    pub(super) fn new(tool: u32, count: u32) -> Self {
        Self(tool << 12 | count.min(Self::MAX_COUNT))
    }

    pub(super) fn tool(self) -> usize {
        (self.0 >> 12) as usize
    }

    pub(super) fn count(self) -> usize {
        (self.0 & Self::MAX_COUNT) as usize
    }
}

/// For each key its postings, by tool.
#[derive(Debug, Default)]
pub(super) struct Postings {
    /// In order.
    keys: Box<[Key]>,
    /// Where the postings of each key begin, and the end of the last.
    starts: Box<[u32]>,
    entries: Box<[Posting]>,
    /// Where the keys begin that have the same first bits: keys are spread evenly, so that a look here
    /// is nearly all of a search.
    directory: Box<[u32]>,
    shift: u32,
}

impl Postings {
    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The postings of the key with this number.
    pub(super) fn of(&self, term: usize) -> &[Posting] {
        &self.entries[self.starts[term] as usize..self.starts[term + 1] as usize]
    }

    /// The number of a key.
    pub(super) fn find(&self, key: Key) -> Option<usize> {
        let bucket = usize::try_from(key.0.checked_shr(self.shift)?).ok()?;
        let start = *self.directory.get(bucket)? as usize;
        let end = *self.directory.get(bucket + 1)? as usize;
        let found = self.keys[start..end].iter().position(|&it| it == key)?;
        Some(start + found)
    }

    /// Approximately how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.keys.len() * 8 + (self.starts.len() + self.entries.len() + self.directory.len()) * 4
    }

    /// From numbered keys in any order, and pairs of such a number with a posting, by tool.
    pub(super) fn from_pairs(keys: &[Key], pairs: &[(u32, Posting)]) -> Self {
        let mut order: Vec<u32> = (0..u32::try_from(keys.len()).unwrap_or(u32::MAX)).collect();
        order.sort_unstable_by_key(|&term| keys[term as usize]);
        let mut counts = vec![0_u32; keys.len()];
        for &(term, _) in pairs {
            counts[term as usize] += 1;
        }
        let mut starts = Vec::with_capacity(keys.len() + 1);
        let mut next = vec![0_u32; keys.len()];
        let mut start = 0;
        for &term in &order {
            starts.push(start);
            next[term as usize] = start;
            start += counts[term as usize];
        }
        starts.push(start);
        let mut entries = vec![Posting(0); pairs.len()];
        for &(term, posting) in pairs {
            let place = &mut next[term as usize];
            entries[*place as usize] = posting;
            *place += 1;
        }
        let keys = order.iter().map(|&term| keys[term as usize]).collect();
        Self::new(keys, starts, entries)
    }

    /// All of them as one. `renumbered` says, for each part, which number a tool gets; none if it is
    /// gone. Numbers must grow within a part and from part to part.
    pub(super) fn merged(parts: &[(&Self, &[Option<u32>])]) -> Self {
        let total = parts.iter().map(|(part, _)| part.entries.len()).sum();
        let mut keys = Vec::new();
        let mut starts = Vec::new();
        let mut entries = Vec::with_capacity(total);
        each_key(
            &parts.iter().map(|(part, _)| *part).collect::<Vec<_>>(),
            |key, terms| {
                let start = entries.len();
                for &(part, term) in terms {
                    let (postings, renumbered) = &parts[part];
                    let kept = postings.of(term).iter().filter_map(|posting| {
                        let tool = renumbered[posting.tool()]?;
                        Some(Posting::new(tool, posting.0 & Posting::MAX_COUNT))
                    });
                    entries.extend(kept);
                }
                if entries.len() > start {
                    keys.push(key);
                    starts.push(to_u32(start));
                }
            },
        );
        starts.push(to_u32(entries.len()));
        Self::new(keys, starts, entries)
    }

    fn new(keys: Vec<Key>, starts: Vec<u32>, entries: Vec<Posting>) -> Self {
        let bits = keys.len().next_power_of_two().trailing_zeros().max(1);
        let shift = 64 - bits;
        let mut directory = Vec::with_capacity((1 << bits) + 1);
        let mut at = 0;
        for bucket in 0..1_u64 << bits {
            while keys.get(at).is_some_and(|key| key.0 >> shift < bucket) {
                at += 1;
            }
            directory.push(to_u32(at));
        }
        directory.push(to_u32(keys.len()));
        Self {
            keys: keys.into(),
            starts: starts.into(),
            entries: entries.into(),
            directory: directory.into(),
            shift,
        }
    }
}

/// A segment has at most 2²⁰ tools, of which none has 2¹² keys: the text of a tool is capped.
fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Walks through the keys of several postings in order; for each, who has it under which number.
pub(super) fn each_key(parts: &[&Postings], mut take: impl FnMut(Key, &[(usize, usize)])) {
    let mut next = vec![0_usize; parts.len()];
    let mut terms = Vec::with_capacity(parts.len());
    loop {
        let heads = parts.iter().zip(&next);
        let Some(&key) = heads.filter_map(|(part, &at)| part.keys.get(at)).min() else {
            return;
        };
        terms.clear();
        for (part, (postings, at)) in parts.iter().zip(&mut next).enumerate() {
            if postings.keys.get(*at) == Some(&key) {
                terms.push((part, *at));
                *at += 1;
            }
        }
        take(key, &terms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::of(text)
    }

    fn tools(postings: &Postings, text: &str) -> Vec<(usize, usize)> {
        let found = postings.find(key(text)).map(|term| postings.of(term));
        let found = found.unwrap_or_default().iter();
        found.map(|it| (it.tool(), it.count())).collect()
    }

    fn sample(pairs: &[(u32, u32, u32)]) -> Postings {
        let keys = [key("mail"), key("send"), key("read")];
        let pairs: Vec<_> = pairs
            .iter()
            .map(|&(term, tool, count)| (term, Posting::new(tool, count)))
            .collect();
        Postings::from_pairs(&keys, &pairs)
    }

    #[test]
    fn what_goes_in_is_found() {
        let postings = sample(&[(0, 0, 4), (1, 0, 9_999), (0, 1, 12), (2, 1, 1)]);
        assert_eq!(tools(&postings, "mail"), [(0, 4), (1, 12)]);
        assert_eq!(tools(&postings, "send"), [(0, 4095)]);
        assert_eq!(tools(&postings, "read"), [(1, 1)]);
        assert_eq!(tools(&postings, "other"), []);
        assert_eq!(tools(&Postings::default(), "mail"), []);
    }

    #[test]
    fn merging_renumbers_and_forgets_what_is_gone() {
        let one = sample(&[(0, 0, 4), (1, 0, 4), (0, 1, 8)]);
        let two = sample(&[(0, 0, 1), (2, 0, 2)]);
        let merged = Postings::merged(&[(&one, &[None, Some(0)]), (&two, &[Some(1)])]);
        assert_eq!(tools(&merged, "mail"), [(0, 8), (1, 1)]);
        assert_eq!(tools(&merged, "send"), []);
        assert_eq!(tools(&merged, "read"), [(1, 2)]);
        assert_eq!(merged.len(), 2);
    }
}
