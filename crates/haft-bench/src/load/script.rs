//! What the backend says: the bytes of every answer that it can give, made once but for their ids.

use serde_json::{Value, json};

/// In how many pieces an answer is streamed.
const PIECES: usize = 24;

/// The tool that a two-turn request has called, and what with.
pub(crate) const TOOL: &str = "calculate";
pub(crate) const ARGUMENTS: &str = r#"{"expression":"6 * 7"}"#;
pub(crate) const CALL_ID: &str = "call_load";

/// Models that requests may name, beside any other.
pub(crate) const TRICKLING: &str = "trickle";
pub(crate) const STALLING: &str = "stall";

/// When everything of the script was made.
const CREATED: u64 = 1_790_000_000;

/// What the answer says in the end.
pub(crate) fn answer_text() -> String {
    pieces().concat()
}

fn pieces() -> Vec<String> {
    let pieces = (0..PIECES).map(|piece| match piece {
        0 => String::from("Oslo"),
        _ => format!(" word{piece}"),
    });
    pieces.collect()
}

/// How an answer leaves.
#[derive(Clone, Copy)]
pub(crate) enum Answer<'s> {
    /// At once.
    Whole(&'s Template),
    /// Each event by itself.
    Pieces(&'s [Template]),
    /// Its beginning, and then nothing.
    Stalled(&'s Template),
}

/// What stands for the number of an answer, which its ids end in: no two are the same.
const NUMBER: &str = "0000000000000000";

/// Bytes with places for the number.
pub(crate) struct Template {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

impl Template {
    fn new(bytes: Vec<u8>) -> Self {
        let places = memchr::memmem::find_iter(&bytes, NUMBER).collect();
        Self { bytes, places }
    }

    /// The bytes with this number, in a buffer that is used again.
    pub(crate) fn fill<'b>(&self, number: u64, buffer: &'b mut Vec<u8>) -> &'b [u8] {
        buffer.clear();
        buffer.extend_from_slice(&self.bytes);
        if !self.places.is_empty() {
            let number = format!("{number:016}");
            for &place in &self.places {
                buffer[place..place + NUMBER.len()].copy_from_slice(number.as_bytes());
            }
        }
        buffer
    }
}

/// All answers.
pub(crate) struct Script {
    responses: Api,
    chat: Api,
    models: Template,
    unknown: Template,
}

/// The answers in the form of one API.
struct Api {
    answer: Forms,
    call: Forms,
}

/// One answer in its forms.
struct Forms {
    plain: Template,
    streamed: Template,
    events: Vec<Template>,
}

impl Script {
    pub(crate) fn new() -> Self {
        let models = json!({"object": "list", "data": [
            {"id": "m", "object": "model", "created": CREATED, "owned_by": "script"},
        ]});
        let unknown = json!({"error": {"message": "there is nothing here", "type": "not_found"}});
        Self {
            responses: Api {
                answer: responses(&Said::Text),
                call: responses(&Said::Call),
            },
            chat: Api {
                answer: chat(&Said::Text),
                call: chat(&Said::Call),
            },
            models: plain("200 OK", &models),
            unknown: plain("404 Not Found", &unknown),
        }
    }

    /// The answer to a request, by its first line and its body.
    pub(crate) fn answer(&self, line: &str, body: &[u8]) -> Answer<'_> {
        let path = line.split(' ').nth(1).unwrap_or_default();
        let api = match path {
            "/v1/responses" => &self.responses,
            "/v1/chat/completions" => &self.chat,
            "/v1/models" | "/health" => return Answer::Whole(&self.models),
            _ => return Answer::Whole(&self.unknown),
        };
        let has = |text: &str| memchr::memmem::find(body, text.as_bytes()).is_some();
        let is_second = has(r#""function_call_output""#) || has(r#""tool_call_id""#);
        let forms = if has(r#""tools":[{"#) && !is_second {
            &api.call
        } else {
            &api.answer
        };
        if !has(r#""stream":true"#) {
            Answer::Whole(&forms.plain)
        } else if has(TRICKLING) {
            Answer::Pieces(&forms.events)
        } else if has(STALLING) {
            Answer::Stalled(&forms.events[0])
        } else {
            Answer::Whole(&forms.streamed)
        }
    }
}

/// What an answer says.
enum Said {
    Text,
    Call,
}

impl Forms {
    fn new(whole: &Value, frames: &[String]) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
            cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
        let mut events: Vec<Vec<u8>> = frames.iter().map(|frame| chunk(frame)).collect();
        events[0].splice(0..0, head.bytes());
        if let Some(last) = events.last_mut() {
            last.extend_from_slice(b"0\r\n\r\n");
        }
        Self {
            plain: plain("200 OK", whole),
            streamed: Template::new(events.concat()),
            events: events.into_iter().map(Template::new).collect(),
        }
    }
}

fn plain(status: &str, body: &Value) -> Template {
    let body = body.to_string();
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    Template::new(answer.into_bytes())
}

fn id(prefix: &str) -> String {
    format!("{prefix}_{NUMBER}")
}

fn chunk(frame: &str) -> Vec<u8> {
    format!("{:x}\r\n{frame}\r\n", frame.len()).into_bytes()
}

