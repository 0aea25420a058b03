//! No text makes the compiler panic, overflow the stack or write what the machine refuses.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use haft_concerto::diagnostic::Diagnostics;
use haft_concerto::lex::{TokenKind, lex};
use haft_concerto::load::load;
use haft_concerto::source::SourceMap;
use haft_concerto::{Connections, Options, Source, compile, format};
use proptest::prelude::*;

#[test]
fn a_function_that_is_too_large_is_told_when_it_is_compiled() {
    let pipes = |count: usize| {
        let pipe = "x |> f(1);\n".repeat(count);
        format!("fn f(a: Int, b: Int) -> Int {{ a }} fn large(x: Int) {{\n{pipe}}} large(1);")
    };
    let lets = |count: usize| {
        let lets = (0..count).map(|n| format!("let v{n} = 1;"));
        let lets = lets.collect::<Vec<_>>().join("\n");
        format!("fn large() {{\n{lets}\n}} large();")
    };
    for text in [pipes(66_000), lets(66_000)] {
        let compiled = compile(&Source::new("t.conc", &text), &Options::default());
        assert!(compiled.ir.is_none());
        let error = compiled.diagnostics.iter().find(|it| !it.is_warning());
        let error = error.expect("there is a reason");
        assert_eq!(
            error.text,
            "`large` has more variables than a function may have"
        );
        assert!(error.help.is_some());
    }
    // What is only long compiles.
    withstands(&lets(8_000));
}

/// Every program of the corpus, and those of the reference.
fn programs() -> &'static [String] {
    fn gather(folder: &Path, found: &mut Vec<String>) {
        let mut entries: Vec<PathBuf> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                gather(&path, found);
            } else if path.extension().is_some_and(|it| it == "conc") {
                found.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    static ALL: OnceLock<Vec<String>> = OnceLock::new();
    ALL.get_or_init(|| {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let mut found = Vec::new();
        gather(&tests.join("programs"), &mut found);
        gather(&tests.join("corpus"), &mut found);
        found
    })
}

/// Whatever compiles is loaded; whatever can be read has a usual form, which can be read too.
fn withstands(text: &str) {
    let options = Options {
        connections: Connections::Any,
        ..Options::default()
    };
    let compiled = compile(&Source::new("t.conc", text), &options);
    compiled.render();
    if let Some(ir) = compiled.ir {
        let json = ir.to_json();
        load(ir).unwrap_or_else(|error| panic!("{error}\n{text}\n{json}"));
    }
    if let Ok(once) = format(text) {
        let twice = format(&once).unwrap_or_else(|error| panic!("{error:?}\n{text}\n{once}"));
        assert_eq!(twice, once, "{text}");
    }
}

fn words(text: &str) -> Vec<String> {
    let mut map = SourceMap::new();
    let file = map.add("t.conc", text.to_owned()).unwrap();
    let lexed = lex(file, &mut Diagnostics::default());
    let words = lexed.tokens.iter().filter(|it| it.kind != TokenKind::End);
    words.map(|it| file.slice(it.span).to_owned()).collect()
}

#[derive(Clone, Debug)]
enum Change {
    Drop(prop::sample::Index),
    Double(prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
    Copy(prop::sample::Index, prop::sample::Index),
}

fn changed() -> impl Strategy<Value = String> {
    let change = prop_oneof![
        any::<prop::sample::Index>().prop_map(Change::Drop),
        any::<prop::sample::Index>().prop_map(Change::Double),
        any::<[prop::sample::Index; 2]>().prop_map(|[a, b]| Change::Swap(a, b)),
        any::<[prop::sample::Index; 2]>().prop_map(|[a, b]| Change::Copy(a, b)),
    ];
    let all = programs();
    (0..all.len(), prop::collection::vec(change, 1..4)).prop_map(move |(index, changes)| {
        let mut words = words(&all[index]);
        for change in changes {
            let length = words.len();
            if length == 0 {
                break;
            }
            match change {
                Change::Drop(at) => drop(words.remove(at.index(length))),
                Change::Double(at) => {
                    let word = words[at.index(length)].clone();
                    words.insert(at.index(length), word);
                }
                Change::Swap(a, b) => words.swap(a.index(length), b.index(length)),
                Change::Copy(a, b) => {
                    let word = words[a.index(length)].clone();
                    words[b.index(length)] = word;
                }
            }
        }
        words.join(" ")
    })
}

fn soup() -> impl Strategy<Value = String> {
    let all = "let mut const fn model tool pub use mod if else match for while loop break continue return try \
        catch throw emit await async pipeline stage schema hashmap agent listen ledger memory mock self impl \
        trait enum struct as in with true false nil type mcp + - * / % == != < > <= >= && || ! = += -> => :: . \
        .. ..= | |> ? ?? @ ( ) { } [ ] , ; : x y f Int Array Some None Ok 1 2.5 \"s\" \"${x}\" test param";
    let all: Vec<&str> = all.split_whitespace().collect();
    prop::collection::vec(prop::sample::select(all), 0..60).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn programs_with_mistakes(text in changed()) {
        withstands(&text);
    }

    #[test]
    fn words_in_any_order(text in soup()) {
        withstands(&text);
    }

    #[test]
    fn any_text(text in any::<String>()) {
        withstands(&text);
    }
}

#[test]
fn programs_cut_off_anywhere() {
    for text in programs() {
        let step = 1 + text.len() / 40;
        for end in (0..text.len()).step_by(step) {
            if let Some(text) = text.get(..end) {
                withstands(text);
            }
        }
    }
}

#[test]
fn the_deepest_program_fits_the_stack() {
    // As deep as the parser goes, in each way; the next level is refused.
    for (open, middle, close) in [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("{ let a = ", "1", "; a }"),
        ("if true { ", "1", " } else { 0 }"),
        ("match 1 { _ => ", "1", " }"),
        ("|x| ", "1", ""),
        ("f(", "1", ")"),
        ("try { ", "1", " } catch { 0 }"),
        ("loop { break ", "1", "; }"),
        ("{a: ", "1", "}"),
        ("\"${", "1", "}\""),
        ("1 ?? 2 || 3 && 4 == 5 < 6 + 7 * (", "1", ")"),
        ("for x in ", "[1]", " { x; }"),
    ] {
        let program = |depth: usize| {
            let inner = format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));
            format!("fn f(x: Any) -> Any {{ x }} let a = {inner}; println(a);")
        };
        let reads = |depth: usize| format(&program(depth)).is_ok();
        let deepest = (1..200).rev().find(|depth| reads(*depth));
        let deepest = deepest.unwrap_or_else(|| panic!("nothing of `{open}` can be read"));
        assert!(deepest >= 8, "{open}: {deepest}");
        withstands(&program(deepest));
    }
}

#[test]
fn long_programs_take_time_by_their_length() {
    let count = 20_000;
    withstands(&format!("let a = 1{};", " + 1".repeat(count)));
    withstands(&format!("let a = [{}];", "1, ".repeat(count)));
    withstands(&"let a = 1; println(a);\n".repeat(count));
    withstands(&"fn f() {}\n".repeat(count));
    withstands(&"println(b); // c\n".repeat(count));
}
