//! Files of a program, and places in them.
//!
//! All files of a program share one range of offsets, so that a [`Span`] is two numbers and still says
//! which file it lies in.

use std::collections::BTreeMap;

/// The longest file that is read. Nobody writes such a program; a generator that does is told.
pub const MAX_FILE_BYTES: usize = 8 << 20;

/// The most that all files of a program may be together. A file that is included twice counts twice.
pub const MAX_PROGRAM_BYTES: usize = 64 << 20;

/// A piece of a program: offsets into its [`SourceMap`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// From the first byte to the one after the last.
    pub fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// From the beginning of this one to the end of the other.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self::new(self.start, other.end.max(self.start))
    }
}

/// One file of a program.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// As the user named it, or as it was found beside another.
    pub path: String,
    text: String,
    base: u32,
    lines: Vec<u32>,
    /// How many characters are in front of every [`MARK`]th byte, so that a long line is not counted again
    /// for everything that stands in it. Empty if every character is a byte.
    marks: Vec<u32>,
}

/// How many bytes are between two counts of characters.
const MARK: usize = 256;

/// A line and a column as editors count them, from 1; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The character in it.
    pub column: u32,
}

impl SourceFile {
    fn new(path: &str, text: String, base: u32) -> Self {
        // No file is longer than `MAX_FILE_BYTES`, so its offsets fit.
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        #[expect(clippy::cast_possible_truncation, reason = "bounded by MAX_FILE_BYTES")]
        let lines = std::iter::once(0)
            .chain(breaks.map(|(at, _)| at as u32 + 1))
            .collect();
        let marks = if text.is_ascii() {
            Vec::new()
        } else {
            character_marks(&text)
        };
        Self {
            path: path.to_owned(),
            text,
            base,
            lines,
            marks,
        }
    }

    /// How many characters are in front of this byte.
    fn characters(&self, at: usize) -> usize {
        let at = at.min(self.text.len());
        let Some(mark) = self.marks.get(at / MARK) else {
            return at;
        };
        let bytes = &self.text.as_bytes()[at / MARK * MARK..at];
        *mark as usize + bytes.iter().filter(|it| begins_character(**it)).count()
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is added to an offset in this file to get one in the program.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// The end of it, as an offset in the program.
    pub fn end(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "bounded by MAX_FILE_BYTES")]
        let length = self.text.len() as u32;
        self.base + length
    }

    /// The text of a span that lies in this file; nothing of one that does not.
    pub fn slice(&self, span: Span) -> &str {
        let start = span.start.saturating_sub(self.base) as usize;
        let end = span.end.saturating_sub(self.base) as usize;
        self.text.get(start..end).unwrap_or_default()
    }

    /// The line and column of an offset in the program.
    pub fn position(&self, offset: u32) -> Position {
        let offset = offset.saturating_sub(self.base);
        let line = self.lines.partition_point(|start| *start <= offset) - 1;
        let start = self.lines[line] as usize;
        let column = self.characters(offset as usize) - self.characters(start) + 1;
        Position {
            line: u32::try_from(line + 1).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
        }
    }

    /// A line of it, counted from 1, without its end.
    pub fn line(&self, number: u32) -> &str {
        let index = (number as usize).saturating_sub(1);
        let Some(start) = self.lines.get(index) else {
            return "";
        };
        let rest = &self.text[*start as usize..];
        let line = rest.split('\n').next().unwrap_or_default();
        line.strip_suffix('\r').unwrap_or(line)
    }
}

fn begins_character(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

fn character_marks(text: &str) -> Vec<u32> {
    let mut count = 0;
    let mut marks = Vec::with_capacity(text.len() / MARK + 1);
    for bytes in text.as_bytes().chunks(MARK) {
        marks.push(count);
        let more = bytes.iter().filter(|it| begins_character(**it)).count();
        // No file is longer than `MAX_FILE_BYTES`.
        count += u32::try_from(more).unwrap_or(0);
    }
    // The end may be the first byte of the next.
    marks.push(count);
    marks
}

/// All files of a program, in the order in which they were read.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

/// A file that cannot be part of a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// It is longer than [`MAX_FILE_BYTES`].
    #[error("`{path}` is too long: a file may have {MAX_FILE_BYTES} bytes; split it into modules")]
    TooLong {
        /// Which file.
        path: String,
    },
    /// The program is too long with it.
    #[error(
        "the program is too long with `{path}`: its files may have {MAX_PROGRAM_BYTES} bytes together"
    )]
    ProgramTooLong {
        /// Which file.
        path: String,
    },
}

