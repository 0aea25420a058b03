//! Texts with placeholders.
//!
//! A text is taken apart once, when the prompt is built: dedented, stripped, and cut into literal
//! parts and names. What is put in later is never looked at again, so a parameter cannot bring
//! placeholders of its own.

use std::fmt;

use super::error::TemplateError;
use super::params::Params;

/// A text, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Name(String),
}

/// A text as its author gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// With placeholders.
    Template(String),
    /// To be shown as it is: what a server says of itself is no template.
    Literal(String),
}

impl Template {
    /// Takes a text apart.
    pub(super) fn new(source: &Source) -> Result<Self, TemplateError> {
        match source {
            Source::Template(text) => {
                let left_out = text.lines().take_while(|line| line.trim().is_empty());
                parts(&dedented(text), left_out.count()).map(Self)
            }
            Source::Literal(text) => {
                let text = dedented(text);
                Ok(Self(if text.is_empty() {
                    Vec::new()
                } else {
                    vec![Part::Text(text)]
                }))
            }
        }
    }

    /// Whether there is nothing in it, and never will be.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of its placeholders, as often as they occur.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Name(name) => Some(name.as_str()),
        })
    }

    /// The text with everything put in; the name for which there is nothing otherwise.
    pub(super) fn fill(&self, params: &Params) -> Result<String, &str> {
        let mut text = String::new();
        for part in &self.0 {
            text.push_str(match part {
                Part::Text(part) => part,
                Part::Name(name) => params.get(name).ok_or(name.as_str())?,
            });
        }
        Ok(text.trim().to_owned())
    }
}

/// A text without the indentation that all its lines share, and without blanks around it. Lines
/// of nothing but blanks become empty and do not count; line ends become `\n`.
fn dedented(text: &str) -> String {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let indentation = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let margin = lines()
        .map(|line| &line[..indentation(line)])
        .reduce(common_prefix)
        .map_or(0, str::len);
    let mut dedented = String::with_capacity(text.len());
    for line in text.lines() {
        if !line.trim().is_empty() {
            // The margin is a prefix of every such line, and of blanks and tabs only.
            dedented.push_str(&line[margin..]);
        }
        dedented.push('\n');
    }
    dedented.trim().to_owned()
}

/// What two indentations, of one-byte characters only, begin with alike.
fn common_prefix<'a>(one: &'a str, other: &'a str) -> &'a str {
    let alike = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
    &one[..alike.count()]
}

/// Cuts a text of which so many lines were left out before it.
fn parts(text: &str, left_out: usize) -> Result<Vec<Part>, TemplateError> {
    let mut parts = Parts::default();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        parts.text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let line = || 1 + left_out + text[..text.len() - after.len()].matches('\n').count();
        rest = if let Some(after) = after.strip_prefix('$') {
            parts.text.push('$');
            after
        } else if let Some(braced) = after.strip_prefix('{') {
            let name = leading_name(braced);
            let closed = braced[name.len()..].strip_prefix('}');
            match closed {
                Some(after) if !name.is_empty() => {
                    parts.name(name);
                    after
                }
                _ => return Err(TemplateError::new(line(), &format!("${after}"))),
            }
        } else {
            let name = leading_name(after);
            if name.is_empty() {
                return Err(TemplateError::new(line(), &format!("${after}")));
            }
            parts.name(name);
            &after[name.len()..]
        };
    }
    parts.text.push_str(rest);
    Ok(parts.finished())
}

/// The name that a text begins with; empty if there is none.
fn leading_name(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let name = &text[..end.unwrap_or(text.len())];
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        ""
    } else {
        name
    }
}

/// Parts on their way, neighbouring texts in one.
#[derive(Default)]
struct Parts {
    done: Vec<Part>,
    text: String,
}

impl Parts {
    fn name(&mut self, name: &str) {
        self.end_text();
        self.done.push(Part::Name(name.to_owned()));
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.done.push(Part::Text(std::mem::take(&mut self.text)));
        }
    }

    fn finished(mut self) -> Vec<Part> {
        self.end_text();
        self.done
    }
}

