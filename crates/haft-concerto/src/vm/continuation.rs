//! What is to be done with a value once a called function has returned it, or the host has given it:
//! built-ins that call functions are written as steps, so that they need no recursion.

use std::time::Instant;

use super::Effect;
use super::pipeline::PipelineRun;
use super::place::WriteBack;
use crate::load::Method;
use crate::value::{Map, Sizer, Text, Value};

/// What a built-in gives.
pub(crate) enum Reply {
    Value(Value),
    /// Performed by the host; its value is the result.
    Effect(Effect),
    /// A function is called first.
    Call {
        function: Value,
        arguments: Vec<Value>,
        then: Continuation,
    },
    /// A pipeline is run.
    Pipeline(PipelineRun),
}

impl From<Value> for Reply {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

/// What comes next.
pub(crate) enum Next {
    /// It is over, with this value.
    Done(Value),
    /// Another function is called, and its value comes back here.
    Call(Value, Vec<Value>),
    /// A function of the program is called, by number.
    Enter(u32, Vec<Value>),
    /// The host is asked, and its value comes back here.
    Effect(Effect),
}

/// What is to be done with a value.
#[derive(Debug)]
pub(crate) enum Continuation {
    /// Over the elements of an array.
    Each(Each),
    /// The value is wrapped.
    Wrap(fn(Value) -> Value),
    /// How long it took is added.
    Measure(Instant),
    /// The changed `self` goes back to its place; done when the frame is left.
    WriteBack(WriteBack),
    /// The next stage of a pipeline.
    Pipeline(PipelineRun),
}

/// A built-in over the elements of an array.
#[derive(Debug)]
pub(crate) struct Each {
    pub(crate) method: Method,
    pub(crate) function: Value,
    pub(crate) items: std::vec::IntoIter<Value>,
    /// The element that the function was called with.
    pub(crate) current: Value,
    pub(crate) results: Vec<Value>,
    /// Keys of the entries, for `query` of a hashmap.
    pub(crate) keys: std::vec::IntoIter<Text>,
}

impl Each {
    /// Begins; the first call, or the result at once.
    pub(crate) fn begin(
        method: Method,
        function: Value,
        items: Vec<Value>,
        keys: Vec<Text>,
    ) -> Reply {
        let mut each = Self {
            method,
            function,
            items: items.into_iter(),
            current: Value::Nil,
            results: Vec::new(),
            keys: keys.into_iter(),
        };
        match each.call() {
            Next::Call(function, arguments) => Reply::Call {
                function,
                arguments,
                then: Continuation::Each(each),
            },
            Next::Done(value) => Reply::Value(value),
            // `call` gives nothing else.
            Next::Enter(..) | Next::Effect(_) => Reply::Value(Value::Nil),
        }
    }

    fn call(&mut self) -> Next {
        match self.items.next() {
            Some(item) => {
                self.current = item.clone();
                let arguments = match self.method {
                    Method::Query => match self.keys.next() {
                        Some(key) => vec![Value::Text(key), item],
                        None => vec![item],
                    },
                    _ => vec![item],
                };
                if let (Method::Query, Some(Value::Text(key))) = (self.method, arguments.first()) {
                    self.current =
                        Value::array(vec![Value::Text(key.clone()), self.current.take()]);
                }
                Next::Call(self.function.clone(), arguments)
            }
            None => Next::Done(match self.method {
                Method::Find => Value::None,
                Method::Any => Value::Bool(false),
                Method::All => Value::Bool(true),
                Method::Query => Value::map(entries(&mut self.results)),
                _ => Value::array(std::mem::take(&mut self.results)),
            }),
        }
    }

    fn step(&mut self, value: Value) -> Next {
        match self.method {
            Method::Map => self.results.push(value),
            Method::Filter | Method::Query if value.is_truthy() => {
                self.results.push(self.current.take());
            }
            Method::Find if value.is_truthy() => {
                return Next::Done(Value::some(self.current.take()));
            }
            Method::Any if value.is_truthy() => return Next::Done(Value::Bool(true)),
            Method::All if !value.is_truthy() => return Next::Done(Value::Bool(false)),
            Method::Reduce => {
                return match self.items.next() {
                    Some(item) => Next::Call(self.function.clone(), vec![value, item]),
                    None => Next::Done(value),
                };
            }
            _ => {}
        }
        self.call()
    }
}

fn entries(pairs: &mut Vec<Value>) -> Map {
    let mut map = Map::default();
    for pair in pairs.drain(..) {
        if let Value::Array(pair) = &pair
            && let [Value::Text(key), value] = pair.items()
        {
            map.insert(key.clone(), value.clone());
        }
    }
    map
}

impl Continuation {
    /// Adds what it holds.
    pub(crate) fn measure(&self, sizer: &mut Sizer) {
        match self {
            Self::Each(each) => {
                let count = each.items.len() + each.results.capacity() + each.keys.len();
                sizer.bytes(16 * count);
                sizer.add(each.items.as_slice());
                sizer.add(&each.results);
                sizer.add([&each.current, &each.function]);
                sizer.texts(each.keys.as_slice());
            }
            Self::WriteBack(back) => sizer.add(&back.keys),
            Self::Pipeline(run) => sizer.add([run.value()]),
            Self::Wrap(_) | Self::Measure(_) => {}
        }
    }

    /// Goes on with a value.
    pub(crate) fn step(&mut self, value: Value) -> Next {
        match self {
            Self::Each(each) => each.step(value),
            Self::Wrap(wrap) => Next::Done(wrap(value)),
            Self::Measure(start) => {
                let spent = i64::try_from(start.elapsed().as_millis()).unwrap_or(i64::MAX);
                Next::Done(Value::array(vec![value, Value::Int(spent)]))
            }
            Self::WriteBack(_) => Next::Done(value),
            Self::Pipeline(run) => run.step(value),
        }
    }
}
