//! Words to a tree (concerto.md §2).
//!
//! By hand, with operators by rank. After a mistake the parser goes on with the next statement,
//! member or item, so one run tells several. How deep it goes is bounded, and with it the tree.

mod control;
mod expr;
mod habit;
mod item;
mod member;
mod pattern;
mod primary;
mod recover;
mod stmt;
mod types;

use crate::ast::{Name, Part, Path, Program};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::lex::{Keyword, Lexed, Punct, Token, TokenKind};
use crate::source::{SourceFile, Span};

/// How deep expressions, blocks, types and patterns may nest. Every pass over the tree recurses, so
/// this is what keeps the stack bounded.
pub const MAX_DEPTH: usize = 128;

/// A mistake that was told already.
#[derive(Debug)]
struct Failed;

type Parsed<T> = Result<T, Failed>;

/// Makes the tree of a file. What could not be read is told and left out.
pub fn parse(file: &SourceFile, lexed: Lexed, diagnostics: &mut Diagnostics) -> Program {
    let mut parser = Parser {
        file,
        tokens: lexed.tokens,
        texts: lexed.texts,
        at: 0,
        depth: 0,
        struct_literals: true,
        diagnostics,
    };
    parser.program()
}

struct Parser<'a> {
    file: &'a SourceFile,
    tokens: Vec<Token>,
    texts: Vec<String>,
    at: usize,
    depth: usize,
    /// Whether `Name {}` is an empty struct; in front of a block it is not.
    struct_literals: bool,
    diagnostics: &'a mut Diagnostics,
}

