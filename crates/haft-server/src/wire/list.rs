//! Pages of items.

use std::borrow::Cow;

use haft_core::{Page, PageQuery, StoredItem, cut};
use serde::Serialize;
use serde_json::value::RawValue;

use super::visible::{View, visible_item};
use crate::error::{ApiError, ErrorCode};

/// A piece of a list, as clients see it. Items go from the store to the wire without being read
/// where they can be shown as they are.
#[derive(Debug, Serialize)]
pub(crate) struct ListPage<'p> {
    object: &'static str,
    data: Vec<Cow<'p, RawValue>>,
    first_id: Option<&'p str>,
    last_id: Option<&'p str>,
    has_more: bool,
}

impl<'p> ListPage<'p> {
    /// A page that the store gave.
    pub(crate) fn of(page: &'p Page, view: &View) -> Self {
        Self::new(page.items.iter(), page.has_more, view)
    }

    /// A whole list, for example of items that were just added.
    pub(crate) fn whole(items: &'p [StoredItem], view: &View) -> Self {
        Self::new(items.iter(), false, view)
    }

    /// The piece of `items` that `query` asks for.
    pub(crate) fn cut(
        items: &'p [StoredItem],
        query: &PageQuery,
        view: &View,
    ) -> Result<Self, ApiError> {
        let ordered: Vec<&StoredItem> = if query.is_descending {
            items.iter().rev().collect()
        } else {
            items.iter().collect()
        };
        let start = match &query.after {
            None => 0,
            // An item that was sent twice stands twice; behind its last place a reader gets on.
            Some(after) => match ordered.iter().rposition(|item| item.id == *after) {
                Some(index) => index + 1,
                None => return Err(unknown_after(after)),
            },
        };
        let rest = &ordered[start..];
        let shown = rest.len().min(query.limit);
        Ok(Self::new(
            rest[..shown].iter().copied(),
            rest.len() > shown,
            view,
        ))
    }

    fn new(
        items: impl DoubleEndedIterator<Item = &'p StoredItem> + Clone,
        has_more: bool,
        view: &View,
    ) -> Self {
        Self {
            object: "list",
            first_id: items.clone().next().map(|item| item.id.as_str()),
            last_id: items.clone().next_back().map(|item| item.id.as_str()),
            data: items.map(|item| visible_item(item, view)).collect(),
            has_more,
        }
    }
}

/// A page was to begin behind an item that is not in the list.
pub(crate) fn unknown_after(after: &str) -> ApiError {
    ApiError::new(
        ErrorCode::ItemNotFound,
        format!(
            "`after` is `{}`, and there is no such item in this list: use the `last_id` of the \
             page before",
            cut(after)
        ),
    )
    .at("after")
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