fn responses(said: &Said) -> Forms {
    let (begun, item) = match said {
        Said::Text => {
            let part = json!({"type": "output_text", "text": answer_text(), "annotations": [], "logprobs": []});
            let item = |status: &str, content: Value| json!({"id": id("msg"), "type": "message", "role": "assistant", "status": status, "content": content});
            (
                item("in_progress", json!([])),
                item("completed", json!([part])),
            )
        }
        Said::Call => {
            let item = |status: &str, arguments: &str| json!({"id": id("fc"), "type": "function_call", "call_id": CALL_ID, "name": TOOL, "arguments": arguments, "status": status});
            (item("in_progress", ""), item("completed", ARGUMENTS))
        }
    };
    let mut writer = Writer::default();
    let created = json!({"response": resource("in_progress", &json!([]))});
    writer.tell("response.created", created.clone());
    writer.tell("response.in_progress", created);
    writer.tell(
        "response.output_item.added",
        json!({"output_index": 0, "item": begun}),
    );
    match said {
        Said::Text => {
            let at = |members: Value| {
                let mut at = json!({"item_id": id("msg"), "output_index": 0, "content_index": 0});
                merge(&mut at, members);
                at
            };
            let part =
                json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []});
            writer.tell("response.content_part.added", at(json!({"part": part})));
            for piece in pieces() {
                let delta = at(json!({"delta": piece, "logprobs": []}));
                writer.tell("response.output_text.delta", delta);
            }
            let text = json!({"text": answer_text(), "logprobs": []});
            writer.tell("response.output_text.done", at(text));
            let part = json!({"part": item["content"][0]});
            writer.tell("response.content_part.done", at(part));
        }
        Said::Call => {
            let at = json!({"item_id": id("fc"), "output_index": 0});
            let (first, second) = ARGUMENTS.split_at(ARGUMENTS.len() / 2);
            for (name, member, text) in [
                ("response.function_call_arguments.delta", "delta", first),
                ("response.function_call_arguments.delta", "delta", second),
                (
                    "response.function_call_arguments.done",
                    "arguments",
                    ARGUMENTS,
                ),
            ] {
                let mut event = at.clone();
                event[member] = text.into();
                writer.tell(name, event);
            }
        }
    }
    writer.tell(
        "response.output_item.done",
        json!({"output_index": 0, "item": item}),
    );
    let whole = resource("completed", &json!([item]));
    writer.tell("response.completed", json!({"response": whole}));
    writer.frames.push("data: [DONE]\n\n".to_owned());
    Forms::new(&whole, &writer.frames)
}

/// Numbers and frames events.
#[derive(Default)]
struct Writer {
    frames: Vec<String>,
}

impl Writer {
    fn tell(&mut self, name: &str, members: Value) {
        let mut event = json!({"type": name, "sequence_number": self.frames.len()});
        merge(&mut event, members);
        self.frames
            .push(format!("event: {name}\ndata: {event}\n\n"));
    }
}

fn merge(object: &mut Value, members: Value) {
    if let (Value::Object(object), Value::Object(members)) = (object, members) {
        object.extend(members);
    }
}

/// A response as servers of open models write it.
fn resource(status: &str, output: &Value) -> Value {
    let usage = json!({
        "input_tokens": 31, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 25, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 56,
    });
    let is_over = status == "completed";
    json!({
        "id": id("resp"), "object": "response", "created_at": CREATED, "status": status,
        "completed_at": if is_over { json!(CREATED) } else { Value::Null },
        "background": false, "error": null, "incomplete_details": null, "instructions": null,
        "max_output_tokens": null, "max_tool_calls": null, "metadata": {}, "model": "m",
        "output": output, "parallel_tool_calls": true, "previous_response_id": null,
        "prompt_cache_key": null, "reasoning": {"effort": null, "summary": null},
        "safety_identifier": null, "service_tier": "auto", "store": false, "temperature": 1.0,
        "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [],
        "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled",
        "usage": if is_over { usage } else { Value::Null },
        "presence_penalty": 0.0, "frequency_penalty": 0.0,
    })
}

fn chat(said: &Said) -> Forms {
    let envelope = |object: &str, choices: Value, usage: Value| json!({"id": id("chatcmpl"), "object": object, "created": CREATED, "model": "m", "choices": choices, "usage": usage});
    let usage = json!({"prompt_tokens": 31, "completion_tokens": 25, "total_tokens": 56});
    let function = json!({"name": TOOL, "arguments": ARGUMENTS});
    let (message, deltas, finish) = match said {
        Said::Text => {
            let message = json!({"role": "assistant", "content": answer_text()});
            let deltas = pieces().into_iter().map(|piece| json!({"content": piece}));
            (message, deltas.collect::<Vec<_>>(), "stop")
        }
        Said::Call => {
            let mut call = json!({"id": CALL_ID, "type": "function", "function": function});
            let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
            call["index"] = 0.into();
            (message, vec![json!({"tool_calls": [call]})], "tool_calls")
        }
    };
    let choice =
        json!([{"index": 0, "message": message, "finish_reason": finish, "logprobs": null}]);
    let whole = envelope("chat.completion", choice, usage.clone());
    let choices = |delta: &Value, finish: Value| json!([{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": null}]);
    let first = json!({"role": "assistant", "content": ""});
    let chunks = std::iter::once(&first).chain(&deltas);
    let mut chunks: Vec<Value> = chunks
        .map(|delta| choices(delta, Value::Null))
        .chain([choices(&json!({}), finish.into())])
        .map(|choices| envelope("chat.completion.chunk", choices, Value::Null))
        .collect();
    chunks.push(envelope("chat.completion.chunk", json!([]), usage));
    let mut frames: Vec<String> = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    frames.push("data: [DONE]\n\n".to_owned());
    Forms::new(&whole, &frames)
}
