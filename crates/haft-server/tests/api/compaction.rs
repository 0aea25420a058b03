//! Compaction: the endpoint, the item, the trigger and the threshold.

use haft_core::{BoxFuture, Capabilities, Item, Model, ModelError, ModelRequest, ModelStream};
use haft_models::scripted::{ScriptedModel, call, fault, say};
use serde_json::{Value, json};

use crate::support::{Served, Setup, kinds};

async fn serve(model: &ScriptedModel) -> Served {
    Setup::of(model.clone()).serve().await
}

async fn compact(served: &Served, body: Value) -> Value {
    served.post("/responses/compact", body).await.ok()
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": text})
}

fn types(items: &Value) -> Vec<&str> {
    let items = items.as_array().unwrap().iter();
    items.map(|item| item["type"].as_str().unwrap()).collect()
}

/// What each item of a request says, in a few words; a summary without its heading.
fn said(request: &ModelRequest) -> Vec<String> {
    let said = request.conversation.items().map(|item| match item {
        Item::Message(message) => {
            let role = json!(message.role);
            let text = message.text();
            let text = match text.split_once("]\n\n") {
                Some((heading, summary)) if heading.starts_with("[Summary") => {
                    format!("summary {summary}")
                }
                _ => text,
            };
            format!("{}: {text}", role.as_str().unwrap())
        }
        Item::FunctionCall(call) => format!("call {}", call.call_id),
        Item::FunctionCallOutput(output) => format!("output {}", output.call_id),
        other => other.kind().to_owned(),
    });
    said.collect()
}

/// What the model was asked to sum up.
fn transcript(request: &ModelRequest) -> String {
    assert!(request.tools.is_empty());
    let instructions = request.instructions.as_deref().unwrap();
    assert!(instructions.starts_with("You compact conversations."));
    let items: Vec<String> = request.conversation.items().map(Item::text).collect();
    assert_eq!(items.len(), 1);
    items[0].clone()
}

