//! Reasoning between tool turns, as the clients that people use send it back.

use haft_core::{ContentPart, Item, Reasoning};
use haft_models::testing::{ReceivedRequest, ScriptedServer, Step, call, say, sum_up, think};
use haft_models::{Anthropic, Ollama, OpenAiChat, OpenAiResponses, ScriptedModel};
use serde_json::{Value, json};

use crate::access::Keys;
use crate::support::{Served, Setup, backend, function, item_types, kinds, last, serve};

/// Quotes, line ends and letters that a careless writer would change.
const TEXT: &str = "I must \"look\".\n\n  Über — 𝔘? \\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Chat,
    Ollama,
    Anthropic,
}

const PROTOCOLS: [Protocol; 3] = [Protocol::Chat, Protocol::Ollama, Protocol::Anthropic];

impl Protocol {
    fn setup(self, server: &ScriptedServer) -> Setup {
        match self {
            Self::Chat => Setup::of(OpenAiChat::new("m").base_url(&server.base_url())),
            Self::Ollama => Setup::of(Ollama::new("m").base_url(&server.url())),
            Self::Anthropic => Setup::of(Anthropic::new("m").base_url(&server.url())),
        }
    }

    /// What of the reasoning is in a request's assistant message, which must hold the call too.
    fn reasoning(self, request: &ReceivedRequest) -> Value {
        let body = &request.body;
        let message = &body["messages"][1];
        assert_eq!(message["role"], "assistant", "{body:#}");
        match self {
            Self::Chat => {
                assert_eq!(message["tool_calls"][0]["function"]["name"], "look");
                message["reasoning_content"].clone()
            }
            Self::Ollama => {
                assert_eq!(message["tool_calls"][0]["function"]["name"], "look");
                message["thinking"].clone()
            }
            Self::Anthropic => {
                let blocks = message["content"].as_array().unwrap();
                assert_eq!(blocks.last().unwrap()["name"], "look", "{body:#}");
                json!(blocks[..blocks.len() - 1])
            }
        }
    }

    /// What it must be.
    fn expected(self) -> Value {
        match self {
            Self::Chat | Self::Ollama => json!(TEXT),
            Self::Anthropic => {
                json!([{"type": "thinking", "thinking": TEXT, "signature": "c2NyaXB0ZWQ="}])
            }
        }
    }
}

fn script() -> [Step; 2] {
    [
        think(TEXT).call("look", json!({})).with_id("call_a"),
        say("A tree."),
    ]
}

