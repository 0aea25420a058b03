//! Long lists in pages that survive changes of the list.
//!
//! The first page of a list that has more keeps a snapshot of it, and the cursor names that snapshot: later
//! pages continue from it, whatever servers come and go meanwhile. Snapshots are kept for a while only. A
//! cursor whose snapshot is gone (too old, displaced, or made by another process) continues in the list as it
//! is now, behind the item that was last on the page before. Only a cursor that no gateway made is rejected.

use std::any::Any;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rmcp::ErrorData;
use tokio::time::Instant;

use super::outcome::{ListedPrompt, ListedResource};
use super::tool::ListedTool;

/// How many snapshots are kept, in all and for one list of one caller.
const MAX_SNAPSHOTS: usize = 64;
const MAX_SNAPSHOTS_OF_ONE: usize = 4;
/// How many bytes the items of all snapshots have together, about.
const MAX_BYTES: usize = 64 << 20;
/// How long a snapshot is kept after its last use.
const KEPT: Duration = Duration::from_mins(10);

/// The layout of a cursor.
const VERSION: u8 = 1;

/// Something that is listed in pages.
pub(super) trait Listable: Clone + Send + Sync + 'static {
    /// What tells it from the others of its list.
    fn key(&self) -> &str;

    /// About how many bytes it takes.
    fn bytes(&self) -> usize;
}

impl Listable for Arc<ListedTool> {
    fn key(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> usize {
        self.weight()
    }
}

impl Listable for ListedPrompt {
    fn key(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> usize {
        let text = self.description.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.name.len() + text
    }
}

impl Listable for ListedResource {
    fn key(&self) -> &str {
        &self.uri
    }

    fn bytes(&self) -> usize {
        let text = self.description.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.uri.len() + self.name.len() + text
    }
}

/// Divides lists into pages.
pub(super) struct Pages {
    size: usize,
    snapshots: Mutex<Vec<Snapshot>>,
}

/// A list as it was when its first page was read.
struct Snapshot {
    id: u64,
    /// Whose list it is, and which: nobody else continues from it.
    owner: String,
    /// An `Arc<Vec<T>>`.
    items: Arc<dyn Any + Send + Sync>,
    bytes: usize,
    last_used: Instant,
}

impl Pages {
    pub(super) fn new(size: usize) -> Self {
        Self {
            size: size.max(1),
            snapshots: Mutex::default(),
        }
    }

    /// One page, and the cursor of the next. `items` is the list as it is now; `owner` names the caller and
    /// the list.
    pub(super) fn page<T: Listable>(
        &self,
        owner: &str,
        items: Vec<T>,
        cursor: Option<&str>,
    ) -> Result<(Vec<T>, Option<String>), ErrorData> {
        let Some(cursor) = cursor else {
            return Ok(self.cut(owner, None, &Arc::new(items), 0));
        };
        let Some(cursor) = Cursor::read(cursor) else {
            let text = "invalid cursor; list again from the start";
            return Err(ErrorData::invalid_params(text, None));
        };
        if let Some(kept) = self.snapshot::<T>(owner, cursor.snapshot) {
            return Ok(self.cut(owner, Some(cursor.snapshot), &kept, cursor.start));
        }
        let start = cursor.position_in(&items);
        Ok(self.cut(owner, None, &Arc::new(items), start))
    }

    fn cut<T: Listable>(
        &self,
        owner: &str,
        snapshot: Option<u64>,
        items: &Arc<Vec<T>>,
        start: usize,
    ) -> (Vec<T>, Option<String>) {
        let end = start.saturating_add(self.size).min(items.len());
        let page = items.get(start..end).unwrap_or_default().to_vec();
        let (Some(last), Some(next)) = (page.last(), items.get(end)) else {
            return (page, None);
        };
        let cursor = Cursor {
            snapshot: snapshot.unwrap_or_else(|| self.keep(owner, items)),
            start: end,
            last: hash(last.key()),
            next: hash(next.key()),
        };
        (page, Some(cursor.written()))
    }

