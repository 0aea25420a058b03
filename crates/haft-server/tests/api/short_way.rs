//! A request without tools that nobody hears in pieces goes a short way, without the loop. What comes of it is
//! what comes of the same request as a stream, which goes through the loop: the response and its record.

use std::time::Duration;

use haft_core::FinishReason;
use haft_engine::Backoff;
use haft_models::testing::{Step, call, fail, refuse, say, sum_up, think};
use serde_json::{Value, json};

use crate::support::{BACKENDS, Backend, Served, Setup, backend, events, last};
use crate::watch::traces::{settled, trace_of};

/// Everything that a model can come up with, each by its name.
fn scripts() -> Vec<(&'static str, Vec<Step>)> {
    vec![
        ("an answer", vec![say("Hello.").usage(12, 3)]),
        (
            "an answer without usage",
            vec![say("Hello.").without_usage()],
        ),
        ("thoughts", vec![think("Hm. ").say("Yes.").usage(5, 6)]),
        ("thoughts in brief", vec![sum_up("Briefly.").say("Yes.")]),
        ("only thoughts", vec![think("Hm.")]),
        ("two messages", vec![say("One.").say("Two.")]),
        ("nothing", vec![say("")]),
        ("a refusal", vec![refuse("I will not.")]),
        ("words and a refusal", vec![say("Well.").refuse("No.")]),
        (
            "a cut answer",
            vec![say("Half of it").finish(FinishReason::Length)],
        ),
        (
            "a filtered answer",
            vec![say("Half").finish(FinishReason::ContentFilter)],
        ),
        (
            "a call of nothing",
            vec![
                call("nowhere", json!({"a": 1})).usage(4, 4),
                say("There is no such tool.").usage(9, 9),
            ],
        ),
        ("a second try", vec![fail(503), say("Here.").usage(2, 2)]),
        ("no answer", vec![fail(503), fail(503), fail(503)]),
        ("a refused request", vec![fail(400)]),
    ]
}

fn patient(setup: Setup) -> Setup {
    setup.options(|options| {
        options.loop_options.retry = Backoff {
            attempts: 3,
            base: Duration::from_millis(1),
            ..Backoff::default()
        };
    })
}

/// Everything but ids and times: the response, or the error in its place, and the record of the run.
async fn told(server: &Served, streamed: bool, stored: bool) -> (String, Value) {
    let body = json!({
        "input": [{"role": "user", "content": "Go."}], "instructions": "Be brief.",
        "metadata": {"k": "v"}, "temperature": 0.5, "stream": streamed, "store": stored,
    });
    let answer = server.post("/responses", body).await;
    let mut response = match (answer.status, answer.body) {
        (200, Value::String(text)) => last(&events(&text)).clone(),
        (200, body) => body,
        (status, body) => return (format!("{status} {body}"), Value::Null),
    };
    let trace = if stored {
        settled(trace_of(server, &response["id"]).await)
    } else {
        Value::Null
    };
    for key in ["id", "created_at", "completed_at"] {
        response[key] = response[key].is_null().into();
    }
    for item in response["output"].as_array_mut().unwrap() {
        item["id"] = "some".into();
        if item["call_id"].is_string() {
            item["call_id"] = "some".into();
        }
    }
    // As text: the order of members is part of it.
    (response.to_string(), trace)
}

#[tokio::test]
async fn what_comes_of_it_is_what_comes_of_the_loop() {
    for (name, script) in scripts() {
        for protocol in BACKENDS {
            for stored in [true, false] {
                compare(name, &script, protocol, stored).await;
            }
        }
    }
}

async fn compare(name: &str, script: &[Step], protocol: Backend, stored: bool) {
    let mut both = Vec::new();
    for streamed in [false, true] {
        let model = backend(script.to_vec()).await;
        let server = patient(protocol.setup(&model)).serve().await;
        both.push(told(&server, streamed, stored).await);
        let asked = model.received().len();
        assert_eq!(asked, script.len(), "{name}, {protocol:?}");
    }
    assert_eq!(both[0], both[1], "{name}, {protocol:?}, stored: {stored}");
}
