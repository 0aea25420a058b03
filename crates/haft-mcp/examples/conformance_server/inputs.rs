//! The tools that end a round with questions.

use std::collections::BTreeMap;

use haft_mcp::gateway::{
    BackendError, CallOutcome, Client, Input, InputKind, InputNeeded, InputRequest, Reply,
};
use serde_json::{Value, json};

use crate::tools::{form, sampling};

/// What the state must be when it comes back.
const STATE: &str = "fixture-state";

/// Calls `test_input_required_result_` and this.
pub(crate) fn call(
    kind: &str,
    input: &Input,
    client: &Client,
) -> Result<Reply<CallOutcome>, BackendError> {
    match kind {
        "elicitation" => Ok(match text(input, "user_name", "name") {
            Some(name) => said(format!("Hello, {name}!")),
            None => needs([("user_name", name_form())], None),
        }),
        "sampling" => Ok(match input.answers.get("capital_question") {
            Some(answer) => said(json!(answer.as_object()).to_string()),
            None => needs([("capital_question", capital_question())], None),
        }),
        "list_roots" => Ok(match input.answers.get("client_roots") {
            Some(answer) => said(json!(answer.as_object()).to_string()),
            None => needs([("client_roots", InputRequest::Roots)], None),
        }),
        "request_state" | "tampered_state" => match input.answers.get("confirm") {
            Some(_) if input.state.as_deref() == Some(STATE) => Ok(said("state-ok")),
            Some(_) => Err(BackendError::Invalid("the state is not what it was".into())),
            None => Ok(needs([("confirm", confirm_form())], Some(STATE))),
        },
        "multiple_inputs" => Ok(multiple(input)),
        "multi_round" => rounds(input),
        "capabilities" => Ok(offered(input, client)),
        _ => Err(BackendError::UnknownTool(kind.to_owned())),
    }
}

/// What a form that was accepted says under this key.
pub(crate) fn text<'i>(input: &'i Input, answer: &str, key: &str) -> Option<&'i str> {
    input.answers.get(answer)?.content()?.get(key)?.as_str()
}

/// An end with questions.
pub(crate) fn needs<T, const N: usize>(
    requests: [(&str, InputRequest); N],
    state: Option<&str>,
) -> Reply<T> {
    let requests = requests.map(|(key, request)| (key.to_owned(), request));
    Reply::InputRequired(InputNeeded {
        requests: requests.into(),
        state: state.map(ToOwned::to_owned),
    })
}

fn said(text: impl Into<String>) -> Reply<CallOutcome> {
    Reply::Complete(CallOutcome::text(text))
}

/// A form with one field.
pub(crate) fn field(message: &str, key: &str, kind: &str) -> InputRequest {
    let schema: Value = json!({
        "type": "object",
        "properties": {key: {"type": kind}},
        "required": [key]
    });
    form(message, schema)
}

fn name_form() -> InputRequest {
    field("What is your name?", "name", "string")
}

fn capital_question() -> InputRequest {
    sampling("What is the capital of France?", 100)
}

fn confirm_form() -> InputRequest {
    field("Please confirm", "ok", "boolean")
}

fn multiple(input: &Input) -> Reply<CallOutcome> {
    let keys = ["user_name", "greeting", "client_roots"];
    if keys.iter().all(|key| input.answers.contains_key(*key)) {
        return said("All three answers are here.");
    }
    let greeting = sampling("Generate a greeting", 50);
    let requests = [
        ("user_name", name_form()),
        ("greeting", greeting),
        ("client_roots", InputRequest::Roots),
    ];
    needs(requests, Some(STATE))
}

fn rounds(input: &Input) -> Result<Reply<CallOutcome>, BackendError> {
    let first = || field("Step 1: What is your name?", "name", "string");
    let second = || field("Step 2: What is your favorite color?", "color", "string");
    Ok(match input.state.as_deref() {
        None => needs([("step1", first())], Some("round-1:")),
        Some(state) => match state.split_once(':') {
            Some(("round-1", _)) => match text(input, "step1", "name") {
                Some(name) => needs([("step2", second())], Some(&format!("round-2:{name}"))),
                None => needs([("step1", first())], Some("round-1:")),
            },
            Some(("round-2", name)) => match text(input, "step2", "color") {
                Some(color) => said(format!("{name} likes {color}.")),
                None => needs([("step2", second())], Some(state)),
            },
            _ => return Err(BackendError::Invalid("the state is none".into())),
        },
    })
}

/// Asks only what the client offers to answer.
fn offered(input: &Input, client: &Client) -> Reply<CallOutcome> {
    if !input.answers.is_empty() {
        return said("Thank you.");
    }
    let all = [
        ("user_name", InputKind::Form, name_form()),
        (
            "greeting",
            InputKind::Sampling,
            sampling("Generate a greeting", 50),
        ),
        ("client_roots", InputKind::Roots, InputRequest::Roots),
    ];
    let offered = all
        .into_iter()
        .filter(|(_, kind, _)| client.can_answer(*kind));
    let requests: BTreeMap<String, InputRequest> = offered
        .map(|(key, _, request)| (key.to_owned(), request))
        .collect();
    if requests.is_empty() {
        return said("The client offers nothing.");
    }
    Reply::InputRequired(InputNeeded {
        requests,
        state: None,
    })
}
