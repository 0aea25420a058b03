//! One level of escaping taken off a whole text, and edits carried back through it.

use haft_core::RepairKind;

use super::edits::Edit;

/// A text from which one level of escaping was taken, with what is needed to find the way back.
///
/// Only backslashes disappear, one per escape, so a position of the new text is a position of the
/// old one plus the backslashes dropped before it.
#[derive(Debug)]
pub(super) struct Unescaped {
    pub(super) text: String,
    /// Positions in the new text of the characters that lost their backslash; narrow and of exact
    /// capacity, because a hostile text is nothing but escapes.
    bared: Vec<u32>,
}

impl Unescaped {
    /// Unescapes `input[from..to]`, leaving the rest as it is.
    pub(super) fn of(input: &str, from: usize, to: usize) -> Self {
        let mut count = 0;
        for_each_piece(&input[from..to], |_, escaped| {
            count += usize::from(escaped.is_some());
        });
        let mut text = String::with_capacity(input.len() - count);
        let mut bared = Vec::with_capacity(count);
        text.push_str(&input[..from]);
        for_each_piece(&input[from..to], |plain, escaped| {
            text.push_str(plain);
            if let Some(meant) = escaped {
                bared.push(narrow(text.len()));
                text.push(meant);
            }
        });
        text.push_str(&input[to..]);
        Self { text, bared }
    }

    /// The offset in the old text of what stands at `offset` in the new one.
    pub(super) fn origin(&self, offset: usize) -> usize {
        offset + self.bared_before(offset)
    }

    fn bared_before(&self, offset: usize) -> usize {
        self.bared.partition_point(|bared| *bared < narrow(offset))
    }

    /// Edits of the new text as edits of the old one: what lies between them is unescaped in one
    /// piece each.
    pub(super) fn compose(&self, edits: Vec<Edit>) -> Vec<Edit> {
        let mut composed = Vec::with_capacity(edits.len() * 2 + 1);
        let mut done = 0;
        for edit in edits {
            self.unescape_between(done, edit.range.start, &mut composed);
            done = done.max(edit.range.end);
            let range = self.origin(edit.range.start)..self.origin(edit.range.end);
            composed.push(Edit { range, ..edit });
        }
        self.unescape_between(done, self.text.len(), &mut composed);
        composed
    }

    fn unescape_between(&self, from: usize, to: usize, edits: &mut Vec<Edit>) {
        let between = self.bared_before(from)..self.bared_before(to);
        let bared = self.bared.get(between).unwrap_or_default();
        let (Some(start), Some(last)) = (bared.first(), bared.last()) else {
            return;
        };
        let (start, last) = (*start as usize, *last as usize);
        // What lost its backslash is ASCII, one byte long.
        let after = self.text[start..=last].to_owned();
        edits.push(Edit {
            kind: RepairKind::Unescaped,
            range: self.origin(start)..self.origin(last + 1),
            after: after.into(),
            path: String::new(),
        });
    }
}

/// Positions fit 32 bits: [`MAX_BYTES`](crate::MAX_BYTES) bounds them.
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// Hands out the text piece by piece: a plain stretch, and what the escape behind it stands for.
fn for_each_piece(text: &str, mut piece: impl FnMut(&str, Option<char>)) {
    let bytes = text.as_bytes();
    let (mut done, mut at) = (0, 0);
    while let Some(length) = text[at..].find('\\') {
        at += length;
        match meaning(bytes.get(at + 1).copied()) {
            Some(meant) => {
                piece(&text[done..at], Some(meant));
                at += 2;
                done = at;
            }
            None => at += 1,
        }
    }
    piece(&text[done..], None);
}

/// What an escaped character stands for one level down; `None` leaves the backslash alone
/// (`\u00e9` means the same one level down).
fn meaning(escaped: Option<u8>) -> Option<char> {
    match escaped? {
        b'"' => Some('"'),
        b'\\' => Some('\\'),
        b'/' => Some('/'),
        b'n' => Some('\n'),
        b't' => Some('\t'),
        b'r' => Some('\r'),
        b'b' => Some('\u{8}'),
        b'f' => Some('\u{c}'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Unescaped;

    #[test]
    fn every_position_leads_back_to_its_origin() {
        let input = r#"x {\"a\": \"b\\n\"} y"#;
        let unescaped = Unescaped::of(input, 2, input.len());
        assert_eq!(unescaped.text, r#"x {"a": "b\n"} y"#);
        for (offset, c) in unescaped.text.char_indices() {
            let origin = unescaped.origin(offset);
            let found = input[origin..].trim_start_matches('\\').chars().next();
            assert!(found == Some(c) || c == '\\', "{offset}: {c}");
        }
        assert_eq!(unescaped.origin(unescaped.text.len()), input.len());
    }
}
