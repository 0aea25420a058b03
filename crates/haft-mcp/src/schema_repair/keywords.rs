//! The keywords of a schema, one by one.

use haft_core::cut;
use serde_json::{Map, Value, json};

use super::values::{count, flag, is_address, is_anchor, is_negative, names, number, type_of};
use super::{patterns, shown};

/// How deep schemas are repaired; deeper ones are refused anyway.
const MAX_DEPTH: usize = 80;

/// The draft of JSON Schema that decides what a keyword means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    Four,
    Six,
    Seven,
    Draft201909,
    Draft202012,
}

impl Draft {
    pub(super) fn of(schema: &Value) -> Self {
        let named = schema.get("$schema").and_then(Value::as_str);
        named.and_then(Self::named).unwrap_or(Self::Draft202012)
    }

    pub(super) fn named(address: &str) -> Option<Self> {
        let address = address.trim_end_matches('#');
        let address = address.strip_prefix("http").unwrap_or(address);
        let address = address.strip_prefix('s').unwrap_or(address);
        Some(match address {
            "://json-schema.org/draft-04/schema" => Self::Four,
            "://json-schema.org/draft-06/schema" => Self::Six,
            "://json-schema.org/draft-07/schema" => Self::Seven,
            "://json-schema.org/draft/2019-09/schema" => Self::Draft201909,
            "://json-schema.org/draft/2020-12/schema" => Self::Draft202012,
            _ => return None,
        })
    }
}

/// What a repair did to the values that a schema accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Effect {
    /// Whether it accepts more than it did.
    pub(super) is_looser: bool,
    /// `required: true` inside a property, as draft 3 had it.
    is_required: bool,
}

/// Walks through a schema and repairs what no validator accepts.
pub(super) struct Repairer<'a> {
    draft: Draft,
    repairs: &'a mut Vec<String>,
    path: Vec<String>,
}

/// What a keyword's value has to be.
enum Shape {
    Type,
    Text,
    Pattern,
    Flag,
    Count,
    Number,
    Bound {
        inclusive: &'static str,
    },
    Divisor,
    Enum,
    Examples,
    Required,
    Schema,
    Items,
    Schemas,
    NamedSchemas,
    Patterns,
    Dependencies,
    DependentRequired,
    Anchor,
    Id,
    Object,
    /// Not a keyword, or one that takes any value.
    Any,
}

fn shape_of(keyword: &str) -> Shape {
    match keyword {
        "type" => Shape::Type,
        "title" | "description" | "$comment" | "format" | "contentEncoding"
        | "contentMediaType" | "$schema" | "$ref" | "$dynamicRef" | "$recursiveRef" => Shape::Text,
        "pattern" => Shape::Pattern,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" | "$recursiveAnchor" => Shape::Flag,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => Shape::Count,
        "minimum" | "maximum" => Shape::Number,
        "exclusiveMinimum" => Shape::Bound {
            inclusive: "minimum",
        },
        "exclusiveMaximum" => Shape::Bound {
            inclusive: "maximum",
        },
        "multipleOf" => Shape::Divisor,
        "enum" => Shape::Enum,
        "examples" => Shape::Examples,
        "required" => Shape::Required,
        "additionalProperties"
        | "unevaluatedProperties"
        | "additionalItems"
        | "unevaluatedItems"
        | "propertyNames"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contentSchema" => Shape::Schema,
        "items" => Shape::Items,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Shape::Schemas,
        "properties" | "$defs" | "definitions" | "dependentSchemas" => Shape::NamedSchemas,
        "patternProperties" => Shape::Patterns,
        "dependencies" => Shape::Dependencies,
        "dependentRequired" => Shape::DependentRequired,
        "$anchor" | "$dynamicAnchor" => Shape::Anchor,
        "$id" => Shape::Id,
        "$vocabulary" => Shape::Object,
        _ => Shape::Any,
    }
}

