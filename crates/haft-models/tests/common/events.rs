//! Reading answers.

use futures_util::StreamExt as _;
use haft_core::{Assembly, Item, Model, ModelError, ModelEvent, ModelRequest, ModelResponse};

/// All events of an answer, up to its end or an error.
pub async fn events_of(
    model: &dyn Model,
    request: ModelRequest,
) -> (Vec<ModelEvent>, Option<ModelError>) {
    let mut events = Vec::new();
    let mut stream = match model.send(request).await {
        Ok(stream) => stream,
        Err(error) => return (events, Some(error)),
    };
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => events.push(event),
            Err(error) => {
                assert!(
                    stream.next().await.is_none(),
                    "nothing comes after an error"
                );
                return (events, Some(error));
            }
        }
    }
    check(&events);
    (events, None)
}

/// The whole answer.
pub async fn answer_of(
    model: &dyn Model,
    request: ModelRequest,
) -> Result<ModelResponse, ModelError> {
    let (events, error) = events_of(model, request).await;
    match error {
        Some(error) => Err(error),
        None => Ok(assembled(&events)),
    }
}

/// The answer that these events are.
pub fn assembled(events: &[ModelEvent]) -> ModelResponse {
    let mut assembly = Assembly::default();
    events.iter().cloned().for_each(|event| assembly.add(event));
    assembly.take_finished().expect("a finished answer")
}

/// Checks what holds for every finished answer: it begins, each item begins, grows and is done, in
/// this order and under one index, the deltas are the item, and the end comes once and last.
pub fn check(events: &[ModelEvent]) {
    assert!(
        matches!(events.first(), Some(ModelEvent::Started { .. })),
        "{events:#?}"
    );
    assert!(
        matches!(events.last(), Some(ModelEvent::Finished { .. })),
        "{events:#?}"
    );
    let finished = events
        .iter()
        .filter(|event| matches!(event, ModelEvent::Finished { .. }));
    assert_eq!(finished.count(), 1);
    let mut open: Vec<Option<(String, bool)>> = Vec::new();
    for event in events {
        match event {
            ModelEvent::ItemStarted { index, .. } => {
                if open.len() <= *index {
                    open.resize(*index + 1, None);
                }
                assert!(open[*index].is_none(), "item {index} begins twice");
                open[*index] = Some((String::new(), false));
            }
            ModelEvent::TextDelta { index, text }
            | ModelEvent::RefusalDelta { index, text }
            | ModelEvent::ReasoningDelta { index, text }
            | ModelEvent::SummaryDelta { index, text, .. }
            | ModelEvent::ArgumentsDelta { index, text } => {
                let (so_far, is_done) = open[*index].as_mut().expect("an item that began");
                assert!(!*is_done && !text.is_empty());
                so_far.push_str(text);
            }
            ModelEvent::ItemDone { index, item } => {
                let (so_far, is_done) = open[*index].as_mut().expect("an item that began");
                assert!(
                    !std::mem::replace(is_done, true),
                    "item {index} is done twice"
                );
                if let Item::FunctionCall(call) = item
                    && !call.extra.contains_key("recovered")
                {
                    assert!(call.arguments == *so_far || call.arguments.len() < so_far.len());
                }
            }
            _ => {}
        }
    }
    assert!(
        open.iter()
            .all(|item| item.as_ref().is_some_and(|(_, is_done)| *is_done))
    );
}
