//! A list of prompts, resources or templates, page by page, within the limits of the settings.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;

use crate::listing::Next;
use crate::offered::ListItem;
use crate::settings::Limits;
use crate::text::visible;

/// How many diagnostics of a list are kept.
const MAX_DIAGNOSTICS: usize = 100;

/// What a server lists beside tools, in its order, and what was wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerList<T> {
    /// The items that can be used.
    pub items: Vec<T>,
    /// What was left out or cut, and why.
    pub diagnostics: Vec<String>,
    /// How long the server believes the list to stay the same; zero if it does not say.
    pub ttl: Duration,
    /// Whether the list may be shown to other users than those whose credentials it was read with.
    pub is_public: bool,
}

impl<T> Default for ServerList<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            diagnostics: Vec::new(),
            ttl: Duration::ZERO,
            is_public: false,
        }
    }
}

impl<T> ServerList<T> {
    pub(crate) fn map<U>(self, convert: impl FnMut(T) -> U) -> ServerList<U> {
        ServerList {
            items: self.items.into_iter().map(convert).collect(),
            diagnostics: self.diagnostics,
            ttl: self.ttl,
            is_public: self.is_public,
        }
    }
}

/// Reads the pages of one list.
pub(crate) struct ItemListing<T> {
    limits: Limits,
    items: Vec<T>,
    keys: HashSet<String>,
    cursors: HashSet<String>,
    pages: usize,
    bytes: usize,
    ttl_ms: u64,
    is_public: bool,
    diagnostics: Vec<String>,
}

impl<T: ListItem> ItemListing<T> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            items: Vec::new(),
            keys: HashSet::new(),
            cursors: HashSet::new(),
            pages: 0,
            bytes: 0,
            ttl_ms: u64::MAX,
            is_public: true,
            diagnostics: Vec::new(),
        }
    }

    pub(crate) fn pages(&self) -> usize {
        self.pages
    }

    /// Reads a page as the server wrote it.
    pub(crate) fn page(&mut self, page: &Value, bytes: usize) -> Next {
        self.pages += 1;
        self.bytes += bytes;
        let ttl = page.get("ttlMs").and_then(Value::as_u64).unwrap_or(0);
        self.ttl_ms = self.ttl_ms.min(ttl);
        self.is_public &= page.get("cacheScope").and_then(Value::as_str) == Some("public");
        let member = T::MEMBER;
        match page.get(member) {
            Some(Value::Array(items)) => {
                for item in items {
                    if self.items.len() >= self.limits.tools {
                        let limit = self.limits.tools;
                        return self.cut(&format!("more than {limit} {member}"));
                    }
                    self.item(item);
                }
            }
            _ => self.note(format!("page {} has no `{member}`", self.pages)),
        }
        let cursor = match page.get("nextCursor") {
            Some(Value::String(cursor)) => cursor.clone(),
            None | Some(Value::Null) => return Next::End,
            Some(_) => return self.cut("`nextCursor` is not a string"),
        };
        if self.pages >= self.limits.pages {
            let limit = self.limits.pages;
            return self.cut(&format!("more than {limit} pages"));
        }
        if self.bytes >= self.limits.list_bytes {
            let limit = crate::error::size(self.limits.list_bytes as u64);
            return self.cut(&format!("more than {limit}"));
        }
        if !self.cursors.insert(cursor.clone()) {
            return self.cut("`nextCursor` names a page that was read before");
        }
        Next::Page(cursor)
    }

    /// Ends the list early and keeps what was read.
    pub(crate) fn cut(&mut self, reason: &str) -> Next {
        self.note(format!("the rest of the list is left out: {reason}"));
        Next::End
    }

    pub(crate) fn finish(self) -> ServerList<T> {
        let ttl_ms = if self.pages == 0 { 0 } else { self.ttl_ms };
        ServerList {
            items: self.items,
            diagnostics: self.diagnostics,
            ttl: Duration::from_millis(ttl_ms),
            is_public: self.is_public && self.pages > 0,
        }
    }

    fn item(&mut self, value: &Value) {
        let item = match T::read(value) {
            Ok(item) => item,
            Err(reason) => {
                let index = self.items.len();
                let name = value.get("name").and_then(Value::as_str);
                let name = name.map(|name| format!(" `{}`", haft_core::cut(&visible(name))));
                let name = name.unwrap_or_default();
                let member = T::MEMBER;
                return self.note(format!(
                    "an item{name} of `{member}`, after {index} others, is left out: {reason}"
                ));
            }
        };
        // Pages are not consistent with each other: the first of two equal items is kept.
        if self.keys.insert(item.key().to_owned()) {
            self.items.push(item);
        }
    }

    fn note(&mut self, text: String) {
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            self.diagnostics.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offered::ResourceDef;
    use serde_json::json;

    fn uris(list: &ServerList<ResourceDef>) -> Vec<&str> {
        list.items.iter().map(|it| it.uri.as_str()).collect()
    }

    #[test]
    fn a_malformed_item_costs_only_itself() {
        let mut listing = ItemListing::<ResourceDef>::new(Limits::default());
        let page = json!({"resources": [
            {"uri": "a:1", "name": "one"}, 7, null, {"name": "no uri"}, {"uri": ["a:2"]},
            {"uri": "a:1", "name": "again"}, {"uri": "a:3", "name": 3, "mimeType": []},
        ], "ttlMs": 500});
        assert_eq!(listing.page(&page, 10), Next::End);
        let list = listing.finish();
        assert_eq!(uris(&list), ["a:1", "a:3"]);
        assert_eq!(list.diagnostics.len(), 4);
        assert_eq!(list.ttl, Duration::from_millis(500));
    }

    #[test]
    fn every_limit_ends_the_list_and_keeps_what_was_read() {
        let limits = Limits {
            pages: 3,
            tools: 5,
            list_bytes: 1000,
            ..Limits::default()
        };
        let endless = |items: usize, bytes: usize, cursor: fn(usize) -> String| {
            let mut listing = ItemListing::<ResourceDef>::new(limits);
            for page in 0.. {
                let items = (0..items).map(|item| json!({"uri": format!("a:{page}/{item}")}));
                let items: Vec<_> = items.collect();
                let page = json!({"resources": items, "nextCursor": cursor(page)});
                if listing.page(&page, bytes) == Next::End {
                    break;
                }
            }
            listing.finish()
        };
        let each = |page: usize| page.to_string();
        assert_eq!(endless(1, 1, each).items.len(), 3);
        assert_eq!(endless(3, 1, each).items.len(), 5);
        assert_eq!(endless(1, 600, each).items.len(), 2);
        assert_eq!(endless(1, 1, |_| "same".into()).items.len(), 2);
    }
}
