//! Answers that must have a schema (§8).

use haft_models::testing::{call, say};
use serde_json::json;

use crate::kit::{bodies, messages, provider, run};

const TICKET: &str = r#"
    schema Ticket { title: String, points: Int, urgency: "low" | "high" = "low", owner?: String }
    memory log: Memory = Memory::new();
    tool T { @describe("x") pub fn take(@param("n") n: Int) -> Int { n } }
    @log
    model M { provider: desk, base: "small", tools: [T] }
    match M.with_memory(log).execute_with_schema<Ticket>("file it") {
        Ok(t) => emit("ticket", [typeof(t), t.title, t.points, t.urgency, t.owner]),
        Err(e) => emit("error", e),
    }
    for m in log.messages() { emit("m", "${m.role}: ${m.content}"); }
"#;

const GOOD: &str = r#"{"title":"Leak","points":3,"extra":true}"#;

#[tokio::test]
async fn the_loop_runs_first_and_only_the_final_text_is_validated() {
    let server = provider([
        call("T__take", json!({"n": 1}))
            .say("not json")
            .usage(10, 1),
        say(GOOD).usage(20, 2),
    ])
    .await;
    let printed = run(&server, TICKET).await;
    let expected = format!(
        "[emit:model:log] {{\"model\": M, \"method\": execute_with_schema, \"attempt\": 1, \
         \"schema_attempt\": 1, \"tokens_in\": 30, \"tokens_out\": 3}}\n\
         [emit:ticket] [Ticket, Leak, 3, low, nil]\n[emit:m] user: file it\n[emit:m] assistant: {GOOD}\n"
    );
    assert_eq!(printed, expected);
    let format = &bodies(&server)[0]["response_format"];
    assert_eq!(format["type"], "json_schema");
    assert_eq!(format["json_schema"]["name"], "Ticket");
    let schema = &format["json_schema"]["schema"];
    assert_eq!(schema["properties"]["points"]["type"], "integer");
}

#[tokio::test]
async fn a_mismatch_goes_on_with_the_same_conversation() {
    let server = provider([say("no json"), say(r#"{"title":1}"#), say(GOOD)]).await;
    let printed = run(&server, TICKET).await;
    assert!(printed.contains("\"schema_attempt\": 3"), "{printed}");
    assert!(
        printed.contains("[emit:ticket] [Ticket, Leak, 3, low, nil]"),
        "{printed}"
    );
    assert!(printed.ends_with(&format!(
        "[emit:m] user: file it\n[emit:m] assistant: {GOOD}\n"
    )));
    let bodies = bodies(&server);
    let last = messages(&bodies[2]);
    let roles: Vec<_> = last.iter().map(|(role, _)| *role).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!(last[0].1, "file it");
    assert!(
        last[4].1.contains("title"),
        "it names what is wrong: {}",
        last[4].1
    );
}

#[tokio::test]
async fn three_validations_are_enough_and_nothing_is_remembered() {
    let server = provider([say(r#"{"title":"x"}"#).forever()]).await;
    let printed = run(&server, TICKET).await;
    assert_eq!(
        printed,
        "[emit:error] schema validation failed after 3 attempts: points: is missing\n"
    );
    assert_eq!(bodies(&server).len(), 3);
}

#[tokio::test]
async fn a_call_in_place_of_the_corrected_answer_is_a_failed_validation() {
    let take = |n: u32| call("T__take", json!({"n": n}));
    let mut steps: Vec<_> = (0..6).map(take).collect();
    steps.push(say("no json"));
    steps.extend((6..8).map(take));
    let server = provider(steps).await;
    let printed = run(&server, TICKET).await;
    assert!(
        printed.starts_with("[emit:error] schema validation failed after 3 attempts:"),
        "{printed}"
    );
    assert_eq!(bodies(&server).len(), 9);
}

#[tokio::test]
async fn attempts_and_validations_multiply() {
    let server = provider([say("none").times(3), say(GOOD)]).await;
    let program = TICKET.replace("@log", "@log @retry(max: 2, backoff: \"none\")");
    let printed = run(&server, &program).await;
    assert!(
        printed.contains("\"attempt\": 2, \"schema_attempt\": 1"),
        "{printed}"
    );
    let bodies = bodies(&server);
    assert_eq!(
        messages(&bodies[3]),
        [("user", "file it".to_owned())],
        "it begins anew"
    );
}

#[tokio::test]
async fn a_provider_without_schemas_is_told_in_words() {
    let server = provider([say(GOOD)]).await;
    let text = crate::kit::manifest(&server.base_url(), "").replace("\"openai\"", "\"custom\"");
    let stage = crate::kit::stage(&text, TICKET, |_| {});
    let printed = stage.run().await.unwrap();
    assert!(
        printed.contains("[emit:ticket] [Ticket, Leak, 3, low, nil]"),
        "{printed}"
    );
    let bodies = bodies(&server);
    assert_eq!(bodies[0].get("response_format"), None);
    let (role, words) = &messages(&bodies[0])[0];
    assert_eq!(*role, "system");
    assert!(words.contains("must match this JSON schema"), "{words}");
}

#[tokio::test]
async fn numbers_have_their_declared_type_however_deep_they_lie() {
    let program = r#"
        struct Point { x: Float, n: Int }
        schema Shape { points: Array<Point>, sizes: Array<Float>, most: Option<Float> }
        model M { provider: desk, base: "small" }
        let s = M.execute_with_schema<Shape>("draw").unwrap();
        emit("s", [s.points[0].x / 2, s.points[0].n / 2, s.sizes[0] / 2, s.most / 2]);
    "#;
    let answer = r#"{"points":[{"x":3,"n":3.0}],"sizes":[5],"most":7}"#;
    let server = provider([say(answer)]).await;
    let printed = run(&server, program).await;
    assert_eq!(printed, "[emit:s] [1.5, 1, 2.5, 3.5]\n");
}