/// The first request of a client that keeps the conversation itself.
fn first(summary: Option<&str>, is_included: bool) -> Value {
    let mut body = json!({"input": [{"role": "user", "content": "What is there?"}],
        "tools": [function("look")], "store": false});
    if is_included {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if let Some(summary) = summary {
        body["reasoning"] = json!({"summary": summary});
    }
    body
}

/// The second one, with the reasoning item as the client sends it back.
fn second(first: &Value, answer: &Value, echo: Echo) -> Value {
    let mut body = first.clone();
    let input = body["input"].as_array_mut().unwrap();
    for item in answer["output"].as_array().unwrap() {
        match item["type"].as_str() {
            Some("reasoning") => input.push(echo(item)),
            _ => input.push(json!({"type": "function_call", "call_id": item["call_id"],
                "name": item["name"], "arguments": item["arguments"]})),
        }
    }
    input.push(output_of(answer));
    body
}

/// The output of the call in an answer.
fn output_of(answer: &Value) -> Value {
    let items = answer["output"].as_array().unwrap();
    let call_id = &items.last().unwrap()["call_id"];
    json!({"type": "function_call_output", "call_id": call_id, "output": "a tree"})
}

type Echo = fn(&Value) -> Value;

/// Codex over HTTP: no id, no content.
fn codex(item: &Value) -> Value {
    json!({"type": "reasoning", "summary": item["summary"], "content": null,
        "encrypted_content": item["encrypted_content"]})
}

/// `@ai-sdk/openai`, and with it opencode.
fn ai_sdk(item: &Value) -> Value {
    json!({"type": "reasoning", "id": item["id"], "encrypted_content": item["encrypted_content"],
        "summary": item["summary"]})
}

/// pydantic-ai: one part for all of the summary; raw content where there was some.
fn pydantic_ai(item: &Value) -> Value {
    let mut echo = json!({"id": item["id"], "summary": item["summary"], "type": "reasoning",
        "encrypted_content": item["encrypted_content"]});
    if let Some(content) = item.get("content") {
        echo["content"] = content.clone();
    }
    echo
}

/// `LangChain` after a stream: what the summary events said, and the id.
fn lang_chain(item: &Value) -> Value {
    json!({"id": item["id"], "summary": item["summary"], "type": "reasoning",
        "encrypted_content": item["encrypted_content"], "status": null})
}

/// `LlamaIndex`: all text there was, as one summary.
fn llama_index(item: &Value) -> Value {
    let parts = ["content", "summary"].map(|key| item[key].as_array().cloned());
    let parts = parts.into_iter().flatten().flatten();
    let text: Vec<_> = parts
        .map(|part| part["text"].as_str().unwrap().to_owned())
        .collect();
    json!({"id": item["id"], "type": "reasoning", "status": "completed",
        "encrypted_content": item["encrypted_content"],
        "summary": [{"type": "summary_text", "text": text.join("\n")}]})
}

/// The typed SDKs: every member that they know, which is all that there is.
fn typed(item: &Value) -> Value {
    assert!(item.get("wire_field").is_none(), "{item:#}");
    item.clone()
}

const CLIENTS: [(&str, Echo); 6] = [
    ("codex", codex),
    ("ai-sdk", ai_sdk),
    ("pydantic-ai", pydantic_ai),
    ("LangChain", lang_chain),
    ("LlamaIndex", llama_index),
    ("typed", typed),
];

#[tokio::test]
async fn every_client_gets_its_reasoning_back_to_every_backend() {
    for protocol in PROTOCOLS {
        for (name, echo) in CLIENTS {
            for summary in [None, Some("auto")] {
                let backend = backend(script()).await;
                let served = protocol.setup(&backend).serve().await;
                let asked = first(summary, true);
                let answer = served.create(asked.clone()).await;
                assert_eq!(item_types(&answer), ["reasoning", "function_call"]);
                served.create(second(&asked, &answer, echo)).await;
                let received = backend.received();
                let got = protocol.reasoning(&received[1]);
                assert_eq!(got, protocol.expected(), "{protocol:?} {name} {summary:?}");
                backend.assert_finished();
            }
        }
    }
}

#[tokio::test]
async fn a_streamed_item_goes_back_as_well() {
    for protocol in PROTOCOLS {
        let backend = backend(script()).await;
        let served = protocol.setup(&backend).serve().await;
        let asked = first(Some("detailed"), true);
        let events = served.stream(asked.clone()).await;
        served.stream(second(&asked, last(&events), codex)).await;
        let got = protocol.reasoning(&backend.received()[1]);
        assert_eq!(got, protocol.expected(), "{protocol:?}");
    }
}

/// The client asks for nothing: neither for encrypted reasoning nor for a summary.
#[tokio::test]
async fn plain_text_without_the_private_member_reaches_chat_backends() {
    for protocol in [Protocol::Chat, Protocol::Ollama] {
        let backend = backend(script()).await;
        let served = protocol.setup(&backend).serve().await;
        let asked = first(None, false);
        let answer = served.create(asked.clone()).await;
        assert!(answer["output"][0].get("encrypted_content").is_none());
        served.create(second(&asked, &answer, typed)).await;
        let got = protocol.reasoning(&backend.received()[1]);
        assert_eq!(got, protocol.expected(), "{protocol:?}");
    }
}

#[tokio::test]
async fn redacted_thinking_goes_back_byte_for_byte() {
    let redacted = Item::Reasoning(Reasoning {
        encrypted_content: Some("UkVEQUNURUQ=".into()),
        ..Reasoning::default()
    });
    let calls = Item::function_call("call_a", "look", "{}");
    let step = Step::default().item(redacted).item(calls);
    let backend = backend([step, say("A tree.")]).await;
    let served = Protocol::Anthropic.setup(&backend).serve().await;
    let asked = first(Some("auto"), true);
    let answer = served.create(asked.clone()).await;
    assert_eq!(item_types(&answer), ["reasoning", "function_call"]);
    served.create(second(&asked, &answer, codex)).await;
    let got = Protocol::Anthropic.reasoning(&backend.received()[1]);
    let expected = json!([{"type": "redacted_thinking", "data": "UkVEQUNURUQ="}]);
    assert_eq!(got, expected);
}

#[tokio::test]
async fn sealed_reasoning_survives_a_restart_and_is_the_same_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let item = Reasoning {
        content: vec![ContentPart::ReasoningText { text: TEXT.into() }],
        extra: serde_json::from_value(json!({"wire_field": "reasoning"})).unwrap(),
        ..Reasoning::default()
    };
    let step = Step::default()
        .item(Item::Reasoning(item.clone()))
        .item(Item::function_call("call_a", "look", "{}"));
    let serve = async |model: ScriptedModel| {
        let mut setup = Setup::of(model);
        setup.data_dir = Some(folder.path().to_owned());
        setup.serve().await
    };
    let served = serve(ScriptedModel::new([step])).await;
    let mut asked = first(Some("auto"), true);
    asked["store"] = true.into();
    let events = served.stream(asked.clone()).await;
    // Events and response agree, or the stream would not be legal; so does what is stored.
    let answer = last(&events).clone();
    let sealed = answer["output"][0]["encrypted_content"].as_str().unwrap();
    assert!(sealed.starts_with("haft1."), "{sealed}");
    let id = answer["id"].as_str().unwrap();
    let path = format!("/responses/{id}?include[]=reasoning.encrypted_content");
    assert_eq!(served.get(&path).await.ok()["output"], answer["output"]);
    let plain = served.get(&format!("/responses/{id}")).await.ok();
    assert!(plain["output"][0].get("encrypted_content").is_none());
    served.stop().await;

    let model = ScriptedModel::new([say("A tree.")]);
    let served = serve(model.clone()).await;
    served.create(second(&asked, &answer, codex)).await;
    let received = model.received();
    let mut items = received[0].conversation.items();
    let restored = items.find_map(|it| match it {
        Item::Reasoning(reasoning) => Some(reasoning.clone()),
        _ => None,
    });
    let restored = restored.unwrap();
    assert_eq!(restored.content, item.content);
    assert_eq!(restored.extra, item.extra);
    assert_eq!(
        (restored.summary, restored.encrypted_content),
        (vec![], None)
    );
}

