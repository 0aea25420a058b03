//! Lines become messages: most are one, some belong together.

/// What opens and closes a block of lines.
const FENCE: &str = "\"\"\"";

/// Puts lines together.
///
/// A line that ends in a backslash goes on in the next; what stands between two `"""` is one message
/// as it is, whatever is in it.
#[derive(Debug, Default)]
pub(super) struct Composer {
    lines: Vec<String>,
    is_in_block: bool,
}

/// What a line led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Composed {
    /// It needs more lines.
    Unfinished,
    /// One line that stood alone: a message, or a command.
    Line(String),
    /// A message of several lines; never a command.
    Block(String),
}

impl Composer {
    /// Takes a line in.
    pub(super) fn take(&mut self, line: &str) -> Composed {
        if self.is_in_block {
            return self.take_in_block(line);
        }
        let opened = line.trim_start().strip_prefix(FENCE);
        if let (true, Some(rest)) = (self.lines.is_empty(), opened) {
            self.is_in_block = true;
            // `"""` alone in its line adds no empty one.
            if rest.trim().is_empty() {
                return Composed::Unfinished;
            }
            return self.take_in_block(rest);
        }
        if let Some(line) = continued(line) {
            self.lines.push(line.to_owned());
            return Composed::Unfinished;
        }
        self.lines.push(line.to_owned());
        let is_alone = self.lines.len() == 1;
        let text = self.finish();
        if is_alone {
            Composed::Line(text)
        } else {
            Composed::Block(text)
        }
    }

    fn take_in_block(&mut self, line: &str) -> Composed {
        let Some(last) = line.trim_end().strip_suffix(FENCE) else {
            self.lines.push(line.to_owned());
            return Composed::Unfinished;
        };
        if !last.trim().is_empty() {
            self.lines.push(last.to_owned());
        }
        Composed::Block(self.finish())
    }

    /// Whether lines wait for more.
    pub(super) fn is_unfinished(&self) -> bool {
        self.is_in_block || !self.lines.is_empty()
    }

    /// What there is, finished or not.
    pub(super) fn finish(&mut self) -> String {
        self.is_in_block = false;
        std::mem::take(&mut self.lines).join("\n")
    }
}

/// The line without its last backslash, if that says that it goes on; two of them are one that is
/// meant.
fn continued(line: &str) -> Option<&str> {
    let bare = line.trim_end_matches('\\');
    let backslashes = line.len() - bare.len();
    (backslashes % 2 == 1).then(|| &line[..line.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composed(lines: &[&str]) -> Vec<Composed> {
        let mut composer = Composer::default();
        let taken = lines.iter().map(|line| composer.take(line));
        taken.filter(|it| *it != Composed::Unfinished).collect()
    }

    #[test]
    fn a_line_is_a_message() {
        assert_eq!(composed(&["hi"]), [Composed::Line("hi".into())]);
        assert_eq!(composed(&[r"C:\\"]), [Composed::Line(r"C:\\".into())]);
        let two = [Composed::Line("a".into()), Composed::Line("b".into())];
        assert_eq!(composed(&["a", "b"]), two);
    }

    #[test]
    fn a_backslash_at_the_end_goes_on() {
        let message = [Composed::Block("a\nb\nc".into())];
        assert_eq!(composed(&[r"a\", r"b\", "c"]), message);
        let fence = [Composed::Block("a\n\"\"\"b".into())];
        assert_eq!(composed(&[r"a\", "\"\"\"b"]), fence, "no block in between");
    }

    #[test]
    fn a_block_is_a_message_whatever_is_in_it() {
        let block = [Composed::Block("/quit\n\n  b\\".into())];
        assert_eq!(composed(&["\"\"\"", "/quit", "", "  b\\", "\"\"\""]), block);
        let short = [Composed::Block("a".into())];
        assert_eq!(composed(&["\"\"\"a\"\"\""]), short);
        let ragged = [Composed::Block("a\nb".into())];
        assert_eq!(composed(&["\"\"\"a", "b\"\"\""]), ragged);
    }

    #[test]
    fn what_is_unfinished_can_be_taken_as_it_is() {
        let mut composer = Composer::default();
        composer.take("\"\"\"");
        composer.take("a");
        assert!(composer.is_unfinished());
        assert_eq!(composer.finish(), "a");
        assert!(!composer.is_unfinished());
    }
}
