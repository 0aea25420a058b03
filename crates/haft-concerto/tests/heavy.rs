//! Programs that do much in one step: limits hold, others come to their turn, cancelling is heard.
#![allow(clippy::expect_used)] // helpers of tests

use std::time::{Duration, Instant};

use haft_concerto::natives::{Grant, Permissions};
use haft_concerto::vm::{Failure, Limits, Machine, Output, Step, Stop};
use haft_concerto::{Connections, Options, Source, compile, load};

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
        .unwrap_or_else(|| panic!("{}\n{text}", compiled.render()));
    let permissions = Permissions {
        fs: Grant::Everything,
        ..Permissions::default()
    };
    let program = load::load(ir).expect("it loads");
    let mut machine = Machine::new(program, permissions, limits, Box::new(Silent));
    if let Some(mut init) = machine.init() {
        assert!(matches!(init.run(&mut machine), Step::Done(_)));
    }
    machine
}

fn run(text: &str, limits: Limits) -> Step {
    let mut machine = machine(text, limits);
    machine.entry().expect("there is a main").run(&mut machine)
}

fn stopped(text: &str, limits: Limits) -> Stop {
    match run(text, limits) {
        Step::Failed(Failure::Stop(stop)) => stop,
        other => panic!("{}: {text}", brief(&other)),
    }
}

/// What it came to, without the values.
fn brief(step: &Step) -> String {
    format!("{step:?}").chars().take(200).collect()
}

fn value(text: &str, limits: Limits) -> String {
    match run(text, limits) {
        Step::Done(value) => value.to_string(),
        other => panic!("{}: {text}", brief(&other)),
    }
}

fn steps(most: u64) -> Limits {
    Limits {
        steps: Some(most),
        ..Limits::default()
    }
}

fn memory(mebibytes: usize) -> Limits {
    Limits {
        memory: mebibytes,
        ..Limits::default()
    }
}

/// What is done with `a` and `b`, which share their parts 2^60 times, each in one instruction.
const WALKS: &[&str] = &[
    "a == b",
    "a != b",
    "if a == b { 1 } else { 2 }",
    "match [a] { [x] if x == b => 1, _ => 2 }",
    "\"${a}\"",
    "\"x\" + a",
    "a + \"x\"",
    "a as String",
    "println(a)",
    "std::log::info(a)",
    "std::fmt::format(\"{}\", [a])",
    "std::fmt::pad_left(a, 3)",
    "std::prompt::template(\"$\" + \"{k}\", { k: a })",
    "std::json::stringify(a)",
    "std::json::stringify_pretty(a)",
    "assert_eq(a, b)",
    "assert_ne(a, b)",
    "[a].contains(b)",
    "[a].index_of(b)",
    "a.join(\", \")",
    "std::string::join(a, \"\")",
    "std::collections::Set::from([a, b])",
    "std::collections::Set::from([a]).contains(b)",
    "std::collections::Set::from([a]).insert(b)",
    "std::collections::Set::from([a]).remove(b)",
    "std::collections::Set::from([a]).union(std::collections::Set::from([b]))",
    "Map::new().get(a)",
    "{ let mut m = Map::new(); m.set(a, 1); m }",
    "h.set(a, 1)",
    "h.get(a)",
    "m.append(\"user\", a)",
    "l.insert(a, [], 1)",
    "l.insert(\"x\", [a], 1)",
    "l.query().from_key(a)",
    "emit(\"x\", a)",
    "emit(\"x\", Some(a))",
    "[1].map(|x| a == b)",
    "[a].map(std::json::stringify)",
    "{ let mut s = \"\"; s += a; s }",
    "{ let mut s = [\"\"]; s[0] += a; s }",
];

fn walk(expression: &str) -> String {
    format!(
        "hashmap h: HashMap<String, Int> = HashMap::new(); memory m: Memory = Memory::new(); ledger l: Ledger = Ledger::new();
         fn main() -> Any {{
             let mut a: Any = [1]; let mut b: Any = [1];
             for i in 0..60 {{ a = [a, a]; b = [b, b]; }}
             let r: Any = {expression};
             r
         }}"
    )
}

#[test]
fn values_longer_than_memory_end_at_the_limit_of_steps() {
    for expression in WALKS {
        let stop = stopped(&walk(expression), steps(300_000));
        assert_eq!(stop, Stop::Steps(300_000), "{expression}");
    }
}

