//! The machine as a host sees it: effects, fibers beside each other, limits.
#![allow(clippy::expect_used)] // helpers of tests

use haft_concerto::host::{Offline, TestOutcome};
use haft_concerto::natives::Permissions;
use haft_concerto::value::Value;
use haft_concerto::vm::{Effect, Failure, Fiber, Limits, Machine, Output, Step, Stop};
use haft_concerto::{Connections, Options, Source, compile, load};
use serde_json::json;

struct Silent;

impl Output for Silent {
    fn print(&mut self, _: &str) {}
    fn log(&mut self, _: &str) {}
}

fn machine(text: &str, limits: Limits) -> Machine {
    let options = Options {
        connections: Connections::Any,
        ..Options::default()
    };
    let compiled = compile(&Source::new("program.conc", text), &options);
    let ir = compiled
        .ir
        .clone()
        .unwrap_or_else(|| panic!("{}", compiled.render()));
    let program = load::load(ir).expect("it loads");
    let mut machine = Machine::new(program, Permissions::default(), limits, Box::new(Silent));
    if let Some(mut init) = machine.init() {
        assert!(matches!(init.run(&mut machine), Step::Done(_)));
    }
    machine
}

fn go_on(fiber: &mut Fiber, machine: &mut Machine, value: Value) -> Step {
    match fiber.resume(machine, value) {
        Some(step) => step,
        None => fiber.run(machine),
    }
}

const TILL: &str = r#"
tool Till {
    total: Int = 0,
    @describe("Add two amounts")
    pub fn add(mut self, @param("a") a: Int, @param("b") b: Float, @param("c") c: Option<Int>, @param("d") d: Int = 7) -> String {
        self.total += a;
        "${a} ${b} ${c} ${d} ${typeof(b)}"
    }
    @describe("Fails") pub fn odd(self, @param("n") n: Int) -> Result<Int, String> { throw "odd ${n}"; }
    @describe("Faults") pub fn fault(self) -> Int { 1 / (self.total - self.total) }
    fn sum(self) -> Int { self.total }
}
model M { provider: desk, base: "small" }
fn main() -> Int {
    let answer = try { M.with_tools([Till]).execute("hello ${1 + 1}") } catch { Err("caught") };
    println(answer);
    Till::sum()
}
"#;

#[test]
fn tools_run_beside_a_program_that_waits_for_a_model_and_share_its_state() {
    let mut machine = machine(TILL, Limits::default());
    let mut main = machine.entry().expect("there is a main");
    let Step::Effect(Effect::Model(call)) = main.run(&mut machine) else {
        panic!("the program asks its model");
    };
    assert_eq!((&*call.model, &*call.method), ("M", "execute"));
    assert_eq!(call.prompt, "hello 2");
    assert_eq!(&*call.builder.expect("it has tools").tools[0].name, "Till");

    let arguments = json!({"a": 5, "b": 2, "c": null});
    let arguments = arguments.as_object().expect("an object");
    let mut tool = machine
        .tool("Till", "add", arguments)
        .expect("there is one");
    let Step::Done(value) = tool.run(&mut machine) else {
        panic!("it returns")
    };
    assert_eq!(value.to_string(), "5 2 None 7 Float");

    let arguments = json!({"a": 1, "b": 0.5, "c": 3, "d": 0});
    let arguments = arguments.as_object().expect("an object");
    let mut tool = machine
        .tool("Till", "add", arguments)
        .expect("there is one");
    let Step::Done(value) = tool.run(&mut machine) else {
        panic!("it returns")
    };
    assert_eq!(value.to_string(), "1 0.5 Some(3) 0 Float");

    let step = go_on(&mut main, &mut machine, Value::ok(Value::from("fine")));
    assert!(matches!(step, Step::Done(Value::Int(6))), "{step:?}");
}

