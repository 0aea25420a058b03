//! Where the parser goes on after a mistake.

use super::Parser;
use crate::lex::{Keyword, Punct, TokenKind};

impl Parser<'_> {
    /// Whether the word that is looked at begins a declaration.
    pub(super) fn item_follows(&self) -> bool {
        match self.kind() {
            TokenKind::Punct(Punct::At) => true,
            TokenKind::Keyword(keyword) => begins_item(keyword),
            _ => false,
        }
    }

    /// Whether a declaration or statement surely begins here: its keyword is no name.
    fn fresh_start(&self) -> bool {
        let TokenKind::Keyword(keyword) = self.kind() else {
            return false;
        };
        let after_dot = self.at > 0
            && matches!(
                self.tokens[self.at - 1].kind,
                TokenKind::Punct(Punct::Dot | Punct::PathSep | Punct::At)
            );
        let before_colon = self.is_ahead(1, Punct::Colon);
        let begins = begins_item(keyword) || begins_stmt(keyword);
        begins && !after_dot && !before_colon
    }

    /// After a mistake outside of all blocks: to the next declaration or statement.
    pub(super) fn recover_at_top(&mut self, start: usize) {
        self.skip(start, true);
        // A brace too many.
        while self.is(Punct::BraceClose) {
            self.bump();
        }
    }

    /// After a mistake in a block: behind the semicolon, or in front of what ends the block. False
    /// if a declaration begins, so that the block was never closed.
    pub(super) fn recover_in_block(&mut self, start: usize) -> bool {
        self.skip(start, false);
        !self.item_follows() || self.is(Punct::At)
    }

    /// After a mistake in the members of a declaration: behind the comma, or in front of the next
    /// function or of the end.
    pub(super) fn recover_in_members(&mut self, start: usize) {
        self.ensure_progress(start);
        let mut depth = 0_usize;
        loop {
            match self.kind() {
                TokenKind::End => return,
                TokenKind::Punct(Punct::BraceClose | Punct::ParenClose | Punct::BracketClose)
                    if depth == 0 =>
                {
                    if self.is(Punct::BraceClose) {
                        return;
                    }
                }
                TokenKind::Punct(Punct::Comma) if depth == 0 => {
                    self.bump();
                    return;
                }
                TokenKind::Punct(Punct::At) if depth == 0 => return,
                TokenKind::Keyword(Keyword::Fn | Keyword::Pub | Keyword::Stage)
                    if depth == 0 && !self.is_ahead(1, Punct::Colon) =>
                {
                    return;
                }
                kind => depth = deeper_by(depth, kind),
            }
            self.bump();
        }
    }

    fn skip(&mut self, start: usize, at_top: bool) {
        self.ensure_progress(start);
        let mut depth = 0_usize;
        loop {
            match self.kind() {
                TokenKind::End => return,
                TokenKind::Punct(Punct::Semicolon) if depth == 0 => {
                    self.bump();
                    return;
                }
                TokenKind::Punct(Punct::BraceClose) if depth == 0 => return,
                TokenKind::Punct(Punct::At) if depth == 0 && at_top => return,
                TokenKind::Keyword(_) if depth == 0 && self.fresh_start() => return,
                // A function never stands in a block: whatever is open there was not closed.
                TokenKind::Keyword(Keyword::Fn) if at_top && self.fresh_start() => return,
                kind => depth = deeper_by(depth, kind),
            }
            self.bump();
        }
    }

    fn ensure_progress(&mut self, start: usize) {
        if self.at == start {
            self.bump();
        }
    }
}

fn deeper_by(depth: usize, kind: TokenKind) -> usize {
    match kind {
        TokenKind::Punct(Punct::BraceOpen | Punct::ParenOpen | Punct::BracketOpen) => depth + 1,
        TokenKind::Punct(Punct::BraceClose | Punct::ParenClose | Punct::BracketClose) => {
            depth.saturating_sub(1)
        }
        _ => depth,
    }
}

fn begins_item(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::Pub
            | Keyword::Fn
            | Keyword::Async
            | Keyword::Model
            | Keyword::Agent
            | Keyword::Tool
            | Keyword::Mcp
            | Keyword::Schema
            | Keyword::Struct
            | Keyword::Enum
            | Keyword::Trait
            | Keyword::Impl
            | Keyword::Pipeline
            | Keyword::Use
            | Keyword::Mod
            | Keyword::Const
            | Keyword::Type
            | Keyword::Hashmap
            | Keyword::Memory
            | Keyword::Ledger
    )
}

fn begins_stmt(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::Let
            | Keyword::If
            | Keyword::Match
            | Keyword::For
            | Keyword::While
            | Keyword::Loop
            | Keyword::Return
            | Keyword::Try
            | Keyword::Mock
            | Keyword::Throw
    )
}