#[test]
fn without_a_limit_of_steps_one_operation_has_its_own() {
    // Texts that are alike for long, each compared with many.
    let text = "fn main() {
        let t = \"ab\".repeat(500000);
        let mut xs = [];
        for _i in 0..100000 { xs.push(t); }
        try { xs.sort(); } catch { println(\"caught\"); }
    }";
    let stop = stopped(text, Limits::default());
    assert_eq!(stop, Stop::Work(1_000_000_000));
    assert_eq!(
        stop.to_string(),
        "max steps of one operation exceeded (1000000000)"
    );
}

#[test]
fn cancelling_is_heard_in_the_middle_of_an_operation() {
    for expression in WALKS {
        let text = walk(expression);
        let mut machine = machine(&text, Limits::default());
        let canceller = machine.canceller();
        let other = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            canceller.cancel();
            Instant::now()
        });
        let mut main = machine.entry().expect("there is a main");
        let step = main.run(&mut machine);
        let ended = Instant::now();
        assert!(
            matches!(step, Step::Failed(Failure::Stop(Stop::Cancelled))),
            "{}: {expression}",
            brief(&step)
        );
        let from = other.join().expect("it did not panic");
        let late = ended.saturating_duration_since(from);
        assert!(late < Duration::from_millis(500), "{late:?}: {expression}");
    }
}

/// Loops whose every step is heavy.
const LOOPS: &[&str] = &[
    "let t = \"ab\".repeat(500000); loop { t.split(\"b\"); }",
    "let t = \"ab\".repeat(500000); loop { t.replace(\"b\", \"cd\"); }",
    "loop { \"ab\".repeat(5000000); }",
    "let t = \"ab\".repeat(500000); loop { t.to_uppercase(); }",
    "let t = \"ab\".repeat(500000); loop { t.contains(\"x\"); }",
    "let t = \"ab\".repeat(500000); loop { t.chars(); }",
    "let t = \"äb\".repeat(500000); loop { t[900000]; }",
    "let t = \"äb\".repeat(500000); loop { t[5..900000]; }",
    "let t = \"ab\".repeat(500000); loop { std::crypto::sha256(t); }",
    "let t = \"ab\".repeat(500000); let u = \"ab\".repeat(500000); loop { t == u; }",
    "let t = \"ab\".repeat(500000); let u = \"ab\".repeat(500000); loop { t < u; }",
    "let t = \"ab\".repeat(500000); loop { let u = t + \"x\"; }",
    "let t = \"[1,2]\".repeat(100000); loop { std::json::parse(\"[${t}]\"); }",
    "let x = \"a\".repeat(100000).chars(); loop { x.join(\"\"); }",
    "let x = \"a\".repeat(100000).chars(); loop { x.contains(\"b\"); }",
    "let x = \"a\".repeat(100000).chars(); loop { x.enumerate(); }",
    "let x = \"a\".repeat(100000).chars(); loop { x.slice(1, 90000); }",
    "let x = \"a\".repeat(100000).chars(); loop { x[1..]; }",
    "let x = \"a\".repeat(100000).chars(); loop { x.concat(x); }",
    "let x = \"a\".repeat(100000).chars(); loop { let mut y = x; y.push(1); }",
    "let x = \"a\".repeat(100000).chars(); loop { let mut y = x; y[0] = 1; }",
    "let x = \"a\".repeat(100000).chars(); loop { let mut y = x; y.sort(); }",
    "let x = \"a\".repeat(100000).chars(); loop { let mut y = x; y.reverse(); }",
    "let mut x = \"a\".repeat(100000).chars(); loop { x.insert(0, 1); x.remove(0); }",
    "let x = \"a\".repeat(100000).chars(); loop { match x { [_, ..r] => r, _ => x }; }",
    "let x = \"a\".repeat(100000).chars(); loop { x.map(typeof); }",
    "let x = \"a\".repeat(100000).chars(); let mut s = std::collections::Stack::new(); for c in x { s = s.push(c); }",
    "let mut m = Map::new(); for i in 0..50000 { m.set(i, i); } loop { m.keys(); m.values(); }",
    "let mut m = Map::new(); for i in 0..50000 { m.set(i, i); } loop { m.remove(\"x\"); }",
    "let mut m = Map::new(); for i in 0..50000 { m.set(i, i); } loop { let mut n = m; n[\"x\"] = 1; }",
    "for i in 0..50000 { h.set(i, i); } loop { h.keys(); }",
    "for i in 0..50000 { h.set(i, i); } loop { h.query(|k, v| false); }",
    "for i in 0..20000 { m.append(\"user\", \"x\"); } loop { m.messages(); }",
    "for i in 0..1000 { l.insert(\"${i}\", [\"a b c\"], i); } loop { l.query().from_key(\"c\"); }",
    "for i in 0..1000 { l.insert(\"${i}\", [\"a b c\"], i); } loop { l.query().from_identifier(\"c\"); }",
];