#[tokio::test]
async fn changed_and_foreign_sealed_reasoning_is_refused() {
    let keys = Keys::new();
    let (own, foreign) = (keys.add("own", "acme"), keys.add("foreign", "other"));
    let model = ScriptedModel::new([script()[0].clone(), say("A tree.").forever()]);
    let mut setup = Setup::of(model.clone());
    setup.data_dir = Some(keys.folder().to_owned());
    let served = setup.serve().await;
    let asked = first(None, true);
    let answer = served.post_as(&own, "/responses", asked.clone()).await.ok();
    let body = second(&asked, &answer, codex);
    let refused = (
        400,
        "invalid_encrypted_content",
        Some("input[1].encrypted_content"),
    );
    let answered = served.post_as(&foreign, "/responses", body.clone()).await;
    assert_eq!(answered.error(), refused);
    let mut changed = body.clone();
    let sealed = changed["input"][1]["encrypted_content"].as_str().unwrap();
    let last = if sealed.ends_with('A') { 'B' } else { 'A' };
    let sealed = format!("{}{last}", &sealed[..sealed.len() - 1]);
    changed["input"][1]["encrypted_content"] = sealed.into();
    let answered = served.post_as(&own, "/responses", changed).await;
    assert_eq!(answered.error(), refused);
    assert_eq!(model.received().len(), 1);
    served.post_as(&own, "/responses", body).await.ok();
}

