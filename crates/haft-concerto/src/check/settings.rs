//! Settings of models, agents, servers and tools, and decorators: what is read of them, and of what kind it is.
//! What is not read has no effect, so it is told.

use super::{Checker, Code, Ty};
use crate::ast::{ConfigEntry, Decorator, Expr, ExprKind, PrefixOp};
use crate::diagnostic::did_you_mean;
use crate::symbols::Symbol;

/// What a setting is.
#[derive(Clone, Copy)]
enum Wanted {
    Text,
    Number,
    /// A whole number.
    Whole,
    OneOf(&'static [&'static str]),
    Anything,
}

/// The settings of a kind of declaration.
pub(super) struct Settings {
    /// `a model`.
    what: &'static str,
    all: &'static [(&'static str, Wanted)],
}

const FORMATS: Wanted = Wanted::OneOf(&["text", "json"]);

pub(super) const MODEL: Settings = Settings {
    what: "a model",
    all: &[
        ("provider", Wanted::Anything),
        ("base", Wanted::Text),
        ("temperature", Wanted::Number),
        ("max_tokens", Wanted::Whole),
        ("timeout", Wanted::Number),
        ("system_prompt", Wanted::Text),
        ("tools", Wanted::Anything),
        ("max_tool_rounds", Wanted::Whole),
    ],
};

pub(super) const AGENT: Settings = Settings {
    what: "an agent",
    all: &[
        ("connector", Wanted::Anything),
        ("input_format", FORMATS),
        ("output_format", FORMATS),
        ("timeout", Wanted::Number),
        ("transport", Wanted::OneOf(&["stdio"])),
        ("command", Wanted::Text),
        ("args", Wanted::Anything),
        ("env", Wanted::Anything),
        ("working_dir", Wanted::Text),
        ("params", Wanted::Anything),
        ("tools", Wanted::Anything),
    ],
};

pub(super) const SERVER: Settings = Settings {
    what: "an MCP server",
    all: &[
        ("transport", Wanted::OneOf(&["stdio", "http", "sse"])),
        ("command", Wanted::Text),
        ("url", Wanted::Text),
        ("timeout", Wanted::Number),
        ("env", Wanted::Anything),
    ],
};

pub(super) const TOOL: Settings = Settings {
    what: "a tool",
    all: &[("description", Wanted::Text)],
};

/// Where decorators stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Function,
    Method,
    /// A method of a tool, or the tool of a server.
    Tool,
    Param,
    Model,
    Stage,
    Other,
}

struct Known {
    name: &'static str,
    places: &'static [Place],
    /// Where that is.
    stands: &'static str,
    arguments: &'static [(&'static str, Wanted)],
}

const BACKOFF: Wanted = Wanted::OneOf(&["exponential", "linear", "none"]);

/// The decorators that mean something. Those of tests and tools are looked at where these are.
const DECORATORS: &[Known] = &[
    Known {
        name: "test",
        places: &[Place::Function],
        stands: "above a function",
        arguments: &[],
    },
    Known {
        name: "expect_fail",
        places: &[Place::Function],
        stands: "above a test",
        arguments: &[],
    },
    Known {
        name: "describe",
        places: &[Place::Tool],
        stands: "above the methods of a tool",
        arguments: &[],
    },
    Known {
        name: "param",
        places: &[Place::Tool, Place::Param],
        stands: "above the methods of a tool and in front of their parameters",
        arguments: &[],
    },
    Known {
        name: "retry",
        places: &[Place::Model, Place::Stage],
        stands: "above models and stages",
        arguments: &[("max", Wanted::Whole), ("backoff", BACKOFF)],
    },
    Known {
        name: "timeout",
        places: &[Place::Model, Place::Stage],
        stands: "above models and stages",
        arguments: &[("seconds", Wanted::Number)],
    },
    Known {
        name: "log",
        places: &[Place::Model],
        stands: "above models",
        arguments: &[],
    },
];

