//! References inside one schema document.
//!
//! Close enough to how a validator resolves them to count what they lead to: pointers, anchors and
//! embedded resources by their `$id`. Base addresses are not joined; a reference matches an `$id`
//! that is equal to it or ends with it.

use serde_json::Value;

use crate::schema::subschemas;

/// The schema that a reference names inside the document `root`, if it can be followed.
///
/// ```
/// use haft_core::resolve_local_ref;
/// let root = serde_json::json!({"$defs": {"id": {"type": "integer"}}});
/// assert_eq!(resolve_local_ref(&root, "#/$defs/id"), root.pointer("/$defs/id"));
/// ```
pub fn resolve_local_ref<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let (resource, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let base = if resource.is_empty() {
        root
    } else {
        find(root, |schema| names(schema, resource))?
    };
    let fragment = percent_decoded(fragment);
    if fragment.is_empty() {
        Some(base)
    } else if fragment.starts_with('/') {
        base.pointer(&fragment)
    } else {
        let is_it = |schema: &Value| {
            let says = |keyword| schema.get(keyword).and_then(Value::as_str);
            says("$anchor") == Some(&fragment)
                || says("$dynamicAnchor") == Some(&fragment)
                // The older drafts' form of an anchor.
                || says("$id").and_then(|id| id.strip_prefix('#')) == Some(&fragment)
        };
        find(base, is_it).or_else(|| find(root, is_it))
    }
}

fn names(schema: &Value, resource: &str) -> bool {
    let Some(id) = schema.get("$id").and_then(Value::as_str) else {
        return false;
    };
    let id = id.trim_end_matches('#');
    let ends_with = |long: &str, short: &str| {
        long.strip_suffix(short.trim_start_matches("./"))
            .is_some_and(|before| before.is_empty() || before.ends_with(['/', ':']))
    };
    !id.is_empty() && (ends_with(id, resource) || ends_with(resource, id))
}

fn find(root: &Value, is_it: impl Fn(&Value) -> bool) -> Option<&Value> {
    let mut open = vec![root];
    while let Some(schema) = open.pop() {
        if is_it(schema) {
            return Some(schema);
        }
        subschemas(schema, |_, sub| open.push(sub));
    }
    None
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let escaped = (byte == b'%')
            .then(|| tail.get(..2))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(decoded) = escaped {
            bytes.push(decoded);
            rest = &tail[2..];
        } else {
            bytes.push(byte);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pointers_anchors_resources_and_the_root_are_found() {
        let root = json!({"$defs": {
            "a b": {"type": "null"},
            "c": {"$anchor": "here"},
            "d": {"$dynamicAnchor": "there"},
            "e": {"$id": "https://example.com/item", "$defs": {"f": {"const": 1}}}
        }});
        let at = |reference| resolve_local_ref(&root, reference);
        assert_eq!(at("#"), Some(&root));
        assert_eq!(at("#/$defs/a%20b"), Some(&json!({"type": "null"})));
        assert_eq!(at("#here"), Some(&json!({"$anchor": "here"})));
        assert_eq!(at("#there"), Some(&json!({"$dynamicAnchor": "there"})));
        assert_eq!(at("item#/$defs/f"), Some(&json!({"const": 1})));
        assert_eq!(at("https://example.com/item"), root.pointer("/$defs/e"));
        for nowhere in ["#/nothing", "other.json", "tem", "#/%", ""] {
            let found = at(nowhere);
            assert!(found.is_none() || nowhere.is_empty(), "{nowhere}");
        }
    }
}
