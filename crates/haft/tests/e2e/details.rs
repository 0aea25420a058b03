//! Where engine and adapter must mean the same by a word: limits, cost, strict tools, calls found in
//! text, answers that are empty.

use haft::models::ChatQuirks;
use haft::testing::{Chunks, Pieces, Script, Step, StepUsage, call, offers, say};
use haft::{
    CallStatus, ContentPart, End, EventKind, FinishReason, IncompleteReason, Item, ModelOptions,
    OnRepaired, ToolDefinition, TrustPolicy, Usage, Value, dynamic_tool, json,
};

use crate::world::{Provider, assert_whole, cases, chat, each, tools};

fn limit(provider: Provider, body: &Value) -> Option<u64> {
    let place = match provider {
        Provider::Chat => "/max_completion_tokens",
        Provider::OtherChat | Provider::Anthropic => "/max_tokens",
        Provider::Responses => "/max_output_tokens",
        Provider::Ollama => "/options/num_predict",
    };
    body.pointer(place).and_then(Value::as_u64)
}

#[tokio::test]
async fn what_is_left_of_the_output_limit_goes_with_each_request() {
    each(cases(), |case| async move {
        let step = call("note", json!({"text": "x"})).usage(10, 30);
        let server = case.server([step, say("done").usage(10, 30)]).await;
        let options = ModelOptions {
            stream: case.stream,
            max_output_tokens: Some(100),
            temperature: Some(0.5),
            ..ModelOptions::default()
        };
        let run = case
            .run(&server)
            .model_options(options)
            .tools(tools())
            .user("go");
        assert!(run.await.unwrap().is_completed());
        let received = server.received();
        let limits: Vec<_> = received
            .iter()
            .map(|request| limit(case.provider, &request.body))
            .collect();
        assert_eq!(limits, [Some(100), Some(70)]);
        let temperature = match case.provider {
            Provider::Ollama => &received[0].body["options"]["temperature"],
            _ => &received[0].body["temperature"],
        };
        assert_eq!(temperature, &json!(0.5));
    })
    .await;
}

#[tokio::test]
async fn nothing_is_sent_that_was_not_asked_for() {
    each(cases(), |case| async move {
        let server = case.server([say("hello")]).await;
        case.run(&server).user("hi").await.unwrap();
        let body = server.received()[0].body.clone();
        let mut members: Vec<_> = body
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        members.retain(|member| !matches!(*member, "stream" | "stream_options"));
        let expected: &[&str] = match case.provider {
            Provider::Responses => &["model", "store", "input"],
            Provider::Anthropic => &["model", "max_tokens", "messages"],
            _ => &["model", "messages"],
        };
        assert_eq!(members, expected);
    })
    .await;
}

#[tokio::test]
async fn cached_tokens_are_part_of_the_input_with_every_provider() {
    each(cases(), |case| async move {
        let mut step = call("note", json!({"text": "x"}));
        step.usage = StepUsage::Tokens(Usage {
            input_tokens: 100,
            output_tokens: 50,
            cache_write_tokens: 0,
            cached_input_tokens: 80,
            reasoning_tokens: 30,
            requests: 1,
        });
        let server = case.server([step.clone(), say("done").usage(10, 5)]).await;
        let outcome = case.run(&server).tools(tools()).user("go").await.unwrap();
        let usage = outcome.usage;
        assert_eq!((usage.input_tokens, usage.output_tokens), (110, 55));
        // Ollama tells nothing of its cache.
        let cached = if case.provider == Provider::Ollama {
            0
        } else {
            80
        };
        assert_eq!(usage.cached_input_tokens, cached);

        let server = case.server([step]).await;
        let run = case
            .run(&server)
            .tools(tools())
            .max_total_tokens(149)
            .user("go");
        let outcome = run.await.unwrap();
        let End::Incomplete {
            reason, message, ..
        } = &outcome.end
        else {
            panic!("{:?}", outcome.end)
        };
        assert_eq!(*reason, IncompleteReason::Budget);
        assert_eq!(message, "Budget exceeded: total_tokens 150 > 149");
        assert_whole(&outcome);
    })
    .await;
}

