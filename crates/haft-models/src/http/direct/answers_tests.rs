//! Answers in whatever pieces the network makes of them.

#![allow(clippy::unwrap_used)]

use bytes::BytesMut;
use proptest::prelude::*;

use super::error::WireError;
use super::framing::Found;
use super::head::Head;

/// What was read of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    status: u16,
    body: Vec<u8>,
    /// Whether it came to its end before the connection did.
    is_over: bool,
    keeps_open: bool,
    /// What follows it.
    rest: Vec<u8>,
}

/// Reads an answer that comes in these pieces; nothing if its head is not whole.
fn read<'p>(pieces: impl Iterator<Item = &'p [u8]>) -> Result<Option<Read>, WireError> {
    let mut buffer = BytesMut::new();
    let mut head: Option<Head> = None;
    let (mut body, mut is_over) = (Vec::new(), false);
    for piece in pieces {
        buffer.extend_from_slice(piece);
        if head.is_none() {
            head = Head::take(&mut buffer)?;
        }
        let Some(head) = &mut head else { continue };
        while !is_over {
            match head.framing.take(&mut buffer)? {
                Found::Piece(piece) => body.extend_from_slice(&piece),
                Found::Nothing => break,
                Found::End => is_over = true,
            }
        }
    }
    Ok(head.map(|head| Read {
        status: head.status.as_u16(),
        body,
        is_over,
        keeps_open: head.keeps_open,
        rest: buffer.to_vec(),
    }))
}

/// Cuts bytes at these places, taken modulo what there is.
fn cut<'b>(bytes: &'b [u8], at: &[usize]) -> Vec<&'b [u8]> {
    let mut at: Vec<_> = at.iter().map(|at| at % (bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|two| &bytes[two[0]..two[1]]).collect()
}

/// A valid answer, and what is to be read of it.
fn answer() -> impl Strategy<Value = (Vec<u8>, Read)> {
    let interim = prop::collection::vec(
        "HTTP/1\\.1 10[023] [a-z]{0,9}\r\n(x: [a-z]{0,9}\r\n)?\r\n",
        0..3,
    );
    let headers = prop::collection::vec("x-[a-z]{1,9}: {0,2}[ -~]{0,20}\r\n", 0..4);
    let chunks = prop::collection::vec(
        (
            prop::collection::vec(any::<u8>(), 1..40),
            "0{0,3}",
            "( ?;[a-z]{1,5}(=[a-z0-9]{1,5}|=\"[ -!#-~]{0,9}\")?)?",
        ),
        0..6,
    );
    let trailers = prop::collection::vec("[a-z]{1,9}: [ -~]{0,20}\r\n", 0..3);
    let rest = prop::collection::vec(any::<u8>(), 0..9);
    (
        interim,
        200u16..600,
        headers,
        any::<bool>(),
        chunks,
        trailers,
        rest,
    )
        .prop_map(
            |(interim, status, headers, is_chunked, chunks, trailers, rest)| {
                let mut bytes = interim.concat().into_bytes();
                bytes.extend(
                    format!("HTTP/1.1 {status} some words\r\n{}", headers.concat()).bytes(),
                );
                let mut body: Vec<u8> = Vec::new();
                let has_body = ![204, 304].contains(&status);
                let chunks = if has_body { chunks } else { Vec::new() };
                for (chunk, ..) in &chunks {
                    body.extend(chunk);
                }
                if is_chunked && has_body {
                    bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                    for (chunk, zeros, extension) in &chunks {
                        bytes.extend(format!("{zeros}{:X}{extension}\r\n", chunk.len()).bytes());
                        bytes.extend(chunk);
                        bytes.extend(b"\r\n");
                    }
                    bytes.extend(format!("0\r\n{}\r\n", trailers.concat()).bytes());
                } else {
                    bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
                    bytes.extend(&body);
                }
                bytes.extend(&rest);
                let read = Read {
                    status,
                    body,
                    is_over: true,
                    keeps_open: true,
                    rest,
                };
                (bytes, read)
            },
        )
}

proptest! {
    #[test]
    fn an_answer_is_the_same_wherever_it_is_cut(
        (bytes, expected) in answer(),
        at in prop::collection::vec(any::<usize>(), 0..40),
    ) {
        let pieces = cut(&bytes, &at);
        prop_assert_eq!(read(pieces.into_iter()).unwrap(), Some(expected));
    }

    #[test]
    fn an_answer_is_the_same_byte_by_byte((bytes, expected) in answer()) {
        prop_assert_eq!(read(bytes.chunks(1)).unwrap(), Some(expected));
    }

    #[test]
    fn an_answer_that_breaks_off_is_not_whole((bytes, expected) in answer(), end in any::<usize>()) {
        let whole = bytes.len() - expected.rest.len();
        let there = &bytes[..end % whole];
        if let Some(read) = read(there.chunks(7)).unwrap() {
            prop_assert!(expected.body.starts_with(&read.body));
            // One whose head says that nothing follows is over with its head.
            prop_assert!(!read.is_over);
        }
    }

    #[test]
    fn what_others_say_is_read_or_refused_in_any_pieces_alike(
        (mut bytes, _) in answer(),
        places in prop::collection::vec((any::<usize>(), any::<u8>()), 1..6),
        at in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        for (place, byte) in places {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        let at_once = read(std::iter::once(&bytes[..]));
        let in_pieces = read(cut(&bytes, &at).into_iter());
        match (at_once, in_pieces) {
            (Ok(at_once), Ok(in_pieces)) => prop_assert_eq!(at_once, in_pieces),
            (at_once, in_pieces) => prop_assert!(at_once.is_err() && in_pieces.is_err()),
        }
    }
}