impl Checker<'_> {
    /// Tells settings that are not read.
    pub(super) fn unknown_settings(&mut self, entries: &[ConfigEntry], of: &Settings) {
        for entry in entries {
            let name = entry.name.text.as_str();
            if of.all.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let text = format!("`{name}` is no setting of {} and has no effect", of.what);
            let names = of.all.iter().map(|(known, _)| *known);
            let help = if let Some(near) = did_you_mean(name, names.clone()) {
                format!("did you mean `{near}`?")
            } else {
                let list: Vec<String> = names.map(|it| format!("`{it}`")).collect();
                format!("{} has {}", of.what, list.join(", "))
            };
            self.tell_with_help(Code::W008, entry.name.span, text, help);
        }
    }

    /// Tells a setting whose value is of another kind. `ty` is what is known of the value.
    pub(super) fn setting(&mut self, entry: &ConfigEntry, ty: &Ty, of: &Settings) {
        let name = entry.name.text.as_str();
        let Some((_, wanted)) = of.all.iter().find(|(known, _)| *known == name) else {
            return;
        };
        if !self.wanted(name, &entry.value, ty, *wanted) || name == "system_prompt" {
            return;
        }
        if !self.is_fixed(&entry.value, 0) {
            let text = format!("`{name}` is computed and has no effect");
            let help = "write a literal or the name of a constant: settings are read before the program runs";
            self.tell_with_help(Code::W008, entry.value.span, text, help);
        }
    }

    /// Whether a value is of a kind.
    fn wanted(&mut self, name: &str, value: &Expr, ty: &Ty, wanted: Wanted) -> bool {
        let negative = matches!(&value.unwrapped().kind, ExprKind::Prefix(ops, _) if ops.as_slice() == [PrefixOp::Neg]);
        let (fine, kind) = match wanted {
            Wanted::Anything => (true, String::new()),
            Wanted::Text => (*ty == Ty::Text, "a String".to_owned()),
            Wanted::Number => (ty.is_number() && !negative, "a number from 0 on".to_owned()),
            Wanted::Whole => (*ty == Ty::Int && !negative, "an Int from 0 on".to_owned()),
            Wanted::OneOf(words) => {
                let known = value.as_text().is_none_or(|it| words.contains(&it));
                if *ty == Ty::Text && !known {
                    let said = value.as_text().unwrap_or_default();
                    let text = format!("`{said}` is no `{name}`");
                    let help = match did_you_mean(said, words.iter().copied()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("it is one of `{}`", words.join("`, `")),
                    };
                    self.tell_with_help(Code::W008, value.span, text, help);
                    return false;
                }
                (*ty == Ty::Text, format!("one of `{}`", words.join("`, `")))
            }
        };
        // Nil is as good as leaving it out.
        if fine || !ty.is_known() || *ty == Ty::Nil {
            return true;
        }
        let text = if *ty == Ty::Int || *ty == Ty::Float {
            format!("`{name}` is {kind}")
        } else {
            format!("`{name}` is {kind}, and this is `{ty}`")
        };
        self.tell(Code::E013, value.span, text);
        false
    }

    /// Whether a value is known before the program runs.
    fn is_fixed(&self, value: &Expr, depth: usize) -> bool {
        match &value.unwrapped().kind {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Nil
            | ExprKind::Str(_) => true,
            ExprKind::Prefix(ops, inner) => {
                ops.as_slice() == [PrefixOp::Neg]
                    && matches!(inner.kind, ExprKind::Int(_) | ExprKind::Float(_))
            }
            ExprKind::Array(list) | ExprKind::Tuple(list) => {
                list.iter().all(|it| self.is_fixed(it, depth))
            }
            ExprKind::Map(entries) => entries.iter().all(|(_, it)| self.is_fixed(it, depth)),
            ExprKind::Path(path) => match self.symbols.resolve(self.module, path) {
                Some((_, Symbol::Const(it))) => depth < 8 && self.is_fixed(&it.value, depth + 1),
                // Undefined names were told already.
                found => found.is_none(),
            },
            _ => false,
        }
    }

    /// Tells decorators that have no effect where they stand.
    pub(super) fn decorators(&mut self, decorators: &[Decorator], place: Place) {
        for decorator in decorators {
            let name = decorator.name.text.as_str();
            // Where those of tests stand is an error, not a warning.
            if matches!(name, "test" | "expect_fail") {
                continue;
            }
            let Some(known) = DECORATORS.iter().find(|it| it.name == name) else {
                let text = format!("there is no decorator `@{name}`; it has no effect");
                let here = DECORATORS.iter().filter(|it| it.places.contains(&place));
                let all = DECORATORS.iter();
                let near = did_you_mean(name, here.map(|it| it.name))
                    .or_else(|| did_you_mean(name, all.map(|it| it.name)));
                let near = near.map(|it| format!("@{it}"));
                self.tell_near(Code::W008, decorator.span, text, near.as_deref());
                continue;
            };
            if !known.places.contains(&place) {
                let text = format!("`@{name}` has no effect here");
                let help = format!("it stands {}", known.stands);
                self.tell_with_help(Code::W008, decorator.span, text, help);
                continue;
            }
            self.decorator_arguments(decorator, known);
        }
    }

    fn decorator_arguments(&mut self, decorator: &Decorator, known: &Known) {
        if known.arguments.is_empty() {
            return;
        }
        for (name, value) in decorator.arguments.iter().flatten() {
            let Some(name) = name else { continue };
            let mut arguments = known.arguments.iter();
            let Some((_, wanted)) = arguments.find(|(it, _)| *it == name.text) else {
                let text = format!("`@{}` has no `{}`; it has no effect", known.name, name.text);
                let names = known.arguments.iter().map(|(it, _)| *it);
                let near = did_you_mean(&name.text, names);
                self.tell_near(Code::W008, name.span, text, near);
                continue;
            };
            let ty = match &value.unwrapped().kind {
                ExprKind::Int(_) => Ty::Int,
                ExprKind::Float(_) => Ty::Float,
                ExprKind::Bool(_) => Ty::Bool,
                ExprKind::Str(_) => Ty::Text,
                ExprKind::Prefix(ops, _) if ops.as_slice() == [PrefixOp::Neg] => Ty::Int,
                _ => Ty::Unknown,
            };
            self.wanted(&name.text, value, &ty, *wanted);
        }
    }
}