impl SourceMap {
    /// Without any file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a file in.
    pub fn add(&mut self, path: &str, text: String) -> Result<&SourceFile, SourceError> {
        // One free offset between two files, so that the end of one is not the start of the next.
        let base = self.files.last().map_or(0, |file| file.end() + 1);
        if text.len() > MAX_FILE_BYTES {
            let path = path.to_owned();
            return Err(SourceError::TooLong { path });
        }
        if base as usize + text.len() > MAX_PROGRAM_BYTES {
            let path = path.to_owned();
            return Err(SourceError::ProgramTooLong { path });
        }
        self.files.push(SourceFile::new(path, text, base));
        Ok(&self.files[self.files.len() - 1])
    }

    /// The file that an offset lies in.
    pub fn file(&self, offset: u32) -> Option<&SourceFile> {
        let index = self.files.partition_point(|file| file.base <= offset);
        self.files.get(index.checked_sub(1)?)
    }

    /// The line and column at which a span begins.
    pub fn position(&self, span: Span) -> Position {
        let none = Position { line: 1, column: 1 };
        self.file(span.start)
            .map_or(none, |file| file.position(span.start))
    }

    /// The place of a line and column of a file; the beginning if there is none.
    pub fn span_at(&self, path: &str, line: u32, column: u32) -> Span {
        let Some(file) = self.files.iter().find(|it| it.path == path) else {
            return Span::default();
        };
        let index = (line as usize).saturating_sub(1);
        let start = file.lines.get(index).copied().unwrap_or(0);
        let text = file.line(line);
        let mut characters = text.char_indices();
        let before = characters.nth((column as usize).saturating_sub(1));
        let before = before.map_or(text.len(), |(at, _)| at);
        let at = file.base + start + u32::try_from(before).unwrap_or(0);
        Span::new(at, at)
    }

    /// The files, first the one that the program starts with.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }
}

/// Where the text of further files of a program comes from: those that `mod name;` asks for.
pub trait Sources {
    /// The text of this file, or `None` if there is none. The path has `/` between its parts.
    fn read(&self, path: &str) -> Option<String>;
}

/// No further files.
impl Sources for () {
    fn read(&self, _path: &str) -> Option<String> {
        None
    }
}

/// Files in memory, by their path.
impl Sources for BTreeMap<String, String> {
    fn read(&self, path: &str) -> Option<String> {
        self.get(path).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_by_line_and_character() {
        let mut map = SourceMap::new();
        map.add("a.conc", "ä\nbc".to_owned()).unwrap();
        map.add("b.conc", "x".to_owned()).unwrap();
        let at = |offset| {
            let file = map.file(offset).unwrap();
            let position = file.position(offset);
            (file.path.as_str(), position.line, position.column)
        };
        assert_eq!(at(0), ("a.conc", 1, 1));
        assert_eq!(at(2), ("a.conc", 1, 2));
        assert_eq!(at(4), ("a.conc", 2, 2));
        assert_eq!(at(5), ("a.conc", 2, 3));
        assert_eq!(at(6), ("b.conc", 1, 1));
    }

    #[test]
    fn columns_are_counted_alike_with_and_without_marks() {
        let text = "aä🦀\nb€ ".repeat(300);
        let text = format!("{text}{}", text.replace('\n', " "));
        let mut map = SourceMap::new();
        let file = map.add("a.conc", text.clone()).unwrap();
        let (mut line, mut column) = (1, 1);
        for (at, c) in text.char_indices() {
            let found = file.position(u32::try_from(at).unwrap());
            assert_eq!((found.line, found.column), (line, column), "{at}");
            column += 1;
            if c == '\n' {
                (line, column) = (line + 1, 1);
            }
        }
        let end = file.position(file.end());
        assert_eq!((end.line, end.column), (line, column));
    }

    #[test]
    fn a_file_that_is_too_long_is_refused() {
        let text = " ".repeat(MAX_FILE_BYTES + 1);
        assert!(SourceMap::new().add("a.conc", text).is_err());
    }
}
