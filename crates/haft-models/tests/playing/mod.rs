//! Playing recorded answers to an adapter, in every cutting.

#![allow(unreachable_pub, reason = "a module of several test crates")]

use futures_util::StreamExt as _;
use haft_core::{Model, ModelError, ModelEvent, ModelRequest, ModelResponse};

use crate::common::events::{assembled, check};
use crate::common::server::{Reply, Server};

/// What came of one request.
#[derive(Debug, PartialEq)]
pub struct Played {
    pub events: Vec<ModelEvent>,
    pub error: Option<ModelError>,
}

impl Played {
    /// The whole answer; panics if there is none.
    pub fn response(self) -> ModelResponse {
        assert_eq!(self.error, None);
        check(&self.events);
        assembled(&self.events)
    }
}

/// Sends a request and takes everything that comes back.
pub async fn play(model: &dyn Model, request: ModelRequest) -> Played {
    let mut played = Played {
        events: Vec::new(),
        error: None,
    };
    match model.send(request).await {
        Err(error) => played.error = Some(error),
        Ok(mut stream) => {
            while let Some(event) = stream.next().await {
                assert_eq!(played.error, None, "nothing comes after an error");
                match event {
                    Ok(event) => played.events.push(event),
                    Err(error) => played.error = Some(error),
                }
            }
        }
    }
    played
}

/// Plays each reply and sees to it that all give the events of the first.
pub async fn all_alike(
    replies: impl IntoIterator<Item = Reply>,
    model: impl Fn(&Server) -> Box<dyn Model>,
) {
    let replies: Vec<_> = replies.into_iter().collect();
    let server = Server::start(replies.clone()).await;
    let model = model(&server);
    let mut first = None;
    for reply in replies {
        let played = play(&*model, ModelRequest::default()).await;
        assert_eq!(played.error, None);
        let lengths: Vec<_> = reply.pieces.iter().map(Vec::len).collect();
        assert_eq!(
            first.get_or_insert_with(|| played.events.clone()),
            &played.events,
            "{lengths:?}"
        );
    }
    assert!(matches!(
        first.unwrap().last(),
        Some(ModelEvent::Finished { .. })
    ));
}

/// A few ways to cut so many bytes, by `seed`.
pub fn chunkings(seed: u64, length: usize) -> impl Iterator<Item = Vec<usize>> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below).unwrap()
    };
    [2, 9, 80, 700].into_iter().map(move |longest| {
        let mut cuts = Vec::new();
        let mut at = 0;
        while at < length {
            at += 1 + random(longest);
            cuts.push(at.min(length));
        }
        cuts
    })
}
