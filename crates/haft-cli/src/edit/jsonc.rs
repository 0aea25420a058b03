//! JSON with comments and trailing commas, as editors and coding agents write it.

use std::ops::Range;

use serde_json::{Map, Value};

use super::EditError;

/// How far members are indented where the document does not show it.
const INDENT: &str = "  ";

/// A document, and where its parts are.
#[derive(Debug)]
pub(crate) struct Jsonc {
    text: String,
    /// The same bytes without comments and trailing commas, with blanks in their place.
    plain: String,
    /// Whether a byte belongs to a comment.
    is_comment: Vec<bool>,
    value: Value,
}

/// A member of an object.
#[derive(Debug, Clone)]
struct Member {
    key: String,
    /// From the first byte of the key to the last of the value.
    whole: Range<usize>,
    value: Range<usize>,
}

impl Jsonc {
    /// Reads a document. An empty one is an empty object. The error says where, and quotes nothing.
    pub(crate) fn parse(text: &str) -> Result<Self, EditError> {
        let (plain, is_comment) = without_comments(text);
        let value = if plain.trim().is_empty() {
            Value::Object(Map::new())
        } else {
            serde_json::from_str(&plain).map_err(|error| {
                let (line, column) = (error.line(), error.column());
                EditError(format!("not valid JSON at line {line}, column {column}"))
            })?
        };
        Ok(Self {
            text: text.to_owned(),
            plain,
            is_comment,
            value,
        })
    }

    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// The text with this value at a path of keys; objects on the way are made where they are missing.
    pub(crate) fn with(&self, path: &[&str], value: &Value) -> Result<String, EditError> {
        let mut expected = self.value.clone();
        set(&mut expected, path, value)?;
        if expected == self.value && self.value.pointer("").is_some() && self.holds(path) {
            return Ok(self.text.clone());
        }
        if self.plain.trim().is_empty() {
            let mut text = self.text.clone();
            text.push_str(&pretty(&expected, ""));
            text.push('\n');
            return Ok(text);
        }
        let mut object = self.root()?;
        let mut rest = path;
        while let [key, below @ ..] = rest {
            let members = self.members(&object)?;
            // Of equal keys the last one counts.
            let Some(member) = members.iter().rev().find(|it| it.key == *key) else {
                let mut inner = value.clone();
                for key in below.iter().rev() {
                    inner = Value::Object(Map::from_iter([((*key).to_owned(), inner)]));
                }
                return Self::checked(self.inserted(&object, &members, key, &inner), &expected);
            };
            if below.is_empty() {
                let indent = self.indent_at(member.whole.start);
                let mut text = self.text.clone();
                text.replace_range(member.value.clone(), &pretty(value, indent));
                return Self::checked(text, &expected);
            }
            object = member.value.clone();
            rest = below;
        }
        Err(EditError(String::from("no key is named")))
    }

    /// The text without the value at a path of keys.
    pub(crate) fn without(&self, path: &[&str]) -> Result<String, EditError> {
        let Some((last, above)) = path.split_last() else {
            return Err(EditError(String::from("no key is named")));
        };
        let mut expected = self.value.clone();
        let mut parent = &mut expected;
        let mut object = self.root()?;
        for key in above {
            let members = self.members(&object)?;
            let found = members.iter().rev().find(|it| it.key == *key);
            let (Some(member), Some(below)) = (found, parent.get_mut(*key)) else {
                return Ok(self.text.clone());
            };
            object = member.value.clone();
            parent = below;
        }
        let members = self.members(&object)?;
        let Some(at) = members.iter().position(|it| it.key == *last) else {
            return Ok(self.text.clone());
        };
        if let Some(parent) = parent.as_object_mut() {
            parent.remove(*last);
        }
        let member = &members[at];
        let mut text = self.text.clone();
        let close = object.end - 1;
        let next_comma = |from: usize, to: usize| {
            let bytes = self.text.as_bytes();
            (from..to).find(|at| bytes[*at] == b',' && !self.is_comment[*at])
        };
        let following = members.get(at + 1).map_or(close, |it| it.whole.start);
        let own_comma = next_comma(member.value.end, following);
        let end = own_comma.map_or(member.value.end, |at| at + 1);
        let before = self.text[..member.whole.start].trim_end_matches([' ', '\t']);
        let start = if before.ends_with('\n') {
            before.trim_end_matches('\n').trim_end_matches('\r').len()
        } else {
            member.whole.start
        };
        // A comment behind the preceding member ends with its line.
        let start = start.max(if at > 0 {
            members[at - 1].value.end
        } else {
            object.start + 1
        });
        text.replace_range(start..end, "");
        if at + 1 == members.len()
            && at > 0
            && own_comma.is_none()
            && let Some(comma) = next_comma(members[at - 1].value.end, member.whole.start)
        {
            // On one line the blank behind the comma goes with it.
            let blank = &self.text[comma + 1..start.max(comma + 1)];
            let end = if blank.trim_matches(' ').is_empty() {
                comma + 1 + blank.len()
            } else {
                comma + 1
            };
            text.replace_range(comma..end, "");
        }
        Self::checked(text, &expected)
    }

