//! More than text: images, and thoughts that their provider wants back.

use haft::testing::{ScriptedServer, Step, call, say};
use haft::{
    ContentPart, Item, Message, ModelOptions, OutputPart, Reasoning, Role, ToolOutput, Value,
    engine, json,
};

use crate::world::{Case, Provider, assert_whole, cases, each, streamed, tools};

const SEEN: &str = "iVBORw0KGgoSEEN";
const DRAWN: &str = "iVBORw0KGgoDRAWN";

/// Draw a map.
#[haft::tool(read_only)]
fn draw_map() -> ToolOutput {
    let image = OutputPart::Image {
        media_type: "image/png".into(),
        data: DRAWN.into(),
    };
    ToolOutput::text("a map").with_parts([image])
}

fn picture() -> Item {
    let content = vec![
        ContentPart::InputText {
            text: "What is this?".into(),
        },
        ContentPart::InputImage {
            image_url: format!("data:image/png;base64,{SEEN}"),
            detail: None,
        },
    ];
    Item::Message(Message {
        content,
        ..Message::new(Role::User, "")
    })
}

/// What was said, in the provider's form.
fn said(body: &Value) -> &Value {
    body.get("messages").unwrap_or(&body["input"])
}

#[tokio::test]
async fn images_of_users_and_tools_go_out_as_each_provider_wants_them() {
    for case in streamed() {
        let server = case
            .server([call("draw_map", json!({})), say("A map.")])
            .await;
        let run = case.run(&server).tools([draw_map]).input([picture()]);
        let outcome = run.await.unwrap();
        assert!(outcome.is_completed(), "{case:?}: {:?}", outcome.end);
        let received = server.received();
        let body = received[1].body.to_string();
        assert_eq!(body.matches(SEEN).count(), 1, "{case:?}: {body}");
        assert_eq!(body.matches(DRAWN).count(), 1, "{case:?}: {body}");
        assert_eq!(
            received[1]
                .view
                .user
                .as_deref()
                .map(|text| text.contains("What is this?")
                    || text.contains("From the output of call")),
            Some(true)
        );
        let name = format!("images_{}", case.provider.title());
        insta::assert_json_snapshot!(name, said(&received[1].body));
        assert_whole(&outcome);
    }
}

fn thoughtful(case: Case, server: &ScriptedServer) -> engine::Run {
    let options = ModelOptions {
        stream: case.stream,
        reasoning_effort: Some("high".into()),
        ..ModelOptions::default()
    };
    case.run(server).model_options(options).tools(tools())
}

/// A thought, sealed, and one that only the provider can read; then a call.
fn thinks_and_calls() -> Step {
    let thought = Reasoning {
        id: Some("rs_1".into()),
        summary: vec![ContentPart::SummaryText {
            text: "Hm, é \"☂\".".into(),
        }],
        encrypted_content: Some("c2VhbGVk".into()),
        ..Reasoning::default()
    };
    let sealed = Reasoning {
        id: Some("rs_2".into()),
        encrypted_content: Some("aGlkZGVu".into()),
        ..Reasoning::default()
    };
    Step::default()
        .item(Item::Reasoning(thought))
        .item(Item::Reasoning(sealed))
        .item(Item::function_call("c1", "note", r#"{"text":"x"}"#))
}

#[tokio::test]
async fn thoughts_go_back_unchanged_with_the_turn_that_they_belong_to() {
    each(cases(), |case| async move {
        let server = case
            .server([thinks_and_calls(), say("done"), say("again")])
            .await;
        let outcome = thoughtful(case, &server).user("go").await.unwrap();
        assert!(outcome.is_completed(), "{:?}", outcome.end);
        let session = crate::world::stored(&outcome.session);
        let next = thoughtful(case, &server)
            .session(session)
            .user("more")
            .await
            .unwrap();
        assert!(next.is_completed(), "{:?}", next.end);
        let received = server.received();
        // In the same turn, and in the turn after it.
        for request in &received[1..] {
            let said = said(&request.body).as_array().unwrap();
            match case.provider {
                Provider::Anthropic => {
                    let turn = said[1]["content"].as_array().unwrap();
                    let thought = json!({"type": "thinking", "thinking": "Hm, é \"☂\".",
                        "signature": "c2VhbGVk"});
                    assert_eq!(turn[0], thought);
                    assert_eq!(
                        turn[1],
                        json!({"type": "redacted_thinking", "data": "aGlkZGVu"})
                    );
                    assert_eq!(turn[2]["type"], "tool_use");
                }
                Provider::Responses => {
                    let summary = json!([{"type": "summary_text", "text": "Hm, é \"☂\"."}]);
                    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": summary,
                        "encrypted_content": "c2VhbGVk"});
                    assert_eq!(said[1], thought);
                    let sealed = json!({"type": "reasoning", "id": "rs_2", "summary": [],
                        "encrypted_content": "aGlkZGVu"});
                    assert_eq!(said[2], sealed);
                    assert_eq!(said[3]["type"], "function_call");
                }
                Provider::Chat | Provider::OtherChat => {
                    assert_eq!(said[1]["reasoning_content"], "Hm, é \"☂\".");
                    assert_eq!(said[1]["tool_calls"][0]["id"], "c1");
                }
                Provider::Ollama => assert_eq!(said[1]["thinking"], "Hm, é \"☂\"."),
            }
        }
        let first = &received[0].body;
        match case.provider {
            Provider::Responses => {
                assert_eq!(first["include"], json!(["reasoning.encrypted_content"]));
                assert_eq!(first["reasoning"], json!({"effort": "high"}));
            }
            Provider::Anthropic => assert!(first.get("thinking").is_some(), "{first:#}"),
            Provider::Ollama => assert_eq!(first["think"], "high"),
            Provider::Chat | Provider::OtherChat => assert_eq!(first["reasoning_effort"], "high"),
        }
    })
    .await;
}

#[tokio::test]
async fn thoughts_are_heard_and_are_no_part_of_the_answer() {
    each(cases(), |case| async move {
        let server = case.server([say("Yes.").think("Let me think.")]).await;
        let heard = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
        let hear = std::sync::Arc::clone(&heard);
        let outcome = case
            .run(&server)
            .on_reasoning(move |piece| hear.lock().unwrap().push_str(piece))
            .user("?")
            .await
            .unwrap();
        assert_eq!(outcome.text, "Yes.");
        assert_eq!(*heard.lock().unwrap(), "Let me think.");
    })
    .await;
}

#[tokio::test]
async fn a_refusal_is_told_as_one_where_the_protocol_can() {
    each(cases(), |case| async move {
        let server = case.server([haft::testing::refuse("I will not.")]).await;
        let outcome = case.run(&server).user("?").await.unwrap();
        match case.provider {
            Provider::Chat | Provider::OtherChat | Provider::Responses => {
                assert!(outcome.is_completed(), "{:?}", outcome.end);
                assert_eq!(outcome.refusal.as_deref(), Some("I will not."));
                assert_eq!(outcome.text, "");
            }
            // It stops the model, and says so.
            Provider::Anthropic => assert!(!outcome.is_completed(), "{:?}", outcome.end),
            Provider::Ollama => assert_eq!(outcome.text, "I will not."),
        }
    })
    .await;
}