#[tokio::test]
async fn what_a_responses_backend_encrypted_passes_unchanged() {
    let encrypted = Item::Reasoning(Reasoning {
        summary: vec![ContentPart::SummaryText {
            text: "Looking.".into(),
        }],
        encrypted_content: Some("gAAAAABo".into()),
        ..Reasoning::default()
    });
    let calls = Item::function_call("call_a", "look", "{}");
    let step = Step::default().item(encrypted).item(calls);
    let backend = backend([step, say("A tree.")]).await;
    let model = OpenAiResponses::new("m").base_url(&backend.base_url());
    let served = Setup::of(model).serve().await;
    let asked = first(Some("auto"), true);
    let answer = served.create(asked.clone()).await;
    let item = &answer["output"][0];
    assert_eq!(item["encrypted_content"], "gAAAAABo");
    assert_eq!(item["summary"][0]["text"], "Looking.");
    served.create(second(&asked, &answer, codex)).await;
    let sent = &backend.received()[1].body["input"][1];
    assert_eq!(sent["encrypted_content"], "gAAAAABo", "{sent}");
}

/// The events of a reasoning item.
fn reasoning_events(events: &[Value]) -> Vec<&str> {
    let is_one = |event: &&Value| event["output_index"] == 0;
    let events = events.iter().filter(is_one);
    let mut kinds: Vec<_> = events
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    kinds.dedup();
    kinds
}

const SUMMARY_EVENTS: [&str; 6] = [
    "response.output_item.added",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
    "response.output_item.done",
];

#[tokio::test]
async fn raw_reasoning_is_the_summary_for_those_who_ask_for_one() {
    for protocol in PROTOCOLS {
        for dialect in ["openai", "open-responses"] {
            for asked in [
                json!({"summary": "auto"}),
                json!({"summary": "concise", "effort": "low"}),
                json!({"summary": "detailed"}),
                json!({"generate_summary": "auto"}),
            ] {
                let backend = backend([think(TEXT).say("Yes."), think(TEXT).say("Yes.")]).await;
                let served = protocol.setup(&backend).serve().await;
                let body = json!({"input": "Is it?", "reasoning": asked});
                let header = [("haft-dialect", dialect)];
                let events = served.stream_with(body.clone(), &header).await;
                assert_eq!(reasoning_events(&events), SUMMARY_EVENTS, "{protocol:?}");
                let streamed = last(&events);
                assert_eq!(
                    streamed["reasoning"]["summary"],
                    *asked.get("summary").unwrap_or(&asked["generate_summary"])
                );
                let plain = served.post("/responses", body).await;
                assert_eq!(plain.header("haft-warning"), None);
                let plain = plain.ok();
                for response in [streamed, &plain] {
                    let item = &response["output"][0];
                    let summary = json!([{"type": "summary_text", "text": TEXT}]);
                    assert_eq!(item["summary"], summary, "{protocol:?}");
                    // Once is enough: many clients show everything that they read.
                    assert!(item.get("content").is_none(), "{item}");
                    let stored = served.stored(&response["id"]).await;
                    assert_eq!(stored["output"], response["output"]);
                }
            }
        }
    }
}

#[tokio::test]
async fn a_stored_summary_goes_back_to_the_backend_as_its_own_text() {
    for protocol in PROTOCOLS {
        let backend = backend(script()).await;
        let served = protocol.setup(&backend).serve().await;
        let body = json!({"input": "What is there?", "tools": [function("look")],
            "reasoning": {"summary": "auto"}});
        let one = served.create(body).await;
        let body = json!({"previous_response_id": one["id"], "input": [output_of(&one)]});
        served.create(body).await;
        let got = protocol.reasoning(&backend.received()[1]);
        assert_eq!(got, protocol.expected(), "{protocol:?}");
        let raw = String::from_utf8_lossy(&backend.received()[1].raw).into_owned();
        assert!(!raw.contains("haft_raw_summary"), "{raw}");
    }
}

#[tokio::test]
async fn a_summary_of_the_backend_is_not_replaced() {
    let step = sum_up("Short.").think(TEXT).say("Yes.");
    let (served, _) = serve([step.clone(), step]).await;
    let body = json!({"input": "Is it?", "reasoning": {"summary": "auto"}});
    let events = served.stream(body.clone()).await;
    let plain = served.create(body).await;
    for response in [last(&events), &plain] {
        let item = &response["output"][0];
        assert_eq!(
            item["summary"],
            json!([{"type": "summary_text", "text": "Short."}])
        );
        assert_eq!(item["content"][0]["text"], TEXT);
    }
}

