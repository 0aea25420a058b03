//! Regular expressions of schemas: how large they are, whether they backtrack, and what a match costs.
//!
//! Patterns come from strangers. The `regex` crate matches in time linear in the text, so it is used
//! wherever a pattern allows. Look-around and back-references need the backtracking engine, whose work
//! between two backtracks is bounded by the size of the pattern times the length of the text, and whose
//! number of backtracks is bounded by a limit. A match is therefore tried under growing limits, and
//! charged with the limit under which it finishes.

use std::sync::OnceLock;

use fancy_regex::{Expr, RuntimeError};
use haft_core::{SchemaError, caught};
use regex_syntax::hir::{Class, Hir, HirKind};

/// The longest pattern, in bytes.
const MAX_LENGTH: usize = 16 * 1024;

/// How large a pattern may be that backtracks, with its repetitions written out.
const MAX_BACKTRACKING_SIZE: u64 = 4_096;

/// What the translation of one pattern to Rust's syntax may cost, in bytes parsed: it parses the whole
/// pattern anew for every class such as `\d`.
const MAX_TRANSLATION: u64 = 2_000_000;

/// How often a pattern may backtrack on one text: tried one after the other.
const BACKTRACK_LIMITS: [usize; 4] = [16, 128, 1_024, 8_192];

/// The most that a pattern may backtrack before it counts as not matching.
pub(crate) const BACKTRACK_LIMIT: usize = BACKTRACK_LIMITS[BACKTRACK_LIMITS.len() - 1];

/// The most memory that one compiled regular expression may take.
pub(crate) const PATTERN_BYTES: usize = 1024 * 1024;

/// What each regular expression costs to compile, however small it is, in microseconds.
const COMPILE_BASE: u64 = 500;

/// A pattern that was looked at before anything compiles it.
pub(crate) struct Pattern {
    translated: String,
    /// How many steps it takes to walk through it once, repetitions written out.
    size: u64,
    /// Whether the backtracking engine runs it step by step.
    backtracks: bool,
    /// Whether it has look-around or back-references, which the `regex` crate does not have.
    needs_backtracking: bool,
    /// What translating it costs, in bytes parsed.
    translation: u64,
    /// Compiled under each limit, once it is needed.
    limited: [OnceLock<Option<fancy_regex::Regex>>; BACKTRACK_LIMITS.len()],
}

impl Pattern {
    /// Looks at a pattern; refuses one that is too large, or that has more than ECMA-262 has.
    pub(crate) fn new(pattern: &str) -> Result<Self, SchemaError> {
        let translation = translation_cost(pattern);
        if pattern.len() > MAX_LENGTH || translation > MAX_TRANSLATION {
            return Err(refused(pattern, "it is too long"));
        }
        let invalid = || refused(pattern, "it is no regular expression");
        let translated = jsonschema_regex::to_rust_regex(pattern).map_err(|()| invalid())?;
        // The parser is the engine's own, so what is counted is what will run.
        let parsed = caught(|| Expr::parse_tree(&translated).ok());
        let tree = parsed.ok().flatten().ok_or_else(invalid)?;
        let mut shape = Shape::default();
        let size = shape
            .visit(&tree.expr)
            .ok_or_else(|| refused(pattern, "it uses syntax that ECMA-262 does not have"))?;
        let size = if shape.needs_backtracking {
            if size > MAX_BACKTRACKING_SIZE {
                let reason = "it is too large for a pattern with look-around or back-references";
                return Err(refused(pattern, reason));
            }
            size
        } else {
            // The two engines read some patterns differently, `a{9}{9}` for one.
            let parsed = caught(|| regex_syntax::parse(&translated).ok());
            let hir = parsed.ok().flatten().ok_or_else(invalid)?;
            size.max(linear_size(&hir))
        };
        Ok(Self {
            translated: translated.into_owned(),
            size,
            backtracks: shape.is_hard,
            needs_backtracking: shape.needs_backtracking,
            translation,
            limited: Default::default(),
        })
    }

    /// Whether only the backtracking engine takes it.
    pub(crate) fn needs_backtracking(&self) -> bool {
        self.needs_backtracking
    }

    /// How many steps it takes to walk through it once.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// What compiling it costs, in microseconds at worst.
    pub(crate) fn compile_cost(&self) -> u64 {
        COMPILE_BASE + self.translation / 32 + self.size.saturating_mul(4)
    }

