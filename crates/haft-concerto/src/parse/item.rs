//! Declarations.

use super::{Parsed, Parser};
use crate::ast::{
    Block, Const, Decorator, Fields, Function, Impl, Item, ItemKind, Mod, Name, Param, Pipeline,
    Receiver, Signature, Stage, Store, StoreKind, Trait, TypeAlias, Use, UseTail,
};
use crate::lex::{Keyword, Punct, TokenKind};

/// How many levels a declaration counts for, beside its own.
const MODULE_WEIGHT: usize = 7;

/// What stands in front of a declaration or a method.
pub(super) struct Front {
    pub(super) decorators: Vec<Decorator>,
    pub(super) public: bool,
    pub(super) start: crate::source::Span,
}

impl Parser<'_> {
    pub(super) fn front(&mut self) -> Parsed<Front> {
        let start = self.token().span;
        let decorators = self.decorators()?;
        let public = self.take_keyword(Keyword::Pub);
        Ok(Front {
            decorators,
            public,
            start,
        })
    }

    pub(super) fn item(&mut self) -> Parsed<Item> {
        // Modules in modules take more of the stack than anything else that nests, and nobody nests
        // many.
        self.depth += MODULE_WEIGHT;
        let item = self.deeper(Self::item_inner);
        self.depth -= MODULE_WEIGHT;
        item
    }

    fn item_inner(&mut self) -> Parsed<Item> {
        let front = self.front()?;
        let (start, public) = (front.start, front.public);
        let TokenKind::Keyword(keyword) = self.kind() else {
            return Err(self.unexpected("a declaration"));
        };
        let (kind, decorators) = match keyword {
            // A function keeps its decorators itself.
            Keyword::Fn | Keyword::Async => {
                let function = self.function(front)?;
                (ItemKind::Function(function), Vec::new())
            }
            _ => (self.item_kind(keyword)?, front.decorators),
        };
        let span = self.since(start);
        Ok(Item {
            decorators,
            public,
            kind,
            span,
        })
    }

    fn item_kind(&mut self, keyword: Keyword) -> Parsed<ItemKind> {
        if !matches!(keyword, Keyword::Fn) {
            self.bump();
        }
        Ok(match keyword {
            Keyword::Model => ItemKind::Model(self.config("the name of a model")?),
            Keyword::Agent => ItemKind::Agent(self.config("the name of an agent")?),
            Keyword::Tool => ItemKind::Tool(self.tool()?),
            Keyword::Mcp => ItemKind::Mcp(self.mcp()?),
            Keyword::Schema => ItemKind::Schema(self.fields_item("the name of a schema")?),
            Keyword::Struct => ItemKind::Struct(self.fields_item("the name of a struct")?),
            Keyword::Enum => ItemKind::Enum(self.enum_item()?),
            Keyword::Trait => ItemKind::Trait(self.trait_item()?),
            Keyword::Impl => ItemKind::Impl(self.impl_item()?),
            Keyword::Pipeline => ItemKind::Pipeline(self.pipeline()?),
            Keyword::Use => ItemKind::Use(self.use_item()?),
            Keyword::Mod => ItemKind::Mod(self.mod_item()?),
            Keyword::Const => ItemKind::Const(self.const_item()?),
            Keyword::Type => ItemKind::TypeAlias(self.type_alias()?),
            Keyword::Hashmap => ItemKind::Store(self.store(StoreKind::HashMap)?),
            Keyword::Memory => ItemKind::Store(self.store(StoreKind::Memory)?),
            Keyword::Ledger => ItemKind::Store(self.store(StoreKind::Ledger)?),
            _ => {
                self.at -= 1;
                return Err(self.unexpected("a declaration"));
            }
        })
    }

    fn decorators(&mut self) -> Parsed<Vec<Decorator>> {
        let mut decorators = Vec::new();
        while self.is(Punct::At) {
            decorators.push(self.decorator()?);
        }
        Ok(decorators)
    }

    fn decorator(&mut self) -> Parsed<Decorator> {
        let start = self.bump().span;
        let name = self.ident("the name of a decorator after `@`")?;
        let mut arguments = None;
        if self.take(Punct::ParenOpen) {
            let list = self.list(Punct::ParenClose, |parser| {
                let mut name = None;
                if parser.is_name(0) && parser.is_ahead(1, Punct::Colon) {
                    name = Some(parser.name("a name")?);
                    parser.bump();
                }
                Ok((name, parser.free_expr()?))
            })?;
            arguments = Some(list);
        }
        let span = self.since(start);
        Ok(Decorator {
            name,
            arguments,
            span,
        })
    }

    /// A function with its body.
    pub(super) fn function(&mut self, front: Front) -> Parsed<Function> {
        let signature = self.signature(front)?;
        let body = Some(self.body()?);
        Ok(Function { signature, body })
    }

    /// A function whose body may be missing.
    pub(super) fn declared(&mut self, front: Front) -> Parsed<Function> {
        let signature = self.signature(front)?;
        let body = if self.take(Punct::Semicolon) {
            None
        } else {
            Some(self.body()?)
        };
        Ok(Function { signature, body })
    }

    fn body(&mut self) -> Parsed<Block> {
        self.with_struct_literals(true, Self::block)
    }

    fn signature(&mut self, front: Front) -> Parsed<Signature> {
        let is_async = self.take_keyword(Keyword::Async);
        self.expect_keyword(Keyword::Fn, "before the name of a function")?;
        self.signature_after(front, is_async, "the name of a function")
    }

    fn signature_after(&mut self, front: Front, is_async: bool, what: &str) -> Parsed<Signature> {
        let name = self.ident(what)?;
        self.expect(Punct::ParenOpen, "before parameters")?;
        let receiver = self.receiver();
        if receiver.is_some() && !self.take(Punct::Comma) && !self.is(Punct::ParenClose) {
            return Err(self.unexpected("`,` or `)` after `self`"));
        }
        let params = self.list(Punct::ParenClose, Self::param)?;
        let result = self.result_type()?;
        let span = self.since(front.start);
        Ok(Signature {
            decorators: front.decorators,
            public: front.public,
            is_async,
            name,
            receiver,
            params,
            result,
            span,
        })
    }

    fn receiver(&mut self) -> Option<Receiver> {
        if self.take_keyword(Keyword::SelfWord) {
            return Some(Receiver::Value);
        }
        let own = TokenKind::Keyword(Keyword::SelfWord);
        if self.is_keyword(Keyword::Mut) && self.ahead(1).kind == own {
            self.bump();
            self.bump();
            return Some(Receiver::Mut);
        }
        None
    }

    pub(super) fn param(&mut self) -> Parsed<Param> {
        let decorators = self.decorators()?;
        if self.is_keyword(Keyword::SelfWord) {
            let span = self.token().span;
            return Err(self.fail(span, "`self` is the first parameter"));
        }
        let name = self.ident("the name of a parameter")?;
        let ty = if self.take(Punct::Colon) {
            Some(self.ty()?)
        } else {
            None
        };
        let default = if self.take(Punct::Eq) {
            Some(self.free_expr()?)
        } else {
            None
        };
        Ok(Param {
            decorators,
            name,
            ty,
            default,
        })
    }

    fn fields_item(&mut self, what: &str) -> Parsed<Fields> {
        let name = self.ident(what)?;
        let (fields, close) = self.fields()?;
        Ok(Fields {
            name,
            fields,
            close,
        })
    }

    fn trait_item(&mut self) -> Parsed<Trait> {
        let name = self.ident("the name of a trait")?;
        let (methods, close) = self.members(|parser| {
            let front = parser.front()?;
            parser.declared(front)
        })?;
        Ok(Trait {
            name,
            methods,
            close,
        })
    }

    fn impl_item(&mut self) -> Parsed<Impl> {
        let name = self.ident("the name of a type or a trait")?;
        let mut target: Option<Name> = None;
        if self.take_keyword(Keyword::For) {
            target = Some(self.ident("the name of a type")?);
        }
        let (methods, close) = self.members(|parser| {
            let front = parser.front()?;
            parser.function(front)
        })?;
        Ok(Impl {
            name,
            target,
            methods,
            close,
        })
    }

    fn pipeline(&mut self) -> Parsed<Pipeline> {
        let name = self.ident("the name of a pipeline")?;
        let mut param = None;
        if self.take(Punct::ParenOpen) {
            param = Some(self.param()?);
            self.take(Punct::Comma);
            self.expect(Punct::ParenClose, "after the parameter of a pipeline")?;
        }
        let result = self.result_type()?;
        let (stages, close) = self.members(Self::stage)?;
        Ok(Pipeline {
            name,
            param,
            result,
            stages,
            close,
        })
    }

    fn stage(&mut self) -> Parsed<Stage> {
        let front = self.front()?;
        self.expect_keyword(Keyword::Stage, "in a pipeline")?;
        let signature = self.signature_after(front, false, "the name of a stage")?;
        let body = self.body()?;
        Ok(Stage { signature, body })
    }

    fn use_item(&mut self) -> Parsed<Use> {
        let path = self.path("what is used")?;
        let tail = if self.take_keyword(Keyword::As) {
            UseTail::As(self.ident("a name after `as`")?)
        } else if self.take(Punct::PathSep) {
            self.expect(Punct::BraceOpen, "after `::`")?;
            UseTail::Group(self.list(Punct::BraceClose, |parser| parser.ident("a name"))?)
        } else {
            UseTail::None
        };
        self.expect_semicolon("`use`")?;
        Ok(Use { path, tail })
    }

    fn mod_item(&mut self) -> Parsed<Mod> {
        let name = self.ident("the name of a module")?;
        if self.is(Punct::Semicolon) {
            let close = self.bump().span;
            let items = None;
            return Ok(Mod { name, items, close });
        }
        let (items, close) = self.members(Self::item)?;
        let items = Some(items);
        Ok(Mod { name, items, close })
    }

    fn const_item(&mut self) -> Parsed<Const> {
        let name = self.ident("the name of a constant")?;
        self.expect(Punct::Colon, "and the type of the constant")?;
        let ty = self.ty()?;
        self.expect(Punct::Eq, "and what the constant is")?;
        let value = self.free_expr()?;
        self.expect_semicolon("a constant")?;
        Ok(Const { name, ty, value })
    }

    fn type_alias(&mut self) -> Parsed<TypeAlias> {
        let name = self.ident("the name of a type")?;
        self.expect(Punct::Eq, "and what the type means")?;
        let ty = self.ty()?;
        self.expect_semicolon("a type")?;
        Ok(TypeAlias { name, ty })
    }

    fn store(&mut self, kind: StoreKind) -> Parsed<Store> {
        let name = self.ident("the name of a store")?;
        self.expect(Punct::Colon, "and the type of the store")?;
        let ty = self.ty()?;
        self.expect(Punct::Eq, "and how the store is made")?;
        let value = self.free_expr()?;
        self.expect_semicolon("a store")?;
        Ok(Store {
            kind,
            name,
            ty,
            value,
        })
    }
}