fn repeated(body: &str) -> String {
    format!(
        "hashmap h: HashMap<String, Int> = HashMap::new(); memory m: Memory = Memory::new(); ledger l: Ledger = Ledger::new();
         fn main() {{ {body} }}"
    )
}

#[test]
fn heavy_steps_count_as_many() {
    for body in LOOPS {
        let began = Instant::now();
        let stop = stopped(&repeated(body), steps(1_000_000));
        assert_eq!(stop, Stop::Steps(1_000_000), "{body}");
        let took = began.elapsed();
        assert!(took < Duration::from_secs(8), "{took:?}: {body}");
    }
}

#[test]
fn a_fiber_gives_way_soon_after_a_heavy_step() {
    for body in LOOPS {
        let mut machine = machine(&repeated(body), Limits::default());
        let mut fiber = machine.entry().expect("main").in_slices(500_000);
        for _ in 0..3 {
            let before = fiber.spent();
            let step = fiber.run(&mut machine);
            assert!(matches!(step, Step::Paused), "{}: {body}", brief(&step));
            let spent = fiber.spent() - before;
            assert!(spent < 5_000_000, "{spent} steps: {body}");
        }
    }
}

#[test]
fn sets_of_many_are_made_in_time_by_their_length() {
    let text = "fn main() -> Int {
        let xs = (0..100000 |> numbers());
        let s = std::collections::Set::from(xs.concat(xs));
        let t = std::collections::Set::from(xs.map(|x| x + 50000));
        s.len() + s.union(t).len() + s.intersection(t).len() + s.difference(t).len()
    }
    fn numbers(r: Any) -> Array<Int> { let mut xs = []; for i in r { xs.push(i); } xs }";
    assert_eq!(value(text, steps(20_000_000)), "350000");
}

#[test]
fn large_values_of_a_set_are_told_apart_by_their_parts() {
    // Structs of many fields, lists that begin alike, and those within others.
    for item in [
        "P { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 9, j: i }",
        "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, i]",
        "(\"x\".repeat(200) + \"${i}\").chars()",
        "Some([{ k: [i] }])",
    ] {
        let text = format!(
            "struct P {{ a: Int, b: Int, c: Int, d: Int, e: Int, f: Int, g: Int, h: Int, i: Int, j: Int }}
             fn main() -> Int {{ let mut xs = []; for i in 0..3000 {{ xs.push({item}); }}
             std::collections::Set::from(xs).len() }}"
        );
        assert_eq!(value(&text, steps(4_000_000)), "3000", "{item}");
    }
}

#[test]
fn memory_is_asked_for_before_it_is_taken() {
    // Each would be some hundred MiB.
    for expression in [
        "\"x\".repeat(1500000).split(\"\")",
        "\"x\".repeat(1500000).chars()",
        "\"x\\n\".repeat(1500000).lines()",
        "\"x\".repeat(7000000).to_uppercase()",
        "\"x\".repeat(7000000).to_lowercase()",
        "\"x\".repeat(7000000).reverse()",
        "\"x\".repeat(700000).replace(\"x\", \"yyyyyyyyyyyyyyyyyyyyyyyyy\")",
        "std::string::repeat(\"x\", 100000000)",
        "\"${\"x\".repeat(5000000)}${\"x\".repeat(5000000)}\"",
        "std::fmt::format(\"{}{}\", [\"x\".repeat(4000000), \"x\".repeat(4000000)])",
        "std::fmt::pad_left(\"x\", 100000000)",
        "std::fmt::pad_right(\"x\", 100000000)",
        "std::fmt::pad_left(\"x\", 100000000, \"ä\")",
        "std::fmt::indent(\"x\\n\".repeat(1000), 100000)",
        "std::crypto::random_bytes(100000000)",
        "std::json::parse(\"[\" + \"1,\".repeat(1000000) + \"1]\")",
        "std::json::parse(\"[\" + \"{},\".repeat(100000) + \"1]\")",
        "std::json::parse(\"[\" + \"[],\".repeat(500000) + \"1]\")",
        "std::json::stringify([\"\\n\".repeat(5000000)])",
        "\"x\".repeat(400000).chars().enumerate()",
        "{ let c = \"x\".repeat(300000).chars(); c.concat(c) }",
        "{ let t = \"x\".repeat(1000000); [t, t, t, t, t, t, t, t, t].join(\"\") }",
        "{ let t = \"x\".repeat(1000000); [t, t, t, t, t, t, t, t, t] as String }",
        "{ let t = \"x\".repeat(3000000); std::prompt::template(\"$\" + \"{a}$\" + \"{a}$\" + \"{a}\", { a: t }) }",
        "{ let mut m = Map::new(); for i in 0..200000 { m.set(i, i); } m.entries() }",
        "{ for i in 0..100000 { m.append(\"user\", \"x\"); } m.messages() }",
        "[1, 2, 3, 4, 5, 6, 7, 8, 9].map(|x| \"${x}\".repeat(1000000))",
    ] {
        let text = repeated(&format!("let r: Any = {expression};"));
        assert_eq!(stopped(&text, memory(8)), Stop::Memory(8), "{expression}");
    }
}

