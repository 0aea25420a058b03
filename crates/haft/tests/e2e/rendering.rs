//! Each item and each tool is rendered once, however long a run is.

use std::sync::{Arc, Mutex};

use haft::testing::{Step, call, say};
use haft::{
    BoxFuture, Capabilities, Entry, Model, ModelError, ModelRequest, ModelStream, ToolSpecs, json,
};

use crate::world::{each, streamed, tools};

/// What a request was made from.
type Made = (Vec<Arc<Entry>>, ToolSpecs);

/// Passes requests on and keeps hold of what they were made from.
struct Watching {
    model: Arc<dyn Model>,
    seen: Arc<Mutex<Vec<Made>>>,
}

impl Model for Watching {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn provider(&self) -> &str {
        self.model.provider()
    }

    fn capabilities(&self) -> Capabilities {
        self.model.capabilities()
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let entries = request.conversation.entries().to_vec();
        self.seen
            .lock()
            .unwrap()
            .push((entries, request.tools.clone()));
        self.model.send(request)
    }
}

#[tokio::test]
async fn in_thirty_turns_each_item_and_each_tool_is_rendered_once() {
    const TURNS: usize = 30;
    each(streamed(), |case| async move {
        let mut script: Vec<Step> = (1..TURNS)
            .map(|turn| {
                say(format!("turn {turn}"))
                    .think("hm")
                    .call("note", json!({"text": format!("a{turn}")}))
                    .call("note", json!({"text": format!("b{turn}")}))
            })
            .collect();
        script.push(say("done"));
        let server = case.server(script).await;
        let seen = Arc::default();
        let watching = Watching {
            model: case.provider.model(&server),
            seen: Arc::clone(&seen),
        };
        let run = case
            .run_of(watching)
            .tools(tools())
            .instructions("Be brief.");
        let outcome = run.max_rounds(100).user("go").await.unwrap();
        assert!(outcome.is_completed(), "{:?}", outcome.end);
        server.assert_finished();

        let seen = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(seen.len(), TURNS);
        let (last, specs) = seen.last().unwrap();
        // A thought, a message, two calls and two outputs in each turn but the last.
        assert_eq!(last.len(), 1 + 6 * (TURNS - 1));
        for (entries, tools) in &seen {
            let same = entries
                .iter()
                .zip(last)
                .all(|(one, other)| Arc::ptr_eq(one, other));
            assert!(same, "the items of earlier turns are the same objects");
            assert!(
                tools
                    .iter()
                    .zip(specs.iter())
                    .all(|(one, other)| Arc::ptr_eq(one, other))
            );
        }
        for entry in last {
            assert_eq!(entry.rendered().count(), 1, "{:?}", entry.item());
        }
        for spec in specs.iter() {
            assert_eq!(spec.rendered().count(), 1, "{spec:?}");
        }
        assert_eq!(specs.rendered().count(), 1);

        // And what was rendered is what was sent: each request begins like the one before.
        let received = server.received();
        let said = |body: &haft::Value| {
            body.get("messages")
                .unwrap_or(&body["input"])
                .as_array()
                .unwrap()
                .clone()
        };
        for pair in received.windows(2) {
            let (mut before, after) = (said(&pair[0].body), said(&pair[1].body));
            // The mark up to which the provider caches moves on.
            if let Some(last) = before.last_mut()
                && let Some(blocks) = last.get_mut("content").and_then(haft::Value::as_array_mut)
                && let Some(block) = blocks.last_mut().and_then(haft::Value::as_object_mut)
            {
                block.shift_remove("cache_control");
            }
            assert_eq!(before, after[..before.len()]);
            assert_eq!(pair[0].body["tools"], pair[1].body["tools"]);
        }
    })
    .await;
}

#[tokio::test]
async fn a_wrapped_model_is_a_model() {
    // An `Arc<dyn Model>` that was built elsewhere goes into a run as it is.
    for case in streamed() {
        let server = case
            .server([call("note", json!({"text": "x"})), say("done")])
            .await;
        let model: Arc<dyn Model> = case.provider.model(&server);
        let again = Arc::clone(&model);
        let outcome = haft::run(model).tools(tools()).user("go").await.unwrap();
        assert_eq!(outcome.text, "done");
        assert_eq!(again.name(), "m");
    }
}
