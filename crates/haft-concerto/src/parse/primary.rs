//! Values: literals, names, brackets, closures.

use super::{Parsed, Parser};
use crate::ast::{Closure, Expr, ExprKind, MapKey, Param, StructLit, TextPiece};
use crate::lex::{Keyword, Punct, TokenKind};

impl Parser<'_> {
    /// Whether the word that is looked at can begin an expression.
    pub(super) fn expr_follows(&self) -> bool {
        match self.kind() {
            TokenKind::Ident
            | TokenKind::Int(_)
            | TokenKind::Float(_)
            | TokenKind::Str(_)
            | TokenKind::TextStart(_) => true,
            TokenKind::Keyword(keyword) => matches!(
                keyword,
                Keyword::If
                    | Keyword::Match
                    | Keyword::For
                    | Keyword::While
                    | Keyword::Loop
                    | Keyword::Try
                    | Keyword::Return
                    | Keyword::Break
                    | Keyword::Continue
                    | Keyword::Throw
                    | Keyword::Emit
                    | Keyword::Await
                    | Keyword::Listen
                    | Keyword::SelfWord
                    | Keyword::True
                    | Keyword::False
                    | Keyword::Nil
            ),
            TokenKind::Punct(punct) => matches!(
                punct,
                Punct::ParenOpen
                    | Punct::BracketOpen
                    | Punct::BraceOpen
                    | Punct::Minus
                    | Punct::Not
                    | Punct::Pipe
                    | Punct::OrOr
                    | Punct::DotDot
                    | Punct::DotDotEq
            ),
            TokenKind::TextMiddle(_) | TokenKind::TextEnd(_) | TokenKind::End => false,
        }
    }

    pub(super) fn primary(&mut self) -> Parsed<Expr> {
        let token = self.token();
        let kind = match token.kind {
            TokenKind::Int(value) => self.literal(ExprKind::Int(value)),
            TokenKind::Float(value) => self.literal(ExprKind::Float(value)),
            TokenKind::Str(text) => {
                let text = self.text(text);
                self.literal(ExprKind::Str(text))
            }
            TokenKind::TextStart(text) => self.interpolated(text)?,
            TokenKind::Ident => self.path_expr()?,
            TokenKind::Keyword(keyword) => self.keyword_expr(keyword)?,
            TokenKind::Punct(Punct::ParenOpen) => self.parens()?,
            TokenKind::Punct(Punct::BracketOpen) => {
                self.bump();
                let list = self.with_struct_literals(true, |parser| {
                    parser.list(Punct::BracketClose, Self::expr)
                })?;
                ExprKind::Array(list)
            }
            TokenKind::Punct(Punct::BraceOpen) if self.map_follows() => self.map()?,
            TokenKind::Punct(Punct::BraceOpen) => ExprKind::Block(Box::new(self.block()?)),
            TokenKind::Punct(Punct::Pipe | Punct::OrOr) => self.closure()?,
            _ => return Err(self.unexpected("an expression")),
        };
        Ok(Expr::new(kind, self.since(token.span)))
    }

    fn literal(&mut self, kind: ExprKind) -> ExprKind {
        self.bump();
        kind
    }

    fn keyword_expr(&mut self, keyword: Keyword) -> Parsed<ExprKind> {
        Ok(match keyword {
            Keyword::True => self.literal(ExprKind::Bool(true)),
            Keyword::False => self.literal(ExprKind::Bool(false)),
            Keyword::Nil => self.literal(ExprKind::Nil),
            Keyword::SelfWord | Keyword::Emit => {
                let name = self.name("a name")?;
                let path = self.path_after(name)?;
                ExprKind::Path(path)
            }
            Keyword::If => self.if_expr()?,
            Keyword::Match => self.match_expr()?,
            Keyword::For => self.for_expr()?,
            Keyword::While => self.while_expr()?,
            Keyword::Loop => self.loop_expr()?,
            Keyword::Try => self.try_expr()?,
            Keyword::Listen => self.listen_expr()?,
            Keyword::Return => {
                self.bump();
                ExprKind::Return(self.optional_value()?)
            }
            Keyword::Break => {
                self.bump();
                ExprKind::Break(self.optional_value()?)
            }
            Keyword::Continue => self.literal(ExprKind::Continue),
            Keyword::Throw => {
                self.bump();
                ExprKind::Throw(Box::new(self.expr()?))
            }
            Keyword::Fn => {
                let span = self.token().span;
                let text = "a function has no place in an expression";
                return Err(self.fail_with_help(span, text, "write a closure: `|x| x + 1`"));
            }
            _ => return Err(self.unexpected("an expression")),
        })
    }

    fn optional_value(&mut self) -> Parsed<Option<Box<Expr>>> {
        if !self.expr_follows() {
            return Ok(None);
        }
        Ok(Some(Box::new(self.expr()?)))
    }

    fn interpolated(&mut self, start: u32) -> Parsed<ExprKind> {
        let mut pieces = Vec::new();
        let mut text = start;
        loop {
            self.bump();
            let piece = self.text(text);
            if !piece.is_empty() {
                pieces.push(TextPiece::Text(piece));
            }
            pieces.push(TextPiece::Expr(self.free_expr()?));
            match self.kind() {
                TokenKind::TextMiddle(next) => text = next,
                TokenKind::TextEnd(last) => {
                    self.bump();
                    let piece = self.text(last);
                    if !piece.is_empty() {
                        pieces.push(TextPiece::Text(piece));
                    }
                    return Ok(ExprKind::Text(pieces));
                }
                _ => return Err(self.unexpected("`}` after an interpolated expression")),
            }
        }
    }

    fn path_expr(&mut self) -> Parsed<ExprKind> {
        let path = self.path("a name")?;
        if self.is(Punct::BraceOpen) {
            let fields = self.is_name(1) && self.is_ahead(2, Punct::Colon);
            let empty = self.struct_literals && self.is_ahead(1, Punct::BraceClose);
            if fields || empty {
                return self.struct_literal(path);
            }
        }
        if self.generic_call_follows() {
            let types = self.type_arguments()?;
            return Ok(ExprKind::Generic(path, types));
        }
        Ok(ExprKind::Path(path))
    }

    fn struct_literal(&mut self, path: crate::ast::Path) -> Parsed<ExprKind> {
        self.bump();
        let fields = self.with_struct_literals(true, |parser| {
            parser.list(Punct::BraceClose, |parser| {
                let name = parser.name("a field")?;
                parser.expect(Punct::Colon, "after the name of a field")?;
                Ok((name, parser.expr()?))
            })
        })?;
        Ok(ExprKind::Struct(Box::new(StructLit { path, fields })))
    }

    fn parens(&mut self) -> Parsed<ExprKind> {
        self.bump();
        self.with_struct_literals(true, |parser| {
            let mut list = Vec::new();
            let mut comma = false;
            while !parser.is(Punct::ParenClose) {
                list.push(parser.expr()?);
                comma = parser.take(Punct::Comma);
                if !comma {
                    break;
                }
            }
            parser.expect(Punct::ParenClose, "or `,`")?;
            if list.len() == 1 && !comma {
                return Ok(ExprKind::Paren(Box::new(list.remove(0))));
            }
            Ok(ExprKind::Tuple(list))
        })
    }

    /// Whether `{` opens a map: a string or a name and a colon follow.
    pub(super) fn map_follows(&self) -> bool {
        match self.ahead(1).kind {
            TokenKind::Str(_) | TokenKind::Ident | TokenKind::Keyword(_) => {
                self.is_ahead(2, Punct::Colon)
            }
            TokenKind::TextStart(_) => {
                let mut open = 0_usize;
                for (index, token) in self.tokens.iter().enumerate().skip(self.at + 1) {
                    match token.kind {
                        TokenKind::TextStart(_) => open += 1,
                        TokenKind::TextEnd(_) if open == 1 => {
                            return self.is_ahead(index + 1 - self.at, Punct::Colon);
                        }
                        TokenKind::TextEnd(_) => open -= 1,
                        _ => {}
                    }
                }
                false
            }
            _ => false,
        }
    }

    fn map(&mut self) -> Parsed<ExprKind> {
        self.bump();
        let entries = self.with_struct_literals(true, |parser| {
            parser.list(Punct::BraceClose, |parser| {
                let key = if parser.is_name(0) && parser.is_ahead(1, Punct::Colon) {
                    MapKey::Name(parser.name("a key")?)
                } else {
                    MapKey::Expr(parser.expr()?)
                };
                parser.expect(Punct::Colon, "after the key of a map")?;
                Ok((key, parser.expr()?))
            })
        })?;
        Ok(ExprKind::Map(entries))
    }

    fn closure(&mut self) -> Parsed<ExprKind> {
        let mut params = Vec::new();
        if !self.take(Punct::OrOr) {
            self.bump();
            params = self.list(Punct::Pipe, Self::closure_param)?;
        }
        let result = self.result_type()?;
        let body = self.expr()?;
        Ok(ExprKind::Closure(Box::new(Closure {
            params,
            result,
            body,
        })))
    }

    fn closure_param(&mut self) -> Parsed<Param> {
        let name = self.ident("the parameter of a closure")?;
        let ty = if self.take(Punct::Colon) {
            Some(self.ty()?)
        } else {
            None
        };
        Ok(Param {
            decorators: Vec::new(),
            name,
            ty,
            default: None,
        })
    }
}