#[test]
fn built_ins_that_are_values_ask_for_memory_too() {
    for body in [
        "let f = std::string::replace; f(\"x\".repeat(100000), \"x\", \"y\".repeat(1000)).len()",
        "let t = \"x\".repeat(4000000); let mut l = []; for _i in 0..2000 { l.push(t); } \
         l.map(std::string::to_upper).len()",
        "let t = \"x\".repeat(3000000); let mut l = []; for _i in 0..1000 { l.push(t); } let f = println; f(l)",
        "let t = \"x\".repeat(3000000); let mut l = []; for _i in 0..1000 { l.push(t); } let mut hh = h; \
         hh.set(l, 1)",
    ] {
        let text = format!(
            "hashmap h: HashMap<Any, Int> = HashMap::new();\nfn main() -> Any {{ {body} }}"
        );
        assert_eq!(stopped(&text, memory(32)), Stop::Memory(32), "{body}");
    }
    // What was let go before is no reason to refuse.
    let text = "fn main() -> Any { let f = std::string::repeat; let mut n = 0; \
                for _i in 0..50 { n += f(\"x\", 4000000).len(); } n }";
    assert_eq!(value(text, memory(32)), "200000000");
}

#[test]
fn defaults_of_schemas_are_under_the_same_limits() {
    let text = |default: &str| {
        format!(
            "fn spin() -> Int {{ let mut i = 0; while true {{ i += 1; }} i }}\n\
             fn stop() -> Int {{ panic(\"enough\"); }}\n\
             fn say() -> Int {{ emit(\"x\", 1); 1 }}\n\
             schema S {{ a: Int = {default} }}\n\
             fn main() -> Any {{ try {{ std::json::parse_as<S>(\"{{}}\") }} catch RuntimeError(e) {{ e.message }} }}"
        )
    };
    assert_eq!(
        stopped(&text("spin()"), steps(100_000)),
        Stop::Steps(100_000)
    );
    assert_eq!(
        stopped(&text("spin()"), Limits::default()),
        Stop::Work(10_000_000)
    );
    assert_eq!(
        stopped(&text("stop()"), Limits::default()),
        Stop::Panic("enough".to_owned())
    );
    assert_eq!(value(&text("1 / 0"), Limits::default()), "division by zero");
    assert_eq!(
        value(&text("say()"), Limits::default()),
        "type error: the default of a schema's field cannot emit or wait for somebody"
    );
    assert_eq!(value(&text("2 + 3"), Limits::default()), "Ok(S {a: 5})");
}

