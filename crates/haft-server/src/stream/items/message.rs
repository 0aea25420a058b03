//! Messages of the model: text, then perhaps a refusal.

use haft_core::{ContentPart, Message};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Place, head, rest};
use crate::stream::event::Writer;

/// A message that is being written.
#[derive(Debug, Default)]
pub(super) struct OpenMessage {
    closed: Vec<Value>,
    open: Option<OpenPart>,
}

#[derive(Debug)]
struct OpenPart {
    kind: PartKind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartKind {
    Text,
    Refusal,
}

impl PartKind {
    fn part(self, text: &str) -> Value {
        match self {
            Self::Text => {
                json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
            }
            Self::Refusal => json!({"type": "refusal", "refusal": text}),
        }
    }
}

#[derive(Serialize)]
struct TextDone<'e> {
    item_id: &'e str,
    output_index: usize,
    content_index: usize,
    text: &'e str,
    logprobs: &'e [Value],
}

fn write_part(
    kind: &'static str,
    place: &Place,
    content_index: usize,
    part: &Value,
    writer: &mut Writer,
) {
    #[derive(Serialize)]
    struct PartEvent<'e> {
        item_id: &'e str,
        output_index: usize,
        content_index: usize,
        part: &'e Value,
    }
    let event = PartEvent {
        item_id: &place.item_id,
        output_index: place.output_index,
        content_index,
        part,
    };
    writer.write(kind, &event);
}