    /// What a match costs at worst without backtracking: every state at every byte.
    fn linear_cost(&self, text: &str) -> u64 {
        as_u64(text.len() + 1).saturating_mul(self.size)
    }

    /// What matching `text` costs at worst, where at most `budget` may be spent. `is_backtracking` says
    /// which engine the schema is compiled for.
    pub(crate) fn match_cost(
        &self,
        text: &str,
        budget: u64,
        is_backtracking: bool,
    ) -> Result<u64, TooCostly> {
        let once = self.linear_cost(text);
        if !(is_backtracking && self.backtracks) {
            return if once > budget {
                Err(TooCostly::Size)
            } else {
                Ok(once)
            };
        }
        let mut spent = 0_u64;
        for (limit, compiled) in BACKTRACK_LIMITS.iter().zip(&self.limited) {
            let cost = once.saturating_mul(as_u64(*limit));
            spent = spent.saturating_add(cost);
            if spent > budget {
                return Err(if *limit == BACKTRACK_LIMITS[0] {
                    TooCostly::Size
                } else {
                    TooCostly::Backtracking
                });
            }
            let regex = compiled.get_or_init(|| compile(&self.translated, *limit));
            let Some(regex) = regex else {
                return Err(TooCostly::Backtracking);
            };
            match caught(|| regex.is_match(text)) {
                Ok(Ok(_)) => return Ok(spent),
                Ok(Err(fancy_regex::Error::RuntimeError(RuntimeError::BacktrackLimitExceeded))) => {
                }
                Ok(Err(_)) | Err(_) => return Err(TooCostly::Backtracking),
            }
        }
        Err(TooCostly::Backtracking)
    }
}

/// Why a value is not validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooCostly {
    /// The value is too large or too deeply nested for this schema.
    Size,
    /// A pattern of the schema backtracks too much over it.
    Backtracking,
}

fn compile(translated: &str, limit: usize) -> Option<fancy_regex::Regex> {
    fancy_regex::RegexBuilder::new(translated)
        .backtrack_limit(limit)
        .delegate_size_limit(PATTERN_BYTES)
        .delegate_dfa_size_limit(PATTERN_BYTES)
        .build()
        .ok()
}

/// What is known of a pattern's syntax tree.
#[derive(Default)]
struct Shape {
    is_hard: bool,
    needs_backtracking: bool,
}

impl Shape {
    /// The size of an expression; none if it has no business in a schema.
    fn visit(&mut self, expr: &Expr) -> Option<u64> {
        let mut children = 0_u64;
        for child in expr.children_iter() {
            children = children.saturating_add(self.visit(child)?);
        }
        let own = match expr {
            Expr::Empty | Expr::Concat(_) | Expr::Alt(_) | Expr::Group(_) => 1,
            Expr::Any { .. } => 4,
            Expr::Assertion(assertion) => {
                // A word boundary: the backtracking engine runs such a pattern by itself.
                self.is_hard |= !matches!(
                    assertion,
                    fancy_regex::Assertion::StartText | fancy_regex::Assertion::EndText
                );
                2
            }
            Expr::GeneralNewline { .. } => {
                self.is_hard = true;
                4
            }
            Expr::Literal { val, .. } => as_u64(val.len()),
            Expr::Delegate { inner, .. } => class_size(inner),
            Expr::LookAround(..) | Expr::Backref { .. } => {
                self.is_hard = true;
                self.needs_backtracking = true;
                2
            }
            // Possessive repetition, as the backtracking engine reads `a++`.
            Expr::AtomicGroup(_) => {
                self.is_hard = true;
                2
            }
            Expr::Repeat { lo, hi, .. } => {
                let times = if *hi == usize::MAX {
                    lo.saturating_add(1)
                } else {
                    (*hi).max(1)
                };
                return Some(children.saturating_add(1).saturating_mul(as_u64(times)));
            }
            // Subroutines, conditions, verbs and the like: no other implementation of JSON Schema has them.
            _ => return None,
        };
        Some(children.saturating_add(own))
    }
}

/// How many states the engine without backtracking has for an expression.
fn linear_size(hir: &Hir) -> u64 {
    let sum = |parts: &[Hir]| {
        let sizes = parts.iter().map(linear_size);
        sizes.fold(1, u64::saturating_add)
    };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => as_u64(literal.0.len()),
        HirKind::Class(class) => match class {
            Class::Unicode(class) => as_u64(class.ranges().len()),
            Class::Bytes(class) => as_u64(class.ranges().len()),
        },
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1));
            let once = linear_size(&repetition.sub).saturating_add(1);
            once.saturating_mul(u64::from(times.max(1)))
        }
        HirKind::Capture(capture) => linear_size(&capture.sub).saturating_add(1),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

