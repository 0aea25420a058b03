//! Calls that take several rounds: the server answers with questions, and is asked again with the
//! answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::desk::Desk;
use crate::error::Cause;
use crate::names::Label;
use crate::question::{Asker, Question, Takes};
use crate::settings::ServerSettings;
use crate::text::visible;

/// What goes with the next round.
pub(super) struct NextRound {
    /// The answers, under the keys of the questions.
    pub(super) responses: Option<BTreeMap<String, Value>>,
    /// What the server wants to see again, to the byte; nothing if it gave nothing.
    pub(super) state: Option<String>,
    /// How long the person took.
    pub(super) asked: Duration,
}

/// The rounds of one call.
pub(super) struct Rounds<'a> {
    desk: &'a Desk,
    asker: Option<Arc<dyn Asker>>,
    server: &'a Label,
    tool: &'a str,
    left: usize,
    most: usize,
    inputs: usize,
    time_left: Duration,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(
        desk: &'a Desk,
        asker: Option<Arc<dyn Asker>>,
        settings: &'a ServerSettings,
        tool: &'a str,
    ) -> Self {
        Self {
            desk,
            asker,
            server: &settings.label,
            tool,
            left: settings.limits.rounds,
            most: settings.limits.rounds,
            inputs: settings.limits.inputs,
            time_left: settings.timeouts.asking,
        }
    }

    /// Asks what the server wants to know. Nobody is asked anything if not everything can be answered.
    pub(super) async fn next(&mut self, result: &Value) -> Result<NextRound, Cause> {
        let wanted = |wanted: String| Cause::InputRequired { wanted };
        let Some(left) = self.left.checked_sub(1) else {
            return Err(wanted(format!("more than {} rounds of input", self.most)));
        };
        self.left = left;
        let state = result.get("requestState").and_then(Value::as_str);
        let state = state.map(str::to_owned);
        let requests = result.get("inputRequests").and_then(Value::as_object);
        let Some(requests) = requests.filter(|requests| !requests.is_empty()) else {
            if state.is_none() {
                return Err(Cause::Unexpected(
                    "the server asks for input and does not say for which".into(),
                ));
            }
            return Ok(NextRound {
                responses: None,
                state,
                asked: Duration::ZERO,
            });
        };
        if requests.len() > self.inputs {
            return Err(wanted(format!(
                "{} questions at once, {} are allowed",
                requests.len(),
                self.inputs
            )));
        }
        let questions = self.questions(requests)?;
        let Some(asker) = self.asker.clone() else {
            // Without one there are no questions left that could be asked.
            return Err(wanted("elicitation/create".into()));
        };
        let before = self.time_left;
        let mut responses = BTreeMap::new();
        for (key, question) in questions {
            let answer = self
                .desk
                .ask_within(&*asker, question, &mut self.time_left)
                .await?;
            responses.insert(key, answer);
        }
        Ok(NextRound {
            responses: Some(responses),
            state,
            asked: before.saturating_sub(self.time_left),
        })
    }

    fn questions(&self, requests: &Map<String, Value>) -> Result<Vec<(String, Question)>, Cause> {
        let method = |request: &Value| request.get("method").and_then(Value::as_str).map(visible);
        let is_elicitation =
            |request: &Value| method(request).as_deref() == Some("elicitation/create");
        // Where somebody can answer, only the rest is to be told.
        let mut others = requests
            .values()
            .filter(|it| !is_elicitation(it))
            .peekable();
        if others.peek().is_some() {
            let named = |request| method(request).unwrap_or_else(|| "something".into());
            let others: Vec<_> = others.map(|it| haft_core::cut(&named(it))).collect();
            return Err(Cause::InputRequired {
                wanted: others.join(", "),
            });
        }
        let takes = self.asker.as_ref().map_or(Takes::NOTHING, |it| it.takes());
        let read = |(key, request): (&String, &Value)| {
            let params = request.get("params").unwrap_or(&Value::Null);
            let question = Question::from_protocol(self.server, Some(self.tool), params);
            let question = question.map_err(Cause::Unexpected)?;
            if !takes.includes(&question.kind) {
                return Err(Cause::InputRequired {
                    wanted: question.wanted(),
                });
            }
            Ok((key.clone(), question))
        };
        requests.iter().map(read).collect()
    }
}
