//! Answers of the Responses API: every item with all its events, numbered through
//! (`open-responses.md` §3.4, the `OpenAI` dialect).

use haft_core::{ContentPart, FinishReason, FunctionCall, Item, Message, Reasoning, Usage};
use serde_json::{Value, json};

use super::{CREATED, Rendered, named_event, typed};

pub(super) fn events(rendered: &Rendered<'_>) -> Vec<String> {
    let mut writer = Writer {
        rendered,
        events: Vec::new(),
    };
    let begun = json!({"response": resource(rendered, "in_progress", &[])});
    writer.tell("response.created", begun.clone());
    writer.tell("response.in_progress", begun);
    for (index, item) in rendered.answer.items.iter().enumerate() {
        writer.item(index, item);
    }
    let last = whole(rendered);
    let name = match last["status"].as_str() {
        Some("incomplete") => "response.incomplete",
        Some("failed") => "response.failed",
        _ => "response.completed",
    };
    writer.tell(name, json!({"response": last}));
    writer.events.push("data: [DONE]\n\n".to_owned());
    writer.events
}

pub(super) fn whole(rendered: &Rendered<'_>) -> Value {
    let items = rendered.answer.items.iter().enumerate();
    let output = items.map(|(index, item)| item_json(rendered, index, item));
    let mut body = resource(rendered, status(rendered), &output.collect::<Vec<_>>());
    if body["status"] == "completed" {
        body["completed_at"] = CREATED.into();
    }
    let reason = match rendered.answer.finish {
        FinishReason::Length => Some("max_output_tokens"),
        FinishReason::ContentFilter => Some("content_filter"),
        _ => None,
    };
    if let Some(reason) = reason {
        body["incomplete_details"] = json!({"reason": reason});
    }
    if rendered.answer.finish == FinishReason::Error {
        body["error"] = json!({"code": "server_error", "message": "the script says so"});
    }
    body["usage"] = rendered
        .answer
        .usage
        .as_ref()
        .map_or(Value::Null, usage_json);
    body
}

/// The `error` event, the failed response and the end of the stream.
pub(super) fn error_events(
    rendered: &Rendered<'_>,
    after: usize,
    code: Option<&str>,
    message: &str,
) -> String {
    let code = code.unwrap_or("server_error");
    let error = json!({
        "sequence_number": after, "code": code, "message": message, "param": null,
    });
    let mut failed = resource(rendered, "failed", &[]);
    failed["error"] = json!({"code": code, "message": message});
    let failed = json!({"sequence_number": after + 1, "response": failed});
    [
        named_event("error", &typed("error", error)),
        named_event("response.failed", &typed("response.failed", failed)),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat()
}

/// Numbers and frames events.
struct Writer<'a> {
    rendered: &'a Rendered<'a>,
    events: Vec<String>,
}