impl OpenMessage {
    pub(super) fn text(&mut self, text: &str, place: &Place, writer: &mut Writer) {
        #[derive(Serialize)]
        struct Told<'e> {
            item_id: &'e str,
            output_index: usize,
            content_index: usize,
            delta: &'e str,
            logprobs: [(); 0],
        }
        if text.is_empty() {
            return;
        }
        self.open_part(PartKind::Text, place, writer).push_str(text);
        let delta = Told {
            item_id: &place.item_id,
            output_index: place.output_index,
            content_index: self.closed.len(),
            delta: text,
            logprobs: [],
        };
        writer.write("response.output_text.delta", &delta);
    }

    pub(super) fn refusal(&mut self, text: &str, place: &Place, writer: &mut Writer) {
        #[derive(Serialize)]
        struct Told<'e> {
            item_id: &'e str,
            output_index: usize,
            content_index: usize,
            delta: &'e str,
        }
        if text.is_empty() {
            return;
        }
        self.open_part(PartKind::Refusal, place, writer)
            .push_str(text);
        let delta = Told {
            item_id: &place.item_id,
            output_index: place.output_index,
            content_index: self.closed.len(),
            delta: text,
        };
        writer.write("response.refusal.delta", &delta);
    }

    /// The open part of this kind, opened where there is none.
    fn open_part(&mut self, kind: PartKind, place: &Place, writer: &mut Writer) -> &mut String {
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            self.close_part(Extras::default(), place, writer);
        }
        let content_index = self.closed.len();
        let open = self.open.get_or_insert_with(|| {
            let part = writer.heard(|| kind.part(""));
            write_part(
                "response.content_part.added",
                place,
                content_index,
                &part,
                writer,
            );
            OpenPart {
                kind,
                text: String::new(),
            }
        });
        &mut open.text
    }

    fn close_part(&mut self, extras: Extras, place: &Place, writer: &mut Writer) {
        let Some(open) = self.open.take() else {
            return;
        };
        let content_index = self.closed.len();
        let mut part = open.kind.part(&open.text);
        let mut has_logprobs = false;
        let (item_id, output_index) = (&place.item_id, place.output_index);
        match open.kind {
            PartKind::Text => {
                for (annotation_index, annotation) in extras.annotations.iter().enumerate() {
                    let added = json!({
                        "item_id": item_id, "output_index": output_index,
                        "content_index": content_index,
                        "annotation_index": annotation_index, "annotation": annotation,
                    });
                    writer.write("response.output_text.annotation.added", &added);
                }
                let logprobs: &[Value] = if writer.view.include.logprobs {
                    &extras.logprobs
                } else {
                    &[]
                };
                let done = TextDone {
                    item_id,
                    output_index,
                    content_index,
                    text: &open.text,
                    logprobs,
                };
                writer.write("response.output_text.done", &done);
                has_logprobs = !extras.logprobs.is_empty();
                part["annotations"] = extras.annotations.into();
                part["logprobs"] = extras.logprobs.into();
            }
            PartKind::Refusal => {
                let done = json!({
                    "item_id": item_id, "output_index": output_index,
                    "content_index": content_index, "refusal": open.text,
                });
                writer.write("response.refusal.done", &done);
            }
        }
        if writer.is_heard() && has_logprobs && !writer.view.include.logprobs {
            let mut visible = part.clone();
            visible["logprobs"] = json!([]);
            write_part(
                "response.content_part.done",
                place,
                content_index,
                &visible,
                writer,
            );
        } else {
            write_part(
                "response.content_part.done",
                place,
                content_index,
                &part,
                writer,
            );
        }
        self.closed.push(part);
    }

    /// What was told so far of one kind.
    fn told(&self, kind: PartKind) -> String {
        let key = match kind {
            PartKind::Text => "text",
            PartKind::Refusal => "refusal",
        };
        let closed = self.closed.iter().filter_map(|part| part[key].as_str());
        let open = self.open.iter().filter(|open| open.kind == kind);
        closed.chain(open.map(|open| open.text.as_str())).collect()
    }

    pub(super) fn close(
        &mut self,
        item: Option<&Message>,
        place: &Place,
        writer: &mut Writer,
    ) -> Map<String, Value> {
        let mut extras = Extras::default();
        if let Some(item) = item {
            if let Some(more) = rest(&self.told(PartKind::Text), &item.text()) {
                self.text(more, place, writer);
            }
            if let Some(more) = rest(&self.told(PartKind::Refusal), &refusal_of(item)) {
                self.refusal(more, place, writer);
            }
            extras = Extras::of(item);
        }
        if self.closed.is_empty() && self.open.is_none() {
            // A model that returns nothing at all has still answered.
            self.open_part(PartKind::Text, place, writer);
        }
        self.close_part(extras, place, writer);
        let mut json = head(&place.item_id, "message");
        json.insert("role".into(), "assistant".into());
        json.insert("content".into(), std::mem::take(&mut self.closed).into());
        if let Some(item) = item {
            json.extend(item.extra.clone());
        }
        json
    }
}

fn refusal_of(message: &Message) -> String {
    let refusals = message.content.iter().filter_map(|part| match part {
        ContentPart::Refusal { refusal } => Some(refusal.as_str()),
        _ => None,
    });
    refusals.collect()
}

/// What belongs to the text without being text.
#[derive(Debug, Default)]
struct Extras {
    annotations: Vec<Value>,
    logprobs: Vec<Value>,
}

impl Extras {
    /// Of all text parts, as if they were one.
    fn of(message: &Message) -> Self {
        let mut extras = Self::default();
        let mut offset = 0;
        for part in &message.content {
            let ContentPart::OutputText {
                text,
                annotations,
                extra,
            } = part
            else {
                continue;
            };
            for annotation in annotations {
                extras.annotations.push(shifted(annotation.clone(), offset));
            }
            let logprobs = extra.get("logprobs").and_then(Value::as_array);
            extras
                .logprobs
                .extend(logprobs.into_iter().flatten().cloned());
            offset += text.chars().count();
        }
        extras
    }
}

/// An annotation of a text that begins so many characters later.
fn shifted(mut annotation: Value, offset: usize) -> Value {
    if offset > 0 {
        for key in ["start_index", "end_index"] {
            if let Some(index) = annotation.get(key).and_then(Value::as_u64) {
                annotation[key] = (index + offset as u64).into();
            }
        }
    }
    annotation
}
