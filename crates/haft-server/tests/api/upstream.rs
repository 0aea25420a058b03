//! A Responses server behind this one: what its own tools can do reaches the client, and comes back.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use haft_core::ProviderTools;
use haft_models::OpenAiResponses;
use haft_models::pool::{Member, Pool};
use haft_server::{ModelEntry, UnsupportedTools};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::resuming::{remains, told_up_to};
use crate::support::{Setup, client, function, item_types, kinds, last};
use crate::tools::echo;
use crate::watch::Log;

/// A Responses server that plays recorded events and notes the requests.
pub(crate) struct Upstream {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Value>>>,
    task: tokio::task::JoinHandle<()>,
}

/// What the server answers to one request.
pub(crate) enum Reply {
    Whole(String),
    /// The beginning of an answer; nothing follows, and the connection stays open.
    Stalled(String),
    /// HTTP 400 with this message.
    Rejected(&'static str),
}

impl From<String> for Reply {
    fn from(answer: String) -> Self {
        Self::Whole(answer)
    }
}

impl Upstream {
    pub(crate) async fn start(answers: impl IntoIterator<Item = impl Into<Reply>>) -> Self {
        client();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&requests);
        let mut answers: VecDeque<Reply> = answers.into_iter().map(Into::into).collect();
        let task = tokio::spawn(async move {
            let mut open = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let reply = answers.pop_front();
                let reply = reply.unwrap_or_else(|| Reply::Whole(String::new()));
                let request = serve_one(&mut stream, &reply).await;
                noted.lock().unwrap().push(request);
                if matches!(reply, Reply::Stalled(_)) {
                    open.push(stream);
                }
            }
        });
        Self {
            url,
            requests,
            task,
        }
    }

    fn model(&self) -> OpenAiResponses {
        OpenAiResponses::new("gpt-x")
            .base_url(&self.url)
            .api_key("secret-key")
    }

    /// The body of one request.
    fn request(&self, at: usize) -> Value {
        self.requests.lock().unwrap()[at].clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers one request and gives its body.
async fn serve_one(stream: &mut TcpStream, reply: &Reply) -> Value {
    let mut bytes = Vec::new();
    let body = loop {
        let mut piece = vec![0; 16 * 1024];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "the request breaks off");
        bytes.extend_from_slice(&piece[..read]);
        let Some(head) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else {
            continue;
        };
        let headers = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
        let length = headers.split("content-length: ").nth(1).unwrap();
        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
        if bytes.len() >= head + 4 + length {
            break bytes[head + 4..].to_vec();
        }
    };
    let (status, media_type, answer) = match reply {
        Reply::Whole(answer) | Reply::Stalled(answer) => {
            ("200 OK", "text/event-stream", answer.clone())
        }
        Reply::Rejected(message) => {
            let error = json!({"error": {"message": message, "type": "invalid_request_error",
                "param": "tools", "code": null}});
            ("400 Bad Request", "application/json", error.to_string())
        }
    };
    let is_stalled = matches!(reply, Reply::Stalled(_));
    let length = answer.len() + usize::from(is_stalled);
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(answer.as_bytes()).await.unwrap();
    if !is_stalled {
        let _ = stream.shutdown().await;
    }
    serde_json::from_slice(&body).unwrap()
}

/// An answer of these items, each with the events between its announcement and its end.
fn answer(items: impl IntoIterator<Item = (Value, Value, Vec<Value>)>) -> String {
    let mut events = vec![json!({"type": "response.created", "response": {"id": "resp_up"}})];
    let mut output = Vec::new();
    for (at, (added, done, own)) in items.into_iter().enumerate() {
        events
            .push(json!({"type": "response.output_item.added", "output_index": at, "item": added}));
        for mut event in own {
            event["output_index"] = at.into();
            event["item_id"] = done["id"].clone();
            events.push(event);
        }
        events.push(json!({"type": "response.output_item.done", "output_index": at, "item": done}));
        output.push(done);
    }
    events.push(json!({"type": "response.completed", "response": {
        "id": "resp_up", "status": "completed", "output": output,
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }}));
    let frames = events.iter().enumerate().map(|(number, event)| {
        let mut event = event.clone();
        event["sequence_number"] = number.into();
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        )
    });
    frames.collect()
}

type Told = (Value, Value, Vec<Value>);

fn own(kinds: &[&str]) -> Vec<Value> {
    kinds.iter().map(|kind| json!({"type": kind})).collect()
}

fn web_search() -> Told {
    let done = json!({"type": "web_search_call", "id": "ws_1", "status": "completed",
        "action": {"type": "search", "query": "fjords", "sources": [{"type": "url", "url": "https://a.example"}]}});
    let added = json!({"type": "web_search_call", "id": "ws_1", "status": "in_progress"});
    let events = own(&[
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
    ]);
    (added, done, events)
}

