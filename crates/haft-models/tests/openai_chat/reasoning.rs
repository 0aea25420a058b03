//! Reasoning between tool turns: what goes back to the server, and in which member.

use haft_core::{ContentPart, Conversation, Item, ModelRequest, Reasoning, Streaming};
use haft_models::{ChatQuirks, ChatServer, OpenAiChat, ReasoningField};
use serde_json::{Value, json};

use crate::common::events::answer_of;
use crate::common::server::{Reply, Server};
use crate::model;

fn done() -> Reply {
    Reply::json(
        200,
        json!({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}),
    )
}

/// An answer that reasons in this member and then calls a tool.
fn reasons_in(member: &str) -> Reply {
    let mut message = json!({"content": null, "tool_calls": [{"id": "call_1", "type": "function",
        "function": {"name": "look", "arguments": "{}"}}]});
    message[member] = "I must look.".into();
    Reply::json(
        200,
        json!({"choices": [{"finish_reason": "tool_calls", "message": message}]}),
    )
}

fn raw(text: &str) -> Reasoning {
    Reasoning {
        content: vec![ContentPart::ReasoningText { text: text.into() }],
        ..Reasoning::default()
    }
}

/// A conversation in which this reasoning led to a call.
fn after(reasoning: Reasoning) -> ModelRequest {
    let conversation: Conversation = [
        Item::user("What is there?"),
        Item::Reasoning(reasoning),
        Item::function_call("call_1", "look", "{}"),
        Item::function_call_output("call_1", "a tree"),
    ]
    .into_iter()
    .collect();
    let mut request = ModelRequest {
        conversation,
        ..ModelRequest::default()
    };
    request.options.stream = Streaming::Whole;
    request
}

/// The members of the assistant message that carry reasoning.
fn sent(body: &Value) -> Value {
    let message = &body["messages"][1];
    assert_eq!(message["tool_calls"][0]["id"], "call_1", "{body}");
    let members = message.as_object().unwrap().iter();
    let members = members.filter(|(key, _)| key.starts_with("reasoning"));
    members
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

async fn sent_by(make: impl FnOnce(OpenAiChat) -> OpenAiChat, request: ModelRequest) -> Value {
    let server = Server::start([done()]).await;
    answer_of(&make(model(&server)), request).await.unwrap();
    sent(&server.request().json())
}

fn with(
    server: ChatServer,
    field: Option<ReasoningField>,
) -> impl FnOnce(OpenAiChat) -> OpenAiChat {
    move |model| {
        model.quirks(ChatQuirks {
            server: Some(server),
            reasoning_field: field,
            ..ChatQuirks::default()
        })
    }
}

#[tokio::test]
async fn reasoning_goes_back_in_the_member_that_the_server_uses() {
    for member in ["reasoning_content", "reasoning"] {
        let server = Server::start([reasons_in(member), done()]).await;
        let model = model(&server);
        let mut first = after(raw("unused"));
        first.conversation = "What is there?".into();
        answer_of(&model, first).await.unwrap();
        // The client kept the text and nothing else.
        answer_of(&model, after(raw("I must look."))).await.unwrap();
        let mut expected = json!({});
        expected[member] = "I must look.".into();
        assert_eq!(sent(&server.requests()[1].json()), expected);
    }
}

#[tokio::test]
async fn reasoning_that_does_not_say_its_member_goes_by_the_server_and_its_setting() {
    let text = "Why \"not\"?";
    for (kind, field, expected) in [
        (ChatServer::Other, None, json!({"reasoning_content": text})),
        (
            ChatServer::LlamaCpp,
            None,
            json!({"reasoning_content": text}),
        ),
        (ChatServer::Vllm, None, json!({"reasoning": text})),
        (ChatServer::Openai, None, json!({})),
        (
            ChatServer::Openai,
            Some(ReasoningField::Reasoning),
            json!({"reasoning": text}),
        ),
        (ChatServer::Other, Some(ReasoningField::None), json!({})),
    ] {
        let got = sent_by(with(kind, field), after(raw(text))).await;
        assert_eq!(got, expected, "{kind:?} {field:?}");
    }
}

#[tokio::test]
async fn a_summary_stands_in_for_raw_text_that_the_client_dropped() {
    let reasoning = Reasoning {
        summary: ["one", "two"]
            .map(|text| ContentPart::SummaryText { text: text.into() })
            .into(),
        ..Reasoning::default()
    };
    let got = sent_by(with(ChatServer::Other, None), after(reasoning)).await;
    assert_eq!(got, json!({"reasoning_content": "one\n\ntwo"}));
}

#[tokio::test]
async fn reasoning_that_another_provider_signed_stays_behind() {
    let reasoning = Reasoning {
        encrypted_content: Some("anthropic:sig".into()),
        ..raw("hm")
    };
    let got = sent_by(with(ChatServer::Other, None), after(reasoning)).await;
    assert_eq!(got, json!({}));
}

#[tokio::test]
async fn a_server_that_rejects_reasoning_is_asked_again_without() {
    let rejection = |status| {
        Reply::json(
            status,
            json!({"error": {"message": "'messages.1' : property 'reasoning_content' is unsupported",
                "type": "invalid_request_error"}}),
        )
    };
    for status in [400, 422] {
        let server = Server::start([rejection(status), done(), done()]).await;
        let model = model(&server);
        answer_of(&model, after(raw("hm"))).await.unwrap();
        // It is not tried a second time.
        answer_of(&model, after(raw("hm"))).await.unwrap();
        let sent: Vec<_> = server
            .requests()
            .iter()
            .map(|one| sent(&one.json()))
            .collect();
        assert_eq!(
            sent,
            [json!({"reasoning_content": "hm"}), json!({}), json!({})]
        );
    }
}

#[tokio::test]
async fn other_errors_about_reasoning_are_reported_as_they_are() {
    let error = Reply::json(
        400,
        json!({"error": {"message": "the reasoning_content must be passed back"}}),
    );
    // Nothing was sent that could be left out.
    let server = Server::start([error]).await;
    let configured = with(ChatServer::Other, Some(ReasoningField::None));
    let failed = answer_of(&configured(model(&server)), after(raw("hm"))).await;
    assert!(failed.unwrap_err().message.contains("passed back"));
    assert_eq!(server.requests().len(), 1);
}
