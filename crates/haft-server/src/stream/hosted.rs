//! Calls that run here, and questions about them, in the words of the API.

use haft_core::CallOutput;
use haft_engine::EventKind;
use serde_json::{Value, json};

use super::answer::Placing as _;
use super::event::WireEvent;
use super::items::{self, HostedCall, HostedEnd};
use super::translator::{Running, Translator};
use crate::history::TURN;
use crate::mcp::Listing;

/// What the model reads of a call that the end of the response came before.
const NEVER_RAN: &str = "Not executed: the response ended before the call was whole.";

impl Translator {
    /// Tells what became of asking a server for its tools.
    pub(crate) fn add_listing(&mut self, listing: &Listing) -> Vec<WireEvent> {
        let place = self.output.place(None, "mcpl");
        let at = place.output_index;
        let begun = self.writer.heard(|| listing.begun(&place.item_id));
        items::write_item(
            "response.output_item.added",
            &place,
            &begun,
            &mut self.writer,
        );
        let end = if listing.is_failed() {
            "response.mcp_list_tools.failed"
        } else {
            "response.mcp_list_tools.completed"
        };
        for kind in ["response.mcp_list_tools.in_progress", end] {
            self.writer.write(kind, &place);
        }
        let json = listing.to_item(&place.item_id);
        self.output.items[at] = Some(items::finish(place, json, &mut self.writer));
        self.writer.take()
    }

    /// Opens the item of a call that somebody has allowed, and that is about to run.
    pub(crate) fn add_allowed(&mut self, call_id: &str, call: HostedCall) -> Vec<WireEvent> {
        self.open_running(call_id, call);
        self.writer.take()
    }

    /// Shows a call that was held back, now that it is decided that it is one.
    pub(super) fn show_held(&mut self, call_id: &str) {
        if let Some(call) = self.held.remove(call_id) {
            self.open_running(call_id, call);
        }
    }

    /// Nothing comes behind an item that was cut off. What is still held back then never ran, and nobody was asked
    /// about it.
    pub(super) fn drop_held_behind_cut(&mut self) {
        let is_any = !self.held.is_empty() || !self.searches.is_empty();
        if is_any && self.has_cut_item() {
            self.held.clear();
            self.searches.clear();
            self.answer.settle_all();
        }
    }

    /// Whether this event makes a call visible that was held back.
    pub(crate) fn opens_with(&self, event: &EventKind) -> bool {
        matches!(event, EventKind::ToolStarted { call_id, .. } if self.held.contains_key(call_id))
    }

    fn open_running(&mut self, call_id: &str, call: HostedCall) {
        let place = self.output.place(None, call.id_prefix());
        items::open_hosted(&place, call_id, &call, &mut self.writer);
        self.running
            .insert(call_id.to_owned(), Running { place, call });
    }

    /// Somebody is asked about a call. One that was asked about in another process is not in doubt
    /// any more.
    pub(super) fn ask(&mut self, call_id: &str, arguments: &Value) {
        let Some(call) = self.held.remove(call_id) else {
            return;
        };
        // Exactly what would run: as the model wrote it, unless that had to be repaired.
        let is_as_written =
            serde_json::from_str(&call.arguments).is_ok_and(|it: Value| it == *arguments);
        let written = if is_as_written {
            call.arguments.clone()
        } else {
            arguments.to_string()
        };
        let (label, name) = call.asked_as();
        let questions = self.translation.questions.as_ref();
        let id = questions.map(|ids| ids.next(label, name, &written));
        let place = self.output.place(id.as_deref(), "mcpr");
        let at = place.output_index;
        let mut json = json!({
            "id": place.item_id, "type": "mcp_approval_request", "status": "completed",
            "server_label": label, "name": name, "arguments": written,
        });
        json[TURN] = self.turn.into();
        self.output.items[at] = Some(items::whole(place, json, &mut self.writer));
    }

    pub(super) fn hosted_done(&mut self, call_id: &str, end: &HostedEnd<'_>) {
        let Some(Running { place, call }) = self.running.remove(call_id) else {
            return;
        };
        let at = place.output_index;
        let json = items::hosted_item(&place.item_id, call_id, &call, end);
        items::tell_end(&place, &call, end.is_error, &mut self.writer);
        self.output.items[at] = Some(items::finish(place, json, &mut self.writer));
    }

    /// Calls that were to run here and never did have failed.
    pub(super) fn close_running(&mut self) {
        self.drop_held_behind_cut();
        let mut held: Vec<_> = self.held.keys().cloned().collect();
        held.sort_unstable();
        for call_id in held {
            self.show_held(&call_id);
        }
        let mut left: Vec<_> = self
            .running
            .iter()
            .map(|(call_id, running)| (running.place.output_index, call_id.clone()))
            .collect();
        left.sort_unstable();
        let output = CallOutput::Text(NEVER_RAN.to_owned());
        for (_, call_id) in left {
            let end = HostedEnd {
                is_error: true,
                error_kind: Some("not_executed"),
                output: &output,
                duration_ms: 0,
                is_repaired: false,
                turn: self.turn,
                record: None,
            };
            self.hosted_done(&call_id, &end);
        }
    }
}