impl Writer<'_> {
    fn tell(&mut self, name: &str, members: Value) {
        let mut data = typed(name, json!({"sequence_number": self.events.len()}));
        if let (Value::Object(data), Value::Object(members)) = (&mut data, members) {
            data.extend(members);
        }
        self.events.push(named_event(name, &data));
    }

    fn item(&mut self, index: usize, item: &Item) {
        let done = item_json(self.rendered, index, item);
        let mut added = done.clone();
        added["status"] = "in_progress".into();
        for (member, empty) in [
            ("content", json!([])),
            ("summary", json!([])),
            ("arguments", json!("")),
        ] {
            let begun = added
                .get_mut(member)
                .filter(|it| it.is_string() == empty.is_string());
            if let Some(value) = begun {
                *value = empty;
            }
        }
        if let (Item::Reasoning(_), Some(members)) = (item, added.as_object_mut()) {
            members.shift_remove("content");
        }
        let at = json!({"item_id": done["id"], "output_index": index});
        self.tell(
            "response.output_item.added",
            json!({"output_index": index, "item": added}),
        );
        match item {
            Item::Message(message) => self.message(&at, message),
            Item::Reasoning(reasoning) => self.reasoning(&at, reasoning),
            Item::FunctionCall(call) => self.arguments(&at, call),
            _ => {}
        }
        self.tell(
            "response.output_item.done",
            json!({"output_index": index, "item": done}),
        );
    }

    fn message(&mut self, at: &Value, message: &Message) {
        for (index, part) in message.content.iter().enumerate() {
            let at = with(at, "content_index", index.into());
            match part {
                ContentPart::Refusal { refusal } => {
                    let names = ("response.refusal", "refusal");
                    self.part(
                        &at,
                        names,
                        refusal,
                        |text| json!({"type": "refusal", "refusal": text}),
                    );
                }
                part => {
                    let text = part.text().unwrap_or("");
                    self.output_text(&at, text, &logprobs_of(part));
                }
            }
        }
    }

    /// How likely the tokens are is told with the first piece.
    fn output_text(&mut self, at: &Value, text: &str, logprobs: &Value) {
        let part = |text: &str, logprobs: &Value| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs});
        self.tell(
            "response.content_part.added",
            with(at, "part", part("", &json!([]))),
        );
        for (place, piece) in self.rendered.pieces(text).into_iter().enumerate() {
            let told = if place == 0 {
                logprobs.clone()
            } else {
                json!([])
            };
            let delta = with(&with(at, "logprobs", told), "delta", piece.into());
            self.tell("response.output_text.delta", delta);
        }
        let done = with(&with(at, "logprobs", logprobs.clone()), "text", text.into());
        self.tell("response.output_text.done", done);
        self.tell(
            "response.content_part.done",
            with(at, "part", part(text, logprobs)),
        );
    }

    fn reasoning(&mut self, at: &Value, reasoning: &Reasoning) {
        for (index, part) in reasoning.summary.iter().enumerate() {
            let at = with(at, "summary_index", index.into());
            let text = part.text().unwrap_or("");
            let part = |text: &str| json!({"type": "summary_text", "text": text});
            self.tell(
                "response.reasoning_summary_part.added",
                with(&at, "part", part("")),
            );
            self.text(&at, ("response.reasoning_summary_text", "text"), text);
            self.tell(
                "response.reasoning_summary_part.done",
                with(&at, "part", part(text)),
            );
        }
        for (index, part) in reasoning.content.iter().enumerate() {
            let at = with(at, "content_index", index.into());
            let text = part.text().unwrap_or("");
            self.part(
                &at,
                ("response.reasoning_text", "text"),
                text,
                |text| json!({"type": "reasoning_text", "text": text}),
            );
        }
    }

    fn arguments(&mut self, at: &Value, call: &FunctionCall) {
        let whole = self.rendered.arguments(&call.arguments);
        if whole.is_string() {
            for piece in self.rendered.pieces(&call.arguments) {
                let delta = with(at, "delta", piece.into());
                self.tell("response.function_call_arguments.delta", delta);
            }
        }
        self.tell(
            "response.function_call_arguments.done",
            with(at, "arguments", whole),
        );
    }

    /// A content part with its text in pieces. The names are of the events and of the whole text.
    fn part(&mut self, at: &Value, names: (&str, &str), text: &str, part: impl Fn(&str) -> Value) {
        self.tell("response.content_part.added", with(at, "part", part("")));
        self.text(at, names, text);
        self.tell("response.content_part.done", with(at, "part", part(text)));
    }

    fn text(&mut self, at: &Value, (events, member): (&str, &str), text: &str) {
        for piece in self.rendered.pieces(text) {
            let delta = with(at, "delta", piece.into());
            self.tell(&format!("{events}.delta"), delta);
        }
        self.tell(&format!("{events}.done"), with(at, member, text.into()));
    }
}

fn with(object: &Value, member: &str, value: Value) -> Value {
    let mut object = object.clone();
    object[member] = value;
    object
}

