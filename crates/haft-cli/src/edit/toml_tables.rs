//! TOML: whole tables are appended and removed, everything else stays byte for byte.

use std::fmt::Write as _;
use std::ops::Range;

use toml::Table;

use super::EditError;

/// A table header and the lines of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    path: Vec<String>,
    /// From the header to the end of the last line that says something.
    lines: Range<usize>,
}

/// The text with these tables at its end. `tables` is TOML that begins with a header.
pub(crate) fn append(text: &str, tables: &str) -> Result<String, EditError> {
    let (mut expected, added) = (parse(text)?, parse(tables)?);
    merge(&mut expected, added)?;
    let mut new = text.to_owned();
    if !new.is_empty() && !new.ends_with('\n') {
        new.push('\n');
    }
    if !new.is_empty() {
        new.push('\n');
    }
    new.push_str(tables);
    checked(new, &expected)
}

/// The text without the table of this path and all below it.
pub(crate) fn remove(text: &str, path: &[&str]) -> Result<String, EditError> {
    let mut expected = parse(text)?;
    let Some((last, above)) = path.split_last() else {
        return Ok(text.to_owned());
    };
    let mut parent = Some(&mut expected);
    for key in above {
        parent = parent
            .and_then(|it| it.get_mut(*key))
            .and_then(toml::Value::as_table_mut);
    }
    if parent.and_then(|it| it.remove(*last)).is_none() {
        return Ok(text.to_owned());
    }
    let mut new = text.to_owned();
    for block in blocks(text).iter().rev() {
        if !block.path.iter().take(path.len()).eq(path.iter()) {
            continue;
        }
        let Range { mut start, end } = block.lines;
        // The blank line that set it apart goes with it.
        let before = &new[..start];
        let is_apart = before.ends_with("\n\n") || before == "\n";
        let rest = &new[end..];
        if is_apart && (rest.trim().is_empty() || rest.starts_with('\n')) {
            start -= 1;
        }
        new.replace_range(start..end, "");
    }
    // What held only this table is gone with it, unless it has a header of its own.
    let now = parse(&new)?;
    let mut wanted = expected;
    prune(&mut wanted, above);
    let mut found = now;
    prune(&mut found, above);
    if found == wanted {
        Ok(new)
    } else {
        Err(unclear())
    }
}

/// A text in quotes, as TOML reads it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A key, in quotes where it needs them.
pub(crate) fn key(name: &str) -> String {
    let is_bare = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

pub(crate) fn parse(text: &str) -> Result<Table, EditError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.parse().map_err(|error: toml::de::Error| {
        let line = error
            .span()
            .map(|it| text[..it.start].matches('\n').count() + 1);
        let line = line
            .map(|line| format!(" at line {line}"))
            .unwrap_or_default();
        EditError(format!("not valid TOML{line}"))
    })
}

fn unclear() -> EditError {
    EditError(String::from(
        "the table is written in a form that cannot be changed safely: change it by hand",
    ))
}

fn checked(text: String, expected: &Table) -> Result<String, EditError> {
    match parse(&text) {
        Ok(table) if table == *expected => Ok(text),
        _ => Err(unclear()),
    }
}

/// Adds what is new; what is there already is an error.
fn merge(table: &mut Table, added: Table) -> Result<(), EditError> {
    for (key, value) in added {
        match (table.get_mut(&key), value) {
            (None, value) => drop(table.insert(key, value)),
            (Some(toml::Value::Table(there)), toml::Value::Table(more)) => merge(there, more)?,
            (Some(_), _) => return Err(EditError(format!("`{key}` is there already"))),
        }
    }
    Ok(())
}

/// Removes tables of this path that are empty, from within.
fn prune(table: &mut Table, path: &[&str]) {
    let Some((key, below)) = path.split_first() else {
        return;
    };
    if let Some(inner) = table.get_mut(*key).and_then(toml::Value::as_table_mut) {
        prune(inner, below);
        if inner.is_empty() {
            table.remove(*key);
        }
    }
}

/// The tables with headers, in their order. The text is known to be legal.
fn blocks(text: &str) -> Vec<Block> {
    let bytes = text.as_bytes();
    let mut blocks: Vec<Block> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let line = at;
        while at < bytes.len() && matches!(bytes[at], b' ' | b'\t') {
            at += 1;
        }
        match bytes.get(at) {
            Some(b'[') => {
                let header = at;
                at = statement_end(bytes, at);
                let path = header_path(text[header..at].trim());
                blocks.push(Block {
                    path,
                    lines: line..at,
                });
            }
            Some(b'#' | b'\n' | b'\r') | None => {
                at = line_end(bytes, at);
            }
            Some(_) => {
                at = statement_end(bytes, at);
                if let Some(block) = blocks.last_mut() {
                    block.lines.end = at;
                }
            }
        }
    }
    blocks
}

