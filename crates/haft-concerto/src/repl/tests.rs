use super::*;
use crate::compile::Connections;
use crate::host::Offline;
use crate::load::load;
use crate::natives::Permissions;
use crate::vm::{Limits, Machine, Output};

struct Silent;

impl Output for Silent {
    fn print(&mut self, _: &str) {}
    fn log(&mut self, _: &str) {}
}

/// A session on machines that nothing else uses.
struct Session {
    repl: Repl,
    legacy: Legacy,
}

impl Session {
    fn new() -> Self {
        let options = Options {
            connections: Connections::Any,
            ..Options::default()
        };
        Self {
            repl: Repl::new(options),
            legacy: Legacy::default(),
        }
    }

    /// What a piece gives: a value, a failure, or what is wrong with it.
    fn say(&mut self, text: &str) -> String {
        let ready = match self.repl.read(text, &()) {
            Reading::Ready(ready) => *ready,
            Reading::Wrong(wrong) => return wrong[0].render(self.repl.sources()),
            other => return format!("{other:?}"),
        };
        let program = load(ready.ir.clone()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let output = Box::new(Silent);
        let mut machine = Machine::new(program, Permissions::default(), Limits::default(), output);
        let legacy = ready.legacy(std::mem::take(&mut self.legacy));
        let initialises = ready.initialises || legacy.has_functions_in_globals();
        let init = machine.init().filter(|_| initialises);
        let function = machine.function(&ready.function, ready.arguments.clone());
        let mut host = Offline::new(&mut machine, |_, _, _| {});
        if let Some(init) = init {
            host.drive(init).unwrap();
        }
        drop(host);
        machine.inherit(legacy);
        let ended = Offline::new(&mut machine, |_, _, _| {}).drive(function.unwrap());
        self.legacy = machine.leave();
        match ended {
            Ok(value) => {
                let taken = self.repl.take(ready, &value);
                let value = taken.value.map_or_else(String::new, |it| it.to_string());
                format!("{value}{}", taken.forgotten.join(","))
            }
            Err(failure) => format!("failed: {failure}"),
        }
    }
}

#[test]
fn names_and_declarations_stay_and_values_are_shown() {
    let mut session = Session::new();
    assert_eq!(session.say("let x = 2;"), "");
    assert_eq!(session.say("fn twice(n: Int) -> Int { n * 2 }"), "");
    assert_eq!(session.say("twice(x) + 1"), "5");
    assert_eq!(session.say("twice(x);"), "");
    assert_eq!(session.say("let mut xs = [1]; xs.push(x)"), "");
    assert_eq!(session.say("xs.push(9); xs"), "[1, 2, 9]");
    assert_eq!(session.say("let (a, b) = (x, xs); b.len() // three"), "3");
    assert_eq!(session.say("{ \"k\": a }"), "{\"k\": 2}");
    assert_eq!(
        session.say("if a > 1 { \"many\" } else { \"few\" }"),
        "many"
    );
    assert_eq!(session.say("await (a, 1)"), "[2, 1]");
    assert_eq!(session.say("// nothing"), "Empty");
}

#[test]
fn what_fails_leaves_everything_as_it_was() {
    let mut session = Session::new();
    session.say("let mut n = 1;");
    assert_eq!(
        session.say("n = 5; let m = 2; 1 / 0"),
        "failed: division by zero"
    );
    assert_eq!(session.say("n"), "1");
    assert!(session.say("m").starts_with("repl-4.conc:1:1: error[E010]"));
    assert!(session.say("let o = ;").contains("error[E002]"));
    assert!(session.say("n.x(").contains("error[E002]"));
    let immutable = "let fixed = 1; fixed";
    assert_eq!(session.say(immutable), "1");
    assert!(session.say("fixed = 2;").contains("error[E012]"));
    assert_eq!(session.say("n + fixed"), "2");
}

#[test]
fn stores_constants_and_the_state_of_tools_stay() {
    let mut session = Session::new();
    session.say("hashmap h: HashMap<String, Int> = HashMap::new();");
    session.say(
        "tool T { count: Int = 5, pub fn up(mut self) -> Int { self.count += 1; self.count } }",
    );
    // A method that models may call needs words.
    let described =
        "tool T { count: Int = 5, fn up(mut self) -> Int { self.count += 1; self.count } }";
    assert_eq!(session.say(described), "");
    assert_eq!(session.say("h.set(\"a\", 1); T::up()"), "6");
    assert_eq!(session.say("const K: Int = T::up();"), "");
    assert_eq!(session.say("(T::up(), K, h.get(\"a\"))"), "[7, 6, Some(1)]");
}

#[test]
fn closures_live_on_until_something_is_declared_anew() {
    let mut session = Session::new();
    session.say("let by = 3;");
    session.say("let add = |x| x + by;");
    session.say("fn f() -> Int { 1 }");
    session.say("let g = f; let h = [|x| x * 2];");
    assert_eq!(session.say("add(1) + g() + h[0](10)"), "25");
    assert_eq!(session.say("fn f() -> Int { 2 }"), "add,g,h");
    assert_eq!(session.say("f() + by"), "5");
    assert!(session.say("add(1)").contains("error[E010]"));
    assert_eq!(session.say("let k = |x| x + f(); k(1)"), "3");
}

#[test]
fn models_are_asked_and_types_used() {
    let mut session = Session::new();
    session.say("model M { provider: desk, base: \"small\" }");
    session.say("struct P { x: Int } impl P { fn bump(mut self) -> Int { self.x += 1; self.x } }");
    assert_eq!(
        session.say("match M.execute(\"hi\") { Ok(r) => r.text, Err(e) => e }"),
        "[mock response to: hi]"
    );
    assert_eq!(session.say("let mut p = P { x: 1 }; p.bump()"), "2");
    assert_eq!(session.say("p"), "P {x: 2}");
    assert_eq!(session.say("use std::math::abs; abs(-3)"), "3");
}

#[test]
fn what_is_not_mutable_stays_so() {
    let mut session = Session::new();
    session.say("let a = [1]; let m = {\"k\": 1}; let mut b = [1]; let pair = (1, \"x\");");
    assert!(session.say("a.push(2)").contains("error[E012]"));
    assert!(session.say("m.set(\"j\", 2)").contains("error[E012]"));
    assert_eq!(session.say("b.push(2); b = [a[0], m[\"k\"]]; b"), "[1, 1]");
    assert_eq!(
        session.say("let (one, x) = pair; \"${one} ${x} ${a.len()}\""),
        "1 x 1"
    );
}
