//! What every stream must obey (`open-responses.md` §3.2), as a check of a whole transcript.
//!
//! For tests only; the tests over HTTP use it too.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// Says what is wrong with a stream, if anything.
pub(crate) fn check(events: &[Value]) -> Result<(), String> {
    let mut stream = Stream::default();
    for (at, event) in events.iter().enumerate() {
        let told = stream.take(at, event);
        told.map_err(|problem| format!("event {at}: {problem}\n{event:#}"))?;
    }
    if stream.is_over {
        Ok(())
    } else {
        Err("there is no terminal event".to_owned())
    }
}

/// Fails the test if a stream is not legal.
#[track_caller]
pub(crate) fn assert_legal(events: &[Value]) {
    if let Err(problem) = check(events) {
        let lines = events.iter().map(Value::to_string).collect::<Vec<_>>();
        panic!("{problem}\n\nin\n{}", lines.join("\n"));
    }
}

type Checked = Result<(), String>;

#[derive(Default)]
struct Stream {
    response_id: String,
    /// By their place.
    items: Vec<Item>,
    ids: HashSet<String>,
    has_error: bool,
    is_over: bool,
    /// Which of the dialects' names for raw thoughts was used.
    thought_events: HashSet<String>,
}

struct Item {
    id: String,
    added: Value,
    done: Option<Value>,
    /// What its own events told of its parts: texts of the content, texts of the summary.
    content: Vec<Part>,
    summary: Vec<Part>,
    /// What its own events told of its arguments or input.
    written: String,
    written_done: bool,
    /// What its own events told of its work.
    work: Vec<String>,
}

struct Part {
    kind: String,
    text: String,
    is_told: bool,
    is_done: bool,
}

fn text<'e>(value: &'e Value, key: &str) -> Result<&'e str, String> {
    value[key]
        .as_str()
        .ok_or_else(|| format!("`{key}` is no text"))
}

fn place(value: &Value, key: &str) -> Result<usize, String> {
    let number = value[key].as_u64();
    let number = number.and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| format!("`{key}` is no place"))
}

fn demand(is_kept: bool, rule: &str) -> Checked {
    is_kept.then_some(()).ok_or_else(|| rule.to_owned())
}

const FIELDS: [&str; 31] = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "incomplete_details",
    "model",
    "previous_response_id",
    "instructions",
    "output",
    "error",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "service_tier",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
];

/// Whether the lifecycle begins as it must.
fn check_begin(at: usize, kind: &str) -> Checked {
    let is_begin = matches!(
        kind,
        "response.created" | "response.queued" | "response.in_progress"
    );
    let is_right = match at {
        0 => kind == "response.created",
        1 => is_begin && kind != "response.created",
        2 => !is_begin || kind == "response.in_progress",
        _ => !is_begin,
    };
    demand(is_right, "the lifecycle does not begin as it must")
}

impl Stream {
    fn take(&mut self, at: usize, event: &Value) -> Checked {
        demand(!self.is_over, "something comes after the terminal event")?;
        demand(
            event["sequence_number"] == at,
            "the number is not the next one",
        )?;
        let kind = text(event, "type")?;
        check_begin(at, kind)?;
        demand(
            !self.has_error || kind == "response.failed",
            "`error` is not followed by `response.failed`",
        )?;
        match kind {
            "response.created" | "response.queued" | "response.in_progress" => {
                self.begin(kind, &event["response"])
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.end(kind, &event["response"])
            }
            "error" => {
                self.has_error = true;
                let nested = &event["error"];
                let body = if nested.is_object() { nested } else { event };
                demand(body["code"].is_string(), "the error has no code")?;
                demand(body["message"].is_string(), "the error has no message")
            }
            "response.output_item.added" => self.add(event),
            "response.output_item.done" => self.finish(event),
            kind if kind.starts_with("haft:") => {
                let taken = ["error", "delta", "response"];
                let mut taken = taken.into_iter();
                demand(
                    !taken.any(|key| event.get(key).is_some()),
                    "a vendor event uses a word that clients act on",
                )
            }
            kind => self.piece(kind, event),
        }
    }

    fn resource(&mut self, response: &Value) -> Checked {
        for field in FIELDS {
            demand(
                response.get(field).is_some(),
                &format!("the response has no `{field}`"),
            )?;
        }
        let id = text(response, "id")?;
        if self.response_id.is_empty() {
            id.clone_into(&mut self.response_id);
        }
        demand(id == self.response_id, "the response changes its id")
    }