#[test]
fn what_was_let_go_makes_room_for_what_is_asked() {
    // Each text fits, but not beside the one before.
    let text = "fn main() -> Int {
        let mut n = 0;
        for _i in 0..5 {
            let t = \"ab\".repeat(2000000);
            n += t.replace(\"a\", \"\").len();
            let mut c = \"x\".repeat(100000).split(\"\");
            c.push(1);
            n += c.len();
        }
        n
    }";
    assert_eq!(value(text, memory(12)), "10500005");
    // Instructions that are done again for want of memory do what they do once.
    let text = "fn main() -> String {
        let mut gone = \"x\".repeat(4000000);
        let mut a = \"y\".repeat(200000).chars();
        let b = a;
        gone = \"\";
        a[0] = \"z\";
        let mut m = { k: a };
        gone = \"x\".repeat(3000000);
        gone = \"\";
        m[\"k\"].push(\"w\");
        m[\"k\"][1] += \"v\";
        let n = m[\"k\"].len();
        \"${a[0]} ${b[0]} ${n} ${m[\"k\"][n - 1]} ${m[\"k\"][1]} ${a[1]} ${gone}\"
    }";
    assert_eq!(value(text, memory(12)), "z y 200001 w yv y ");
}

#[test]
fn calls_within_each_other_count_as_memory() {
    let deep = Limits {
        depth: usize::MAX,
        memory: 8,
        ..Limits::default()
    };
    for text in [
        "fn f(n: Int) -> Int { f(n + 1) + 1 } fn main() { f(0); }",
        "fn f() { f(); } fn main() { f(); }",
        "tool T { @describe(\"x\") pub fn f(n: Int) -> Int { T::f(n + 1) + 1 } } fn main() { T::f(0); }",
        "struct S { n: Int } impl S { fn f(mut self) -> Int { self.n += 1; self.f() + 1 } } fn main() { let mut s = S { n: 0 }; s.f(); }",
        "fn f(n: Int) -> Int { [n].map(|x| f(x + 1)); n } fn main() { f(0); }",
        "fn f(n: Int) -> Int { let a = [1, 2, 3]; f(n + 1) + a[0] } fn main() { f(0); }",
    ] {
        assert_eq!(stopped(text, deep), Stop::Memory(8), "{text}");
    }
}

#[test]
fn nothing_that_is_shown_is_cut() {
    let text = "fn main() -> Int {
        let mut a: Any = 1; let mut b: Any = 2;
        for i in 0..1000 { a = [a]; b = Some([b]); }
        let x = \"${a}\"; let y = \"${b}\";
        let mut m = Map::new();
        m.set(a, 1); m.set([a], 2);
        x.len() * 100000 + y.len() + m.len()
    }";
    assert_eq!(value(text, Limits::default()), "200108003");
}

#[test]
fn built_ins_over_many_elements_need_no_stack() {
    let text = "fn main() -> Int { \"x\".repeat(300000).chars().map(typeof).filter(len).len() }";
    assert_eq!(value(text, Limits::default()), "300000");
}

#[test]
fn ranges_reach_the_largest_number() {
    let text = "fn main() -> String {
        let top = 9223372036854775807;
        let mut seen = [];
        for i in (top - 2)..=top { seen.push(i - top); }
        let mut open = 0;
        for i in (top - 2).. { open += 1; }
        let whole = (-9223372036854775807 - 1)..=top;
        let mut empty = 0;
        for i in 0..(-9223372036854775807 - 1) { empty += 1; }
        let xs = [1, 2, 3];
        let r = (top - 2)..=top;
        \"${seen} ${open} ${r.len()} ${len(r)} ${whole.len()} ${(top..top).len()} ${(top..=top).len()} ${empty} ${xs[1..=top]} ${\"abc\"[2..=top]} ${top..=top}\"
    }";
    assert_eq!(
        value(text, steps(100_000)),
        "[-2, -1, 0] 3 3 3 9223372036854775807 0 1 0 [2, 3] c 9223372036854775807..=9223372036854775807"
    );
}

#[test]
fn only_files_are_read_and_written() {
    use std::process::Command;

    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("heavy");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("it can be made");
    let fifo = folder.join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.is_ok_and(|status| status.success()), "a pipe is made");
    let large = folder.join("large");
    let file = std::fs::File::create(&large).expect("it can be made");
    file.set_len(9 << 20).expect("it can be made long");
    for (path, why) in [
        ("/dev/zero", "not a file"),
        (fifo.to_str().expect("text"), "not a file"),
        (folder.to_str().expect("text"), "not a file"),
        (
            large.to_str().expect("text"),
            "larger than the memory limit",
        ),
    ] {
        for call in ["std::fs::read_file", "std::prompt::from_file"] {
            let text = format!("fn main() -> Any {{ {call}(\"{path}\") }}");
            let expected = format!("Err({path}: {why})");
            assert_eq!(value(&text, memory(8)), expected, "{call}");
        }
    }
    for (path, why) in [
        ("/dev/full", "not a file"),
        (fifo.to_str().expect("text"), "not a file"),
    ] {
        for call in ["std::fs::write_file", "std::fs::append_file"] {
            let text = format!("fn main() -> Any {{ {call}(\"{path}\", \"x\") }}");
            let expected = format!("Err({path}: {why})");
            assert_eq!(value(&text, memory(8)), expected, "{call}");
        }
    }
}
