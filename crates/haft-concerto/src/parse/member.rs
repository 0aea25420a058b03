//! What stands in the braces of declarations.

use super::{Failed, Parsed, Parser};
use crate::ast::{
    Config, ConfigEntry, Enum, Field, Function, Mcp, Tool, ToolState, Variant, VariantData,
};
use crate::lex::{Keyword, Punct, TokenKind};
use crate::source::Span;

/// A member of a tool.
enum ToolMember {
    Entry(ConfigEntry),
    State(ToolState),
    Method(Function),
}

/// A member of an MCP server.
enum McpMember {
    Entry(ConfigEntry),
    Signature(Function),
}

impl Parser<'_> {
    /// Members in braces, one after the other. After a mistake the next one is tried.
    pub(super) fn members<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<(Vec<T>, Span)> {
        let open = self.expect(Punct::BraceOpen, "before the members")?;
        let mut list = Vec::new();
        while !self.is(Punct::BraceClose) {
            if self.kind() == TokenKind::End {
                let help = "every `{` needs a `}`";
                return Err(self.fail_with_help(open, "this declaration is not closed", help));
            }
            let start = self.at;
            match one(self) {
                Ok(member) => list.push(member),
                Err(Failed) => self.recover_in_members(start),
            }
        }
        let close = self.bump().span;
        Ok((list, close))
    }

    /// A name and `NAME: value` in braces.
    pub(super) fn config(&mut self, what: &str) -> Parsed<Config> {
        let name = self.ident(what)?;
        let (entries, close) = self.members(Self::config_entry)?;
        Ok(Config {
            name,
            entries,
            close,
        })
    }

    fn config_entry(&mut self) -> Parsed<ConfigEntry> {
        let name = self.name("a setting")?;
        self.expect(Punct::Colon, "after the name of a setting")?;
        let value = self.free_expr()?;
        self.take(Punct::Comma);
        Ok(ConfigEntry { name, value })
    }

    /// Whether a function begins here: its first word is not the name of a setting.
    fn function_follows(&self) -> bool {
        let begins = matches!(
            self.kind(),
            TokenKind::Punct(Punct::At)
                | TokenKind::Keyword(Keyword::Pub | Keyword::Async | Keyword::Fn)
        );
        begins && !self.is_ahead(1, Punct::Colon)
    }

    pub(super) fn tool(&mut self) -> Parsed<Tool> {
        let name = self.ident("the name of a tool")?;
        let (members, close) = self.members(Self::tool_member)?;
        let mut tool = Tool {
            name,
            entries: Vec::new(),
            state: Vec::new(),
            methods: Vec::new(),
            close,
        };
        for member in members {
            match member {
                ToolMember::Entry(entry) => tool.entries.push(entry),
                ToolMember::State(state) => tool.state.push(state),
                ToolMember::Method(method) => tool.methods.push(method),
            }
        }
        Ok(tool)
    }

    fn tool_member(&mut self) -> Parsed<ToolMember> {
        if self.function_follows() {
            let front = self.front()?;
            return self.function(front).map(ToolMember::Method);
        }
        let name = self.name("a setting or a method")?;
        self.expect(Punct::Colon, "after the name of a setting")?;
        if self.typed_value_follows() {
            let ty = self.ty()?;
            self.expect(Punct::Eq, "after the type")?;
            let value = self.free_expr()?;
            self.take(Punct::Comma);
            return Ok(ToolMember::State(ToolState { name, ty, value }));
        }
        let value = self.free_expr()?;
        self.take(Punct::Comma);
        Ok(ToolMember::Entry(ConfigEntry { name, value }))
    }

    pub(super) fn mcp(&mut self) -> Parsed<Mcp> {
        let name = self.ident("the name of an MCP server")?;
        let (members, close) = self.members(|parser| {
            if parser.function_follows() {
                let front = parser.front()?;
                return parser.declared(front).map(McpMember::Signature);
            }
            parser.config_entry().map(McpMember::Entry)
        })?;
        let mut mcp = Mcp {
            name,
            entries: Vec::new(),
            signatures: Vec::new(),
            close,
        };
        for member in members {
            match member {
                McpMember::Entry(entry) => mcp.entries.push(entry),
                McpMember::Signature(signature) => mcp.signatures.push(signature),
            }
        }
        Ok(mcp)
    }

    pub(super) fn fields(&mut self) -> Parsed<(Vec<Field>, Span)> {
        self.members(|parser| {
            let named_pub = parser.is_ahead(1, Punct::Colon) || parser.is_ahead(1, Punct::Question);
            let public = !named_pub && parser.take_keyword(Keyword::Pub);
            let name = parser.name("a field")?;
            let optional = parser.take(Punct::Question);
            parser.expect(Punct::Colon, "and the type of the field")?;
            let ty = parser.ty()?;
            let default = if parser.take(Punct::Eq) {
                Some(parser.free_expr()?)
            } else {
                None
            };
            parser.take(Punct::Comma);
            Ok(Field {
                public,
                name,
                optional,
                ty,
                default,
            })
        })
    }

    pub(super) fn enum_item(&mut self) -> Parsed<Enum> {
        let name = self.ident("the name of an enum")?;
        let (variants, close) = self.members(|parser| {
            let name = parser.ident("a variant")?;
            let data = if parser.take(Punct::ParenOpen) {
                VariantData::Tuple(parser.list(Punct::ParenClose, Self::ty)?)
            } else if parser.is(Punct::BraceOpen) {
                let (fields, close) = parser.fields()?;
                VariantData::Fields(fields, close)
            } else {
                VariantData::None
            };
            parser.take(Punct::Comma);
            Ok(Variant { name, data })
        })?;
        Ok(Enum {
            name,
            variants,
            close,
        })
    }
}