    fn begin(&mut self, kind: &str, response: &Value) -> Checked {
        self.resource(response)?;
        let status = text(response, "status")?;
        let is_right = match kind {
            "response.created" => matches!(status, "in_progress" | "queued"),
            "response.queued" => status == "queued",
            _ => status == "in_progress",
        };
        demand(is_right, "the status does not fit the event")?;
        let is_empty = response["output"] == Value::Array(Vec::new())
            && response["usage"].is_null()
            && response["completed_at"].is_null()
            && response["error"].is_null();
        demand(is_empty, "a response that begins is not empty")
    }

    fn end(&mut self, kind: &str, response: &Value) -> Checked {
        self.is_over = true;
        self.resource(response)?;
        let status = text(response, "status")?;
        let fits = match kind {
            "response.completed" => matches!(status, "completed" | "requires_action"),
            "response.incomplete" => status == "incomplete",
            _ => matches!(status, "failed" | "cancelled"),
        };
        demand(fits, "the status does not fit the event")?;
        demand(
            (kind == "response.completed") == response["completed_at"].is_i64(),
            "`completed_at` does not fit the status",
        )?;
        demand(
            (kind == "response.incomplete") == response["incomplete_details"]["reason"].is_string(),
            "`incomplete_details` does not fit the status",
        )?;
        demand(
            (kind == "response.failed") == response["error"]["code"].is_string(),
            "`error` does not fit the status",
        )?;
        demand(
            (status == "failed") == self.has_error,
            "there is an `error` event without failure, or a failure without one",
        )?;
        if kind != "response.failed" {
            demand(
                response["usage"]["total_tokens"].is_u64(),
                "there is no usage",
            )?;
            let mut items = self.items.iter();
            demand(
                items.all(|item| item.done.is_some()),
                "an item is still open",
            )?;
        }
        let done: Vec<&Value> = self
            .items
            .iter()
            .filter_map(|item| item.done.as_ref())
            .collect();
        let output = response["output"].as_array().ok_or("`output` is no list")?;
        demand(
            output.iter().eq(done.iter().copied()),
            "`output` is not what the items were when they were done",
        )?;
        let cut = output
            .iter()
            .position(|item| item["status"] == "incomplete");
        match cut {
            None => Ok(()),
            Some(at) => {
                demand(
                    at + 1 == output.len(),
                    "an incomplete item is not the last one",
                )?;
                demand(
                    kind != "response.completed",
                    "an item is incomplete and the response completed",
                )
            }
        }
    }

    fn add(&mut self, event: &Value) -> Checked {
        let item = &event["item"];
        demand(
            place(event, "output_index")? == self.items.len(),
            "the item's place is not the next one",
        )?;
        let id = text(item, "id")?.to_owned();
        demand(id.contains('_'), "the item's id has no prefix")?;
        demand(self.ids.insert(id.clone()), "two items share an id")?;
        if let Some(call_id) = item["call_id"].as_str()
            && !text(item, "type")?.ends_with("_output")
        {
            demand(!call_id.is_empty(), "a call has no id")?;
            demand(
                self.ids.insert(format!("call {call_id}")),
                "two calls share an id",
            )?;
        }
        demand(
            item["status"] == "in_progress",
            "an item that is added is not in progress",
        )?;
        // Only calls that run here stay open while the model goes on.
        let mut open = self.items.iter().filter(|item| item.done.is_none());
        demand(
            open.all(|open| is_hosted(&open.added)),
            "an item is added while the model writes another",
        )?;
        self.items.push(Item {
            id,
            added: item.clone(),
            done: None,
            content: Vec::new(),
            summary: Vec::new(),
            written: String::new(),
            written_done: false,
            work: Vec::new(),
        });
        Ok(())
    }

    /// The open item that an event is about.
    fn open(&mut self, event: &Value) -> Result<&mut Item, String> {
        let at = place(event, "output_index")?;
        let item = self.items.get_mut(at).ok_or("there is no such item")?;
        demand(item.done.is_none(), "the item is done already")?;
        Ok(item)
    }

