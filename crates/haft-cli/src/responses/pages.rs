//! Lists that come page by page.

use std::collections::HashSet;

use haft::Value;

use super::text;
use crate::failure::Failure;
use crate::remote::{Remote, RemoteError};

/// How many the server gives at once.
const PAGE: u64 = 100;

/// Which entries of a list.
pub(crate) struct Wanted<'w> {
    /// Where the list is.
    pub(crate) path: &'w [&'w str],
    /// `asc` or `desc`.
    pub(crate) order: &'static str,
    /// At most so many; all if nothing is said.
    pub(crate) limit: Option<u64>,
}

/// The entries, and whether there are more. Hears how many there are after each page.
pub(crate) async fn collect(
    remote: &Remote,
    wanted: Wanted<'_>,
    mut hear: impl FnMut(usize),
) -> Result<(Vec<Value>, bool), RemoteError> {
    let mut entries: Vec<Value> = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    loop {
        let left = wanted
            .limit
            .map(|limit| limit.saturating_sub(entries.len() as u64));
        let limit = left.unwrap_or(PAGE).min(PAGE).to_string();
        let after = entries.last().map(|last| text(last, "id").to_owned());
        let mut parameters = vec![("order", wanted.order), ("limit", limit.as_str())];
        parameters.extend(after.as_deref().map(|after| ("after", after)));
        let mut page = remote.get(wanted.path, &parameters).await?;
        let has_more = page["has_more"] == true;
        let data = page["data"].take();
        let data = data.as_array().cloned().unwrap_or_default();
        let is_new = data
            .last()
            .is_some_and(|last| seen.insert(text(last, "id").to_owned()));
        if has_more && !is_new {
            // It would go on like this for ever.
            return Err(RemoteError::from(Failure::new(
                "the server gives the same page again and again: it does not list as haft does",
            )));
        }
        entries.extend(data);
        hear(entries.len());
        let is_enough = wanted
            .limit
            .is_some_and(|limit| entries.len() as u64 >= limit);
        if is_enough || !has_more {
            return Ok((entries, has_more));
        }
    }
}