#[tokio::test]
async fn a_window_is_the_users_messages_and_one_compaction_item() {
    let model = ScriptedModel::new([say("They spoke.").usage(30, 3), say("Brief.")]);
    let served = serve(&model).await;
    let look = json!({"type": "function", "name": "look", "parameters": {"type": "object"}});
    let compacted = compact(
        &served,
        json!({
            "model": "default",
            "instructions": "Speak softly.",
            "tools": [look],
            "parallel_tool_calls": true,
            "input": [
                {"role": "developer", "content": "Be brief."},
                user("Where is Oslo?"),
                assistant("In Norway."),
                {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{\"at\":\"Oslo\"}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "a harbour"},
                assistant("By a harbour."),
                user("And Bergen?"),
            ],
        }),
    )
    .await;
    assert_eq!(compacted["object"], "response.compaction");
    assert_eq!(
        compacted["usage"],
        json!({
            "input_tokens": 30,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 3,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 33,
        })
    );
    let output = &compacted["output"];
    assert_eq!(types(output), ["message", "message", "compaction"]);
    for message in &output.as_array().unwrap()[..2] {
        assert_eq!(
            (&message["role"], &message["status"]),
            (&json!("user"), &json!("completed"))
        );
        assert!(message["id"].as_str().unwrap().starts_with("msg_"));
    }
    assert_eq!(
        output[0]["content"],
        json!([{"type": "input_text", "text": "Where is Oslo?"}])
    );
    assert!(output[2]["id"].as_str().unwrap().starts_with("cmp_"));
    assert_eq!(output[2]["status"], "completed");
    let sealed = output[2]["encrypted_content"].as_str().unwrap();
    for secret in ["They spoke", "Be brief", "harbour"] {
        assert!(!sealed.contains(secret));
    }

    let mut input = output.as_array().unwrap().clone();
    input.push(user("And Hamar?"));
    served.create(json!({"input": input})).await;
    let asked = model.received();
    let told = transcript(&asked[0]);
    for words in [
        "[user]\nWhere is Oslo?",
        "[assistant]\nIn Norway.",
        "{\"at\":\"Oslo\"}",
        "a harbour",
    ] {
        assert!(told.contains(words), "{told}");
    }
    assert!(
        asked[0]
            .instructions
            .as_deref()
            .unwrap()
            .contains("Speak softly.")
    );
    assert_eq!(
        said(&asked[1]),
        [
            "user: Where is Oslo?",
            "user: And Bergen?",
            "developer: Be brief.",
            "user: summary They spoke.",
            "user: And Hamar?",
        ]
    );
    assert_eq!(asked[1].instructions, None);
    model.assert_finished();
}

#[tokio::test]
async fn a_chain_is_compacted_by_its_last_response_and_what_comes_out_is_no_response() {
    let model = ScriptedModel::new([say("In Norway."), say("They spoke of Oslo.")]);
    let served = serve(&model).await;
    let first = served.create(json!({"input": "Where is Oslo?"})).await;
    let compacted = compact(
        &served,
        json!({"model": "default", "previous_response_id": first["id"]}),
    )
    .await;
    assert_eq!(types(&compacted["output"]), ["message", "compaction"]);
    assert!(transcript(&model.received()[1]).contains("[assistant]\nIn Norway."));
    let id = compacted["id"].as_str().unwrap();
    let missing = served.get(&format!("/responses/{id}")).await;
    assert_eq!(missing.error(), (404, "response_not_found", None));
    let body = json!({"input": "go on", "previous_response_id": id});
    let refused = served.post("/responses", body).await;
    let expected = (
        400,
        "previous_response_not_found",
        Some("previous_response_id"),
    );
    assert_eq!(refused.error(), expected);
}

#[tokio::test]
async fn a_window_sent_together_with_its_chain_brings_nothing_twice() {
    let model = ScriptedModel::new([say("In Norway."), say("They spoke."), say("Yes.")]);
    let served = serve(&model).await;
    let first = served.create(json!({"input": "Where is Oslo?"})).await;
    let id = &first["id"];
    let body = json!({"model": "default", "previous_response_id": id});
    let compacted = compact(&served, body).await;
    let mut input = compacted["output"].as_array().unwrap().clone();
    input.push(user("Sure?"));
    served
        .create(json!({"input": input, "previous_response_id": id}))
        .await;
    assert_eq!(
        said(&model.received()[2]),
        [
            "user: Where is Oslo?",
            "user: summary They spoke.",
            "user: Sure?"
        ]
    );
}

#[tokio::test]
async fn an_open_call_stays_outside_with_the_calls_beside_it() {
    let model = ScriptedModel::new([say("Looking."), say("Done.")]);
    let served = serve(&model).await;
    let called = |id: &str| json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": id});
    let body = json!({"model": "default", "input": [
        user("Look."),
        called("call_1"), output("call_1"),
        called("call_2"), called("call_3"), output("call_2"),
    ]});
    let compacted = compact(&served, body).await;
    assert_eq!(
        types(&compacted["output"]),
        [
            "message",
            "function_call",
            "function_call",
            "function_call_output",
            "compaction"
        ]
    );
    let mut input = compacted["output"].as_array().unwrap().clone();
    let unanswered = served.post("/responses", json!({"input": input})).await;
    assert_eq!(unanswered.error().1, "missing_tool_output");
    input.push(output("call_3"));
    served.create(json!({"input": input})).await;
    assert_eq!(
        said(&model.received()[1]),
        [
            "user: Look.",
            "call call_2",
            "call call_3",
            "output call_2",
            "user: summary Looking.",
            "output call_3",
        ]
    );
}

#[tokio::test]
async fn an_output_without_call_is_refused_before_anything_is_sent() {
    let model = ScriptedModel::new([say("never")]);
    let served = serve(&model).await;
    let orphan = json!({"type": "function_call_output", "call_id": "call_9", "output": "x"});
    let body = json!({"model": "default", "input": [user("hi"), orphan]});
    let refused = served.post("/responses/compact", body).await;
    let expected = (400, "tool_call_not_found", Some("input[1].call_id"));
    assert_eq!(refused.error(), expected);
    assert!(model.received().is_empty());
}

#[tokio::test]
async fn loaded_tools_survive_inside_and_declared_ones_as_items() {
    let model = ScriptedModel::new([say("They searched."), say("Ready.")]);
    let served = serve(&model).await;
    let tool = |name: &str, description: &str| {
        json!({"type": "function", "name": name, "description": description,
            "parameters": {"type": "object", "properties": {}}})
    };
    let search = |id: &str| json!({"type": "tool_search_call", "call_id": id, "execution": "client", "arguments": {"query": "x"}});
    let found = |id: &str, tools: Value| json!({"type": "tool_search_output", "call_id": id, "execution": "client", "status": "completed", "tools": tools});
    let body = json!({"model": "default", "input": [
        {"type": "additional_tools", "role": "developer", "tools": [tool("declared", "by the client")]},
        user("Find tools."),
        search("call_1"), found("call_1", json!([tool("found", "at first"), tool("other", "beside")])),
        search("call_2"), found("call_2", json!([tool("found", "later")])),
    ]});
    let compacted = compact(&served, body).await;
    let output = &compacted["output"];
    assert_eq!(types(output), ["additional_tools", "message", "compaction"]);
    let mut input = output.as_array().unwrap().clone();
    input.push(user("Go."));
    served.create(json!({"input": input})).await;
    let asked = &model.received()[1];
    let tools: Vec<(String, String)> = asked
        .tools
        .iter()
        .map(|tool| {
            let tool = tool.definition();
            (
                tool.name().to_string(),
                tool.description().unwrap_or_default().to_owned(),
            )
        })
        .collect();
    let pair = |name: &str, words: &str| (name.to_owned(), words.to_owned());
    assert_eq!(
        tools,
        [
            pair("declared", "by the client"),
            pair("other", "beside"),
            pair("found", "later")
        ]
    );
    assert_eq!(
        said(asked),
        [
            "user: Find tools.",
            "user: summary They searched.",
            "user: Go."
        ]
    );
}

#[tokio::test]
async fn a_compaction_can_be_compacted_again() {
    let model = ScriptedModel::new([say("First."), say("Second."), say("Yes.")]);
    let served = serve(&model).await;
    let input = json!([{"role": "system", "content": "Rule."}, user("one"), assistant("1")]);
    let first = compact(&served, json!({"model": "default", "input": input})).await;
    let mut input = first["output"].as_array().unwrap().clone();
    input.extend([assistant("2"), user("two")]);
    let second = compact(&served, json!({"model": "default", "input": input})).await;
    assert_eq!(
        types(&second["output"]),
        ["message", "message", "compaction"]
    );
    let told = transcript(&model.received()[1]);
    assert!(told.contains("[earlier summary]"), "{told}");
    assert!(told.contains("First."), "{told}");
    // All that there ever was says no more than the latest.
    let mut everything = input;
    everything.extend(second["output"].as_array().unwrap()[2..].iter().cloned());
    everything.push(user("three"));
    served.create(json!({"input": everything})).await;
    assert_eq!(
        said(&model.received()[2]),
        [
            "user: one",
            "user: two",
            "system: Rule.",
            "user: summary Second.",
            "user: three"
        ]
    );
}

#[tokio::test]
async fn a_blob_opens_after_a_restart_with_the_same_keys_and_not_without() {
    let directory = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new([say("They spoke."), say("Yes.")]);
    let serve = |keeps_keys: bool| {
        let mut setup = Setup::of(model.clone());
        setup.data_dir = keeps_keys.then(|| directory.path().to_owned());
        setup.serve()
    };
    let before = serve(true).await;
    let compacted = compact(&before, json!({"model": "default", "input": "hello"})).await;
    drop(before);
    let input = json!({"input": compacted["output"]});
    let stranger = serve(false).await;
    let refused = stranger.post("/responses", input.clone()).await;
    let expected = (
        400,
        "invalid_encrypted_content",
        Some("input[1].encrypted_content"),
    );
    assert_eq!(refused.error(), expected);
    let after = serve(true).await;
    after.create(input).await;
    assert_eq!(
        said(&model.received()[1]),
        ["user: hello", "user: summary They spoke."]
    );
}

#[tokio::test]
async fn blobs_that_were_not_made_here_are_refused_with_their_place() {
    let model = ScriptedModel::new([say("They spoke.")]);
    let served = serve(&model).await;
    let compacted = compact(&served, json!({"model": "default", "input": "hello"})).await;
    let sealed = compacted["output"][1]["encrypted_content"]
        .as_str()
        .unwrap();
    let mut damaged = sealed.to_owned().into_bytes();
    let at = damaged.len() / 2;
    damaged[at] = if damaged[at] == b'A' { b'B' } else { b'A' };
    let damaged = String::from_utf8(damaged).unwrap();
    let cut = &sealed[..sealed.len() - 4];
    for blob in [
        damaged.as_str(),
        cut,
        "haft1.",
        "haft1.AAAA",
        "gAAAAABpM0Yj-somebody-else",
        "",
    ] {
        let input = json!([user("hi"), {"type": "compaction", "encrypted_content": blob}]);
        for path in [
            "/responses",
            "/responses/compact",
            "/responses/input_tokens",
        ] {
            let body = json!({"model": "default", "input": input});
            let refused = served.post(path, body).await;
            let expected = (
                400,
                "invalid_encrypted_content",
                Some("input[1].encrypted_content"),
            );
            assert_eq!(refused.error(), expected, "{path} {blob}");
        }
    }
    assert_eq!(model.received().len(), 1);
}

/// A model whose provider reads compaction items of its own.
struct Native(ScriptedModel);

impl Model for Native {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn provider(&self) -> &str {
        self.0.provider()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn reads_compaction(&self) -> bool {
        true
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        self.0.send(request)
    }
}

#[tokio::test]
async fn a_providers_own_blob_goes_back_to_it_untouched_and_is_never_summed_up() {
    let model = ScriptedModel::new([say("Yes."), say("They spoke."), say("Still.")]);
    let served = Setup::of(Native(model.clone())).serve().await;
    let foreign = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA-theirs"});
    let input = json!([foreign, user("hi")]);
    served.create(json!({"input": input})).await;
    let body = json!({"model": "default", "input": [foreign, user("hi"), assistant("hello")]});
    let compacted = compact(&served, body).await;
    assert_eq!(types(&compacted["output"]), ["message", "compaction"]);
    served.create(json!({"input": compacted["output"]})).await;
    let asked = model.received();
    assert_eq!(said(&asked[0]), ["compaction", "user: hi"]);
    assert_eq!(
        said(&asked[2]),
        ["user: hi", "compaction", "user: summary They spoke."]
    );
    for (request, at) in [(&asked[0], 0), (&asked[2], 1)] {
        let item = request.conversation.items().nth(at).unwrap();
        assert_eq!(json!(item)["encrypted_content"], "gAAAA-theirs");
    }
    assert!(!transcript(&asked[1]).contains("theirs"));
}

#[tokio::test]
async fn a_trigger_gives_the_compaction_item_and_the_chain_goes_on_from_it() {
    let model = ScriptedModel::new([
        say("In Norway.").usage(10, 2),
        say("They spoke.").usage(20, 3),
        say("Near Bergen."),
        say("Ever on."),
    ]);
    let served = serve(&model).await;
    let rule = json!({"role": "developer", "content": "Be brief."});
    let input = json!([rule, user("Where is Oslo?")]);
    let first = served.create(json!({"input": input})).await;
    let trigger = json!([user("Thanks."), {"type": "compaction_trigger"}]);
    let body = json!({"input": trigger, "previous_response_id": first["id"]});
    let second = served.create(body).await;
    assert_eq!(second["status"], "completed");
    assert_eq!(types(&second["output"]), ["compaction"]);
    assert_eq!(second["usage"]["total_tokens"], 23);
    let id = second["id"].as_str().unwrap();
    assert_eq!(served.get(&format!("/responses/{id}")).await.ok(), second);
    let third = served
        .create(json!({"input": "And Voss?", "previous_response_id": id}))
        .await;
    served
        .create(json!({"input": "Really?", "previous_response_id": third["id"]}))
        .await;
    let asked = model.received();
    let compacted = [
        "developer: Be brief.",
        "user: Where is Oslo?",
        // Nothing that is summed up comes after this one.
        "user: summary They spoke.",
        "user: Thanks.",
    ];
    let and = |more: &[&'static str]| [&compacted, more].concat();
    assert_eq!(said(&asked[2]), and(&["user: And Voss?"]));
    assert_eq!(
        said(&asked[3]),
        and(&[
            "user: And Voss?",
            "assistant: Near Bergen.",
            "user: Really?"
        ])
    );
}

#[tokio::test]
async fn a_streamed_trigger_tells_of_one_item_added_and_done() {
    let model = ScriptedModel::new([say("They spoke.")]);
    let served = serve(&model).await;
    let input = json!([user("hi"), {"type": "compaction_trigger"}]);
    let events = served.stream(json!({"input": input})).await;
    assert_eq!(
        kinds(&events),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.output_item.done",
            "response.completed",
        ]
    );
    assert_eq!(events[2]["item"]["status"], "in_progress");
    assert_eq!(events[3]["item"]["status"], "completed");
    assert_eq!(events[4]["response"]["output"], json!([events[3]["item"]]));
}

#[tokio::test]
async fn a_trigger_with_nothing_before_it_is_refused() {
    let model = ScriptedModel::new([say("never")]);
    let served = serve(&model).await;
    let body = json!({"input": [{"type": "compaction_trigger"}]});
    let refused = served.post("/responses", body).await;
    assert_eq!(refused.error(), (400, "invalid_value", Some("input")));
    let input = json!([{"type": "compaction_trigger"}, user("hi")]);
    let refused = served.post("/responses", json!({"input": input})).await;
    assert_eq!(refused.error(), (400, "invalid_value", Some("input[0]")));
    assert!(model.received().is_empty());
}

/// Compact beyond so many tokens.
fn beyond(tokens: u64) -> Value {
    json!([{"type": "compaction", "compact_threshold": tokens}])
}

#[tokio::test]
async fn a_context_beyond_the_threshold_is_compacted_and_the_answer_follows() {
    let model = ScriptedModel::new([
        say("x".repeat(800)),
        say("They spoke.").usage(200, 3),
        say("In Norway.").usage(50, 4),
        say("Yes."),
    ]);
    let served = serve(&model).await;
    let create = |input: Value, previous: &Value| {
        served.create(json!({
            "input": input, "previous_response_id": previous,
            "context_management": beyond(100), "instructions": "Be brief.",
        }))
    };
    let first = create(json!("Talk."), &Value::Null).await;
    assert_eq!(types(&first["output"]), ["message"]);
    let second = create(json!("Where is Oslo?"), &first["id"]).await;
    assert_eq!(types(&second["output"]), ["compaction", "message"]);
    assert_eq!(second["usage"]["total_tokens"], 257);
    create(json!("Sure?"), &second["id"]).await;
    let asked = model.received();
    let told = transcript(&asked[1]);
    assert!(told.contains("Where is Oslo?"), "{told}");
    let compacted = [
        "user: Talk.",
        "user: summary They spoke.",
        "user: Where is Oslo?",
    ];
    assert_eq!(said(&asked[2]), compacted);
    assert_eq!(asked[2].instructions.as_deref(), Some("Be brief."));
    // Everything before the compaction is represented by it; what was said since is there.
    let since = [&compacted[..], &["assistant: In Norway.", "user: Sure?"]].concat();
    assert_eq!(said(&asked[3]), since);
    model.assert_finished();
}

#[tokio::test]
async fn a_client_without_store_may_send_everything_or_only_what_came_since() {
    let model = ScriptedModel::new([say("They spoke."), say("In Norway."), say("a"), say("b")]);
    let served = serve(&model).await;
    let input = vec![
        json!({"role": "developer", "content": "Be brief."}),
        user("Talk."),
        assistant(&"x".repeat(800)),
        user("Where is Oslo?"),
    ];
    let body = json!({"input": input, "store": false, "context_management": beyond(100)});
    let first = served.create(body).await;
    let output = first["output"].as_array().unwrap();
    assert_eq!(types(&first["output"]), ["compaction", "message"]);
    let everything = [&input, output, &vec![user("Sure?")]]
        .map(Vec::as_slice)
        .concat();
    let since = [output, &vec![user("Sure?")]].map(Vec::as_slice).concat();
    for input in [everything, since] {
        let body = json!({"input": input, "store": false, "context_management": beyond(100)});
        let answer = served.create(body).await;
        assert_eq!(types(&answer["output"]), ["message"]);
    }
    let asked = model.received();
    assert_eq!(
        said(&asked[2]),
        [
            "developer: Be brief.",
            "user: Talk.",
            "user: summary They spoke.",
            "user: Where is Oslo?",
            "assistant: In Norway.",
            "user: Sure?",
        ]
    );
    assert_eq!(said(&asked[3]), said(&asked[2]));
}

#[tokio::test]
async fn what_a_client_says_anew_in_front_of_a_compaction_is_not_lost() {
    let model = ScriptedModel::new([say("They spoke."), say("Yes.")]);
    let served = serve(&model).await;
    let input = json!([user("one"), assistant("1"), {"type": "compaction_trigger"}]);
    let first = served.create(json!({"input": input, "store": false})).await;
    let input = json!([
        {"role": "developer", "content": "New rule."},
        user("one"),
        first["output"][0],
        user("two"),
    ]);
    served.create(json!({"input": input})).await;
    assert_eq!(
        said(&model.received()[1]),
        [
            "developer: New rule.",
            "user: one",
            "user: summary They spoke.",
            "user: two"
        ]
    );
}

#[tokio::test]
async fn the_last_calls_are_kept_with_their_outputs_when_the_model_goes_on() {
    let model = ScriptedModel::new([
        call("look", json!({"at": 1})).with_id("call_1"),
        call("look", json!({"at": 2})).with_id("call_2"),
        say("They looked."),
        say("Seen."),
        say("Bye."),
    ]);
    let served = serve(&model).await;
    let create = |input: Value, previous: &Value| {
        served.create(json!({
            "input": input, "previous_response_id": previous,
            "context_management": beyond(250),
            "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}}],
        }))
    };
    let output = |id: &str| json!([{"type": "function_call_output", "call_id": id, "output": "x".repeat(500)}]);
    let first = create(json!("Look twice."), &Value::Null).await;
    let second = create(output("call_1"), &first["id"]).await;
    let third = create(output("call_2"), &second["id"]).await;
    assert_eq!(types(&third["output"]), ["compaction", "message"]);
    create(json!("Thanks."), &third["id"]).await;
    let asked = model.received();
    let compacted = [
        "user: Look twice.",
        "user: summary They looked.",
        "call call_2",
        "output call_2",
    ];
    assert_eq!(said(&asked[3]), compacted);
    assert_eq!(asked[3].tools.len(), 1);
    let since = [&compacted[..], &["assistant: Seen.", "user: Thanks."]].concat();
    assert_eq!(said(&asked[4]), since);
}

#[tokio::test]
async fn a_context_that_would_not_get_shorter_is_left_as_it_is() {
    let model = ScriptedModel::new([say("Long.")]);
    let served = serve(&model).await;
    let body = json!({"input": "x".repeat(2000), "context_management": beyond(100)});
    let answer = served.create(body).await;
    assert_eq!(types(&answer["output"]), ["message"]);
    assert_eq!(model.received().len(), 1);
}

#[tokio::test]
async fn a_conversation_goes_on_from_the_compaction_in_it() {
    let model = ScriptedModel::new([say("They spoke."), say("Yes.")]);
    let served = serve(&model).await;
    let items = json!([user("one"), assistant("1")]);
    let conversation = served
        .post("/conversations", json!({"items": items}))
        .await
        .ok();
    let ask =
        |input: Value| served.create(json!({"input": input, "conversation": conversation["id"]}));
    ask(json!([{"type": "compaction_trigger"}])).await;
    ask(json!("two")).await;
    assert_eq!(
        said(&model.received()[1]),
        ["user: one", "user: summary They spoke.", "user: two"]
    );
}

#[tokio::test]
async fn a_summary_that_fails_is_told_as_an_error() {
    use haft_models::scripted::Fault;
    let body = json!({"error": {"message": "too long", "code": "context_length_exceeded"}});
    let too_long = || fault(Fault::status(400).with_body(body.clone()));
    let model = ScriptedModel::new([too_long(), too_long(), say(" ")]);
    let served = serve(&model).await;
    let window = || json!({"model": "default", "input": "hi"});
    let refused = served.post("/responses/compact", window()).await;
    assert_eq!(
        refused.error(),
        (400, "context_length_exceeded", Some("input"))
    );
    let body = json!({"input": [user("hi"), {"type": "compaction_trigger"}]});
    let refused = served.post("/responses", body).await;
    assert_eq!(
        refused.error(),
        (400, "context_length_exceeded", Some("input"))
    );
    let refused = served.post("/responses/compact", window()).await;
    assert_eq!(refused.error(), (500, "model_error", None));
}

#[tokio::test]
async fn an_answer_that_fails_behind_a_compaction_keeps_the_item() {
    use haft_models::scripted::Fault;
    let body = json!({"error": {"message": "no such thing", "code": "odd"}});
    let broken = fault(Fault::status(400).with_body(body));
    let model = ScriptedModel::new([say("They spoke."), broken]);
    let served = serve(&model).await;
    let input = json!([user("one"), assistant(&"x".repeat(800)), user("two")]);
    let body = json!({"input": input, "context_management": beyond(100)});
    let failed = served.create(body).await;
    assert_eq!(failed["status"], "failed");
    assert_eq!(types(&failed["output"]), ["compaction"]);
}

#[tokio::test]
async fn requests_that_cannot_be_compacted_say_what_is_missing() {
    let model = ScriptedModel::new([say("never")]);
    let served = serve(&model).await;
    let cases = [
        (
            json!({"input": "hi"}),
            (400, "missing_required_parameter", Some("model")),
        ),
        (
            json!({"model": "default"}),
            (400, "missing_required_parameter", Some("input")),
        ),
        (
            json!({"model": "default", "input": "hi", "stream": true}),
            (400, "unsupported_parameter", Some("stream")),
        ),
        (
            json!({"model": "nobody", "input": "hi"}),
            (404, "model_not_found", Some("model")),
        ),
        (
            json!({"model": "default", "previous_response_id": "resp_x"}),
            (
                400,
                "previous_response_not_found",
                Some("previous_response_id"),
            ),
        ),
    ];
    for (body, expected) in cases {
        let refused = served.post("/responses/compact", body.clone()).await;
        assert_eq!(refused.error(), expected, "{body}");
    }
    let wrong = served.get("/responses/compact").await;
    assert!(matches!(wrong.status, 404 | 405), "{}", wrong.status);
    assert!(model.received().is_empty());
}

/// Waits until a background response is over.
async fn over(served: &Served, id: &str) -> Value {
    for _ in 0..1000 {
        let response = served.get(&format!("/responses/{id}")).await.ok();
        if !matches!(response["status"].as_str(), Some("queued" | "in_progress")) {
            return response;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the response does not end");
}

#[tokio::test]
async fn a_compaction_in_the_background_is_told_like_any_other() {
    let model = ScriptedModel::new([say("They spoke.")]);
    let served = serve(&model).await;
    let input = json!([user("hi"), {"type": "compaction_trigger"}]);
    let queued = served
        .create(json!({"input": input, "background": true}))
        .await;
    let response = over(&served, queued["id"].as_str().unwrap()).await;
    assert_eq!(response["status"], "completed");
    assert_eq!(types(&response["output"]), ["compaction"]);
}

#[tokio::test]
async fn a_compaction_that_is_cancelled_ends_as_cancelled() {
    use haft_models::scripted::Fault;
    let model = ScriptedModel::new([fault(Fault::Hang)]);
    let served = serve(&model).await;
    let input = json!([user("hi"), {"type": "compaction_trigger"}]);
    let queued = served
        .create(json!({"input": input, "background": true}))
        .await;
    let id = queued["id"].as_str().unwrap();
    served
        .post(&format!("/responses/{id}/cancel"), json!({}))
        .await
        .ok();
    let response = over(&served, id).await;
    assert_eq!(response["status"], "cancelled");
    assert_eq!(response["output"], json!([]));
}

#[tokio::test]
async fn what_was_sealed_before_a_rotation_of_keys_opens_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let serve = async || {
        let mut setup = Setup::of(haft_models::OfflineModel::new());
        setup.data_dir = Some(folder.path().to_owned());
        setup.serve().await
    };
    let body = json!({"model": "default", "input": "Remember: the sky is green."});
    let before = serve()
        .await
        .post("/responses/compact", body.clone())
        .await
        .ok();
    haft_server::rotate_sealing_keys(folder.path()).unwrap();
    let served = serve().await;
    let after = served.post("/responses/compact", body).await.ok();
    for compacted in [&before, &after] {
        let response = served.create(json!({"input": compacted["output"]})).await;
        assert_eq!(response["status"], "completed");
    }
    let sealed = |compacted: &serde_json::Value| {
        let items = compacted["output"].as_array().unwrap();
        let text = items.last().unwrap()["encrypted_content"].as_str().unwrap();
        // The key's own id comes first.
        text.split('.').nth(1).unwrap()[..5].to_owned()
    };
    assert_ne!(sealed(&before), sealed(&after), "another key seals now");
}
