//! How a response ends: what is open is closed, what is to be stored is put together, the end is told.

use haft_core::{Item, ItemStatus, Usage};
use haft_engine::End;
use serde::Serialize;
use serde_json::json;

use crate::error::ApiError;
use crate::history::DEFERRAL;
use crate::wire::{
    IncompleteDetails, ResponseError, ResponseResource, ResponseStatus, ShownItems, UsageBody,
};

use super::answer::Placing as _;
use super::event::WireEvent;
use super::items::{self, OutputItem};
use super::output::Keeping;
use super::translation::Translation;
use super::translator::Translator;

/// How a response ended: what is stored before anybody is told.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The resource, without its items.
    pub(crate) resource: Box<ResponseResource>,
    /// The items as the client may see them.
    pub(crate) shown: ShownItems,
    /// Whole; none where only what is shown is kept.
    pub(crate) items: Vec<OutputItem>,
    /// The last events, the terminal one included: to be sent when the response is stored.
    pub(crate) events: Vec<WireEvent>,
}

impl Finished {
    /// The same response, which could not be stored: then it has failed, and nobody may rely on it.
    pub(crate) fn unstored(self, error: &ApiError) -> Self {
        // What was told of items stays; the end is another.
        let is_end = |event: &WireEvent| {
            matches!(
                &*event.kind,
                "error" | "response.completed" | "response.incomplete" | "response.failed"
            )
        };
        let mut events = self.events;
        let end = events.iter().position(is_end).unwrap_or(events.len());
        let next = events.get(end).map(|event| event.sequence_number);
        events.truncate(end);
        let mut resource = self.resource;
        resource.completed_at = None;
        resource.incomplete_details = None;
        let mut translator = Translator::new(resource, Translation::default());
        translator.writer.continue_at(next.unwrap_or_default());
        translator.output.items = self.items.into_iter().map(Some).collect();
        let mut failed = translator.fail(error);
        events.append(&mut failed.events);
        Self { events, ..failed }
    }
}

impl Translator {
    /// The run is over: closes what is open, and gives what is to be stored and the last events.
    pub(crate) fn finish(mut self: Box<Self>, end: &End, usage: &Usage, now: i64) -> Finished {
        match end {
            End::Completed | End::Waiting(_) => {
                // Calls that only the provider's clients execute end a run without being requested.
                if matches!(end, End::Waiting(_)) {
                    self.answer.drop_text_beside_calls();
                }
                self.answer.judge();
                self.release();
                if !self.has_answer && matches!(end, End::Completed) {
                    self.add_empty_message();
                }
                // Behind a call that somebody is asked about, others may have been held back.
                self.close_running();
            }
            End::Incomplete { reason, .. } => self.close_incomplete(reason.as_str()),
            _ => {}
        }
        self.resource.usage = Some(UsageBody::from(usage));
        match end {
            End::Completed | End::Waiting(_) => {
                let is_waiting = matches!(end, End::Waiting(_)) && self.translation.is_agentic;
                self.resource.status = if is_waiting {
                    ResponseStatus::RequiresAction
                } else {
                    ResponseStatus::Completed
                };
                self.resource.completed_at = Some(now);
                self.terminal("response.completed")
            }
            End::Incomplete { reason, .. } => {
                self.resource.status = ResponseStatus::Incomplete;
                self.resource.incomplete_details = Some(IncompleteDetails {
                    reason: reason.as_str().to_owned(),
                });
                self.terminal("response.incomplete")
            }
            End::Failed { reason, message } => {
                let error = crate::failure::of_run(reason, message);
                self.fail(&error)
            }
            // `End` may grow; whatever it is, the response did not come to its end.
            _ => self.cancel(),
        }
    }

    /// Ends the response without asking the model.
    pub(crate) fn warm_up(mut self: Box<Self>, now: i64) -> Finished {
        self.resource.usage = Some(UsageBody::from(&Usage::default()));
        self.resource.status = ResponseStatus::Completed;
        self.resource.completed_at = Some(now);
        self.terminal("response.completed")
    }

    /// Ends the response with an error.
    pub(crate) fn fail(mut self: Box<Self>, error: &ApiError) -> Finished {
        #[derive(Serialize)]
        struct ErrorEvent<'e> {
            error: crate::error::ErrorBody<'e>,
        }
        tracing::warn!(
            id = self.resource.id,
            code = error.code.as_str(),
            "a response failed"
        );
        let body = ErrorEvent {
            error: error.body(),
        };
        self.writer.write("error", &body);
        self.resource.status = ResponseStatus::Failed;
        self.resource.error = Some(ResponseError {
            code: error.code.as_str().to_owned(),
            message: error.message.clone(),
        });
        self.terminal("response.failed")
    }

    /// Ends the response because somebody wanted it to stop.
    pub(crate) fn cancel(mut self: Box<Self>) -> Finished {
        self.resource.status = ResponseStatus::Cancelled;
        self.resource.error = Some(ResponseError {
            code: "response_cancelled".to_owned(),
            message: "the response was cancelled before it was finished".to_owned(),
        });
        self.terminal("response.failed")
    }

    fn close_incomplete(&mut self, reason: &str) {
        let is_cut = matches!(reason, "max_output_tokens" | "content_filter");
        let is_judged_whole = !is_cut;
        self.searches.clear();
        self.answer.settle_all();
        if is_judged_whole {
            self.answer.judge();
            self.show();
            // Nothing comes behind an item that was cut off.
            if !self.has_cut_item() {
                self.show_unexecuted();
            }
        }
        // The last item was cut off: by the limit, or because the time was over.
        self.answer.judge();
        let status = |_: &Item| ItemStatus::Incomplete;
        let closed = self
            .answer
            .show(&mut self.output, &mut self.writer, &status);
        self.keep(closed);
        let closed = self.answer.cut(ItemStatus::Incomplete, &mut self.writer);
        self.keep(closed);
        self.tell_behind();
        self.close_running();
    }

    pub(super) fn has_cut_item(&self) -> bool {
        let mut items = self.output.items.iter().flatten();
        items.any(|item| item.json["status"] == "incomplete")
    }

    fn add_empty_message(&mut self) {
        let place = self.output.place(None, "msg");
        let at = place.output_index;
        let open = items::OpenItem::open(place, items::Opening::Message, &mut self.writer);
        let item = open.close(None, ItemStatus::Completed, &mut self.writer);
        self.output.items[at] = Some(item);
    }

    fn terminal(mut self: Box<Self>, kind: &'static str) -> Finished {
        self.note_unseen();
        let mut items: Vec<OutputItem> = self.output.items.drain(..).flatten().collect();
        if let (Some(last), Some(unsaid)) = (items.last_mut(), &self.unsaid) {
            last.json[DEFERRAL] = json!(unsaid);
        }
        let view = &self.translation.view;
        let (whole, items) = match self.keeping {
            Keeping::Everything => (items.iter().map(|item| item.json.clone()).collect(), items),
            Keeping::Shown => (
                items.into_iter().map(|item| item.json).collect(),
                Vec::new(),
            ),
        };
        let visible = <Vec<_>>::into_iter(whole).map(|item| items::visible(item, view));
        self.resource.output = match self.text_only.take() {
            Some(message) => ShownItems::Text(message),
            None => visible.collect(),
        };
        self.write_response(&[kind]);
        Finished {
            shown: std::mem::take(&mut self.resource.output),
            resource: self.resource,
            items,
            events: self.writer.take(),
        }
    }
}