    fn holds(&self, path: &[&str]) -> bool {
        let mut value = &self.value;
        path.iter().all(|key| {
            let found = value.get(*key);
            value = found.unwrap_or(&Value::Null);
            found.is_some()
        })
    }

    /// The text, if it means what it should.
    fn checked(text: String, expected: &Value) -> Result<String, EditError> {
        let new = Self::parse(&text).map_err(|_| unclear())?;
        if new.value == *expected {
            Ok(text)
        } else {
            Err(unclear())
        }
    }

    fn root(&self) -> Result<Range<usize>, EditError> {
        let start = self.plain.len() - self.plain.trim_start().len();
        let end = self.plain.trim_end().len();
        if self.value.is_object() {
            Ok(start..end)
        } else {
            Err(EditError(String::from("the document is not an object")))
        }
    }

    /// The text with a new member at the end of an object.
    fn inserted(
        &self,
        object: &Range<usize>,
        members: &[Member],
        key: &str,
        value: &Value,
    ) -> String {
        let mut text = self.text.clone();
        let close = object.end - 1;
        let outer = self.indent_at(object.start);
        let key = Value::from(key);
        let Some(last) = members.last() else {
            let inner = format!("{outer}{INDENT}");
            let member = format!("\n{inner}{key}: {}", pretty(value, &inner));
            let rest = &self.text[object.start + 1..close];
            let end = if rest.contains('\n') {
                String::new()
            } else {
                format!("\n{outer}")
            };
            text.insert_str(close, &end);
            text.insert_str(object.start + 1, &member);
            return text;
        };
        let tail = last.value.end..close;
        let bytes = self.text.as_bytes();
        let has_comma = tail
            .clone()
            .any(|at| bytes[at] == b',' && !self.is_comment[at]);
        // A comma at the end stays the style of the object.
        let (comma, end) = if has_comma { ("", ",") } else { (",", "") };
        let line_end = tail
            .clone()
            .rev()
            .find(|at| bytes[*at] == b'\n' && !self.is_comment[*at]);
        if let Some(at) = line_end {
            let at = if bytes[at - 1] == b'\r' { at - 1 } else { at };
            let line_end = if bytes[at] == b'\r' { "\r\n" } else { "\n" };
            let inner = self.indent_at(last.whole.start);
            let member = format!("{line_end}{inner}{key}: {}{end}", pretty(value, inner));
            text.insert_str(at, &member);
            text.insert_str(last.value.end, comma);
        } else {
            let at = if has_comma { close } else { last.value.end };
            text.insert_str(at, &format!("{comma} {key}: {value}{end}"));
        }
        text
    }

    /// The blanks in front of what begins here, if nothing else is on its line.
    fn indent_at(&self, at: usize) -> &str {
        let line = self.text[..at].rfind('\n').map_or(0, |at| at + 1);
        let before = &self.text[line..at];
        let blank = before.len() - before.trim_start_matches([' ', '\t']).len();
        &before[..blank]
    }