#[tokio::test]
async fn raw_reasoning_stays_raw_for_those_who_ask_for_nothing() {
    let (served, _) = serve([think(TEXT).say("Yes."), think(TEXT).say("Yes.")]).await;
    for body in [
        json!({"input": "Is it?"}),
        json!({"input": "Is it?", "reasoning": {"effort": "low", "summary": null}}),
    ] {
        let events = served.stream(body).await;
        assert!(kinds(&events).contains(&"response.reasoning_text.delta"));
        let item = &last(&events)["output"][0];
        assert_eq!(item["summary"], json!([]));
        assert_eq!(item["content"][0]["text"], TEXT);
    }
}

#[tokio::test]
async fn a_background_summary_is_replayed_as_it_was_sent() {
    let (served, _) = serve([think(TEXT).say("Yes.")]).await;
    let body = json!({"input": "Is it?", "background": true, "reasoning": {"summary": "auto"},
        "include": ["reasoning.encrypted_content"]});
    let events = served.stream(body).await;
    let id = last(&events)["id"].as_str().unwrap();
    let replayed = served.get(&format!("/responses/{id}?stream=true")).await;
    let replayed = crate::support::events(replayed.body.as_str().unwrap());
    assert_eq!(replayed, events);
}

/// A chat server gets the bytes of the client; the others the same reasoning in their own member.
#[tokio::test]
async fn reasoning_in_chat_completions_reaches_backends_that_take_it() {
    for protocol in [Protocol::Chat, Protocol::Ollama] {
        for member in ["reasoning_content", "reasoning"] {
            let backend = backend([say("A tree.")]).await;
            let served = protocol.setup(&backend).serve().await;
            let mut assistant = json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_a", "type": "function", "function": {"name": "look", "arguments": "{}"}}]});
            assistant[member] = TEXT.into();
            let body = json!({"model": "default", "messages": [
                {"role": "user", "content": "What is there?"}, assistant,
                {"role": "tool", "tool_call_id": "call_a", "content": "a tree"}]});
            served.post("/chat/completions", body).await.ok();
            let received = &backend.received()[0];
            let got = match protocol {
                Protocol::Chat => received.body["messages"][1][member].clone(),
                _ => protocol.reasoning(received),
            };
            assert_eq!(got, TEXT, "{protocol:?} {member}");
        }
    }
}

/// A client that dropped the text of an item that is stored here.
#[tokio::test]
async fn a_stored_item_that_comes_back_without_its_text_is_completed() {
    for protocol in PROTOCOLS {
        for summary in [None, Some("auto")] {
            let backend = backend(script()).await;
            let served: Served = protocol.setup(&backend).serve().await;
            let mut asked = first(summary, false);
            asked["store"] = true.into();
            let answer = served.create(asked.clone()).await;
            let echo: Echo =
                |item| json!({"type": "reasoning", "id": item["id"], "summary": item["summary"]});
            served.create(second(&asked, &answer, echo)).await;
            let got = protocol.reasoning(&backend.received()[1]);
            assert_eq!(got, protocol.expected(), "{protocol:?} {summary:?}");
        }
    }
}

#[tokio::test]
async fn text_that_the_client_changed_counts_and_not_what_is_stored() {
    let backend = backend(script()).await;
    let served = Protocol::Chat.setup(&backend).serve().await;
    let mut asked = first(Some("auto"), false);
    asked["store"] = true.into();
    let answer = served.create(asked.clone()).await;
    let echo: Echo = |item| {
        json!({"type": "reasoning", "id": item["id"],
            "summary": [{"type": "summary_text", "text": "Something else."}]})
    };
    served.create(second(&asked, &answer, echo)).await;
    let got = Protocol::Chat.reasoning(&backend.received()[1]);
    assert_eq!(got, "Something else.");
}

#[tokio::test]
async fn a_call_without_reasoning_has_no_empty_member() {
    let backend = backend([call("look", json!({})).with_id("call_a"), say("A tree.")]).await;
    let served = Protocol::Chat.setup(&backend).serve().await;
    let asked = first(Some("auto"), true);
    let answer = served.create(asked.clone()).await;
    served.create(second(&asked, &answer, codex)).await;
    assert_eq!(
        Protocol::Chat.reasoning(&backend.received()[1]),
        Value::Null
    );
}
