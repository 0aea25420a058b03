//! Programs that somebody made large on purpose: they are compiled in time, or told what is too much.
#![allow(clippy::expect_used)] // helpers of tests

use std::collections::BTreeMap;
use std::fmt::Write as _;

use haft_concerto::source::Sources;
use haft_concerto::{Compiled, Connections, Options, Source, check, compile, load};

fn options() -> Options {
    Options {
        connections: Connections::Any,
        ..Options::default()
    }
}

fn checked(text: &str) -> Compiled {
    check(&Source::new("main.conc", text), &options())
}

fn repeated(count: usize, one: impl Fn(usize) -> String) -> String {
    (0..count).map(one).collect()
}

/// Files of which each includes the next two.
struct Doubling;

impl Sources for Doubling {
    fn read(&self, path: &str) -> Option<String> {
        let level: usize = path.trim_end_matches(".conc").get(1..)?.parse().ok()?;
        let next = level + 1;
        let is_last = level == 25;
        Some(if is_last {
            String::new()
        } else {
            format!("mod a{next}; mod b{next};")
        })
    }
}

#[test]
fn files_that_include_two_others_each_come_to_an_end() {
    let source = Source::new("main.conc", "mod a0; println(1);").with(&Doubling);
    let compiled = compile(&source, &options());
    let shown = compiled.render();
    assert!(
        shown.contains("error[E036]: a program has at most 1000 files"),
        "{shown}"
    );
    assert_eq!(shown.matches("E036").count(), 1, "{shown}");
    assert_eq!(compiled.sources.files().len(), 1000);
}

#[test]
fn a_long_way_down_is_not_told_as_a_circle() {
    struct Down;
    impl Sources for Down {
        fn read(&self, path: &str) -> Option<String> {
            let level: usize = path.trim_end_matches(".conc").get(1..)?.parse().ok()?;
            Some(format!("mod a{};", level + 1))
        }
    }
    let source = Source::new("main.conc", "mod a0;").with(&Down);
    let shown = check(&source, &options()).render();
    assert!(
        shown.contains("E036") && !shown.contains("itself"),
        "{shown}"
    );
}

#[test]
fn what_has_no_room_in_the_machine_is_told_with_its_place() {
    let list = repeated(20_001, |_| "1,".to_owned());
    let shown = checked(&format!("fn f() -> Any {{\n  [{list}]\n}}\nf();")).render();
    assert!(
        shown.contains("error[E036]: an expression of `f`"),
        "{shown}"
    );
    let lets = repeated(66_000, |at| format!("let a{at} = {at};\n"));
    let shown = checked(&lets).render();
    assert!(
        shown.contains("error[E036]: `main` has more variables"),
        "{shown}"
    );
    let params = repeated(66_000, |at| format!("_p{at}: Int,"));
    let shown = checked(&format!("fn f({params}) {{}}")).render();
    assert!(
        shown.contains("error[E036]: `f` has more variables"),
        "{shown}"
    );
}

#[test]
fn the_place_of_what_is_too_large_is_in_its_file() {
    let list = repeated(20_001, |_| "g(),".to_owned());
    let part = format!("pub fn g() -> Int {{ 1 }}\npub fn f() -> Any {{\n    [{list}]\n}}\n");
    let files = BTreeMap::from([("part.conc".to_owned(), part)]);
    let source = Source::new("main.conc", "mod part;\nprintln(part::f());\n").with(&files);
    let shown = check(&source, &options()).render();
    assert!(
        shown.starts_with("part.conc:3:"),
        "{}",
        &shown[..200.min(shown.len())]
    );
}

#[test]
fn whatever_is_compiled_can_be_loaded() {
    let mut text = String::from("fn f(x: Int) -> Int { x }\n");
    text += &repeated(3000, |at| {
        format!("println([{at}].map(f) |> len, try {{ {at} }});\n")
    });
    write!(
        text,
        "println([{}]);",
        repeated(15_000, |_| "0,".to_owned())
    )
    .expect("it fits");
    let compiled = compile(&Source::new("main.conc", &text), &options());
    load::load(compiled.ir.expect("it has no errors")).expect("it can be loaded");
}

#[test]
fn schemas_of_schemas_of_schemas_are_not_written_out_without_end() {
    let schemas = repeated(20, |at| {
        let next = at + 1;
        format!("schema S{at} {{ a: S{next}, b: S{next}, c: S{next} }}\n")
    });
    let shown = checked(&format!("{schemas}schema S20 {{ x: Int }}\n")).render();
    assert!(
        shown.contains("error[E036]: the schema `S0` is too large"),
        "{shown}"
    );
}

/// None of these takes minutes. What it takes is not measured here: it does not end, or it does.
#[test]
fn long_programs_are_read_to_their_end() {
    let circle = repeated(20_000, |at| {
        format!("const C{at}: Int = C{}; ", (at + 1) % 20_000)
    });
    let shown = checked(&circle).render();
    assert_eq!(shown.matches("E035").count(), 1);
    let uses = repeated(5_000, |at| format!("use g{at} as g{}; ", at + 1));
    assert!(checked(&format!("fn g0() {{}} {uses}")).has_errors());
    let path = repeated(100_000, |_| "::a".to_owned());
    assert!(checked(&format!("mod a {{}} println(a{path});")).has_errors());
    let variants = repeated(20_000, |at| format!("V{at},"));
    let arms = repeated(20_000, |at| format!("E::V{at} => {at},"));
    let text = format!("enum E {{ {variants} }} println(match E::V7 {{ {arms} }});");
    assert_eq!(checked(&text).render(), "");
    let pipes = repeated(20_000, |_| " |> f".to_owned());
    let text = format!("fn f(x: Int) -> Int {{ x }} println(1{pipes});");
    assert_eq!(checked(&text).render(), "");
}
