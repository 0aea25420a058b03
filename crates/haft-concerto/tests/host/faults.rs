//! What goes wrong between a program and its provider is an `Err`, never a stop (§8).

use haft_models::testing::{Fault, call, fail, fault, say};
use serde_json::json;

use crate::kit::{bodies, manifest, provider, results, run, run_with, stage};

const ASK: &str = r#"
    model M { provider: desk, base: "small" }
    match M.execute("go") { Ok(r) => emit("ok", r.text), Err(e) => emit("error", e) }
    emit("end");
"#;

const ONCE: &str = "[connections.desk.retry]\n";

fn asked(decorators: &str) -> String {
    ASK.replace("model M", &format!("{decorators}\nmodel M"))
}

#[tokio::test]
async fn a_refused_connection() {
    let server = provider([]).await;
    let address = server.base_url();
    server.stop().await;
    let stage = stage(&manifest(&address, ONCE), ASK, |_| {});
    let printed = stage.run().await.unwrap();
    let start =
        "[emit:error] model 'M' failed after 1 attempts: the model's provider cannot be reached";
    assert!(printed.starts_with(start), "{printed}");
    assert!(printed.ends_with("\n[emit:end] nil\n"), "{printed}");
}

#[tokio::test]
async fn a_server_error() {
    let server = provider([fail(500)]).await;
    let printed = run_with(&server, ONCE, ASK).await;
    let start =
        "[emit:error] model 'M' failed after 1 attempts: the model's provider failed (HTTP 500)";
    assert!(printed.starts_with(start), "{printed}");
}

#[tokio::test]
async fn a_refused_key_is_not_tried_again() {
    let server = provider([fail(401), say("not asked")]).await;
    let printed = run(&server, &asked("@retry(max: 3, backoff: \"none\")")).await;
    let start =
        "[emit:error] model 'M' failed after 1 attempts: the model's provider refuses the key";
    assert!(printed.starts_with(start), "{printed}");
    assert_eq!(bodies(&server).len(), 1);
}

#[tokio::test]
async fn an_answer_that_breaks_off() {
    let server = provider([fault(Fault::CutAfterBytes(40)).say("long enough to be cut off")]).await;
    let printed = run_with(&server, ONCE, ASK).await;
    assert!(
        printed.starts_with("[emit:error] model 'M' failed after 1 attempts: "),
        "{printed}"
    );
}

#[tokio::test]
async fn retry_tries_as_often_as_it_says() {
    let server = provider([fail(503), fail(503), say("at last")]).await;
    let program = asked("@log @retry(max: 3, backoff: \"none\")");
    let printed = run(&server, &program).await;
    assert!(
        printed.contains("\"method\": execute, \"attempt\": 3,"),
        "{printed}"
    );
    assert!(printed.contains("[emit:ok] at last\n"), "{printed}");
    let server = provider([fail(503).forever()]).await;
    let printed = run(&server, &asked("@retry(max: 3, backoff: \"none\")")).await;
    assert!(
        printed.starts_with("[emit:error] model 'M' failed after 3 attempts: "),
        "{printed}"
    );
    assert_eq!(bodies(&server).len(), 3);
}

#[tokio::test]
async fn builder_calls_are_tried_again_as_well() {
    let server = provider([fail(503), say("at last")]).await;
    let program = asked("@retry(max: 2, backoff: \"none\")")
        .replace("M.execute", "M.without_tools().execute");
    assert!(
        run(&server, &program)
            .await
            .starts_with("[emit:ok] at last\n")
    );
}

#[tokio::test]
async fn a_connection_says_how_often_requests_are_made() {
    let more =
        "[connections.desk.retry]\nmax_attempts = 3\nbackoff = \"linear\"\ninitial_delay_ms = 1\n";
    let server = provider([fail(503), fail(503), say("at last")]).await;
    assert!(
        run_with(&server, more, ASK)
            .await
            .starts_with("[emit:ok] at last\n")
    );
    let server = provider([fail(503).forever()]).await;
    let printed = run_with(&server, more, ASK).await;
    assert!(
        printed.starts_with("[emit:error] model 'M' failed after 3 attempts: "),
        "{printed}"
    );
}

#[tokio::test]
async fn a_whole_call_may_take_only_so_long() {
    let server = provider([fault(Fault::Hang)]).await;
    let printed = run(&server, &asked("@timeout(seconds: 1)")).await;
    assert_eq!(
        printed,
        "[emit:error] model 'M' timed out after 1s\n[emit:end] nil\n"
    );
}

#[tokio::test]
async fn a_request_may_take_only_so_long() {
    let server = provider([fault(Fault::Hang).times(2)]).await;
    let program = ASK.replace("base: \"small\"", "base: \"small\", timeout: 0.2");
    let printed = run_with(&server, ONCE, &program).await;
    let text = "[emit:error] model 'M' failed after 1 attempts: the model did not answer in time: no whole \
                answer within 0.2s\n";
    assert!(printed.starts_with(text), "{printed}");
    let server = provider([fault(Fault::Hang)]).await;
    let more = "timeout = 0.2\n[connections.desk.retry]\n";
    let printed = run_with(&server, more, ASK).await;
    assert!(printed.contains("no whole answer within 0.2s"), "{printed}");
}

#[tokio::test]
async fn an_answer_cut_by_its_limit_is_the_answer() {
    let server = provider([say("so far").finish(haft_core::FinishReason::Length)]).await;
    assert!(run(&server, ASK).await.starts_with("[emit:ok] so far\n"));
}

#[tokio::test]
async fn a_call_without_a_name_is_answered_like_any_other() {
    let server = provider([call("", json!({})), say("done")]).await;
    let tool = "tool T { @describe(\"x\") pub fn f() -> Int { 1 } }\n";
    let asked = ASK.replace("\"small\"", "\"small\", tools: [T]");
    let printed = run(&server, &format!("{tool}{asked}")).await;
    assert_eq!(printed, "[emit:ok] done\n[emit:end] nil\n");
    let bodies = bodies(&server);
    assert_eq!(results(&bodies[1]).len(), 1);
}
