//! Constants, each once.

use serde_json::Value as Json;

use super::Emitter;
use crate::ast::{Expr, ExprKind, MapKey, PrefixOp};
use crate::ir::{Constant, ConstantKind, Instruction, Opcode};

/// A constant; floats by their bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Int(i64),
    Float(u64),
    Text(String),
    Bool(bool),
    Nil,
}

impl Emitter<'_> {
    pub(super) fn constant(&mut self, key: Key) {
        let index = if let Some(index) = self.constants.get(&key) {
            *index
        } else {
            let index = u32::try_from(self.out.constants.len()).unwrap_or(u32::MAX);
            let (kind, value) = match &key {
                Key::Int(value) => (ConstantKind::Int, Json::from(*value)),
                Key::Float(bits) => (ConstantKind::Float, Json::from(f64::from_bits(*bits))),
                Key::Text(text) => (ConstantKind::String, Json::from(text.as_str())),
                Key::Bool(value) => (ConstantKind::Bool, Json::from(*value)),
                Key::Nil => (ConstantKind::Nil, Json::Null),
            };
            self.out.constants.push(Constant { index, kind, value });
            self.constants.insert(key, index);
            index
        };
        self.push(Instruction::new(Opcode::LoadConst).arg(index));
    }

    pub(super) fn nil(&mut self) {
        self.constant(Key::Nil);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.constant(Key::Text(text.to_owned()));
    }
}

/// What an expression is, if that can be said without running it. A name is its text: settings name
/// connections, memories and the like.
pub(super) fn literal(expr: &Expr) -> Option<Json> {
    Some(match &expr.kind {
        ExprKind::Int(value) => Json::from(*value),
        ExprKind::Float(value) => Json::from(*value),
        ExprKind::Bool(value) => Json::from(*value),
        ExprKind::Nil => Json::Null,
        ExprKind::Str(text) => Json::from(text.as_str()),
        ExprKind::Path(path) => Json::from(path.text()),
        ExprKind::Paren(inner) => literal(inner)?,
        ExprKind::Array(list) | ExprKind::Tuple(list) => {
            Json::Array(list.iter().map(literal).collect::<Option<_>>()?)
        }
        ExprKind::Map(entries) => {
            let pair = |(key, value): &(MapKey, Expr)| {
                let key = match key {
                    MapKey::Name(name) => name.text.clone(),
                    MapKey::Expr(key) => key.as_text()?.to_owned(),
                };
                Some((key, literal(value)?))
            };
            Json::Object(entries.iter().map(pair).collect::<Option<_>>()?)
        }
        ExprKind::Prefix(ops, inner) if ops.as_slice() == [PrefixOp::Neg] => match inner.kind {
            ExprKind::Int(value) => Json::from(value.wrapping_neg()),
            ExprKind::Float(value) => Json::from(-value),
            _ => return None,
        },
        _ => return None,
    })
}
