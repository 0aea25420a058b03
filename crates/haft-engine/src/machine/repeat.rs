//! Repeated calls whose results the model already has (`docs/guide-runs.md`, "Repeated calls").
//!
//! Small models call a tool again and again although its result is in the conversation. Giving them the result once
//! more, with or without a warning, rarely helps; leaving the repeated call out and asking for the answer in one
//! message does. A call is left out only if that changes nothing but the number of calls: it is equal to an earlier
//! one that succeeded, nothing ran in between that may have changed its result, and its tool is known to have no
//! further effect. Functions of the caller say nothing about their effects, so they need as many equal results as the
//! loop detector admits.

use haft_catalog::Binding;
use haft_catalog::prompt::READ_SECTION;
use haft_core::{
    FunctionCall, FunctionCallOutput, Item, ModelResponse, RawArguments, Role, ToolDefinition,
    ToolName, cut,
};

use crate::calls::{as_tool_call, source_of};
use crate::detect::call_digest;
use crate::event::EventKind;
use crate::loop_report::{LoopAction, LoopKind, LoopReport};
use crate::outcome::CallStatus;
use crate::session::LastTurn;
use crate::spill::RECALL_TOOL;

use super::Machine;

/// The message behind the result that the model asked for again.
pub(super) const NUDGE: &str =
    "You have the result above. Do not call a tool again. Answer the question in plain words.";

/// The same, where the answer has to have a form of its own.
pub(super) const NUDGE_TO_FORM: &str =
    "You have the result above. Do not call a tool again. Answer now.";

/// How many answers in a row that only repeat calls lead to a nudge; the next one ends the run.
const MAX_NUDGES: u32 = 2;

impl Machine {
    /// Whether repeated calls are left out in this run.
    fn nudges(&self) -> bool {
        let capabilities = self.environment.model.capabilities();
        let detection = &self.environment.options.loop_detection;
        detection.nudges(&capabilities)
    }

    /// Leaves repeated calls out of an answer. Returns the rest to be executed; none if nothing is left and the model
    /// is asked again.
    pub(super) fn without_repeated_calls(
        &mut self,
        mut response: ModelResponse,
    ) -> Option<ModelResponse> {
        let demands_call = self.choice().is_some_and(|choice| choice.demands_call());
        if !self.nudges() || demands_call {
            return Some(response);
        }
        let binding = self.binding();
        let is_repeated = |item: &Item| match item {
            Item::FunctionCall(call) => self.repetitions(call, &binding).is_some(),
            _ => false,
        };
        let repeated: Vec<bool> = response.items.iter().map(is_repeated).collect();
        let is_call = |item: &Item| matches!(item, Item::FunctionCall(_));
        let calls = response.items.iter().filter(|item| is_call(item)).count();
        let left_out = repeated.iter().filter(|it| **it).count();
        if left_out < calls {
            // The model moves on.
            self.progress().nudges = 0;
        }
        if left_out == 0 {
            return Some(response);
        }
        let source = source_of(&*self.environment.model, &response);
        let mut report = None;
        for (item, _) in response.items.iter().zip(&repeated).filter(|(_, it)| **it) {
            let Item::FunctionCall(call) = item else {
                continue;
            };
            let count = self.repetitions(call, &binding).unwrap_or_default() + 1;
            self.session.call_ids.release(&call.call_id);
            let asked = as_tool_call(call, response.finish, &source);
            let hydration = self.hydrate(&asked, &binding);
            let tool = binding.admit(&call.name).ok();
            let kind = tool.map(|tool| tool.definition().kind().clone());
            let record = self.new_record(call, &hydration, kind);
            if let Some(record) = self.progress().records.get_mut(record) {
                record.status = CallStatus::Suppressed;
            }
            self.progress().counters.calls_suppressed += 1;
            self.emit(EventKind::RepeatedCallSuppressed {
                tool_name: call.name.clone(),
                call_id: call.call_id.clone(),
                count,
            });
            report = report.or_else(|| Some((self.exhausted(call, count), call.call_id.clone())));
        }
        let mut position = 0;
        response.items.retain(|_| {
            position += 1;
            !repeated[position - 1]
        });
        if left_out < calls {
            return Some(response);
        }
        let has_text = response.items.iter().any(|item| !item.text().is_empty());
        if has_text {
            self.keep(response);
        } else {
            let reason = "it only repeats calls whose results are in the conversation".into();
            self.emit(EventKind::AnswerDiscarded { reason });
        }
        if let Some((report, call_id)) = report
            && self.progress().nudges >= MAX_NUDGES
        {
            self.tell_loop(&report, &call_id);
            self.end_loop(&report);
            return None;
        }
        let progress = self.progress();
        progress.nudges += 1;
        progress.is_nudged = true;
        self.begin_request();
        None
    }

