//! What the model thinks, raw and in summary.

use std::collections::BTreeMap;

use haft_core::{ContentPart, Reasoning};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Place, head, rest};
use crate::stream::event::Writer;

/// Thoughts that are being written.
#[derive(Debug, Default)]
pub(super) struct OpenReasoning {
    content: Vec<String>,
    summary: Vec<String>,
    /// What was told of each part of the summary, by the model's own count: parts without words
    /// are not shown, so the places differ.
    told: BTreeMap<usize, String>,
    open: Option<Channel>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Channel {
    Content,
    Summary(usize),
}

impl OpenReasoning {
    pub(super) fn thought(&mut self, text: &str, place: &Place, writer: &mut Writer) {
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
        if self.open != Some(Channel::Content) {
            self.close_channel(place, writer);
            let added = json!({
                "item_id": place.item_id, "output_index": place.output_index,
                "content_index": self.content.len(),
                "part": {"type": "reasoning_text", "text": ""},
            });
            writer.write("response.content_part.added", &added);
            self.content.push(String::new());
            self.open = Some(Channel::Content);
        }
        if let Some(open) = self.content.last_mut() {
            open.push_str(text);
        }
        let delta = Told {
            item_id: &place.item_id,
            output_index: place.output_index,
            content_index: self.content.len() - 1,
            delta: text,
        };
        writer.write("response.reasoning.delta", &delta);
    }

    pub(super) fn summary(&mut self, part: usize, text: &str, place: &Place, writer: &mut Writer) {
        #[derive(Serialize)]
        struct Told<'e> {
            item_id: &'e str,
            output_index: usize,
            summary_index: usize,
            delta: &'e str,
        }
        if text.is_empty() {
            return;
        }
        if self.open != Some(Channel::Summary(part)) {
            self.close_channel(place, writer);
            let added = json!({
                "item_id": place.item_id, "output_index": place.output_index,
                "summary_index": self.summary.len(),
                "part": {"type": "summary_text", "text": ""},
            });
            writer.write("response.reasoning_summary_part.added", &added);
            self.summary.push(String::new());
            self.open = Some(Channel::Summary(part));
        }
        if let Some(open) = self.summary.last_mut() {
            open.push_str(text);
        }
        self.told.entry(part).or_default().push_str(text);
        let delta = Told {
            item_id: &place.item_id,
            output_index: place.output_index,
            summary_index: self.summary.len() - 1,
            delta: text,
        };
        writer.write("response.reasoning_summary_text.delta", &delta);
    }

    fn close_channel(&mut self, place: &Place, writer: &mut Writer) {
        let (item_id, output_index) = (&place.item_id, place.output_index);
        match self.open.take() {
            None => {}
            Some(Channel::Content) => {
                let index = self.content.len() - 1;
                let text = &self.content[index];
                let done = json!({
                    "item_id": item_id, "output_index": output_index,
                    "content_index": index, "text": text,
                });
                writer.write("response.reasoning.done", &done);
                let done = json!({
                    "item_id": item_id, "output_index": output_index,
                    "content_index": index, "part": {"type": "reasoning_text", "text": text},
                });
                writer.write("response.content_part.done", &done);
            }
            Some(Channel::Summary(_)) => {
                let index = self.summary.len() - 1;
                let text = &self.summary[index];
                let done = json!({
                    "item_id": item_id, "output_index": output_index,
                    "summary_index": index, "text": text,
                });
                writer.write("response.reasoning_summary_text.done", &done);
                let done = json!({
                    "item_id": item_id, "output_index": output_index,
                    "summary_index": index, "part": {"type": "summary_text", "text": text},
                });
                writer.write("response.reasoning_summary_part.done", &done);
            }
        }
    }

    pub(super) fn close(
        &mut self,
        item: Option<&Reasoning>,
        place: &Place,
        writer: &mut Writer,
    ) -> Map<String, Value> {
        if let Some(item) = item {
            let thoughts: String = item.content.iter().filter_map(ContentPart::text).collect();
            if let Some(more) = rest(&self.content.concat(), &thoughts) {
                self.thought(more, place, writer);
            }
            for (part, summary) in item.summary.iter().enumerate() {
                let told = self.told.get(&part).cloned().unwrap_or_default();
                if let Some(more) = rest(&told, summary.text().unwrap_or_default()) {
                    self.summary(part, more, place, writer);
                }
            }
        }
        self.close_channel(place, writer);
        let mut json = head(&place.item_id, "reasoning");
        let parts = |kind: &str, texts: &[String]| -> Vec<Value> {
            let parts = texts.iter().map(|text| json!({"type": kind, "text": text}));
            parts.collect()
        };
        json.insert(
            "summary".into(),
            parts("summary_text", &self.summary).into(),
        );
        if !self.content.is_empty() {
            json.insert(
                "content".into(),
                parts("reasoning_text", &self.content).into(),
            );
        }
        if let Some(item) = item {
            if let Some(sealed) = &item.encrypted_content {
                json.insert("encrypted_content".into(), sealed.as_str().into());
            }
            json.extend(item.extra.clone());
        }
        json
    }
}
