//! A streamed answer, event by event.

use haft::Value;
use haft::models::frame::{FrameError, Frames as _, SseEvent, SseParser};
use haft::models::http::Body;

use super::EVENTS;
use super::address::Address;
use super::error::RemoteError;

/// What ends a stream.
const DONE: &str = "[DONE]";

/// The events of an answer, as they come.
pub(crate) struct Events {
    body: Body,
    parser: SseParser,
    address: Address,
    /// Whether the last has come, or nothing will any more.
    is_over: bool,
    /// Whether the bytes have ended.
    is_read: bool,
}

impl Events {
    pub(super) fn read(body: Body, address: &Address) -> Result<Self, RemoteError> {
        if body.content_type() != EVENTS {
            return Err(RemoteError::no_stream(address));
        }
        Ok(Self {
            body,
            parser: SseParser::default(),
            address: address.clone(),
            is_over: false,
            is_read: false,
        })
    }

    /// The next event; none behind the last. A stream that ends without its end is an error, the
    /// last thing that comes.
    pub(crate) async fn next(&mut self) -> Option<Result<Value, RemoteError>> {
        if self.is_over {
            return None;
        }
        let next = self.read_next().await;
        self.is_over = !matches!(next, Some(Ok(_)));
        next
    }

    async fn read_next(&mut self) -> Option<Result<Value, RemoteError>> {
        loop {
            let frame = match self.parser.next_frame() {
                None if self.is_read => self.parser.rest(),
                frame => frame,
            };
            match frame {
                Some(frame) => return self.event(frame),
                None if self.is_read => return Some(Err(RemoteError::broken_off(&self.address))),
                None => {}
            }
            match self.body.chunk().await {
                Ok(Some(chunk)) => self.parser.feed(&chunk),
                Ok(None) => self.is_read = true,
                Err(error) => return Some(Err(RemoteError::of(error, &self.address))),
            }
        }
    }

    fn event(&self, frame: Result<SseEvent, FrameError>) -> Option<Result<Value, RemoteError>> {
        match frame {
            Ok(frame) if frame.data == DONE => None,
            Ok(frame) => {
                let event = serde_json::from_str(&frame.data);
                Some(event.map_err(|_| RemoteError::no_json(&self.address)))
            }
            Err(error) => Some(Err(RemoteError::bad_frame(error, &self.address))),
        }
    }
}
