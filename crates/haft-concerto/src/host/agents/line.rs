//! Lines of bounded length.

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// How long a line may be.
const LONGEST: usize = 16 << 20;

/// The next line without its end; none at the end. One that is too long is an error.
pub(super) async fn next(
    from: &mut (impl AsyncBufRead + Unpin),
) -> std::io::Result<Option<String>> {
    let mut line = Vec::new();
    loop {
        let piece = from.fill_buf().await?;
        if piece.is_empty() {
            if line.is_empty() {
                return Ok(None);
            }
            break;
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(piece.len(), |end| end + 1);
        line.extend_from_slice(&piece[..taken]);
        from.consume(taken);
        if line.len() > LONGEST {
            let text = format!("it wrote a line longer than {LONGEST} bytes");
            return Err(std::io::Error::other(text));
        }
        if end.is_some() {
            break;
        }
    }
    let text = String::from_utf8_lossy(&line);
    Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_one_by_one_and_the_last_needs_no_end() {
        let mut from: &[u8] = b"a\r\n\nlast";
        assert_eq!(next(&mut from).await.unwrap(), Some("a".to_owned()));
        assert_eq!(next(&mut from).await.unwrap(), Some(String::new()));
        assert_eq!(next(&mut from).await.unwrap(), Some("last".to_owned()));
        assert_eq!(next(&mut from).await.unwrap(), None);
        let long = vec![b'x'; LONGEST + 10];
        assert!(next(&mut long.as_slice()).await.is_err());
    }
}