#[test]
fn what_a_tool_raises_stays_in_its_fiber() {
    let mut machine = machine(TILL, Limits::default());
    let mut main = machine.entry().expect("there is a main");
    // The `try` of the waiting program must not catch it.
    assert!(matches!(main.run(&mut machine), Step::Effect(_)));
    let arguments = json!({"n": 7});
    let arguments = arguments.as_object().expect("an object");
    let mut tool = machine
        .tool("Till", "odd", arguments)
        .expect("there is one");
    match tool.run(&mut machine) {
        Step::Done(Value::Err(error)) => assert_eq!(error.get().to_string(), "odd 7"),
        other => panic!("{other:?}"),
    }
    let mut tool = machine
        .tool("Till", "fault", &serde_json::Map::new())
        .expect("there is one");
    match tool.run(&mut machine) {
        Step::Failed(failure @ Failure::Fault(_)) => {
            assert_eq!(failure.to_string(), "division by zero");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        tool.place(&machine).map(|(name, _)| name).as_deref(),
        Some("Till::fault")
    );
}

#[test]
fn a_failure_of_the_host_can_be_caught_like_any_other() {
    let mut machine = machine(TILL, Limits::default());
    let mut main = machine.entry().expect("there is a main");
    assert!(matches!(main.run(&mut machine), Step::Effect(_)));
    let step = main.fail(&mut machine, Failure::Raised(Value::from("gone")));
    assert!(step.is_none());
    assert!(matches!(main.run(&mut machine), Step::Done(Value::Int(0))));
}

#[test]
fn effects_come_back_into_the_middle_of_expressions() {
    let text = r#"fn main() -> Array<Any> { [1, await emit("a", 2), [10].map(|x| { std::time::sleep(5); x + 1 })] }"#;
    let text = text.replace("fn main", "async fn main");
    let mut machine = machine(&text, Limits::default());
    let mut main = machine.entry().expect("there is a main");
    assert!(matches!(
        main.run(&mut machine),
        Step::Effect(Effect::Emit { wait: true, .. })
    ));
    let step = go_on(&mut main, &mut machine, Value::Int(7));
    assert!(matches!(step, Step::Effect(Effect::Sleep(_))));
    let Step::Done(value) = go_on(&mut main, &mut machine, Value::Nil) else {
        panic!("it is over");
    };
    assert_eq!(value.to_string(), "[1, 7, [11]]");
}

fn stopped(text: &str, limits: Limits) -> Stop {
    let mut machine = machine(text, limits);
    let mut main = machine.entry().expect("there is a main");
    match main.run(&mut machine) {
        Step::Failed(Failure::Stop(stop)) => stop,
        other => panic!("{other:?}"),
    }
}

#[test]
fn endless_programs_end_at_their_limits_whatever_they_catch() {
    let steps = Limits {
        steps: Some(10_000),
        ..Limits::default()
    };
    let text = "fn main() { loop { try { loop { } } catch { } } }";
    assert_eq!(stopped(text, steps), Stop::Steps(10_000));

    let memory = Limits {
        memory: 8,
        ..Limits::default()
    };
    for text in [
        "fn main() { let mut xs = []; loop { xs.push([1]); } }",
        "fn main() { let mut s = \"0123456789abcdef\"; loop { s = s + s; } }",
        "fn main() { let mut s = \"\"; loop { s += \"0123456789abcdef\"; } }",
        "fn main() { let mut m = Map::new(); let mut i = 0; loop { m[\"k${i}\"] = i; i += 1; } }",
        "fn main() { println(\"x\".repeat(100000000000)); }",
        "hashmap h: HashMap<Int, Int> = HashMap::new(); fn main() { let mut i = 0; loop { h.set(i, i); i += 1; } }",
        "fn f(xs: Array<Int>) -> Int { f(xs.concat(xs)) } fn main() { f([1, 2, 3]); }",
    ] {
        assert_eq!(stopped(text, memory), Stop::Memory(8), "{text}");
    }

    let depth = Limits {
        depth: 50,
        ..Limits::default()
    };
    let text = "fn f(n: Int) -> Int { try { f(n + 1) } catch { 0 } } fn main() { f(0); }";
    assert_eq!(stopped(text, depth), Stop::Depth(50));
}

#[test]
fn what_is_let_go_does_not_count_as_memory() {
    let text = "fn main() -> Int { let mut n = 0; for i in 0..20000 { let xs = [i, i, i, i, i, i, i, i].concat([i]); n += xs.len(); } n }";
    let mut machine = machine(
        text,
        Limits {
            memory: 1,
            ..Limits::default()
        },
    );
    let mut main = machine.entry().expect("there is a main");
    assert!(matches!(
        main.run(&mut machine),
        Step::Done(Value::Int(180_000))
    ));
}

#[test]
fn a_cancelled_machine_stops() {
    let mut machine = machine("fn main() { loop { } }", Limits::default());
    let canceller = machine.canceller();
    let other = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        canceller.cancel();
    });
    let mut main = machine.entry().expect("there is a main");
    let step = main.run(&mut machine);
    assert!(
        matches!(step, Step::Failed(Failure::Stop(Stop::Cancelled))),
        "{step:?}"
    );
    other.join().expect("it did not panic");
}

#[test]
fn machines_and_fibers_may_move_between_threads() {
    fn sendable<T: Send>(_: &T) {}
    let machine = machine(TILL, Limits::default());
    sendable(&machine);
    sendable(&machine.entry().expect("there is a main"));
}

