//! An answer as a stream of events in this process.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::stream;
use haft_core::{
    ContentPart, Item, ItemKind, ModelError, ModelErrorKind, ModelEvent, ModelStream, Streaming,
};

use super::fault::{Fault, hung_up};
use super::pieces::Pieces;
use super::player::Answer;

/// What a stream does next.
enum Act {
    Tell(ModelEvent),
    Break(ModelError),
    Hang,
}

/// The answer as a stream, with its fault.
pub(crate) fn stream(answer: Answer, model: &str, streaming: Streaming) -> ModelStream {
    let delay = Duration::from_millis(answer.step.delay_ms);
    let acts = acts(answer, model, streaming);
    Box::pin(stream::unfold(acts, move |mut acts| async move {
        let act = acts.pop_front()?;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        match act {
            Act::Tell(event) => Some((Ok(event), acts)),
            Act::Break(error) => Some((Err(error), VecDeque::new())),
            Act::Hang => std::future::pending().await,
        }
    }))
}

fn acts(answer: Answer, model: &str, streaming: Streaming) -> VecDeque<Act> {
    let pieces = match streaming {
        Streaming::Pieces | Streaming::Either => answer.step.pieces.clone(),
        Streaming::Whole => Pieces::Whole,
    };
    let fault = answer.step.fault.clone();
    let mut events = events(answer, model, &pieces);
    let end = match fault {
        Some(Fault::CutAfterEvents(count)) => {
            events.truncate(count);
            Some(Act::Break(hung_up()))
        }
        Some(Fault::CutAfterBytes(bytes)) => {
            events.truncate(events_within(&events, bytes));
            Some(Act::Break(hung_up()))
        }
        Some(Fault::EndAfterEvents(count)) => {
            events.truncate(count);
            None
        }
        Some(Fault::HangAfterEvents(count)) => {
            events.truncate(count);
            Some(Act::Hang)
        }
        Some(Fault::ErrorEvent {
            after_events,
            code,
            message,
        }) => {
            events.truncate(after_events);
            let mut error = ModelError::new(ModelErrorKind::ServerError, message);
            error.code = code;
            Some(Act::Break(error))
        }
        Some(Fault::Garbage { after_events, .. }) => {
            events.truncate(after_events);
            let message = "the stream holds bytes that are not an event";
            let error = ModelError::new(ModelErrorKind::Protocol, message);
            Some(Act::Break(error))
        }
        _ => None,
    };
    events.into_iter().map(Act::Tell).chain(end).collect()
}

/// How many events come before the delta that exceeds so many bytes of text.
fn events_within(events: &[ModelEvent], bytes: usize) -> usize {
    let mut told = 0;
    let exceeds = |event: &ModelEvent| {
        told += event.text().map_or(0, str::len);
        // An answer without text, or with less, is cut before it is whole.
        told > bytes || matches!(event, ModelEvent::Finished { .. })
    };
    events.iter().position(exceeds).unwrap_or(events.len())
}

fn events(answer: Answer, model: &str, pieces: &Pieces) -> Vec<ModelEvent> {
    let mut events = vec![ModelEvent::Started {
        response_id: Some(format!("resp_script_{}", answer.number)),
        model: Some(model.to_owned()),
    }];
    for (index, item) in answer.items.into_iter().enumerate() {
        events.push(ModelEvent::ItemStarted {
            index,
            id: item.id().map(str::to_owned),
            kind: kind_of(&item),
        });
        deltas(index, &item, pieces, &mut events);
        events.push(ModelEvent::ItemDone { index, item });
    }
    events.push(ModelEvent::Finished {
        finish: answer.finish,
        usage: answer.usage,
    });
    events
}

fn kind_of(item: &Item) -> ItemKind {
    match item {
        Item::Message(_) => ItemKind::Message,
        Item::Reasoning(_) => ItemKind::Reasoning,
        Item::FunctionCall(call) => ItemKind::FunctionCall {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            recovered: call.is_recovered(),
        },
        Item::Other(members) if haft_core::is_provider_item(item.kind()) => ItemKind::Provider {
            item: members.clone(),
        },
        other => ItemKind::Other {
            item_type: other.kind().to_owned(),
        },
    }
}

fn deltas(index: usize, item: &Item, pieces: &Pieces, events: &mut Vec<ModelEvent>) {
    let mut tell = |text: &str, event: &dyn Fn(usize, String) -> ModelEvent| {
        let pieces = pieces.cut(text).into_iter();
        events.extend(pieces.map(|piece| event(index, piece.to_owned())));
    };
    match item {
        Item::Message(message) => {
            for part in &message.content {
                match part {
                    ContentPart::Refusal { refusal } => tell(refusal, &|index, text| {
                        ModelEvent::RefusalDelta { index, text }
                    }),
                    other => tell(other.text().unwrap_or(""), &|index, text| {
                        ModelEvent::TextDelta { index, text }
                    }),
                }
            }
        }
        Item::Reasoning(reasoning) => {
            for (part, summary) in reasoning.summary.iter().enumerate() {
                tell(summary.text().unwrap_or(""), &|index, text| {
                    ModelEvent::SummaryDelta { index, part, text }
                });
            }
            for part in &reasoning.content {
                tell(part.text().unwrap_or(""), &|index, text| {
                    ModelEvent::ReasoningDelta { index, text }
                });
            }
        }
        Item::FunctionCall(call) => tell(&call.arguments, &|index, text| {
            ModelEvent::ArgumentsDelta { index, text }
        }),
        _ => {}
    }
}