impl Parser<'_> {
    fn program(&mut self) -> Program {
        let mut program = Program::default();
        while self.kind() != TokenKind::End {
            let start = self.at;
            let part = if self.item_follows() {
                self.item().map(Part::Item)
            } else {
                self.script_stmt().map(Part::Stmt)
            };
            match part {
                Ok(part) => program.parts.push(part),
                Err(Failed) => self.recover_at_top(start),
            }
        }
        program
    }

    /// The word that is looked at.
    fn token(&self) -> Token {
        self.ahead(0)
    }

    fn kind(&self) -> TokenKind {
        self.token().kind
    }

    /// A word further on; behind the end there is only the end.
    fn ahead(&self, count: usize) -> Token {
        let last = self.tokens.len() - 1;
        self.tokens[(self.at + count).min(last)]
    }

    fn previous_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    /// From there to the last word that was taken.
    fn since(&self, start: Span) -> Span {
        start.to(self.previous_span())
    }

    fn bump(&mut self) -> Token {
        let token = self.token();
        if self.at < self.tokens.len() - 1 {
            self.at += 1;
        }
        token
    }

    fn is(&self, punct: Punct) -> bool {
        self.kind() == TokenKind::Punct(punct)
    }

    fn is_ahead(&self, count: usize, punct: Punct) -> bool {
        self.ahead(count).kind == TokenKind::Punct(punct)
    }

    fn is_keyword(&self, keyword: Keyword) -> bool {
        self.kind() == TokenKind::Keyword(keyword)
    }

    fn take(&mut self, punct: Punct) -> bool {
        let found = self.is(punct);
        if found {
            self.bump();
        }
        found
    }

    fn take_keyword(&mut self, keyword: Keyword) -> bool {
        let found = self.is_keyword(keyword);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, punct: Punct, why: &str) -> Parsed<Span> {
        if self.is(punct) {
            return Ok(self.bump().span);
        }
        Err(self.unexpected(&format!("`{punct}` {why}")))
    }

    /// A semicolon is missed behind what it should end, not in front of what comes next.
    fn expect_semicolon(&mut self, after: &str) -> Parsed<()> {
        if self.take(Punct::Semicolon) {
            return Ok(());
        }
        let end = self.previous_span().end;
        let found = self.found();
        let text = format!("expected `;` after {after}, found {found}");
        match self.habit("`;`") {
            Some(help) => Err(self.fail_with_help(Span::new(end, end), text, help)),
            None => Err(self.fail(Span::new(end, end), text)),
        }
    }

    fn expect_keyword(&mut self, keyword: Keyword, why: &str) -> Parsed<Span> {
        if self.is_keyword(keyword) {
            return Ok(self.bump().span);
        }
        Err(self.unexpected(&format!("`{keyword}` {why}")))
    }

    fn fail(&mut self, span: Span, text: impl Into<String>) -> Failed {
        self.diagnostics
            .push(Diagnostic::new(Code::E002, span, text));
        Failed
    }

    fn fail_with_help(&mut self, span: Span, text: impl Into<String>, help: &str) -> Failed {
        let diagnostic = Diagnostic::new(Code::E002, span, text).help(help);
        self.diagnostics.push(diagnostic);
        Failed
    }

    fn unexpected(&mut self, expected: &str) -> Failed {
        let text = format!("expected {expected}, found {}", self.found());
        match self.habit(expected) {
            Some(help) => self.fail_with_help(self.token().span, text, help),
            None => self.fail(self.token().span, text),
        }
    }

    /// The word that is looked at, as a message names it.
    fn found(&self) -> String {
        let token = self.token();
        match token.kind {
            TokenKind::End => "the end of the file".to_owned(),
            TokenKind::Keyword(keyword) => format!("the keyword `{keyword}`"),
            TokenKind::Str(_) | TokenKind::TextStart(_) => "a string".to_owned(),
            TokenKind::TextMiddle(_) | TokenKind::TextEnd(_) => "`}`".to_owned(),
            _ => format!("`{}`", self.file.slice(token.span)),
        }
    }

    /// Goes one level deeper, or refuses.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            let text = format!("this nests deeper than {MAX_DEPTH} levels");
            let span = self.token().span;
            let failed = self.fail_with_help(span, text, "give parts of it names of their own");
            // Everything around it is broken too; one message is enough.
            self.at = self.tokens.len() - 1;
            return Err(failed);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// With or without `Name {}` as an empty struct.
    fn with_struct_literals<T>(&mut self, allowed: bool, inner: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.struct_literals, allowed);
        let result = inner(self);
        self.struct_literals = before;
        result
    }

    fn name_at(&self, token: Token) -> Name {
        Name {
            text: self.file.slice(token.span).to_owned(),
            span: token.span,
        }
    }

    /// A name that is no keyword.
    fn ident(&mut self, what: &str) -> Parsed<Name> {
        let token = self.token();
        match token.kind {
            TokenKind::Ident => {
                self.bump();
                Ok(self.name_at(token))
            }
            TokenKind::Keyword(keyword) => {
                let text = format!("expected {what}, found the keyword `{keyword}`");
                Err(self.fail_with_help(token.span, text, "a keyword cannot be a name here"))
            }
            _ => Err(self.unexpected(what)),
        }
    }

    fn is_name(&self, count: usize) -> bool {
        matches!(
            self.ahead(count).kind,
            TokenKind::Ident | TokenKind::Keyword(_)
        )
    }

    /// A name where a keyword is one too.
    fn name(&mut self, what: &str) -> Parsed<Name> {
        if self.is_name(0) {
            let token = self.bump();
            return Ok(self.name_at(token));
        }
        Err(self.unexpected(what))
    }

    fn path(&mut self, what: &str) -> Parsed<Path> {
        let first = self.ident(what)?;
        self.path_after(first)
    }

    fn path_after(&mut self, first: Name) -> Parsed<Path> {
        let start = first.span;
        let mut segments = vec![first];
        // `use a::{b}` ends its path in front of the brace.
        while self.is(Punct::PathSep) && !self.is_ahead(1, Punct::BraceOpen) {
            self.bump();
            segments.push(self.ident("a name after `::`")?);
        }
        let span = self.since(start);
        Ok(Path { segments, span })
    }

    fn text(&mut self, index: u32) -> String {
        let text = self.texts.get_mut(index as usize);
        text.map(std::mem::take).unwrap_or_default()
    }

    /// Things with commas between them and perhaps one behind, up to the closing bracket.
    fn list<T>(
        &mut self,
        close: Punct,
        mut one: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut list = Vec::new();
        while !self.is(close) {
            list.push(one(self)?);
            if !self.take(Punct::Comma) {
                break;
            }
        }
        self.expect(close, "or `,`")?;
        Ok(list)
    }
}

#[cfg(test)]
mod tests;
