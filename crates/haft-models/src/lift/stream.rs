//! Drives frames through a lifter.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use haft_core::{ModelError, ModelErrorKind, ModelEvent, ModelStream, cut};

use super::{Events, not_an_answer, one_too_many};
use crate::frame::{FrameError, Frames};
use crate::http::Body;
use crate::http::finished;

/// How long the rest of a stream is waited for when the model has said that it is done: the cost of
/// the answer often comes after it.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the end of a stream is waited for when nothing more is to come: a connection whose end
/// was seen can be used again.
const GOODBYE: Duration = Duration::from_millis(20);

/// How many pieces may still come before it.
const GOODBYES: u32 = 4;

/// Makes events of frames.
pub(crate) trait Lift: Send + 'static {
    /// What it reads.
    type Frame: Send;

    /// Takes the next frame.
    fn take(&mut self, frame: Self::Frame, events: &mut Events) -> Result<Flow, ModelError>;

    /// The stream ended, as it should or not: finishes the answer if it is whole. An error here
    /// says that it is not.
    fn end(&mut self, events: &mut Events) -> Result<(), ModelError>;
}

/// What is expected next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// More of the answer.
    More,
    /// The answer is whole but for what may come after it: [`Lift::end`] succeeds from here on.
    Whole,
    /// Nothing: the stream is over, [`Lift::end`] is called.
    Over,
}

/// The events of an answer that comes in frames.
pub(crate) fn lifted<F, L>(body: Body, frames: F, lift: L) -> ModelStream
where
    F: Frames,
    L: Lift<Frame = F::Frame>,
{
    Box::pin(Lifted {
        foreign: foreign_type(&body),
        has_frames: false,
        body,
        frames,
        lift,
        events: VecDeque::new(),
        failure: None,
        is_whole: false,
        parting: 0,
        is_over: false,
    })
}

/// What an answer says that it is, if that is nothing that is read here. Some servers do not say what
/// they send, so it counts only if nothing can be read.
fn foreign_type(body: &Body) -> Option<String> {
    let known = [
        "",
        "application/json",
        "application/x-ndjson",
        "text/event-stream",
    ];
    let kind = body.content_type();
    (!known.contains(&kind)).then(|| cut(kind))
}

#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts about one stream"
)]
struct Lifted<F, L> {
    body: Body,
    foreign: Option<String>,
    has_frames: bool,
    frames: F,
    lift: L,
    events: Events,
    failure: Option<ModelError>,
    is_whole: bool,
    /// How often the end of the stream is still waited for; what is said until then is not read.
    parting: u32,
    is_over: bool,
}

/// Nothing in it is pinned where it stands.
impl<F, L> Unpin for Lifted<F, L> {}

impl<F: Frames, L: Lift<Frame = F::Frame>> Stream for Lifted<F, L> {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            while this.parting > 0 {
                let rest = ready!(this.body.poll_chunk(cx));
                // Neither is it an error any more if it breaks off.
                this.parting = if matches!(rest, Ok(Some(_))) {
                    this.parting - 1
                } else {
                    0
                };
            }
            if let Some(event) = this.events.pop_front() {
                if let Some(error) = one_too_many(&event) {
                    this.is_over = true;
                    this.failure = None;
                    this.events.clear();
                    return Poll::Ready(Some(Err(error)));
                }
                return Poll::Ready(Some(Ok(event)));
            }
            // An error waits until the events before it are out.
            if let Some(error) = this.failure.take() {
                let error = finished(error, this.body.redactor());
                return Poll::Ready(Some(Err(error)));
            }
            if this.is_over {
                return Poll::Ready(None);
            }
            if let Err(error) = ready!(this.poll_advance(cx)) {
                this.is_over = true;
                this.failure = Some(error);
            }
        }
    }
}

impl<F: Frames, L: Lift<Frame = F::Frame>> Lifted<F, L> {
    /// Takes one step: a frame, or the next bytes.
    fn poll_advance(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ModelError>> {
        if let Some(frame) = self.frames.next_frame() {
            let taken = self.frame(frame);
            if taken.is_ok() && self.is_over {
                self.body.wait_at_most(GOODBYE);
                self.parting = GOODBYES;
            }
            return Poll::Ready(taken);
        }
        Poll::Ready(match ready!(self.body.poll_chunk(cx)) {
            Ok(Some(chunk)) => {
                self.frames.feed(&chunk);
                Ok(())
            }
            Ok(None) => match self.frames.rest() {
                Some(frame) => self.frame(frame).and_then(|()| self.over()),
                None => self.over(),
            },
            // What came after the answer is lost, the answer is not.
            Err(_) if self.is_whole => self.over(),
            Err(error) => Err(error),
        })
    }

    fn frame(&mut self, frame: Result<F::Frame, FrameError>) -> Result<(), ModelError> {
        let frame =
            frame.map_err(|error| ModelError::new(ModelErrorKind::Protocol, error.to_string()))?;
        self.has_frames = true;
        match self.lift.take(frame, &mut self.events)? {
            Flow::More => {}
            Flow::Whole => {
                self.is_whole = true;
                self.body.wait_at_most(PATIENCE);
            }
            Flow::Over => self.over()?,
        }
        Ok(())
    }

    fn over(&mut self) -> Result<(), ModelError> {
        if !self.is_over {
            self.is_over = true;
            let ended = self.lift.end(&mut self.events);
            ended.map_err(|error| match &self.foreign {
                Some(kind) if !self.has_frames => not_an_answer(kind),
                _ => error,
            })?;
        }
        Ok(())
    }
}