/// What becomes of a keyword.
enum Verdict {
    /// It stays, perhaps with another value.
    Keep(Value),
    /// It means nothing, or the same as without it.
    Drop(&'static str),
    /// It meant something that cannot be known.
    Lose(&'static str),
}

impl<'a> Repairer<'a> {
    pub(super) fn new(draft: Draft, repairs: &'a mut Vec<String>) -> Self {
        Self {
            draft,
            repairs,
            path: Vec::new(),
        }
    }

    fn note(&mut self, keyword: &str, what: &str) {
        let place = if self.path.is_empty() {
            String::new()
        } else {
            format!(" at `/{}`", shown(&self.path.join("/").into()))
        };
        self.repairs.push(format!("`{keyword}`{place} {what}"));
    }

    fn below<T>(&mut self, step: &str, visit: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step.to_owned());
        let result = visit(self);
        self.path.pop();
        result
    }

    /// Repairs a value that stands where a schema belongs.
    pub(super) fn repair(&mut self, schema: &mut Value) -> Effect {
        let mut effect = Effect::default();
        if self.path.len() > 2 * MAX_DEPTH {
            return effect;
        }
        match schema {
            Value::Bool(accepts) => {
                if self.draft == Draft::Four && !self.may_be_boolean() {
                    *schema = if *accepts {
                        json!({})
                    } else {
                        json!({"not": {}})
                    };
                }
            }
            Value::Object(object) => effect = self.object(object),
            Value::String(text) => {
                let kind = type_of(&Value::String(text.clone()));
                effect.is_looser = kind.is_none();
                let what = if kind.is_some() {
                    "is a string, read as the name of a type"
                } else {
                    "is not a schema, read as one that accepts anything"
                };
                self.note_here(what);
                *schema = kind.map_or_else(|| json!({}), |kind| json!({"type": kind}));
            }
            _ => {
                // `[]` is how PHP writes `{}`.
                effect.is_looser =
                    !matches!(schema, Value::Null) && schema != &Value::Array(Vec::new());
                self.note_here("is not a schema, read as one that accepts anything");
                *schema = json!({});
            }
        }
        effect
    }

    fn may_be_boolean(&self) -> bool {
        let last = self.path.last().map(String::as_str);
        matches!(last, Some("additionalProperties" | "additionalItems"))
    }

    fn note_here(&mut self, what: &str) {
        let Some(step) = self.path.pop() else {
            return;
        };
        self.note(&step, what);
        self.path.push(step);
    }

    fn object(&mut self, object: &mut Map<String, Value>) -> Effect {
        let mut effect = Effect::default();
        if object.get("required").is_some_and(Value::is_boolean) {
            effect.is_required = object.get("required") == Some(&Value::Bool(true));
        }
        self.bounds(object);
        let keywords: Vec<String> = object.keys().cloned().collect();
        for keyword in keywords {
            // A repair of another keyword may have taken it along.
            let Some(value) = object.get_mut(&keyword).map(Value::take) else {
                continue;
            };
            let scalar = (!value.is_object() && !value.is_array()).then(|| value.clone());
            let reported = self.repairs.len();
            let verdict = self.keyword(&keyword, value, object, &mut effect);
            match verdict {
                Verdict::Keep(value) => {
                    let changed = scalar.filter(|before| *before != value);
                    if let Some(before) = changed.filter(|_| self.repairs.len() == reported) {
                        let (before, after) = (cut(&before.to_string()), cut(&value.to_string()));
                        let what = format!("is `{before}`, read as `{after}`");
                        self.note(&keyword, &what);
                    }
                    object.insert(keyword, value);
                }
                Verdict::Drop(what) => {
                    object.shift_remove(&keyword);
                    self.note(&keyword, what);
                }
                Verdict::Lose(what) => {
                    effect.is_looser = true;
                    object.shift_remove(&keyword);
                    self.note(&keyword, what);
                }
            }
        }
        self.tuples(object);
        effect
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: Value,
        object: &mut Map<String, Value>,
        effect: &mut Effect,
    ) -> Verdict {
        match shape_of(keyword) {
            Shape::Any => Verdict::Keep(value),
            Shape::Text => match value {
                Value::String(_) => Verdict::Keep(value),
                Value::Null => Verdict::Drop("is `null` and is removed"),
                // Only references constrain anything.
                _ if keyword.ends_with("ef") => Verdict::Lose("is not a string and is removed"),
                _ => Verdict::Drop("is not a string and is removed"),
            },
            Shape::Object if value.is_object() => Verdict::Keep(value),
            Shape::Object => Verdict::Drop("is not an object and is removed"),
            Shape::Type => self.kind(keyword, value),
            Shape::Pattern => self.pattern(keyword, value),
            Shape::Flag => match flag(&value) {
                Some(flag) => Verdict::Keep(flag.into()),
                None => Verdict::Drop("is not a boolean and is removed"),
            },
            Shape::Count => match count(&value) {
                Some(count) => Verdict::Keep(count),
                None if value.is_null() => Verdict::Drop("is `null` and is removed"),
                None if number(&value).is_some_and(|it| is_negative(&it)) => {
                    Verdict::Drop("is negative and is removed")
                }
                None => Verdict::Lose("is not a count and is removed"),
            },
            Shape::Bound { .. } if self.draft == Draft::Four && value.is_boolean() => {
                Verdict::Keep(value)
            }
            Shape::Number | Shape::Bound { .. } => number_or_lost(&value),
            Shape::Divisor => match number(&value) {
                Some(it) if it.as_f64().is_some_and(|it| it > 0.0) => Verdict::Keep(it.into()),
                Some(_) => Verdict::Lose("is not positive and is removed"),
                None => number_or_lost(&value),
            },
            Shape::Enum => choices(value),
            Shape::Examples => match value {
                Value::Array(_) => Verdict::Keep(value),
                Value::Null => Verdict::Drop("is `null` and is removed"),
                single => Verdict::Keep(json!([single])),
            },
            Shape::Required => self.required(&value, object),
            Shape::Schema => self.schema(keyword, value, object, effect),
            Shape::Items => match value {
                Value::Array(items) => self.schemas(keyword, items, object, effect),
                Value::Bool(_) | Value::Object(_) | Value::String(_) => {
                    self.schema(keyword, value, object, effect)
                }
                _ => Verdict::Drop("is not a schema and is removed"),
            },
            Shape::Schemas => match value {
                Value::Array(items) => self.schemas(keyword, items, object, effect),
                Value::Object(_) => {
                    self.note(keyword, "is one schema, read as a list with it");
                    self.schemas(keyword, vec![value], object, effect)
                }
                Value::Null => Verdict::Drop("is `null` and is removed"),
                _ => Verdict::Lose("is not a list of schemas and is removed"),
            },
            Shape::NamedSchemas => self.named(keyword, value, object, effect),
            Shape::Patterns => self.by_pattern(keyword, value, object, effect),
            Shape::Dependencies => self.dependencies(keyword, value, effect),
            Shape::DependentRequired => match value {
                Value::Object(named) => {
                    let lists = named.into_iter().filter_map(|(name, list)| {
                        let distinct = names(list)?;
                        Some((name, Value::Array(distinct)))
                    });
                    Verdict::Keep(Value::Object(lists.collect()))
                }
                _ => Verdict::Lose("is not an object and is removed"),
            },
            Shape::Anchor => match &value {
                Value::String(name) if is_anchor(name) => Verdict::Keep(value),
                _ => Verdict::Drop("is not an anchor and is removed"),
            },
            Shape::Id => match &value {
                Value::String(id) if is_address(id) => Verdict::Keep(value),
                _ => Verdict::Drop("is not an address and is removed"),
            },
        }
    }

    fn kind(&mut self, keyword: &str, value: Value) -> Verdict {
        match type_of(&value) {
            Some(kind) if kind == value => Verdict::Keep(value),
            Some(kind) => {
                let what = format!("is `{}`, read as `{}`", shown(&value), shown(&kind));
                self.note(keyword, &what);
                Verdict::Keep(kind)
            }
            None => {
                let what = format!("is `{}`, which is not a type", shown(&value));
                self.note(keyword, &what);
                Verdict::Lose("is removed")
            }
        }
    }

    fn pattern(&mut self, keyword: &str, value: Value) -> Verdict {
        let Value::String(pattern) = &value else {
            return Verdict::Lose("is not a string and is removed");
        };
        match patterns::translated(pattern) {
            Some(translated) if translated == *pattern => Verdict::Keep(value),
            Some(translated) => {
                let what = format!("is written as `{}`", shown(&translated.as_str().into()));
                self.note(keyword, &what);
                Verdict::Keep(translated.into())
            }
            None => Verdict::Lose("is not a pattern that can be checked and is removed"),
        }
    }

    fn required(&mut self, value: &Value, object: &Map<String, Value>) -> Verdict {
        let is_list = value.is_array();
        let written = match value {
            // One name, if there is such a property.
            Value::String(name)
                if object
                    .get("properties")
                    .and_then(|it| it.get(name))
                    .is_some() =>
            {
                json!([name])
            }
            Value::Bool(_) => return Verdict::Drop("is not a list of names and is removed"),
            Value::Null => return Verdict::Drop("is `null` and is removed"),
            other => other.clone(),
        };
        let Some(names) = names(written) else {
            return Verdict::Lose("is not a list of names and is removed");
        };
        if names.is_empty() && self.draft == Draft::Four {
            return Verdict::Drop("is empty and is removed");
        }
        let names = Value::Array(names);
        if !is_list || names != *value {
            self.note("required", "is read as the list of distinct names in it");
        }
        Verdict::Keep(names)
    }

    fn schema(
        &mut self,
        keyword: &str,
        mut value: Value,
        object: &mut Map<String, Value>,
        effect: &mut Effect,
    ) -> Verdict {
        match &value {
            Value::Null => return Verdict::Drop("is `null` and is removed"),
            Value::String(text) => {
                if let Some(flag) = flag(&value) {
                    self.note(keyword, "is a string, read as a boolean");
                    return Verdict::Keep(flag.into());
                }
                if type_of(&Value::String(text.clone())).is_none() {
                    return Verdict::Lose("is not a schema and is removed");
                }
            }
            Value::Number(_) | Value::Array(_) => {
                return Verdict::Lose("is not a schema and is removed");
            }
            Value::Bool(_) | Value::Object(_) => {}
        }
        let below = self.below(keyword, |it| it.repair(&mut value));
        // A looser schema in these makes the whole narrower, or another one.
        if below.is_looser {
            match keyword {
                "not" => return Verdict::Lose("has no known meaning any more and is removed"),
                "if" => {
                    object.shift_remove("then");
                    object.shift_remove("else");
                    return Verdict::Lose(
                        "has no known meaning any more and is removed with `then` and `else`",
                    );
                }
                "contains" => {
                    object.shift_remove("maxContains");
                }
                _ => {}
            }
            effect.is_looser = true;
        }
        Verdict::Keep(value)
    }

    fn schemas(
        &mut self,
        keyword: &str,
        mut items: Vec<Value>,
        object: &mut Map<String, Value>,
        effect: &mut Effect,
    ) -> Verdict {
        if items.is_empty() {
            return Verdict::Drop("is empty and is removed");
        }
        let mut is_looser = false;
        for (index, item) in items.iter_mut().enumerate() {
            let step = format!("{keyword}/{index}");
            is_looser |= self.below(&step, |it| it.repair(item)).is_looser;
        }
        effect.is_looser |= is_looser;
        if is_looser && keyword == "oneOf" {
            // Values may fit several of them now.
            if object.contains_key("anyOf") {
                return Verdict::Lose("has no known meaning any more and is removed");
            }
            self.note(keyword, "has looser branches now and is read as `anyOf`");
            object.insert("anyOf".into(), items.into());
            return Verdict::Drop("is replaced by `anyOf`");
        }
        Verdict::Keep(items.into())
    }

    fn named(
        &mut self,
        keyword: &str,
        value: Value,
        object: &mut Map<String, Value>,
        effect: &mut Effect,
    ) -> Verdict {
        let mut named = match value {
            Value::Object(named) => named,
            Value::Null => return Verdict::Drop("is `null` and is removed"),
            Value::Array(items) if items.is_empty() => {
                return Verdict::Drop("is `[]` and is removed");
            }
            _ => {
                // Without the properties it would forbid all of them.
                if keyword == "properties" {
                    forget_others(object);
                }
                return Verdict::Lose("is not an object and is removed");
            }
        };
        let mut required = Vec::new();
        for (name, schema) in &mut named {
            let step = format!("{keyword}/{name}");
            let below = self.below(&step, |it| it.repair(schema));
            effect.is_looser |= below.is_looser;
            if below.is_required {
                required.push(Value::String(name.clone()));
            }
        }
        // A list beside the properties is the author's last word.
        let has_list = object.get("required").is_some_and(Value::is_array);
        if keyword == "properties" && !required.is_empty() && !has_list {
            self.note(
                "required",
                "of single properties is read as a list of names",
            );
            object.insert("required".into(), required.into());
        }
        Verdict::Keep(named.into())
    }

    fn by_pattern(
        &mut self,
        keyword: &str,
        value: Value,
        object: &mut Map<String, Value>,
        effect: &mut Effect,
    ) -> Verdict {
        let Value::Object(named) = value else {
            return match value {
                Value::Null => Verdict::Drop("is `null` and is removed"),
                Value::Array(items) if items.is_empty() => Verdict::Drop("is `[]` and is removed"),
                _ => {
                    forget_others(object);
                    Verdict::Lose("is not an object and is removed")
                }
            };
        };
        let mut kept = Map::new();
        for (pattern, mut schema) in named {
            let Some(translated) = patterns::translated(&pattern) else {
                let what = format!(
                    "`{}` cannot be checked and is removed",
                    shown(&pattern.into())
                );
                self.note(keyword, &what);
                effect.is_looser = true;
                forget_others(object);
                continue;
            };
            let step = format!("{keyword}/{pattern}");
            effect.is_looser |= self.below(&step, |it| it.repair(&mut schema)).is_looser;
            kept.insert(translated, schema);
        }
        Verdict::Keep(kept.into())
    }

    fn dependencies(&mut self, keyword: &str, value: Value, effect: &mut Effect) -> Verdict {
        let Value::Object(mut named) = value else {
            return Verdict::Lose("is not an object and is removed");
        };
        for (name, dependency) in &mut named {
            if let Some(names) = names(dependency.clone()) {
                *dependency = names.into();
                continue;
            }
            let step = format!("{keyword}/{name}");
            effect.is_looser |= self.below(&step, |it| it.repair(dependency)).is_looser;
        }
        Verdict::Keep(named.into())
    }

    /// `exclusiveMinimum` is a boolean in draft 4 and a number since then.
    fn bounds(&mut self, object: &mut Map<String, Value>) {
        for keyword in ["exclusiveMinimum", "exclusiveMaximum"] {
            let Shape::Bound { inclusive } = shape_of(keyword) else {
                continue;
            };
            let Some(written) = object.get(keyword) else {
                continue;
            };
            let written = flag(written).map_or_else(|| written.clone(), Value::Bool);
            let bound = object.get(inclusive).and_then(number);
            match (written, bound, self.draft) {
                (Value::Bool(is_exclusive), _, Draft::Four) => {
                    object.insert(keyword.into(), is_exclusive.into());
                }
                (Value::Bool(true), Some(bound), _) => {
                    self.note(keyword, &format!("is a boolean, read with `{inclusive}`"));
                    object.insert(keyword.into(), bound.into());
                    object.shift_remove(inclusive);
                }
                (Value::Bool(_), ..) => {
                    self.note(keyword, "is a boolean and is removed");
                    object.shift_remove(keyword);
                }
                (value, bound, Draft::Four) => {
                    let Some(exclusive) = number(&value) else {
                        continue;
                    };
                    self.note(keyword, "is a number, read as an exclusive bound");
                    // The narrower of two bounds would need both forms; one of them is enough to know.
                    if bound.is_none() {
                        object.insert(inclusive.into(), exclusive.into());
                        object.insert(keyword.into(), true.into());
                    } else {
                        object.shift_remove(keyword);
                    }
                }
                _ => {}
            }
        }
    }

    /// `items` as a list is `prefixItems` since draft 2020-12.
    fn tuples(&mut self, object: &mut Map<String, Value>) {
        let is_tuple = object.get("items").is_some_and(Value::is_array);
        if self.draft != Draft::Draft202012 || !is_tuple {
            return;
        }
        self.note("items", "is a list, read as `prefixItems`");
        if let Some(items) = object.shift_remove("items") {
            object.insert("prefixItems".into(), items);
        }
        if let Some(others) = object.shift_remove("additionalItems") {
            object.insert("items".into(), others);
        }
    }
}

/// Removes what forbids properties that nothing names any more.
fn forget_others(object: &mut Map<String, Value>) {
    object.shift_remove("additionalProperties");
    object.shift_remove("unevaluatedProperties");
}

/// A list of distinct values.
fn choices(value: Value) -> Verdict {
    let Value::Array(choices) = value else {
        return Verdict::Lose("is not a list and is removed");
    };
    if choices.is_empty() {
        return Verdict::Lose("is empty and is removed");
    }
    let mut distinct: Vec<Value> = Vec::with_capacity(choices.len());
    for choice in choices {
        if !distinct.contains(&choice) {
            distinct.push(choice);
        }
    }
    Verdict::Keep(distinct.into())
}

fn number_or_lost(value: &Value) -> Verdict {
    match number(value) {
        Some(number) => Verdict::Keep(number.into()),
        None if value.is_null() => Verdict::Drop("is `null` and is removed"),
        None => Verdict::Lose("is not a number and is removed"),
    }
}