    fn piece(&mut self, kind: &str, event: &Value) -> Checked {
        if kind.starts_with("response.reasoning.") || kind.starts_with("response.reasoning_text.") {
            let dialect = kind.rsplit_once('.').map_or(kind, |(dialect, _)| dialect);
            self.thought_events.insert(dialect.to_owned());
            demand(self.thought_events.len() == 1, "the dialects are mixed")?;
        }
        let item = self.open(event)?;
        demand(
            text(event, "item_id")? == item.id,
            "`item_id` is not the item's id",
        )?;
        match kind {
            "response.content_part.added" => item.add_part("content_index", event),
            "response.content_part.done" => item.finish_part("content_index", event),
            "response.reasoning_summary_part.added" => item.add_part("summary_index", event),
            "response.reasoning_summary_part.done" => item.finish_part("summary_index", event),
            "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning.delta"
            | "response.reasoning_text.delta" => item.delta("content_index", part_of(kind), event),
            "response.output_text.done"
            | "response.refusal.done"
            | "response.reasoning.done"
            | "response.reasoning_text.done" => item.told("content_index", part_of(kind), event),
            "response.reasoning_summary_text.delta" => {
                item.delta("summary_index", "summary_text", event)
            }
            "response.reasoning_summary_text.done" => {
                item.told("summary_index", "summary_text", event)
            }
            "response.output_text.annotation.added" => {
                item.part("content_index", event)?;
                demand(event["annotation"].is_object(), "there is no annotation")
            }
            "response.function_call_arguments.delta" => item.write("function_call", event),
            "response.function_call_arguments.done" => {
                item.wrote("function_call", "arguments", event)
            }
            "response.custom_tool_call_input.delta" => item.write("custom_tool_call", event),
            "response.custom_tool_call_input.done" => {
                item.wrote("custom_tool_call", "input", event)
            }
            "response.mcp_call_arguments.delta" => item.write("mcp_call", event),
            "response.mcp_call_arguments.done" => item.wrote("mcp_call", "arguments", event),
            kind => item.work(kind),
        }
    }

    fn finish(&mut self, event: &Value) -> Checked {
        let item = self.open(event)?;
        let done = &event["item"];
        for key in [
            "id",
            "type",
            "call_id",
            "name",
            "namespace",
            "role",
            "server_label",
            "approval_request_id",
        ] {
            demand(
                done.get(key) == item.added.get(key),
                &format!("`{key}` changes between added and done"),
            )?;
        }
        let status = text(done, "status")?;
        let can_fail = is_hosted(done) || done["type"] == "mcp_list_tools";
        let is_of_provider = haft_core::is_provider_item(text(done, "type")?);
        demand(
            is_of_provider
                || matches!(status, "completed" | "incomplete")
                || can_fail && status == "failed",
            "an item ends in a status that it cannot have",
        )?;
        item.check_whole(done)?;
        item.done = Some(done.clone());
        Ok(())
    }
}

fn is_hosted(item: &Value) -> bool {
    let kind = item["type"].as_str();
    kind.is_some_and(|kind| kind.contains(':') || kind == "mcp_call")
}

/// What kind of part an event is about.
fn part_of(kind: &str) -> &'static str {
    match kind {
        "response.output_text.delta" | "response.output_text.done" => "output_text",
        "response.refusal.delta" | "response.refusal.done" => "refusal",
        _ => "reasoning_text",
    }
}

/// The words of a part.
fn words(part: &Value) -> &str {
    let words = part["text"].as_str().or_else(|| part["refusal"].as_str());
    words.unwrap_or_default()
}

impl Item {
    fn parts(&mut self, index: &str) -> &mut Vec<Part> {
        if index == "summary_index" {
            &mut self.summary
        } else {
            &mut self.content
        }
    }

    fn part(&mut self, index: &str, event: &Value) -> Result<&mut Part, String> {
        let at = place(event, index)?;
        let part = self.parts(index).get_mut(at);
        let part = part.ok_or("the part was not added")?;
        demand(!part.is_done, "the part is done already")?;
        Ok(part)
    }

    fn add_part(&mut self, index: &str, event: &Value) -> Checked {
        let parts = self.content.iter().chain(&self.summary);
        demand(
            parts.into_iter().all(|part| part.is_done),
            "a part is added while another is open",
        )?;
        let at = place(event, index)?;
        let parts = self.parts(index);
        demand(at == parts.len(), "the part's place is not the next one")?;
        demand(
            words(&event["part"]).is_empty(),
            "a part that is added has words already",
        )?;
        parts.push(Part {
            kind: text(&event["part"], "type")?.to_owned(),
            text: String::new(),
            is_told: false,
            is_done: false,
        });
        Ok(())
    }

    fn delta(&mut self, index: &str, kind: &str, event: &Value) -> Checked {
        let part = self.part(index, event)?;
        demand(part.kind == kind, "the delta does not fit the part")?;
        demand(!part.is_told, "a delta comes after the text is done")?;
        let delta = text(event, "delta")?;
        demand(!delta.is_empty(), "a delta is empty")?;
        part.text.push_str(delta);
        Ok(())
    }

    fn told(&mut self, index: &str, kind: &str, event: &Value) -> Checked {
        let part = self.part(index, event)?;
        demand(part.kind == kind, "the text does not fit the part")?;
        demand(!part.is_told, "the text is done twice")?;
        part.is_told = true;
        demand(
            words(event) == part.text,
            "the deltas do not give the text that is done",
        )
    }

