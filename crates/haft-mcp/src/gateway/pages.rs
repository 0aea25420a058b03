//! Long lists in pages.
//!
//! A cursor is opaque to clients: where the next page starts, and a mark of the list that it belongs to.
//! If the list is another one by then, the cursor is refused and the client starts again, rather than
//! skipping or repeating something unseen.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rmcp::ErrorData;

/// One page, and the cursor of the next.
pub(super) fn page<T>(
    items: Vec<T>,
    name: impl Fn(&T) -> &str,
    cursor: Option<&str>,
    size: usize,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let mark = mark(items.iter().map(name));
    let start = match cursor {
        None => 0,
        Some(cursor) => start(cursor, mark, items.len()).ok_or_else(|| {
            let text = "the cursor is not one of this list, or the list has changed: list again from the start";
            ErrorData::invalid_params(text, None)
        })?,
    };
    let size = size.max(1);
    let more = items.len() > start + size;
    let next = more.then(|| {
        let mut bytes = mark.to_be_bytes().to_vec();
        bytes.extend(((start + size) as u64).to_be_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    });
    let items = items.into_iter().skip(start).take(size).collect();
    Ok((items, next))
}

/// A mark of these names in this order.
pub(super) fn mark<'n>(names: impl Iterator<Item = &'n str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for name in names {
        name.hash(&mut hasher);
    }
    hasher.finish()
}

fn start(cursor: &str, mark: u64, length: usize) -> Option<usize> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (of, at) = bytes.split_first_chunk::<8>()?;
    let at: [u8; 8] = at.try_into().ok()?;
    let at = usize::try_from(u64::from_be_bytes(at)).ok()?;
    (u64::from_be_bytes(*of) == mark && at < length).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(item: &String) -> &str {
        item
    }

    #[test]
    fn the_pages_together_are_the_list() {
        let all: Vec<String> = (0..10).map(|n| format!("t{n}")).collect();
        for size in 1..12 {
            let (mut read, mut cursor, mut pages) = (Vec::new(), None, 0);
            loop {
                let (items, next) = page(all.clone(), name, cursor.as_deref(), size).unwrap();
                read.extend(items);
                pages += 1;
                cursor = next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(read, all);
            assert_eq!(pages, 10_usize.div_ceil(size));
        }
        let (none, next) = page(Vec::<String>::new(), name, None, 3).unwrap();
        assert_eq!((none.len(), next), (0, None));
    }

    #[test]
    fn a_foreign_or_stale_cursor_is_refused() {
        let all: Vec<String> = ["a", "b", "c"].map(String::from).into();
        let (_, cursor) = page(all.clone(), name, None, 2).unwrap();
        let cursor = cursor.unwrap();
        assert!(page(all.clone(), name, Some(&cursor), 2).is_ok());
        let changed = vec!["a".into(), "c".into(), "b".into()];
        assert!(page(changed, name, Some(&cursor), 2).is_err());
        for bad in ["", "x", "AAAA", "☃", &cursor[1..]] {
            assert!(page(all.clone(), name, Some(bad), 2).is_err(), "{bad}");
        }
    }
}