#[tokio::test]
async fn a_strict_tool_takes_null_for_what_is_not_given() {
    each(cases(), |case| async move {
        let definition = ToolDefinition::builder("measure")
            .strict(true)
            .parameters(json!({
                "type": "object",
                "properties": {"what": {"type": "string"}, "digits": {"type": "integer"}},
                "required": ["what"],
                "additionalProperties": false
            }));
        let tool = dynamic_tool(
            definition.build().unwrap(),
            |arguments: Value, _| async move { Ok::<_, haft::ToolError>(arguments.to_string()) },
        );
        let is_strict = matches!(case.provider, Provider::Chat | Provider::Responses);
        let mut arguments = json!({"what": "it"});
        if is_strict {
            arguments["digits"] = Value::Null;
        }
        let server = case.server([call("measure", arguments), say("done")]).await;
        let outcome = case.run(&server).tools([tool]).user("go").await.unwrap();
        assert!(outcome.is_completed(), "{:?}", outcome.end);
        assert_eq!(outcome.tool_calls[0].status, CallStatus::Succeeded);
        let output = &server.received()[1].view.outputs[0].text;
        assert_eq!(output, r#"{"what":"it"}"#);
        let shown = server.received()[0].body["tools"][0].to_string();
        assert_eq!(shown.contains("\"strict\":true"), is_strict, "{shown}");
    })
    .await;
}

#[tokio::test]
async fn calls_that_a_model_writes_as_text_run_where_that_is_switched_on() {
    let text =
        "I will note it.\n```json\n{\"name\": \"note\", \"arguments\": {\"text\": \"x\"}}\n```";
    for case in cases().filter(|case| case.provider == Provider::OtherChat) {
        for recover_calls in [true, false] {
            let server = case.server([say(text), say("done")]).await;
            let model = chat(&server).quirks(ChatQuirks {
                recover_calls,
                ..ChatQuirks::default()
            });
            // Without this somebody would be asked: the text may be a quotation.
            let trust = TrustPolicy {
                on_repaired: OnRepaired::Allow,
                ..TrustPolicy::default()
            };
            let run = case.run_of(model).tools(tools()).trust(trust);
            let outcome = run.user("go").await.unwrap();
            assert!(outcome.is_completed(), "{:?}", outcome.end);
            if !recover_calls {
                assert_eq!(outcome.text, text);
                continue;
            }
            assert_eq!(outcome.text, "done");
            let source = outcome.tool_calls[0].provenance.source.as_ref().unwrap();
            assert!(source.recovered);
            let body = &server.received()[1].body;
            assert_eq!(
                body["messages"][1]["tool_calls"][0]["function"]["name"],
                "note"
            );
            assert!(!body.to_string().contains("recovered"), "{body:#}");
        }
    }
}

#[tokio::test]
async fn call_that_a_model_writes_as_text_does_not_run_unasked() {
    let text = r#"{"name": "note", "arguments": {"text": "x"}}"#;
    for case in cases().filter(|case| case.provider == Provider::OtherChat) {
        let server = case.server([say(text), say("done")]).await;
        let run = case.run_of(chat(&server)).tools(tools());
        let outcome = run.user("go").await.unwrap();
        assert_eq!(outcome.text, "done");
        assert_eq!(outcome.tool_calls[0].status, CallStatus::NotApproved);
    }
}

#[tokio::test]
async fn an_empty_answer_is_an_answer_and_the_conversation_goes_on() {
    each(cases(), |case| async move {
        let script = Script::from([Step::default(), say("hello")]);
        let server = case.server(script).await;
        let first = case.run(&server).tools(tools()).user("hi").await.unwrap();
        assert!(first.is_completed(), "{:?}", first.end);
        assert_eq!(first.text, "");
        let run = case.run(&server).tools(tools()).session(first.session);
        let second = run.user("still there?").await.unwrap();
        assert_eq!(second.text, "hello", "{:?}", second.end);
        let view = &server.received()[1].view;
        assert!(view.user.as_deref().unwrap().ends_with("still there?"));
        let body = server.received()[1].body.to_string();
        assert!(
            !body.contains("\"content\":[]") && !body.contains("\"content\":\"\""),
            "{body}"
        );
    })
    .await;
}

#[tokio::test]
async fn an_end_without_a_reason_is_an_end() {
    each(cases(), |case| async move {
        let silent = |step: Step| step.finish(FinishReason::Unknown);
        let steps = [
            silent(call("note", json!({"text": "x"}))),
            silent(say("done")),
        ];
        let server = case.server(steps).await;
        let outcome = case.run(&server).tools(tools()).user("go").await.unwrap();
        assert!(outcome.is_completed(), "{:?}", outcome.end);
        assert_eq!(outcome.text, "done");
        assert_eq!(outcome.tool_calls[0].status, CallStatus::Succeeded);
    })
    .await;
}

#[tokio::test]
async fn the_pieces_of_an_answer_add_up_to_its_items() {
    each(cases(), |case| async move {
        let step = say("Sée ☂.")
            .think("Hm, é.")
            .call("note", json!({"text": "ß \" \\", "weight": 2}))
            .call("get_weather", json!({"city": "Tromsø"}))
            .pieces(Pieces::Each(2))
            .chunks(Chunks::Each(5));
        let server = case
            .server([step, say("done").pieces(Pieces::Each(1))])
            .await;
        let mut run = case.run(&server).tools(tools()).user("go").start().unwrap();
        let mut written: Vec<String> = Vec::new();
        let mut added = Vec::new();
        while let Some(event) = run.next().await {
            match event.kind {
                EventKind::TurnStarted { .. } => {
                    // All items of an answer are added before the next request.
                    assert_eq!(std::mem::take(&mut written), std::mem::take(&mut added));
                }
                EventKind::ItemStarted { index, .. } => {
                    assert_eq!(index, written.len());
                    written.push(String::new());
                }
                EventKind::TextDelta { index, text }
                | EventKind::ReasoningDelta { index, text }
                | EventKind::ArgumentsDelta { index, text } => written[index].push_str(&text),
                EventKind::ItemAdded { item, .. } => match &item {
                    Item::FunctionCall(call) => added.push(call.arguments.clone()),
                    Item::Reasoning(thought) => {
                        let parts = thought.content.iter().chain(&thought.summary);
                        added.push(parts.filter_map(ContentPart::text).collect());
                    }
                    Item::Message(_) => added.push(item.text()),
                    _ => {}
                },
                _ => {}
            }
        }
        assert_eq!(written, added);
        assert_eq!(written, ["done"]);
        assert!(run.finish().await.is_completed());
    })
    .await;
}

/// Recite everything.
#[haft::tool(read_only)]
fn recite() -> String {
    "ten green bottles ☂ ".repeat(100)
}

#[tokio::test]
async fn a_long_result_is_sent_in_part_and_read_on_by_a_tool() {
    each(cases(), |case| async move {
        let offered = ["recite", "recall_tool_result"];
        let server = case
            .server([
                call("recite", json!({})).expect(offers(offered)),
                call(
                    "recall_tool_result",
                    json!({"tool_call_id": "call_1", "offset": 512}),
                )
                .expect(offers(offered)),
                say("done").expect(offers(offered)),
            ])
            .await;
        let outcome = case
            .run(&server)
            .tools([recite])
            .spill(600)
            .user("go")
            .await
            .unwrap();
        assert!(outcome.is_completed(), "{:?}", outcome.end);
        server.assert_finished();
        let last = server.received().pop().unwrap().view;
        assert!(
            last.outputs[0].text.contains("truncated"),
            "{}",
            last.outputs[0].text
        );
        assert!(last.outputs[0].text.len() < 1_000);
        assert_eq!(outcome.tool_calls[1].status, CallStatus::Succeeded);
        assert!(
            last.outputs[1].text.contains("bottles"),
            "{}",
            last.outputs[1].text
        );
    })
    .await;
}
