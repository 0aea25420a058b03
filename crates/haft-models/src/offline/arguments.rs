//! Arguments from a stretch of the message: only required ones, and nothing made up.

use std::ops::Range;

use serde_json::{Map, Value};

use super::prompt::{Prompt, Word};
use super::schema::{Kind, MAX_DEPTH, kind_of, required};
use super::strings::{self, Purpose, name_words};

/// A list gets at most so many members.
const MAX_LIST: usize = 256;

/// The arguments of a call, or the names of those that are not in the message.
pub(super) fn fill(
    schema: Option<&Value>,
    prompt: &Prompt<'_>,
    range: Range<usize>,
) -> Result<Map<String, Value>, Vec<String>> {
    let Some(schema) = schema else {
        return Ok(Map::new());
    };
    let mut source = Source {
        prompt,
        root: schema,
        range,
        used: Vec::new(),
    };
    source.object(schema, "", 0)
}

/// A stretch of a message, from which each thing is taken at most once.
struct Source<'a> {
    prompt: &'a Prompt<'a>,
    root: &'a Value,
    range: Range<usize>,
    used: Vec<Range<usize>>,
}

impl<'a> Source<'a> {
    fn object(
        &mut self,
        schema: &'a Value,
        path: &str,
        depth: usize,
    ) -> Result<Map<String, Value>, Vec<String>> {
        let mut arguments = Map::new();
        let mut missing = Vec::new();
        for (name, property) in required(schema) {
            let path = match path {
                "" => name.to_owned(),
                path => format!("{path}.{name}"),
            };
            if let Kind::Object(inner) = kind_of(property, self.root, depth)
                && depth < MAX_DEPTH
            {
                match self.object(inner, &path, depth + 1) {
                    Ok(inner) => drop(arguments.insert(name.to_owned(), Value::Object(inner))),
                    Err(inner) => missing.extend(inner),
                }
                continue;
            }
            let found = self.value(name, property, depth);
            match found.or_else(|| property.get("default").cloned()) {
                Some(value) => drop(arguments.insert(name.to_owned(), value)),
                None => missing.push(path),
            }
        }
        if missing.is_empty() {
            Ok(arguments)
        } else {
            Err(missing)
        }
    }

    fn value(&mut self, name: &str, property: &'a Value, depth: usize) -> Option<Value> {
        let words = name_words(name);
        match kind_of(property, self.root, depth) {
            Kind::OneOf(members) => self.member(&members),
            Kind::Boolean => self.boolean(&words),
            Kind::Integer => self.number(&words, serde_json::Number::is_i64),
            Kind::Number => self.number(&words, |_| true),
            Kind::String { format } => self.string(&words, format).map(Value::String),
            Kind::List(items) => self.list(items, depth),
            Kind::Object(_) | Kind::Other => None,
        }
    }