/// Which of a section's texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPart {
    /// The body.
    Body,
    /// The summary.
    Summary,
}

impl fmt::Display for TextPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Body => "body",
            Self::Summary => "summary",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, params: &[(&str, &str)]) -> String {
        let template = Template::new(&Source::Template(text.into())).unwrap();
        let params: Params = params.iter().copied().collect();
        template.fill(&params).unwrap()
    }

    fn refused(text: &str) -> String {
        let refused = Template::new(&Source::Template(text.into()));
        refused.unwrap_err().to_string()
    }

    #[test]
    fn names_are_filled_with_and_without_braces() {
        let params = [("who", "you"), ("_2", "two"), ("A", "b")];
        assert_eq!(
            filled("$who, ${who}s, $_2.$A$A", &params),
            "you, yous, two.bb"
        );
    }

    #[test]
    fn two_dollars_are_one() {
        assert_eq!(filled("$$5 $$who $$$$", &[]), "$5 $who $$");
        assert_eq!(filled("$$$who", &[("who", "you")]), "$you");
    }

    #[test]
    fn what_is_put_in_is_not_looked_at_again() {
        let params = [("a", "$b ${b} $$"), ("b", "no")];
        assert_eq!(filled("<$a>", &params), "<$b ${b} $$>");
    }

    #[test]
    fn a_name_ends_at_the_first_other_character() {
        assert_eq!(filled("$who-$who.é$who", &[("who", "x")]), "x-x.éx");
    }

    #[test]
    fn a_dollar_that_means_nothing_is_refused_with_its_line() {
        for bad in [
            "$", "$5", "a$ b", "${", "${}", "${a", "${a b}", "${a.b}", "$é", "$-",
        ] {
            assert!(
                refused(bad).ends_with("write `$$` for a dollar sign"),
                "{bad}"
            );
        }
        assert_eq!(
            refused("\n \n   one\n\n  costs $5 now"),
            "line 5: `$5 now` is no placeholder: write `$name` or `${name}`, or write `$$` for a \
             dollar sign"
        );
    }

    #[test]
    fn the_name_that_is_missing_is_told() {
        let template = Template::new(&Source::Template("$a $b $a".into())).unwrap();
        assert_eq!(template.fill(&Params::new().with("a", "1")), Err("b"));
        assert_eq!(template.names().collect::<Vec<_>>(), ["a", "b", "a"]);
    }

    #[test]
    fn the_indentation_that_all_lines_share_goes() {
        let text = "\n    One.\n\n      Two.\n   \t \n    Three.\n  ";
        assert_eq!(filled(text, &[]), "One.\n\n  Two.\n\nThree.");
    }

    #[test]
    fn tabs_and_blanks_are_different_indentations() {
        assert_eq!(filled("- a\n\tb\n  c", &[]), "- a\n\tb\n  c");
        assert_eq!(filled("-\n\t\ta\n\t b", &[]), "-\n\t\ta\n\t b");
        assert_eq!(filled("\n\t\ta\n\t b", &[]), "a\n b");
    }

    #[test]
    fn line_ends_are_the_same_everywhere() {
        assert_eq!(filled("  a\r\n\r\n  b\r\n", &[]), "a\n\nb");
    }

    #[test]
    fn a_text_that_is_put_in_keeps_its_own_indentation() {
        let params = [("list", "x\n  y")];
        assert_eq!(filled("\n    Has:\n    $list\n", &params), "Has:\nx\n  y");
    }

    #[test]
    fn nothing_stands_around_a_filled_text() {
        assert_eq!(filled("$a text $b", &[("a", "\n"), ("b", "\n\n")]), "text");
        assert_eq!(filled("$a", &[("a", "")]), "");
    }

    #[test]
    fn a_literal_has_no_placeholders() {
        let literal = Template::new(&Source::Literal("  $5 ${x $$ ".into())).unwrap();
        assert_eq!(literal.fill(&Params::new()).unwrap(), "$5 ${x $$");
        assert_eq!(literal.names().count(), 0);
    }
}
