//! A generator of documents and of damage to them: every kind of fault, alone or with others,
//! anywhere in the document.

use std::fmt::Write as _;
use std::ops::BitOr;

use serde_json::{Map, Value};

/// A small deterministic generator (splitmix64), so that a seed in a failure is all one needs.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xdead_beef)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap_or(0)
    }

    pub(crate) fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// A set of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Faults(u32);

impl BitOr for Faults {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Faults {
    pub(crate) const TRAILING_COMMA: Self = Self(1);
    pub(crate) const SINGLE_QUOTES: Self = Self(1 << 1);
    pub(crate) const UNQUOTED_KEYS: Self = Self(1 << 2);
    pub(crate) const PYTHON_LITERALS: Self = Self(1 << 3);
    pub(crate) const FENCE: Self = Self(1 << 4);
    pub(crate) const PROSE: Self = Self(1 << 5);
    pub(crate) const MISSING_CLOSE: Self = Self(1 << 6);
    pub(crate) const RAW_NEWLINE: Self = Self(1 << 7);
    pub(crate) const INNER_QUOTES: Self = Self(1 << 8);
    pub(crate) const COMMENTS: Self = Self(1 << 9);
    pub(crate) const SMART_QUOTES: Self = Self(1 << 10);
    pub(crate) const MISSING_COMMA: Self = Self(1 << 11);
    pub(crate) const LABEL: Self = Self(1 << 12);
    pub(crate) const ESCAPED_ALL: Self = Self(1 << 13);
    pub(crate) const SPECIAL_BLANKS: Self = Self(1 << 14);

    pub(crate) const ALL: [Self; 15] = [
        Self::TRAILING_COMMA,
        Self::SINGLE_QUOTES,
        Self::UNQUOTED_KEYS,
        Self::PYTHON_LITERALS,
        Self::FENCE,
        Self::PROSE,
        Self::MISSING_CLOSE,
        Self::RAW_NEWLINE,
        Self::INNER_QUOTES,
        Self::COMMENTS,
        Self::SMART_QUOTES,
        Self::MISSING_COMMA,
        Self::LABEL,
        Self::ESCAPED_ALL,
        Self::SPECIAL_BLANKS,
    ];

    pub(crate) fn random(random: &mut Random) -> Self {
        let count = 1 + random.below(5);
        (0..count).fold(Self(0), |set, _| {
            set | Self::ALL[random.below(Self::ALL.len())]
        })
    }