fn line_end(bytes: &[u8], from: usize) -> usize {
    let end = (from..bytes.len()).find(|at| bytes[*at] == b'\n');
    end.map_or(bytes.len(), |at| at + 1)
}

/// The end of the line where a header or a value ends: values may take several lines.
fn statement_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    let mut depth = 0_i32;
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'"' | b'\'') => {
                at = quoted_end(bytes, at, quote);
                continue;
            }
            b'#' => {
                at = line_end(bytes, at);
                if depth <= 0 {
                    return at;
                }
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b'\n' if depth <= 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Where a text in quotes ends that begins here.
fn quoted_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let is_long = bytes[start..].starts_with(&[quote; 3]);
    let close: &[u8] = if is_long { &[quote; 3] } else { &[quote] };
    let mut at = start + close.len();
    while at < bytes.len() {
        if bytes[at] == b'\\' && quote == b'"' {
            at += 2;
        } else if bytes[at..].starts_with(close) {
            at += close.len();
            // Up to two quotes may stand right before the closing ones.
            while is_long && bytes.get(at) == Some(&quote) {
                at += 1;
            }
            return at;
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// The keys of a header such as `[mcp."a.b"]`, read by the parser itself.
fn header_path(header: &str) -> Vec<String> {
    let mut path = Vec::new();
    let Ok(table) = header.parse::<Table>() else {
        return path;
    };
    let mut table = &table;
    while let Some((key, value)) = table.iter().next() {
        path.push(key.clone());
        let value = match value {
            toml::Value::Array(list) => list.first(),
            value => Some(value),
        };
        match value.and_then(toml::Value::as_table) {
            Some(below) => table = below,
            None => break,
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# mine\n[server]\nlisten = \"127.0.0.1:1\" # here\n\n# files\n[mcp.files] # old\ncommand = \"\"\"\n[mcp.other]\n\"\"\"\nargs = [\n  \"[x]\", # not a header\n]\n\n[mcp.files.tools.\"a.b\"]\napprove = \"always\"\n\n# the other\n[mcp.\"other\"]\nurl = 'http://x/#'\n\n[[model]]\nname = \"m\"\n";

    #[test]
    fn tables_are_appended_and_removed_again() {
        let table = "[mcp.new]\ncommand = \"x\"\n";
        for file in [FILE, "", "[mcp.a]\ncommand = \"b\"\n", "# only a comment\n"] {
            let with = append(file, table).unwrap();
            assert!(with.starts_with(file) && with.ends_with(table));
            assert_eq!(remove(&with, &["mcp", "new"]).unwrap(), file);
        }
        assert!(append(FILE, "[mcp.files]\ncommand = \"x\"\n").is_err());
        assert!(append("mcp = {}\n", table).is_err());
        assert!(append("nonsense", table).is_err());
    }

    #[test]
    fn a_table_goes_with_all_below_it_and_nothing_else() {
        let left = remove(FILE, &["mcp", "files"]).unwrap();
        assert!(left.starts_with("# mine\n[server]\nlisten = \"127.0.0.1:1\" # here\n\n# files\n"));
        assert!(left.ends_with(
            "# the other\n[mcp.\"other\"]\nurl = 'http://x/#'\n\n[[model]]\nname = \"m\"\n"
        ));
        assert!(
            !left.contains("not a header") && !left.contains("a.b"),
            "{left}"
        );
        let left = remove(FILE, &["mcp", "other"]).unwrap();
        assert!(
            left.contains("[mcp.files] # old") && !left.contains("http://x"),
            "{left}"
        );
        assert_eq!(remove(FILE, &["mcp", "none"]).as_deref(), Ok(FILE));
        for file in [
            "mcp.a.command = \"x\"\n",
            "[mcp]\na = { command = \"x\" }\n",
        ] {
            assert!(remove(file, &["mcp", "a"]).is_err(), "{file}");
        }
    }

    #[test]
    fn texts_are_quoted_so_that_they_come_back() {
        for text in ["a", "\"\\\n\t\r\u{1}é", "C:\\x", ""] {
            let table: Table = format!("{} = {}", key(text), quoted(text)).parse().unwrap();
            assert_eq!(table[text].as_str(), Some(text));
        }
    }
}
