//! The loop between a model and a program's tools (§9.1).

use std::sync::{Arc, Mutex};

use haft_models::scripted::Step;
use haft_models::testing::{ScriptedCall, call, calls, say};
use serde_json::json;

use crate::kit::{bodies, manifest, messages, provider, results, run, stage, tools};

fn with_ids(list: &[(&str, &str, serde_json::Value)]) -> Step {
    calls(list.iter().map(|(id, name, arguments)| {
        let mut call = ScriptedCall::new(*name, arguments.clone());
        call.id = Some((*id).to_owned());
        call
    }))
}

/// Program I.
#[tokio::test]
async fn program_i() {
    let server = provider([
        with_ids(&[
            ("c1", "Till__add", json!({"a": 19, "b": 23})),
            ("c2", "Till__halve", json!({"n": 7})),
        ]),
        say("Sum 42; 7 is odd."),
    ])
    .await;
    let printed = run(&server, include_str!("../programs/i.conc")).await;
    assert_eq!(printed, "[emit:answer] Sum 42; 7 is odd.\n");
    let bodies = bodies(&server);
    assert_eq!(tools(&bodies[0]).unwrap(), ["Till__add", "Till__halve"]);
    let required = |at: usize| &bodies[0]["tools"][at]["function"]["parameters"]["required"];
    assert_eq!(
        (required(0), required(1)),
        (&json!(["a", "b"]), &json!(["n"]))
    );
    let roles: Vec<&str> = messages(&bodies[1]).iter().map(|(role, _)| *role).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool"]);
    let sent = &bodies[1]["messages"];
    let ids: Vec<_> = sent[2]["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].clone())
        .collect();
    assert_eq!(ids, ["c1", "c2"]);
    assert_eq!(
        sent[3],
        json!({"role": "tool", "tool_call_id": "c1", "content": "42"})
    );
    assert_eq!(
        sent[4],
        json!({"role": "tool", "tool_call_id": "c2", "content": "{\"error\":\"odd amount 7\"}"})
    );
    server.assert_finished();
}

const KINDS: &str = r#"
    struct Point { y: Int, x: Int }
    tool T {
        @describe("x") pub fn text() -> String { "te\"xt" }
        @describe("x") pub fn number() -> Float { 2.0 }
        @describe("x") pub fn point() -> Point { Point { y: 2, x: 1 } }
        @describe("x") pub fn fine() -> Result<Array<Int>, String> { Ok([1, 2]) }
        @describe("x") pub fn some() -> Option<Int> { Some(3) }
        @describe("x") pub fn none() -> Option<Int> { None }
        @describe("x") pub fn nothing() { }
        @describe("x") pub fn wrong() -> Result<Int, String> { Err("no such thing") }
        @describe("x") pub fn thrown() -> Int { let t = "x"; t as Int }
        @describe("x") pub fn fault() -> Int { 1 / 0 }
        @describe("x") fn hidden() -> Int { 1 }
        @describe("x") pub fn take(@param("n") n: Int) -> Int { n }
    }
    model M { provider: desk, base: "small", tools: [T], max_tool_rounds: 30 }
    match M.execute("go") { Ok(r) => emit("ok", [r.text, r.tokens_in, r.tokens_out, r.model]), Err(e) => emit("error", e) }
"#;

#[tokio::test]
async fn every_result_and_every_error_is_json() {
    let cases = [
        ("T__text", json!({}), r#""te\"xt""#),
        ("T__number", json!({}), "2.0"),
        ("T__point", json!({}), r#"{"x":1,"y":2}"#),
        ("T__fine", json!({}), "[1,2]"),
        ("T__some", json!({}), "3"),
        ("T__none", json!({}), "null"),
        ("T__nothing", json!({}), "null"),
        ("T__wrong", json!({}), r#"{"error":"no such thing"}"#),
        (
            "T__thrown",
            json!({}),
            r#"{"error":"cannot cast String \"x\" to Int"}"#,
        ),
        ("T__fault", json!({}), r#"{"error":"division by zero"}"#),
        (
            "T__take",
            json!({}),
            r#"{"error":"Tool 'T__take': invalid arguments: missing field 'n'"}"#,
        ),
    ];
    let list: Vec<_> = cases
        .iter()
        .enumerate()
        .map(|(at, (name, arguments, _))| (format!("c{at}"), *name, arguments.clone()))
        .collect();
    let list: Vec<_> = list
        .iter()
        .map(|(id, name, it)| (id.as_str(), *name, it.clone()))
        .collect();
    let server = provider([with_ids(&list), say("done")]).await;
    let printed = run(&server, KINDS).await;
    assert!(printed.starts_with("[emit:ok] [done,"), "{printed}");
    let bodies = bodies(&server);
    assert!(!tools(&bodies[0]).unwrap().contains(&"T__hidden"));
    let results = results(&bodies[1]);
    for ((name, _, expected), result) in cases.iter().zip(&results) {
        assert_eq!(result, expected, "{name}");
    }
}

#[tokio::test]
async fn unknown_tools_and_broken_json_are_answered_and_the_program_goes_on() {
    let server = provider([
        calls([
            ScriptedCall::new("T__hidden", json!({})),
            ScriptedCall::new("T__take", "{\"n\": 1"),
            ScriptedCall::new("T__take", json!({"n": "one"})),
        ]),
        say("done"),
    ])
    .await;
    run(&server, KINDS).await;
    let results = results(&bodies(&server)[1]);
    let errors: Vec<String> = results
        .iter()
        .map(|it| {
            serde_json::from_str::<serde_json::Value>(it).unwrap()["error"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert!(
        errors[0].starts_with("Unknown tool 'T__hidden'. Available tools: T__text"),
        "{errors:?}"
    );
    assert!(
        errors[1] == "Tool 'T__take': the arguments were cut off. Send the call again.",
        "{errors:?}"
    );
    assert!(
        errors[2].starts_with("Tool 'T__take': invalid arguments: "),
        "{errors:?}"
    );
}

#[tokio::test]
async fn tokens_are_summed_over_all_requests_and_the_model_is_named_by_its_provider() {
    let server = provider([
        call("T__text", json!({})).usage(10, 5),
        say("done").usage(20, 7),
    ])
    .await;
    let printed = run(&server, KINDS).await;
    assert_eq!(printed, "[emit:ok] [done, 30, 12, small]\n");
}

#[tokio::test]
async fn arguments_are_bound_by_name() {
    let server = provider([
        with_ids(&[
            (
                "c1",
                "T__show",
                json!({"f": 2, "o": null, "list": [1, 2.5]}),
            ),
            (
                "c2",
                "T__show",
                json!({"f": 2.5, "o": 3, "d": 1, "list": []}),
            ),
        ]),
        say("done"),
    ])
    .await;
    let program = r#"
        tool T {
            @describe("x")
            pub fn show(@param("f") f: Float, @param("o") o: Option<Int>, @param("d") d: Int = 3 + 4, @param("l") list: Array<Float>) -> String {
                "${typeof(f)} ${f} ${o} ${d} ${list} ${typeof(list)}"
            }
        }
        model M { provider: desk, base: "small", tools: [T] }
        M.execute("go");
    "#;
    run(&server, program).await;
    let bodies = bodies(&server);
    let parameters = &bodies[0]["tools"][0]["function"]["parameters"];
    assert_eq!(parameters["required"], json!(["f", "list"]));
    assert_eq!(parameters["properties"]["o"]["type"], "integer");
    assert_eq!(
        results(&bodies[1]),
        [
            r#""Float 2 None 7 [1, 2.5] Array""#,
            r#""Float 2.5 Some(3) 1 [] Array""#
        ]
    );
}

#[tokio::test]
async fn the_eleventh_round_is_not_run_and_nothing_more_is_asked() {
    let steps = (0..11).map(|n| call("T__take", json!({"n": n})));
    let server = provider(steps).await;
    let program = r#"
        hashmap seen: HashMap<String, Int> = HashMap::new();
        tool T { @describe("x") pub fn take(@param("n") n: Int) -> Int { seen.set("${n}", n); n } }
        model M { provider: desk, base: "small", tools: [T] }
        match M.execute("go") { Ok(r) => emit("ok", r.text), Err(e) => emit("error", e) }
        emit("ran", seen.len());
    "#;
    let printed = run(&server, program).await;
    let error = "model 'M' reached the tool round limit (10)";
    assert_eq!(printed, format!("[emit:error] {error}\n[emit:ran] 10\n"));
    assert_eq!(bodies(&server).len(), 11);
}

#[tokio::test]
async fn a_model_may_say_how_many_rounds() {
    let server = provider([
        call("T__take", json!({"n": 1})),
        call("T__take", json!({"n": 2})),
    ])
    .await;
    let program = r#"
        tool T { @describe("x") pub fn take(@param("n") n: Int) -> Int { n } }
        model M { provider: desk, base: "small", tools: [T], max_tool_rounds: 1 }
        match M.execute("go") { Ok(r) => emit("ok", r.text), Err(e) => emit("error", e) }
    "#;
    let printed = run(&server, program).await;
    assert_eq!(
        printed,
        "[emit:error] model 'M' reached the tool round limit (1)\n"
    );
}

#[tokio::test]
async fn a_model_that_goes_in_circles_gets_an_error_with_the_runs_words() {
    let server = provider([call("T__take", json!({"n": 1})).forever()]).await;
    let program = r#"
        tool T { @describe("x") pub fn take(@param("n") n: Int) -> Int { n } }
        model M { provider: desk, base: "small", tools: [T] }
        match M.execute("go") { Ok(r) => emit("ok", r.text), Err(e) => emit("error", e) }
    "#;
    let printed = run(&server, program).await;
    assert!(
        printed.starts_with("[emit:error] Loop detected: "),
        "{printed}"
    );
}

#[tokio::test]
async fn panic_in_a_tool_stops_the_program() {
    for (body, said) in [
        ("panic(\"enough\")", "panic: enough"),
        ("None.unwrap()", "unhandled error: "),
        (
            "assert(false, \"no\")",
            "unhandled error: assertion failed: no",
        ),
    ] {
        let server = provider([call("T__stop", json!({})), say("never asked")]).await;
        let program = format!(
            r#"
            tool T {{ @describe("x") pub fn stop() -> Int {{ {body}; 1 }} }}
            model M {{ provider: desk, base: "small", tools: [T] }}
            let r = try {{ M.execute("go") }} catch {{ "caught" }};
            emit("not reached", r);
        "#
        );
        let stage = stage(&manifest(&server.base_url(), ""), &program, |_| {});
        let failure = stage.run().await.unwrap_err();
        assert!(failure.text.starts_with(said), "{failure}");
        assert_eq!(stage.printed.text(), "");
        assert_eq!(bodies(&server).len(), 1, "{said}");
    }
}

#[tokio::test]
async fn tools_may_call_models_with_tools() {
    let server = provider([
        call("Ask__expert", json!({"question": "deep"})),
        call("Deep__look", json!({"n": 5})),
        say("inner answer"),
        say("outer answer"),
    ])
    .await;
    let program = r#"
        tool Deep { @describe("x") pub fn look(@param("n") n: Int) -> Int { n * 2 } }
        model Expert { provider: desk, base: "large", tools: [Deep] }
        tool Ask {
            @describe("x") pub fn expert(@param("q") question: String) -> Result<String, String> {
                emit("asking", question);
                Ok(Expert.execute(question)?.text)
            }
        }
        model Desk { provider: desk, base: "small", tools: [Ask] }
        emit("answer", Desk.execute("go").unwrap().text);
    "#;
    let printed = run(&server, program).await;
    assert_eq!(printed, "[emit:asking] deep\n[emit:answer] outer answer\n");
    let bodies = bodies(&server);
    let asked: Vec<_> = bodies
        .iter()
        .map(|it| it["model"].as_str().unwrap())
        .collect();
    assert_eq!(asked, ["small", "large", "large", "small"]);
    assert_eq!(results(&bodies[2]), ["10"]);
    assert_eq!(results(&bodies[3]), [r#""inner answer""#]);
}

#[tokio::test]
async fn calls_of_one_answer_run_one_after_the_other() {
    let server = provider([
        with_ids(&[
            ("c1", "T__slow", json!({"n": 1, "ms": 120})),
            ("c2", "T__slow", json!({"n": 2, "ms": 0})),
        ]),
        say("done"),
    ])
    .await;
    let program = r#"
        tool T {
            count: Int = 0,
            @describe("x") pub fn slow(mut self, @param("n") n: Int, @param("ms") ms: Int) -> Int {
                emit("begin", n); std::time::sleep(ms); emit("end", n); self.count += 1; self.count
            }
        }
        model M { provider: desk, base: "small", tools: [T] }
        M.execute("go");
    "#;
    let printed = run(&server, program).await;
    assert_eq!(
        printed,
        "[emit:begin] 1\n[emit:end] 1\n[emit:begin] 2\n[emit:end] 2\n"
    );
    assert_eq!(results(&bodies(&server)[1]), ["1", "2"]);
}

#[tokio::test]
async fn handlers_hear_emits_and_answer_those_that_wait() {
    let server = provider([]).await;
    let program = r#"
        async fn main() {
            let a = await emit("ask", 20);
            let b = emit("ask", 1);
            let c = await emit("nobody", 1);
            emit("got", [a, b, c]);
        }
    "#;
    let mut stage = stage(&manifest(&server.base_url(), ""), program, |_| {});
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let hear = Arc::clone(&heard);
    stage.host = stage.host.on_emit("ask", move |payload| {
        hear.lock().unwrap().push(payload.to_string());
        async { haft_concerto::value::Value::Int(42) }
    });
    let printed = stage.run().await.unwrap();
    let expected = "[emit:ask] 20\n[emit:ask] 1\n[emit:nobody] 1\n[emit:got] [42, nil, nil]\n";
    assert_eq!(printed, expected);
    assert_eq!(*heard.lock().unwrap(), ["20", "1"]);
}

#[tokio::test]
async fn a_system_prompt_may_be_computed_and_memory_comes_between() {
    let server = provider([say("one"), say("two"), fail_500(), say("four")]).await;
    let program = r#"
        const NAME: String = "Ada";
        memory log: Memory = Memory::new();
        fn who() -> String { "You are ${NAME}." }
        @retry(max: 1)
        model M { provider: desk, base: "small", system_prompt: who(), temperature: 0, max_tokens: 77 }
        log.append("system", "be brief");
        M.with_memory(log).execute("first");
        M.with_memory(log, false).execute("second");
        M.with_memory(log).execute("third");
        M.with_memory(log).execute([1, "x"]);
        for m in log.messages() { emit("m", "${m.role}: ${m.content}"); }
    "#;
    let printed = run(&server, program).await;
    let kept = [
        "system: be brief",
        "user: first",
        "assistant: one",
        "user: [1, x]",
        "assistant: four",
    ];
    let kept = format!("[emit:m] {}\n", kept.join("\n[emit:m] "));
    assert_eq!(
        printed, kept,
        "a failed call and one that does not append leave nothing"
    );
    let bodies = bodies(&server);
    let expected = [
        ("system", "You are Ada."),
        ("system", "be brief"),
        ("user", "first"),
        ("assistant", "one"),
        ("user", "second"),
    ];
    let expected: Vec<_> = expected
        .map(|(role, text)| (role, text.to_owned()))
        .to_vec();
    assert_eq!(messages(&bodies[1]), expected);
    assert_eq!(bodies[0]["temperature"], json!(0.0));
    assert_eq!(bodies[0]["max_tokens"], 77);
}

#[tokio::test]
async fn models_in_tools_of_models_end_somewhere() {
    let server = provider([
        call("Ask__again", json!({})).times(16),
        say("enough").forever(),
    ])
    .await;
    let program = r#"
        tool Ask { @describe("x") pub fn again() -> Result<String, String> { Ok(ask()?) } }
        model M { provider: desk, base: "small", tools: [Ask] }
        fn ask() -> Result<String, String> { Ok(M.execute("again")?.text) }
        fn main() { emit("end", ask()); }
    "#;
    assert_eq!(run(&server, program).await, "[emit:end] Ok(enough)\n");
    let bodies = bodies(&server);
    assert_eq!(bodies.len(), 32);
    let innermost = results(&bodies[16]);
    assert!(innermost[0].contains("deeper than 16"), "{innermost:?}");
}

#[tokio::test]
async fn a_tool_that_takes_too_long_is_an_error_for_the_model_and_stops() {
    let server = provider([call("T__spin", json!({})), say("so be it")]).await;
    let program = r#"
        tool T { @describe("x") pub fn spin() -> Int { loop { } } }
        model M { provider: desk, base: "small", tools: [T] }
        emit("end", M.execute("go").unwrap().text);
    "#;
    let stage = stage(&manifest(&server.base_url(), ""), program, |setup| {
        setup.tool_timeout = std::time::Duration::from_millis(200);
    });
    assert_eq!(stage.run().await.unwrap(), "[emit:end] so be it\n");
    let said = r#"{"error":"Tool 'T__spin' timed out after 0.2s."}"#;
    assert_eq!(results(&bodies(&server)[1]), [said]);
}

fn fail_500() -> Step {
    haft_models::testing::fail(500)
}