    fn words(&self) -> &'a [Word<'a>] {
        self.prompt.words_in(&self.range)
    }

    fn is_free(&self, word: &Word<'_>) -> bool {
        let overlaps = |used: &Range<usize>| used.start < word.end && word.start < used.end;
        !self.used.iter().any(overlaps)
    }

    fn take(&mut self, range: Range<usize>) -> &'a str {
        let text = &self.prompt.text[range.clone()];
        self.used.push(range);
        text
    }

    /// The member of an enumeration that occurs first.
    fn member(&mut self, members: &[&Value]) -> Option<Value> {
        if let [only] = members {
            return Some((*only).clone());
        }
        let words: Vec<&str> = self
            .words()
            .iter()
            .map(|word| word.lower.as_str())
            .collect();
        let quotes = self.prompt.quotes_in(&self.range).iter();
        let quotes: Vec<&str> = quotes.map(|quote| quote.lower.as_str()).collect();
        let place = |member: &Value| {
            let text = match member {
                Value::String(text) => text.to_lowercase(),
                other => other.to_string(),
            };
            let wanted: Vec<&str> = text
                .split([' ', '_', '-'])
                .filter(|it| !it.is_empty())
                .collect();
            let spoken = (!wanted.is_empty())
                .then(|| words.windows(wanted.len()).position(|it| it == wanted))
                .flatten();
            let literal = || words.iter().position(|word| *word == text);
            let in_quotes = || quotes.iter().position(|quote| *quote == text);
            spoken.or_else(literal).or_else(in_quotes)
        };
        let found = members
            .iter()
            .filter_map(|member| Some((place(member)?, *member)));
        let (_, member) = found.min_by_key(|(place, _)| *place)?;
        Some(member.clone())
    }

    fn boolean(&self, name: &[String]) -> Option<Value> {
        let words = self.words();
        let no = ["no", "not", "without", "don't", "never"];
        let position = |words: &[Word<'_>]| {
            let mut pairs = words.windows(name.len().max(1)).enumerate();
            pairs.find_map(|(at, window)| {
                let same = window.iter().map(|word| &word.lower).eq(name);
                same.then_some(at)
            })
        };
        let spoken = words.iter().find_map(|word| match word.lower.as_str() {
            "true" | "yes" | "on" | "enable" | "enabled" => Some(true),
            "false" | "off" | "disable" | "disabled" => Some(false),
            _ => None,
        });
        if let Some(at) = position(words) {
            let is_denied = at > 0 && no.contains(&words[at - 1].lower.as_str());
            return Some((!is_denied && spoken != Some(false)).into());
        }
        let denied = || words.iter().any(|word| word.lower == "no").then_some(false);
        spoken.or_else(denied).map(Value::Bool)
    }

    /// The number behind the property's name, or else the next one.
    fn number(
        &mut self,
        name: &[String],
        fits: impl Fn(&serde_json::Number) -> bool,
    ) -> Option<Value> {
        let words = self.words();
        let candidates: Vec<_> = words
            .iter()
            .enumerate()
            .filter(|(_, word)| self.is_free(word))
            .filter_map(|(at, word)| Some((at, word.number().filter(&fits)?)))
            .collect();
        let is_named = |at: usize| at > 0 && name.contains(&words[at - 1].lower);
        let named = candidates.iter().find(|(at, _)| is_named(*at));
        let (at, number) = named.or_else(|| candidates.first()).cloned()?;
        self.take(words[at].start..words[at].end);
        Some(Value::Number(number))
    }

    fn string(&mut self, name: &[String], format: Option<&str>) -> Option<String> {
        let purpose = strings::purpose(name, format);
        let quotes = self.prompt.quotes_in(&self.range);
        if let Some(quote) = quotes.iter().find(|quote| self.is_free(quote)) {
            return Some(self.take(quote.start..quote.end).to_owned());
        }
        if let Some(range) = self.labelled(name) {
            return Some(self.take(range).to_owned());
        }
        match purpose {
            Purpose::Address | Purpose::Date => {
                let free: Vec<_> = self
                    .words()
                    .iter()
                    .filter(|word| self.is_free(word))
                    .cloned()
                    .collect();
                if let Some(word) = strings::token(&free, purpose) {
                    return Some(self.take(word.start..word.end).to_owned());
                }
                // An address is never a mere word, unless the property is called by a preposition.
                if format.is_some() {
                    return None;
                }
            }
            Purpose::Sum => return strings::sum(self.prompt, &self.range).map(str::to_owned),
            Purpose::Place | Purpose::Words | Purpose::Unknown => {}
        }
        let phrase = strings::phrase(self.prompt, &self.range, name, purpose, &self.used);
        if let Some(range) = phrase {
            return Some(self.take(range).to_owned());
        }
        match purpose {
            Purpose::Place => {
                let is_alone = self.words().len() <= 3;
                let range = strings::name_in(self.prompt, &self.range, is_alone)?;
                Some(self.take(range).to_owned())
            }
            Purpose::Words if self.used.is_empty() => {
                let text = self.prompt.text[self.range.clone()].trim();
                Some(text.trim_end_matches([',', '.', '?', '!']).to_owned())
            }
            _ => None,
        }
    }

    /// What stands behind the property's name and a colon or an equals sign.
    fn labelled(&self, name: &[String]) -> Option<Range<usize>> {
        let words = self.words();
        let last = name.last()?;
        words.windows(2).find_map(|pair| {
            let gap = &self.prompt.text[pair[0].end..pair[1].start];
            let is_label = gap.contains([':', '=']) && gap.trim().len() == 1;
            (is_label && pair[0].lower == *last && self.is_free(&pair[1]))
                .then(|| pair[1].start..pair[1].end)
        })
    }

    /// All that is left of a kind.
    fn list(&mut self, items: &'a Value, depth: usize) -> Option<Value> {
        let (prompt, range) = (self.prompt, self.range.clone());
        let number = |word: &Word<'_>| word.number().map(Value::Number);
        let list: Vec<(Range<usize>, Value)> = match kind_of(items, self.root, depth + 1) {
            Kind::Integer => {
                let whole = |word: &Word<'_>| number(word).filter(Value::is_i64);
                self.all(prompt.words_in(&range), whole)
            }
            Kind::Number => self.all(prompt.words_in(&range), number),
            Kind::String { .. } => self.all(prompt.quotes_in(&range), |quote| {
                Some(Value::from(quote.text))
            }),
            _ => Vec::new(),
        };
        let mut values = Vec::with_capacity(list.len());
        for (range, value) in list {
            self.used.push(range);
            values.push(value);
        }
        (!values.is_empty()).then_some(Value::Array(values))
    }

    fn all(
        &self,
        words: &[Word<'_>],
        read: impl Fn(&Word<'_>) -> Option<Value>,
    ) -> Vec<(Range<usize>, Value)> {
        let free = words.iter().filter(|word| self.is_free(word));
        free.filter_map(|word| Some((word.start..word.end, read(word)?)))
            .take(MAX_LIST)
            .collect()
    }
}