    fn snapshot<T: Listable>(&self, owner: &str, id: u64) -> Option<Arc<Vec<T>>> {
        let mut snapshots = self.lock();
        let found = snapshots
            .iter_mut()
            .find(|it| it.id == id && it.owner == owner)?;
        if found.last_used.elapsed() >= KEPT {
            return None;
        }
        found.last_used = Instant::now();
        Arc::clone(&found.items).downcast().ok()
    }

    fn keep<T: Listable>(&self, owner: &str, items: &Arc<Vec<T>>) -> u64 {
        let bytes = items.iter().map(Listable::bytes).sum();
        let id = fastrand::u64(..);
        let mut snapshots = self.lock();
        let now = Instant::now();
        snapshots.retain(|it| now.duration_since(it.last_used) < KEPT);
        // Without the snapshot the next page continues by the names.
        if bytes > MAX_BYTES {
            return id;
        }
        let of_one = snapshots.iter().filter(|it| it.owner == owner).count();
        if of_one >= MAX_SNAPSHOTS_OF_ONE {
            remove_oldest(&mut snapshots, |it| it.owner == owner);
        }
        let is_full = |snapshots: &[Snapshot]| {
            let kept: usize = snapshots.iter().map(|it| it.bytes).sum();
            snapshots.len() >= MAX_SNAPSHOTS || kept + bytes > MAX_BYTES
        };
        while is_full(&snapshots) {
            remove_oldest(&mut snapshots, |_| true);
        }
        snapshots.push(Snapshot {
            id,
            owner: owner.to_owned(),
            items: Arc::clone(items) as _,
            bytes,
            last_used: now,
        });
        id
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Snapshot>> {
        self.snapshots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn remove_oldest(snapshots: &mut Vec<Snapshot>, is_meant: impl Fn(&Snapshot) -> bool) {
    let meant = snapshots.iter().enumerate().filter(|(_, it)| is_meant(it));
    let oldest = meant.min_by_key(|(_, it)| it.last_used);
    if let Some((at, _)) = oldest {
        snapshots.remove(at);
    }
}

/// Where the next page starts. Opaque to clients, and of no use to a client that forges one: it only
/// continues in lists that the client may read anyway.
struct Cursor {
    snapshot: u64,
    start: usize,
    /// The keys of the items around the start, for when the snapshot is gone.
    last: u64,
    next: u64,
}

impl Cursor {
    fn written(&self) -> String {
        let start = self.start as u64;
        let mut bytes = vec![VERSION];
        for number in [self.snapshot, start, self.last, self.next] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(&checksum(&bytes));
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    fn read(text: &str) -> Option<Self> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let (content, sum) = bytes.split_last_chunk::<4>()?;
        let (version, numbers) = content.split_first()?;
        if checksum(content) != *sum || *version != VERSION {
            return None;
        }
        let numbers: [u8; 32] = numbers.try_into().ok()?;
        let mut numbers = numbers.as_chunks::<8>().0.iter();
        let mut number = || numbers.next().map(|bytes| u64::from_be_bytes(*bytes));
        Some(Self {
            snapshot: number()?,
            start: usize::try_from(number()?).ok()?,
            last: number()?,
            next: number()?,
        })
    }

    /// The position in a list that is not the one of the snapshot.
    fn position_in<T: Listable>(&self, items: &[T]) -> usize {
        let position = |key| items.iter().position(|item| hash(item.key()) == key);
        let behind = position(self.last).map(|at| at + 1);
        let start = behind.or_else(|| position(self.next));
        start.unwrap_or(self.start).min(items.len())
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn checksum(bytes: &[u8]) -> [u8; 4] {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let [a, b, c, d, ..] = hasher.finish().to_be_bytes();
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn tools(names: impl IntoIterator<Item = String>) -> Vec<Arc<ListedTool>> {
        let tool = |name| Arc::new(ListedTool::new(name, Map::new()));
        names.into_iter().map(tool).collect()
    }

    fn numbered(numbers: impl IntoIterator<Item = usize>) -> Vec<Arc<ListedTool>> {
        tools(numbers.into_iter().map(|n| format!("t{n}")))
    }

    #[test]
    fn the_pages_together_are_the_list() {
        let all = numbered(0..10);
        for size in 1..12 {
            let pages = Pages::new(size);
            let (mut read, mut cursor, mut count) = (Vec::new(), None, 0);
            loop {
                let (items, next) = pages.page("a", all.clone(), cursor.as_deref()).unwrap();
                read.extend(items);
                count += 1;
                cursor = next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(read, all);
            assert_eq!(count, 10_usize.div_ceil(size));
        }
        let (none, next) = Pages::new(3).page("a", numbered([]), None).unwrap();
        assert_eq!((none.len(), next), (0, None));
    }

    #[test]
    fn a_list_that_changes_between_pages_is_read_as_it_was() {
        let pages = Pages::new(3);
        let (mut read, mut cursor) = pages.page("a", numbered(0..8), None).unwrap();
        while let Some(next) = cursor {
            let now = numbered(100..102);
            let (items, following) = pages.page("a", now, Some(&next)).unwrap();
            read.extend(items);
            cursor = following;
        }
        assert_eq!(read, numbered(0..8));
    }

    #[test]
    fn a_cursor_without_its_snapshot_continues_by_name() {
        let (_, cursor) = Pages::new(3).page("a", numbered(0..8), None).unwrap();
        // Another process, or one that was restarted.
        let page = |now| Pages::new(3).page("a", now, cursor.as_deref()).unwrap().0;
        assert_eq!(page(numbered(0..8)), numbered(3..6));
        assert_eq!(page(numbered([9, 2, 5, 6])), numbered([5, 6]));
        assert_eq!(
            page(numbered([0, 3, 4])),
            numbered([3, 4]),
            "the last is gone"
        );
        assert_eq!(page(numbered(20..26)), numbered(23..26), "both are gone");
        assert_eq!(page(numbered([])), numbered([]));
    }

    #[test]
    fn a_snapshot_serves_its_owner_only() {
        let pages = Pages::new(3);
        let (_, cursor) = pages.page("a", numbered(0..8), None).unwrap();
        let (items, _) = pages
            .page("b", numbered([50, 51]), cursor.as_deref())
            .unwrap();
        assert_eq!(
            items,
            numbered([]),
            "what is shown is the caller's own list"
        );
    }

    #[test]
    fn snapshots_are_bounded_in_number_and_the_oldest_goes_first() {
        let pages = Pages::new(1);
        for caller in 0..200 {
            for _ in 0..10 {
                pages
                    .page(&format!("{caller}"), numbered(0..3), None)
                    .unwrap();
            }
        }
        let kept = pages.lock();
        assert_eq!(kept.len(), MAX_SNAPSHOTS);
        let of_last = kept.iter().filter(|it| it.owner == "199").count();
        assert_eq!(of_last, MAX_SNAPSHOTS_OF_ONE);
    }

    #[test]
    fn snapshots_are_bounded_in_bytes() {
        let pages = Pages::new(1);
        let large = |name: &str| {
            let tool = ListedTool::new(name, Map::new()).described("x".repeat(MAX_BYTES / 5));
            Arc::new(tool)
        };
        for caller in ["a", "b", "c"] {
            let list = vec![large("t0"), large("t1")];
            let (_, cursor) = pages.page(caller, list.clone(), None).unwrap();
            let (second, _) = pages.page(caller, list, cursor.as_deref()).unwrap();
            assert_eq!(second[0].name, "t1");
        }
        assert_eq!(pages.lock().len(), 2);
    }

    #[test]
    fn a_cursor_that_no_gateway_made_is_rejected() {
        let pages = Pages::new(2);
        let (_, cursor) = pages.page("a", numbered(0..3), None).unwrap();
        let cursor = cursor.unwrap();
        for bad in [
            "",
            "x",
            "AAAA",
            "☃",
            &cursor[1..],
            &cursor[..cursor.len() - 2],
        ] {
            assert!(pages.page("a", numbered(0..3), Some(bad)).is_err(), "{bad}");
        }
    }
}
