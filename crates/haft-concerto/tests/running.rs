//! What the emitter writes does what the source says, on the machine.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use haft_concerto::host::Offline;
use haft_concerto::load::load;
use haft_concerto::natives::Permissions;
use haft_concerto::vm::{Limits, Machine, Output};
use haft_concerto::{Connections, Options, Source, compile};

#[derive(Clone, Default)]
struct Printed(Arc<Mutex<String>>);

impl Output for Printed {
    fn print(&mut self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }

    fn log(&mut self, line: &str) {
        self.print(line);
    }
}

fn run(text: &str) -> String {
    let options = Options {
        connections: Connections::Any,
        ..Options::default()
    };
    let compiled = compile(&Source::new("t.conc", text), &options);
    assert!(!compiled.has_errors(), "{}", compiled.render());
    let program = load(compiled.ir.unwrap()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let printed = Printed::default();
    let output = Box::new(printed.clone());
    let mut machine = Machine::new(program, Permissions::default(), Limits::default(), output);
    let emitted = printed.clone();
    let mut host = Offline::new(&mut machine, move |_, channel, payload| {
        if !channel.starts_with("pipeline:") {
            let mut out = emitted.0.lock().unwrap();
            writeln!(out, "[emit:{channel}] {payload}").unwrap();
        }
    });
    let ended = host.run();
    drop(host);
    let mut text = printed.0.lock().unwrap().clone();
    if let Err(error) = ended {
        writeln!(text, "runtime error: {error}").unwrap();
    }
    text
}

macro_rules! programs {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            let source = include_str!(concat!("programs/", stringify!($name), ".conc"));
            assert_eq!(run(source), include_str!(concat!("programs/", stringify!($name), ".out")));
        }
    )*};
}

programs! { a b c d f h }

#[test]
fn j() {
    assert_eq!(run(include_str!("programs/j.conc")), "18\n");
}

#[test]
fn every_form_of_the_grammar_loads() {
    let options = Options {
        connections: Connections::Any,
        ..Options::default()
    };
    let compiled = compile(
        &Source::new("every.conc", include_str!("programs/every.conc")),
        &options,
    );
    load(compiled.ir.unwrap()).unwrap();
}

#[test]
fn loops_are_left_from_the_middle_of_expressions() {
    assert_eq!(
        run(
            "let x = for i in 0..9 { println(1 + [i, if i == 2 { break i * 10; } else { 0 }][1]); }; println(x);"
        ),
        "1\n1\n20\n"
    );
    assert_eq!(
        run("for i in 0..3 { let y = 5 + (if i == 1 { continue } else { i }); println(y); }"),
        "5\n7\n"
    );
    assert_eq!(
        run(
            "let r = loop { try { break 7; } catch { 0 }; }; println(r); println(try { throw 1; } catch Int(e) { e + 1 });"
        ),
        "7\n2\n"
    );
    assert_eq!(
        run("let mut n = 0; while true { n += 1; if n < 3 { continue; } break; } println(n);"),
        "3\n"
    );
    assert_eq!(
        run("for a in [1, 2] { for b in [1, 2] { if b == 2 { break; } println(a, b); } }"),
        "1 1\n2 1\n"
    );
}

#[test]
fn closures_capture_values() {
    assert_eq!(
        run("let mut b = 10; let f = |x| x + b; b = 20; println(f(1), b);"),
        "11 20\n"
    );
    assert_eq!(
        run("let a = 1; let f = |x| { let g = |y| x + y + a; g(10) }; println(f(100));"),
        "111\n"
    );
    assert_eq!(
        run("fn make(n: Int) -> Any { |x| x * n } let f = make(3); println(f(4), make(2)(5));"),
        "12 10\n"
    );
    assert_eq!(run("println([3, 1].map(|x| x * 2));"), "[6, 2]\n");
}

#[test]
fn arguments_come_in_any_form() {
    let function = "fn f(a: Int, b: Int = a + 1, c: Int = 3) -> String { \"${a} ${b} ${c}\" } ";
    assert_eq!(
        run(&format!(
            "{function} println(f(1)); println(f(1, c: 9)); println(f(c: 7, a: 1, b: 2)); println(1 |> f(5)); println(1 |> f);"
        )),
        "1 2 3\n1 2 9\n1 2 7\n1 5 3\n1 2 3\n"
    );
    assert_eq!(
        run(
            "struct P { n: Int } impl P { fn add(self, by: Int) -> Int { self.n + by } } let p = P { n: 1 }; println(p.add(2), P::add(p, 3), 4 |> p.add(), p.add(by: 5));"
        ),
        "3 4 5 6\n"
    );
}

