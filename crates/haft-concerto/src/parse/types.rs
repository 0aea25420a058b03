//! Types.

use super::{Parsed, Parser};
use crate::ast::{Type, TypeKind};
use crate::lex::{Keyword, Punct, TokenKind};

/// How many words are looked ahead to find out whether `<` begins types.
const LOOKAHEAD: usize = 64;

impl Parser<'_> {
    pub(super) fn ty(&mut self) -> Parsed<Type> {
        self.deeper(Self::type_inner)
    }

    fn type_inner(&mut self) -> Parsed<Type> {
        let start = self.token().span;
        let kind = match self.kind() {
            TokenKind::Str(text) => {
                self.bump();
                let mut options = vec![self.text(text)];
                while let (true, TokenKind::Str(text)) = (self.is(Punct::Pipe), self.ahead(1).kind)
                {
                    self.bump();
                    self.bump();
                    options.push(self.text(text));
                }
                TypeKind::Union(options)
            }
            TokenKind::Punct(Punct::ParenOpen) => {
                self.bump();
                TypeKind::Tuple(self.list(Punct::ParenClose, Self::ty)?)
            }
            TokenKind::Keyword(Keyword::Fn) => {
                self.bump();
                self.expect(Punct::ParenOpen, "after `fn`")?;
                let parameters = self.list(Punct::ParenClose, Self::ty)?;
                let result = self.result_type()?.map(Box::new);
                TypeKind::Function { parameters, result }
            }
            _ => {
                let path = self.path("a type")?;
                let arguments = self.type_arguments()?;
                TypeKind::Named { path, arguments }
            }
        };
        let span = self.since(start);
        Ok(Type { kind, span })
    }

    /// `-> type`, if it is there.
    pub(super) fn result_type(&mut self) -> Parsed<Option<Type>> {
        if !self.take(Punct::Arrow) {
            return Ok(None);
        }
        self.ty().map(Some)
    }

    /// `<type, type>`, if it is there.
    pub(super) fn type_arguments(&mut self) -> Parsed<Vec<Type>> {
        if !self.take(Punct::Less) {
            return Ok(Vec::new());
        }
        let mut list = vec![self.ty()?];
        while self.take(Punct::Comma) {
            list.push(self.ty()?);
        }
        if !self.take_greater_of_pair() {
            self.expect(Punct::Greater, "or `,`")?;
        }
        Ok(list)
    }

    /// `Array<Int>= x`: the words are `>` and `=`, of which the first is taken.
    fn take_greater_of_pair(&mut self) -> bool {
        let token = &mut self.tokens[self.at];
        let found = token.kind == TokenKind::Punct(Punct::GreaterEq);
        if found {
            token.kind = TokenKind::Punct(Punct::Eq);
            token.span.start += 1;
        }
        found
    }

    /// Whether `<` here begins types that are closed and followed by a call.
    pub(super) fn generic_call_follows(&self) -> bool {
        if !self.is(Punct::Less) {
            return false;
        }
        let close = self.scan_list(self.at + 1, Punct::Greater);
        close.is_some_and(|at| self.kind_at(at + 1) == TokenKind::Punct(Punct::ParenOpen))
    }

    /// Whether a type and `=` stand here: the state of a tool.
    pub(super) fn typed_value_follows(&self) -> bool {
        let end = self.scan_type(self.at);
        end.is_some_and(|at| self.kind_at(at) == TokenKind::Punct(Punct::Eq))
    }

    fn kind_at(&self, at: usize) -> TokenKind {
        self.tokens.get(at).map_or(TokenKind::End, |it| it.kind)
    }

    /// The index behind a type that stands at `at`.
    fn scan_type(&self, at: usize) -> Option<usize> {
        if at > self.at + LOOKAHEAD {
            return None;
        }
        let punct_at = |at, punct| self.kind_at(at) == TokenKind::Punct(punct);
        match self.kind_at(at) {
            TokenKind::Str(_) => {
                let mut end = at + 1;
                while punct_at(end, Punct::Pipe)
                    && matches!(self.kind_at(end + 1), TokenKind::Str(_))
                {
                    end += 2;
                }
                Some(end)
            }
            TokenKind::Punct(Punct::ParenOpen) => {
                Some(self.scan_list(at + 1, Punct::ParenClose)? + 1)
            }
            TokenKind::Keyword(Keyword::Fn) if punct_at(at + 1, Punct::ParenOpen) => {
                let end = self.scan_list(at + 2, Punct::ParenClose)? + 1;
                if punct_at(end, Punct::Arrow) {
                    return self.scan_type(end + 1);
                }
                Some(end)
            }
            TokenKind::Ident => {
                let mut end = at + 1;
                while punct_at(end, Punct::PathSep) && self.kind_at(end + 1) == TokenKind::Ident {
                    end += 2;
                }
                if punct_at(end, Punct::Less) {
                    end = self.scan_list(end + 1, Punct::Greater)? + 1;
                }
                Some(end)
            }
            _ => None,
        }
    }

    /// The index of the bracket that closes a list of types.
    fn scan_list(&self, at: usize, close: Punct) -> Option<usize> {
        let mut at = at;
        if self.kind_at(at) == TokenKind::Punct(close) {
            return (close != Punct::Greater).then_some(at);
        }
        loop {
            at = self.scan_type(at)?;
            match self.kind_at(at) {
                TokenKind::Punct(punct) if punct == close => return Some(at),
                TokenKind::Punct(Punct::Comma) => at += 1,
                _ => return None,
            }
        }
    }
}
