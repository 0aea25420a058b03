//! Values of the oracle, kept as plainly as they can be.

use std::fmt;
use std::rc::Rc;

use haft_concerto::ast::Closure;

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Array(Vec<Value>),
    Map(Vec<(String, Value)>),
    Struct(String, Vec<(String, Value)>),
    Variant(String, String, Fields),
    Ok(Box<Value>),
    Err(Box<Value>),
    Some(Box<Value>),
    None,
    Range(Option<i64>, Option<i64>, bool),
    Function(String),
    Closure(Rc<Closure>, Vec<(String, Value)>),
}

/// What a variant holds.
#[derive(Clone, Debug)]
pub(crate) enum Fields {
    Places(Vec<Value>),
    Names(Vec<(String, Value)>),
}

impl Value {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(crate) fn some(value: Option<Value>) -> Self {
        value.map_or(Self::None, |value| Self::Some(Box::new(value)))
    }

    pub(crate) fn fault(kind: &str, message: &str) -> Self {
        let fields = vec![
            ("kind".to_owned(), Self::text(kind)),
            ("message".to_owned(), Self::text(message)),
        ];
        Self::Struct("RuntimeError".to_owned(), fields)
    }

    pub(crate) fn type_name(&self) -> &str {
        match self {
            Self::Nil => "Nil",
            Self::Bool(_) => "Bool",
            Self::Int(_) => "Int",
            Self::Float(_) => "Float",
            Self::Text(_) => "String",
            Self::Array(_) => "Array",
            Self::Map(_) => "Map",
            Self::Struct(name, _) | Self::Variant(name, ..) => name,
            Self::Ok(_) | Self::Err(_) => "Result",
            Self::Some(_) | Self::None => "Option",
            Self::Range(..) => "Range",
            Self::Function(_) | Self::Closure(..) => "Function",
        }
    }

    pub(crate) fn truthy(&self) -> bool {
        match self {
            Self::Nil | Self::None | Self::Err(_) => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::Array(list) => !list.is_empty(),
            Self::Map(list) => !list.is_empty(),
            _ => true,
        }
    }

    #[allow(
        clippy::cast_precision_loss,
        clippy::float_cmp,
        clippy::many_single_char_names
    )] // equality itself
    pub(crate) fn same(&self, other: &Self) -> bool {
        let named = |a: &[(String, Value)], b: &[(String, Value)]| {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, it)| b.iter().any(|(other, that)| name == other && it.same(that)))
        };
        let listed = |a: &[Value], b: &[Value]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b))
        };
        match (self, other) {
            (Self::Nil, Self::Nil) | (Self::None, Self::None) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Int(a), Self::Float(b)) | (Self::Float(b), Self::Int(a)) => *a as f64 == *b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => listed(a, b),
            (Self::Map(a), Self::Map(b)) => named(a, b),
            (Self::Struct(a, x), Self::Struct(b, y)) => a == b && named(x, y),
            (Self::Variant(a, v, x), Self::Variant(b, w, y)) => {
                a == b
                    && v == w
                    && match (x, y) {
                        (Fields::Places(x), Fields::Places(y)) => listed(x, y),
                        (Fields::Names(x), Fields::Names(y)) => named(x, y),
                        _ => false,
                    }
            }
            (Self::Ok(a), Self::Ok(b))
            | (Self::Err(a), Self::Err(b))
            | (Self::Some(a), Self::Some(b)) => a.same(b),
            _ => false,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &[Value]| {
            let shown: Vec<String> = values.iter().map(ToString::to_string).collect();
            shown.join(", ")
        };
        let fields = |fields: &[(String, Value)]| {
            let shown: Vec<String> = fields.iter().map(|(k, v)| format!("{k}: {v}")).collect();
            shown.join(", ")
        };
        match self {
            Self::Nil => write!(f, "nil"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Text(text) => write!(f, "{text}"),
            Self::Array(values) => write!(f, "[{}]", list(values)),
            Self::Map(entries) => {
                let shown: Vec<String> = entries
                    .iter()
                    .map(|(k, v)| format!("\"{k}\": {v}"))
                    .collect();
                write!(f, "{{{}}}", shown.join(", "))
            }
            Self::Struct(name, values) => write!(f, "{name} {{{}}}", fields(values)),
            Self::Variant(of, name, Fields::Names(values)) => {
                write!(f, "{of}::{name} {{{}}}", fields(values))
            }
            Self::Variant(of, name, Fields::Places(values)) if values.is_empty() => {
                write!(f, "{of}::{name}")
            }
            Self::Variant(of, name, Fields::Places(values)) => {
                write!(f, "{of}::{name}({})", list(values))
            }
            Self::Ok(value) => write!(f, "Ok({value})"),
            Self::Err(value) => write!(f, "Err({value})"),
            Self::Some(value) => write!(f, "Some({value})"),
            Self::None => write!(f, "None"),
            Self::Range(from, to, inclusive) => {
                let side = |it: &Option<i64>| it.map(|it| it.to_string()).unwrap_or_default();
                let dots = if *inclusive { "..=" } else { ".." };
                write!(f, "{}{dots}{}", side(from), side(to))
            }
            Self::Function(name) => write!(f, "<fn {name}>"),
            Self::Closure(..) => write!(f, "<fn>"),
        }
    }
}
