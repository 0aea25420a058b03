//! An answer on its way from the wire to whoever asked.

use std::borrow::Cow;
use std::sync::Arc;

use haft_core::{ModelError, ModelStream, Streaming};

use crate::frame::{SseEvent, SseParser};
use crate::http::Body;
use crate::lift::{Events, Lift, Restoring, lifted, ready, restored};
use crate::lower::tools::RenderedTools;

/// What a request says that it takes.
pub(crate) fn accepts(streaming: Streaming) -> &'static str {
    match streaming {
        Streaming::Pieces => "text/event-stream",
        Streaming::Whole | Streaming::Either => "application/json",
    }
}

/// The events of an answer. Some servers stream unasked or do not when asked: what the answer says
/// that it is goes before what was wanted.
pub(crate) async fn of<L: Lift<Frame = SseEvent>>(
    body: Body,
    wanted: Streaming,
    lift: L,
    whole: impl FnOnce(&str) -> Result<Events, ModelError>,
    tools: Arc<RenderedTools>,
) -> Result<ModelStream, ModelError> {
    let comes = match body.content_type() {
        "text/event-stream" => Streaming::Pieces,
        "application/json" => Streaming::Whole,
        _ => wanted,
    };
    if comes == Streaming::Pieces {
        let lift = Restoring::new(lift, tools);
        return Ok(lifted(body, SseParser::default(), lift));
    }
    let redactor = body.redactor().clone();
    let bytes = body.whole().await?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(&bytes),
    };
    let events = whole(&text).map_err(|error| redactor.clean_error(error))?;
    Ok(ready(restored(events, tools)))
}
