//! Undoes the lowering of schemas in the calls that come back.
//!
//! What comes in: events of calls as the model wrote them for the schemas that it was shown. What
//! goes out: the same events with arguments for the schemas as they are. Where something has to be
//! undone, the pieces of the arguments are held back and said at once when they are whole, so that
//! they still add up to them. All other arguments pass byte for byte.

use std::collections::BTreeSet;
use std::sync::Arc;

use haft_core::{Item, ItemKind, ModelError, ModelEvent};

use super::{Events, Flow, Lift};
use crate::lower::tools::RenderedTools;

/// A lifter whose calls are restored.
pub(crate) struct Restoring<L> {
    lift: L,
    calls: Calls,
    taken: Events,
}

impl<L> Restoring<L> {
    pub(crate) fn new(lift: L, tools: Arc<RenderedTools>) -> Self {
        Self {
            lift,
            calls: Calls {
                tools,
                held: BTreeSet::new(),
            },
            taken: Events::new(),
        }
    }

    fn pass(&mut self, events: &mut Events) {
        for event in self.taken.drain(..) {
            self.calls.pass(event, events);
        }
    }
}

impl<L: Lift> Lift for Restoring<L> {
    type Frame = L::Frame;

    fn take(&mut self, frame: Self::Frame, events: &mut Events) -> Result<Flow, ModelError> {
        let flow = self.lift.take(frame, &mut self.taken);
        self.pass(events);
        flow
    }

    fn end(&mut self, events: &mut Events) -> Result<(), ModelError> {
        let ended = self.lift.end(&mut self.taken);
        self.pass(events);
        ended
    }
}

/// The events of a whole answer with its calls restored.
pub(crate) fn restored(taken: Events, tools: Arc<RenderedTools>) -> Events {
    let mut calls = Calls {
        tools,
        held: BTreeSet::new(),
    };
    let mut events = Events::new();
    for event in taken {
        calls.pass(event, &mut events);
    }
    events
}

struct Calls {
    tools: Arc<RenderedTools>,
    /// The places of calls whose pieces are held back.
    held: BTreeSet<usize>,
}

impl Calls {
    fn pass(&mut self, event: ModelEvent, events: &mut Events) {
        match event {
            ModelEvent::ItemStarted {
                index,
                kind: ItemKind::FunctionCall { ref name, .. },
                ..
            } => {
                let tool = self.tools.tool(name);
                if tool.is_some_and(|tool| !tool.lowered().is_faithful()) {
                    self.held.insert(index);
                }
                events.push_back(event);
            }
            ModelEvent::ArgumentsDelta { index, .. } if self.held.contains(&index) => {}
            ModelEvent::ItemDone {
                index,
                item: Item::FunctionCall(mut call),
            } if self.held.remove(&index) => {
                call.arguments = self.tools.restored(&call.name, call.arguments);
                let text = call.arguments.clone();
                events.push_back(ModelEvent::ArgumentsDelta { index, text });
                let item = Item::FunctionCall(call);
                events.push_back(ModelEvent::ItemDone { index, item });
            }
            other => events.push_back(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::schema::Profile;
    use crate::lower::tools::{ToolForm, render_tools};
    use haft_core::{ModelResponse, RenderKey, ToolDefinition, ToolSpecs};
    use serde_json::json;

    #[test]
    fn renamed_keys_are_named_back_and_other_arguments_stay_byte_for_byte() {
        let tool = |name: &str, key: &str| {
            let schema = json!({"type": "object", "properties": {key: {"type": "integer"}}});
            ToolDefinition::builder(name)
                .parameters(schema)
                .build()
                .unwrap()
        };
        let specs: ToolSpecs = [tool("odd", "größe"), tool("plain", "size")]
            .into_iter()
            .collect();
        let form = ToolForm {
            key: RenderKey::new("restoring"),
            profile: Profile::Anthropic,
            strict_profile: Profile::Anthropic,
            write: |tool| tool.schema.clone(),
        };
        let tools = render_tools(&specs, &form);
        let lowered = tools.tool("odd").unwrap().lowered();
        let key = lowered.key_map.keys().next().unwrap().clone();
        let answer = ModelResponse::of([
            Item::function_call("1", "odd", format!("{{\"{key}\" : 1}}")),
            Item::function_call("2", "plain", "{\"size\" : 1}"),
            Item::function_call("3", "odd", format!("{{\"{key}")),
        ]);
        let mut said = vec![String::new(); 3];
        let mut items = Vec::new();
        for event in restored(answer.into_events().into(), tools) {
            match event {
                ModelEvent::ArgumentsDelta { index, text } => said[index].push_str(&text),
                ModelEvent::ItemDone { item, .. } => items.push(item),
                _ => {}
            }
        }
        let cut = format!("{{\"{key}");
        assert_eq!(said, ["{\"größe\":1}", "{\"size\" : 1}", cut.as_str()]);
        let expected = [
            Item::function_call("1", "odd", said[0].as_str()),
            Item::function_call("2", "plain", said[1].as_str()),
            Item::function_call("3", "odd", said[2].as_str()),
        ];
        assert_eq!(items, expected);
    }
}
