//! Patterns for names: `*` stands for any text, everything else for itself.

/// Whether a name fits a pattern.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        // No `*` at all.
        return rest.is_empty();
    };
    // The leftmost occurrence of each part leaves most for the others.
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Whether a pattern fits any name that begins with `prefix`.
pub(super) fn may_match_below(pattern: &str, prefix: &str) -> bool {
    match pattern.split_once('*') {
        Some((head, _)) => head.starts_with(prefix) || prefix.starts_with(head),
        None => pattern.starts_with(prefix),
    }
}

/// Whether a pattern fits every name that begins with `prefix`.
pub(super) fn covers_below(pattern: &str, prefix: &str) -> bool {
    // The `*` at the end takes whatever follows the prefix.
    pattern.ends_with('*') && matches(pattern, prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, is_match) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("", "", true),
            ("*", "", true),
            ("*", "anything", true),
            ("a*", "a", true),
            ("a*", "ba", false),
            ("*a", "ba", true),
            ("*a", "ab", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*__delete*", "tracker__delete_all", true),
            ("*__delete*", "tracker__read", false),
            ("a*b*c", "aXbYbc", true),
            ("a*b*c", "aXcYb", false),
            ("**", "x", true),
            ("☃*", "☃x", true),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_are_compared_with_all_names_of_a_server() {
        for (pattern, some, all) in [
            ("*", true, true),
            ("files__*", true, true),
            ("files*", true, true),
            ("f*", true, true),
            ("*__*", true, true),
            ("files__read*", true, false),
            ("files__read", true, false),
            ("*__delete*", true, false),
            ("mail__*", false, false),
            ("clock", false, false),
        ] {
            assert_eq!(may_match_below(pattern, "files__"), some, "{pattern}");
            assert_eq!(covers_below(pattern, "files__"), all, "{pattern}");
        }
    }
}
