//! A tool that a provider cannot be shown spoils neither the request nor the run.

use haft::testing::{call, offers, say};
use haft::{
    CallStatus, Catalog, End, ModelErrorKind, ModelRequest, ToolChoice, ToolDefinition, ToolRef,
    Value, dynamic_tool, json,
};

use crate::world::{
    Provider, anthropic, assert_whole, cases, chat, each, ollama, responses, tools,
};

/// A tool whose schema is small by reference and larger written out than any provider takes.
fn deep() -> ToolRef {
    let mut places = serde_json::Map::new();
    places.insert("d0".into(), json!({"type": "string"}));
    for level in 1..16 {
        let below = json!({"$ref": format!("#/$defs/d{}", level - 1)});
        let fork = json!({"type": "object", "properties": {"left": below, "right": below}});
        places.insert(format!("d{level}"), fork);
    }
    let definition = ToolDefinition::builder("deep").parameters(json!({
        "$defs": places,
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/d15"}}
    }));
    let definition = definition.build().unwrap();
    dynamic_tool(definition, |_: Value, _| async {
        Ok::<_, haft::ToolError>("dug")
    })
    .into()
}

#[tokio::test]
async fn it_is_left_out_and_a_call_of_it_still_has_a_result() {
    each(cases(), |case| async move {
        let shown = ["get_weather", "note"];
        let server = case
            .server([
                call("deep", json!({}))
                    .call("note", json!({"text": "x"}))
                    .expect(offers(shown)),
                say("done").expect(offers(shown).output_says("dug").output_says("noted x (1)")),
            ])
            .await;
        let run = case.run(&server).tools([deep()]).tools(tools()).user("go");
        let outcome = run.await.unwrap();
        assert!(outcome.is_completed(), "{:?}", outcome.end);
        server.assert_finished();
        let statuses: Vec<_> = outcome.tool_calls.iter().map(|call| call.status).collect();
        assert_eq!(statuses, [CallStatus::Succeeded; 2]);
        assert_whole(&outcome);
    })
    .await;
}

#[tokio::test]
async fn why_it_is_left_out_can_be_asked() {
    each(cases(), |case| async move {
        let server = case.server([]).await;
        let builder = Catalog::new().snapshot().bind().without_tools();
        let binding = builder.with_tools([deep()]).with_tools(tools()).build().unwrap();
        let request = ModelRequest {
            tools: binding.specs().clone(),
            ..ModelRequest::default()
        };
        let left_out = match case.provider {
            Provider::Chat | Provider::OtherChat => chat(&server).left_out(&request),
            Provider::Responses => responses(&server).left_out(&request),
            Provider::Anthropic => anthropic(&server).left_out(&request),
            Provider::Ollama => ollama(&server).left_out(&request),
        };
        let [left_out] = &left_out[..] else {
            panic!("{left_out:?}")
        };
        let words = "tool `deep` is left out: its schema cannot be shown to this model: it has more \
            than 5000 subschemas";
        assert_eq!(left_out.to_string(), words);
    })
    .await;
}

#[tokio::test]
async fn forcing_it_is_an_error_that_says_so() {
    each(cases(), |case| async move {
        let server = case.server([]).await;
        let run = case.run(&server).tools([deep()]).tools(tools()).user("go");
        let outcome = run
            .tool_choice(ToolChoice::Function("deep".into()))
            .await
            .unwrap();
        let End::Failed {
            reason: haft::FailedReason::Model { error, attempts },
            ..
        } = &outcome.end
        else {
            panic!("{:?}", outcome.end)
        };
        assert_eq!((error.kind, *attempts), (ModelErrorKind::InvalidRequest, 1));
        assert!(error.message.contains("`deep` is left out"), "{error}");
        assert!(server.received().is_empty());
    })
    .await;
}

#[tokio::test]
async fn where_it_is_the_only_tool_the_request_goes_without() {
    each(cases(), |case| async move {
        let server = case.server([say("fine")]).await;
        let outcome = case.run(&server).tools([deep()]).user("go").await.unwrap();
        assert_eq!(outcome.text, "fine", "{:?}", outcome.end);
        let body = &server.received()[0].body;
        assert_eq!((body.get("tools"), body.get("tool_choice")), (None, None));
    })
    .await;
}
