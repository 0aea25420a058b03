use super::*;

/// The body of an answer of which so many bytes come at once, whether it ended, and what was left over.
fn body(
    mut framing: Framing,
    bytes: &[u8],
    at_once: usize,
) -> Result<(Vec<u8>, bool, Vec<u8>), WireError> {
    let (mut buffer, mut body) = (BytesMut::new(), Vec::new());
    for some in bytes.chunks(at_once) {
        buffer.extend_from_slice(some);
        while let Found::Piece(piece) = framing.take(&mut buffer)? {
            assert!(!piece.is_empty());
            body.extend_from_slice(&piece);
        }
    }
    let is_over = framing.take(&mut buffer)? == Found::End;
    Ok((body, is_over, buffer.to_vec()))
}

const CHUNKED: Framing = Framing::Chunked(Chunk::Size);

#[test]
fn a_body_is_the_same_in_whatever_pieces_it_comes() {
    let chunked = b"4\r\nabcd\r\n0A;name=\"value\"\r\n0123456789\r\n0\r\nsum: 1\r\n\r\nnext";
    for at_once in 1..=chunked.len() {
        let read = body(CHUNKED, chunked, at_once).unwrap();
        assert_eq!(read, (b"abcd0123456789".to_vec(), true, b"next".to_vec()));
        let read = body(Framing::Length(4), b"abcdnext", at_once).unwrap();
        assert_eq!(read, (b"abcd".to_vec(), true, b"next".to_vec()));
        let read = body(Framing::UntilClosed, b"abcd", at_once).unwrap();
        assert_eq!(read, (b"abcd".to_vec(), false, Vec::new()));
    }
}

#[test]
fn a_body_that_is_cut_is_not_over() {
    let whole = b"4\r\nabcd\r\n0\r\n\r\n";
    for cut in 0..whole.len() {
        let (_, is_over, _) = body(CHUNKED, &whole[..cut], 3).unwrap();
        assert!(!is_over, "{cut}");
    }
    let (_, is_over, _) = body(Framing::Length(5), b"abcd", 2).unwrap();
    assert!(!is_over);
    assert!(body(CHUNKED, whole, 3).unwrap().1);
}

#[test]
fn an_empty_body_is_over_at_once() {
    assert_eq!(
        body(Framing::Length(0), b"", 1).unwrap(),
        (vec![], true, vec![])
    );
    let (read, is_over, _) = body(CHUNKED, b"0\r\n\r\n", 1).unwrap();
    assert!(read.is_empty() && is_over);
}

#[test]
fn what_is_no_chunk_is_refused() {
    let endless = b"1;".repeat(MAX_LINE_BYTES);
    let trailers = [b"0\r\n".to_vec(), b"a: b\r\n".repeat(MAX_LINE_BYTES)].concat();
    for bad in [
        &b"x\r\nabcd\r\n"[..],
        b"-4\r\nabcd\r\n",
        b"\r\nabcd\r\n",
        b";name\r\nabcd\r\n",
        b" 4\r\nabcd\r\n",
        b"4;name\nabcd\r\n0\r\n\r\n",
        b"4\r\nabcde\r\n",
        b"4\r\nabcd\n0\r\n\r\n",
        b"fffffffffffffffff\r\nabcd\r\n",
        &endless,
        &trailers,
    ] {
        for at_once in [1024, bad.len()] {
            assert!(body(CHUNKED, bad, at_once).is_err(), "{bad:?}");
        }
    }
}

#[test]
fn a_piece_takes_its_memory_along() {
    let mut buffer = BytesMut::with_capacity(8192);
    buffer.extend_from_slice(b"ab");
    let found = Framing::Length(9).take(&mut buffer).unwrap();
    assert_eq!(found, Found::Piece(Bytes::from_static(b"ab")));
    assert_eq!(buffer.capacity(), 0);
}
