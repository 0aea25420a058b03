//! `if`, `match`, loops, `try`, `listen`.

use super::{Failed, Parsed, Parser};
use crate::ast::{Block, Catch, ExprKind, For, Handler, If, Listen, Match, MatchArm, Try};
use crate::lex::{Keyword, Punct, TokenKind};

impl Parser<'_> {
    pub(super) fn if_expr(&mut self) -> Parsed<ExprKind> {
        let mut branches = Vec::new();
        let mut otherwise = None;
        self.bump();
        loop {
            let condition = self.head()?;
            branches.push((condition, self.block()?));
            if !self.take_keyword(Keyword::Else) {
                break;
            }
            if !self.take_keyword(Keyword::If) {
                otherwise = Some(self.block()?);
                break;
            }
        }
        Ok(ExprKind::If(Box::new(If {
            branches,
            otherwise,
        })))
    }

    pub(super) fn match_expr(&mut self) -> Parsed<ExprKind> {
        self.bump();
        let subject = self.head()?;
        self.expect(Punct::BraceOpen, "after what is matched")?;
        let mut arms = Vec::new();
        while !self.is(Punct::BraceClose) {
            let start = self.at;
            match self.deeper(|it| it.with_struct_literals(true, Self::match_arm)) {
                Ok(arm) => arms.push(arm),
                Err(Failed) if self.kind() == TokenKind::End => return Err(Failed),
                Err(Failed) => self.recover_in_members(start),
            }
        }
        let close = self.bump().span;
        Ok(ExprKind::Match(Box::new(Match {
            subject,
            arms,
            close,
        })))
    }

    fn match_arm(&mut self) -> Parsed<MatchArm> {
        let pattern = self.pattern()?;
        let guard = if self.take_keyword(Keyword::If) {
            Some(self.expr()?)
        } else {
            None
        };
        self.expect(Punct::FatArrow, "after a pattern")?;
        let body = self.arm_body()?;
        Ok(MatchArm {
            pattern,
            guard,
            body,
        })
    }

    /// A block ends an arm as it ends a statement; everything else needs a comma before the next.
    fn arm_body(&mut self) -> Parsed<crate::ast::Expr> {
        let body = self.stmt_expr()?;
        if !self.take(Punct::Comma) && !self.is(Punct::BraceClose) && !body.is_block_like() {
            return Err(self.unexpected("`,` or `}` after an arm"));
        }
        Ok(body)
    }

    pub(super) fn for_expr(&mut self) -> Parsed<ExprKind> {
        self.bump();
        let pattern = self.pattern()?;
        self.expect_keyword(Keyword::In, "after the pattern of `for`")?;
        let subject = self.head()?;
        let body = self.block()?;
        Ok(ExprKind::For(Box::new(For {
            pattern,
            subject,
            body,
        })))
    }

    pub(super) fn while_expr(&mut self) -> Parsed<ExprKind> {
        self.bump();
        let condition = Box::new(self.head()?);
        let body = Box::new(self.block()?);
        Ok(ExprKind::While { condition, body })
    }

    pub(super) fn loop_expr(&mut self) -> Parsed<ExprKind> {
        self.bump();
        Ok(ExprKind::Loop(Box::new(self.block()?)))
    }

    pub(super) fn try_expr(&mut self) -> Parsed<ExprKind> {
        self.bump();
        let body = self.block()?;
        let mut catches = Vec::new();
        while self.take_keyword(Keyword::Catch) {
            catches.push(self.catch()?);
        }
        Ok(ExprKind::Try(Box::new(Try { body, catches })))
    }

    fn catch(&mut self) -> Parsed<Catch> {
        let mut ty = None;
        let mut binding = None;
        if !self.is(Punct::BraceOpen) {
            ty = Some(self.ty()?);
            if self.take(Punct::ParenOpen) {
                binding = Some(self.ident("a name for what was caught")?);
                self.expect(Punct::ParenClose, "after the name")?;
            }
        }
        let body = self.block()?;
        Ok(Catch { ty, binding, body })
    }

    pub(super) fn listen_expr(&mut self) -> Parsed<ExprKind> {
        self.bump();
        let subject = self.head()?;
        self.expect(Punct::BraceOpen, "before the handlers of `listen`")?;
        let mut handlers = Vec::new();
        while !self.is(Punct::BraceClose) {
            handlers.push(self.with_struct_literals(true, Self::handler)?);
        }
        let close = self.bump().span;
        Ok(ExprKind::Listen(Box::new(Listen {
            subject,
            handlers,
            close,
        })))
    }

    fn handler(&mut self) -> Parsed<Handler> {
        let token = self.token();
        let TokenKind::Str(text) = token.kind else {
            return Err(self.unexpected("the type of a message, as a string"));
        };
        self.bump();
        let message = self.text(text);
        self.expect(Punct::FatArrow, "after the type of a message")?;
        self.expect(Punct::Pipe, "before the name of the message")?;
        let param = self.param()?;
        self.expect(Punct::Pipe, "after the name of the message")?;
        let body: Block = self.block()?;
        self.take(Punct::Comma);
        Ok(Handler {
            message,
            span: token.span,
            param,
            body,
        })
    }
}