    fn finish_part(&mut self, index: &str, event: &Value) -> Checked {
        let part = self.part(index, event)?;
        demand(part.is_told, "the part is done before its text")?;
        part.is_done = true;
        demand(
            event["part"]["type"] == *part.kind && words(&event["part"]) == part.text,
            "the part is not what its text was",
        )
    }

    fn write(&mut self, kind: &str, event: &Value) -> Checked {
        demand(
            self.added["type"] == kind,
            "the delta does not fit the item",
        )?;
        demand(!self.written_done, "a delta comes after the end")?;
        let delta = text(event, "delta")?;
        demand(!delta.is_empty(), "a delta is empty")?;
        self.written.push_str(delta);
        Ok(())
    }

    fn wrote(&mut self, kind: &str, key: &str, event: &Value) -> Checked {
        demand(
            self.added["type"] == kind,
            "the event does not fit the item",
        )?;
        demand(!self.written_done, "the arguments are done twice")?;
        self.written_done = true;
        demand(
            text(event, key)? == self.written,
            "the deltas do not give what is done",
        )
    }

    /// An event that tells how far the server is with an item: first that it works, last how it ended.
    fn work(&mut self, kind: &str) -> Checked {
        let item_type = text(&self.added, "type")?;
        if haft_core::is_provider_item(item_type) {
            // Its provider reports what it likes, about its own items only.
            let prefix = format!("response.{item_type}");
            return demand(kind.starts_with(&prefix), "the event is about another item");
        }
        let of_item = kind
            .strip_prefix("response.")
            .and_then(|kind| kind.strip_prefix(item_type))
            .and_then(|kind| kind.strip_prefix('.'));
        let step = of_item.filter(|_| item_type.starts_with("mcp_"));
        let step = step.ok_or("nobody knows this event")?;
        let is_next = match step {
            "in_progress" => self.work.is_empty() && self.written.is_empty(),
            "completed" | "failed" => self.work == ["in_progress"],
            _ => false,
        };
        demand(is_next, "the steps of the work are out of order")?;
        self.work.push(step.to_owned());
        Ok(())
    }

    /// Whether the work was told as it went.
    fn check_work(&self, done: &Value) -> Checked {
        let status = text(done, "status")?;
        demand(
            self.work == ["in_progress", status],
            "the work is not told as it went",
        )?;
        demand(
            (status == "failed") != done["error"].is_null(),
            "`error` does not fit the status",
        )
    }

    /// Whether a done item is what its events told.
    fn check_whole(&self, done: &Value) -> Checked {
        let parts = self.content.iter().chain(&self.summary);
        demand(
            parts.into_iter().all(|part| part.is_done),
            "an item is done with an open part",
        )?;
        let told = |parts: &[Part]| -> HashMap<usize, (String, String)> {
            let parts = parts.iter().enumerate();
            parts
                .map(|(at, part)| (at, (part.kind.clone(), part.text.clone())))
                .collect()
        };
        let held = |list: &Value| -> HashMap<usize, (String, String)> {
            let parts = list.as_array().into_iter().flatten().enumerate();
            parts
                .map(|(at, part)| {
                    let kind = part["type"].as_str().unwrap_or_default().to_owned();
                    (at, (kind, words(part).to_owned()))
                })
                .collect()
        };
        match text(done, "type")? {
            "message" => {
                demand(!self.content.is_empty(), "a message has no parts")?;
                demand(
                    held(&done["content"]) == told(&self.content),
                    "the message is not what its parts were",
                )
            }
            "reasoning" => {
                demand(
                    held(&done["content"]) == told(&self.content),
                    "the thoughts are not what their parts were",
                )?;
                demand(
                    held(&done["summary"]) == told(&self.summary),
                    "the summary is not what its parts were",
                )
            }
            "function_call" => {
                demand(self.written_done, "the arguments are not done")?;
                demand(
                    done["arguments"] == *self.written,
                    "the arguments are not those that were told",
                )
            }
            "custom_tool_call" => {
                demand(self.written_done, "the input is not done")?;
                demand(
                    done["input"] == *self.written,
                    "the input is not the one that was told",
                )
            }
            "mcp_call" => {
                demand(self.written_done, "the arguments are not done")?;
                demand(
                    done["arguments"] == *self.written,
                    "the arguments are not those that were told",
                )?;
                demand(
                    done["error"].is_null() == done["output"].is_string(),
                    "there is no output, or one beside an error",
                )?;
                self.check_work(done)
            }
            "mcp_list_tools" => {
                demand(done["tools"].is_array(), "there is no list of tools")?;
                self.check_work(done)
            }
            _ => Ok(()),
        }
    }
}
