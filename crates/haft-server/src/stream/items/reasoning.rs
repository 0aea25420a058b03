//! Reasoning, raw and in summary.
//!
//! A client that asks for a summary reads nothing else, and most backends give only raw text. For such a
//! client the raw text is presented as the first part of the summary, as it comes, and not as content:
//! a client that reads both would show it twice. The stored item bears a mark, so that the backend gets
//! its own text back.

use std::collections::BTreeMap;

use haft_core::{ContentPart, Reasoning};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Place, head, rest};
use crate::history::RAW_SUMMARY;
use crate::stream::event::Writer;

/// A reasoning item that is being written.
#[derive(Debug, Default)]
pub(super) struct OpenReasoning {
    content: Vec<String>,
    summary: Vec<String>,
    /// The text sent of each summary part of the model, by the model's own index: parts without text
    /// are not sent, so the indexes differ.
    sent: BTreeMap<usize, String>,
    /// The raw text that was sent as the first part of the summary.
    raw_summary: String,
    /// Whether the model gives a summary itself.
    has_summary: bool,
    open: Option<Channel>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Channel {
    Content,
    /// A summary part of the model.
    Summary(usize),
    /// Raw text as a summary part.
    RawSummary,
}

impl OpenReasoning {
    pub(super) fn raw(&mut self, text: &str, place: &Place, writer: &mut Writer) {
        #[derive(Serialize)]
        struct RawDelta<'e> {
            item_id: &'e str,
            output_index: usize,
            content_index: usize,
            delta: &'e str,
        }
        if text.is_empty() {
            return;
        }
        if writer.raw_as_summary && !self.has_summary {
            self.raw_summary.push_str(text);
            self.summary_delta(Channel::RawSummary, text, place, writer);
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
        let delta = RawDelta {
            item_id: &place.item_id,
            output_index: place.output_index,
            content_index: self.content.len() - 1,
            delta: text,
        };
        writer.write("response.reasoning.delta", &delta);
    }

    pub(super) fn summary(&mut self, part: usize, text: &str, place: &Place, writer: &mut Writer) {
        if text.is_empty() {
            return;
        }
        self.has_summary = true;
        self.sent.entry(part).or_default().push_str(text);
        self.summary_delta(Channel::Summary(part), text, place, writer);
    }

    fn summary_delta(&mut self, channel: Channel, text: &str, place: &Place, writer: &mut Writer) {
        #[derive(Serialize)]
        struct SummaryDelta<'e> {
            item_id: &'e str,
            output_index: usize,
            summary_index: usize,
            delta: &'e str,
        }
        if self.open != Some(channel) {
            self.close_channel(place, writer);
            let added = json!({
                "item_id": place.item_id, "output_index": place.output_index,
                "summary_index": self.summary.len(),
                "part": {"type": "summary_text", "text": ""},
            });
            writer.write("response.reasoning_summary_part.added", &added);
            self.summary.push(String::new());
            self.open = Some(channel);
        }
        if let Some(open) = self.summary.last_mut() {
            open.push_str(text);
        }
        let delta = SummaryDelta {
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
            Some(Channel::Summary(_) | Channel::RawSummary) => {
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
            self.has_summary |= !item.summary.is_empty();
            let raw: String = item.content.iter().filter_map(ContentPart::text).collect();
            let sent = self.raw_summary.clone() + &self.content.concat();
            if let Some(more) = rest(&sent, &raw) {
                self.raw(more, place, writer);
            }
            for (part, summary) in item.summary.iter().enumerate() {
                let sent = self.sent.get(&part).cloned().unwrap_or_default();
                if let Some(more) = rest(&sent, summary.text().unwrap_or_default()) {
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
        if !self.raw_summary.is_empty() {
            json.insert(RAW_SUMMARY.into(), true.into());
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
