//! Whether a URI can come from a URI template (RFC 6570), which is all that routing needs.

/// The longest URI that is matched, in bytes.
const MAX_URI_BYTES: usize = 8 * 1024;

/// A URI template, ready to be matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UriTemplate {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// Text of an expression: bytes that are none of `not`, after `first` if there is one.
    Run {
        first: Option<u8>,
        not: &'static [u8],
        is_optional: bool,
    },
}

impl UriTemplate {
    /// Reads a template; none if it is malformed.
    pub(super) fn parse(template: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some((literal, expression)) = rest.split_once('{') {
            let (expression, after) = expression.split_once('}')?;
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            parts.push(Self::expression(expression)?);
            rest = after;
        }
        if rest.contains('}') {
            return None;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Some(Self { parts })
    }

    fn expression(text: &str) -> Option<Part> {
        let operator = text.chars().next()?;
        let names = text.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
        let is_name = |c: char| c.is_alphanumeric() || "_.%*:,-".contains(c);
        if names.is_empty() || !names.chars().all(is_name) {
            return None;
        }
        let run = |first: Option<u8>, not: &'static [u8]| Part::Run {
            first,
            not,
            is_optional: first.is_some(),
        };
        Some(match operator {
            '+' => run(None, b""),
            '#' => run(Some(b'#'), b""),
            '.' => run(Some(b'.'), b"/?#"),
            '/' => run(Some(b'/'), b"?#"),
            ';' => run(Some(b';'), b"/?#"),
            '?' => run(Some(b'?'), b"#"),
            '&' => run(Some(b'&'), b"#"),
            // Servers in the field use an exploded variable for a whole path.
            _ if names.contains('*') => run(None, b"?#"),
            _ => run(None, b"/?#&"),
        })
    }

    /// How many bytes of the template are fixed: of two templates that match, the one with more is meant.
    pub(super) fn literal_bytes(&self) -> usize {
        let lengths = self.parts.iter().map(|part| match part {
            Part::Literal(text) => text.len(),
            Part::Run { .. } => 0,
        });
        lengths.sum()
    }

    /// Whether the URI can come from the template.
    pub(super) fn matches(&self, uri: &str) -> bool {
        if uri.len() > MAX_URI_BYTES {
            return false;
        }
        let uri = uri.as_bytes();
        // The offsets up to which the parts so far can match: each part costs one pass.
        let mut reached = vec![false; uri.len() + 1];
        reached[0] = true;
        for part in &self.parts {
            let mut next = vec![false; uri.len() + 1];
            match part {
                Part::Literal(text) => {
                    for start in (0..=uri.len()).filter(|start| reached[*start]) {
                        if uri[start..].starts_with(text.as_bytes()) {
                            next[start + text.len()] = true;
                        }
                    }
                }
                Part::Run {
                    first,
                    not,
                    is_optional,
                } => {
                    let mut is_within = false;
                    for (offset, byte) in uri.iter().enumerate() {
                        let may_begin = reached[offset] && first.is_none_or(|it| it == *byte);
                        let is_first = may_begin && first.is_some();
                        is_within = is_first || ((is_within || may_begin) && !not.contains(byte));
                        next[offset + 1] = is_within;
                    }
                    if *is_optional {
                        for (next, reached) in next.iter_mut().zip(&reached) {
                            *next |= reached;
                        }
                    }
                }
            }
            reached = next;
        }
        reached[uri.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_match_the_templates_that_they_come_from() {
        for (template, uri, expected) in [
            ("test://template/{id}/data", "test://template/7/data", true),
            (
                "test://template/{id}/data",
                "test://template/7/8/data",
                false,
            ),
            ("test://template/{id}/data", "test://template//data", false),
            (
                "test://template/{id}/data",
                "test://template/7/data/",
                false,
            ),
            ("file:///{+path}", "file:///a/b/c.txt?x#y", true),
            ("file:///{path*}", "file:///a/b", true),
            ("file:///{path}", "file:///a/b", false),
            ("a:{x,y}", "a:1,2", true),
            ("a:{x}{?page,size}", "a:1", true),
            ("a:{x}{?page,size}", "a:1?page=2&size=3", true),
            ("a:{x}{?page,size}", "a:1&page=2", false),
            ("a:b{/path*}", "a:b/c/d", true),
            ("a:b{/path*}", "a:b", true),
            ("a:b{/path*}", "a:bc", false),
            ("a:b{.format}", "a:b.json", true),
            ("a:b{#part}", "a:b#c", true),
            ("a:b?x=1{&y}", "a:b?x=1&y=2", true),
            ("a:{x}-{y}", "a:1-2-3", true),
            ("a:b", "a:b", true),
            ("a:b", "a:c", false),
        ] {
            let parsed = UriTemplate::parse(template).unwrap();
            assert_eq!(parsed.matches(uri), expected, "{template} and {uri}");
        }
    }

    #[test]
    fn malformed_templates_are_refused_and_long_uris_match_nothing() {
        for template in ["a:{", "a:}", "a:{}", "a:{x", "a:{x}}", "a:{a b}", "a:{?}"] {
            assert_eq!(UriTemplate::parse(template), None, "{template}");
        }
        let any = UriTemplate::parse("a:{+x}{+y}{+z}").unwrap();
        assert!(any.matches(&format!("a:{}", "x".repeat(8_000))));
        assert!(!any.matches(&format!("a:{}", "x".repeat(10_000))));
    }

    #[test]
    fn the_more_exact_template_has_more_fixed_bytes() {
        let bytes = |template| UriTemplate::parse(template).unwrap().literal_bytes();
        assert!(bytes("test://a/{id}") > bytes("test://{+rest}"));
    }
}