    pub(crate) fn has(self, fault: Self) -> bool {
        self.0 & fault.0 != 0
    }
}

const WORDS: [&str; 24] = [
    "Oslo",
    "two",
    "Zürich",
    "the",
    "naïve",
    "東京",
    "😀",
    "a/b",
    "x=1",
    "50%",
    "(maybe)",
    "O'Brien",
    "it's",
    "true",
    "https://example.org/a?b=c",
    "e.g.",
    "10:30",
    "#1",
    "C++",
    "-5",
    "and,",
    "ok.",
    "[1]",
    "{x}",
];

/// A document that looks like arguments of a tool.
pub(crate) fn document(faults: Faults, random: &mut Random) -> Value {
    object(faults, random, 0)
}

fn object(faults: Faults, random: &mut Random, depth: usize) -> Value {
    let mut members = Map::new();
    for index in 0..=random.below(4) {
        let name = random.pick(&["city", "max_results", "größe", "unit", "query-text", "n"]);
        let value = value(faults, random, depth + 1);
        members.insert(format!("{name}{index}"), value);
    }
    Value::Object(members)
}

fn value(faults: Faults, random: &mut Random, depth: usize) -> Value {
    match random.below(if depth < 3 { 9 } else { 6 }) {
        0 => Value::from(random.below(100_000)),
        1 => Value::from(-1.25 * f64::from(u16::try_from(random.below(1_000)).unwrap_or(0))),
        2 => Value::from(random.one_in(2)),
        3 => Value::Null,
        4 | 5 => Value::from(text(faults, random)),
        6 => (0..random.below(4))
            .map(|_| value(faults, random, depth + 1))
            .collect(),
        7 => (0..=random.below(3))
            .map(|_| Value::from(text(faults, random)))
            .collect(),
        _ => object(faults, random, depth),
    }
}

fn text(faults: Faults, random: &mut Random) -> String {
    let count = if random.one_in(12) {
        400
    } else {
        random.below(6)
    };
    let mut words: Vec<String> = (0..count).map(|_| random.pick(&WORDS).to_owned()).collect();
    if faults.has(Faults::INNER_QUOTES) && count > 2 {
        let word = &mut words[1 + random.below(count - 2)];
        *word = format!("\"{word}\"");
    }
    let newline = faults.has(Faults::RAW_NEWLINE) && random.one_in(2);
    words.join(if newline {
        random.pick(&["\n", "\t", "\r\n"])
    } else {
        " "
    })
}

/// Writes the value with the faults in it.
pub(crate) fn damage(value: &Value, faults: Faults, random: &mut Random) -> String {
    let style = random.below(3);
    let escaped = faults.has(Faults::ESCAPED_ALL);
    let lines = faults.has(Faults::COMMENTS) || faults.has(Faults::MISSING_COMMA) || style == 0;
    let newline = if random.one_in(3) { "\r\n" } else { "\n" };
    let mut writer = Writer {
        faults,
        random,
        newline: if lines { newline } else { "" },
        text: String::new(),
    };
    writer.value(value, 0);
    let mut text = writer.text;
    if faults.has(Faults::MISSING_CLOSE) {
        text = without_closers(&text, random);
    }
    if escaped {
        let encoded = Value::from(text.as_str()).to_string();
        encoded[1..encoded.len() - 1].clone_into(&mut text);
    }
    surround(text, faults, random)
}

/// Drops one closer or more from the end; a number then has to be the last thing in a line.
fn without_closers(text: &str, random: &mut Random) -> String {
    let mut rest = text.trim_end();
    for _ in 0..=random.below(3) {
        let Some(shorter) = rest.strip_suffix(['}', ']']) else {
            break;
        };
        let shorter = shorter.trim_end();
        if shorter.ends_with(['{', '[', ',', '/']) {
            break;
        }
        rest = shorter;
    }
    rest.to_owned()
}

fn surround(text: String, faults: Faults, random: &mut Random) -> String {
    let open = faults.has(Faults::MISSING_CLOSE);
    let mut text = text;
    if faults.has(Faults::LABEL) {
        let label = random.pick(&[
            "args = ",
            "input: ",
            "json\n",
            "tool_input=",
            "payload:\r\n",
        ]);
        text = format!("{label}{text}");
    }
    if faults.has(Faults::FENCE) {
        let fence = random.pick(&["```", "~~~", "````"]);
        let info = random.pick(&["", "json", "JSON5", "python title=x"]);
        text = format!("{fence}{info}\n{text}\n{fence}");
    }
    if faults.has(Faults::PROSE) {
        let before = random.pick(&[
            "D'accord, voici l'appel : ",
            "That's all I need (see [1]): ",
            "Let's go!\n\n",
            "<fn>",
        ]);
        let after = random.pick(&[
            ".\nIt's done.",
            " \"quoted\" words & more",
            "\n\n- a list\n- {x}",
            "</fn>",
        ]);
        let after = if open && !faults.has(Faults::FENCE) {
            ""
        } else {
            after
        };
        text = format!("{before}{text}{after}");
    }
    text
}

struct Writer<'r> {
    faults: Faults,
    random: &'r mut Random,
    newline: &'static str,
    text: String,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Object(members) => {
                let items: Vec<_> = members
                    .iter()
                    .map(|(key, value)| (Some(key.as_str()), value))
                    .collect();
                self.bracket('{', &items, '}', depth);
            }
            Value::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| (None, item)).collect();
                self.bracket('[', &items, ']', depth);
            }
            Value::String(text) => self.string(text, false),
            Value::Bool(true) if self.faults.has(Faults::PYTHON_LITERALS) => {
                self.text.push_str("True");
            }
            Value::Bool(false) if self.faults.has(Faults::PYTHON_LITERALS) => {
                self.text.push_str("False");
            }
            Value::Null if self.faults.has(Faults::PYTHON_LITERALS) => self.text.push_str("None"),
            other => write!(self.text, "{other}").unwrap(),
        }
    }

    fn bracket(&mut self, open: char, items: &[(Option<&str>, &Value)], close: char, depth: usize) {
        self.text.push(open);
        for (index, (key, value)) in items.iter().enumerate() {
            self.line(depth + 1);
            if let Some(key) = key {
                self.string(key, true);
                self.text.push(':');
                self.blank();
            }
            self.value(value, depth + 1);
            let last = index + 1 == items.len();
            let trailing = self.faults.has(Faults::TRAILING_COMMA) && self.random.one_in(2);
            let missing = self.faults.has(Faults::MISSING_COMMA) && self.random.one_in(2);
            if if last { trailing } else { !missing } {
                self.text.push(',');
            }
            if self.faults.has(Faults::COMMENTS) && self.random.one_in(2) {
                let comment = self.random.pick(&[
                    " // it's \"so\"",
                    " /* {required}, */",
                    "  # note: 1",
                    " // TODO }",
                ]);
                // A quote in a comment directly behind a string is refused: it may be content.
                let quoted = comment.contains('"') && !self.text.ends_with(',');
                self.text
                    .push_str(if quoted { " // it's so" } else { comment });
            }
        }
        if !items.is_empty() {
            self.line(depth);
        }
        self.text.push(close);
    }

    fn line(&mut self, depth: usize) {
        if !self.newline.is_empty() {
            self.text.push_str(self.newline);
            self.text.push_str(&"  ".repeat(depth));
        }
    }

    fn blank(&mut self) {
        let special = self.faults.has(Faults::SPECIAL_BLANKS) && self.random.one_in(2);
        self.text.push(if special { '\u{a0}' } else { ' ' });
    }

    fn string(&mut self, text: &str, key: bool) {
        if key && self.faults.has(Faults::UNQUOTED_KEYS) {
            self.text.push_str(text);
            return;
        }
        let (open, close) = if self.faults.has(Faults::SINGLE_QUOTES) {
            ('\'', '\'')
        } else if self.faults.has(Faults::SMART_QUOTES) {
            ('“', '”')
        } else {
            ('"', '"')
        };
        self.text.push(open);
        self.text.push_str(text);
        self.text.push(close);
    }
}
