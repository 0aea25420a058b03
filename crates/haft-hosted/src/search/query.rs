//! What a model looks for, in words that the index understands.
//!
//! Every word is put into quotation marks, so nothing in it means anything to the index but itself:
//! no text is a syntax error, and no text reaches another column, table or function.

/// So many words and phrases count; a longer query would find nothing more.
const MAX_TERMS: usize = 32;

/// Words and phrases that are wanted, and others that are not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    wanted: Vec<String>,
    unwanted: Vec<String>,
}

impl Query {
    /// Reads `word`, `"some words"`, `begin*` and `-unwanted`.
    pub(super) fn read(text: &str) -> Self {
        let mut query = Self::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() && query.wanted.len() + query.unwanted.len() < MAX_TERMS {
            let is_unwanted = rest.starts_with('-');
            rest = rest.trim_start_matches('-');
            let (term, behind) = if let Some(phrase) = rest.strip_prefix('"') {
                // A phrase that is not closed goes to the end.
                phrase.split_once('"').unwrap_or((phrase, ""))
            } else {
                let end = rest.find(|c: char| c.is_whitespace() || c == '"');
                rest.split_at(end.unwrap_or(rest.len()))
            };
            let is_prefix = term.ends_with('*') || behind.starts_with('*');
            rest = behind.trim_start_matches('*').trim_start();
            let Some(term) = quoted(term, is_prefix) else {
                continue;
            };
            if is_unwanted {
                query.unwanted.push(term);
            } else {
                query.wanted.push(term);
            }
        }
        query
    }

    /// Whether there is nothing to look for.
    pub(super) fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Passages with all of it.
    pub(super) fn all(&self) -> String {
        self.expression(" AND ")
    }

    /// Passages with any of it, where that is something else.
    pub(super) fn any(&self) -> Option<String> {
        (self.wanted.len() > 1).then(|| self.expression(" OR "))
    }

    fn expression(&self, operator: &str) -> String {
        let wanted = self.wanted.join(operator);
        if self.unwanted.is_empty() {
            return wanted;
        }
        format!("({wanted}) NOT ({})", self.unwanted.join(" OR "))
    }
}

/// A word or phrase as the index reads it; none if there is no letter or digit in it.
fn quoted(term: &str, is_prefix: bool) -> Option<String> {
    if !term.contains(char::is_alphanumeric) {
        return None;
    }
    let clean: String = term
        .chars()
        .map(|c| if c == '"' || c.is_control() { ' ' } else { c })
        .collect();
    let star = if is_prefix { " *" } else { "" };
    Some(format!("\"{clean}\"{star}"))
}

#[cfg(test)]
mod tests {
    use super::Query;

    fn all(text: &str) -> String {
        Query::read(text).all()
    }

    #[test]
    fn words_phrases_beginnings_and_exclusions_are_told_apart() {
        assert_eq!(all("one  two"), r#""one" AND "two""#);
        assert_eq!(all(r#""one two" three"#), r#""one two" AND "three""#);
        assert_eq!(all("con* -fig"), r#"("con*" *) NOT ("fig")"#);
        assert_eq!(all(r#"a -"b c" -d*"#), r#"("a") NOT ("b c" OR "d*" *)"#);
        assert_eq!(all(r#""a b"* c"#), r#""a b" * AND "c""#);
        assert_eq!(all("well-known"), r#""well-known""#);
    }

    #[test]
    fn nothing_in_a_word_means_anything_to_the_index() {
        assert_eq!(all("a OR b"), r#""a" AND "OR" AND "b""#);
        assert_eq!(all("path:x"), r#""path:x""#);
        assert_eq!(all("a\"b\0c"), "\"a\" AND \"b c\"");
        assert_eq!(all("NEAR(a, 2)"), r#""NEAR(a," AND "2)""#);
    }

    #[test]
    fn a_query_without_words_is_empty() {
        for text in ["", "  ", "-", "\"\"", "*", "-foo", "--- *** \"", "!?"] {
            assert!(Query::read(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_long_query_is_cut() {
        let query = Query::read(&"a ".repeat(100));
        assert_eq!(query.wanted.len(), 32);
    }
}