#[test]
fn places_change() {
    assert_eq!(
        run(
            "let mut m = { a: [1] }; m[\"a\"].push(2); m[\"b\"] = 3; m[\"a\"][0] += 10; println(m);"
        ),
        "{\"a\": [11, 2], \"b\": 3}\n"
    );
    assert_eq!(
        run(
            "struct C { n: Int, xs: Array<Int> } impl C { fn bump(mut self) -> Int { self.n += 1; self.xs.push(self.n); self.n } } let mut cs = [C { n: 0, xs: [] }]; cs[0].bump(); cs[0].bump(); println(cs[0]);"
        ),
        "C {n: 2, xs: [1, 2]}\n"
    );
}

#[test]
fn operators_decide_early() {
    assert_eq!(
        run(
            "fn t(x: Any) -> Any { println(\"t\", x); x } println(t(0) || t(2) || t(3)); println(t(1) && t(0) && t(5)); if !(t(1) && !t(0)) { println(\"no\"); } else { println(\"yes\"); }"
        ),
        "t 0\nt 2\n2\nt 1\nt 0\n0\nt 1\nt 0\nyes\n"
    );
    assert_eq!(
        run("println(nil ?? None ?? 3, Some(1) ?? 2, 1 ?? 2);"),
        "3 1 1\n"
    );
}

#[test]
fn patterns_match_all_of_their_parts() {
    let text = "enum E { A(Int, Int), B { x: Int } } fn f(v: Any) -> Any { match v { E::A(1, b) => b, E::A(a, _) | E::B { x: a } => a * 10, [1, ..r] => r, (a, b) if a == b => \"pair\", 5..=7 => \"mid\", n @ 8 => n, \"s\" => \"text\", Some(Ok(x)) => x, None => \"none\", _ => \"else\" } } println(f(E::A(1, 2)), f(E::A(3, 2)), f(E::B { x: 4 }), f([1, 2, 3]), f([4, 4]), f(6), f(8), f(\"s\"), f(Some(Ok(9))), f(None), f(1.5));";
    assert_eq!(run(text), "2 30 40 [2, 3] pair mid 8 text 9 none else\n");
    assert_eq!(
        run("let [a, (b, c), ..d] = [1, (2, 3), 4]; println(a, b, c, d);"),
        "1 2 3 [4]\n"
    );
}

#[test]
fn raising_goes_to_who_takes_it() {
    assert_eq!(
        run(
            "fn f() -> Result<Int, String> { let v = Err(\"x\")?; Ok(v) } println(f(), try { f()? } catch String(e) { \"c ${e}\" }, try { Ok(1)? }, try { throw 2; });"
        ),
        "Err(x) c x Ok(1) Err(2)\n"
    );
    assert_eq!(
        run("fn f() -> Result<Int, String> { 1 |> Ok()? |> Ok() } println(f());"),
        "Ok(1)\n"
    );
    assert_eq!(
        run("println(try { try { throw 1; } catch String { 0 } } catch Int(e) { e + 5 });"),
        "6\n"
    );
}

#[test]
fn constants_traits_modules_and_tools() {
    assert_eq!(
        run(
            "const A: Int = 2; const B: Int = A * 3; mod m { pub const C: Int = 7; pub fn f() -> Int { C + B } } println(B, m::C, m::f());"
        ),
        "6 7 13\n"
    );
    assert_eq!(
        run(
            "trait T { fn name(self) -> String { \"t\" } fn both(self) -> String { \"${self.name()}!\" } } struct P {} struct Q {} impl T for P {} impl T for Q { fn name(self) -> String { \"q\" } } println(P::name(P {}), Q::both(Q {}), P::T::name(P {}), Q::name(Q {}));"
        ),
        "t q! t q\n"
    );
    assert_eq!(
        run(
            "tool T { count: Int = 5, fn up(mut self, by: Int = 1) -> Int { self.count += by; self.count } } T::up(); println(T.up(by: 10), T::up());"
        ),
        "16 17\n"
    );
    assert_eq!(
        run("let m: Map<String, Int> = {}; println(m, {}, Map::new());"),
        "{} nil {}\n"
    );
}