/// About how many states one character class takes.
fn class_size(class: &str) -> u64 {
    let is_unicode = class.contains(r"\p") || class.contains(r"\P");
    let is_negated = class.starts_with("[^");
    let base = if is_unicode {
        400
    } else if is_negated {
        16
    } else {
        1
    };
    base + as_u64(class.len() / 16)
}

/// How many bytes are parsed while a pattern is translated: all of it for each class that is replaced.
fn translation_cost(pattern: &str) -> u64 {
    let mut passes = 1_u64;
    let mut length = as_u64(pattern.len());
    let mut is_escaped = false;
    for byte in pattern.bytes() {
        if is_escaped {
            let growth = match byte {
                b'd' | b'D' => 6,
                b'w' | b'W' => 16,
                b's' | b'S' => 200,
                b'c' => 1,
                _ => 0,
            };
            passes += u64::from(growth > 0);
            length += growth;
        }
        is_escaped = byte == b'\\' && !is_escaped;
    }
    passes.saturating_mul(length)
}

fn refused(pattern: &str, reason: &str) -> SchemaError {
    let shown: String = pattern.chars().take(64).collect();
    SchemaError {
        reason: format!("the pattern `{shown}` cannot be used: {reason}"),
    }
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(pattern: &str) -> Pattern {
        Pattern::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"))
    }

    #[test]
    fn only_look_around_and_back_references_need_backtracking() {
        for linear in [
            "^[a-z]+$",
            r"\bword\b",
            "(a+)+b",
            "(?<year>[0-9]{4})",
            "a++b",
            r"^data:image/(png|jpeg);base64,[A-Za-z0-9+/=]+$",
        ] {
            assert!(!pattern(linear).needs_backtracking(), "{linear}");
        }
        for backtracking in ["(?=a)", "(?!a)b", "(?<=a)b", "(?<!a)b", r"(a+)\1"] {
            assert!(pattern(backtracking).needs_backtracking(), "{backtracking}");
        }
    }

    #[test]
    fn repetitions_are_written_out_in_the_size() {
        assert!(pattern("a{1000}").size() >= 1_000);
        assert!(pattern("(a{100}b{100}){100}").size() >= 20_000);
        assert!(pattern(r"\p{L}{100}").size() >= 20_000);
        assert!(pattern("[ab]{30}{30}").size() >= 900);
        assert!(pattern("^[a-z]+$").size() < 20);
    }

    #[test]
    fn patterns_that_cost_too_much_to_compile_are_refused() {
        for (name, refused) in [
            ("long", "a".repeat(MAX_LENGTH + 1)),
            ("many classes", r"\d".repeat(4_000)),
            ("look-around repeated", "(?:(?=a)){1000}{1000}{1000}".into()),
            ("subroutine", r"(?=a)(b)\g<1>".into()),
            ("condition", "(?=a)(b)?(?(1)c|d)".into()),
            ("unbalanced", "(".into()),
        ] {
            assert!(Pattern::new(&refused).is_err(), "{name}");
        }
    }

    #[test]
    fn ordinary_look_ahead_finishes_under_the_first_limit() {
        // The pattern that zod writes for an email address.
        let email = pattern(
            r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$",
        );
        for text in ["ada.lovelace@example.org", "no address", ""] {
            let cost = email.match_cost(text, u64::MAX, true).unwrap();
            assert_eq!(cost, 16 * email.linear_cost(text), "{text}");
        }
    }

    #[test]
    fn a_match_that_explodes_is_too_costly_and_is_charged_before_it_runs() {
        let evil = pattern("^(?:(?=a)a|(?=a)aa)+$");
        let text = format!("{}b", "a".repeat(40));
        assert_eq!(
            evil.match_cost(&text, u64::MAX, true),
            Err(TooCostly::Backtracking)
        );
        assert_eq!(evil.match_cost(&text, 10, true), Err(TooCostly::Size));
        // The linear engine does not care.
        let cost = evil.match_cost(&text, u64::MAX, false);
        assert_eq!(cost, Ok(evil.linear_cost(&text)));
    }
}