    /// The report of a model that repeats a call in spite of all nudges.
    fn exhausted(&self, call: &FunctionCall, count: usize) -> LoopReport {
        let detection = &self.environment.options.loop_detection;
        LoopReport {
            number: 1,
            kind: LoopKind::Exact {
                tool: cut(&call.name),
                count: count + MAX_NUDGES as usize,
                window: detection.exact_window.saturating_add(1),
            },
            action: LoopAction::Terminate,
        }
    }

    /// Ends the run because of a loop, with a last answer if the run grants one.
    pub(super) fn end_loop(&mut self, report: &LoopReport) {
        let message = format!("Loop detected: {}", report.sentence());
        self.progress().loop_message = Some(message);
        self.reach_limit(LastTurn::Loop);
    }

    /// How many equal results of this call the model has; none if the call has to be executed.
    fn repetitions(&self, call: &FunctionCall, binding: &Binding) -> Option<usize> {
        let needed = self.results_needed(call, binding)?;
        let digest = digest(call);
        let window = self.environment.options.loop_detection.exact_window;
        let mut outputs: Vec<&FunctionCallOutput> = Vec::new();
        let mut results: Vec<String> = Vec::new();
        let mut seen = 0;
        for item in self.session.conversation.items().rev() {
            match item {
                Item::FunctionCallOutput(output) => outputs.push(output),
                Item::FunctionCall(earlier) => {
                    seen += 1;
                    if seen > window {
                        break;
                    }
                    let output = outputs.iter().find(|it| it.call_id == earlier.call_id)?;
                    if self::digest(earlier) != digest {
                        if results.is_empty() && !has_no_effect(earlier, output, binding) {
                            return None;
                        }
                        continue;
                    }
                    // A call that failed may be tried again.
                    if output.is_error {
                        return None;
                    }
                    results.push(output.output.to_text());
                }
                // Whoever asks again wants to know again.
                Item::Message(message) if message.role != Role::Assistant => break,
                Item::Message(_) | Item::Reasoning(_) => {}
                _ => break,
            }
        }
        // Results that differ are those of a call that is meant to be repeated.
        let are_equal = results.iter().all(|result| *result == results[0]);
        (results.len() >= needed && are_equal).then_some(results.len())
    }

    /// How many equal results make a further call of a tool pointless; none if it is never left out.
    fn results_needed(&self, call: &FunctionCall, binding: &Binding) -> Option<usize> {
        let name = call.name.as_str();
        let pick = self.tools.pick_tool().map(ToolName::as_str);
        let is_own = self.tools.is_search(name)
            || pick == Some(name)
            || name == RECALL_TOOL
            || (name == READ_SECTION && self.environment.prompt.is_some());
        let tool = binding.admit(name).ok().filter(|_| !is_own)?;
        let definition = tool.definition();
        if definition.annotations().polling {
            return None;
        }
        if is_repeatable(definition) {
            return Some(1);
        }
        let is_callers =
            !tool.tool().runs_here() && self.environment.executors.find(definition).is_none();
        let admitted = self.environment.options.loop_detection.max_exact;
        is_callers.then(|| admitted.max(1))
    }
}

fn digest(call: &FunctionCall) -> String {
    call_digest(&call.name, &RawArguments::Text(call.arguments.clone()))
}

/// Whether calling a tool again with the same arguments does nothing more.
fn is_repeatable(tool: &ToolDefinition) -> bool {
    let annotations = tool.annotations();
    annotations.idempotent || reads_only(tool)
}

/// Whether a tool changes nothing. The word of an MCP server is enough, trusted or not: at worst a call is left out.
fn reads_only(tool: &ToolDefinition) -> bool {
    let annotations = tool.annotations();
    annotations.read_only || annotations.extra.get("x-mcp-read-only") == Some(&true.into())
}

/// Whether a call cannot have changed what another one results in.
fn has_no_effect(call: &FunctionCall, output: &FunctionCallOutput, binding: &Binding) -> bool {
    match binding.admit(&call.name) {
        Ok(tool) => reads_only(tool.definition()),
        // There was no such tool.
        Err(_) => output.is_error,
    }
}