/// How likely the tokens of a text are, as the script says.
pub(super) fn logprobs_of(part: &ContentPart) -> Value {
    match part {
        ContentPart::OutputText { extra, .. } => extra.get("logprobs").cloned(),
        _ => None,
    }
    .unwrap_or_else(|| json!([]))
}

/// An item as it is when it is done.
fn item_json(rendered: &Rendered<'_>, index: usize, item: &Item) -> Value {
    let mut json = serde_json::to_value(item).unwrap_or(Value::Null);
    let prefix = match item {
        Item::Message(_) => "msg",
        Item::FunctionCall(_) => "fc",
        Item::FunctionCallOutput(_) => "fco",
        Item::Reasoning(_) => "rs",
        _ => "item",
    };
    if json.get("id").is_none() {
        json["id"] = format!("{prefix}_script_{}_{index}", rendered.answer.number).into();
    }
    if json.get("status").is_none() {
        let is_last = index + 1 == rendered.answer.items.len();
        let is_cut = is_last && status(rendered) == "incomplete";
        json["status"] = if is_cut { "incomplete" } else { "completed" }.into();
    }
    for part in json
        .get_mut("content")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if part["type"] == "output_text" && part.get("logprobs").is_none() {
            part["logprobs"] = json!([]);
        }
    }
    if let Item::FunctionCall(call) = item {
        json["arguments"] = rendered.arguments(&call.arguments);
        if let (true, Some(members)) = (call.call_id.is_empty(), json.as_object_mut()) {
            members.shift_remove("call_id");
        }
    }
    json
}

fn status(rendered: &Rendered<'_>) -> &'static str {
    match rendered.answer.finish {
        FinishReason::Length | FinishReason::ContentFilter => "incomplete",
        FinishReason::Error => "failed",
        _ => "completed",
    }
}

/// The response itself, with what the request said.
fn resource(rendered: &Rendered<'_>, status: &str, output: &[Value]) -> Value {
    let said = |member: &str, usual: Value| {
        let said = rendered.request.get(member).filter(|it| !it.is_null());
        said.cloned().unwrap_or(usual)
    };
    json!({
        "id": format!("resp_script_{}", rendered.answer.number),
        "object": "response",
        "created_at": CREATED,
        "completed_at": null,
        "status": status,
        "background": false,
        "error": null,
        "frequency_penalty": said("frequency_penalty", json!(0.0)),
        "incomplete_details": null,
        "instructions": said("instructions", Value::Null),
        "max_output_tokens": said("max_output_tokens", Value::Null),
        "max_tool_calls": said("max_tool_calls", Value::Null),
        "model": rendered.model(),
        "output": output,
        "parallel_tool_calls": said("parallel_tool_calls", json!(true)),
        "presence_penalty": said("presence_penalty", json!(0.0)),
        "previous_response_id": said("previous_response_id", Value::Null),
        "prompt_cache_key": said("prompt_cache_key", Value::Null),
        "reasoning": {"effort": null, "summary": null},
        "safety_identifier": said("safety_identifier", Value::Null),
        "service_tier": "default",
        "store": said("store", json!(true)),
        "temperature": said("temperature", json!(1.0)),
        "text": said("text", json!({"format": {"type": "text"}})),
        "tool_choice": said("tool_choice", json!("auto")),
        "tools": said("tools", json!([])),
        "top_logprobs": 0,
        "top_p": said("top_p", json!(1.0)),
        "truncation": said("truncation", json!("disabled")),
        "usage": null,
        "metadata": said("metadata", json!({})),
    })
}

fn usage_json(usage: &Usage) -> Value {
    let mut input_details = json!({"cached_tokens": usage.cached_input_tokens});
    if usage.cache_write_tokens > 0 {
        input_details["cache_write_tokens"] = usage.cache_write_tokens.into();
    }
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": input_details,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens(),
    })
}
