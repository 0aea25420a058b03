//! `tool_call`: one request, calls made safe, nothing run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft::testing::{Fault, fault, say};
use haft::{
    Binding, Catalog, ErrorCode, ModelErrorKind, RawArguments, ToolContext, ToolDefinition,
    dynamic_tool, json, tool_call,
};

use crate::world::{ask_user, each, streamed};

/// A tool that counts how often it ran, and a function of the caller's.
fn binding(ran: &Arc<AtomicUsize>) -> Binding {
    let definition = ToolDefinition::builder("count").parameters(json!({
        "type": "object",
        "properties": {"step": {"type": "integer"}},
        "required": ["step"],
        "additionalProperties": false
    }));
    let ran = Arc::clone(ran);
    let tool = dynamic_tool(definition.build().unwrap(), move |arguments, _| {
        ran.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, haft::ToolError>(format!("stepped {}", arguments["step"])) }
    });
    let catalog = Catalog::new();
    let builder = catalog.snapshot().bind().without_tools();
    let builder = builder.with_tools([tool.into(), ask_user()]);
    builder.build().unwrap()
}

/// R40
#[tokio::test]
async fn hydrated_calls_come_back_from_every_adapter_and_nothing_runs() {
    each(streamed(), |case| async move {
        let step = say("Counting.")
            .call("count", json!({"step": 2}))
            .call("count", json!({"step": "two"}))
            .call("count", RawArguments::Text("{\"step\": ".to_owned()))
            .call("nothing", json!({}))
            .call("ask_user", json!({"question": "why?"}))
            .usage(7, 3)
            .expect(haft::testing::offers(["count", "ask_user"]).user_says("count"));
        let server = case.server([step]).await;
        let ran = Arc::new(AtomicUsize::new(0));
        let model = case.provider.model(&server);
        let reply = tool_call(&*model, "count", &binding(&ran)).await.unwrap();
        server.assert_finished();
        assert_eq!(reply.text, "Counting.");
        assert_eq!((reply.usage.input_tokens, reply.usage.requests), (7, 1));
        assert_eq!(reply.calls.len(), 5);
        let is_ready: Vec<_> = reply.calls.iter().map(|call| call.tool.is_some()).collect();
        assert_eq!(is_ready, [true, false, false, false, true]);
        let details: Vec<_> = reply
            .calls
            .iter()
            .map(|call| call.errors.first().map(|it| &it.detail))
            .collect();
        assert!(
            matches!(details[1], Some(ErrorCode::Invalid(_))),
            "{details:?}"
        );
        assert!(
            matches!(details[3], Some(ErrorCode::UnknownTool { .. })),
            "{details:?}"
        );
        let mut ids: Vec<_> = reply
            .calls
            .iter()
            .map(|call| call.provenance.call_id.as_str())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 5, "every call has an id of its own");
        let source = reply.calls[0].provenance.source.as_ref().unwrap();
        assert_eq!(
            (source.provider.as_str(), source.model.as_str()),
            (model.provider(), "m")
        );
        assert_eq!(ran.load(Ordering::SeqCst), 0);

        // Whether it runs is the caller's to say.
        let ready = reply.calls.into_iter().next().unwrap().tool.unwrap();
        let output = ready.run(&ToolContext::default()).await.unwrap();
        assert_eq!(output.text_for_model(), "stepped 2");
        assert_eq!(ran.load(Ordering::SeqCst), 1);
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_fails_is_an_error_of_its_kind() {
    each(streamed(), |case| async move {
        let ran = Arc::default();
        for (broken, kind) in [
            (Fault::status(401), ModelErrorKind::Unauthorized),
            (Fault::status(429), ModelErrorKind::RateLimit),
            (Fault::CutAfterEvents(2), ModelErrorKind::Unreachable),
        ] {
            let step = fault(broken)
                .say("hello")
                .pieces(haft::testing::Pieces::Each(1));
            let server = case.server([step]).await;
            let model = case.provider.model(&server);
            let error = tool_call(&*model, "hi", &binding(&ran)).await.unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
        }
    })
    .await;
}
