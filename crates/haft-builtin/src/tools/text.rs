//! Files that are text, and what the others are.

use std::path::Path;

use crate::place::Root;
use crate::refusal::Refusal;

/// The text of a file.
pub(super) fn text(root: &Root, shown: &str, path: &Path) -> Result<String, Refusal> {
    let content = root
        .read(path)
        .map_err(|error| Refusal::io(shown, &error))?
        .ok_or_else(|| Refusal::io(shown, &std::io::ErrorKind::NotFound.into()))?;
    String::from_utf8(content.bytes.to_vec()).map_err(|error| {
        let bytes = error.into_bytes();
        let (size, kind) = (bytes.len(), kind(&bytes));
        Refusal::Failed(format!("'{shown}' is not UTF-8 text: {size} bytes, {kind}"))
    })
}

/// What bytes that are not UTF-8 most likely are.
fn kind(bytes: &[u8]) -> &'static str {
    const KNOWN: [(&[u8], &str); 12] = [
        (b"\x89PNG", "PNG image"),
        (b"\xff\xd8\xff", "JPEG image"),
        (b"GIF8", "GIF image"),
        (b"RIFF", "RIFF media"),
        (b"%PDF", "PDF document"),
        (b"PK\x03\x04", "ZIP archive"),
        (b"\x1f\x8b", "gzip data"),
        (b"\x28\xb5\x2f\xfd", "Zstandard data"),
        (b"\x7fELF", "ELF binary"),
        (b"SQLite format 3", "SQLite database"),
        (b"\xff\xfe", "UTF-16 text"),
        (b"\xfe\xff", "UTF-16 text"),
    ];
    match KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        Some((_, kind)) => kind,
        None if bytes.contains(&0) => "binary data",
        None => "text in another encoding",
    }
}

#[cfg(test)]
mod tests {
    use super::kind;

    #[test]
    fn bytes_are_known_by_how_they_begin() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n"[..], "PNG image"),
            (b"\xff\xfeh\0i\0", "UTF-16 text"),
            (b"\0\x01\xff", "binary data"),
            (b"caf\xe9", "text in another encoding"),
        ] {
            assert_eq!(kind(bytes), expected);
        }
    }
}
