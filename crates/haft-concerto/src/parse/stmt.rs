//! Blocks and statements.

use super::{Failed, Parsed, Parser};
use crate::ast::{Block, Expr, Stmt, StmtKind};
use crate::lex::{Keyword, Punct, TokenKind};

/// What stands in a block.
enum Piece {
    Stmt(Stmt),
    /// The last expression, which is the block's value.
    Tail(Expr),
}

impl Parser<'_> {
    pub(super) fn block(&mut self) -> Parsed<Block> {
        self.deeper(|parser| parser.with_struct_literals(true, Self::block_inner))
    }

    fn block_inner(&mut self) -> Parsed<Block> {
        let start = self.expect(Punct::BraceOpen, "before a block")?;
        let mut stmts = Vec::new();
        let mut tail = None;
        while !self.is(Punct::BraceClose) {
            if self.kind() == TokenKind::End {
                let help = "every `{` needs a `}`";
                return Err(self.fail_with_help(start, "this block is not closed", help));
            }
            let at = self.at;
            match self.piece() {
                Ok(Piece::Stmt(stmt)) => stmts.push(stmt),
                Ok(Piece::Tail(expr)) => tail = Some(expr),
                Err(Failed) => {
                    if !self.recover_in_block(at) {
                        return Err(Failed);
                    }
                }
            }
        }
        self.bump();
        let span = self.since(start);
        Ok(Block { stmts, tail, span })
    }

    fn piece(&mut self) -> Parsed<Piece> {
        let start = self.token().span;
        match self.kind() {
            TokenKind::Keyword(Keyword::Let) => self.let_stmt().map(Piece::Stmt),
            TokenKind::Keyword(Keyword::Mock) => self.mock_stmt().map(Piece::Stmt),
            _ if self.item_follows() => {
                let text = format!("expected a statement, found {}", self.found());
                let help = "declarations stand outside of functions";
                Err(self.fail_with_help(start, text, help))
            }
            _ => {
                let expr = self.stmt_expr()?;
                if self.is(Punct::BraceClose) {
                    return Ok(Piece::Tail(expr));
                }
                self.end_of_stmt(expr).map(Piece::Stmt)
            }
        }
    }

    /// A statement outside of all blocks.
    pub(super) fn script_stmt(&mut self) -> Parsed<Stmt> {
        match self.kind() {
            TokenKind::Keyword(Keyword::Let) => self.let_stmt(),
            TokenKind::Keyword(Keyword::Mock) => self.mock_stmt(),
            _ => {
                let expr = self.stmt_expr()?;
                self.end_of_stmt(expr)
            }
        }
    }

    fn end_of_stmt(&mut self, expr: Expr) -> Parsed<Stmt> {
        if !expr.is_block_like() || self.is(Punct::Semicolon) {
            self.expect_semicolon("an expression")?;
        }
        let span = self.since(expr.span);
        let kind = StmtKind::Expr(expr);
        Ok(Stmt { kind, span })
    }

    /// An expression at the beginning of a statement or as an arm: a block ends it, unless what
    /// follows cannot begin anything.
    pub(super) fn stmt_expr(&mut self) -> Parsed<Expr> {
        let block_like = match self.kind() {
            TokenKind::Keyword(
                Keyword::If
                | Keyword::Match
                | Keyword::For
                | Keyword::While
                | Keyword::Loop
                | Keyword::Try,
            ) => true,
            TokenKind::Punct(Punct::BraceOpen) => !self.map_follows(),
            _ => false,
        };
        if !block_like {
            return self.expr();
        }
        let expr = self.deeper(Self::primary)?;
        if self.goes_on() {
            return self.expr_from(expr);
        }
        Ok(expr)
    }

    /// Whether the next word can only go on with what stands before it.
    fn goes_on(&self) -> bool {
        match self.kind() {
            TokenKind::Keyword(Keyword::As) => true,
            TokenKind::Punct(punct) => matches!(
                punct,
                Punct::Dot
                    | Punct::Question
                    | Punct::Plus
                    | Punct::Star
                    | Punct::Slash
                    | Punct::Percent
                    | Punct::EqEq
                    | Punct::NotEq
                    | Punct::Less
                    | Punct::Greater
                    | Punct::LessEq
                    | Punct::GreaterEq
                    | Punct::AndAnd
                    | Punct::Coalesce
                    | Punct::PipeTo
                    | Punct::Eq
                    | Punct::PlusEq
                    | Punct::MinusEq
                    | Punct::StarEq
                    | Punct::SlashEq
                    | Punct::PercentEq
            ),
            _ => false,
        }
    }

    fn let_stmt(&mut self) -> Parsed<Stmt> {
        let start = self.bump().span;
        let mutable = self.take_keyword(Keyword::Mut);
        let pattern = self.pattern()?;
        let ty = if self.take(Punct::Colon) {
            Some(self.ty()?)
        } else {
            None
        };
        let value = if self.take(Punct::Eq) {
            Some(self.expr()?)
        } else {
            None
        };
        self.expect_semicolon("`let`")?;
        let span = self.since(start);
        let kind = StmtKind::Let {
            mutable,
            pattern,
            ty,
            value,
        };
        Ok(Stmt { kind, span })
    }

    fn mock_stmt(&mut self) -> Parsed<Stmt> {
        let start = self.bump().span;
        let config = self.config("the model that is mocked")?;
        self.take(Punct::Semicolon);
        let span = self.since(start);
        let kind = StmtKind::Mock(config);
        Ok(Stmt { kind, span })
    }
}