fn code_interpreter() -> Told {
    let done = json!({"type": "code_interpreter_call", "id": "ci_1", "status": "completed",
        "code": "print(1)", "container_id": "cntr_1", "outputs": [{"type": "logs", "logs": "1\n"}]});
    let added = json!({"type": "code_interpreter_call", "id": "ci_1", "status": "in_progress",
        "code": "", "container_id": "cntr_1", "outputs": null});
    let events = vec![
        json!({"type": "response.code_interpreter_call.in_progress"}),
        json!({"type": "response.code_interpreter_call_code.delta", "delta": "print", "obfuscation": "x"}),
        json!({"type": "response.code_interpreter_call_code.delta", "delta": "(1)"}),
        json!({"type": "response.code_interpreter_call_code.done", "code": "print(1)"}),
        json!({"type": "response.code_interpreter_call.interpreting"}),
        json!({"type": "response.code_interpreter_call.completed"}),
    ];
    (added, done, events)
}

fn message(text: &str, annotations: &Value) -> Told {
    let part =
        json!({"type": "output_text", "text": text, "annotations": annotations, "logprobs": []});
    let done = json!({"type": "message", "id": format!("msg_{}", text.len()), "status": "completed",
        "role": "assistant", "content": [part]});
    let mut added = done.clone();
    added["content"] = json!([]);
    let delta = json!({"type": "response.output_text.delta", "content_index": 0, "delta": text});
    (added, done, vec![delta])
}

fn call(name: &str, arguments: &str) -> Told {
    let done = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name,
        "arguments": arguments, "status": "completed"});
    let mut added = done.clone();
    added["arguments"] = "".into();
    (added, done, Vec::new())
}

/// An item that is announced as it ends.
fn whole(item: Value) -> Told {
    let mut added = item.clone();
    added["status"] = "in_progress".into();
    (added, item, Vec::new())
}

fn setup(upstream: &Upstream) -> Setup {
    Setup::of(upstream.model().hosted_tools(ProviderTools::all()))
}

fn shell_call(id: &str) -> Value {
    json!({"type": "shell_call", "id": format!("sh_{id}"), "call_id": id, "status": "completed",
        "action": {"commands": ["ls"], "timeout_ms": 1000, "max_output_length": null},
        "environment": {"type": "local"}})
}