    /// The members of an object that is known to be legal.
    fn members(&self, object: &Range<usize>) -> Result<Vec<Member>, EditError> {
        let bytes = self.plain.as_bytes();
        if bytes.get(object.start) != Some(&b'{') {
            return Err(EditError(String::from(
                "a key of this file is not an object",
            )));
        }
        let mut members = Vec::new();
        let mut at = object.start + 1;
        while let Some(start) = (at..object.end).find(|at| bytes[*at] == b'"') {
            let key_end = string_end(bytes, start);
            let key = serde_json::from_str(&self.plain[start..key_end]).map_err(|_| unclear())?;
            let colon = (key_end..object.end).find(|at| bytes[*at] == b':');
            let begin = colon.ok_or_else(unclear)? + 1;
            let begin = (begin..object.end).find(|at| !bytes[*at].is_ascii_whitespace());
            let begin = begin.ok_or_else(unclear)?;
            let end = value_end(bytes, begin);
            members.push(Member {
                key,
                whole: start..end,
                value: begin..end,
            });
            at = end;
        }
        Ok(members)
    }
}

fn unclear() -> EditError {
    EditError(String::from(
        "the file has a form that cannot be changed safely",
    ))
}

fn set(target: &mut Value, path: &[&str], value: &Value) -> Result<(), EditError> {
    let Some((key, below)) = path.split_first() else {
        *target = value.clone();
        return Ok(());
    };
    let object = target.as_object_mut();
    let object = object.ok_or_else(|| EditError(format!("what holds `{key}` is not an object")))?;
    let inner = object.entry((*key).to_owned());
    set(
        inner.or_insert_with(|| Value::Object(Map::new())),
        below,
        value,
    )
}

/// The value over several lines, those after the first indented.
fn pretty(value: &Value, indent: &str) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    text.replace('\n', &format!("\n{indent}"))
}