const TESTS: &str = r#"
schema Verdict { pass: Bool, reason: String }
model Judge { provider: desk, base: "small" }
hashmap seen: HashMap<String, Int> = HashMap::new();
fn review(text: String) -> String {
    match Judge.execute_with_schema<Verdict>(text) {
        Ok(v) => { emit("verdict", v.reason); if v.pass { "pass" } else { "fail" } },
        Err(e) => "error: ${e}",
    }
}
@test
fn passing_review() {
    mock Judge { response: "{\"pass\": true, \"reason\": \"clear\"}" }
    seen.set("a", 1);
    assert_eq(review("essay"), "pass");
    let all = test_emits();
    assert_eq(all[0].channel, "verdict");
    assert_eq(all[0].payload, "clear");
}
@test("judge :: provider down")
fn provider_down() { mock Judge { error: "503" } assert_eq(review("essay"), "error: 503"); assert_eq(seen.len(), 0); }
@test("judge :: wrong shape")
fn wrong_shape() { mock Judge { response: "{\"pass\": \"yes\"}" } assert(Judge.execute_with_schema<Verdict>("x").is_err(), "must not validate"); }
@test @expect_fail("2 != 3")
fn arithmetic_slip() { assert_eq(1 + 1, 3); }
@test @expect_fail("something else")
fn other_slip() { assert_eq(1 + 1, 3); }
@test
fn broken() { assert(false, "left on purpose"); }
fn main() {}
"#;

#[test]
fn tests_of_a_program_end_as_they_should() {
    let outcomes: Vec<TestOutcome> = (0..6)
        .map(|place| {
            // Each has a machine of its own: nothing that one stores is there for the next.
            let mut machine = machine(TESTS, Limits::default());
            Offline::new(&mut machine, |_, _, _| {}).test(place)
        })
        .collect();
    let failed = |text: &str| TestOutcome::Failed(text.to_owned(), None);
    assert_eq!(
        outcomes,
        [
            TestOutcome::Passed(false),
            TestOutcome::Passed(false),
            TestOutcome::Passed(false),
            TestOutcome::Passed(true),
            failed(
                "expected a failure with 'something else', got: unhandled error: assertion failed: 2 != 3"
            ),
            failed("unhandled error: assertion failed: left on purpose"),
        ]
    );
}

#[test]
fn a_fiber_in_slices_gives_way_and_goes_on_where_it_was() {
    for text in [
        "fn main() -> Int { let mut n = 0; while n < 200000 { n += 1; } n }",
        "fn f(n: Int) -> Int { if n < 2 { n } else { f(n - 1) + f(n - 2) } } fn main() -> Int { f(22) }",
    ] {
        let mut machine = machine(text, Limits::default());
        let whole = match machine.entry().expect("main").run(&mut machine) {
            Step::Done(value) => value,
            other => panic!("{other:?}"),
        };
        let mut fiber = machine.entry().expect("main").in_slices(10_000);
        let mut pauses = 0;
        let value = loop {
            match fiber.run(&mut machine) {
                Step::Paused => pauses += 1,
                Step::Done(value) => break value,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(value.to_string(), whole.to_string());
        assert!(pauses > 5, "{pauses} pauses: {text}");
        assert!(fiber.spent() > 50_000);
    }
}

/// Programs that never end, each by another way of calling.
const ENDLESS: [&str; 6] = [
    "fn f(n: Int) -> Int { if n > 60 { n } else { f(n + 1) + f(n + 1) } } fn main() { f(0); }",
    "tool T { pub fn f(n: Int) -> Int { if n > 60 { n } else { T::f(n + 1) + T::f(n + 1) } } } fn main() { T::f(0); }",
    "struct S { n: Int } impl S { fn f(self, n: Int) -> Int { if n > 60 { n } else { self.f(n + 1) + self.f(n + 1) } } } fn main() { S { n: 0 }.f(0); }",
    "struct S { n: Int } impl S { fn f(mut self, n: Int) -> Int { self.n += 1; if n > 60 { n } else { self.f(n + 1) + self.f(n + 1) } } } fn main() { let mut s = S { n: 0 }; s.f(0); }",
    "fn f(n: Int) -> Int { if n > 60 { n } else { [n, n].map(|x| f(x + 1)); n } } fn main() { f(0); }",
    "pipeline P(n: Int) -> Int { stage a(n: Int) -> Int { if n > 60 { n } else { P.run(n + 1); P.run(n + 1); n } } } fn main() { P.run(0); }",
];

#[test]
fn every_way_of_calling_counts_as_steps() {
    for text in ENDLESS {
        let text = text.replace("pub fn", "@describe(\"x\") pub fn");
        let limits = Limits {
            steps: Some(100_000),
            ..Limits::default()
        };
        let mut machine = machine(&text, limits);
        let ended = Offline::new(&mut machine, |_, _, _| {}).run();
        assert_eq!(
            ended.err().as_deref(),
            Some("max steps exceeded (100000)"),
            "{text}"
        );
    }
}

#[test]
fn a_fiber_in_slices_gives_way_whatever_way_it_calls() {
    // The last one asks its host between the stages.
    for text in &ENDLESS[..5] {
        let text = text.replace("pub fn", "@describe(\"x\") pub fn");
        let mut machine = machine(&text, Limits::default());
        let mut fiber = machine.entry().expect("main").in_slices(10_000);
        let step = fiber.run(&mut machine);
        assert!(matches!(step, Step::Paused), "{step:?}: {text}");
    }
}
