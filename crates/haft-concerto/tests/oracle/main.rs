//! The machine against a second opinion: random pure programs do on it what a small interpreter of
//! their tree does, to the last letter of output and errors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::format_push_string)] // helpers of tests

mod generate;
mod interpret;
mod operate;
mod pattern;
mod place;
mod value;

use std::sync::{Arc, Mutex};

use haft_concerto::diagnostic::Diagnostics;
use haft_concerto::host::Offline;
use haft_concerto::load::load;
use haft_concerto::natives::Permissions;
use haft_concerto::source::SourceMap;
use haft_concerto::vm::{Limits, Machine, Output};
use haft_concerto::{Options, Source, compile, format, read_program};
use proptest::prelude::*;

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

fn machine(text: &str) -> (String, String) {
    let compiled = compile(&Source::new("t.conc", text), &Options::default());
    assert!(!compiled.has_errors(), "{}\n{text}", compiled.render());
    let program = load(compiled.ir.unwrap()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let printed = Printed::default();
    let output = Box::new(printed.clone());
    // Far more than a program of the oracle's size needs: one that goes on is wrong.
    let limits = Limits {
        steps: Some(10_000_000),
        ..Limits::default()
    };
    let mut machine = Machine::new(program, Permissions::default(), limits, output);
    let ended = Offline::new(&mut machine, |_, _, _| {}).run();
    let said = printed.0.lock().unwrap().clone();
    (said, ended.err().unwrap_or_default())
}

fn oracle(text: &str) -> Option<(String, String)> {
    let mut sources = SourceMap::new();
    let mut diagnostics = Diagnostics::default();
    let program = read_program(
        "t.conc",
        text.to_owned(),
        &(),
        &mut sources,
        &mut diagnostics,
    );
    assert!(!diagnostics.has_errors(), "{text}");
    interpret::Oracle::new(&program).run()
}

/// `PROPTEST_CASES` asks for another number of them.
fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(2000)
}

/// The program as IR, without places.
fn meaning(text: &str) -> String {
    fn without_places(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(members) => {
                members.remove("span");
                members.values_mut().for_each(without_places);
            }
            serde_json::Value::Array(list) => list.iter_mut().for_each(without_places),
            _ => {}
        }
    }
    let compiled = compile(&Source::new("t.conc", text), &Options::default());
    assert!(!compiled.has_errors(), "{}\n{text}", compiled.render());
    let mut ir = serde_json::to_value(compiled.ir).unwrap();
    without_places(&mut ir);
    ir.to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, max_shrink_iters: 3000, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_does_what_the_tree_says(bytes in prop::collection::vec(any::<u8>(), 0..450)) {
        let text = generate::program(&bytes);
        if let Some(expected) = oracle(&text) {
            prop_assert_eq!(machine(&text), expected, "{}", text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases() / 20, failure_persistence: None, max_shrink_iters: 3000, ..ProptestConfig::default() })]

    #[test]
    fn the_usual_form_means_the_same(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let text = generate::program(&bytes);
        let once = format(&text).unwrap();
        prop_assert_eq!(meaning(&once), meaning(&text), "{}\n{}", text, once);
        prop_assert_eq!(format(&once).unwrap(), once);
    }
}

/// The test above sees programs that do something.
#[test]
fn most_programs_run_and_many_of_them_fail_somewhere() {
    let mut numbers = 1_u64;
    let mut next = || {
        numbers = numbers
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        numbers.to_le_bytes()[6]
    };
    let (mut ran, mut printed, mut failed) = (0, 0, 0);
    for _ in 0..500 {
        let bytes: Vec<u8> = (0..400).map(|_| next()).collect();
        if let Some((said, error)) = oracle(&generate::program(&bytes)) {
            ran += 1;
            printed += usize::from(said.lines().count() > 2);
            failed += usize::from(!error.is_empty());
        }
    }
    assert!(
        ran > 400 && printed > 200 && failed > 30,
        "{ran} {printed} {failed}"
    );
}
