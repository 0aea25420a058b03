//! References inside one schema document.

use serde_json::Value;

/// The schema that a local `$ref` names: the root, a JSON pointer or an anchor.
pub(crate) fn resolve<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let fragment = reference.strip_prefix('#')?;
    if fragment.is_empty() {
        return Some(root);
    }
    let decoded = percent_decoded(fragment);
    if decoded.starts_with('/') {
        root.pointer(&decoded)
    } else {
        find_anchor(root, &decoded)
    }
}

fn find_anchor<'s>(root: &'s Value, anchor: &str) -> Option<&'s Value> {
    let mut open = vec![root];
    while let Some(schema) = open.pop() {
        if schema.get("$anchor").and_then(Value::as_str) == Some(anchor) {
            return Some(schema);
        }
        haft_core::subschemas(schema, |_, sub| open.push(sub));
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
    fn pointers_anchors_and_the_root_are_found() {
        let root = json!({"$defs": {"a b": {"type": "null"}, "c": {"$anchor": "here"}}});
        assert_eq!(resolve(&root, "#"), Some(&root));
        assert_eq!(
            resolve(&root, "#/$defs/a%20b"),
            Some(&json!({"type": "null"}))
        );
        assert_eq!(resolve(&root, "#here"), Some(&json!({"$anchor": "here"})));
        assert_eq!(resolve(&root, "#/nothing"), None);
        assert_eq!(resolve(&root, "other.json"), None);
        assert_eq!(resolve(&root, "#/%"), None);
    }
}