#[tokio::test]
async fn tools_of_the_provider_work_beside_those_of_this_server() {
    let cited = json!([{"type": "url_citation", "url": "https://a.example", "title": "A",
        "start_index": 0, "end_index": 5}]);
    let upstream = Upstream::start([
        answer([web_search(), call("echo", r#"{"text":"a"}"#)]),
        answer([code_interpreter(), message("Bergen", &cited)]),
        answer([message("again", &json!([]))]),
    ])
    .await;
    let (tool, runs) = echo("echo");
    let served = setup(&upstream).tools([tool]).serve().await;
    let search = json!({"type": "web_search", "search_context_size": "low",
        "filters": {"allowed_domains": ["a.example"]}});
    let code =
        json!({"type": "code_interpreter", "container": {"type": "auto", "memory_limit": "4g"}});
    let body = json!({"input": "Where?", "tools": [search, {"type": "haft:echo"}, code],
        "include": ["web_search_call.action.sources", "code_interpreter_call.outputs",
            "file_search_call.results"],
        "tool_choice": {"type": "web_search"}});
    let events = served.stream(body.clone()).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    let first = upstream.request(0);
    assert_eq!(first["tools"][0], search);
    assert_eq!(first["tools"][1], code);
    assert_eq!(first["tools"][2]["name"], "echo");
    assert_eq!(first["tool_choice"], json!({"type": "web_search"}));
    let included = json!([
        "code_interpreter_call.outputs",
        "web_search_call.action.sources"
    ]);
    assert_eq!(first["include"], included);
    let second = upstream.request(1);
    assert_eq!(second["tools"], first["tools"]);
    assert_eq!(second["tool_choice"], "auto", "the demand is fulfilled");
    assert_eq!(second["input"][1], web_search().1, "as it came");
    assert_eq!(second["input"][2]["type"], "function_call");
    assert_eq!(second["input"][3]["output"], "echo: a");
    let response = last(&events);
    let types = [
        "web_search_call",
        "haft:echo",
        "code_interpreter_call",
        "message",
    ];
    assert_eq!(item_types(response), types);
    assert_eq!(response["output"][0], web_search().1);
    assert_eq!(response["output"][2], code_interpreter().1);
    assert_eq!(response["output"][3]["content"][0]["annotations"], cited);
    let of = |at: usize| -> Vec<&str> {
        let about = events.iter().filter(|event| event["output_index"] == at);
        about.map(|event| event["type"].as_str().unwrap()).collect()
    };
    let expected = [
        "response.output_item.added",
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
        "response.output_item.done",
    ];
    assert_eq!(of(0), expected);
    let code_events: Vec<_> = of(2)[1..7].to_vec();
    let told: Vec<_> = code_interpreter().2;
    assert_eq!(code_events, kinds(&told));
    let delta = events.iter().find(|event| {
        event["type"] == "response.code_interpreter_call_code.delta" && event["delta"] == "print"
    });
    let delta = delta.unwrap();
    assert_eq!(
        (&delta["item_id"], &delta["output_index"]),
        (&json!("ci_1"), &json!(2))
    );
    assert_eq!(delta["obfuscation"], "x", "all members pass");
    assert!(kinds(&events).contains(&"response.output_text.annotation.added"));
    assert_eq!(response["tools"][0], search);
    assert_eq!(response["status"], "completed");

    let stored = served.stored(&response["id"]).await;
    assert_eq!(stored["output"], response["output"]);
    let next =
        json!({"input": "More", "previous_response_id": response["id"], "tools": body["tools"]});
    let next = served.create(next).await;
    let third = upstream.request(2);
    assert_eq!(third["input"][1], web_search().1);
    assert_eq!(third["input"][4], code_interpreter().1);
    assert_eq!(third["input"][5]["content"][0]["annotations"], cited);
    let items = format!(
        "/responses/{}/input_items?order=asc",
        next["id"].as_str().unwrap()
    );
    let items = served.get(&items).await.ok();
    assert_eq!(items["data"][1], web_search().1);
    assert_eq!(items["data"][3], code_interpreter().1);
}

#[tokio::test]
async fn plain_answers_hold_the_items_and_a_stateless_client_sends_them_back() {
    let upstream = Upstream::start([
        answer([web_search(), message("Bergen", &json!([]))]),
        answer([message("again", &json!([]))]),
    ])
    .await;
    let served = setup(&upstream).serve().await;
    let tools = json!([{"type": "web_search_2025_08_26"}]);
    let body = json!({"input": "Where?", "store": false, "tools": tools, "tool_choice": "required",
        "max_tool_calls": 3});
    let response = served.create(body).await;
    assert_eq!(upstream.request(0)["tools"], tools);
    assert_eq!(upstream.request(0)["tool_choice"], "required");
    assert_eq!(upstream.request(0)["max_tool_calls"], 3);
    assert_eq!(item_types(&response), ["web_search_call", "message"]);
    let mut input = vec![json!({"role": "user", "content": "Where?"})];
    input.extend(response["output"].as_array().unwrap().iter().cloned());
    // Some clients drop the ids.
    let mut bare = web_search().1;
    bare.as_object_mut().unwrap().remove("id");
    input.push(bare.clone());
    input.push(json!({"role": "user", "content": "More"}));
    served
        .create(json!({"input": input, "store": false, "tools": tools}))
        .await;
    let second = upstream.request(1);
    assert_eq!(second["input"][1], web_search().1);
    let mut sent: Vec<_> = second["input"][3].as_object().unwrap().keys().collect();
    let mut expected: Vec<_> = bare.as_object().unwrap().keys().collect();
    sent.sort();
    expected.sort();
    assert_eq!(sent, expected, "no id is made up for the provider");
}

#[tokio::test]
async fn calls_that_the_client_executes_end_the_turn_and_wait_for_their_outputs() {
    let diff = vec![
        json!({"type": "response.apply_patch_call_operation_diff.delta", "delta": "+a"}),
        json!({"type": "response.apply_patch_call_operation_diff.done", "diff": "+a"}),
    ];
    let patch = json!({"type": "apply_patch_call", "id": "apc_1", "call_id": "patch", "status": "completed",
        "operation": {"type": "update_file", "path": "a", "diff": "+a"}});
    let mut begun = patch.clone();
    begun["status"] = "in_progress".into();
    let upstream = Upstream::start([
        answer([
            whole(shell_call("ls")),
            call("echo", r#"{"text":"a"}"#),
            (begun, patch.clone(), diff),
        ]),
        answer([message("done", &json!([]))]),
    ])
    .await;
    let (tool, runs) = echo("echo");
    let served = setup(&upstream).tools([tool]).serve().await;
    let tools = json!([{"type": "shell"}, {"type": "apply_patch"}, {"type": "haft:echo"}]);
    let format = json!({"format": {"type": "json_schema", "name": "a", "strict": true,
        "schema": {"type": "object", "properties": {}, "additionalProperties": false, "required": []}}});
    let first = json!({"input": "go", "tools": tools, "text": format});
    let dialect = [("haft-dialect", "open-responses")];
    let events = served.stream_with(first, &dialect).await;
    let response = last(&events);
    assert_eq!(
        item_types(response),
        ["shell_call", "haft:echo", "apply_patch_call"]
    );
    assert_eq!(response["status"], "requires_action");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(upstream.count(), 1, "the turn is over");
    let patched = kinds(&events);
    assert!(patched.contains(&"response.apply_patch_call_operation_diff.delta"));

    let continued = |input: Value| json!({"input": input, "previous_response_id": response["id"], "tools": tools});
    let listed = json!({"type": "shell_call_output", "call_id": "ls", "max_output_length": 100,
        "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]});
    let missing = served.post("/responses", continued(json!([listed]))).await;
    assert_eq!(missing.error(), (400, "missing_tool_output", Some("input")));
    let text = missing.body["error"]["message"].as_str().unwrap();
    assert!(text.contains("`apply_patch_call_output`"), "{text}");
    let orphan = json!({"type": "shell_call_output", "call_id": "nobody", "output": []});
    let orphan = served.post("/responses", continued(json!([orphan]))).await;
    assert_eq!(
        orphan.error(),
        (400, "tool_call_not_found", Some("input[0].call_id"))
    );
    let applied =
        json!({"type": "apply_patch_call_output", "call_id": "patch", "status": "completed"});
    let done = served.create(continued(json!([listed, applied]))).await;
    assert_eq!(done["output"][0]["content"][0]["text"], "done");
    let second = upstream.request(1);
    let sent = second["input"].as_array().unwrap();
    assert!(sent.contains(&shell_call("ls")), "{sent:#?}");
    assert!(sent.contains(&patch), "{sent:#?}");
    assert!(sent.contains(&applied), "{sent:#?}");
    let mut with_status = listed.clone();
    with_status["status"] = "completed".into();
    assert!(sent.contains(&with_status), "{sent:#?}");
}

#[tokio::test]
async fn a_hosted_shell_answers_its_own_calls() {
    let output = json!({"type": "shell_call_output", "id": "sho_1", "call_id": "ls", "status": "completed",
        "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]});
    let upstream = Upstream::start([
        answer([
            whole(shell_call("ls")),
            whole(output),
            message("one file", &json!([])),
        ]),
        answer([message("again", &json!([]))]),
    ])
    .await;
    let served = setup(&upstream).serve().await;
    let secret = json!({"domain": "a.example", "name": "KEY", "value": "hunter2"});
    let tools = json!([{"type": "shell", "environment": {"type": "container_auto",
        "network_policy": {"type": "allowlist", "allowed_domains": ["a.example"], "domain_secrets": [secret]}}}]);
    let response = served.create(json!({"input": "go", "tools": tools})).await;
    assert_eq!(upstream.request(0)["tools"], tools);
    assert!(!response.to_string().contains("hunter2"));
    let types = ["shell_call", "shell_call_output", "message"];
    assert_eq!(item_types(&response), types);
    assert_eq!(response["status"], "completed");
    let next = json!({"input": "more", "previous_response_id": response["id"], "tools": tools});
    served.create(next).await;
    assert_eq!(upstream.request(1)["input"][1], shell_call("ls"));
}

#[tokio::test]
async fn custom_tools_and_namespaces_keep_their_form() {
    let custom = json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "patch", "status": "completed",
        "name": "apply_patch", "input": "*** \"Begin\"\n"});
    let mut begun = custom.clone();
    begun["input"] = "".into();
    begun["status"] = "in_progress".into();
    let deltas = ["*** \"Be", "gin\"\n"];
    let deltas = deltas
        .map(|delta| json!({"type": "response.custom_tool_call_input.delta", "delta": delta}));
    let namespaced = json!({"type": "function_call", "id": "fc_2", "call_id": "find", "status": "completed",
        "namespace": "crm", "name": "find", "arguments": "{}"});
    let upstream = Upstream::start([
        answer([(begun, custom, deltas.to_vec()), whole(namespaced)]),
        answer([message("done", &json!([]))]),
    ])
    .await;
    let served = setup(&upstream).serve().await;
    let patch = json!({"type": "custom", "name": "apply_patch", "description": "Patches.",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}});
    let mut find = function("find");
    find["strict"] = false.into();
    let tools = json!([patch, {"type": "namespace", "name": "crm", "description": "Customers.",
        "tools": [find, function("list")]}, function("plain")]);
    let events = served
        .stream(json!({"input": "go", "tools": tools,
        "tool_choice": {"type": "custom", "name": "apply_patch"}}))
        .await;
    let first = upstream.request(0);
    assert_eq!(first["tools"][0], patch);
    assert_eq!(first["tools"][1]["type"], "namespace");
    assert_eq!(first["tools"][1]["description"], "Customers.");
    let inner = &first["tools"][1]["tools"];
    assert_eq!(
        (&inner[0]["name"], &inner[1]["name"]),
        (&json!("find"), &json!("list"))
    );
    assert_eq!(first["tools"][2]["name"], "plain");
    assert_eq!(
        first["tool_choice"],
        json!({"type": "custom", "name": "apply_patch"})
    );
    let response = last(&events);
    let output = &response["output"];
    assert_eq!(item_types(response), ["custom_tool_call", "function_call"]);
    assert_eq!(output[0]["input"], "*** \"Begin\"\n");
    assert_eq!(
        (&output[1]["name"], &output[1]["namespace"]),
        (&json!("find"), &json!("crm"))
    );
    let pieces = events
        .iter()
        .filter(|it| it["type"] == "response.custom_tool_call_input.delta");
    let pieces: Vec<_> = pieces.map(|it| it["delta"].as_str().unwrap()).collect();
    assert_eq!(pieces, ["*** \"Be", "gin\"\n"], "as it is written");
    served
        .create(
            json!({"previous_response_id": response["id"], "tools": tools, "input": [
            {"type": "custom_tool_call_output", "call_id": "patch", "output": "ok"},
            {"type": "function_call_output", "call_id": "find", "output": "nothing"}]}),
        )
        .await;
    let sent = &upstream.request(1)["input"];
    let expected = json!([
        {"type": "custom_tool_call", "call_id": "patch", "name": "apply_patch", "input": "*** \"Begin\"\n"},
        {"type": "function_call", "call_id": "find", "name": "find", "namespace": "crm", "arguments": "{}"},
        {"type": "custom_tool_call_output", "call_id": "patch", "output": "ok"},
        {"type": "function_call_output", "call_id": "find", "output": "nothing"},
    ]);
    assert_eq!(
        sent.as_array().unwrap()[1..],
        expected.as_array().unwrap()[..]
    );
}

#[tokio::test]
async fn lists_of_allowed_tools_name_those_of_the_provider() {
    let upstream = Upstream::start([
        answer([message("a", &json!([]))]),
        answer([message("b", &json!([]))]),
    ])
    .await;
    let served = setup(&upstream).serve().await;
    let allowed = |tools: Value| {
        json!({"input": "go", "tools": [{"type": "web_search"}, function("find")],
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": tools}})
    };
    let both = json!([{"type": "function", "name": "find"}, {"type": "web_search"}]);
    served.create(allowed(both.clone())).await;
    let sent = &upstream.request(0)["tool_choice"];
    assert_eq!(
        *sent,
        json!({"type": "allowed_tools", "mode": "auto", "tools": both})
    );
    let one = json!([{"type": "web_search"}]);
    served.create(allowed(one.clone())).await;
    let sent = &upstream.request(1)["tool_choice"];
    assert_eq!(
        *sent,
        json!({"type": "allowed_tools", "mode": "auto", "tools": one})
    );
}

#[tokio::test]
async fn a_backend_without_the_ability_behaves_as_before() {
    let upstream = Upstream::start([answer([web_search(), message("a", &json!([]))])]).await;
    let mut setup = Setup::of(upstream.model());
    setup.options.unsupported_tools = UnsupportedTools::WebSearch;
    let served = setup.serve().await;
    let body = json!({"input": "go", "tools": [{"type": "web_search"},
        {"type": "custom", "name": "patch"}]});
    let answer = served.post("/responses", body).await;
    assert_eq!(
        answer.header("haft-warning"),
        Some("ignored tool type web_search")
    );
    assert_eq!(item_types(&answer.ok()), ["message"]);
    let sent = &upstream.request(0)["tools"];
    assert_eq!(
        (&sent[0]["type"], &sent[1]),
        (&json!("function"), &Value::Null)
    );
    let body = json!({"input": "go", "tools": [{"type": "code_interpreter"}]});
    let refused = served.post("/responses", body).await;
    assert_eq!(
        refused.error(),
        (400, "unsupported_tool", Some("tools[0].type"))
    );
}

#[tokio::test]
async fn a_pool_passes_on_only_what_all_of_it_take() {
    let near = Upstream::start([answer([message("a", &json!([]))])]).await;
    let far = Upstream::start(Vec::<String>::new()).await;
    let member = |name: &str, model: OpenAiResponses| {
        let model: Arc<dyn haft_core::Model> = Arc::new(model);
        Arc::new(Member::new(name, haft_models::Backend::from(model)))
    };
    let types = |types: &[&str]| types.iter().copied().collect::<ProviderTools>();
    let near_model = near
        .model()
        .hosted_tools(types(&["web_search", "code_interpreter"]));
    let far_model = far.model().hosted_tools(types(&["web_search"]));
    let pool = Pool::new(member("near", near_model), [member("far", far_model)]);
    let mut setup = setup(&near);
    setup.models = vec![ModelEntry::from_pool("default", [], pool)];
    let served = setup.serve().await;
    served
        .create(json!({"input": "go", "tools": [{"type": "web_search"}]}))
        .await;
    assert_eq!(near.request(0)["tools"], json!([{"type": "web_search"}]));
    let body = json!({"input": "go", "tools": [{"type": "code_interpreter"}]});
    let refused = served.post("/responses", body).await;
    assert_eq!(
        refused.error(),
        (400, "unsupported_tool", Some("tools[0].type"))
    );
}

#[tokio::test]
async fn text_beside_a_call_of_the_provider_is_not_shown_where_a_schema_is_strict() {
    let items = || [message("Let me see.", &json!([])), whole(shell_call("ls"))];
    let upstream = Upstream::start([answer(items()), answer(items())]).await;
    let served = setup(&upstream).serve().await;
    for (is_strict, expected) in [
        (true, &["shell_call"][..]),
        (false, &["message", "shell_call"]),
    ] {
        let format = json!({"format": {"type": "json_schema", "name": "a", "strict": is_strict,
            "schema": {"type": "object", "properties": {}, "additionalProperties": false, "required": []}}});
        let body = json!({"input": "go", "tools": [{"type": "shell"}], "text": format});
        assert_eq!(item_types(&served.create(body).await), expected);
    }
}

#[tokio::test]
async fn private_addresses_never_reach_the_provider() {
    let upstream = Upstream::start([answer([message("a", &json!([]))])]).await;
    let served = setup(&upstream).serve().await;
    let asking = |url: &str| {
        json!({"input": [{"role": "user", "content": [
            {"type": "input_file", "filename": "a.pdf", "file_url": url}]}]})
    };
    for url in [
        "file:///etc/passwd",
        "http://169.254.169.254/latest",
        "https://10.0.0.1/a.pdf",
    ] {
        let refused = served.post("/responses", asking(url)).await;
        let param = Some("input[0].content[0].file_url");
        assert_eq!(refused.error(), (400, "invalid_value", param), "{url}");
        assert!(!refused.body.to_string().contains("passwd"));
    }
    let image = json!({"input": [{"role": "user", "content": [
        {"type": "input_image", "image_url": "https://192.168.0.1/a.png"}]}]});
    let refused = served.post("/responses", image).await;
    assert_eq!(refused.error().0, 400);
    assert_eq!(upstream.count(), 0);
    served.create(asking("https://example.com/a.pdf")).await;
    let sent = &upstream.request(0)["input"][0]["content"][0];
    assert_eq!(sent["file_url"], "https://example.com/a.pdf");

    let upstream = Upstream::start([answer([message("a", &json!([]))])]).await;
    let served = setup(&upstream)
        .options(|options| options.content_hosts = vec!["https://10.0.0.1".into()])
        .serve()
        .await;
    served.create(asking("https://10.0.0.1/a.pdf")).await;
}

/// The tools of the provider that the tests below use.
fn provider_tools() -> Value {
    json!([{"type": "web_search"}, {"type": "code_interpreter", "container": {"type": "auto"}}])
}

/// The items that a request sent to the provider, without messages of the user.
fn sent_back(request: &Value) -> Vec<Value> {
    let input = request["input"].as_array().unwrap().iter();
    input.filter(|it| it["role"] != "user").cloned().collect()
}

#[tokio::test]
async fn a_conversation_keeps_items_of_the_provider_and_sends_them_back() {
    let directory = tempfile::tempdir().unwrap();
    let upstream = Upstream::start([
        answer([
            web_search(),
            code_interpreter(),
            message("Bergen", &json!([])),
        ]),
        answer([message("again", &json!([]))]),
        answer([message("after a restart", &json!([]))]),
    ])
    .await;
    let expected = [web_search().1, code_interpreter().1];
    let served = setup(&upstream).on_disk(directory.path()).serve().await;
    let conversation = served.post("/conversations", json!({})).await.ok();
    let conversation = conversation["id"].as_str().unwrap().to_owned();
    let body = |input: &str| json!({"input": input, "tools": provider_tools(), "conversation": conversation});
    let first = served.create(body("Where?")).await;
    assert_eq!(first["output"].as_array().unwrap()[..2], expected);

    let path = format!("/conversations/{conversation}/items?order=asc");
    let items = served.get(&path).await.ok();
    assert_eq!(items["data"].as_array().unwrap()[1..3], expected);
    for item in &expected {
        let id = item["id"].as_str().unwrap();
        let path = format!("/conversations/{conversation}/items/{id}");
        assert_eq!(served.get(&path).await.ok(), *item);
    }
    served.create(body("More")).await;
    let second = sent_back(&upstream.request(1));
    assert_eq!(second[..2], expected, "as they came");
    assert_eq!(second[2]["content"][0]["text"], "Bergen");
    assert_eq!(second.len(), 3);
    served.stop().await;

    // The conversation is read from the file.
    let served = setup(&upstream).on_disk(directory.path()).serve().await;
    served.create(body("Once more")).await;
    let third = sent_back(&upstream.request(2));
    assert_eq!(third[..3], second);
    assert_eq!(third[3]["content"][0]["text"], "again");
}

/// The beginning of an answer, up to and with the first event that has this text.
fn up_to(answer: &str, text: &str) -> String {
    let at = answer.find(text).unwrap();
    let end = answer[at..].find("\n\n").unwrap();
    answer[..at + end + 2].to_owned()
}

/// A code interpreter call with another id.
fn another_code_interpreter() -> Told {
    let (mut added, mut done, events) = code_interpreter();
    added["id"] = "ci_2".into();
    done["id"] = "ci_2".into();
    (added, done, events)
}

#[tokio::test]
async fn a_background_run_that_was_killed_keeps_items_of_the_provider() {
    // The process dies in the middle of an item of the provider, and behind one.
    for (text, kind, is_whole) in [
        (
            "code_interpreter_call.interpreting",
            "response.code_interpreter_call.interpreting",
            false,
        ),
        ("never", "response.output_text.delta", true),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let cut = answer([code_interpreter(), message("never", &json!([]))]);
        let first = answer([web_search(), call("echo", r#"{"text":"a"}"#)]);
        let cut = Reply::Stalled(up_to(&cut, text));
        let upstream = Upstream::start([first.into(), cut]).await;
        let serve = async |upstream: &Upstream, directory: &Path| {
            let (tool, runs) = echo("echo");
            let setup = setup(upstream).tools([tool]).on_disk(directory);
            (setup.serve().await, runs)
        };
        let (served, _) = serve(&upstream, directory.path()).await;
        let mut tools = provider_tools();
        let own = json!({"type": "haft:echo"});
        tools.as_array_mut().unwrap().push(own);
        let body = json!({"input": "Where?", "tools": tools, "background": true, "stream": true});
        let (id, told) = told_up_to(&served, &body, kind).await;
        let copy = remains(directory.path());

        let last = message("Bergen", &json!([]));
        let upstream = Upstream::start([
            answer([another_code_interpreter(), last]),
            answer([message("again", &json!([]))]),
        ])
        .await;
        let (served, runs) = serve(&upstream, copy.path()).await;
        let done = served.settled(&json!(id)).await;
        assert_eq!(done["status"], "completed", "{done:#}");
        assert_eq!(runs.load(Ordering::SeqCst), 0, "its result was stored");
        let resumed = upstream.request(0);
        let sent_tools = resumed["tools"].as_array().unwrap();
        assert_eq!(sent_tools[..2], provider_tools().as_array().unwrap()[..]);
        let resumed = sent_back(&resumed);
        assert_eq!(resumed[0], web_search().1, "as it came");
        assert_eq!(resumed[1]["type"], "function_call");
        assert_eq!(resumed[2]["output"], "echo: a");
        assert_eq!(resumed.len(), 3, "the turn is repeated: {resumed:#?}");

        let log = crate::state::replay(&served, &id, "").await;
        crate::legal::assert_legal(&log);
        assert_eq!(log[..told.len()], *told);
        let output = done["output"].as_array().unwrap();
        assert_eq!(output[0], web_search().1);
        assert_eq!(output[1]["type"], "haft:echo");
        // What was streamed stays: an item that was whole as it was, another as a failed one.
        assert_eq!(output[2]["id"], "ci_1");
        if is_whole {
            assert_eq!(output[2], code_interpreter().1);
        } else {
            assert_eq!(output[2]["status"], "failed");
        }
        let at = output.len() - 2;
        assert_eq!(output[at], another_code_interpreter().1);
        assert_eq!(output[at + 1]["content"][0]["text"], "Bergen");

        let next = json!({"input": "More", "previous_response_id": id, "tools": tools});
        served.create(next).await;
        let next = sent_back(&upstream.request(1));
        assert_eq!(next[..3], resumed);
        assert_eq!(next[3], output[2]);
        assert_eq!(next[next.len() - 2], another_code_interpreter().1);
    }
}

/// The warnings about tool types that the backend does not support.
fn rejection_lines(log: &Log) -> Vec<String> {
    let text = log.text();
    let lines = text
        .lines()
        .filter(|it| it.contains("does not support the hosted tool type"));
    lines.map(str::to_owned).collect()
}

#[tokio::test]
async fn rejected_tool_type_is_unsupported_from_then_on() {
    let log = Log::of("warn");
    let rejection = "Hosted tool 'code_interpreter' is not supported with gpt-x.";
    let upstream = Upstream::start([
        Reply::Rejected(rejection),
        answer([message("a", &json!([]))]).into(),
        Reply::Rejected("Unsupported tool type: 'web_search'"),
        answer([message("b", &json!([]))]).into(),
    ])
    .await;
    let mut setup = setup(&upstream);
    setup.options.unsupported_tools = UnsupportedTools::WebSearch;
    let served = setup.serve().await;
    let body = |tools: Value| json!({"input": "go", "tools": tools});
    let code = body(json!([{"type": "web_search"}, {"type": "code_interpreter"}]));
    let first = served.post("/responses", code.clone()).await;
    assert_eq!(first.error(), (400, "unsupported_tool", Some("tools")));
    let lines = rejection_lines(&log);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    for part in [
        " WARN ",
        "`code_interpreter`",
        &upstream.url,
        "`hosted_tools`",
        "gpt-x",
    ] {
        assert!(lines[0].contains(part), "no {part}: {}", lines[0]);
    }
    // The second one does not reach the backend.
    let second = served.post("/responses", code).await;
    let expected = (400, "unsupported_tool", Some("tools[1].type"));
    assert_eq!(second.error(), expected);
    assert_eq!(upstream.count(), 1);
    // Other types still do, until they are rejected as well.
    let search = body(json!([{"type": "web_search"}]));
    served.create(search.clone()).await;
    assert_eq!(upstream.request(1)["tools"], search["tools"]);
    let rejected = served.post("/responses", search.clone()).await;
    assert_eq!(rejected.error(), (400, "unsupported_tool", Some("tools")));
    let ignored = served.post("/responses", search).await;
    let warning = ignored.header("haft-warning").map(str::to_owned);
    assert_eq!(warning.as_deref(), Some("ignored tool type web_search"));
    ignored.ok();
    assert_eq!(upstream.request(3)["tools"], Value::Null);
    assert_eq!(rejection_lines(&log).len(), 2, "each once");
}

#[tokio::test]
async fn rejected_custom_tool_is_lowered_to_a_function_from_then_on() {
    let upstream = Upstream::start([
        Reply::Rejected("'type' of tool must be 'function'"),
        answer([message("a", &json!([]))]).into(),
    ])
    .await;
    let served = setup(&upstream).serve().await;
    let body = json!({"input": "go", "tools": [{"type": "custom", "name": "patch"}]});
    let rejected = served.post("/responses", body.clone()).await;
    assert_eq!(rejected.error(), (400, "unsupported_tool", Some("tools")));
    assert_eq!(upstream.request(0)["tools"][0]["type"], "custom");
    served.create(body).await;
    assert_eq!(upstream.request(1)["tools"][0]["type"], "function");
}

#[tokio::test]
async fn other_rejections_switch_no_tool_off() {
    let log = Log::of("warn");
    let quoted = "cannot read `Unsupported tool type: web_search`";
    let upstream = Upstream::start([
        Reply::Rejected("Invalid `user_location` of tool `web_search`"),
        Reply::Rejected(quoted),
        answer([message("a", &json!([]))]).into(),
    ])
    .await;
    let served = setup(&upstream).serve().await;
    let body = |input: &str| json!({"input": input, "tools": [{"type": "web_search"}]});
    // A client that makes the server repeat its own words changes nothing for others.
    for input in ["go", "Unsupported tool type: web_search"] {
        let rejected = served.post("/responses", body(input)).await;
        assert_eq!(rejected.error().1, "invalid_value", "{input}");
    }
    served.create(body("go")).await;
    assert_eq!(upstream.request(2)["tools"], body("go")["tools"]);
    assert!(rejection_lines(&log).is_empty());
}

#[tokio::test]
async fn items_of_tools_that_the_request_does_not_declare_never_reach_the_client() {
    let calls = [
        shell_call("c_1"),
        json!({"type": "local_shell_call", "id": "lsh_1", "call_id": "c_1", "status": "completed",
            "action": {"type": "exec", "command": ["rm", "-rf", "/"], "env": {}}}),
        json!({"type": "apply_patch_call", "id": "ap_1", "call_id": "c_1", "status": "completed",
            "operation": {"type": "delete_file", "path": "/etc/passwd"}}),
        json!({"type": "computer_call", "id": "cu_1", "call_id": "c_1", "status": "completed",
            "action": {"type": "screenshot"}, "pending_safety_checks": []}),
    ];
    for call in calls {
        for hosted_tools in [ProviderTools::all(), ["web_search"].into_iter().collect()] {
            let done = answer([web_search(), whole(call.clone()), message("hi", &json!([]))]);
            let upstream = Upstream::start([done.clone(), done]).await;
            let model = upstream.model().hosted_tools(hosted_tools);
            let served = Setup::of(model).serve().await;
            let request = json!({"input": "go", "tools": [{"type": "web_search"}]});
            let events = served.stream(request.clone()).await;
            for response in [last(&events).clone(), served.create(request).await] {
                assert_eq!(item_types(&response), ["web_search_call", "message"]);
                assert_eq!(response["status"], "completed");
            }
            let told = format!("{events:?}");
            assert!(!told.contains("c_1"), "{told}");
        }
    }
}

#[tokio::test]
async fn members_that_only_haft_writes_are_not_taken_from_the_provider() {
    let (mut added, mut done, mut events) = web_search();
    for json in [&mut added, &mut done, &mut events[0]] {
        json["provenance"] = json!({"source": {}});
        json["wire_field"] = "role".into();
        json["haft"] = 1.into();
        json["haft_wire_id"] = "x".into();
    }
    let answer = answer([(added, done, events), message("hi", &json!([]))]);
    let upstream = Upstream::start([answer]).await;
    let served = setup(&upstream).serve().await;
    let request = json!({"input": "go", "tools": [{"type": "web_search"}]});
    let events = served.stream(request).await;
    assert_eq!(item_types(last(&events)), ["web_search_call", "message"]);
    let told = Value::from(events).to_string();
    for member in ["\"provenance\"", "\"wire_field\"", "\"haft"] {
        assert!(!told.contains(member), "{told}");
    }
}
