//! Declarations.

use super::{Doc, Printer, Sequence, type_text};
use crate::ast::{
    ConfigEntry, Decorator, Field, Function, Item, ItemKind, Param, Receiver, Signature, StoreKind,
    Type, UseTail, VariantData,
};
use crate::source::Span;

/// A member of a tool or a server, in the order of the source.
enum Member<'m> {
    Entry(&'m ConfigEntry),
    State(&'m crate::ast::ToolState),
    Function(&'m Function),
}

impl Member<'_> {
    fn span(&self) -> Span {
        match self {
            Self::Entry(it) => it.name.span.to(it.value.span),
            Self::State(it) => it.name.span.to(it.value.span),
            Self::Function(it) => function_span(it),
        }
    }
}

fn function_span(function: &Function) -> Span {
    match &function.body {
        Some(body) => function.signature.span.to(body.span),
        None => function.signature.span,
    }
}

impl Printer<'_> {
    pub(super) fn item(&mut self, item: &Item) -> Doc {
        let mut parts = self.decorators(&item.decorators);
        if item.public && !matches!(item.kind, ItemKind::Function(_)) {
            parts.push(Doc::text("pub "));
        }
        parts.push(self.item_kind(item));
        Doc::concat(parts)
    }

    fn item_kind(&mut self, item: &Item) -> Doc {
        let named =
            |word: &str, name: &crate::ast::Name| Doc::text(format!("{word} {} ", name.text));
        match &item.kind {
            ItemKind::Function(it) => self.function(it),
            ItemKind::Model(it) => Doc::concat(vec![Doc::text("model "), self.config(it)]),
            ItemKind::Agent(it) => Doc::concat(vec![Doc::text("agent "), self.config(it)]),
            ItemKind::Tool(it) => {
                let members = it.entries.iter().map(Member::Entry);
                let members = members.chain(it.state.iter().map(Member::State));
                let members = members.chain(it.methods.iter().map(Member::Function));
                let members = self.members(members.collect(), it.close);
                Doc::concat(vec![named("tool", &it.name), members])
            }
            ItemKind::Mcp(it) => {
                let members = it.entries.iter().map(Member::Entry);
                let members = members.chain(it.signatures.iter().map(Member::Function));
                let members = self.members(members.collect(), it.close);
                Doc::concat(vec![named("mcp", &it.name), members])
            }
            ItemKind::Schema(it) => {
                let fields = self.fields(&it.fields, it.name.span.to(it.close), it.close);
                Doc::concat(vec![named("schema", &it.name), fields])
            }
            ItemKind::Struct(it) => {
                let fields = self.fields(&it.fields, it.name.span.to(it.close), it.close);
                Doc::concat(vec![named("struct", &it.name), fields])
            }
            ItemKind::Enum(it) => self.enum_item(it),
            ItemKind::Trait(it) => {
                let members = it.methods.iter().map(Member::Function).collect();
                Doc::concat(vec![
                    named("trait", &it.name),
                    self.members(members, it.close),
                ])
            }
            ItemKind::Impl(it) => {
                let target = it.target.as_ref().map(|name| format!("for {} ", name.text));
                let members = it.methods.iter().map(Member::Function).collect();
                let target = Doc::text(target.unwrap_or_default());
                Doc::concat(vec![
                    named("impl", &it.name),
                    target,
                    self.members(members, it.close),
                ])
            }
            ItemKind::Pipeline(it) => self.pipeline(it),
            ItemKind::Use(it) => {
                let tail = match &it.tail {
                    UseTail::None => String::new(),
                    UseTail::As(name) => format!(" as {}", name.text),
                    UseTail::Group(group) => {
                        let group: Vec<_> = group.iter().map(|it| it.text.as_str()).collect();
                        format!("::{{{}}}", group.join(", "))
                    }
                };
                Doc::text(format!("use {}{tail};", it.path.text()))
            }
            ItemKind::Mod(it) => match &it.items {
                None => Doc::text(format!("mod {};", it.name.text)),
                Some(items) => {
                    let spans: Vec<Span> = items.iter().map(|it| it.span).collect();
                    let items = self.below(
                        &spans,
                        it.close,
                        |_| false,
                        |printer, index| printer.item(&items[index]),
                    );
                    Doc::concat(vec![named("mod", &it.name), items])
                }
            },
            ItemKind::Const(it) => {
                let head = format!("const {}: {} = ", it.name.text, type_text(&it.ty));
                Doc::concat(vec![Doc::text(head), self.expr(&it.value), Doc::text(";")])
            }
            ItemKind::TypeAlias(it) => {
                Doc::text(format!("type {} = {};", it.name.text, type_text(&it.ty)))
            }
            ItemKind::Store(it) => {
                let word = match it.kind {
                    StoreKind::HashMap => "hashmap",
                    StoreKind::Memory => "memory",
                    StoreKind::Ledger => "ledger",
                };
                let head = format!("{word} {}: {} = ", it.name.text, type_text(&it.ty));
                Doc::concat(vec![Doc::text(head), self.expr(&it.value), Doc::text(";")])
            }
        }
    }

    fn pipeline(&mut self, it: &crate::ast::Pipeline) -> Doc {
        let mut parts = vec![Doc::text(format!("pipeline {}", it.name.text))];
        if let Some(param) = &it.param {
            parts.extend([Doc::text("("), self.param(param), Doc::text(")")]);
        }
        parts.push(Doc::text(result(it.result.as_ref()) + " "));
        let spans: Vec<Span> = it
            .stages
            .iter()
            .map(|it| it.signature.span.to(it.body.span))
            .collect();
        parts.push(self.below(
            &spans,
            it.close,
            |_| false,
            |printer, index| {
                let stage = &it.stages[index];
                let mut parts = printer.decorators(&stage.signature.decorators);
                parts.push(Doc::text("stage "));
                parts.push(printer.signature(&stage.signature));
                parts.push(Doc::text(" "));
                parts.push(printer.block(&stage.body));
                Doc::concat(parts)
            },
        ));
        Doc::concat(parts)
    }

    /// Things in braces, one below the other.
    fn below(
        &mut self,
        spans: &[Span],
        close: Span,
        comma: impl Fn(usize) -> bool,
        one: impl FnMut(&mut Self, usize) -> Doc,
    ) -> Doc {
        let sequence = Sequence {
            spans,
            close: close.start,
            flat: false,
        };
        let inside = self.sequence(&sequence, comma, one);
        if spans.is_empty() && !inside.hard {
            return Doc::text("{}");
        }
        let inside = Doc::nest(Doc::concat(vec![Doc::hard(), inside]));
        Doc::concat(vec![Doc::text("{"), inside, Doc::hard(), Doc::text("}")])
    }

    fn members(&mut self, mut members: Vec<Member<'_>>, close: Span) -> Doc {
        members.sort_by_key(|it| it.span().start);
        let spans: Vec<Span> = members.iter().map(Member::span).collect();
        let is_entry = |index: usize| !matches!(members[index], Member::Function(_));
        self.below(&spans, close, is_entry, |printer, index| {
            match &members[index] {
                Member::Entry(it) => {
                    let name = Doc::text(format!("{}: ", it.name.text));
                    Doc::concat(vec![name, printer.expr(&it.value)])
                }
                Member::State(it) => {
                    let head = format!("{}: {} = ", it.name.text, type_text(&it.ty));
                    Doc::concat(vec![Doc::text(head), printer.expr(&it.value)])
                }
                Member::Function(it) => printer.function(it),
            }
        })
    }

    fn fields(&mut self, fields: &[Field], whole: Span, close: Span) -> Doc {
        let span = |it: &Field| {
            let end = it.default.as_ref().map_or(it.ty.span, |it| it.span);
            it.name.span.to(end)
        };
        let spans: Vec<Span> = fields.iter().map(span).collect();
        let sequence = Sequence {
            spans: &spans,
            close: close.start,
            flat: self.one_line(whole),
        };
        self.bracketed(("{", "}"), true, &sequence, |printer, index| {
            let field = &fields[index];
            let public = if field.public { "pub " } else { "" };
            let optional = if field.optional { "?" } else { "" };
            let head = format!(
                "{public}{}{optional}: {}",
                field.name.text,
                type_text(&field.ty)
            );
            let mut parts = vec![Doc::text(head)];
            if let Some(default) = &field.default {
                parts.push(Doc::text(" = "));
                parts.push(printer.expr(default));
            }
            Doc::concat(parts)
        })
    }

    fn enum_item(&mut self, it: &crate::ast::Enum) -> Doc {
        let span = |it: &crate::ast::Variant| {
            let end = match &it.data {
                VariantData::None => it.name.span,
                VariantData::Tuple(types) => types.last().map_or(it.name.span, |ty| ty.span),
                VariantData::Fields(_, close) => *close,
            };
            it.name.span.to(end)
        };
        let spans: Vec<Span> = it.variants.iter().map(span).collect();
        let sequence = Sequence {
            spans: &spans,
            close: it.close.start,
            flat: self.one_line(it.name.span.to(it.close)),
        };
        let head = Doc::text(format!("enum {} ", it.name.text));
        let variants = self.bracketed(("{", "}"), true, &sequence, |printer, index| {
            let variant = &it.variants[index];
            let name = variant.name.text.as_str();
            match &variant.data {
                VariantData::None => Doc::text(name),
                VariantData::Tuple(types) => {
                    let types: Vec<_> = types.iter().map(type_text).collect();
                    Doc::text(format!("{name}({})", types.join(", ")))
                }
                VariantData::Fields(fields, close) => {
                    let fields = printer.fields(fields, variant.name.span.to(*close), *close);
                    Doc::concat(vec![Doc::text(format!("{name} ")), fields])
                }
            }
        });
        Doc::concat(vec![head, variants])
    }

    /// Each on a line of its own.
    fn decorators(&mut self, decorators: &[Decorator]) -> Vec<Doc> {
        let mut parts = Vec::new();
        for decorator in decorators {
            parts.push(self.decorator(decorator));
            parts.push(Doc::hard());
        }
        parts
    }

    pub(super) fn decorator(&mut self, decorator: &Decorator) -> Doc {
        let mut parts = vec![Doc::text(format!("@{}", decorator.name.text))];
        if let Some(arguments) = &decorator.arguments {
            parts.push(Doc::text("("));
            for (index, (name, value)) in arguments.iter().enumerate() {
                if index > 0 {
                    parts.push(Doc::text(", "));
                }
                if let Some(name) = name {
                    parts.push(Doc::text(format!("{}: ", name.text)));
                }
                parts.push(self.expr(value));
            }
            parts.push(Doc::text(")"));
        }
        Doc::concat(parts)
    }

    fn function(&mut self, function: &Function) -> Doc {
        let signature = &function.signature;
        let mut parts = self.decorators(&signature.decorators);
        let public = if signature.public { "pub " } else { "" };
        let is_async = if signature.is_async { "async " } else { "" };
        parts.push(Doc::text(format!("{public}{is_async}fn ")));
        parts.push(self.signature(signature));
        match &function.body {
            Some(body) => {
                parts.push(Doc::text(" "));
                parts.push(self.block(body));
            }
            None => parts.push(Doc::text(";")),
        }
        Doc::concat(parts)
    }

    /// `name(parameters) -> Type`.
    fn signature(&mut self, signature: &Signature) -> Doc {
        let mut parts = Vec::new();
        let receiver = signature.receiver.map(|it| match it {
            Receiver::Value => "self",
            Receiver::Mut => "mut self",
        });
        parts.extend(receiver.map(Doc::text));
        parts.extend(
            signature
                .params
                .iter()
                .map(|param: &Param| self.param(param)),
        );
        let list = if parts.is_empty() {
            Doc::text("()")
        } else {
            let mut inside = vec![Doc::soft()];
            for (index, part) in parts.into_iter().enumerate() {
                if index > 0 {
                    inside.extend([Doc::text(","), Doc::line()]);
                }
                inside.push(part);
            }
            inside.push(Doc::if_broken(","));
            let inside = Doc::nest(Doc::concat(inside));
            Doc::group(Doc::concat(vec![
                Doc::text("("),
                inside,
                Doc::soft(),
                Doc::text(")"),
            ]))
        };
        let result = result(signature.result.as_ref());
        Doc::concat(vec![
            Doc::text(signature.name.text.as_str()),
            list,
            Doc::text(result),
        ])
    }
}

fn result(ty: Option<&Type>) -> String {
    ty.map(|ty| format!(" -> {}", type_text(ty)))
        .unwrap_or_default()
}
