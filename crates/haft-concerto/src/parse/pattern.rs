//! Patterns.

use super::{Parsed, Parser};
use crate::ast::{Expr, ExprKind, Name, Path, Pattern, PatternKind, PrefixOp, RestPattern};
use crate::lex::{Keyword, Punct, TokenKind};

impl Parser<'_> {
    pub(super) fn pattern(&mut self) -> Parsed<Pattern> {
        self.deeper(|parser| {
            let first = parser.single_pattern()?;
            if !parser.is(Punct::Pipe) {
                return Ok(first);
            }
            let start = first.span;
            let mut options = vec![first];
            while parser.take(Punct::Pipe) {
                options.push(parser.single_pattern()?);
            }
            let span = parser.since(start);
            let kind = PatternKind::Or(options);
            Ok(Pattern { kind, span })
        })
    }

    fn single_pattern(&mut self) -> Parsed<Pattern> {
        let start = self.token().span;
        let kind = match self.kind() {
            TokenKind::Ident => self.named_pattern()?,
            TokenKind::Punct(Punct::ParenOpen) => {
                self.bump();
                let mut parts = self.list(Punct::ParenClose, Self::pattern)?;
                match parts.len() {
                    // Brackets around one pattern only hold it together.
                    1 => parts.remove(0).kind,
                    _ => PatternKind::Tuple(parts),
                }
            }
            TokenKind::Punct(Punct::BracketOpen) => {
                self.bump();
                self.array_pattern()?
            }
            _ => self.literal_pattern()?,
        };
        let span = self.since(start);
        Ok(Pattern { kind, span })
    }

    fn named_pattern(&mut self) -> Parsed<PatternKind> {
        let path = self.path("a pattern")?;
        if self.take(Punct::ParenOpen) {
            let parts = self.list(Punct::ParenClose, Self::pattern)?;
            return Ok(PatternKind::Call(path, parts));
        }
        if self.is(Punct::BraceOpen) && self.field_pattern_follows() {
            self.bump();
            return self.struct_pattern(path);
        }
        let Some(name) = path.single() else {
            return Ok(PatternKind::Path(path));
        };
        if self.take(Punct::At) {
            let name = name.clone();
            let inner = self.deeper(Self::single_pattern)?;
            return Ok(PatternKind::At(name, Box::new(inner)));
        }
        Ok(match name.text.as_str() {
            "_" => PatternKind::Wildcard,
            "None" => PatternKind::Path(path),
            _ => PatternKind::Binding(name.clone()),
        })
    }

    /// Whether `{` opens a pattern and not the body of a `for`: a pattern is followed by `=>`, `if`,
    /// `in`, `=` and the like, and what is in it are fields.
    fn field_pattern_follows(&self) -> bool {
        self.is_ahead(1, Punct::BraceClose)
            || self.is_ahead(1, Punct::DotDot)
            || (self.is_name(1)
                && [Punct::Colon, Punct::Comma, Punct::BraceClose]
                    .into_iter()
                    .any(|punct| self.is_ahead(2, punct)))
    }

    fn struct_pattern(&mut self, path: Path) -> Parsed<PatternKind> {
        let mut fields: Vec<(Name, Option<Pattern>)> = Vec::new();
        let mut rest = false;
        while !self.is(Punct::BraceClose) {
            if self.take(Punct::DotDot) {
                rest = true;
                break;
            }
            let name = self.name("a field")?;
            let pattern = if self.take(Punct::Colon) {
                Some(self.pattern()?)
            } else {
                None
            };
            fields.push((name, pattern));
            if !self.take(Punct::Comma) {
                break;
            }
        }
        self.expect(Punct::BraceClose, "or `,`")?;
        Ok(PatternKind::Struct { path, fields, rest })
    }

    fn array_pattern(&mut self) -> Parsed<PatternKind> {
        let mut parts = Vec::new();
        let mut rest = None;
        while !self.is(Punct::BracketClose) {
            if self.take(Punct::DotDot) {
                let name = match self.kind() {
                    TokenKind::Ident => Some(self.ident("a name")?),
                    _ => None,
                };
                rest = Some(RestPattern { name });
                self.take(Punct::Comma);
                break;
            }
            parts.push(self.pattern()?);
            if !self.take(Punct::Comma) {
                break;
            }
        }
        self.expect(Punct::BracketClose, "or `,`; `..` stands last")?;
        Ok(PatternKind::Array(parts, rest))
    }

    fn literal_pattern(&mut self) -> Parsed<PatternKind> {
        let start = Box::new(self.pattern_literal()?);
        let inclusive = self.is(Punct::DotDotEq);
        if !inclusive && !self.is(Punct::DotDot) {
            return Ok(PatternKind::Literal(start));
        }
        self.bump();
        let end = Box::new(self.pattern_literal()?);
        for side in [&start, &end] {
            if !is_number(side) {
                return Err(self.fail(side.span, "the ends of a range pattern are numbers"));
            }
        }
        Ok(PatternKind::Range {
            start,
            end,
            inclusive,
        })
    }

    fn pattern_literal(&mut self) -> Parsed<Expr> {
        let token = self.token();
        let kind = match token.kind {
            TokenKind::Punct(Punct::Minus) => {
                self.bump();
                let number = self.pattern_number()?;
                ExprKind::Prefix(vec![PrefixOp::Neg], Box::new(number))
            }
            TokenKind::Int(_) | TokenKind::Float(_) => return self.pattern_number(),
            TokenKind::Str(text) => {
                self.bump();
                ExprKind::Str(self.text(text))
            }
            TokenKind::Keyword(Keyword::True) => self.bumped(ExprKind::Bool(true)),
            TokenKind::Keyword(Keyword::False) => self.bumped(ExprKind::Bool(false)),
            TokenKind::Keyword(Keyword::Nil) => self.bumped(ExprKind::Nil),
            TokenKind::TextStart(_) => {
                let text = "a pattern is no interpolated string";
                let help = "bind a name and compare it: `x if x == \"…\" => …`";
                return Err(self.fail_with_help(token.span, text, help));
            }
            _ => return Err(self.unexpected("a pattern")),
        };
        Ok(Expr::new(kind, self.since(token.span)))
    }

    fn bumped(&mut self, kind: ExprKind) -> ExprKind {
        self.bump();
        kind
    }

    fn pattern_number(&mut self) -> Parsed<Expr> {
        let token = self.token();
        let kind = match token.kind {
            TokenKind::Int(value) => ExprKind::Int(value),
            TokenKind::Float(value) => ExprKind::Float(value),
            _ => return Err(self.unexpected("a number")),
        };
        self.bump();
        Ok(Expr::new(kind, token.span))
    }
}

fn is_number(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Int(_) | ExprKind::Float(_) => true,
        ExprKind::Prefix(_, inner) => is_number(inner),
        _ => false,
    }
}
