//! Programs as a whole: tests, limits, and the end.

use std::time::Duration;

use haft_concerto::host::{EmitFormat, TestOutcome};
use haft_models::testing::{Fault, fault, say};

use crate::kit::{Printed, bodies, manifest, provider, stage};

#[tokio::test]
async fn tests_run_offline_each_on_a_machine_of_its_own() {
    let program = include_str!("../programs/e.conc");
    let stage = stage(&manifest("http://127.0.0.1:9", ""), program, |setup| {
        setup.mock = true;
    });
    let mut outcomes = Vec::new();
    for place in 0..5 {
        outcomes.push(stage.host.test(place, Box::new(Printed::default())).await);
    }
    let passed = [false, false, false, true].map(TestOutcome::Passed);
    assert_eq!(outcomes[..4], passed);
    let said = "unhandled error: assertion failed: left on purpose";
    let TestOutcome::Failed(why, Some(place)) = &outcomes[4] else {
        panic!("{:?}", outcomes[4]);
    };
    assert_eq!(why, said);
    assert!(place.span.is_some(), "{place}");
}

#[tokio::test]
async fn live_tests_ask_their_models_and_mocks_still_count() {
    let server = provider([say("really")]).await;
    let program = r#"
        model M { provider: desk, base: "small" }
        model N { provider: desk, base: "small" }
        @test fn live() {
            mock N { response: "mocked" }
            assert_eq(M.execute("x").unwrap().text, "really");
            let r = N.without_tools().execute("x").unwrap();
            assert_eq(r.text, "mocked");
            assert_eq([r.tokens_in, r.model], [0, "mock"]);
        }
    "#;
    let stage = stage(&manifest(&server.base_url(), ""), program, |_| {});
    let outcome = stage.host.test(0, Box::new(Printed::default())).await;
    assert_eq!(outcome, TestOutcome::Passed(false));
    assert_eq!(bodies(&server).len(), 1);
}

#[tokio::test]
async fn failures_say_what_and_where() {
    let program = "fn main() {\n    let x = [1];\n    println(x[3]);\n}";
    let stage = stage(&manifest("http://127.0.0.1:9", ""), program, |_| {});
    let failure = stage.run().await.unwrap_err();
    assert_eq!(
        failure.text,
        "index error: index 3 out of bounds (length 1)"
    );
    let place = failure.place.unwrap();
    assert_eq!(
        (place.function.as_str(), place.span.unwrap()[0]),
        ("main", 3)
    );
    let raised = "fn main() -> Result<Int, String> { throw \"bad\"; }";
    let stage = crate::kit::stage(&manifest("http://127.0.0.1:9", ""), raised, |_| {});
    assert_eq!(stage.run().await.unwrap_err().text, "unhandled error: bad");
}

#[tokio::test]
async fn emits_are_shown_as_json_or_not_at_all() {
    let program = "emit(\"a\\\"b\", { \"k\": Some(1) }); emit(\"n\"); println(\"x\");";
    let text = manifest("http://127.0.0.1:9", "");
    let json = stage(&text, program, |setup| setup.emits = EmitFormat::Json);
    let expected = "{\"channel\":\"a\\\"b\",\"payload\":{\"k\":{\"Some\":1}}}\n{\"channel\":\"n\",\"payload\":null}\nx\n";
    assert_eq!(json.run().await.unwrap(), expected);
    let hidden = stage(&text, program, |setup| setup.emits = EmitFormat::Hidden);
    assert_eq!(hidden.run().await.unwrap(), "x\n");
}

#[tokio::test]
async fn steps_are_limited_for_the_program_with_its_tools() {
    let text = manifest("http://127.0.0.1:9", "");
    let stage = stage(&text, "loop { }", |setup| {
        setup.limits.steps = Some(3_000_000);
    });
    let failure = stage.run().await.unwrap_err();
    assert_eq!(failure.text, "max steps exceeded (3000000)");
    assert!(!failure.is_cancelled);
}

#[tokio::test]
async fn cancelling_ends_loops_sleeps_and_requests() {
    for program in [
        "loop { }",
        "fn f(n: Int) -> Int { if n > 60 { n } else { f(n + 1) + f(n + 1) } }\nprintln(f(0));",
        "std::time::sleep(100000);",
        "model M { provider: desk, base: \"small\" } M.execute(\"x\");",
        "try { loop { } } catch { println(\"caught\"); }",
        "loop { emit(\"x\", 1); }",
        // One instruction that does not end in anybody's time, and many that take long.
        "let mut a: Any = [1]; let mut b: Any = [1]; for _i in 0..60 { a = [a, a]; b = [b, b]; } println(a == b);",
        "let mut a: Any = [1]; for _i in 0..60 { a = [a, a]; } emit(\"x\", a);",
        "let t = \"ab\".repeat(5000000); loop { t.to_uppercase(); }",
        "let t = \"ab\".repeat(5000000); while t.replace(\"b\", \"c\").len() > 0 { }",
        "pipeline P(n: Int) -> Int { stage a(n: Int) -> Int { if n > 60 { n } else { P.run(n + 1); P.run(n + 1); n } } } P.run(0);",
    ] {
        let server = provider([fault(Fault::Hang).forever()]).await;
        let stage = stage(&manifest(&server.base_url(), ""), program, |setup| {
            setup.emits = EmitFormat::Hidden;
        });
        let host = stage.host.clone();
        let cancelling = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            host.cancel();
        });
        let ended = tokio::time::timeout(Duration::from_secs(10), stage.run()).await;
        let failure = ended.expect("it ends").unwrap_err();
        assert!(failure.is_cancelled, "{failure}");
        assert_eq!(stage.printed.text(), "");
        cancelling.await.unwrap();
    }
}

#[tokio::test]
async fn a_stage_may_take_only_so_long_whatever_it_does() {
    for body in [
        "M.execute(\"x\")?.text",
        "loop { }",
        "std::time::sleep(60000); \"x\"",
    ] {
        let server = provider([fault(Fault::Hang).forever()]).await;
        let program = format!(
            r#"
            model M {{ provider: desk, base: "small" }}
            pipeline P(n: Int) -> String {{
                @timeout(seconds: 1)
                stage slow(n: Int) -> Result<String, String> {{ Ok({{ {body} }}) }}
            }}
            let r = P.run(1);
            println(r);
            println("on");
        "#
        );
        let stage = stage(&manifest(&server.base_url(), ""), &program, |setup| {
            setup.emits = EmitFormat::Hidden;
        });
        let printed = tokio::time::timeout(Duration::from_secs(20), stage.run()).await;
        let expected = "Err(pipeline 'P' failed at stage 'slow': timeout exceeded (1s))\non\n";
        assert_eq!(printed.expect("it ends").unwrap(), expected, "{body}");
    }
}
