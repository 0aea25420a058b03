//! Values out of JSON text, metered: a few bytes of text are many of memory.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{Map, Text, Value};
use crate::vm::{Failure, Meter, Outcome};

impl Meter {
    /// The value of a JSON text, or what is wrong with it.
    pub(crate) fn parse_json(&mut self, text: &str) -> Outcome<Result<Value, String>> {
        let mut stopped = None;
        let mut json = serde_json::Deserializer::from_str(text);
        let seed = Seed {
            meter: self,
            stopped: &mut stopped,
        };
        let parsed = seed
            .deserialize(&mut json)
            .and_then(|value| json.end().map(|()| value));
        match stopped {
            Some(failure) => Err(failure),
            None => Ok(parsed.map_err(|error| format!("invalid JSON: {error}"))),
        }
    }
}

struct Seed<'m> {
    meter: &'m mut Meter,
    /// Why the meter ended it.
    stopped: &'m mut Option<Box<Failure>>,
}

impl Seed<'_> {
    fn again(&mut self) -> Seed<'_> {
        Seed {
            meter: self.meter,
            stopped: self.stopped,
        }
    }

    fn use_up<E: Error>(&mut self, bytes: usize, work: usize) -> Result<(), E> {
        let used = self.meter.work(work).and_then(|()| self.meter.ask(bytes));
        used.map_err(|failure| {
            *self.stopped = Some(failure);
            E::custom("stopped")
        })
    }

    fn text<E: Error>(&mut self, text: &str) -> Result<Text, E> {
        // Short ones lie in the value.
        let bytes = if text.len() > 14 { text.len() + 40 } else { 0 };
        self.use_up(bytes, 2 + text.len() / 8)?;
        Ok(Text::from(text))
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    #[allow(clippy::cast_precision_loss)] // the nearest double
    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Float(value as f64), Value::Int))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: Error>(mut self, text: &str) -> Result<Value, E> {
        self.text(text).map(Value::Text)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        self.use_up(40, 2)?;
        while let Some(item) = list.next_element_seed(self.again())? {
            if items.len() == items.capacity() {
                let more = items.capacity().max(4);
                self.use_up(16 * more, 0)?;
                items.reserve_exact(more);
            }
            self.use_up(0, 2)?;
            items.push(item);
        }
        Ok(Value::array(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<Value, A::Error> {
        let mut members: Vec<(Text, Value)> = Vec::new();
        self.use_up(80, 2)?;
        while let Some(key) = object.next_key::<std::borrow::Cow<'de, str>>()? {
            // In the list, and then in the map.
            self.use_up(32 + 48, 6)?;
            let key = self.text(&key)?;
            members.push((key, object.next_value_seed(self.again())?));
        }
        // Of the same key the last one counts, as the sort is stable.
        members.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Value::map(members.into_iter().collect::<Map>()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;
    use crate::vm::{Canceller, Limits, Stop};

    fn meter(memory: usize) -> Meter {
        let limits = Limits {
            memory,
            ..Limits::default()
        };
        Meter::new(&limits, Canceller::default())
    }

    #[test]
    fn what_is_parsed_is_what_is_read_by_way_of_a_tree() {
        for text in [
            "null",
            " [1, -2, 2.5, 1e3, 18446744073709551615, 9223372036854775807, true] ",
            r#"{"b": {"z": [], "a": {}}, "a": "\u00e4\n", "b": 2}"#,
            r#""longer than fourteen bytes \ud83d\ude00""#,
            "-0",
            "1e400",
            "[1,]",
            "",
            "{} x",
            "{1: 2}",
        ] {
            let tree = serde_json::from_str::<Json>(text);
            let tree = tree.map(|json| Value::from_json(&json));
            let tree = tree.map_err(|error| format!("invalid JSON: {error}"));
            let parsed = meter(8).parse_json(text).expect("it fits");
            assert_eq!(format!("{parsed:?}"), format!("{tree:?}"), "{text}");
        }
        let deep = "[".repeat(200);
        let parsed = meter(8).parse_json(&deep).expect("it fits");
        assert!(parsed.is_err_and(|error| error.contains("recursion limit")));
    }

    #[test]
    fn a_long_array_is_refused_before_it_is_made() {
        let text = format!("[{}1]", "1,".repeat(200_000));
        let failure = meter(1).parse_json(&text).expect_err("it is too large");
        assert!(matches!(*failure, Failure::Stop(Stop::Memory(1))));
    }
}