/// Where a string ends that begins here.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// Where a value ends that begins here.
fn value_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    let mut depth = 0_usize;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = string_end(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return if depth == 1 { at + 1 } else { at },
            b'}' | b']' => depth -= 1,
            byte if depth == 0 && (byte == b',' || byte.is_ascii_whitespace()) => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

/// The text with blanks in place of comments, trailing commas and a byte order mark, and which bytes were comments.
fn without_comments(text: &str) -> (String, Vec<bool>) {
    let bytes = text.as_bytes();
    let mut plain = bytes.to_vec();
    let mut is_comment = vec![false; bytes.len()];
    let mut at = 0;
    let mut comma = None;
    if text.starts_with('\u{feff}') {
        plain[..3].fill(b' ');
        at = 3;
    }
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'"', _) => {
                comma = None;
                at = string_end(bytes, at);
                continue;
            }
            (b'/', Some(b'/')) => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    plain[at] = b' ';
                    is_comment[at] = true;
                    at += 1;
                }
                continue;
            }
            (b'/', Some(b'*')) => {
                let end = text[at..]
                    .find("*/")
                    .map_or(bytes.len(), |length| at + length + 2);
                for at in at..end {
                    is_comment[at] = true;
                    if bytes[at] != b'\n' {
                        plain[at] = b' ';
                    }
                }
                at = end;
                continue;
            }
            (b',', _) => comma = Some(at),
            (b'}' | b']', _) => {
                if let Some(comma) = comma.take() {
                    plain[comma] = b' ';
                }
            }
            (byte, _) if !byte.is_ascii_whitespace() => comma = None,
            _ => {}
        }
        at += 1;
    }
    // Only whole characters were replaced, by blanks.
    (String::from_utf8(plain).unwrap_or_default(), is_comment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const EDITOR: &str = "\u{feff}{\n  // servers\n  \"servers\": {\n    \"a\": {\"command\": \"x\"}, // first\n    /* the\n second */\n    \"b\": {\"url\": \"http://x/,}//y\",},\n  },\n  \"inputs\": [1, 2,],\n}\n";

    #[test]
    fn comments_commas_and_a_byte_order_mark_are_read_over() {
        let read = Jsonc::parse(EDITOR).unwrap();
        let expected = json!({"servers": {"a": {"command": "x"}, "b": {"url": "http://x/,}//y"}}, "inputs": [1, 2]});
        assert_eq!(*read.value(), expected);
        assert_eq!(*Jsonc::parse(" // nothing\n").unwrap().value(), json!({}));
        let error = Jsonc::parse("{\n \"secret\": oops}").unwrap_err();
        assert_eq!(error.0, "not valid JSON at line 2, column 12");
        assert!(Jsonc::parse("{,}").is_ok_and(|it| it.value() == &json!({})));
    }

    #[test]
    fn a_new_member_leaves_everything_else_as_it_is() {
        let value = json!({"command": "haft"});
        let new = Jsonc::parse(EDITOR)
            .unwrap()
            .with(&["servers", "haft"], &value);
        let expected = EDITOR.replace(
            "/,}//y\",},\n",
            "/,}//y\",},\n    \"haft\": {\n      \"command\": \"haft\"\n    },\n",
        );
        assert_eq!(new.unwrap(), expected);
        for (old, new) in [
            (
                "",
                "{\n  \"servers\": {\n    \"haft\": {\n      \"command\": \"haft\"\n    }\n  }\n}\n",
            ),
            (
                "{}",
                "{\n  \"servers\": {\n    \"haft\": {\n      \"command\": \"haft\"\n    }\n  }\n}",
            ),
            (
                "{\"a\": 1}",
                "{\"a\": 1, \"servers\": {\"haft\":{\"command\":\"haft\"}}}",
            ),
            (
                "{\n\t\"a\": 1 // one\n}",
                "{\n\t\"a\": 1, // one\n\t\"servers\": {\n\t  \"haft\": {\n\t    \"command\": \"haft\"\n\t  }\n\t}\n}",
            ),
            (
                "{\n  \"servers\": {}\n}",
                "{\n  \"servers\": {\n    \"haft\": {\n      \"command\": \"haft\"\n    }\n  }\n}",
            ),
        ] {
            let changed = Jsonc::parse(old)
                .unwrap()
                .with(&["servers", "haft"], &value);
            assert_eq!(changed.as_deref(), Ok(new), "{old}");
            let again = Jsonc::parse(new)
                .unwrap()
                .with(&["servers", "haft"], &value);
            assert_eq!(again.as_deref(), Ok(new), "twice is once");
        }
    }

    #[test]
    fn a_member_that_is_there_is_replaced_in_its_place() {
        let new = Jsonc::parse(EDITOR)
            .unwrap()
            .with(&["servers", "a"], &json!(1));
        assert_eq!(new.unwrap(), EDITOR.replace("{\"command\": \"x\"}", "1"));
        assert!(
            Jsonc::parse("{\"servers\": 1}")
                .unwrap()
                .with(&["servers", "a"], &json!(1))
                .is_err()
        );
        assert!(Jsonc::parse("[]").unwrap().with(&["a"], &json!(1)).is_err());
    }

    #[test]
    fn removing_undoes_inserting() {
        for old in [
            EDITOR,
            "{\"a\": 1}",
            "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n",
            "{\n  \"servers\": {\"x\": 1}\n}",
        ] {
            let path = &["servers", "haft"];
            let new = Jsonc::parse(old)
                .unwrap()
                .with(path, &json!({"command": "haft"}));
            let back = Jsonc::parse(&new.unwrap()).unwrap().without(path).unwrap();
            let mut expected = Jsonc::parse(old).unwrap().value().clone();
            if expected.get("servers").is_none() {
                expected["servers"] = json!({});
            } else {
                assert_eq!(back, old);
            }
            assert_eq!(*Jsonc::parse(&back).unwrap().value(), expected);
        }
        let left = Jsonc::parse(EDITOR)
            .unwrap()
            .without(&["servers", "a"])
            .unwrap();
        assert!(
            left.contains("// first\n    /* the\n second */\n    \"b\""),
            "{left}"
        );
        let same = Jsonc::parse(EDITOR).unwrap().without(&["servers", "z"]);
        assert_eq!(same.as_deref(), Ok(EDITOR));
    }
}
