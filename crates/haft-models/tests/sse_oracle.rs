//! Our parser of server-sent events against another one: where both say something, they agree.
//!
//! The other one gives every block with the fields that it has; ours, by the standard, gives those
//! with data, with the last id of the stream. Both are given text in UTF-8: what is none is replaced
//! here and an error there.

#![allow(clippy::unwrap_used)]

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use haft_models::frame::{Frames, SseParser};
use proptest::prelude::*;
use sse_stream::SseByteStream;

/// Event, data, id.
type Event = (String, String, Option<String>);

fn ours(pieces: &[Bytes]) -> Vec<Event> {
    let mut parser = SseParser::default();
    let mut events = Vec::new();
    for piece in pieces {
        parser.feed(piece);
        while let Some(event) = parser.next_frame() {
            let event = event.unwrap();
            let id = event.id.map(|id| id.to_string());
            events.push((event.event, event.data, id));
        }
    }
    events
}

fn theirs(pieces: &[Bytes]) -> Vec<Event> {
    let pieces = pieces.iter().cloned().map(Ok::<_, Infallible>);
    let blocks: Vec<_> = SseByteStream::new(stream::iter(pieces))
        .collect()
        .now_or_never()
        .unwrap();
    let mut id = None;
    let mut events = Vec::new();
    for block in blocks {
        let block = block.unwrap();
        id = block.id.or(id);
        if let Some(data) = block.data {
            events.push((block.event.unwrap_or_default(), data, id.clone()));
        }
    }
    events
}

/// A text cut at these places.
fn cut(text: &str, places: &[prop::sample::Index]) -> Vec<Bytes> {
    let mut rest = Bytes::copy_from_slice(text.as_bytes());
    let mut places: Vec<_> = places.iter().map(|at| at.index(text.len() + 1)).collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut taken = 0;
    for at in places {
        pieces.push(rest.split_to(at - taken));
        taken = at;
    }
    pieces.push(rest);
    pieces
}

/// Lines that look like those of streams, with any of the line ends.
fn lines() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "data",
        "event",
        "id",
        "retry",
        "",
        "dat",
        "data ",
        "Data",
        "\u{feff}data",
        "other",
    ]);
    let colon = prop::sample::select(vec!["", ":", ": ", ":  ", "::"]);
    let value = prop::sample::select(vec![
        "",
        "x",
        "{\"a\": 1}",
        "é ☂",
        " ",
        ":",
        "[DONE]",
        "12",
        "a\0b",
        "data: y",
    ]);
    let end = prop::sample::select(vec!["\n", "\r\n", "\r", "\n\n", "\r\n\r\n", "\r\r", "\n\r"]);
    let line = (name, colon, value, end)
        .prop_map(|(name, colon, value, end)| [name, colon, value, end].concat());
    let start = prop::sample::select(vec!["", "", "\u{feff}", "\n"]);
    (start, prop::collection::vec(line, 0..12))
        .prop_map(|(start, lines)| start.to_owned() + &lines.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn both_parsers_read_the_same_events(
        text in lines(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let pieces = cut(&text, &places);
        prop_assert_eq!(ours(&pieces), theirs(&pieces));
    }

    #[test]
    fn both_parsers_read_the_same_events_in_any_text(
        text in "[dateinv:\r\n \u{feff}é0]{0,60}",
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let pieces = cut(&text, &places);
        prop_assert_eq!(ours(&pieces), theirs(&pieces));
    }
}
